// SPDX-License-Identifier: PostgreSQL
//! A second witness: strace, which prints each system call with its arguments and files.
//!
//! It needs permission to trace the server's processes. Without it, a test prints a message and passes.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{channel, Receiver};
use std::time::{Duration, Instant};

use rustix::process::{kill_process, Pid, Signal};
use tempfile::TempDir;

/// A system call.
#[derive(Debug, Clone)]
pub struct Call {
    /// When it began, seconds since 1970.
    pub at: f64,
    /// When it ended; infinity if it did not.
    pub ended: f64,
    /// The process ID; if a later traced process has the same one, a negative number that is unique to each
    /// process.
    pub pid: i32,
    /// The call's name.
    pub name: String,
    /// As strace prints them.
    pub arguments: Vec<String>,
    /// The return value; None if it did not return.
    pub result: Option<i64>,
    /// The file of the returned descriptor.
    pub file: Option<String>,
}

/// A running strace.
pub struct Strace {
    child: Child,
    folder: TempDir,
    errors: Receiver<String>,
}

impl Strace {
    /// Traces these calls of these processes and of all that they fork. Prints the reason and returns None if it
    /// cannot.
    pub fn start(calls: &str, pids: &[i32]) -> Option<Self> {
        Self::run(&format!("trace={calls}"), pids)
    }

    /// Delays each call of that name in a process, until it is dropped.
    pub fn delay(call: &str, by: Duration, pid: i32) -> Option<Self> {
        Self::run(&format!("inject={call}:delay_enter={}", by.as_micros()), &[pid])
    }

    /// Holds a process at its next call of that name, until it is dropped.
    pub fn hold(call: &str, pid: i32) -> Option<Self> {
        Self::delay(call, Duration::from_secs(3600), pid)
    }

    /// Makes calls of this name in a process fail with EAGAIN: `when` as strace takes it, "1" or "1..3".
    pub fn fail(call: &str, when: &str, pid: i32) -> Option<Self> {
        Self::run(&format!("inject={call}:error=EAGAIN:when={when}"), &[pid])
    }

    fn run(expression: &str, pids: &[i32]) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("strace");
        // -A: a process that has the PID of an ended one must not overwrite its calls.
        command.args(["-f", "-ff", "-A", "-ttt", "-T", "-y", "-s", "0", "-e", "signal=none"]);
        command.arg("-e").arg(expression).arg("-o").arg(folder.path().join("calls"));
        for pid in pids {
            command.arg("-p").arg(pid.to_string());
        }
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let Ok(mut child) = spawned.spawn() else {
            println!("not tested: strace is not installed");
            return None;
        };
        let (sender, errors) = channel();
        let stderr = child.stderr.take()?;
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let mut waited: BTreeSet<i32> = pids.iter().copied().collect();
        let mut last_line = String::new();
        let began = Instant::now();
        while !waited.is_empty() {
            let Ok(line) = errors.recv_timeout(Duration::from_secs(120)) else {
                println!("not tested: strace may not trace here: {last_line}");
                let _ = child.kill();
                let _ = child.wait();
                return None;
            };
            let attached = line.strip_prefix("strace: Process ");
            // "12 attached", "12 attached with 2 threads"
            if let Some((pid, _)) = attached.and_then(|line| line.split_once(" attached")) {
                waited.remove(&pid.parse().ok()?);
            }
            last_line = line;
            assert!(began.elapsed() < Duration::from_secs(120), "strace: {last_line}");
        }
        Some(Self { child, folder, errors })
    }

    /// Whether this process is held at the entry of the call of this name. (While strace looks at the end of a
    /// call that had started before it attached, the process stops as well, and /proc shows the same.)
    pub fn holds(&self, pid: i32, call: &str) -> bool {
        let calls = self.folder.path().join(format!("calls.{pid}"));
        let calls = std::fs::read_to_string(calls).unwrap_or_default();
        let last = calls.rsplit('\n').next().and_then(|line| line.split_once(' '));
        last.is_some_and(|(_, line)| line.starts_with(&format!("{call}(")))
    }

    /// Detaches; returns all calls in the order in which they started.
    pub fn stop(mut self) -> Vec<Call> {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        self.child.wait().unwrap();
        let messages: Vec<String> = self.errors.try_iter().collect();
        // A process that was attached to during a call, whose beginning strace did not see.
        let unexpected = |line: &&String| {
            !["attached", "threads", "detached", "entering, ptrace_syscall_info.op == 2"]
                .iter()
                .any(|end| line.ends_with(end))
        };
        let odd: Vec<&String> = messages.iter().filter(unexpected).collect();
        assert!(odd.is_empty(), "strace: {odd:?}");
        let mut calls = Vec::new();
        for entry in std::fs::read_dir(self.folder.path()).unwrap().flatten() {
            let path = entry.path();
            let pid = path.extension().unwrap().to_str().unwrap().parse().unwrap();
            calls.append(&mut read(&path, pid));
        }
        calls.sort_by(|a, b| a.at.total_cmp(&b.at));
        calls
    }
}

impl Drop for Strace {
    /// Detaches from the server's processes if a test fails.
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let _ = self.child.wait();
    }
}

