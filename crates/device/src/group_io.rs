// SPDX-License-Identifier: PostgreSQL
//! Reads and writes of the server's processes, /proc/PID/io.
//!
//! When the parent reaps a process, the kernel adds its counters to the parent's. The sum over the postmaster
//! and its children is therefore conserved, including short sessions between two readings, if every child is
//! counted once: children are read first, then the postmaster and the list of children again, and children that
//! ended meanwhile count with the postmaster.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::problem::Problem;
use crate::system::System;

/// How often to retry when sessions end meanwhile.
const TRIES: u32 = 20;

macro_rules! io_counters {
    ($($field:ident: $name:literal, $doc:literal;)*) => {
        /// Counters of one process since it started, or the sum of several.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
        pub struct IoCounters {
            $(#[doc = $doc] pub $field: u64,)*
        }

        impl IoCounters {
            fn parse(text: &str) -> Option<IoCounters> {
                let field = |name: &str| {
                    text.lines().find_map(|line| {
                        let value = line.strip_prefix(name)?.strip_prefix(':')?;
                        value.trim().parse::<u64>().ok()
                    })
                };
                Some(IoCounters { $($field: field($name)?,)* })
            }

            fn combine(
                self,
                other: IoCounters,
                with: impl Fn(u64, u64) -> Option<u64>,
            ) -> Option<IoCounters> {
                Some(IoCounters { $($field: with(self.$field, other.$field)?,)* })
            }
        }
    };
}

io_counters! {
    read_bytes: "rchar",
        "Bytes returned by reads from the page cache or a device; of files and pipes, not of sockets read by `recv`.";
    written_bytes: "wchar", "Bytes passed to writes.";
    reads: "syscr", "Reads.";
    writes: "syscw", "Writes.";
    device_read_bytes: "read_bytes", "Bytes that the kernel read from devices for it, including read-ahead.";
    device_written_bytes: "write_bytes", "Bytes of pages that it dirtied, to be written to devices later.";
    cancelled_bytes: "cancelled_write_bytes",
        "Bytes among those that will not be written, because the file was removed or truncated.";
}

impl IoCounters {
    fn plus(self, other: IoCounters) -> IoCounters {
        self.combine(other, |a, b| Some(a.saturating_add(b))).unwrap_or(self)
    }

    /// The increase since `before`; `None` if any counter decreased.
    pub(crate) fn since(self, before: IoCounters) -> Option<IoCounters> {
        self.combine(before, u64::checked_sub)
    }

    /// Whether all counters are 0.
    pub(crate) fn is_zero(self) -> bool {
        self == IoCounters::default()
    }
}

/// One process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ProcessCounters {
    /// Start time, clock ticks since boot, because a PID may be reused.
    pub started: u64,
    /// Its counters.
    pub io: IoCounters,
}

/// The postmaster and all of its children.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GroupCounters {
    /// When the postmaster started, clock ticks since boot.
    pub started: u64,
    /// When they were read, clock ticks since boot.
    pub taken: u64,
    /// The sum, including processes that have ended.
    pub total: IoCounters,
    /// Counters by PID. The postmaster's include those of processes that have ended.
    pub processes: BTreeMap<u32, ProcessCounters>,
    /// Number of processes that we may not read.
    pub refused: usize,
}

fn io(system: &System, pid: u32) -> Result<IoCounters, Problem> {
    let text = std::fs::read_to_string(system.proc.path(pid, "io")).map_err(Problem::from)?;
    IoCounters::parse(&text).ok_or(Problem::NoAccounting)
}

