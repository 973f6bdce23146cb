// SPDX-License-Identifier: PostgreSQL
//! An independent witness: bpftrace, which counts in the kernel what our probes count.
//!
//! It needs root. Where it is not to be had a test says so and passes.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{kill_process, Pid, Signal};

/// bpftrace at work.
pub struct Witness {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Witness {
    /// Start it with a program of its language, for the processes that are there; None where
    /// it cannot run.
    pub fn start(program: &str) -> Option<Self> {
        // Probes are attached one after the other, so the first and the last say that they are.
        let ready =
            |end| format!("interval:ms:50 /!@{end}/ {{ printf(\"{end}\\n\"); @{end} = 1; }}\n");
        let program = ready("first") + program + &ready("last");
        // In a mount namespace of its own, tracefs may be mounted without a trace left. The
        // server's own probes (USDT) are switched on in each process that has its file mapped.
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
        println!("not tested: bpftrace is not installed, or this is not root; {errors}");
        None
    }

    /// End it; the counts of its map `@`, by the parts of their keys.
    pub fn stop(mut self) -> Vec<(Vec<String>, u64)> {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::INT).unwrap();
        let (mut text, mut errors) = (String::new(), String::new());
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // bpftrace notices that it is to end only when a signal meets it in its sleep. A
            // second SIGINT could kill it while it prints; this interrupts its sleep alone.
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
    /// A test that fails leaves no witness behind, which would look at every server.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A line of the witness: `@[123, import fsync]: 45`.
fn parse(line: &str) -> Option<(Vec<String>, u64)> {
    let (key, count) = line.strip_prefix("@[")?.split_once("]: ")?;
    Some((key.split(", ").map(String::from).collect(), count.trim().parse().ok()?))
}
