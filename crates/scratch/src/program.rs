// SPDX-License-Identifier: PostgreSQL
//! Runs a program to its end.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::error::Error;

/// Run a command to its end; if it fails, the error contains its output.
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

/// The same, with a short text on its standard input.
pub(crate) fn run_with(command: &mut Command, name: &str, input: &str) -> Result<(), Error> {
    let spawned =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let failed = |source| Error::Spawn { program: PathBuf::from(name), source };
    let mut child = spawned.map_err(failed)?;
    // Writing fails if the program has ended without reading; its status says why.
    let _ = child.stdin.take().map(|mut pipe| pipe.write_all(input.as_bytes()));
    let output = child.wait_with_output().map_err(failed)?;
    match output.status.success() {
        true => Ok(()),
        false => Err(Error::Program {
            program: PathBuf::from(name),
            status: output.status,
            output: tail(&String::from_utf8_lossy(&output.stderr), 30),
        }),
    }
}

/// The last lines of a text.
pub(crate) fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
