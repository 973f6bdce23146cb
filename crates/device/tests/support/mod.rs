// SPDX-License-Identifier: PostgreSQL
//! A shell in its own mount namespace: its mounts are invisible to other processes and end with it.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A shell in its own temporary directory, which ends when this is dropped.
pub struct Namespace {
    shell: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    dir: tempfile::TempDir,
}

impl Namespace {
    /// Creates one; `None` if that is not permitted, in which case it prints why.
    pub fn new() -> Option<Namespace> {
        let dir = tempfile::tempdir().expect("a directory");
        let mut shell = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh"])
            .current_dir(dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("unshare");
        let output = BufReader::new(shell.stdout.take().expect("a pipe"));
        let input = shell.stdin.take();
        let mut namespace = Namespace { shell, input, output, dir };
        let made = namespace.run("mount -t tmpfs none /mnt && umount /mnt && echo yes");
        if made != ["yes"] {
            println!("not tested: this user may not mount anything (unshare --mount)");
            return None;
        }
        Some(namespace)
    }

    /// Runs a script in it and returns the lines of its output.
    pub fn run(&mut self, script: &str) -> Vec<String> {
        let input = self.input.as_mut().expect("a pipe");
        // A shell that has ended closes its output too.
        let _ = writeln!(input, "{script}\necho; echo end of it");
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).expect("text") == 0 {
                break;
            }
            lines.push(line.trim_end_matches('\n').to_string());
            if lines.ends_with(&[String::new(), "end of it".to_string()]) {
                lines.truncate(lines.len() - 2);
                break;
            }
        }
        lines
    }

    /// The shell's PID, used as that of a postmaster.
    pub fn pid(&self) -> u32 {
        self.shell.id()
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.dir.path().canonicalize().expect("a path").join(path)
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // It ends at the end of its input.
        self.input = None;
        let _ = self.shell.wait();
    }
}
