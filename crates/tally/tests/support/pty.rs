// SPDX-License-Identifier: PostgreSQL
//! A pseudo-terminal: what a command writes to its terminal, byte by byte.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::mpsc::{channel, Receiver};
use std::time::{Duration, Instant};

use rustix::pty::{grantpt, openpt, ptsname, unlockpt, OpenptFlags};
use rustix::termios::{tcsetwinsize, Winsize};

/// A command on its own terminal; dropping this kills it.
pub struct Pty {
    keys: File,
    sent: Receiver<Vec<u8>>,
    child: Child,
    all: Vec<u8>,
}

impl Pty {
    /// The command's process.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Runs a command on a terminal of this size.
    pub fn run(width: u16, height: u16, command: &[&str]) -> Pty {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
        let theirs = File::options().read(true).write(true).open(name).unwrap();
        let size = Winsize { ws_row: height, ws_col: width, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&theirs, size).unwrap();
        let other = || theirs.try_clone().unwrap();
        let child = Command::new("setsid")
            .arg("--ctty")
            .args(command)
            .env("LC_ALL", "C.UTF-8")
            .env_remove("NO_COLOR")
            .stdin(other())
            .stdout(other())
            .stderr(other())
            .spawn()
            .unwrap();
        drop(theirs);
        let keys = File::from(ours);
        let mut from = keys.try_clone().unwrap();
        let (send, sent) = channel();
        std::thread::spawn(move || {
            let mut bytes = vec![0; 1 << 16];
            // Fails once the command has closed its side.
            while let Ok(n) = from.read(&mut bytes) {
                if n == 0 || send.send(bytes[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        Pty { keys, sent, child, all: Vec::new() }
    }

    /// Types these keys.
    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until `holds` is true of the total output so far, and returns that.
    pub fn until(&mut self, what: &str, holds: impl Fn(&[u8]) -> bool) -> &[u8] {
        let began = Instant::now();
        while !holds(&self.all) {
            assert!(began.elapsed() < Duration::from_secs(120), "timeout while waiting for {what}");
            if let Ok(bytes) = self.sent.recv_timeout(Duration::from_millis(100)) {
                self.all.extend(bytes);
            }
        }
        &self.all
    }

    /// The process group that has the terminal: the shell's, or that of the command which it runs.
    pub fn foreground(&self) -> Option<i32> {
        rustix::termios::tcgetpgrp(&self.keys).ok().map(|group| group.as_raw_nonzero().get())
    }

    /// Waits until the command ends; returns its exit code and the total output.
    pub fn end(mut self) -> (Option<i32>, Vec<u8>) {
        let status = self.child.wait().unwrap();
        while let Ok(bytes) = self.sent.recv_timeout(Duration::from_secs(1)) {
            self.all.extend(bytes);
        }
        (status.code(), std::mem::take(&mut self.all))
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines that a terminal received, without colours and other control sequences.
pub fn lines(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut plain = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\x1b' => {
                if letters.next() == Some('[') {
                    letters.find(|c| c.is_ascii_alphabetic());
                }
            }
            '\r' => plain.push('\n'),
            letter => plain.push(letter),
        }
    }
    plain.lines().map(String::from).collect()
}
