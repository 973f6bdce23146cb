// SPDX-License-Identifier: PostgreSQL
//! Spark, in one process that runs the queries of a test program, because its start takes longer than a query.

use std::io::{BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;

use super::{line_of, python};

/// A process with Spark; it ends when the value is dropped, or with the pipe.
pub struct Spark {
    child: Child,
    pipes: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Spark {
    /// `None` if Spark or Java is not available.
    pub fn start() -> Option<Spark> {
        let python = python::with_requirements_of("spark");
        let java = Command::new("java").arg("-version").output();
        let (Some(python), Ok(_)) = (python, java) else {
            eprintln!("Spark is not asked: it cannot be installed (no PyPI, or no Java?)");
            return None;
        };
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/spark/session.py");
        let mut child = Command::new(python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let pipes = Mutex::new((child.stdin.take().unwrap(), answers));
        Some(Spark { child, pipes })
    }

    /// The rows of a query, as JSON.
    pub fn ask(&self, sql: &str) -> String {
        let mut pipes = self.pipes.lock().unwrap();
        writeln!(pipes.0, "{}", serde_json::to_string(sql.trim_end_matches([';', '\n'])).unwrap())
            .unwrap();
        let answer = line_of(&mut pipes.1);
        assert!(answer.starts_with('['), "{sql}: {answer}");
        answer
    }
}

impl Drop for Spark {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
