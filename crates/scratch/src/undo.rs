// SPDX-License-Identifier: PostgreSQL
//! Cleans up however this process ends, even by SIGKILL: a shell reads from a pipe and runs a script
//! when the pipe closes. PR_SET_PDEATHSIG would not work: it applies to the thread rather than the
//! process, and a change of user clears it.

use std::ffi::OsStr;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::error::Error;

/// The shell ignores signals; the lines that it received are in $lines.
const WAIT: &str = r#"
trap '' INT TERM HUP QUIT PIPE
lines=
while read -r line; do lines="$lines$line
"; done
"#;

/// A script that runs when this value is dropped or the process ends. Dropping waits for the script to end.
#[derive(Debug)]
pub struct Undo {
    shell: Child,
}

impl Undo {
    /// Start a shell that runs `script` at the end, with these words as $1, $2, ...; `script` may use
    /// $lines.
    pub fn start(script: &str, words: &[&OsStr]) -> Result<Self, Error> {
        let shell = Command::new("/bin/sh")
            .args(["-c", &format!("{WAIT}{script}"), "tally-undo"])
            .args(words)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A separate process group, because Ctrl-C in the terminal must not reach the shell.
            .process_group(0)
            .spawn()
            .map_err(|source| Error::Spawn { program: "/bin/sh".into(), source })?;
        Ok(Self { shell })
    }

    /// Send a line to the shell, which adds it to $lines.
    pub fn send_line(&mut self, line: &str) {
        if let Some(pipe) = &mut self.shell.stdin {
            // If the shell has ended, it was killed on purpose.
            let _ = writeln!(pipe, "{line}");
        }
    }

    /// The write end of the pipe, for a process that must also have ended before the script runs.
    pub fn pipe(&self) -> std::io::Result<Stdio> {
        let end = self.shell.stdin.as_ref().ok_or(std::io::ErrorKind::BrokenPipe)?;
        Ok(end.as_fd().try_clone_to_owned()?.into())
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_runs_when_the_value_is_dropped_and_reads_the_lines_sent() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let script = r#"printf '%s' "$lines" >"$1""#;
        let mut undo = Undo::start(script, &[file.path().as_os_str()]).unwrap();
        undo.send_line("one");
        undo.send_line("two words");
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "");
        drop(undo);
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), "one\ntwo words\n");
    }
}
