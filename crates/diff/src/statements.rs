// SPDX-License-Identifier: PostgreSQL
//! The statements of one side, in blocks of time.
//!
//! Statements are stored with some intervals only, and cover all intervals since the previous ones
//! ([`recording::Detail`]). A block is one or several of these details, and is divided by the commits and
//! commands of exactly the same intervals.

use std::collections::HashMap;
use std::sync::Arc;

use recording::{Detail, Range, Recording, StatTotals};

use super::call_change::Calls;
use super::comparison::{DiffUnit, Subject};
use super::key::Key;
use error::Error;
use segment::StatementKey;
use view::statements::{self as model, PlanRow, StatementFigures};

/// Maximum number of blocks.
const BLOCKS: usize = 64;

/// The figures of one statement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StatementBlocks {
    /// Server time in each block, seconds.
    pub seconds: Vec<f64>,
    /// Executions in each block.
    pub calls: Vec<f64>,
    /// Their time, seconds.
    pub execution_seconds: Vec<f64>,
    /// Distribution of the executions, over all blocks.
    pub executions: Option<Calls>,
    /// The plan that was recorded last.
    pub plan: Option<Arc<PlanRow>>,
}

/// The statements of a side.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SideStatements {
    /// Recorded time of each block, seconds.
    pub seconds: Vec<f64>,
    /// Commits and commands of clients in each block.
    commits: Vec<f64>,
    commands: Vec<f64>,
    /// The statements.
    pub lines: HashMap<Subject, StatementBlocks>,
}

impl SideStatements {
    /// Number of units in each block.
    pub fn units(&self, per: DiffUnit) -> &[f64] {
        match per {
            DiffUnit::Commit => &self.commits,
            DiffUnit::Command => &self.commands,
            DiffUnit::Second => &self.seconds,
        }
    }
}

/// Reads the statements; `None` if none were recorded.
pub fn read(recording: &Recording, range: Range) -> Result<Option<SideStatements>, Error> {
    let details = compared(recording.details(range)?);
    let Some(whole) = Detail::range(&details) else { return Ok(None) };
    let blocks = blocks(&details);
    let number = blocks.last().map_or(0, |last| last + 1);
    let block_of = |frame: u64| {
        let at = details.partition_point(|detail| detail.last < frame);
        details
            .get(at)
            .filter(|detail| detail.contains(frame))
            .and_then(|_| blocks.get(at).copied())
    };
    let mut all = SideStatements { seconds: vec![0.0; number], ..SideStatements::default() };
    for (detail, block) in details.iter().zip(&blocks) {
        all.seconds[*block] += detail.covered_ns as f64 * 1e-9;
    }
    let units = [DiffUnit::Commit, DiffUnit::Command].map(Key::Unit);
    let unit_of = |series: &recording::Series| {
        let key = Key::from_series(series)?;
        units.iter().position(|unit| *unit == key)
    };
    let grid =
        recording.grid_by(whole, (units.len(), number), unit_of, |row| block_of(row.frame))?;
    let counts = |line: &Vec<StatTotals>| line.iter().map(|totals| totals.count as f64).collect();
    [all.commits, all.commands] = [0, 1].map(|at| grid.cells.get(at).map_or_else(Vec::new, counts));
    // One side may tell them apart, and the other one not.
    let found = recording.statements_of_all_applications(whole, number, block_of)?;
    let Some((rows, series)) = found else { return Ok(None) };
    let plans = PlanRow::recorded(recording.plans(whole)?);
    // Without tally's own statements: how often a recorder polls is not a difference between servers.
    let rows = model::StatementsTable::between(None, &Arc::new(rows)).rows.into_iter();
    for row in rows.filter(|row| !row.own) {
        let key = (row.key.query_id(), row.key.database_id, row.key.user_id, row.toplevel);
        let Some(series) = series.get(&key) else { continue };
        let line = all.lines.entry(what(&row)).or_default();
        let add = |to: &mut Vec<f64>, from: Vec<f64>| {
            to.resize(number, 0.0);
            to.iter_mut().zip(from).for_each(|(sum, one)| *sum += one);
        };
        let seconds = |ns: f64| ns * 1e-9;
        add(&mut line.seconds, series.total_ns.iter().map(|ns| seconds(*ns as f64)).collect());
        add(&mut line.calls, series.calls.iter().map(|n| *n as f64).collect());
        let execution = series.exec_ns.iter().map(|ns| seconds(*ns as f64)).collect();
        add(&mut line.execution_seconds, execution);
        line.executions = calls(&row);
        // The plan that was used last comes first.
        let is_its = |plan: &&PlanRow| {
            StatementKey { application: row.key.application, ..plan.key } == row.key
        };
        line.plan = plans.iter().find(is_its).cloned().map(Arc::new);
    }
    Ok((!all.lines.is_empty()).then_some(all))
}

