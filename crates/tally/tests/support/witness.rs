// SPDX-License-Identifier: PostgreSQL
//! An independent witness: bpftrace, which counts in the kernel what pg_tally's probes count.
//!
//! It requires root. Without it, a test prints a message and passes.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{kill_process, Pid, Signal};

/// A running bpftrace.
pub struct Witness {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Witness {
    /// Starts bpftrace with this program, for the processes that exist now. Prints the reason and returns
    /// None if it cannot run.
    pub fn start(program: &str) -> Option<Self> {
        if super::emulated() && ["usdt:", "uprobe:"].iter().any(|kind| program.contains(kind)) {
            println!("not tested: uprobes and USDT do not see the code of an emulated server");
            return None;
        }
        // Probes are attached in order, so the first and the last report that all are attached.
        let ready =
            |end| format!("interval:ms:50 /!@{end}/ {{ printf(\"{end}\\n\"); @{end} = 1; }}\n");
        let program = ready("first") + program + &ready("last");
        // tracefs is mounted in a mount namespace, so that the mount is not left behind. The server's own probes
        // (USDT) are enabled in each process that has its file mapped.
        let script = "test -e /sys/kernel/tracing/events || \
                      mount -t tracefs nodev /sys/kernel/tracing; \
                      exec bpftrace -q --usdt-file-activation -e \"$0\"";
        let mut child = Command::new("unshare")
            .args(["--mount", "sh", "-c", script, &program])
            .env("BPFTRACE_MAP_KEYS_MAX", "65536")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .ok()?;
        let mut output = BufReader::new(child.stdout.take()?);
        let (mut ready, mut line) = (0, String::new());
        while output.read_line(&mut line).ok()? > 0 {
            ready += u32::from(matches!(line.trim(), "first" | "last"));
            if ready == 2 {
                return Some(Self { child, output });
            }
            line.clear();
        }
        let mut errors = String::new();
        let _ = child.stderr.take()?.read_to_string(&mut errors);
        let _ = child.wait();
        let last = errors.lines().rfind(|line| !line.trim().is_empty());
        println!(
            "not tested: bpftrace: {}",
            last.unwrap_or("it is not installed, or this is not root")
        );
        None
    }

    /// Ends it; returns the counts of its map `@` with their keys.
    pub fn stop(mut self) -> Vec<(Vec<String>, u64)> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::INT).unwrap();
        let (mut text, mut errors) = (String::new(), String::new());
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // bpftrace handles SIGINT only when a signal interrupts its sleep. A second SIGINT could kill it
            // while it prints; stopping and continuing it only interrupts the sleep.
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(300));
                while !ended.load(Ordering::Relaxed) {
                    let _ = kill_process(pid, Signal::STOP);
                    let _ = kill_process(pid, Signal::CONT);
                    std::thread::sleep(Duration::from_millis(100));
                }
            });
            self.output.read_to_string(&mut text).unwrap();
            self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
            ended.store(true, Ordering::Relaxed);
        });
        assert!(!errors.contains("Lost"), "the witness lost events: {errors}");
        self.child.wait().unwrap();
        text.lines().filter_map(parse).collect()
    }
}

impl Drop for Witness {
    /// A bpftrace left behind by a failed test would trace the servers of all other tests.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Parses a line of bpftrace: `@[123, import fsync]: 45`.
fn parse(line: &str) -> Option<(Vec<String>, u64)> {
    let (key, count) = line.strip_prefix("@[")?.split_once("]: ")?;
    Some((key.split(", ").map(String::from).collect(), count.trim().parse().ok()?))
}
