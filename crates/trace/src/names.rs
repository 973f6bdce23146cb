// SPDX-License-Identifier: PostgreSQL
//! Names for the numbers in records: accounts, statements, files, locks.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use error::Error;
use segment::layout::{trace_commit, SPACE_DEFAULT, SPACE_GLOBAL};
use segment::{stat_names, LockTag, Segment, TraceFile, TraceParent};
use view::blocking::MODES;

use super::story::{FileWait, LockWait};

/// Minimum time between reads of the statements for a statement whose text was missing before ...
const SELDOM: Duration = Duration::from_millis(100);
/// ... and for a new statement.
const OFTEN: Duration = Duration::from_millis(10);

/// An account's name in its parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Account {
    /// "execute".
    pub phase: String,
    /// "cpu", or the event of a wait: "IO:DataFileRead".
    pub activity: String,
    /// Whether it is the wait for a client's next message.
    pub idle: bool,
}

/// The names needed so far.
#[derive(Debug, Default)]
pub struct Names {
    accounts: RefCell<HashMap<u32, Account>>,
    statements: HashMap<u64, String>,
    missing: HashSet<u64>,
    read: Option<Instant>,
}

/// In the numbering of the extension (pg_tally/ledger/ledger.h).
const MESSAGES: [&str; 14] = [
    "Query",
    "Parse",
    "Bind",
    "Describe",
    "Execute",
    "Close",
    "Sync",
    "Flush",
    "FunctionCall",
    "CopyData",
    "CopyDone",
    "CopyFail",
    "Terminate",
    "Other",
];

/// In the numbering of the extension (pg_tally/file/files.h).
const OPERATIONS: [&str; 11] = [
    "read",
    "write",
    "extend",
    "sync",
    "writeback",
    "prefetch",
    "truncate",
    "open",
    "close",
    "unlink",
    "rename",
];

/// The name of a kind of message.
pub fn message(kind: u8) -> &'static str {
    MESSAGES.get(usize::from(kind)).copied().unwrap_or("Other")
}

/// The name of an operation on a file.
pub fn operation(number: u8) -> &'static str {
    OPERATIONS.get(usize::from(number)).copied().unwrap_or("operation")
}

/// The name of a lock's mode.
pub fn mode(number: u16) -> &'static str {
    MODES.get(usize::from(number)).copied().filter(|_| number != 0).unwrap_or("")
}

/// The format of W3C Trace Context.
pub fn traceparent(parent: &TraceParent) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("00-{}-{}-{:02x}", hex(&parent.trace), hex(&parent.span), parent.flags)
}

/// Describes a lock as pg_locks would show it.
pub fn lock(tag: &LockTag) -> String {
    let [a, b, c] = tag.fields;
    match tag.kind {
        0 => format!("relation {b} of database {a}"),
        1 => format!("extension of relation {b} of database {a}"),
        2 => format!("frozen ids of database {a}"),
        3 => format!("page {c} of relation {b}"),
        4 => format!("tuple ({c},{}) of relation {b}", tag.field4),
        5 => format!("transaction {a}"),
        6 => format!("virtual transaction {a}/{b}"),
        7 => format!("speculative token {b} of transaction {a}"),
        8 => format!("object {c} of class {b}"),
        9 => format!("user lock {a}/{b}/{c}"),
        10 => format!("advisory lock {a}/{b}/{c}/{}", tag.field4),
        other => format!("lock of type {other}"),
    }
}

/// The object of a wait, in short, without the block; empty if unknown.
pub fn object(
    names: &Names,
    segment: &Segment,
    file: Option<&FileWait>,
    lock_of: Option<&LockWait>,
) -> String {
    if let Some(wait) = lock_of {
        let mut text = format!("{} {}", mode(wait.mode), lock(&wait.lock));
        if !wait.blockers.is_empty() {
            let pids: Vec<String> = wait.blockers.iter().map(i32::to_string).collect();
            text += &format!(", blocked by {}", pids.join(", "));
        }
        return text;
    }
    file.and_then(|wait| names.file(segment, wait)).unwrap_or_default()
}

