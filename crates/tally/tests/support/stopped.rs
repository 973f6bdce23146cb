// SPDX-License-Identifier: PostgreSQL
//! A process that does not go on for a while.

use rustix::process::{kill_process, Pid, Signal};

/// The process goes on when this is dropped.
pub struct Stopped(Pid);

impl Stopped {
    pub fn new(pid: i32) -> Stopped {
        let pid = Pid::from_raw(pid).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        Stopped(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        kill_process(self.0, Signal::CONT).unwrap();
    }
}
