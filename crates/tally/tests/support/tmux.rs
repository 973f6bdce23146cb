// SPDX-License-Identifier: PostgreSQL
//! A real terminal to run the command in: tmux, with a server of its own.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A window of tmux; it ends with this.
pub struct Tmux {
    folder: TempDir,
}

impl Tmux {
    /// A window of so many columns and lines, and in it a shell that runs this in a folder of its
    /// own, which is home and place of settings as well, and afterwards says how that ended.
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

    /// Where it runs.
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

    /// Press keys, by tmux' names for them.
    pub fn press(&self, keys: &[&str]) {
        self.ask(&[&["send-keys"], keys].concat());
    }

    /// Press the left button of the mouse at a column and a line, counted from 0.
    pub fn click(&self, column: usize, line: usize) {
        for end in ["M", "m"] {
            let text = format!("\x1b[<0;{};{}{end}", column + 1, line + 1);
            self.ask(&["send-keys", "-l", &text]);
        }
    }

    /// Make the window another size.
    pub fn resize(&self, width: u16, height: u16) {
        let (width, height) = (width.to_string(), height.to_string());
        self.ask(&["resize-window", "-x", &width, "-y", &height]);
    }

    /// What is seen.
    pub fn seen(&self) -> String {
        String::from_utf8(self.ask(&["capture-pane", "-p"]).stdout).unwrap()
    }

    /// Wait until this is true of what is seen, and return that.
    pub fn until(&self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let seen = self.seen();
            if holds(&seen) {
                return seen;
            }
            assert!(began.elapsed() < Duration::from_secs(20), "it is not seen: {what}\n{seen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Wait until this text is seen.
    pub fn until_seen(&self, text: &str) -> String {
        self.until(text, |seen| seen.contains(text))
    }

    /// Column and line of the first time this text is seen.
    pub fn position_of(&self, text: &str) -> (usize, usize) {
        let seen = self.seen();
        let (line, found) = seen.lines().enumerate().find(|(_, it)| it.contains(text)).unwrap();
        (found[..found.find(text).unwrap()].chars().count(), line)
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.command().arg("kill-server").output();
    }
}
