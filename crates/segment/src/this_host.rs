// SPDX-License-Identifier: PostgreSQL
//! This machine, as far as the reader of a segment needs it: the processes that own slots, the boot, namespace and
//! users.
//!
//! PIDs are reused, so a process is identified by PID and start time. Reading the start time from /proc
//! takes about 15 µs, so it is checked for new slots and, at each snapshot, for some unchanged ones.

use process::Stat;
use rustix::process::{test_kill_process, Pid};
use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;

/// Start times have a resolution of 10 ms. A process that started more than this after the claim is
/// a different one.
const SLACK_NS: u64 = 20_000_000;

/// Whether a process with this PID exists, of any user.
pub fn exists(pid: i32) -> bool {
    // The library does not accept negative numbers.
    match Pid::from_raw(pid.max(0)) {
        Some(pid) => test_kill_process(pid) != Err(rustix::io::Errno::SRCH),
        None => false,
    }
}

/// Whether a process with this PID runs, of any user. A zombie exists, but does not run.
pub fn runs(pid: i32) -> bool {
    runs_since(pid, 0)
}

/// Whether the process runs that had this PID and started then, clock ticks since boot; 0: unknown, so any process with the
/// PID is taken for it.
pub fn runs_since(pid: i32, started_ticks: u64) -> bool {
    match std::fs::read(format!("/proc/{pid}/stat")).ok().and_then(|text| Stat::parse(&text)) {
        Some(stat) => {
            stat.is_alive() && (started_ticks == 0 || stat.started_ticks == started_ticks)
        }
        None => exists(pid),
    }
}

/// Whether the process has ended that had this PID in this PID namespace and started then, clock ticks since boot. False if
/// that cannot be told from here.
pub fn has_ended(pid: i32, started_ticks: u64, namespace: u64) -> bool {
    let known = started_ticks != 0 && namespace != 0 && namespace == own_namespace();
    known && !runs_since(pid, started_ticks)
}

/// Whether the process with this PID was already running at `claimed_boot_ns` (CLOCK_BOOTTIME), and is not a zombie.
pub fn is_same(pid: i32, claimed_boot_ns: u64) -> bool {
    let Ok(text) = std::fs::read(format!("/proc/{pid}/stat")) else {
        return exists(pid);
    };
    let Some((stat, started_ns)) =
        Stat::parse(&text).and_then(|stat| Some((stat, started_ns(&stat)?)))
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

/// CPUs that this process may use. Counted once, because counting reads files in /proc and in the cgroup.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
}

/// Number of threads for work on this many sessions: at most 4, at most one per CPU, and each for at
/// least 128 sessions.
pub fn workers(sessions: usize) -> usize {
    cores().min(4).min(sessions / 128).max(1)
}

/// CPU time since boot that the kernel does not count for the running process, seconds: time of interrupts, and time
/// that the hypervisor took. The resolution is a kernel tick, usually 10 ms.
pub fn taken_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    taken_ticks(&text).map(|ticks| ticks as f64 * tick_seconds())
}

/// The resolution of these times.
pub fn tick_seconds() -> f64 {
    1.0 / rustix::param::clock_ticks_per_second().max(1) as f64
}

/// "cpu user nice system idle iowait irq softirq steal ..."
fn taken_ticks(text: &str) -> Option<u64> {
    let fields = text.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace();
    fields.skip(5).take(3).map(|field| field.parse::<u64>().ok()).sum()
}

/// The PID namespace of this process: an inode; 0 if unknown.
pub fn own_namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |m| m.ino())
}

/// The boot ID of this machine; empty if unknown.
pub fn own_boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| String::new(), |s| s.trim().to_string())
}

/// The user that the process with this PID runs as; `None` if there is no such process.
pub fn user_of(pid: i32) -> Option<u32> {
    std::fs::metadata(format!("/proc/{pid}")).ok().map(|meta| meta.uid())
}

/// The name of a user in /etc/passwd.
pub fn passwd_name(uid: u32) -> Option<String> {
    std::fs::read_to_string("/etc/passwd").ok()?.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_string())
    })
}

/// The name of a user, or the UID if the user has no name.
pub fn user_name(uid: u32) -> String {
    passwd_name(uid).unwrap_or_else(|| uid.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_and_the_hypervisor_take_time() {
        let text = "cpu  7438911 317336 1304698 3826403 83597 5 25793 20288 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(taken_ticks(text), Some(5 + 25793 + 20288));
        assert_eq!(taken_ticks("cpu  1 2 3 4 5 six 7 8"), None);
        assert!(taken_seconds().is_some());
    }

    #[test]
    fn a_process_is_identified_by_its_pid_and_start_time() {
        let pid = std::process::id() as i32;
        assert!(exists(pid));
        assert!(is_same(pid, crate::clock::boottime_ns()));
        assert!(!is_same(pid, 1));
        assert!(!exists(0) && !exists(-1));
        let started =
            Stat::parse(&std::fs::read("/proc/self/stat").unwrap()).unwrap().started_ticks;
        assert!(runs_since(pid, started) && runs_since(pid, 0) && !runs_since(pid, started + 1));
        let here = own_namespace();
        assert!(!has_ended(pid, started, here) && has_ended(pid, started + 1, here));
        assert!(!has_ended(pid, started + 1, here + 1) && !has_ended(pid, started + 1, 0));
        assert!(!has_ended(0x3fff_fffe, 0, here) && has_ended(0x3fff_fffe, 1, here));
        // A kernel tick may lie between the start of the process and its start time in /proc.
        let text = std::fs::read(format!("/proc/{pid}/stat")).unwrap();
        let started = started_ns(&Stat::parse(&text).unwrap()).unwrap();
        assert!(is_same(pid, started - SLACK_NS) && !is_same(pid, started - SLACK_NS - 1));
    }

    #[test]
    fn a_zombie_exists_and_does_not_run() {
        let pid = std::process::id() as i32;
        assert!(runs(pid) && !runs(0) && !runs(-1));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let zombie = child.id() as i32;
        let began = std::time::Instant::now();
        while runs(zombie) {
            assert!(began.elapsed().as_secs() < 120, "it has ended long ago");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(exists(zombie));
        child.wait().unwrap();
        assert!(!exists(zombie) && !runs(zombie));
    }

    #[test]
    fn a_start_time_is_in_nanoseconds() {
        let stat = b"12 (a) b) c) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 777 0 0";
        let stat = Stat::parse(stat).unwrap();
        assert_eq!((stat.state, started_ns(&stat)), (b'S', Some(7_770_000_000)));
        assert_eq!(Stat::parse(b"nonsense"), None);
    }
}
