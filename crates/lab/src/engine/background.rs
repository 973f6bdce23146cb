// SPDX-License-Identifier: PostgreSQL
//! A background command in its own process group, with its output in a file. The whole group ends when
//! the value is dropped or this process ends.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{kill_process_group, Pid, Signal};
use scratch::Undo;

use error::Error;

/// Ends a process group, unless a line on standard input reports that the group has ended.
const END_GROUP: &str = r#"
[ -n "$lines" ] && exit
kill -TERM "-$1" && sleep 1 && kill -KILL "-$1"
"#;

/// How long a command may take to end after the signal.
const PATIENCE: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(10);

/// A running command.
#[derive(Debug)]
pub struct Background {
    program: String,
    child: Child,
    output: File,
    ended: Option<ExitStatus>,
    undo: Undo,
}

impl Background {
    /// Starts `command`. If the program does not exist, the error is [`std::io::ErrorKind::NotFound`].
    pub fn start(program: &str, command: Command) -> std::io::Result<Self> {
        // The file has no name; it disappears when the last process closes it.
        let output = tempfile::tempfile()?;
        let stdout = output.try_clone()?.into();
        Self::start_with(program, command, output, stdout)
    }

    /// Like [`Background::start`], for a program whose stdout is read while it runs. [`Background::output`] is then
    /// stderr alone.
    pub fn start_reading(program: &str, command: Command) -> std::io::Result<(Self, ChildStdout)> {
        let output = tempfile::tempfile()?;
        let mut started = Self::start_with(program, command, output, Stdio::piped())?;
        let stdout = started.child.stdout.take();
        Ok((started, stdout.ok_or(std::io::ErrorKind::BrokenPipe)?))
    }

    fn start_with(
        program: &str,
        mut command: Command,
        output: File,
        stdout: Stdio,
    ) -> std::io::Result<Self> {
        command.stdin(Stdio::null()).stdout(stdout).stderr(output.try_clone()?);
        let mut child = scratch::apart(&mut command).spawn()?;
        match Undo::start(END_GROUP, &[OsStr::new(&child.id().to_string())]) {
            Ok(undo) => Ok(Self { program: program.into(), child, output, ended: None, undo }),
            Err(why) => {
                child.kill()?;
                child.wait()?;
                Err(std::io::Error::other(why))
            }
        }
    }

    /// Process ID, also the ID of its process group.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether the command still runs.
    pub fn running(&mut self) -> bool {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended.is_none()
    }

    /// Whether it ended with exit status 0; false while it runs.
    pub fn succeeded(&mut self) -> bool {
        !self.running() && self.ended.is_some_and(|status| status.success())
    }

    /// How it ended; `None` while it runs.
    pub fn status(&mut self) -> Option<ExitStatus> {
        self.running();
        self.ended
    }

    /// Its output so far, stdout and stderr.
    pub fn output(&self) -> String {
        let length = self.output.metadata().map_or(0, |meta| meta.len());
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        let read = self.output.read_at(&mut bytes, 0).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    }

    /// The last lines of its output.
    pub fn last_lines(&self, lines: usize) -> String {
        last_lines(&self.output(), lines)
    }

    /// Sends `signal`, waits for the end and returns the complete output. An error after 15 s.
    pub fn stop(&mut self, signal: Signal) -> Result<String, Error> {
        if self.running() {
            self.signal(signal);
            let began = Instant::now();
            while self.running() {
                if began.elapsed() > PATIENCE {
                    self.signal(Signal::KILL);
                    return Err(Error::Failed(format!(
                        "{} did not stop; end of its output:\n{}",
                        self.program,
                        self.last_lines(5)
                    )));
                }
                std::thread::sleep(POLL);
            }
        }
        Ok(self.output())
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(pid, signal);
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if self.running() {
            self.signal(Signal::TERM);
            let began = Instant::now();
            while self.running() && began.elapsed() < Duration::from_secs(2) {
                std::thread::sleep(POLL);
            }
        }
        // Also end processes that the command left behind in its group.
        self.signal(Signal::KILL);
        let _ = self.child.wait();
        self.undo.send_line("ended");
    }
}

/// The last lines of a text.
pub fn last_lines(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.trim_end().lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// The number on the last line that starts with `word`, optionally followed by `:` or `=`.
pub fn number_of(output: &str, word: &str) -> Option<f64> {
    output.lines().rev().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next()?.trim_end_matches([':', '=']) == word)
            .then(|| words.find_map(|number| number.parse().ok()))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Background {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Background::start("sh", command).unwrap()
    }

    #[test]
    fn output_after_the_stop_signal_is_kept() {
        // The shell cannot trap a signal that was ignored when it started. A handler here prevents that.
        let caught = std::sync::Arc::default();
        signal_hook::flag::register(signal_hook::consts::SIGINT, caught).unwrap();
        let mut command =
            shell("trap 'echo held 42; exit 0' INT; echo begun; while :; do sleep 0.05; done");
        while !command.output().contains("begun") {
            std::thread::sleep(POLL);
        }
        assert!(command.running());
        let output = command.stop(Signal::INT).unwrap();
        assert_eq!(number_of(&output, "held"), Some(42.0));
        assert!(command.succeeded());
        let mut failing = shell("exit 3");
        failing.stop(Signal::INT).unwrap();
        assert!(!failing.succeeded());
    }

    #[test]
    fn dropping_it_ends_its_whole_process_group() {
        let command = shell("sleep 60 & echo $!; wait");
        while command.output().is_empty() {
            std::thread::sleep(POLL);
        }
        let sleeper: u32 = command.output().trim().parse().unwrap();
        drop(command);
        let began = Instant::now();
        while scratch::alive(sleeper) {
            assert!(began.elapsed() < PATIENCE);
            std::thread::sleep(POLL);
        }
    }

    #[test]
    fn the_last_line_with_a_word_counts() {
        let text = "held 1\nheldx 7\nheld: 2\nwait = 3 ms\n";
        assert_eq!(number_of(text, "held"), Some(2.0));
        assert_eq!(number_of(text, "wait"), Some(3.0));
        assert_eq!(number_of(text, "none"), None);
        assert_eq!(last_lines(text, 1), "wait = 3 ms");
    }

    #[test]
    fn the_error_for_a_missing_program_is_not_found() {
        let error = Background::start("x", Command::new("/no/such/program")).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    }
}
