// SPDX-License-Identifier: PostgreSQL
//! Detects what fills a full table of statements: statements of one kind that ran only once, each with a name or
//! a value in its text.

use std::collections::HashMap;

use serde::Serialize;

/// Share of the capacity from which a table counts as full, because its sets do not fill up evenly.
const FULL: f64 = 0.9;
/// Share of the table that statements of one kind must take.
const MUCH: f64 = 0.4;
/// Number of texts to quote.
const EXAMPLES: usize = 3;
/// These commands come and go together.
const SAVEPOINTS: &str = "SAVEPOINT, RELEASE and ROLLBACK TO";

/// Statements of one kind that ran only once and evict others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Flood {
    /// Their kind: "SET", "CREATE TABLE".
    pub kind: String,
    /// How many are kept, or recorded.
    pub once: u64,
    /// Statements kept, or recorded, of all kinds.
    pub kept: u64,
    /// Whether these are those of a recording, and so only those that were active in its time.
    #[serde(skip)]
    pub recorded: bool,
    /// Statements evicted in the interval, or since the segment was created.
    pub evicted: u64,
    /// Some of their texts.
    pub examples: Vec<String>,
}

impl Flood {
    /// The flood among the kept statements, given their texts and calls; `None`: there is space, or they are of many kinds.
    /// `recorded`: how many these are, where they are not those that are kept but those that were active meanwhile.
    pub(super) fn detect<'s>(
        statements: impl Iterator<Item = (&'s str, u64)>,
        kept: u32,
        capacity: u32,
        evicted: u64,
        recorded: Option<u64>,
    ) -> Option<Flood> {
        if evicted == 0 || f64::from(kept) < FULL * f64::from(capacity) {
            return None;
        }
        let mut kinds: HashMap<String, (u64, Vec<&str>)> = HashMap::new();
        for (text, _) in statements.filter(|(_, runs)| *runs <= 1) {
            let (once, examples) = kinds.entry(kind(text)).or_default();
            *once += 1;
            if examples.len() < EXAMPLES {
                examples.push(text);
            }
        }
        let (kind, (once, examples)) =
            kinds.into_iter().max_by(|(a, (n, _)), (b, (m, _))| n.cmp(m).then_with(|| b.cmp(a)))?;
        // A few that were active in a short time say nothing of the table.
        let kept = u64::from(kept);
        let much = once as f64 >= MUCH * kept.max(recorded.unwrap_or(0)) as f64;
        much.then(|| Flood {
            kind,
            once,
            kept: recorded.unwrap_or(kept),
            recorded: recorded.is_some(),
            evicted,
            examples: examples.into_iter().map(str::to_owned).collect(),
        })
    }
}

/// The words of a text, after leading blanks, comments and parentheses.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = beginning(rest);
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        (!word.is_empty()).then(|| word.to_uppercase())
    })
}

/// The text without leading blanks, comments and parentheses.
fn beginning(text: &str) -> &str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
        rest = if let Some(line) = rest.strip_prefix("--") {
            line.split_once('\n').map_or("", |(_, after)| after)
        } else if rest.starts_with("/*") {
            after_comment(rest)
        } else {
            return rest;
        };
    }
}

/// The text after a comment, which may contain nested comments.
fn after_comment(text: &str) -> &str {
    let (mut depth, mut at) = (0, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    // It ends after a "/", or at the end of the text.
    text.get(at..).unwrap_or("")
}

/// The kind of a statement: its first word and, for CREATE and similar commands, the kind of object.
fn kind(text: &str) -> String {
    const MODIFIERS: &[&str] = &[
        "TEMP",
        "TEMPORARY",
        "UNLOGGED",
        "LOCAL",
        "GLOBAL",
        "OR",
        "REPLACE",
        "UNIQUE",
        "IF",
        "NOT",
        "EXISTS",
    ];
    let mut words = words(text);
    let first = words.next().unwrap_or_default();
    let mut second = || words.find(|word| !MODIFIERS.contains(&&**word)).unwrap_or_default();
    match &*first {
        "CREATE" | "DROP" | "ALTER" | "REFRESH" => {
            format!("{first} {}", second()).trim_end().to_owned()
        }
        "SAVEPOINT" | "RELEASE" => SAVEPOINTS.to_owned(),
        "PREPARE" | "COMMIT" | "ROLLBACK" => match &*second() {
            "TO" => SAVEPOINTS.to_owned(),
            "TRANSACTION" if first == "PREPARE" => "PREPARE TRANSACTION".to_owned(),
            "PREPARED" => format!("{first} PREPARED"),
            _ => first,
        },
        _ => first,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_the_first_words_without_names() {
        for (text, expected) in [
            ("select 1", "SELECT"),
            ("  (select 1) union (select 2)", "SELECT"),
            ("-- a comment\n/* one /* within */ * / */ Set work_mem = $1", "SET"),
            ("create temp table t7 (id int)", "CREATE TABLE"),
            ("CREATE OR REPLACE FUNCTION f()", "CREATE FUNCTION"),
            ("drop table if exists t7", "DROP TABLE"),
            ("savepoint s1", SAVEPOINTS),
            ("release savepoint s1", SAVEPOINTS),
            ("rollback to s1", SAVEPOINTS),
            ("rollback", "ROLLBACK"),
            ("prepare transaction 'x1'", "PREPARE TRANSACTION"),
            ("commit prepared 'x1'", "COMMIT PREPARED"),
            ("prepare p1 as select 1", "PREPARE"),
            ("/* unfinished", ""),
            ("/*/", ""),
            ("drop", "DROP"),
            ("größe", "GRÖSSE"),
            ("", ""),
        ] {
            assert_eq!(kind(text), expected, "{text}");
        }
    }

    fn flood(set: usize, others: usize, capacity: u32, evicted: u64) -> Option<Flood> {
        let texts: Vec<(String, u64)> = (0..set)
            .map(|n| (format!("set a.b = 'n{n}'"), 1))
            .chain((0..others).map(|n| (format!("select {n}"), 2 + n as u64)))
            .collect();
        let kept = (set + others) as u32;
        let texts = texts.iter().map(|(text, runs)| (&**text, *runs));
        Flood::detect(texts, kept, capacity, evicted, None)
    }

    #[test]
    fn in_a_recording_those_that_were_active_are_compared_with_the_table() {
        let active = |n: usize, kept, recorded| {
            let texts: Vec<String> = (0..n).map(|n| format!("set a.b = 'n{n}'")).collect();
            Flood::detect(texts.iter().map(|text| (&**text, 1)), kept, 100, 7, Some(recorded))
        };
        let found = active(490, 95, 620).unwrap();
        assert_eq!((found.once, found.kept, found.recorded), (490, 620, true));
        assert_eq!(active(3, 95, 5), None, "a few in a short time");
        assert_eq!(active(100, 95, 620), None, "most are of other kinds");
        assert_eq!(active(490, 60, 620), None, "there is space");
    }

    #[test]
    fn a_full_table_of_statements_that_ran_once_is_named() {
        let found = flood(49, 13, 62, 7).unwrap();
        assert_eq!((&*found.kind, found.once, found.kept, found.evicted), ("SET", 49, 62, 7));
        assert_eq!(found.examples, ["set a.b = 'n0'", "set a.b = 'n1'", "set a.b = 'n2'"]);
        assert_eq!(flood(49, 13, 62, 0), None, "nothing was evicted");
        assert_eq!(flood(49, 13, 100, 7), None, "there is space");
        assert_eq!(flood(20, 42, 62, 7), None, "most statements recur");
        assert_eq!(flood(0, 0, 0, 7), None);
    }
}