impl Names {
    /// The account with this directory number.
    pub fn account(&self, segment: &Segment, stat: Option<u32>) -> Account {
        let unknown = Account { phase: "unknown".into(), activity: "unknown".into(), idle: false };
        let Some(stat) = stat else { return unknown };
        if let Some(account) = self.accounts.borrow().get(&stat) {
            return account.clone();
        }
        let Ok(Some(name)) = segment.stat_name(stat) else { return unknown };
        let (phase, rest) = name.split_once("::").unwrap_or((&name, ""));
        let activity = rest.strip_prefix("wait::").unwrap_or(rest);
        let account = Account {
            phase: phase.into(),
            activity: activity.into(),
            idle: matches!(phase, "idle" | "idle in transaction")
                && activity.starts_with("Client:"),
        };
        self.accounts.borrow_mut().insert(stat, account.clone());
        account
    }

    /// A file: its path in the data directory, without the segment number; or its kind.
    pub fn file(&self, segment: &Segment, wait: &FileWait) -> Option<String> {
        match wait.file.as_ref()? {
            TraceFile::Relation { tablespace, database, file, fork, .. } => {
                let fork = match fork {
                    0 => "",
                    1 => "_fsm",
                    2 => "_vm",
                    _ => "_init",
                };
                Some(match (*tablespace, *database) {
                    (SPACE_GLOBAL, _) => format!("global/{file}{fork}"),
                    (SPACE_DEFAULT, database) => format!("base/{database}/{file}{fork}"),
                    (space, database) => format!("pg_tblspc/{space}/{database}/{file}{fork}"),
                })
            }
            TraceFile::Kind(stat) => {
                let name = segment.stat_name(*stat).ok().flatten()?;
                Some(name.strip_prefix(stat_names::TRACED_FILE)?.to_string())
            }
        }
    }

    /// The text of a statement on one line, if the server has it.
    pub fn statement(&mut self, segment: &mut Segment, id: u64) -> Result<Option<&str>, Error> {
        let known = self.statements.contains_key(&id);
        let pause = if !known && self.missing.insert(id) { OFTEN } else { SELDOM };
        if !known && self.read.is_none_or(|read| read.elapsed() >= pause) {
            self.read = Some(Instant::now());
            if let Some(read) = segment.statements()? {
                for statement in read.statements() {
                    let Some(text) = &statement.text else { continue };
                    let line = text.shown.split_whitespace().collect::<Vec<_>>().join(" ");
                    self.statements.insert(statement.key.id, line);
                }
            }
        }
        Ok(self.statements.get(&id).map(String::as_str))
    }
}

/// How a commit became durable.
pub(super) fn commit_name(kind: u8) -> &'static str {
    match kind {
        trace_commit::LEADER => "leader",
        trace_commit::GROUP_COMMITTED => "group-committed",
        trace_commit::ASYNCHRONOUS => "asynchronous",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words of the extension's source from `begin` to the next `end` that begin with `prefix`.
    fn words<'s>(source: &'s str, begin: &str, end: &str, prefix: &str) -> Vec<&'s str> {
        let from = source.find(begin).expect(begin);
        let part = &source[from..from + source[from..].find(end).expect(end)];
        let words = part.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.filter(|word| word.starts_with(prefix)).collect()
    }

    /// The names in the extension's table of names, in the order of its enumeration.
    fn names(numbers: &[&str], table: &str) -> Vec<String> {
        let name = |number: &&str| {
            let from = table.find(&format!("[{number}] = ")).unwrap_or_else(|| panic!("{number}"));
            table[from..].split('"').nth(1).unwrap().to_string()
        };
        numbers.iter().map(name).collect()
    }

    #[test]
    fn messages_and_operations_are_those_of_the_extension() {
        let header = include_str!("../../../pg_tally/ledger/ledger.h");
        let messages = words(header, "typedef enum tally_message", "MESSAGE_COUNT", "MESSAGE_");
        assert_eq!(
            names(&messages, include_str!("../../../pg_tally/ledger/message_kinds.c")),
            MESSAGES
        );
        let header = include_str!("../../../pg_tally/file/files.h");
        let operations = words(header, "typedef enum file_operation", "FILE_OPERATIONS", "FILE_");
        assert_eq!(names(&operations, include_str!("../../../pg_tally/file/files.c")), OPERATIONS);
    }
}
