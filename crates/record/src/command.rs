// SPDX-License-Identifier: PostgreSQL
//! Runs the command to record: forwards and records its output, and records its exit status.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use recording::RunRow;
use rustix::process::{kill_process, Pid, Signal};

use error::Error;

/// How long to wait for the rest of the output after the command has ended.
const PATIENCE: Duration = Duration::from_secs(1);
/// Maximum size of the recorded output, bytes.
const MAX_OUTPUT: usize = 1 << 20;
/// Maximum size of a recorded line, bytes.
const MAX_LINE: usize = 4096;

/// A running command.
#[derive(Debug)]
pub struct Command {
    words: String,
    child: Child,
    notes: Arc<Mutex<Notes>>,
    copiers: Vec<JoinHandle<()>>,
}

/// Recorded output.
#[derive(Debug, Default)]
struct Notes {
    rows: Vec<RunRow>,
    kept: usize,
    dropped: u64,
}

impl Notes {
    fn line(&mut self, what: &'static str, line: &[u8]) {
        if self.kept + line.len() > MAX_OUTPUT {
            self.dropped += 1;
            return;
        }
        self.kept += line.len();
        let line = &line[..line.len().min(MAX_LINE)];
        let text = String::from_utf8_lossy(line);
        self.rows.push(row(what, &text));
    }
}

fn row(what: &'static str, text: &str) -> RunRow {
    RunRow { what: what.into(), text: text.into(), ..RunRow::default() }
}

impl Command {
    /// Starts the command. It inherits our standard input.
    pub fn start(words: &[OsString]) -> Result<Command, Error> {
        let (program, args) =
            words.split_first().ok_or_else(|| Error::Usage("no command given".into()))?;
        let mut child = std::process::Command::new(program)
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| {
                Error::Failed(format!("could not run {}: {error}", program.to_string_lossy()))
            })?;
        let notes = Arc::new(Mutex::new(Notes::default()));
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        let words = words.join(" ");
        notes.lock().unwrap_or_else(PoisonError::into_inner).rows.push(row("begin", &words));
        let mut copiers = Vec::new();
        if let Some(out) = child.stdout.take() {
            copiers.extend(copier(out, view::escape::process_stdout(), "stdout", &notes));
        }
        if let Some(err) = child.stderr.take() {
            copiers.extend(copier(err, std::io::stderr(), "stderr", &notes));
        }
        Ok(Command { words, child, notes, copiers })
    }

    /// Output since the last call.
    pub fn news(&self) -> Vec<RunRow> {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows = std::mem::take(&mut notes.rows);
        rows.iter_mut().for_each(|row| row.command = self.words.as_str().into());
        rows
    }

    /// The exit status, if the command has ended.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, Error> {
        Ok(self.child.try_wait()?)
    }

    /// Forwards a signal.
    pub fn signal(&self, signal: i32) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal)) {
            // The command may have just ended.
            let _ = kill_process(pid, signal);
        }
    }

    /// The rest of the output, and a row for the end.
    pub fn finish(mut self, status: ExitStatus) -> Vec<RunRow> {
        // A process that the command started, such as a server, may keep the output open.
        let until = Instant::now() + PATIENCE;
        while self.copiers.iter().any(|copier| !copier.is_finished()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.copiers.clear();
        let dropped = {
            let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut notes.dropped)
        };
        let mut rows = self.news();
        let text = match dropped {
            0 => String::new(),
            n => format!("{n} more lines of output were dropped"),
        };
        let mut end = row("end", &text);
        end.command = self.words.as_str().into();
        end.exit_code = Some(i64::from(exit_code(status)));
        rows.push(end);
        rows
    }
}

/// The exit code as in a shell: 128 plus the signal's number after a signal.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// A thread that forwards output and records it line by line.
fn copier(
    mut from: impl Read + Send + 'static,
    mut to: impl Write + Send + 'static,
    what: &'static str,
    notes: &Arc<Mutex<Notes>>,
) -> Option<JoinHandle<()>> {
    let notes = notes.clone();
    let work = move || {
        let mut buffer = [0u8; 16 * 1024];
        let mut line: Vec<u8> = Vec::new();
        loop {
            let read = match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            // The command continues even if no one reads our output.
            let _ = to.write_all(&buffer[..read]).and_then(|()| to.flush());
            let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
            for &byte in &buffer[..read] {
                if byte == b'\n' {
                    notes.line(what, &line);
                    line.clear();
                } else if line.len() < MAX_LINE {
                    line.push(byte);
                }
            }
        }
        if !line.is_empty() {
            notes.lock().unwrap_or_else(PoisonError::into_inner).line(what, &line);
        }
    };
    std::thread::Builder::new().name(what.to_string()).spawn(work).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str) -> (Vec<RunRow>, u8) {
        let mut command = Command::start(&["sh".into(), "-c".into(), script.into()]).unwrap();
        let status = loop {
            match command.ended().unwrap() {
                Some(status) => break status,
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let rows = command.finish(status);
        (rows, exit_code(status))
    }

    #[test]
    fn a_commands_output_and_exit_status_are_recorded() {
        let (rows, code) = run("echo one; echo two; printf three; exit 7");
        let lines: Vec<_> = rows.iter().map(|row| (&*row.what, &*row.text)).collect();
        assert_eq!(lines[1..4], [("stdout", "one"), ("stdout", "two"), ("stdout", "three")]);
        assert_eq!((lines[0].0, lines[4].0, rows[4].exit_code, code), ("begin", "end", Some(7), 7));
        let (rows, code) = run("kill -9 $$");
        assert_eq!((rows.last().unwrap().exit_code, code), (Some(137), 137));
    }

    #[test]
    fn output_beyond_the_limit_is_counted_but_not_recorded() {
        let (rows, _) = run("yes 0123456789012345678901234567890123456789 | head -n 60000");
        assert!(rows.iter().map(|row| row.text.len()).sum::<usize>() <= MAX_OUTPUT + MAX_LINE);
        assert!(rows.last().unwrap().text.contains("more lines of output were dropped"));
    }

    #[test]
    fn the_error_names_a_command_that_does_not_exist() {
        let error = Command::start(&["/no/such/program".into()]).unwrap_err().to_string();
        assert!(error.contains("/no/such/program"), "{error}");
    }
}
