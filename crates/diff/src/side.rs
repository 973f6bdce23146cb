// SPDX-License-Identifier: PostgreSQL
//! One side of a comparison: reads the activity of its sessions, column by column.

use std::collections::HashMap;

use recording::{FrameRow, Range, Recording, StatTotals};
use segment::interval::Interval;

use super::columns::{Columns, State};
use super::comparison::Subject;
use super::key::Key;
use super::processors::Processors;
use super::selection::Selection;
use super::statements::{self, SideStatements};
use error::Error;
use report::RecordingPlace;

/// One side of a comparison.
#[derive(Debug)]
pub struct ComparedSide {
    /// "A" or "B".
    pub name: &'static str,
    /// Where it was read from.
    pub source: RecordingPlace,
    /// The recording.
    pub recording: Recording,
    /// The selected time.
    pub range: Range,
    /// Its intervals.
    pub heads: Vec<FrameRow>,
    /// The selected time in columns.
    pub columns: Columns,
    /// Indexes of the compared columns.
    pub kept: Vec<usize>,
    /// Whether the compared columns are exact.
    pub exact: bool,
    /// The mean distance of the samples of which it was made, seconds; `None`: it was measured.
    pub sampled: Option<f64>,
    /// CPU use of the machine; `None` if it was not recorded.
    pub processors: Option<Processors>,
    /// Totals by key and compared column.
    pub lines: HashMap<Key, Vec<StatTotals>>,
    /// The statements; `None` if none were recorded.
    pub statements: Option<SideStatements>,
}

impl ComparedSide {
    /// Reads the selected part of a recording.
    pub fn read(
        name: &'static str,
        selection: &Selection,
        (cluster, host): (Option<&str>, Option<&str>),
    ) -> Result<ComparedSide, Error> {
        let edges = (selection.from, selection.to);
        let source = RecordingPlace::open(&selection.directory, (cluster, host), edges)?;
        let recording = source.recording(host)?;
        let end = recording.range().to_us as f64 * 1e-6;
        let us =
            |edge: Option<report::Edge>| edge.map(|edge| (edge.resolve(end) * 1e6).round() as i64);
        let range = recording.clip(us(selection.from), us(selection.to))?;
        let heads = recording.frame_rows(range)?;
        let columns = Columns::divide(range, &heads, recording.about().detail_ns);
        let (kept, exact) = columns.kept();
        if kept.is_empty() {
            return Err(Error::Failed(format!(
                "{name}: nothing was recorded in {} from {} to {}; specify another time range",
                selection.directory.display(),
                recording::format_utc(range.from_us),
                recording::format_utc(range.to_us)
            )));
        }
        let processors = Processors::from_rows(&heads, &recording.kernel(range)?);
        let lines = lines(&recording, range, &columns, &kept)?;
        let statements = statements::read(&recording, range)?;
        let sampled = sampled(&recording, range, &heads)?;
        Ok(ComparedSide {
            name,
            source,
            recording,
            range,
            heads,
            columns,
            kept,
            exact,
            sampled,
            processors,
            lines,
            statements,
        })
    }

    /// Whether samples could not tell CPU time apart in all of it.
    pub fn hides_cpu(&self) -> bool {
        let is_unknown = |key: &Key| match key {
            Key::Row(Subject::Account { activity, .. } | Subject::Process { activity, .. }) => {
                **activity == *segment::sampling::UNKNOWN
            }
            _ => false,
        };
        self.lines.keys().any(is_unknown)
    }

    /// Adds up what a recording of samples cannot distinguish, so that the two can be compared.
    pub fn merge_phases(&mut self) {
        let mut merged: HashMap<Key, Vec<StatTotals>> = HashMap::new();
        for (key, line) in std::mem::take(&mut self.lines) {
            let sums = merged.entry(key.of_samples()).or_default();
            if sums.is_empty() {
                *sums = line;
            } else {
                sums.iter_mut().zip(line).for_each(|(sum, more)| sum.add(more));
            }
        }
        self.lines = merged;
    }

    /// One figure in each compared column.
    pub fn line(&self, key: &Key, figure: fn(&StatTotals) -> u64) -> Vec<f64> {
        match self.lines.get(key) {
            Some(line) => line.iter().map(|amount| figure(amount) as f64).collect(),
            None => vec![0.0; self.kept.len()],
        }
    }

    /// The count over all compared columns.
    pub fn count(&self, key: &Key) -> u64 {
        self.lines.get(key).map_or(0, |line| line.iter().map(|amount| amount.count).sum())
    }

    /// Whether there are figures of client sessions.
    pub fn has_clients(&self) -> bool {
        let of_clients = |key: &Key| match key {
            Key::Unit(_) | Key::Row(Subject::Account { .. }) => true,
            Key::Row(_) => false,
        };
        self.lines.keys().any(of_clients)
    }

    /// Compared time, seconds.
    pub fn seconds(&self) -> f64 {
        self.column_seconds().iter().sum()
    }

    /// The recorded seconds of each compared column.
    pub fn column_seconds(&self) -> Vec<f64> {
        self.kept.iter().map(|at| self.columns.states[*at].covered_ns as f64 * 1e-9).collect()
    }

    /// Recorded time that the compared statements cover, seconds.
    pub fn statement_seconds(&self) -> Option<f64> {
        Some(self.statements.as_ref()?.seconds.iter().sum())
    }

    /// Recorded time, seconds.
    pub fn recorded_seconds(&self) -> f64 {
        self.columns.states.iter().map(|state| state.covered_ns).sum::<u64>() as f64 * 1e-9
    }

    /// Whether something was measured throughout the compared columns; `looked` returns how long it was measured
    /// in a column, ns.
    pub fn has(&self, looked: fn(&State) -> u64) -> bool {
        // The times come from two clock readings that are slightly apart.
        let whole = |at: &usize| {
            let state = self.columns.states[*at];
            looked(&state) as f64 >= state.covered_ns as f64 * 0.999
        };
        self.kept.iter().all(whole)
    }

    /// Whether something was measured in any compared column.
    pub fn has_some(&self, looked: fn(&State) -> u64) -> bool {
        self.kept.iter().any(|at| looked(&self.columns.states[*at]) > 0)
    }
}

/// The mean distance of samples, seconds; `None`: it was measured.
fn sampled(recording: &Recording, range: Range, heads: &[FrameRow]) -> Result<Option<f64>, Error> {
    if heads.iter().all(|head| *head.source != *"sampled") {
        return Ok(None);
    }
    let sampling = Interval::from_frame(&recording.sum(range)?).sampling;
    Ok(sampling.map(|sampling| 1.0 / sampling.per_second))
}

fn lines(
    recording: &Recording,
    range: Range,
    columns: &Columns,
    kept: &[usize],
) -> Result<HashMap<Key, Vec<StatTotals>>, Error> {
    let mut numbers: HashMap<Key, usize> = HashMap::new();
    for statistic in recording.sum(range)?.statistics {
        let series = recording::Series { process: statistic.process, stat: statistic.stat };
        if let Some(key) = Key::from_series(&series) {
            let next = numbers.len();
            numbers.entry(key).or_insert(next);
        }
    }
    let grid = recording.grid(range, &columns.bounds_us, numbers.len(), |series| {
        numbers.get(&Key::from_series(series)?).copied()
    })?;
    let line = |number: usize| -> Vec<StatTotals> {
        grid.cells.get(number).map_or_else(Vec::new, |line| {
            kept.iter().filter_map(|at| line.get(*at).copied()).collect()
        })
    };
    Ok(numbers.into_iter().map(|(key, number)| (key, line(number))).collect())
}
