// SPDX-License-Identifier: PostgreSQL
//! What the demo keeps: a recorder of its own beside the view, and the report made of it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{kill_process, Pid, Signal};

use crate::report;
use error::Error;

/// A recorder that runs; the recording goes with it.
#[derive(Debug)]
pub struct Recorder {
    child: Child,
    directory: PathBuf,
}

impl Recorder {
    /// Record the segment at `path`.
    pub fn start(path: &Path) -> Result<Recorder, Error> {
        let directory = std::env::temp_dir().join(format!("pgtally-demo-{}", std::process::id()));
        let child = Command::new(std::env::current_exe()?)
            .args(["record", "-o"])
            .arg(&directory)
            .arg(path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Recorder { child, directory })
    }

    /// End it, and write the report into `file`; without one, beside where the recording was.
    pub fn report(mut self, file: Option<&Path>) -> Result<(), Error> {
        self.end();
        let beside = self.directory.with_extension("html");
        let file = file.unwrap_or(&beside);
        report::write_page(&self.directory, file)?;
        writeln!(std::io::stdout(), "The report, for any browser: {}", file.display())?;
        Ok(())
    }

    fn end(&mut self) {
        // A child that has ended and was not waited for keeps its number.
        if let (Ok(None), Some(pid)) =
            (self.child.try_wait(), Pid::from_raw(self.child.id() as i32))
        {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end();
        let _ = fs::remove_dir_all(&self.directory);
    }
}
