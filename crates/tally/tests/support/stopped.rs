// SPDX-License-Identifier: PostgreSQL
//! A process that does not go on for a while.

use super::eventually;
use rustix::process::{kill_process, Pid, Signal};

/// The process goes on when this is dropped.
pub struct Stopped(Pid);

impl Stopped {
    pub fn new(pid: i32) -> Stopped {
        let pid = Pid::from_raw(pid).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        let stopped = Stopped(pid);
        // The signal takes effect when the process next gets a processor.
        let state = format!("/proc/{}/stat", pid.as_raw_nonzero());
        eventually("the process is stopped", || {
            let stat = std::fs::read_to_string(&state).unwrap();
            stat.rsplit(')').next().unwrap().trim_start().starts_with('T')
        });
        stopped
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        kill_process(self.0, Signal::CONT).unwrap();
    }
}
