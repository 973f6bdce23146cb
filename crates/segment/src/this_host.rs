// SPDX-License-Identifier: PostgreSQL
//! This machine, as far as a segment needs it: the processes that own slots, its boot, namespace and users.
//!
//! A pid alone does not tell: pids are reused. The start time of the process does, but it
//! costs reading a file of /proc, about 15 µs, so it is looked at when a slot is first seen
//! and, for slots in which nothing moves, a few at each snapshot.

use process::Stat;
use rustix::process::{test_kill_process, Pid};
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

/// Start times are of clock ticks, 10 ms; a process counts as another one when it started
/// this much after the claim.
const SLACK_NS: u64 = 20_000_000;

/// Whether a process of this number exists, whoever owns it.
pub fn exists(pid: i32) -> bool {
    // A negative number is no process, and the library insists.
    match Pid::from_raw(pid.max(0)) {
        Some(pid) => test_kill_process(pid) != Err(rustix::io::Errno::SRCH),
        None => false,
    }
}

/// Whether the process of this number is the one that was there at `claimed_boot_ns`
/// (CLOCK_BOOTTIME), not ended, replaced or a zombie.
pub fn is_same(pid: i32, claimed_boot_ns: u64) -> bool {
    let Ok(text) = std::fs::read(format!("/proc/{pid}/stat")) else {
        return exists(pid);
    };
    let Some((stat, started_ns)) = Stat::parse(&text).and_then(|it| Some((it, started_ns(&it)?)))
    else {
        return true;
    };
    stat.is_alive() && started_ns <= claimed_boot_ns.saturating_add(SLACK_NS)
}

/// The start time, ns since boot.
fn started_ns(stat: &Stat) -> Option<u64> {
    let hz = rustix::param::clock_ticks_per_second().max(1);
    stat.started_ticks.checked_mul(1_000_000_000 / hz)
}

/// Processors that this process may use. Counted once, because that takes reading files of
/// /proc and of the control group.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
}

/// Threads for the work on this many sessions: at most 4 and as many as processors, each for at
/// least 128 sessions.
pub fn workers(sessions: usize) -> usize {
    cores().min(4).min(sessions / 128).max(1)
}

/// The pid namespace of this process: an inode, 0 when unknown.
pub fn own_namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |m| m.ino())
}

/// The boot of this machine, or empty when unknown.
pub fn own_boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| String::new(), |s| s.trim().to_string())
}

/// The name of a user of this machine.
pub fn user_name(uid: u32) -> Option<String> {
    let passwd = std::fs::read_to_string("/etc/passwd").ok()?;
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_string())
    })
}

/// The same, or the number where it has none.
pub(crate) fn user(uid: u32) -> String {
    user_name(uid).unwrap_or_else(|| uid.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_are_ourselves_and_nobody_who_claimed_before_we_started() {
        let pid = std::process::id() as i32;
        assert!(exists(pid));
        assert!(is_same(pid, crate::clock::boottime_ns()));
        assert!(!is_same(pid, 1));
        assert!(!exists(0) && !exists(-1));
    }

    #[test]
    fn a_start_time_is_in_nanoseconds() {
        let stat = b"12 (a) b) c) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 777 0 0";
        let stat = Stat::parse(stat).unwrap();
        assert_eq!((stat.state, started_ns(&stat)), (b'S', Some(7_770_000_000)));
        assert_eq!(Stat::parse(b"nonsense"), None);
    }
}
