// SPDX-License-Identifier: PostgreSQL
//! Recordings, and the output of `tally diff` for two of them.

use std::path::PathBuf;

use recording::FrameRow;
use serde_json::Value;
use tempfile::TempDir;

use super::fixtures::Fixture;
use super::synthetic::{FakeServer, WrittenTotals};
use super::{output, tally};

/// Recordings in a directory.
pub struct Recordings {
    directory: PathBuf,
    /// The directory is removed on drop.
    _own: Option<TempDir>,
    fixtures: Vec<Fixture>,
}

impl Recordings {
    pub fn new() -> Recordings {
        let own = tempfile::tempdir().unwrap();
        Recordings { directory: own.path().to_path_buf(), _own: Some(own), fixtures: Vec::new() }
    }

    /// In a directory that stays.
    pub fn at(directory: PathBuf) -> Recordings {
        Recordings { directory, _own: None, fixtures: Vec::new() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub fn make(&self, name: &str, seconds: u64, made: &FakeServer) -> WrittenTotals {
        made.write(&self.path(name), seconds, |_, _| {})
    }

    pub fn make_with(
        &self,
        name: &str,
        seconds: u64,
        made: &FakeServer,
        each: impl Fn(u64, &mut FrameRow),
    ) {
        made.write(&self.path(name), seconds, each);
    }

    /// Adds a recording of a real server.
    pub fn add(&mut self, name: &str, made: Fixture) {
        std::os::unix::fs::symlink(made.path(), self.path(name)).unwrap();
        self.fixtures.push(made);
    }

    pub fn diff(&self, a: &str, b: &str) -> assert_cmd::Command {
        let mut command = tally();
        command.current_dir(&self.directory).args(["diff", a, b]);
        command
    }

    pub fn json(&self, a: &str, b: &str, options: &[&str]) -> Value {
        let text = output(self.diff(a, b).arg("--json").args(options));
        serde_json::from_str(&text).unwrap()
    }
}

pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

pub fn rows<'v>(diff: &'v Value, table: &str) -> &'v Vec<Value> {
    diff[table].as_array().unwrap()
}

/// Rows of all tables, totals included, that are reported as changed.
pub fn changed(diff: &Value) -> Vec<&Value> {
    let tables = ["totals", "accounts", "processes", "locks", "files", "functions", "statements"];
    let all = tables.iter().flat_map(|table| rows(diff, table));
    all.filter(|row| !["noise", "unknown"].contains(&row["verdict"].as_str().unwrap())).collect()
}

pub fn findings(diff: &Value) -> String {
    let texts = rows(diff, "findings").iter().map(|finding| finding["text"].as_str().unwrap());
    texts.collect::<Vec<_>>().join("\n")
}
