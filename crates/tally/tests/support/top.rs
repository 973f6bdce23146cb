// SPDX-License-Identifier: PostgreSQL
//! `tally top --json` in the background, interval by interval.

use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A running `tally top --json`; dropping this kills it.
pub struct Top {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    messages: PathBuf,
    _folder: TempDir,
}

impl Top {
    /// For this segment, with these arguments.
    pub fn start(arguments: &[&str], segment: &Path) -> Top {
        let folder = tempfile::tempdir().unwrap();
        let messages = folder.path().join("messages");
        let mut child = Command::new(assert_cmd::cargo::cargo_bin("tally"))
            .args(["top", "--json"])
            .args(arguments)
            .arg(segment)
            .env("PGUSER", "postgres")
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&messages).unwrap())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Top { child, lines, messages, _folder: folder }
    }

    /// The next interval. Waits for it: everything that happened before the call is in it or in earlier ones,
    /// except what happened after the interval's end.
    pub fn interval(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    /// Waits until its standard error contains this.
    pub fn until_printed(&self, what: &str) {
        super::eventually(what, || std::fs::read_to_string(&self.messages).unwrap().contains(what));
    }
}

impl Drop for Top {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
