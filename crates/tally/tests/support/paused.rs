// SPDX-License-Identifier: PostgreSQL
//! Runs something between two readings of a command, however long the machine takes for it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{kill_process, Pid, Signal};

/// Runs a command that reads the target, sleeps for its interval of a second and reads again; returns its output.
/// It is stopped while it sleeps, and `between` runs.
pub fn between_readings(arguments: &[&str], target: &Path, between: impl FnOnce()) -> String {
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tally"));
        command.args(arguments).args(["--interval", "1"]).arg(target).stdout(Stdio::piped());
        for name in super::CONNECTION {
            command.env_remove(name);
        }
        command.spawn().unwrap()
    };
    let mut child = start();
    let mut tries = 0;
    while !stop_asleep(&mut child) {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        tries += 1;
        assert!(tries < 20, "{arguments:?} was never seen asleep");
        child = start();
    }
    between();
    signal(&child, Signal::CONT);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Stops it while it sleeps; returns false if it ended before that could be observed.
fn stop_asleep(child: &mut Child) -> bool {
    let pid = child.id();
    let of =
        |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let sleeps = || of("syscall").split(' ').next() == Some(&libc::SYS_clock_nanosleep.to_string());
    while child.try_wait().unwrap().is_none() {
        if sleeps() {
            signal(child, Signal::STOP);
            super::eventually("the command stops", || {
                of("stat").rsplit_once(')').is_none_or(|(_, rest)| rest.starts_with(" T"))
            });
            if sleeps() {
                return true;
            }
            signal(child, Signal::CONT);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

fn signal(child: &Child, signal: Signal) {
    let _ = kill_process(Pid::from_child(child), signal);
}