/// Runs the command `tally` with the `n`-th of these calls failing with this error, counted from 1; `of`
/// restricts it to this file. Returns its output, and the call as strace prints it if there were that many.
/// Prints the reason and returns None if strace cannot.
pub fn fail_nth(
    calls: &str,
    error: &str,
    n: usize,
    of: Option<&Path>,
    arguments: &[&str],
) -> Option<(Output, Option<String>)> {
    let folder = tempfile::tempdir().unwrap();
    let printed = folder.path().join("calls");
    let mut command = Command::new("strace");
    command.args(["-y", "-e", "signal=none", "-e"]).arg(format!("trace={calls}"));
    command.arg("-e").arg(format!("inject={calls}:error={error}:when={n}"));
    if let Some(of) = of {
        command.arg("-P").arg(of);
    }
    command.arg("-o").arg(&printed).arg(env!("CARGO_BIN_EXE_tally")).args(arguments);
    for name in super::CONNECTION {
        command.env_remove(name);
    }
    let Ok(output) = command.stdin(Stdio::null()).output() else {
        println!("not tested: strace is not installed");
        return None;
    };
    let complaint = String::from_utf8_lossy(&output.stderr);
    if complaint.starts_with("strace:") {
        println!("not tested: strace may not trace here: {complaint}");
        return None;
    }
    let printed = std::fs::read_to_string(printed).unwrap();
    let hit = printed.lines().find(|line| line.ends_with("(INJECTED)")).map(str::to_string);
    Some((output, hit))
}

/// The calls of the processes with this number, one after the other.
fn read(path: &Path, pid: i32) -> Vec<Call> {
    let text = std::fs::read_to_string(path).unwrap();
    // `1763740800.123456 +++ exited with 0 +++` is a process's last line.
    let mut processes: Vec<Vec<&str>> = vec![Vec::new()];
    for line in text.lines() {
        if line.ends_with("+++") {
            processes.push(Vec::new());
        } else {
            processes.last_mut().expect("never empty").push(line);
        }
    }
    processes.retain(|lines| !lines.is_empty());
    let later = (0..processes.len() as i32).rev();
    let calls = processes.iter().zip(later).flat_map(|(lines, later)| {
        let of = if later == 0 { pid } else { -(pid + (later << PID_BITS)) };
        lines.iter().map(move |line| parse(line, of).unwrap_or_else(|| panic!("strace: {line}")))
    });
    calls.collect()
}

/// No process ID of Linux has more bits (PID_MAX_LIMIT).
const PID_BITS: i32 = 22;

#[test]
fn calls_of_processes_with_one_number_are_kept_apart() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("calls.7");
    let text = "1.0 read(3, \"\"..., 1) = 1 <0.1>\n1.1 +++ exited with 0 +++\n2.0 +++ killed by SIGKILL +++\n\
        3.0 close(4) = 0 <0.1>\n3.1 +++ exited with 1 +++\n4.0 close(3) = 0 <0.1>\n";
    std::fs::write(&path, text).unwrap();
    let found: Vec<(f64, i32)> = read(&path, 7).iter().map(|call| (call.at, call.pid)).collect();
    assert_eq!(found, [(1.0, -(7 + (2 << 22))), (3.0, -(7 + (1 << 22))), (4.0, 7)]);
}

/// Parses a line such as `1763740800.123456 pread64(5</a/file>, ""..., 8192, 16384) = 8192 <0.000123>`.
fn parse(line: &str, pid: i32) -> Option<Call> {
    let (at, line) = line.trim_start().split_once(' ')?;
    let at: f64 = at.parse().ok()?;
    // The duration comes last: ` <0.000123>`.
    let timed = line.strip_suffix('>').and_then(|line| line.rsplit_once(" <"));
    let timed = timed.and_then(|(line, took)| Some((line, took.parse().ok()?)));
    let (line, took) = timed.unwrap_or((line, f64::INFINITY));
    let (name, line) = line.split_once('(')?;
    let (text, result) = line.rsplit_once(" = ").unwrap_or((line, "?"));
    let text = text.trim_end();
    let text = text.strip_suffix(')').unwrap_or(text);
    let number = result.split([' ', '<']).next()?;
    Some(Call {
        at,
        ended: at + took,
        pid,
        name: name.to_string(),
        arguments: arguments(text),
        result: number.parse().ok(),
        file: result.split_once('<').map(|_| file_of(result).to_string()),
    })
}

/// Splits at commas outside brackets and quotes.
fn arguments(text: &str) -> Vec<String> {
    let (mut parts, mut depth, mut quoted, mut escaped) = (vec![String::new()], 0, false, false);
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' if depth == 0 => quoted = !quoted,
            '[' | '{' | '<' if !quoted => depth += 1,
            ']' | '}' | '>' if !quoted => depth -= 1,
            ',' if !quoted && depth == 0 => {
                parts.push(String::new());
                continue;
            }
            _ => (),
        }
        parts.last_mut().expect("never empty").push(c);
    }
    parts.into_iter().map(|part| part.trim().to_string()).collect()
}

impl Call {
    /// The descriptor in the first argument.
    pub fn descriptor(&self) -> Option<i32> {
        self.arguments.first()?.split('<').next()?.parse().ok()
    }

    /// The file of that descriptor.
    pub fn descriptor_file(&self) -> Option<&str> {
        let first = self.arguments.first()?;
        first.contains('<').then(|| file_of(first))
    }

    /// A string argument.
    pub fn text(&self, index: usize) -> Option<&str> {
        self.arguments.get(index)?.strip_prefix('"')?.strip_suffix('"')
    }

    /// A numeric argument.
    pub fn number(&self, index: usize) -> Option<i64> {
        self.arguments.get(index)?.parse().ok()
    }
}

/// The file in `5</a/file>` or `5</a/file>(deleted)`.
fn file_of(text: &str) -> &str {
    let from = text.find('<').map_or(0, |at| at + 1);
    let to = text.rfind('>').unwrap_or(text.len());
    &text[from..to.max(from)]
}
