// SPDX-License-Identifier: PostgreSQL
//! How sentences name sessions, how SQL in advice names objects, and which command a text begins
//! with.

use segment::interval::SessionRow;
use segment::ClientWaits;
use view::vacuum::Condition;

use crate::advice::Advice;

/// Reserved words, which are no names unless they are quoted (kwlist.h of 19).
const RESERVED: &str = " all analyse analyze and any array as asc asymmetric authorization binary both case cast check collate \
    collation column concurrently constraint create cross current_catalog current_date current_role current_schema current_time \
    current_timestamp current_user default deferrable desc distinct do else end except false fetch for foreign freeze from full \
    grant group having ilike in initially inner intersect into is isnull join lateral leading left like limit localtime \
    localtimestamp natural not notnull null offset on only or order outer overlaps placing primary references returning right \
    select session_user similar some symmetric system_user table tablesample then to trailing true union unique user using \
    variadic verbose when where window with ";

/// A name as SQL needs it: quoted unless it consists of lower-case letters, digits and underscores, and is not reserved.
pub(super) fn identifier(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    let reserved = RESERVED.contains(&format!(" {name} "));
    match begins && name.chars().all(is_plain) && !reserved {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// A string constant.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// "session 123 (application psql, user joe, database shop)".
pub(super) fn name(session: &SessionRow) -> String {
    named(session.pid, &parts(session))
}

/// The same of a session whose client made it wait.
pub(super) fn name_of_client(waits: &ClientWaits) -> String {
    let origin = (waits.user.as_deref(), waits.database.as_deref());
    named(waits.pid, &origin_parts(&waits.application, origin, waits.client_address.as_deref()))
}

fn named(pid: i32, parts: &[String]) -> String {
    match parts.is_empty() {
        true => format!("session {pid}"),
        false => format!("session {pid} ({})", parts.join(", ")),
    }
}

/// The command that ends a session.
pub(super) fn terminate(pid: i32) -> String {
    format!("SELECT pg_terminate_backend({pid})")
}

/// The command that ends a session's statement.
pub(super) fn cancel(pid: i32) -> String {
    format!("SELECT pg_cancel_backend({pid})")
}

/// How to end a prepared transaction.
pub(super) fn end_prepared(transaction: &Condition) -> Advice {
    let gid = literal(&transaction.name);
    let advice = Advice::from("Ask its transaction manager for the outcome, then ")
        .run(format!("COMMIT PREPARED {gid}"))
        .say(", or ")
        .run(format!("ROLLBACK PREPARED {gid}"));
    match &transaction.database {
        Some(database) => advice.say(&format!(" (in database {database}).")),
        None => advice.say("."),
    }
}

/// How to let a stopped process go on.
pub(super) fn go_on(pid: i64) -> Advice {
    Advice::from("Resume it, as the server's user or root: ")
        .run(format!("kill -CONT {pid}"))
        .say(". Find out who stopped it.")
}

/// "application psql", "user joe", "database shop", "client 10.0.0.7".
pub(super) fn parts(session: &SessionRow) -> Vec<String> {
    let origin = (session.user.as_deref(), session.database.as_deref());
    origin_parts(&session.application, origin, session.client_address.as_deref())
}

fn origin_parts(
    application: &str,
    (user, database): (Option<&str>, Option<&str>),
    client: Option<&str>,
) -> Vec<String> {
    let application = Some(application).filter(|name| !name.is_empty());
    let client = client.filter(|client| *client != "local");
    let part = |kind: &str, name: Option<&str>| name.map(|name| format!("{kind} {name}"));
    [
        part("application", application),
        part("user", user),
        part("database", database),
        part("client", client),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The command of a statement, in capitals: the first word behind comments and parentheses.
pub(super) fn command(text: &str) -> String {
    let mut rest = text.trim_start_matches(|c: char| c == '(' || c.is_whitespace());
    loop {
        let after = match (rest.strip_prefix("/*"), rest.strip_prefix("--")) {
            (Some(comment), _) => comment.split_once("*/"),
            (_, Some(comment)) => comment.split_once('\n'),
            _ => break,
        };
        let after = after.map_or("", |(_, after)| after);
        rest = after.trim_start_matches(|c: char| c == '(' || c.is_whitespace());
    }
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    rest[..end].to_ascii_uppercase()
}

/// The table that a statement changes, without its schema and quotation marks; `None`: it changes none.
pub(super) fn target(text: &str) -> Option<&str> {
    let command = command(text);
    let is_command = |word: &&str| word.eq_ignore_ascii_case(&command);
    let mut words = text.split_whitespace().skip_while(|word| !is_command(word)).skip(1);
    let name = match &*command {
        // INSERT INTO, DELETE FROM
        "INSERT" | "DELETE" => words.nth(1)?,
        "UPDATE" => words.next()?,
        _ => return None,
    };
    let name = if name.eq_ignore_ascii_case("only") { words.next()? } else { name };
    let name = name.split(['(', ';']).next()?.rsplit('.').next()?.trim_matches('"');
    (!name.is_empty()).then_some(name)
}

/// The major version in "PostgreSQL 15.20"; 0: not known.
pub(super) fn major(server: &str) -> u32 {
    let digits = server.trim_start_matches(|c: char| !c.is_ascii_digit());
    digits
        .split(|c: char| !c.is_ascii_digit())
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_a_change_is_behind_its_command() {
        for (text, expected) in [
            ("insert into orders(id) values ($1)", Some("orders")),
            ("/* app */ INSERT INTO shop.\"Order\" values ($1)", Some("Order")),
            ("update only t set n = n + 1", Some("t")),
            ("delete from t;", Some("t")),
            ("select * from t", None),
            ("", None),
        ] {
            assert_eq!(target(text), expected, "{text}");
        }
    }

    #[test]
    fn a_command_is_behind_comments_and_parentheses() {
        for (text, expected) in [
            ("select 1", "SELECT"),
            ("/* app */ -- of mine\n ((select 1) union select 2)", "SELECT"),
            ("with(t) as x", "WITH"),
            ("/* without an end", ""),
            ("-- nor this", ""),
            ("", ""),
        ] {
            assert_eq!(command(text), expected, "{text}");
        }
    }
}
