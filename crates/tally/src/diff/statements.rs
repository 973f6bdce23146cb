// SPDX-License-Identifier: PostgreSQL
//! The statements of one side, in blocks of time.

use std::collections::HashMap;
use std::ops::Range as Span;
use std::sync::Arc;

use recording::{Range, Recording};

use super::calls::Calls;
use super::columns::Columns;
use super::comparison::What;
use error::Error;
use view::statements::{self as model, PlanRow};

/// Max. number of blocks; each is read separately.
const BLOCKS: usize = 32;

/// The time of a statement in each block.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Line {
    /// Server time in each block, seconds.
    pub seconds: Vec<f64>,
    /// Total executions.
    pub calls: u64,
    /// Their times, over the whole recording.
    pub executions: Option<Calls>,
    /// The plan that was noted last.
    pub plan: Option<Arc<PlanRow>>,
}

/// The statements of a side.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Statements {
    /// The kept columns of each block.
    pub blocks: Vec<Span<usize>>,
    /// The statements.
    pub lines: HashMap<What, Line>,
}

/// Reads the statements; `None` if none were recorded, or no block is complete.
pub fn read(
    recording: &Recording,
    columns: &Columns,
    kept: &[usize],
) -> Result<Option<Statements>, Error> {
    let mut all = Statements::default();
    let begin = columns.bounds_us.first().copied().unwrap_or(0);
    let late = if begin > recording.range().from_us { columns.detail_us / 2 } else { 0 };
    let spans = spans(columns, kept);
    let blocks = spans.len();
    for (block, span) in spans.into_iter().enumerate() {
        let (Some(first), Some(last)) = (kept.get(span.start), kept.get(span.end - 1)) else {
            continue;
        };
        all.blocks.push(span);
        let Some(read) = recording.statements(readings(columns, late, *first, *last))? else {
            continue;
        };
        for row in others(read) {
            let line = all.lines.entry(what(&row)).or_default();
            line.seconds.resize(blocks, 0.0);
            line.seconds[block] += row.seconds;
            line.calls += row.calls;
        }
    }
    let (Some(first), Some(last)) = (kept.first(), kept.last()) else { return Ok(None) };
    let whole = readings(columns, late, *first, *last);
    if let Some(read) = recording.statements(whole)? {
        let plans = PlanRow::recorded(recording.plans(whole)?);
        for row in others(read) {
            let executions = calls(&row);
            // The one used last comes first.
            let plan = plans.iter().find(|plan| plan.key == row.key).cloned().map(Arc::new);
            all.lines.entry(what(&row)).and_modify(|line| {
                line.executions = executions;
                line.plan = plan;
            });
        }
    }
    Ok((!all.lines.is_empty()).then_some(all))
}

/// What a reading has, without tally's own statements: how often a recorder asks is no difference of servers.
fn others(read: segment::Statements) -> impl Iterator<Item = model::StatementRow> {
    model::Statements::between(None, &Arc::new(read)).rows.into_iter().filter(|row| !row.own)
}

/// The readings of statements that belong to these columns. From the recording's beginning on, they end with a
/// block (`late` is 0). A reading covers the time before it, and a part of a recording may begin at any time between
/// two: a reading belongs to it if most of what it covers does, so that as many readings as blocks are compared.
fn readings(columns: &Columns, late: i64, first: usize, last: usize) -> Range {
    Range {
        from_us: columns.bounds_us[first].saturating_add(late),
        to_us: columns.bounds_us[last + 1].saturating_add(late),
    }
}

/// Blocks: runs of adjacent kept columns that start and end with a reading of statements.
fn spans(columns: &Columns, kept: &[usize]) -> Vec<Span<usize>> {
    let each = columns.per_detail;
    // As many details per block as needed for at most [`BLOCKS`] blocks.
    let details = columns.states.len().div_ceil(each).div_ceil(BLOCKS).max(1);
    let width = details * each;
    let mut spans = Vec::new();
    for first in (0..columns.states.len()).step_by(width) {
        let end = (first + width).min(columns.states.len());
        // The last block may be shorter, but not shorter than a detail.
        if end - first < each && first > 0 {
            continue;
        }
        let from = kept.partition_point(|at| *at < first);
        let to = kept.partition_point(|at| *at < end);
        if to - from == end - first {
            spans.push(from..to);
        }
    }
    spans
}

/// Its executions; `None`: there were none, or their times are not known.
fn calls(row: &model::StatementRow) -> Option<Calls> {
    Some(Calls {
        count: row.execution.count,
        mean: row.execution.mean_seconds?,
        deviation: row.execution.stddev_seconds?,
        median: row.quantiles.p50_seconds?,
    })
}

/// Identifies a statement on both sides, whose databases have different OIDs.
fn what(row: &model::StatementRow) -> What {
    let query = match (&row.query, row.queryid) {
        (Some(text), _) if !row.query_cut => text.clone(),
        (_, Some(id)) => format!("{id}: {}", row.text()).into(),
        (_, None) => row.text().into(),
    };
    let (database, user) = (row.database.clone(), row.user.clone());
    What::Statement { query, database, user, toplevel: row.toplevel }
}

#[cfg(test)]
mod tests {
    use super::super::columns::State;
    use super::*;

    #[test]
    fn blocks_consist_of_whole_details_without_left_out_columns() {
        let columns = |n: usize, per_detail| Columns {
            bounds_us: (0..=n as i64).collect(),
            per_detail,
            detail_us: per_detail as i64,
            states: vec![State::default(); n],
        };
        let all: Vec<usize> = (0..20).collect();
        assert_eq!(spans(&columns(20, 10), &all), [0..10, 10..20]);
        assert_eq!(spans(&columns(13, 5), &all[..13]), [0..5, 5..10]);
        let without_three: Vec<usize> = (0..20).filter(|at| *at != 3).collect();
        assert_eq!(spans(&columns(20, 10), &without_three), vec![9..19; 1]);
        let many: Vec<usize> = (0..1000).collect();
        assert_eq!(spans(&columns(1000, 1), &many).len(), 32);
    }
}
