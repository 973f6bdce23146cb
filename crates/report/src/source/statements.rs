// SPDX-License-Identifier: PostgreSQL
//! The statements of a recording over time, by details.

use recording::{Detail, Recording};
use segment::directory::{Stat, StatKind};
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
struct Blocks<'d> {
    details: &'d [Detail],
    /// The point of each detail.
    points: Vec<usize>,
    axis: Axis,
}

impl Blocks<'_> {
    /// At most `most` points, besides those of gaps.
    fn new(details: &[Detail], most: usize) -> Blocks<'_> {
        let each = details.len().div_ceil(most).max(1);
        let mut blocks = Blocks { details, points: Vec::new(), axis: Axis::default() };
        let mut end: Option<i64> = None;
        for (at, detail) in details.iter().enumerate() {
            let gap = end.filter(|end| detail.from_us > *end);
            if let Some(gap) = gap {
                blocks.begin(gap);
            }
            if at % each == 0 || gap.is_some() {
                blocks.begin(detail.from_us);
            }
            let last = blocks.axis.time.len().saturating_sub(1);
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

    /// The point of an interval.
    fn point(&self, frame: u64) -> Option<usize> {
        let at = self.details.partition_point(|detail| detail.last < frame);
        self.details.get(at).filter(|detail| detail.contains(frame))?;
        self.points.get(at).copied()
    }
}

/// The statements of clients over time, and the sums of all statements.
pub fn over_time(
    recording: &Recording,
    all: &StatementsTable,
    details: &[Detail],
) -> Result<Option<(Ranking, StatementParts)>, Error> {
    let Some(range) = Detail::range(details) else { return Ok(None) };
    let blocks = Blocks::new(details, POINTS);
    let points = blocks.axis.time.len();
    let by_class = all.rows.iter().take(BY_CLASS).map(|row| statement_id(&row.key)).collect();
    let series =
        recording.statement_series(range, (points, &by_class), |frame| blocks.point(frame))?;
    let times = |id: &StatementId| Some(in_seconds(&series.get(id)?.total_ns));
    let ranking = rankings::statements(blocks.axis.clone(), all, times);
    let sums = series.into_iter().map(|(id, series)| {
        let classes = series.classes.iter().map(|(class, ns)| (share_key(*class), in_seconds(ns)));
        let sums = StatementSums {
            seconds: in_seconds(&series.total_ns),
            calls: series.calls.iter().map(|calls| *calls as f64).collect(),
            exec_seconds: series.exec_ns.iter().map(|ns| *ns as f64 * 1e-9).collect(),
            classes: classes.collect(),
        };
        (id, sums)
    });
    let sums = sums.collect();
    Ok(Some((ranking, StatementParts { axis: blocks.axis, sums })))
}

fn in_seconds(ns: &[i64]) -> Vec<f64> {
    ns.iter().map(|ns| *ns as f64 * 1e-9).collect()
}

/// What the statements with the most time did over time.
pub fn histories(
    recording: &Recording,
    all: &StatementsTable,
    details: &[Detail],
) -> Result<Option<Histories>, Error> {
    let Some(range) = Detail::range(details) else { return Ok(None) };
    let blocks = Blocks::new(details, histories::POINTS);
    let points = blocks.axis.time.len();
    let wanted = histories::most(all);
    let mut known =
        recording.statement_histories(range, &wanted, points, |frame| blocks.point(frame))?;
    let seconds = |ns: f64| ns * 1e-9;
    let statements = wanted.iter().filter_map(|id| {
        let history = known.remove(id)?;
        let times = history.accounts.iter().flat_map(|(account, ns)| {
            let class = Stat::new(account.to_string(), StatKind::Account, String::new()).class();
            ns.iter().enumerate().map(move |(at, ns)| (class, at, seconds(*ns as f64)))
        });
        let plan = |(plan, noted): (i64, Vec<u64>)| PlanTimes {
            plan: plan.to_string(),
            noted,
            ..PlanTimes::default()
        };
        Some(StatementHistory {
            statement: statement_key(id),
            classes: histories::by_class(points, times),
            exec_seconds: history.exec_ns.iter().map(|ns| seconds(*ns as f64)).collect(),
            calls: history.calls,
            p99_seconds: history.p99_seconds,
            plans: history.plans.into_iter().map(plan).collect(),
        })
    });
    let statements = statements.collect();
    Ok(Some(Histories { axis: blocks.axis, statements }))
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
        let points = [1, 10, 11, 25, 31, 40, 41].map(|frame| blocks.point(frame));
        assert_eq!(points, [Some(0), Some(0), Some(1), None, Some(3), Some(3), None]);
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
