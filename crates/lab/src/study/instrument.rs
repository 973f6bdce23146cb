// SPDX-License-Identifier: PostgreSQL
//! An external instrument that runs while the server is measured.

use std::io::ErrorKind;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::file::{Instrument, Stop};
use crate::engine::background::Background;
use crate::engine::words::Words;

/// How long it may take to become ready.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

/// Starts the instrument and waits until it is ready. The error tells the user why it cannot be used.
pub fn start(wanted: &Instrument, words: &Words, stop: &AtomicBool) -> Result<Background, String> {
    let filled = words.fill_all(&wanted.command);
    let [program, arguments @ ..] = &filled[..] else {
        return Err("the instrument has no command".into());
    };
    let mut command = Command::new(program);
    command.args(arguments);
    let mut process = Background::start(program, command).map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("{program} is not installed"),
        ErrorKind::PermissionDenied => format!("{program} may not be run: permission denied"),
        _ => format!("could not run {program}: {error}"),
    })?;
    let began = Instant::now();
    while let Some(ready) = &wanted.ready {
        if process.output().contains(ready.as_str()) || stop.load(Ordering::Relaxed) {
            break;
        }
        if !process.running() {
            return Err(format!("{program} ended: {}", process.last_lines(3)));
        }
        if began.elapsed() > PATIENCE {
            return Err(format!(
                "{program} did not print \"{ready}\" within {PATIENCE:?}; end of its output: {}",
                process.last_lines(3)
            ));
        }
        std::thread::sleep(POLL);
    }
    if wanted.ready.is_none() {
        // Permission problems show up immediately.
        std::thread::sleep(Duration::from_millis(200));
        if !process.running() {
            return Err(format!("{program} ended: {}", process.last_lines(3)));
        }
    }
    Ok(process)
}

impl Stop {
    /// The signal to send.
    pub fn signal(self) -> Signal {
        match self {
            Self::Int => Signal::INT,
            Self::Term => Signal::TERM,
        }
    }
}
