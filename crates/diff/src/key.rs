// SPDX-License-Identifier: PostgreSQL
//! Maps the series of a recording to the rows that are compared.

use recording::Series;
use segment::directory::StatKind;
use segment::locks::{LwlockFigure, Name};
use segment::{commits, files, functions, interval, locks, own, wait_names};

use super::comparison::{DiffUnit, Subject};

/// Figures of a function's calls.
pub const INCLUSIVE: &str = "inclusive";
pub const EXCLUSIVE: &str = "exclusive";
pub const COUNTED: &str = "counted";

/// The use of a series.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// It counts units of work.
    Unit(DiffUnit),
    /// It is compared as this row.
    Row(Subject),
}

impl Key {
    /// The key of the same series in a recording that was made of samples, which do not see the phases of a command.
    pub fn of_samples(self) -> Key {
        match self {
            Key::Row(Subject::Account { phase, activity })
                if !matches!(&*phase, "idle" | "idle in transaction") =>
            {
                Key::Row(Subject::Account { phase: "active".into(), activity })
            }
            key => key,
        }
    }

    /// The key of a series; `None` if it is not compared, such as the activity of tally itself.
    pub fn from_series(series: &Series) -> Option<Key> {
        if own::is_process(&series.process) {
            return None;
        }
        let stat = &*series.stat;
        let clients = own::is_client(&series.process);
        let process = series.process.clone();
        if stat.kind == StatKind::Account {
            // The two servers may have different versions.
            let activity = wait_names::canonical(stat.activity()).into();
            return match (interval::is_idle(stat), clients) {
                (true, _) => None,
                (false, true) => {
                    Some(Key::Row(Subject::Account { phase: stat.phase().clone(), activity }))
                }
                (false, false) => Some(Key::Row(Subject::Process { process, activity })),
            };
        }
        if let Some(files::Name { key: [file, tablespace, operation], .. }) = files::parse(stat) {
            let file = match tablespace {
                "" | "pg_default" => file.into(),
                elsewhere => format!("{file}@{elsewhere}").into(),
            };
            return Some(Key::Row(Subject::File { process, file, operation: operation.into() }));
        }
        if let Some(functions::Name::Function { key: [function, _], figure }) =
            functions::parse(stat)
        {
            let part = match figure {
                functions::CallFigure::Inclusive => INCLUSIVE,
                functions::CallFigure::Exclusive => EXCLUSIVE,
                functions::CallFigure::Counted => COUNTED,
                // Exceptions and CPU times of a client's methods are not compared.
                _ => return None,
            };
            return Some(Key::Row(Subject::Function { process, function: function.into(), part }));
        }
        if !clients {
            return None;
        }
        if commits::whole_commit(stat).is_some() {
            return Some(Key::Unit(DiffUnit::Commit));
        }
        if stat.command().is_some_and(|(_, handle)| handle) {
            return Some(Key::Unit(DiffUnit::Command));
        }
        let (family, lock, part) = match locks::parse(stat)? {
            Name::Lwlock { key: [lock, ..], figure: LwlockFigure::Held } => {
                ("LWLock", lock.into(), "held")
            }
            Name::Lwlock { key: [lock, ..], figure: LwlockFigure::Acquire } => {
                ("LWLock", lock.into(), "acquire")
            }
            Name::Lock { kind, mode, .. } => ("Lock", format!("{kind} {mode}").into(), "wait"),
            _ => return None,
        };
        Some(Key::Row(Subject::Lock { family, lock, part }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segment::directory::Stat;

    fn key(process: &str, name: &str, kind: StatKind) -> Option<Key> {
        let stat = std::sync::Arc::new(Stat::new(name.to_string(), kind, "ticks".to_string()));
        Key::from_series(&Series { process: process.into(), stat })
    }

    #[test]
    fn time_belongs_to_clients_or_to_the_servers_own_processes() {
        let account = |process, name| key(process, name, StatKind::Account);
        let (phase, activity) = ("execute".into(), "IO:DataFileRead".into());
        let name = "execute::wait::IO:DataFileRead";
        assert_eq!(
            account(own::CLIENT, name),
            Some(Key::Row(Subject::Account { phase, activity }))
        );
        let (process, activity) = ("checkpointer".into(), "cpu".into());
        let own = account("checkpointer", "background::cpu");
        assert_eq!(own, Some(Key::Row(Subject::Process { process, activity })));
        assert_eq!(account(own::CLIENT, "idle::wait::Client:ClientRead"), None);
        assert_eq!(account(own::CLIENT, "off::uninstrumented"), None);
        assert_eq!(account(own::PROCESS, name), None);
    }

    #[test]
    fn an_event_is_one_row_whatever_the_versions_call_it() {
        for (earlier, last) in [
            ("execute::wait::IO:WALSync", "execute::wait::IO:WalSync"),
            ("execute::wait::BufferPin:BufferPin", "execute::wait::Buffer:BufferCleanup"),
            ("commit::wait::Call:commit_delay", "commit::wait::Timeout:CommitDelay"),
        ] {
            for process in [own::CLIENT, "walwriter"] {
                let [a, b] = [earlier, last].map(|name| key(process, name, StatKind::Account));
                assert!(a.is_some() && a == b, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn only_commits_and_commands_of_clients_are_counted() {
        let timer = |process, name| key(process, name, StatKind::Timer);
        assert_eq!(timer(own::CLIENT, "commit::leader"), Some(Key::Unit(DiffUnit::Commit)));
        assert_eq!(timer(own::CLIENT, "commit::write"), None);
        assert_eq!(timer("autovacuum worker", "commit::leader"), None);
        assert_eq!(
            timer(own::CLIENT, "command::Query::handle"),
            Some(Key::Unit(DiffUnit::Command))
        );
        assert_eq!(timer(own::CLIENT, "command::Query::read"), None);
    }

    #[test]
    fn locks_and_files_are_summed_over_phases() {
        let timer = |name| key(own::CLIENT, name, StatKind::Timer);
        let lock = "ProcArray".into();
        let held = Some(Key::Row(Subject::Lock { family: "LWLock", lock, part: "held" }));
        assert_eq!(timer("lwlock::ProcArray::held::execute::shared"), held);
        assert_eq!(timer("lwlock::ProcArray::held::commit::exclusive"), held);
        let file = |file: &str, operation: &str| {
            let process = own::CLIENT.into();
            Some(Key::Row(Subject::File {
                process,
                file: file.into(),
                operation: operation.into(),
            }))
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
            Some(Key::Row(Subject::Function { process, function, part }))
        };
        let flush = timer(own::CLIENT, "function::XLogFlush::inclusive::commit");
        assert_eq!(flush, function(own::CLIENT, INCLUSIVE));
        assert_eq!(timer(own::CLIENT, "function::XLogFlush::inclusive::execute"), flush);
        let own = timer("walwriter", "function::XLogFlush::exclusive::background");
        assert_eq!(own, function("walwriter", EXCLUSIVE));
        let hot = timer(own::CLIENT, "function::XLogFlush::counted::commit");
        assert_eq!(hot, function(own::CLIENT, COUNTED));
        assert_eq!(timer(own::CLIENT, "edge::XLogFlush::XLogWrite"), None);
    }
}
