// SPDX-License-Identifier: PostgreSQL
//! Records while the demo's view runs, and writes the report.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{kill_process, Pid, Signal};

use error::Error;
use verbs::report;

/// A running recorder. Dropping it removes the recording.
#[derive(Debug)]
pub struct Recorder {
    child: Child,
    directory: PathBuf,
}

impl Recorder {
    /// Starts recording the segment at `path`.
    pub fn start(path: &Path) -> Result<Recorder, Error> {
        let temporary = std::env::temp_dir();
        let directory = files::unique_folder(&temporary, "pgtally-demo-", files::Access::Owner)?;
        let child = Command::new(std::env::current_exe()?)
            .args(["record", "-o"])
            .arg(&directory)
            .arg(path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        Ok(Recorder { child, directory })
    }

    /// Ends the recording and writes the report into `file`, or into the temporary directory.
    pub fn report(mut self, file: Option<&Path>) -> Result<(), Error> {
        if !self.end() {
            // Usually that the view ended before anything was recorded.
            let mut why = String::new();
            self.child.stderr.take().map(|mut stderr| stderr.read_to_string(&mut why));
            writeln!(view::escape::stdout(), "There is no report. {}", why.trim_end())?;
            return Ok(());
        }
        let default = self.directory.with_extension("html");
        let file = file.unwrap_or(&default);
        report::write_page(&self.directory, file)?;
        writeln!(view::escape::stdout(), "Report, for any browser: {}", file.display())?;
        Ok(())
    }

    /// Whether it has recorded something.
    fn end(&mut self) -> bool {
        // Until we wait for it, an ended child keeps its PID.
        if let (Ok(None), Some(pid)) =
            (self.child.try_wait(), Pid::from_raw(self.child.id() as i32))
        {
            let _ = kill_process(pid, Signal::TERM);
        }
        self.child.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end();
        let _ = fs::remove_dir_all(&self.directory);
    }
}
