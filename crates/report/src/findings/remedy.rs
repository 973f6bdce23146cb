// SPDX-License-Identifier: PostgreSQL
//! The SQL commands in an advice, so that a page can offer each to be copied.

use view::document::Remedy;

/// What a command in an advice begins with. What is not listed stays in the text only.
const COMMANDS: [&str; 11] = [
    "ALTER ",
    "ANALYZE ",
    "CHECKPOINT",
    "CREATE ",
    "DROP ",
    "REINDEX ",
    "ROLLBACK PREPARED ",
    "SELECT ",
    "SET ",
    "VACUUM",
    "EXPLAIN (ANALYZE, BUFFERS) ",
];
/// A command follows one of these, or begins the text.
const BEFORE: [&str; 5] = [": ", ". ", "; ", ", or ", "then "];
/// Where a command ends, outside quotation marks and parentheses.
const AFTER: [&str; 5] = [". ", "; ", ", or ", ", and ", ": "];
/// Before a parenthesis that belongs to the command, unlike a remark.
const OPENS: [&str; 5] = ["SET", "RESET", "VACUUM", "EXPLAIN", "IN"];

/// The advice with its commands, for a cause that is so sure.
pub fn remedy(advice: &str, confidence: &'static str) -> Remedy {
    let mut sql: Vec<String> = Vec::new();
    let mut at = 0;
    while let Some(rest) = advice.get(at..) {
        let Some(letter) = rest.chars().next() else { break };
        let begins = at == 0 || BEFORE.iter().any(|before| advice[..at].ends_with(before));
        if begins && COMMANDS.iter().any(|command| rest.starts_with(command)) {
            let command = &rest[..end(rest)];
            at += command.len();
            let command = command.trim_end().trim_end_matches(['.', ';']);
            let complete = command.contains([' ', '(']) && !command.contains("...");
            if complete && !sql.iter().any(|other| other.trim_end_matches(';') == command) {
                sql.push(format!("{command};"));
            }
        }
        at += letter.len_utf8();
    }
    Remedy { text: advice.to_string(), sql, confidence }
}

/// The length of the command at the start of a text.
fn end(text: &str) -> usize {
    let creates = text.starts_with("CREATE ");
    let mut quoted: Option<char> = None;
    let mut depth = 0;
    for (at, letter) in text.char_indices() {
        let rest = &text[at..];
        match (letter, quoted) {
            ('\'' | '"', None) => quoted = Some(letter),
            (_, Some(mark)) if letter == mark => quoted = None,
            (_, Some(_)) => {}
            ('(', None) => {
                let remark = text[..at].ends_with(' ')
                    && !creates
                    && !OPENS.iter().any(|word| text[..at].trim_end().ends_with(word));
                if depth == 0 && remark {
                    return at;
                }
                depth += 1;
            }
            (')', None) if depth == 0 => return at,
            (')', None) => depth -= 1,
            // Dots of an omission do not end a sentence.
            ('.', None) if text[..at].ends_with('.') => {}
            _ if depth == 0 && AFTER.iter().any(|after| rest.starts_with(after)) => return at,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sql(advice: &str) -> Vec<String> {
        remedy(advice, "likely").sql
    }

    #[test]
    fn each_command_is_found_whole() {
        assert_eq!(
            sql(
                "End it if its client has forgotten it: SELECT pg_terminate_backend(4304). To prevent it: ALTER ROLE shop SET \
                 idle_in_transaction_session_timeout = '1min'."
            ),
            [
                "SELECT pg_terminate_backend(4304);",
                "ALTER ROLE shop SET idle_in_transaction_session_timeout = '1min';"
            ]
        );
        assert_eq!(
            sql("VACUUM t; then ALTER TABLE t RESET (autovacuum_enabled), or ALTER SYSTEM SET autovacuum = on; SELECT pg_reload_conf()"),
            [
                "VACUUM t;",
                "ALTER TABLE t RESET (autovacuum_enabled);",
                "ALTER SYSTEM SET autovacuum = on;",
                "SELECT pg_reload_conf();"
            ]
        );
        assert_eq!(
            sql("In a quiet hour: VACUUM FULL pg_catalog.pg_class (it locks the catalog). To prevent it: fewer temporary tables"),
            ["VACUUM FULL pg_catalog.pg_class;"]
        );
        assert_eq!(
            sql("Create it: CREATE INDEX CONCURRENTLY ON \"a. b\" (c, lower(d)). It takes time."),
            ["CREATE INDEX CONCURRENTLY ON \"a. b\" (c, lower(d));"]
        );
    }

    #[test]
    fn what_is_not_a_whole_command_stays_text() {
        for text in [
            "Lock rows in the same order (SELECT ... ORDER BY id FOR UPDATE before the changes), and repeat",
            "Look at the filter's columns (CREATE INDEX CONCURRENTLY).",
            "After large loads, run ANALYZE at once.",
            "An example: SELECT ... FOR UPDATE.",
            "VACUUM.",
            "Raise work_mem.",
            "",
        ] {
            assert_eq!(sql(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn a_command_is_offered_once() {
        assert_eq!(
            sql("SELECT f(1). If not: SELECT f(1); SELECT f(2)"),
            ["SELECT f(1);", "SELECT f(2);"]
        );
    }
}