/// The details to compare: all exact ones or, if there are none, all of them.
fn compared(mut details: Vec<Detail>) -> Vec<Detail> {
    if details.iter().any(|detail| detail.exact) {
        details.retain(|detail| detail.exact);
    }
    details
}

/// The block of each detail. A block has neighbouring details of about the same recorded time; there are at most
/// [`BLOCKS`].
fn blocks(details: &[Detail]) -> Vec<usize> {
    let all: u64 = details.iter().map(|detail| detail.covered_ns).sum();
    let length = all.div_ceil(BLOCKS as u64);
    let (mut block, mut covered) = (0, 0);
    let place = |detail: &Detail| {
        if covered >= length {
            (block, covered) = (block + 1, 0);
        }
        covered += detail.covered_ns;
        block
    };
    let mut blocks: Vec<usize> = details.iter().map(place).collect();
    // A last block that is much shorter than the others would be mistaken for one with little noise.
    if block > 0 && covered < length / 2 {
        blocks.iter_mut().for_each(|block_of| *block_of = (*block_of).min(block - 1));
    }
    blocks
}

/// Its executions; `None` if there were none, or if their times are unknown.
fn calls(row: &StatementFigures) -> Option<Calls> {
    Some(Calls {
        count: row.execution.count,
        mean: row.execution.mean_seconds?,
        deviation: row.execution.stddev_seconds?,
        median: row.quantiles.p50_seconds?,
    })
}

/// Identifies a statement on both sides, whose databases have different OIDs.
fn what(row: &StatementFigures) -> Subject {
    let query = match (&row.query, row.queryid) {
        (Some(text), _) if !row.query_cut => text.clone(),
        (_, Some(id)) => format!("{id}: {}", row.text()).into(),
        (_, None) => row.text().into(),
    };
    let (database, user) = (row.database.clone(), row.user.clone());
    Subject::Statement { query, database, user, toplevel: row.toplevel }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detail(after: u64, last: u64, exact: bool) -> Detail {
        let us = |frame: u64| frame as i64 * 1_000_000;
        let covered_ns = (last - after) * 1_000_000_000;
        let (from_us, to_us) = (us(after), us(last));
        Detail { after, last, from_us, to_us, covered_ns, busy_ns: 0, exact }
    }

    #[test]
    fn details_are_blocks_and_neighbours_are_joined_if_they_are_many() {
        let of = |lengths: &[u64]| -> Vec<usize> {
            let mut at = 0;
            let mut next = |length: &u64| {
                at += length;
                detail(at - length, at, true)
            };
            blocks(&lengths.iter().map(&mut next).collect::<Vec<Detail>>())
        };
        assert_eq!(of(&[1, 1, 2, 10]), [0, 1, 2, 3]);
        assert_eq!(of(&[10; 64]).last(), Some(&63));
        assert_eq!(of(&[10; 65])[..4], [0, 0, 1, 1]);
        // 32 details of a second, 24 of two, and 52 of ten: blocks of ten seconds and more.
        let many = [vec![1; 32], vec![2; 24], vec![10; 52]].concat();
        assert_eq!(of(&many)[..12], [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert!(of(&vec![1; 1000]).last().is_some_and(|last| *last < BLOCKS));
        assert_eq!(of(&[]), [0; 0]);
        let mut short: Vec<Detail> = (0..20).map(|at| detail(at, at + 1, true)).collect();
        short[19].covered_ns /= 20;
        assert_eq!(blocks(&short)[18..], [18, 18]);
    }

    #[test]
    fn details_that_are_not_exact_are_left_out_unless_all_are() {
        let all = |exact: [bool; 3]| {
            let details = [(0, 1), (1, 3), (3, 4)];
            details.into_iter().zip(exact).map(|((a, b), exact)| detail(a, b, exact)).collect()
        };
        let kept = |exact| {
            compared(all(exact)).iter().map(|statement| statement.last).collect::<Vec<u64>>()
        };
        assert_eq!(kept([true, false, true]), [1, 4]);
        assert_eq!(kept([false; 3]), [1, 3, 4]);
    }
}
