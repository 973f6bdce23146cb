// SPDX-License-Identifier: PostgreSQL
//! The log of a cell: one JSON line per event, written when it happens, so that a killed run keeps its
//! measurements.

use files::Access;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use error::Error;

use crate::storage::engine::{Responses, Work};
use crate::storage::machine::Memory;
use crate::storage::victim::VictimOutcome;

/// An event of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum CellEvent {
    /// The cell began.
    Begin {
        /// Name of the arm.
        arm: String,
        /// Number of the block, from 0.
        block: usize,
        /// Seconds since 1970.
        time: f64,
    },
    /// The background's files were made.
    Files {
        /// Their number.
        files: usize,
        /// Their size in total, bytes.
        bytes: u64,
        /// How long it took.
        seconds: f64,
    },
    /// The background between two of fio's reports.
    Sample(LoadSample),
    /// The warm-up ended; times of the study count from here.
    Measuring {
        /// Seconds since 1970.
        time: f64,
        /// Why it ended.
        why: String,
    },
    /// A victim ran.
    Victim {
        /// Its name.
        name: String,
        /// Its time in the study, seconds since measuring began; `None` for the run without background.
        at: Option<f64>,
        /// How it went.
        ran: VictimOutcome,
    },
    /// A limit was set.
    Limit {
        /// Seconds since 1970.
        time: f64,
        /// Which.
        text: String,
    },
    /// Owed operations were dropped.
    Dropped {
        /// Seconds since 1970.
        time: f64,
        /// How many.
        operations: u64,
    },
    /// The PostgreSQL server's load, as pgbench reports it.
    Transactions(Transactions),
    /// The cell ended.
    End {
        /// Seconds since 1970.
        time: f64,
        /// Why it ended early; `None` if it is complete.
        early: Option<String>,
    },
}

/// The PostgreSQL server's load in a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Transactions {
    /// Its end, seconds since 1970.
    pub to: f64,
    /// Transactions per second.
    pub rate: f64,
    /// Mean latency, seconds; from the scheduled start if the study sets a rate.
    pub mean: f64,
}

/// Response times from the scheduled start, seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The maximum.
    pub max: f64,
}

impl Quantiles {
    /// The quantiles of these response times; `None` without any.
    pub fn from_responses(all: &Responses) -> Option<Self> {
        Some(Self {
            mean: all.mean()?,
            p50: all.quantile(0.5)?,
            p95: all.quantile(0.95)?,
            p99: all.quantile(0.99)?,
            max: all.quantile(1.0)?,
        })
    }
}

/// The background between two of fio's reports.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadSample {
    /// Start, seconds since 1970.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// Operations that became due.
    pub wanted: u64,
    /// Reads that ended.
    pub reads: u64,
    /// Writes that ended.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Operations behind the schedule at its end.
    pub owed: u64,
    /// Response times from the scheduled start; `None` if no operation ended.
    pub responses: Option<Quantiles>,
    /// Durations from when operations were issued.
    pub durations: Option<Quantiles>,
    /// The arm's device; `None` if it has none.
    pub device: Option<Device>,
    /// The machine's memory at its end.
    pub memory: Memory,
}

/// The arm's device during a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    /// Requests.
    pub reads: u64,
    /// Requests.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Time in which a request was in progress, seconds.
    pub busy_seconds: f64,
}

impl LoadSample {
    /// Builds a sample from the background's work.
    pub fn from_work(work: &Work, device: Option<Device>, memory: Memory) -> Self {
        Self {
            from: work.from,
            to: work.to,
            wanted: work.wanted,
            reads: work.reads,
            writes: work.writes,
            read_bytes: work.read_bytes,
            written_bytes: work.written_bytes,
            owed: work.owed,
            responses: Quantiles::from_responses(&work.responses()),
            durations: Quantiles::from_responses(&work.durations()),
            device,
            memory,
        }
    }

    /// Operations that ended.
    pub fn made(&self) -> u64 {
        self.reads + self.writes
    }

    /// Operations per second.
    pub fn rate(&self) -> f64 {
        self.made() as f64 / self.seconds()
    }

    /// Its length.
    pub fn seconds(&self) -> f64 {
        (self.to - self.from).max(1e-9)
    }
}

/// The open log of a cell.
#[derive(Debug)]
pub struct Log {
    path: PathBuf,
    file: File,
}

/// The path of a cell's log in a run's directory.
pub fn path(folder: &Path, arm: &str, block: usize) -> PathBuf {
    folder.join("cells").join(format!("{arm}-{block}.jsonl"))
}

/// The path of a cell's recording of its server.
pub fn server_recording(folder: &Path, arm: &str, block: usize) -> PathBuf {
    folder.join("recordings").join(format!("{arm}-{block}-server"))
}

impl Log {
    /// Begins a cell's log; replaces that of an earlier, incomplete attempt.
    pub fn begin(folder: &Path, arm: &str, block: usize) -> Result<Log, Error> {
        let path = path(folder, arm, block);
        let at = |error| Error::Failed(format!("{}: {error}", path.display()));
        files::folder(&folder.join("cells"), Access::Owner).map_err(at)?;
        let file = files::create(&path, Access::Owner).map_err(at)?;
        Ok(Log { path, file })
    }

    /// Appends a line.
    pub fn add(&mut self, line: &CellEvent) -> Result<(), Error> {
        let text = serde_json::to_string(line)? + "\n";
        self.file
            .write_all(text.as_bytes())
            .map_err(|error| Error::Failed(format!("{}: {error}", self.path.display())))
    }
}

/// Reads the lines of a log; none if the file does not exist. Ignores a last line that a kill cut short.
pub fn read(path: &Path) -> Result<Vec<CellEvent>, Error> {
    let text = match files::read_text(path, 1 << 30) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::Failed(format!("{}: {error}", path.display()))),
    };
    let last = text.lines().count();
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        match serde_json::from_str(line) {
            Ok(line) => lines.push(line),
            Err(_) if number + 1 == last && !text.ends_with('\n') => {}
            Err(error) => {
                let (path, number) = (path.display(), number + 1);
                return Err(Error::Failed(format!("{path}, line {number}: {error}")));
            }
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_up_to_a_line_that_was_cut_short() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Log::begin(folder.path(), "one", 2).unwrap();
        let begin = CellEvent::Begin { arm: "one".into(), block: 2, time: 1.0 };
        let sample = CellEvent::Sample(LoadSample { wanted: 7, ..LoadSample::default() });
        log.add(&begin).unwrap();
        log.add(&sample).unwrap();
        let path = path(folder.path(), "one", 2);
        assert_eq!(read(&path).unwrap(), [begin.clone(), sample.clone()]);
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 9]).unwrap();
        assert_eq!(read(&path).unwrap(), [begin]);
        std::fs::write(&path, "{}\n{}\n").unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("line 1"));
        assert_eq!(read(&folder.path().join("none")).unwrap(), []);
    }
}
