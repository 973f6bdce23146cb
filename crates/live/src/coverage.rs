// SPDX-License-Identifier: PostgreSQL
//! Which processes of a server are instrumented, according to /proc and the slots.

use std::collections::HashSet;
use std::time::Duration;

use scratch::Process;
use segment::Segment;

/// A process that has just begun takes its slot within this time.
const SETTLE: Duration = Duration::from_millis(50);

/// The processes of a server, with and without a slot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// With a slot.
    pub covered: Vec<Process>,
    /// Without one.
    pub uncovered: Vec<Process>,
    /// Whether every process should have a slot, because shared_preload_libraries loads pg_tally.
    pub shared: bool,
}

impl Coverage {
    /// The children of this segment's server; `None` if its processes are not visible (another machine or PID
    /// namespace, or the server has ended).
    pub fn read(segment: &Segment) -> Result<Option<Self>, segment::Error> {
        if segment.remote().is_some() || segment.server_runs() != Some(true) {
            return Ok(None);
        }
        let postmaster = segment.header().server_pid;
        let first = Self::look(segment, postmaster)?;
        if first.uncovered.is_empty() {
            return Ok(Some(first));
        }
        // A process that has just started has no slot yet, so look twice.
        std::thread::sleep(SETTLE);
        let mut second = Self::look(segment, postmaster)?;
        let before: HashSet<u32> = first.uncovered.iter().map(|process| process.pid).collect();
        second.uncovered.retain(|process| before.contains(&process.pid));
        Ok(Some(second))
    }

    fn look(segment: &Segment, postmaster: u32) -> Result<Self, segment::Error> {
        let children = scratch::children(postmaster);
        // Read after the children, so that a process with a slot never counts as one without.
        let pids: HashSet<u32> = segment
            .claims()?
            .into_iter()
            .filter_map(|claim| u32::try_from(claim.pid).ok())
            .collect();
        let (covered, uncovered) =
            children.into_iter().partition(|process: &Process| pids.contains(&process.pid));
        Ok(Self { covered, uncovered, shared: segment.header().all_processes })
    }
}

/// Counts the processes without a slot, repeatedly and without sleeping.
#[derive(Debug, Default)]
pub(crate) struct Count {
    /// The processes that had no slot at the previous call.
    before: HashSet<u32>,
}

impl Count {
    /// The number of processes without a slot; `None` if the server's processes are not visible. A process that has
    /// just started has no slot yet, so only those count that had none at the previous call either.
    pub(crate) fn next(&mut self, segment: &Segment) -> Result<Option<usize>, segment::Error> {
        if segment.header().all_processes {
            return Ok(Some(0));
        }
        if segment.remote().is_some() || segment.server_runs() != Some(true) {
            return Ok(None);
        }
        let found = Coverage::look(segment, segment.header().server_pid)?;
        let now: HashSet<u32> = found.uncovered.iter().map(|process| process.pid).collect();
        let lasting = now.intersection(&self.before).count();
        self.before = now;
        Ok(Some(lasting))
    }
}

/// A process's title without its server's name in front: "postgres: 15/main: checkpointer ".
pub fn role(process: &Process) -> &str {
    let title = process.title.trim();
    let title = title.strip_prefix("postgres: ").unwrap_or(title);
    match title.split_once(": ") {
        // cluster_name, if set, comes first; no colon ever follows a role.
        Some((cluster, rest)) if !cluster.contains(' ') => rest,
        _ => title,
    }
}

/// "checkpointer, walwriter and 3 more".
pub fn list(processes: &[Process]) -> String {
    const SHOWN: usize = 6;
    let names: Vec<String> = processes
        .iter()
        .take(SHOWN)
        .map(|process| format!("{} ({})", role(process), process.pid))
        .collect();
    match processes.len().saturating_sub(SHOWN) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_shown_without_the_servers_name() {
        let role_of = |title: &str| role(&Process { pid: 1, title: title.into() }).to_string();
        assert_eq!(role_of("postgres: checkpointer "), "checkpointer");
        assert_eq!(role_of("postgres: 15/main: walwriter "), "walwriter");
        assert_eq!(role_of("postgres: me db [local] idle"), "me db [local] idle");
    }

    #[test]
    fn a_long_list_is_cut_and_counted() {
        let many: Vec<Process> =
            (1..=9).map(|pid| Process { pid, title: "postgres: x".into() }).collect();
        assert!(list(&many).ends_with("x (6) and 3 more"), "{}", list(&many));
    }
}
