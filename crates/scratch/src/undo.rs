// SPDX-License-Identifier: PostgreSQL
//! Undoing whatever ends this process: a shell waits at the other end of a pipe, and does it when the
//! pipe is closed. PR_SET_PDEATHSIG would not do: it follows the thread rather than the process
//! and is cleared by the change of user.

use std::ffi::OsStr;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::Error;

/// Signals are for us; the lines that it was told are in $lines.
const WAIT: &str = r#"
trap '' INT TERM HUP QUIT PIPE
lines=
while read -r line; do lines="$lines$line
"; done
"#;

/// What is to be undone. Dropping it has it done, and waits for that.
#[derive(Debug)]
pub struct Undo {
    shell: Child,
}

impl Undo {
    /// Have the script run in the end, with these words as $1 and on.
    pub fn start(script: &str, words: &[&OsStr]) -> Result<Self, Error> {
        let shell = Command::new("/bin/sh")
            .args(["-c", &format!("{WAIT}{script}"), "tally-undo"])
            .args(words)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Its own group: Ctrl-C in the terminal must not reach it.
            .process_group(0)
            .spawn()
            .map_err(|source| Error::Spawn { program: "/bin/sh".into(), source })?;
        Ok(Self { shell })
    }

    /// Tell it a line.
    pub fn send_line(&mut self, line: &str) {
        if let Some(pipe) = &mut self.shell.stdin {
            // A shell that is gone can only have been killed on purpose.
            let _ = writeln!(pipe, "{line}");
        }
    }

    /// The pipe's end, for another process to hold open as well.
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
    fn it_is_done_when_dropped_and_knows_what_it_was_told() {
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
