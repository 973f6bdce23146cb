// SPDX-License-Identifier: PostgreSQL
//! The summary at the end of a recording.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use recording::FrameRow;
use serde::Serialize;

use super::shipping::Target;
use view::units;

/// The summary (docs/reference-json.md).
#[derive(Debug, Clone, Serialize)]
pub struct RecordSummary {
    /// The directory.
    pub directory: PathBuf,
    /// Start of the first interval, seconds since 1970; `None` without intervals.
    pub begin: Option<f64>,
    /// End of the last interval.
    pub end: Option<f64>,
    /// Number of intervals.
    pub intervals: u64,
    /// Total length of the intervals.
    pub seconds: f64,
    /// Intervals with complete figures.
    pub exact_intervals: u64,
    /// Number of gaps.
    pub gaps: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Where the recording was shipped to.
    pub shipped: Option<Target>,
    /// The summary of the client's recording.
    pub client: Option<Box<RecordSummary>>,
    /// Problems, such as settings that could not be read.
    pub notes: Vec<String>,
    #[serde(skip)]
    known: HashSet<String>,
}

impl RecordSummary {
    /// An empty summary.
    pub fn new(directory: &Path) -> RecordSummary {
        RecordSummary {
            directory: directory.to_path_buf(),
            begin: None,
            end: None,
            intervals: 0,
            seconds: 0.0,
            exact_intervals: 0,
            gaps: 0,
            bytes: 0,
            shipped: None,
            client: None,
            notes: Vec::new(),
            known: HashSet::new(),
        }
    }

    /// Adds an interval.
    pub fn interval(&mut self, row: &FrameRow) {
        let (end, length) = (row.time_us as f64 * 1e-6, row.interval_ns as f64 * 1e-9);
        self.begin = self.begin.or(Some(end - length));
        self.end = Some(end);
        self.intervals += 1;
        self.exact_intervals += u64::from(row.exact);
        self.seconds += length;
    }

    /// Adds a problem. Returns whether it is new.
    pub fn note(&mut self, text: &str) -> bool {
        let new = self.known.insert(text.to_string());
        if new {
            self.notes.push(text.to_string());
        }
        new
    }

    /// The summary in one line.
    pub fn line(&self) -> String {
        let s = |n: u64| if n == 1 { "" } else { "s" };
        let mut line = format!(
            "recorded {} in {} interval{}",
            units::duration(self.seconds),
            units::whole(self.intervals),
            s(self.intervals)
        );
        if self.gaps > 0 {
            line.push_str(&format!(", {} gap{}", self.gaps, s(self.gaps)));
        }
        let bytes = units::bytes(self.bytes as f64);
        line.push_str(&format!(" into {} ({bytes})", self.directory.display()));
        if let Some(Target { url, files_left, .. }) = &self.shipped {
            line.push_str(&match files_left {
                0 => format!(", all shipped to {url}"),
                n => format!(", shipped to {url} except for {n} file{}", s(*n)),
            });
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_fits_into_one_line() {
        let mut summary = RecordSummary::new(Path::new("run1"));
        for n in 1..=3 {
            summary.interval(&FrameRow {
                time_us: n * 1_000_000,
                interval_ns: 1_000_000_000,
                exact: n < 3,
                ..FrameRow::default()
            });
        }
        assert_eq!((summary.begin, summary.end), (Some(0.0), Some(3.0)));
        assert_eq!((summary.intervals, summary.exact_intervals), (3, 2));
        assert!(summary.note("x") && !summary.note("x"));
        (summary.gaps, summary.bytes) = (1, 2048);
        assert_eq!(summary.line(), "recorded 3 s in 3 intervals, 1 gap into run1 (2 kB)");
    }
}
