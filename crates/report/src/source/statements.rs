// SPDX-License-Identifier: PostgreSQL
//! The statements of a recording over time, by details.

use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};

use recording::{Detail, Range, Recording, StatementSeries};
use segment::directory::{Stat, StatKind};
use segment::WaitClass;
use view::document::{Axis, Histories, PlanTimes, Ranking, StatementHistory};
use view::statements::StatementsTable;

use super::seconds;
use crate::statement_id::{statement_id, statement_key, StatementId};
use crate::sums::{share_key, StatementParts, StatementSums, POINTS};
use crate::{histories, rankings};
use error::Error;

/// Number of statements, those with the most time, whose time is read by class of activity.
const BY_CLASS: usize = 200;

/// Blocks of neighbouring details, and the times between them in which none were recorded.
struct Blocks {
    /// The point of each detail.
    points: Vec<usize>,
    axis: Axis,
}

impl Blocks {
    /// At most `most` points, besides those of gaps.
    fn new(details: &[Detail], most: usize) -> Blocks {
        let each = details.len().div_ceil(most).max(1);
        let mut blocks = Blocks { points: Vec::new(), axis: Axis::default() };
        let mut end: Option<i64> = None;
        for (at, detail) in details.iter().enumerate() {
            let gap = end.filter(|end| detail.from_us > *end);
            if let Some(gap) = gap {
                blocks.begin(gap);
            }
            if at % each == 0 || gap.is_some() {
                blocks.begin(detail.from_us);
            }
            let last = blocks.len().saturating_sub(1);
            if let Some(covered) = blocks.axis.seconds.get_mut(last) {
                *covered += detail.covered_ns as f64 * 1e-9;
            }
            blocks.points.push(last);
            end = Some(detail.to_us);
        }
        blocks
    }

    fn begin(&mut self, at_us: i64) {
        self.axis.time.push(seconds(at_us));
        self.axis.seconds.push(0.0);
    }

    /// Number of points.
    fn len(&self) -> usize {
        self.axis.time.len()
    }
}

/// Finds the detail of an interval.
struct DetailFinder<'d> {
    details: &'d [Detail],
    /// The last one found: the rows of a statement are in the order of their details.
    last: Cell<usize>,
}

impl DetailFinder<'_> {
    fn position(&self, frame: u64) -> Option<usize> {
        let has = |at: usize| self.details.get(at).is_some_and(|detail| detail.contains(frame));
        let last = self.last.get();
        let near = [last + 1, last].into_iter().find(|at| has(*at));
        let at = near.or_else(|| {
            let at = self.details.partition_point(|detail| detail.last < frame);
            has(at).then_some(at)
        })?;
        self.last.set(at);
        Some(at)
    }
}

/// The statements of a recording, and what they did over time.
pub struct RecordedStatements {
    pub table: StatementsTable,
    /// The statements of clients over time.
    pub ranking: Ranking,
    /// The sums of all statements.
    pub parts: StatementParts,
    /// What the statements with the most time did.
    pub histories: Histories,
}

/// Reads the statements of these details; `None`: none were recorded.
pub fn read(
    recording: &Recording,
    range: Range,
    details: &[Detail],
) -> Result<Option<RecordedStatements>, Error> {
    let finder = DetailFinder { details, last: Cell::new(0) };
    let [blocks, of_histories] = [POINTS, histories::POINTS].map(|most| Blocks::new(details, most));
    // The points of both axes, one after the other.
    let first = blocks.len();
    let points_of = |frame: u64| {
        let at = finder.position(frame);
        let points = at.map(|at| [blocks.points[at], first + of_histories.points[at]]);
        points.into_iter().flatten()
    };
    let number = first + of_histories.len();
    let Some((reading, series)) = recording.statements_over_time(range, number, points_of)? else {
        return Ok(None);
    };
    let table = StatementsTable::between(None, &std::sync::Arc::new(reading));
    let times = |id: &StatementId| Some(in_seconds(&series.get(id)?.total_ns[..first]));
    let ranking = rankings::statements(blocks.axis.clone(), &table, times);
    let by_class: HashSet<StatementId> =
        table.rows.iter().take(BY_CLASS).map(|row| statement_id(&row.key)).collect();
    let sums = series.iter().map(|(id, series)| {
        let sums = StatementSums {
            seconds: in_seconds(&series.total_ns[..first]),
            calls: series.calls[..first].iter().map(|calls| *calls as f64).collect(),
            exec_seconds: series.exec_ns[..first].iter().map(|ns| *ns as f64 * 1e-9).collect(),
            classes: match by_class.contains(id) {
                true => by_class_of(series, first),
                false => BTreeMap::new(),
            },
        };
        (*id, sums)
    });
    let parts = StatementParts { axis: blocks.axis, sums: sums.collect() };
    let point_of = |frame: u64| Some(of_histories.points[finder.position(frame)?]);
    let wanted = histories::most(&table);
    let mut known = recording.statement_histories(range, &wanted, of_histories.len(), point_of)?;
    let none = StatementSeries::with_blocks(number);
    let statements = wanted.iter().filter_map(|id| {
        Some(history(id, series.get(id).unwrap_or(&none), first, known.remove(id)?))
    });
    let statements = statements.collect();
    let histories = Histories { axis: of_histories.axis, statements };
    Ok(Some(RecordedStatements { table, ranking, parts, histories }))
}

