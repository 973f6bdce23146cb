// SPDX-License-Identifier: PostgreSQL
//! One side of a comparison, read: what its sessions did, column by column.

use std::collections::HashMap;

use recording::{FrameRow, Range, Recording, StatTotals};

use super::columns::{Columns, State};
use super::key::Key;
use super::machine::Processors;
use super::place::Place;
use super::statements::{self, Statements};
use error::Error;

/// All of it.
#[derive(Debug)]
pub struct Side {
    /// "A" or "B".
    pub name: &'static str,
    /// Where it lies.
    pub recording: Recording,
    /// The time that is compared.
    pub range: Range,
    /// Its intervals.
    pub heads: Vec<FrameRow>,
    /// Its time, cut.
    pub columns: Columns,
    /// Those columns that are compared.
    pub kept: Vec<usize>,
    /// Whether these are exact.
    pub exact: bool,
    /// What else the machine did.
    pub processors: Option<Processors>,
    /// What was done in them.
    pub lines: HashMap<Key, Vec<StatTotals>>,
    /// The statements; `None`: none were recorded.
    pub statements: Option<Statements>,
}

impl Side {
    /// Read it.
    pub fn read(name: &'static str, place: &Place, host: Option<&str>) -> Result<Side, Error> {
        let recording = Recording::open(&place.directory, host)?;
        let end = recording.range().to_us as f64 * 1e-6;
        let us =
            |edge: Option<report::Edge>| edge.map(|edge| (edge.resolve(end) * 1e6).round() as i64);
        let range = recording.clip(us(place.from), us(place.to))?;
        let heads = recording.frame_rows(range)?;
        let columns = Columns::of(range, &heads, recording.about().detail_ns);
        let (kept, exact) = columns.kept();
        if kept.is_empty() {
            return Err(Error::Failed(format!(
                "{name}: nothing was recorded in {} from {} to {}; give another time",
                place.directory.display(),
                recording::format_utc(range.from_us),
                recording::format_utc(range.to_us)
            )));
        }
        let processors = Processors::of(&heads, &recording.kernel(range)?);
        let lines = lines(&recording, range, &columns, &kept)?;
        let statements = statements::read(&recording, &columns, &kept)?;
        Ok(Side {
            name,
            recording,
            range,
            heads,
            columns,
            kept,
            exact,
            processors,
            lines,
            statements,
        })
    }

    /// A line's figure in each column that is compared.
    pub fn line(&self, key: &Key, figure: fn(&StatTotals) -> u64) -> Vec<f64> {
        match self.lines.get(key) {
            Some(line) => line.iter().map(|amount| figure(amount) as f64).collect(),
            None => vec![0.0; self.kept.len()],
        }
    }

    /// How often it happened in all that is compared.
    pub fn count(&self, key: &Key) -> u64 {
        self.lines.get(key).map_or(0, |line| line.iter().map(|amount| amount.count).sum())
    }

    /// The length of what is compared, seconds.
    pub fn seconds(&self) -> f64 {
        let ns = |at: &usize| self.columns.states[*at].covered_ns;
        self.kept.iter().map(ns).sum::<u64>() as f64 * 1e-9
    }

    /// The length of what was recorded, seconds.
    pub fn recorded_seconds(&self) -> f64 {
        self.columns.states.iter().map(|state| state.covered_ns).sum::<u64>() as f64 * 1e-9
    }

    /// Whether this was looked at in all that is compared: `looked` tells for how long in a column.
    pub fn has(&self, looked: fn(&State) -> u64) -> bool {
        // The level is told by two clock readings a little apart.
        let whole = |at: &usize| {
            let state = self.columns.states[*at];
            looked(&state) as f64 >= state.covered_ns as f64 * 0.999
        };
        self.kept.iter().all(whole)
    }

    /// Whether it was looked at in any of what is compared.
    pub fn has_some(&self, looked: fn(&State) -> u64) -> bool {
        self.kept.iter().any(|at| looked(&self.columns.states[*at]) > 0)
    }
}

fn lines(
    recording: &Recording,
    range: Range,
    columns: &Columns,
    kept: &[usize],
) -> Result<HashMap<Key, Vec<StatTotals>>, Error> {
    let mut numbers: HashMap<Key, usize> = HashMap::new();
    for it in recording.sum(range)?.statistics {
        let series = recording::Series { process: it.process, stat: it.stat };
        if let Some(key) = Key::of(&series) {
            let next = numbers.len();
            numbers.entry(key).or_insert(next);
        }
    }
    let grid = recording.grid(range, &columns.bounds_us, numbers.len(), |series| {
        numbers.get(&Key::of(series)?).copied()
    })?;
    let line = |number: usize| -> Vec<StatTotals> {
        grid.cells.get(number).map_or_else(Vec::new, |line| {
            kept.iter().filter_map(|at| line.get(*at).copied()).collect()
        })
    };
    Ok(numbers.into_iter().map(|(key, number)| (key, line(number))).collect())
}
