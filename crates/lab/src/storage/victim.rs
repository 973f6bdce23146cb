// SPDX-License-Identifier: PostgreSQL
//! Runs a command and times it, with its CPU time and I/O.
//!
//! The figures come from the kernel and cover the command and all its descendants that were waited for. They are read
//! from the ended process before it is reaped.

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{waitid, Pid, WaitId, WaitIdOptions};
use serde::{Deserialize, Serialize};

use crate::engine::background::Background as Process;
use process::Proc;

use crate::storage::engine::now;

const POLL: Duration = Duration::from_millis(1);

/// How a run of a victim ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VictimOutcome {
    /// Its start, seconds since 1970.
    pub began: f64,
    /// Its length in seconds, up to its end or until it was stopped.
    pub seconds: f64,
    /// CPU time in user mode, seconds.
    pub user_seconds: f64,
    /// CPU time in the kernel, seconds.
    pub system_seconds: f64,
    /// CPU time of descendants, seconds.
    pub children_seconds: f64,
    /// Bytes that it read by system calls; `None` if the kernel does not report it.
    pub read_bytes: Option<u64>,
    /// Bytes that it wrote by system calls.
    pub written_bytes: Option<u64>,
    /// Bytes that it caused to be read from devices.
    pub device_read_bytes: Option<u64>,
    /// Bytes that it caused to be written to devices, immediately or later.
    pub device_written_bytes: Option<u64>,
    /// Why it counts as failed; `None` if it succeeded.
    pub failure: Option<String>,
}

/// A running victim, in a thread of its own.
#[derive(Debug)]
pub struct Running {
    thread: JoinHandle<VictimOutcome>,
    stop: Arc<AtomicBool>,
}

impl Running {
    /// Starts a command; it is stopped after `limit`.
    pub fn start(name: &str, command: Command, limit: Duration) -> std::io::Result<Running> {
        let stop = Arc::new(AtomicBool::new(false));
        let (name, stopped) = (name.to_string(), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name("victim".into())
            .spawn(move || run(&name, command, limit, &stopped))?;
        Ok(Running { thread, stop })
    }

    /// Whether it has ended.
    pub fn ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the end and returns its figures.
    pub fn finish(self) -> VictimOutcome {
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Stops it now.
    pub fn stop(self) -> VictimOutcome {
        self.stop.store(true, Ordering::Relaxed);
        self.finish()
    }
}

fn run(name: &str, command: Command, limit: Duration, stop: &AtomicBool) -> VictimOutcome {
    let (began, clock) = (now(), Instant::now());
    let failed =
        |why: String| VictimOutcome { began, failure: Some(why), ..VictimOutcome::default() };
    let mut process = match Process::start(name, command) {
        Ok(process) => process,
        Err(error) => return failed(format!("could not be started: {error}")),
    };
    let pid = process.pid();
    let ended = || {
        let Some(id) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return true };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // An error means that it has been reaped, so it has ended.
        waitid(WaitId::Pid(id), options).map_or(true, |status| status.is_some())
    };
    let why = loop {
        if ended() {
            break None;
        }
        if stop.load(Ordering::Relaxed) {
            break Some("interrupted".to_string());
        }
        if clock.elapsed() > limit {
            break Some(format!("stopped at its limit of {:.0} s", limit.as_secs_f64()));
        }
        std::thread::sleep(POLL);
    };
    let seconds = clock.elapsed().as_secs_f64();
    let mut ran = VictimOutcome { began, seconds, ..VictimOutcome::default() };
    usage(pid, &mut ran);
    ran.failure = why.or_else(|| match process.status() {
        Some(status) if status.success() => None,
        status => {
            let status = status.map_or("unknown status".into(), |status| status.to_string());
            let output = process.last_lines(3);
            Some(format!("failed ({status}){}{output}", if output.is_empty() { "" } else { ": " }))
        }
    });
    ran
}

/// CPU time and I/O of an ended process that has not been reaped.
fn usage(pid: u32, ran: &mut VictimOutcome) {
    let proc = Proc::default();
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    if let Some(stat) = proc.stat(pid) {
        ran.user_seconds = stat.user_ticks as f64 / ticks;
        ran.system_seconds = stat.system_ticks as f64 / ticks;
        ran.children_seconds = stat.children_ticks as f64 / ticks;
    }
    let text = std::fs::read_to_string(proc.path(pid, "io")).unwrap_or_default();
    let field = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
    };
    ran.read_bytes = field("rchar:");
    ran.written_bytes = field("wchar:");
    ran.device_read_bytes = field("read_bytes:");
    ran.device_written_bytes = field("write_bytes:");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: u64) -> Running {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Running::start("sh", command, Duration::from_millis(limit)).unwrap()
    }

    #[test]
    fn a_commands_io_and_that_of_its_children_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("file");
        let ran = shell(&format!("head -c 5000000 /dev/zero > {}", to.display()), 60_000).finish();
        assert_eq!(ran.failure, None);
        // The shell and the loader read and write a little of their own.
        let written = ran.written_bytes.unwrap();
        assert!((5_000_000..5_001_000).contains(&written), "{written}");
        let read = ran.read_bytes.unwrap();
        assert!((5_000_000..5_100_000).contains(&read), "{read}");
    }

    #[test]
    fn cpu_time_of_the_command_and_of_its_children_is_counted() {
        let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
        let own = shell(busy, 60_000).finish();
        assert!(own.user_seconds > 0.0 && own.user_seconds <= own.seconds + 0.02, "{own:?}");
        let child = shell(&format!("({busy}); true"), 60_000).finish();
        assert!(child.children_seconds > 0.0, "{child:?}");
    }

    #[test]
    fn a_victim_that_fails_or_hangs_or_is_missing_says_so() {
        let failure = |ran: VictimOutcome| ran.failure.unwrap_or_default();
        let text = failure(shell("echo no such thing >&2; exit 3", 60_000).finish());
        assert!(text.contains("exit status: 3") && text.contains("no such thing"), "{text}");
        let hung = shell("sleep 1000 & wait", 100).finish();
        assert!((0.1..30.0).contains(&hung.seconds));
        assert!(failure(hung).contains("its limit"));
        let running = shell("sleep 1000", 60_000);
        assert!(!running.ended());
        assert_eq!(failure(running.stop()), "interrupted");
        let command = Command::new("/no/such/program");
        let none = Running::start("x", command, Duration::from_secs(1)).unwrap().finish();
        assert!(failure(none).contains("could not be started"));
    }
}
