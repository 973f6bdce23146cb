// SPDX-License-Identifier: PostgreSQL
//! Whether a process is blocked, according to /proc.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Maximum number of files in /proc that the sampler keeps open.
const MOST_FILES: usize = 256;

/// The state of a process at one moment, according to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    /// On a processor or in the run queue.
    Running,
    /// Blocked in this system call; `None`: outside system calls, or unknown.
    Blocked(Option<i64>),
}

/// Files in /proc that are kept open: reading one again queries the kernel again.
#[derive(Debug, Default)]
pub(super) struct Proc {
    files: HashMap<i32, (File, bool)>,
}

impl Proc {
    /// The state from /proc/PID/syscall if we may read it (as root, or as the same user without a restriction
    /// of ptrace), otherwise from /proc/PID/stat, which every user may read.
    pub fn doing(&mut self, pid: i32) -> io::Result<Doing> {
        let mut buffer = [0u8; 512];
        if self.files.len() > MOST_FILES {
            self.files.clear();
        }
        if let Some((file, is_syscall)) = self.files.get(&pid) {
            match file.read_at(&mut buffer, 0) {
                Ok(n) if n > 0 => return parse_doing(&buffer[..n], *is_syscall),
                // The process has ended, or we may not query it.
                _ => self.files.remove(&pid),
            };
        }
        if let Ok(file) = File::open(format!("/proc/{pid}/syscall")) {
            if let Ok(n) = file.read_at(&mut buffer, 0) {
                let doing = parse_doing(&buffer[..n], true)?;
                self.files.insert(pid, (file, true));
                return Ok(doing);
            }
        }
        let file = File::open(format!("/proc/{pid}/stat"))?;
        let n = file.read_at(&mut buffer, 0)?;
        let doing = parse_doing(&buffer[..n], false)?;
        self.files.insert(pid, (file, false));
        Ok(doing)
    }
}

fn parse_doing(bytes: &[u8], is_syscall: bool) -> io::Result<Doing> {
    let text = String::from_utf8_lossy(bytes);
    if !is_syscall {
        let state = text.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
        return match state {
            Some('R') => Ok(Doing::Running),
            Some(_) => Ok(Doing::Blocked(None)),
            None => Err(io::ErrorKind::InvalidData.into()),
        };
    }
    match text.split_ascii_whitespace().next() {
        Some("running") => Ok(Doing::Running),
        Some(number) => Ok(Doing::Blocked(number.parse().ok().filter(|&n: &i64| n >= 0))),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that is killed at the end of the test.
    struct Process(std::process::Child);

    impl Process {
        fn new(program: &str, argument: &[&str]) -> Process {
            Process(std::process::Command::new(program).args(argument).spawn().unwrap())
        }

        fn doing(&self) -> io::Result<Doing> {
            Proc::default().doing(self.0.id() as i32)
        }

        /// Waits until the process reaches that state. At first it may wait for its program's file.
        fn until(&self, meant: impl Fn(&Doing) -> bool) {
            let began = std::time::Instant::now();
            while !meant(&self.doing().unwrap()) {
                assert!(began.elapsed().as_secs() < 120, "{:?}", self.doing());
                std::thread::yield_now();
            }
        }
    }

    impl Drop for Process {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    #[test]
    fn a_blocked_process_is_found_with_its_system_call() {
        let own = std::process::id();
        let figures = process::Proc::default().schedstat(own);
        assert!(figures.is_some_and(|figures| figures.on_cpu_ns > 0));
        Process::new("sh", &["-c", "while :; do :; done"]).until(|doing| *doing == Doing::Running);
        let mut idle = Process::new("sleep", &["60"]);
        idle.until(|doing| matches!(doing, Doing::Blocked(_)));
        for _ in 0..2 {
            assert!(matches!(idle.doing().unwrap(), Doing::Blocked(_)));
        }
        idle.0.kill().unwrap();
        idle.0.wait().unwrap();
        assert!(idle.doing().is_err());
    }

    #[test]
    fn blocked_and_running_are_distinguished_in_both_files() {
        assert_eq!(parse_doing(b"running\n", true).unwrap(), Doing::Running);
        assert_eq!(parse_doing(b"74 0x5 0x0 ...", true).unwrap(), Doing::Blocked(Some(74)));
        assert_eq!(parse_doing(b"-1 0x7ffd 0x7f", true).unwrap(), Doing::Blocked(None));
        assert_eq!(parse_doing(b"7 (a) b) R 1", false).unwrap(), Doing::Running);
        assert_eq!(parse_doing(b"7 (a) b) D 1", false).unwrap(), Doing::Blocked(None));
        assert!(parse_doing(b"", true).is_err());
    }
}
