// SPDX-License-Identifier: PostgreSQL
//! Runs the command in a real terminal: tmux, with its own server.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A tmux window; dropping this closes it.
pub struct Tmux {
    folder: TempDir,
}

impl Tmux {
    /// Runs a shell command in a window of this size and in its own directory, which is also its HOME and
    /// has its settings. Afterwards the window shows the exit status.
    pub fn run(width: u16, height: u16, command: &str) -> Tmux {
        let tmux = Tmux { folder: tempfile::tempdir().unwrap() };
        let script = format!("{command}; echo ended with $?; exec cat");
        let (width, height) = (width.to_string(), height.to_string());
        let home = tmux.folder().display().to_string();
        let output = tmux
            .command()
            .args(["-f", "/dev/null", "new-session", "-d", "-x", &width, "-y", &height])
            .args(["-c", &home, "env", "-u", "NO_COLOR", "LC_ALL=C.UTF-8", "TZ=UTC"])
            .args([&format!("HOME={home}"), &format!("XDG_CONFIG_HOME={home}/settings")])
            .args(["sh", "-c", &script])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        tmux
    }

    /// The directory in which the command runs.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_path_buf()
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        command.env_remove("TMUX").arg("-S").arg(self.folder.path().join("socket"));
        command
    }

    fn ask(&self, args: &[&str]) -> Output {
        let output = self.command().args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        output
    }

    /// Presses keys, by tmux's names.
    pub fn press(&self, keys: &[&str]) {
        self.ask(&[&["send-keys"], keys].concat());
    }

    /// Clicks the left mouse button at a column and line, counted from 0.
    pub fn click(&self, column: usize, line: usize) {
        for end in ["M", "m"] {
            let text = format!("\x1b[<0;{};{}{end}", column + 1, line + 1);
            self.ask(&["send-keys", "-l", &text]);
        }
    }

    /// Changes the window's size.
    pub fn resize(&self, width: u16, height: u16) {
        let (width, height) = (width.to_string(), height.to_string());
        self.ask(&["resize-window", "-x", &width, "-y", &height]);
    }

    /// The text on the screen.
    pub fn seen(&self) -> String {
        String::from_utf8(self.ask(&["capture-pane", "-p"]).stdout).unwrap()
    }

    /// Waits until `holds` is true of the screen's text, and returns that.
    pub fn until(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let seen = self.seen();
            if holds(&seen) {
                return seen;
            }
            assert!(
                began.elapsed() < Duration::from_secs(120),
                "timeout while waiting for {what}\n{seen}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until the screen shows this text.
    pub fn until_seen(&self, text: &str) -> String {
        self.until(text, |seen| seen.contains(text))
    }

    /// Column and line at which this text first appears, counted from 0.
    pub fn position_of(&self, text: &str) -> (usize, usize) {
        let seen = self.seen();
        let (line, found) = seen.lines().enumerate().find(|(_, line)| line.contains(text)).unwrap();
        (found[..found.find(text).unwrap()].chars().count(), line)
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.command().arg("kill-server").output();
    }
}