/// The time of a statement by class of activity, in the first points, by the key of its column.
fn by_class_of(series: &StatementSeries, points: usize) -> BTreeMap<&'static str, Vec<f64>> {
    let mut classes: BTreeMap<&'static str, Vec<i64>> = BTreeMap::new();
    for (account, ns) in &series.accounts {
        let sums = classes.entry(share_key(class_of(account))).or_insert_with(|| vec![0; points]);
        sums.iter_mut().zip(ns).for_each(|(sum, ns)| *sum = sum.saturating_add(*ns));
    }
    classes.into_iter().map(|(class, ns)| (class, in_seconds(&ns))).collect()
}

fn class_of(account: &str) -> WaitClass {
    Stat::new(account.to_string(), StatKind::Account, String::new()).class()
}

/// What a statement did in the points from `first` on.
fn history(
    id: &StatementId,
    series: &StatementSeries,
    first: usize,
    known: recording::StatementHistory,
) -> StatementHistory {
    // Added up in the order of their names.
    let accounts: BTreeMap<&str, &[i64]> =
        series.accounts.iter().map(|(account, ns)| (&**account, &ns[first..])).collect();
    let times = accounts.into_iter().flat_map(|(account, ns)| {
        let class = class_of(account);
        ns.iter().enumerate().map(move |(at, ns)| (class, at, *ns as f64 * 1e-9))
    });
    let plan = |(plan, noted): (i64, Vec<u64>)| PlanTimes {
        plan: plan.to_string(),
        noted,
        ..PlanTimes::default()
    };
    StatementHistory {
        statement: statement_key(id),
        classes: histories::by_class(known.p99_seconds.len(), times),
        exec_seconds: series.exec_ns[first..].iter().map(|ns| *ns as f64 * 1e-9).collect(),
        calls: series.calls[first..].to_vec(),
        p99_seconds: known.p99_seconds,
        plans: known.plans.into_iter().map(plan).collect(),
    }
}

fn in_seconds(ns: &[i64]) -> Vec<f64> {
    ns.iter().map(|ns| *ns as f64 * 1e-9).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detail(after: u64, from_us: i64, to_us: i64) -> Detail {
        let covered_ns = (to_us - from_us) as u64 * 1000;
        Detail { after, last: after + 10, from_us, to_us, covered_ns, busy_ns: 0, exact: true }
    }

    #[test]
    fn a_gap_between_details_is_a_point_without_time() {
        let details = [
            detail(0, 0, 10_000_000),
            detail(10, 10_000_000, 20_000_000),
            detail(30, 50_000_000, 60_000_000),
        ];
        let blocks = Blocks::new(&details, POINTS);
        assert_eq!(blocks.axis.time, [0.0, 10.0, 20.0, 50.0]);
        assert_eq!(blocks.axis.seconds, [10.0, 10.0, 0.0, 10.0]);
        let finder = DetailFinder { details: &details, last: Cell::new(0) };
        let point = |frame| Some(blocks.points[finder.position(frame)?]);
        let points = [1, 10, 11, 25, 31, 40, 41, 2].map(point);
        assert_eq!(points, [Some(0), Some(0), Some(1), None, Some(3), Some(3), None, Some(0)]);
    }

    #[test]
    fn many_details_share_points() {
        let details: Vec<Detail> = (0..2 * POINTS as i64)
            .map(|at| detail(10 * at as u64, at * 10_000_000, (at + 1) * 10_000_000))
            .collect();
        let blocks = Blocks::new(&details, POINTS);
        assert_eq!(blocks.axis.time.len(), POINTS);
        assert!(blocks.axis.seconds.iter().all(|covered| (covered - 20.0).abs() < 1e-9));
    }
}
