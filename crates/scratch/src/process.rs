// SPDX-License-Identifier: PostgreSQL
//! Processes of a server.

use process::Proc;
use rustix::process::{kill_process, Pid, Signal};

/// A process of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its PID.
    pub pid: u32,
    /// Its title, e.g. "postgres: checkpointer".
    pub title: String,
}

/// Whether a process runs; a zombie does not.
pub fn alive(pid: u32) -> bool {
    Proc::default().stat(pid).is_some_and(|stat| stat.is_alive())
}

/// The running children of a process, by PID.
pub fn children(parent: u32) -> Vec<Process> {
    let running = Proc::default().children(parent).into_iter().filter(|&pid| alive(pid));
    running.map(|pid| Process { pid, title: Proc::default().title(pid) }).collect()
}

/// Send a signal; succeeds even if the process has ended.
pub(crate) fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, signal);
    }
}
