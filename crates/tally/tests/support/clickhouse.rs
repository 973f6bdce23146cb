// SPDX-License-Identifier: PostgreSQL
//! The HTTP interface of a ClickHouse server; `tests/fleet/server.py` says how far it resembles one.

use std::io::BufReader;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::line_of;

/// A server; it ends when the value is dropped.
pub struct ClickHouse {
    child: Child,
    /// Its URL, in the form that `--engine` takes.
    pub url: String,
}

impl ClickHouse {
    /// Starts one that stores its tables in a directory and has one user.
    pub fn start(python: &Path, folder: &Path, user: &str, password: &str) -> ClickHouse {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fleet/server.py");
        let mut child = Command::new(python)
            .arg(script)
            .arg(folder)
            .args([user, password])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let port = line_of(&mut BufReader::new(child.stdout.take().unwrap()));
        ClickHouse { child, url: format!("http://127.0.0.1:{}", port.trim()) }
    }
}

impl Drop for ClickHouse {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
