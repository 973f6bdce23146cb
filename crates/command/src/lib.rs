// SPDX-License-Identifier: PostgreSQL
//! Code shared by the verbs: arguments, connection flags, output of documents, the terminal, and termination
//! by a signal.

mod connection;
mod document_output;
mod workload;

use std::sync::atomic::AtomicBool;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use error::Error;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use view::duration::within;

pub use connection::{ConnectionFlags, SamplingFlags};
pub use document_output::DocumentOutput;
pub use workload::Workload;

/// The measuring level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// Nothing; client messages are still counted, and their phase followed
    Off,
    /// The ledger: phases, waits, commands, statements, files
    Waits,
    /// Also lightweight and heavyweight locks: acquired, held, waited for
    Locks,
}

impl Level {
    /// The value of pg_tally.level.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Waits => "waits",
            Self::Locks => "locks",
        }
    }
}

impl From<Level> for segment::Level {
    fn from(level: Level) -> Self {
        match level {
            Level::Off => Self::Off,
            Level::Waits => Self::Waits,
            Level::Locks => Self::Locks,
        }
    }
}

/// Parses the length of an interval, from 100 ms to one hour.
pub fn interval(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(100), Duration::from_secs(3600))
}

/// Parses a number greater than 0 and at most `max`.
pub fn positive(text: &str, max: f64) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number <= max => Ok(number),
        _ => Err(format!("must be a number greater than 0 and at most {max}")),
    }
}

/// Parses a size above 0, with a unit of 1024 as in postgresql.conf: "8kB", "512 MB", "2GB"; also B and TB.
pub fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor: u64 = match &text[digits.len()..] {
        "B" => 1,
        "kB" => 1 << 10,
        "MB" => 1 << 20,
        "GB" => 1 << 30,
        "TB" => 1 << 40,
        _ => return Err("a number with a unit is needed, as in 500MB; use kB, MB, GB or TB".into()),
    };
    let number: u64 =
        digits.trim().parse().map_err(|_| "not a whole number with a unit, as in 500MB")?;
    number.checked_mul(factor).filter(|size| *size > 0).ok_or_else(|| "not a size".to_string())
}

/// Width of the terminal in columns; `None` if standard output is not a terminal or its size is unknown.
pub fn terminal_width() -> Option<usize> {
    view::escape::terminal_width()
}

/// Installs signal handlers that set the returned flag, so that the command can end in an orderly way.
pub fn stop_on_signals() -> Result<Arc<AtomicBool>, Error> {
    stop_on(&[SIGINT, SIGTERM, SIGHUP])
}

/// The same for a command that must undo what it did: SIGQUIT sets the flag, too.
pub fn stop_on_signals_and_quit() -> Result<Arc<AtomicBool>, Error> {
    stop_on(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT])
}

fn stop_on(signals: &[i32]) -> Result<Arc<AtomicBool>, Error> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in signals {
        signal_hook::flag::register(*signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_unit() {
        assert_eq!(size("2GB"), Ok(2 << 30));
        assert_eq!(size("500 kB"), Ok(500 << 10));
        assert_eq!(size("100B"), Ok(100));
        for text in ["", "2", "GB", "-1GB", "0MB", "2gb", "1.5GB", "99999999999TB"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
