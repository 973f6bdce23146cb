// SPDX-License-Identifier: PostgreSQL
//! `tally record` of a scratch server while a test does something.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use recording::{Range, Recording};
use rustix::process::{kill_process, Pid, Signal};
use scratch::Cluster;

use super::{eventually, segment};

/// A running recorder.
pub struct Recorder {
    child: Child,
    /// The directory into which it records.
    pub directory: PathBuf,
}

impl Recorder {
    pub fn start(cluster: &Cluster, directory: &Path, more: &[&str]) -> Recorder {
        Recorder::start_as(segment(cluster).as_os_str(), cluster.user(), directory, more)
    }

    /// Records `target`, as this user unless it names one.
    pub fn start_as(target: &OsStr, user: &str, directory: &Path, more: &[&str]) -> Recorder {
        let child = Command::new(env!("CARGO_BIN_EXE_tally"))
            // With this, it queries the server for names even if the tests run as root.
            .env("PGUSER", user)
            .env_remove("PGDATABASE")
            .args(["record", "-o"])
            .arg(directory)
            .args(more)
            .arg(target)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Recorder { child, directory: directory.to_path_buf() }
    }

    /// The number of its last interval.
    pub fn frames(&self) -> u64 {
        let rows = Recording::open(&self.directory, None)
            .and_then(|recording| recording.frame_rows(Range::ALL))
            .unwrap_or_default();
        rows.last().map_or(0, |row| row.frame)
    }

    /// Waits for that many more intervals.
    pub fn wait_for(&self, more: u64) {
        let wanted = self.frames() + more;
        eventually("more intervals are recorded", || self.frames() >= wanted);
    }

    /// Waits until it has recorded a condition of this kind. It asks the server beside its intervals, so that any number of
    /// these may come first.
    pub fn wait_for_condition(&self, kind: &str) {
        eventually(&format!("a condition of kind {kind} is recorded"), || {
            let rows = Recording::open(&self.directory, None)
                .and_then(|recording| recording.conditions(Range::ALL));
            rows.is_ok_and(|rows| rows.iter().any(|row| &*row.kind == kind))
        });
    }

    /// Ends it by a signal.
    pub fn end(mut self, signal: Signal) {
        kill_process(Pid::from_raw(self.child.id() as i32).unwrap(), signal).unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