impl GroupCounters {
    /// Reads the counters. `expected` is the start time of the postmaster.
    pub(crate) fn take(
        system: &System,
        pid: u32,
        expected: u64,
        boot_ticks: u64,
    ) -> Result<GroupCounters, Problem> {
        let mut processes = BTreeMap::new();
        let mut refused = 0;
        for child in system.proc.children(pid) {
            match io(system, child) {
                Ok(io) => {
                    // A process that has just ended is in the postmaster's counters.
                    if let Some(started) = system.started(child) {
                        processes.insert(child, ProcessCounters { started, io });
                    }
                }
                Err(Problem::Permission) => refused += 1,
                Err(_) => {}
            }
        }
        let mut own = io(system, pid);
        let mut there = system.proc.children(pid);
        for _ in 0..TRIES {
            // If they are equal, no child was reaped while the children were listed.
            let again = io(system, pid);
            if again == own {
                break;
            }
            own = again;
            there = system.proc.children(pid);
        }
        if system.started(pid) != Some(expected) {
            return Err(Problem::Ended);
        }
        let own = own.map_err(|problem| match problem {
            // The process exists but has no such file.
            Problem::Missing => Problem::NoAccounting,
            other => other,
        })?;
        processes.retain(|child, _| there.contains(child));
        processes.insert(pid, ProcessCounters { started: expected, io: own });
        let total = processes.values().fold(IoCounters::default(), |sum, p| sum.plus(p.io));
        Ok(GroupCounters { started: expected, taken: boot_ticks, total, processes, refused })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IO: &str = "rchar: 100\nwchar: 20\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 512\n";

    fn process(root: &std::path::Path, pid: u32, parent: u32, started: u64, io: Option<&str>) {
        let dir = root.join(pid.to_string());
        std::fs::create_dir_all(dir.join(format!("task/{pid}"))).expect("a folder");
        let stat =
            format!("{pid} (a) b) S {parent} 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {started} 0");
        std::fs::write(dir.join("stat"), stat).expect("a file");
        if let Some(io) = io {
            std::fs::write(dir.join("io"), io).expect("a file");
        }
    }

    #[test]
    fn the_sum_covers_parent_and_children_with_and_without_a_list_of_children() {
        let dir = tempfile::tempdir().expect("a directory");
        process(dir.path(), 10, 1, 500, Some(IO));
        process(dir.path(), 11, 10, 600, Some(IO));
        process(dir.path(), 12, 10, 700, Some(IO));
        process(dir.path(), 13, 11, 800, Some(IO));
        let system = System::at(dir.path(), "/none");
        let scanned = GroupCounters::take(&system, 10, 500, 900).expect("a reading");
        assert_eq!(scanned.processes.keys().copied().collect::<Vec<_>>(), [10, 11, 12]);
        assert_eq!(scanned.total.read_bytes, 300);
        assert_eq!(scanned.total.cancelled_bytes, 3 * 512);
        assert_eq!(scanned.processes[&12].started, 700);
        std::fs::write(dir.path().join("10/task/10/children"), "11 12 ").expect("a file");
        assert_eq!(GroupCounters::take(&system, 10, 500, 900), Ok(scanned));
    }

    #[test]
    fn a_session_that_ends_while_it_is_read_counts_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path();
        process(root, 10, 1, 500, Some(IO));
        process(root, 11, 10, 600, None);
        let list = root.join("10/task/10/children");
        std::fs::write(&list, "11 ").expect("a file");
        let pipe = root.join("11/io");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("it").success());
        let taken = std::thread::scope(|scope| {
            // It is reaped after its counters were opened and before they are read.
            scope.spawn(|| {
                use std::io::Write;
                let mut pipe = std::fs::File::options().write(true).open(&pipe).expect("a pipe");
                std::fs::write(&list, "").expect("a file");
                let both = IO.replace("rchar: 100", "rchar: 300");
                std::fs::write(root.join("10/io"), both).expect("a file");
                pipe.write_all(IO.replace("rchar: 100", "rchar: 200").as_bytes()).expect("text");
            });
            GroupCounters::take(&System::at(root, "/none"), 10, 500, 900)
        });
        assert_eq!(taken.expect("a reading").total.read_bytes, 300);
    }

    #[test]
    fn another_process_of_the_same_pid_is_not_the_server() {
        let dir = tempfile::tempdir().expect("a directory");
        process(dir.path(), 10, 1, 500, Some(IO));
        let system = System::at(dir.path(), "/none");
        assert_eq!(GroupCounters::take(&system, 10, 499, 900), Err(Problem::Ended));
        assert_eq!(GroupCounters::take(&system, 11, 499, 900), Err(Problem::Ended));
    }

    #[test]
    fn a_kernel_without_io_accounting_is_a_problem() {
        let dir = tempfile::tempdir().expect("a directory");
        process(dir.path(), 10, 1, 500, None);
        process(dir.path(), 20, 1, 500, Some("rchar: 1\nwchar: 1\nsyscr: 1\nsyscw: 1\n"));
        let system = System::at(dir.path(), "/none");
        assert_eq!(GroupCounters::take(&system, 10, 500, 900), Err(Problem::NoAccounting));
        assert_eq!(GroupCounters::take(&system, 20, 500, 900), Err(Problem::NoAccounting));
    }
}
