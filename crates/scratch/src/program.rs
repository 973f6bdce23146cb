// SPDX-License-Identifier: PostgreSQL
//! Running a program to its end.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::error::Error;

/// Run a command to its end; if it fails, the error holds its output.
pub(crate) fn run(command: &mut Command, name: &str) -> Result<(), Error> {
    let program = PathBuf::from(name);
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|source| Error::Spawn { program: program.clone(), source })?;
    if output.status.success() {
        return Ok(());
    }
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Err(Error::Program { program, status: output.status, output: tail(&text, 30) })
}

/// The last lines of a text.
pub(crate) fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
