// SPDX-License-Identifier: PostgreSQL
//! Maps the series of a recording to what is compared.

use std::sync::Arc;

use recording::Series;
use segment::directory::StatKind;
use segment::locks::{LwlockFigure, Name};
use segment::{commits, files, functions, interval, locks};

/// Processes that work for clients; all others are the server's own.
const CLIENTS: &str = "client backend";

/// Figures of a function's calls.
pub const INCLUSIVE: &str = "inclusive";
pub const EXCLUSIVE: &str = "exclusive";
pub const COUNTED: &str = "counted";

/// What is compared.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Handled client commands.
    Command,
    /// Client commits that wrote WAL.
    Commit,
    /// Busy time of client sessions.
    Account {
        /// The phase of the client's command.
        phase: Arc<str>,
        /// "cpu", or the wait event as `Type:Event`.
        activity: Arc<str>,
    },
    /// Busy time of other processes, all phases together.
    Process {
        /// "checkpointer", ...
        process: Arc<str>,
        /// "cpu", or the wait event as `Type:Event`.
        activity: Arc<str>,
    },
    /// Lightweight locks of client sessions.
    Lwlock {
        /// The tranche.
        lock: Arc<str>,
        /// "held", or "acquire": queueing for it.
        part: &'static str,
    },
    /// Waits of client sessions for heavyweight locks.
    Lock {
        /// "relation", "transactionid", ...
        kind: Arc<str>,
        /// "ShareLock", ...
        mode: Arc<str>,
    },
    /// Operations on files.
    File {
        /// "client backend", "checkpointer", ...
        process: Arc<str>,
        /// "main", "wal", ..., with the tablespace if it is not the default one.
        file: Arc<str>,
        /// "read", "write", "sync", ...
        operation: Arc<str>,
    },
    /// Probed functions.
    Function {
        /// "client backend", "checkpointer", ...
        process: Arc<str>,
        /// Its symbol.
        function: Arc<str>,
        /// "inclusive" or "exclusive" time; "counted": calls without a time.
        part: &'static str,
    },
}

impl Key {
    /// The key of a series; `None` if it is not compared.
    pub fn of(series: &Series) -> Option<Key> {
        let stat = &*series.stat;
        let clients = &*series.process == CLIENTS;
        if stat.kind == StatKind::Account {
            let activity = stat.activity().clone();
            return match (interval::is_idle(stat), clients) {
                (true, _) => None,
                (false, true) => Some(Key::Account { phase: stat.phase().clone(), activity }),
                (false, false) => Some(Key::Process { process: series.process.clone(), activity }),
            };
        }
        if let Some(files::Name { key: [file, tablespace, operation], .. }) = files::parse(stat) {
            let file = match tablespace {
                "" | "pg_default" => file.into(),
                elsewhere => format!("{file}@{elsewhere}").into(),
            };
            let process = series.process.clone();
            return Some(Key::File { process, file, operation: operation.into() });
        }
        if let Some(functions::Name::Function { key: [function, _], figure }) =
            functions::parse(stat)
        {
            let part = match figure {
                functions::CallFigure::Inclusive => INCLUSIVE,
                functions::CallFigure::Exclusive => EXCLUSIVE,
                functions::CallFigure::Counted => COUNTED,
            };
            let (process, function) = (series.process.clone(), function.into());
            return Some(Key::Function { process, function, part });
        }
        if !clients {
            return None;
        }
        if commits::whole_commit(stat).is_some() {
            return Some(Key::Commit);
        }
        if stat.command().is_some_and(|(_, handle)| handle) {
            return Some(Key::Command);
        }
        match locks::parse(stat)? {
            Name::Lwlock { key: [lock, ..], figure: LwlockFigure::Held } => {
                Some(Key::Lwlock { lock: lock.into(), part: "held" })
            }
            Name::Lwlock { key: [lock, ..], figure: LwlockFigure::Acquire } => {
                Some(Key::Lwlock { lock: lock.into(), part: "acquire" })
            }
            Name::Lock { kind, mode, .. } => {
                Some(Key::Lock { kind: kind.into(), mode: mode.into() })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segment::directory::Stat;

    fn key(process: &str, name: &str, kind: StatKind) -> Option<Key> {
        let stat = Arc::new(Stat::new(name.to_string(), kind, "ticks".to_string()));
        Key::of(&Series { process: process.into(), stat })
    }

    #[test]
    fn time_belongs_to_clients_or_to_the_servers_own_processes() {
        let account = |process, name| key(process, name, StatKind::Account);
        let (phase, activity) = ("execute".into(), "IO:DataFileRead".into());
        let name = "execute::wait::IO:DataFileRead";
        assert_eq!(account(CLIENTS, name), Some(Key::Account { phase, activity }));
        let (process, activity) = ("checkpointer".into(), "cpu".into());
        let own = account("checkpointer", "background::cpu");
        assert_eq!(own, Some(Key::Process { process, activity }));
        assert_eq!(account(CLIENTS, "idle::wait::Client:ClientRead"), None);
        assert_eq!(account(CLIENTS, "off::uninstrumented"), None);
    }

    #[test]
    fn only_commits_and_commands_of_clients_are_counted() {
        let timer = |process, name| key(process, name, StatKind::Timer);
        assert_eq!(timer(CLIENTS, "commit::leader"), Some(Key::Commit));
        assert_eq!(timer(CLIENTS, "commit::write"), None);
        assert_eq!(timer("autovacuum worker", "commit::leader"), None);
        assert_eq!(timer(CLIENTS, "command::Query::handle"), Some(Key::Command));
        assert_eq!(timer(CLIENTS, "command::Query::read"), None);
    }

    #[test]
    fn locks_and_files_are_summed_over_phases() {
        let timer = |name| key(CLIENTS, name, StatKind::Timer);
        let lock: Arc<str> = "ProcArray".into();
        let held = Some(Key::Lwlock { lock, part: "held" });
        assert_eq!(timer("lwlock::ProcArray::held::execute::shared"), held);
        assert_eq!(timer("lwlock::ProcArray::held::commit::exclusive"), held);
        let file = |file: &str, operation: &str| {
            let process = CLIENTS.into();
            Some(Key::File { process, file: file.into(), operation: operation.into() })
        };
        assert_eq!(timer("file::main::read::execute"), file("main", "read"));
        assert_eq!(timer("file::main@16385::read::bind"), file("main@16385", "read"));
        assert_eq!(timer("file::main::sync failed::sync"), file("main", "sync"));
    }

    #[test]
    fn functions_are_summed_over_phases_for_each_kind_of_process() {
        let timer = |process, name| key(process, name, StatKind::Timer);
        let function = |process: &str, part| {
            let (process, function) = (process.into(), "XLogFlush".into());
            Some(Key::Function { process, function, part })
        };
        let flush = timer(CLIENTS, "function::XLogFlush::inclusive::commit");
        assert_eq!(flush, function(CLIENTS, INCLUSIVE));
        assert_eq!(timer(CLIENTS, "function::XLogFlush::inclusive::execute"), flush);
        let own = timer("walwriter", "function::XLogFlush::exclusive::background");
        assert_eq!(own, function("walwriter", EXCLUSIVE));
        let hot = timer(CLIENTS, "function::XLogFlush::counted::commit");
        assert_eq!(hot, function(CLIENTS, COUNTED));
        assert_eq!(timer(CLIENTS, "edge::XLogFlush::XLogWrite"), None);
    }
}
