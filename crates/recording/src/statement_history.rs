// SPDX-License-Identifier: PostgreSQL
//! What a few statements did over time: executions, their times, accounts and plans, by block.

use crate::error::Error;
use crate::index::TickRates;
use crate::plan_rows::PlanRow;
use crate::range::Range;
use crate::recorded_statement::RecordedStatementRow;
use crate::recording::Recording;
use crate::rows::{text_key, StatementAccountRow, TextKey};
use crate::statement;
use crate::statement_keys::{KeyCells, KEY};
use crate::sum::buckets_of;
use crate::table::{columns, Cell};
use segment::Histogram;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The history of a statement, of all applications together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StatementHistory {
    /// Executions without an error.
    pub calls: Vec<u64>,
    /// Total time of these executions, ns.
    pub exec_ns: Vec<u64>,
    /// The 99th percentile of their times, within 6.25 %, seconds; `None`: none ended.
    pub p99_seconds: Vec<Option<f64>>,
    /// Time that the server worked for the statement by account, ns.
    pub accounts: BTreeMap<Arc<str>, Vec<i64>>,
    /// Noted executions by plan.
    pub plans: BTreeMap<i64, Vec<u64>>,
}

/// The sums of a statement before its percentiles are computed.
#[derive(Debug, Clone)]
struct Sums {
    history: StatementHistory,
    histograms: Vec<Histogram>,
}

impl Recording {
    /// The histories of these statements in a range. `block_of` returns the block of the details that came with an interval, if
    /// they have one.
    pub fn statement_histories(
        &self,
        range: Range,
        wanted: &[TextKey],
        blocks: usize,
        block_of: impl Fn(u64) -> Option<usize>,
    ) -> Result<HashMap<TextKey, StatementHistory>, Error> {
        let intervals = self.interval_rates(range)?;
        let rate = intervals.last().map_or(1e9, |last| last.ticks_per_second);
        let rates = TickRates::of_intervals(&intervals);
        let empty = Sums {
            history: StatementHistory {
                calls: vec![0; blocks],
                exec_ns: vec![0; blocks],
                ..StatementHistory::default()
            },
            histograms: vec![Histogram::new(); blocks],
        };
        let mut all: HashMap<TextKey, Sums> =
            wanted.iter().map(|key| (*key, empty.clone())).collect();
        let block =
            |frame, time_us| block_of(frame).filter(|at| range.contains(time_us) && *at < blocks);

        let add = |at: usize,
                   sums: &mut Sums,
                   frame,
                   [calls, exec_ns]: [u64; 2],
                   histogram: Histogram| {
            let history = &mut sums.history;
            history.calls[at] = history.calls[at].saturating_add(calls);
            history.exec_ns[at] = history.exec_ns[at].saturating_add(exec_ns);
            let ratio = rate / rates.ticks_per_second(frame);
            if (ratio - 1.0).abs() > statement::NEARLY {
                sums.histograms[at].merge(&histogram.rescaled(ratio));
            } else {
                sums.histograms[at].merge(&histogram);
            }
        };
        let names: Vec<&str> =
            KEY.into_iter().chain(["calls", "exec_ns", "buckets", "counts"]).collect();
        let read = columns::<RecordedStatementRow>(&names);
        let journal = self.each_columns::<RecordedStatementRow>(range, &read, |columns| {
            let keys = KeyCells::new(columns);
            let [frames, calls, exec_ns] =
                ["frame", "calls", "exec_ns"].map(|name| columns.find(name));
            let [buckets, counts] = ["buckets", "counts"].map(|name| columns.lists(name));
            for (row, time_us) in columns.longs("time").iter().enumerate() {
                // Few statements are wanted.
                let Some(sums) = all.get_mut(&text_key(keys.key(row))) else { continue };
                let frame = Cell::get(frames, row);
                let Some(at) = block(frame, *time_us) else { continue };
                let histogram = Histogram::of_buckets(buckets_of(buckets, counts, row));
                let figures = [calls, exec_ns].map(|cells| Cell::get(cells, row));
                add(at, sums, frame, figures, histogram);
            }
        })?;
        for row in &journal.statements {
            let Some(sums) = all.get_mut(&text_key(row.key())) else { continue };
            let Some(at) = block(row.frame, row.time_us) else { continue };
            let histogram = statement::histogram(&row.buckets, &row.counts);
            add(at, sums, row.frame, [row.calls, row.exec_ns], histogram);
        }

        let add = |at: usize, sums: &mut Sums, account: &Arc<str>, total_ns: i64| {
            let known = match sums.history.accounts.get_mut(account) {
                Some(known) => known,
                None => {
                    sums.history.accounts.entry(account.clone()).or_insert_with(|| vec![0; blocks])
                }
            };
            known[at] = known[at].saturating_add(total_ns);
        };
        let names: Vec<&str> = KEY.into_iter().chain(["account", "total_ns"]).collect();
        let read = columns::<StatementAccountRow>(&names);
        let journal = self.each_columns::<StatementAccountRow>(range, &read, |columns| {
            let keys = KeyCells::new(columns);
            let [frames, accounts, totals] =
                ["frame", "account", "total_ns"].map(|name| columns.find(name));
            for (row, time_us) in columns.longs("time").iter().enumerate() {
                let Some(sums) = all.get_mut(&text_key(keys.key(row))) else { continue };
                let Some(at) = block(Cell::get(frames, row), *time_us) else { continue };
                add(at, sums, &Cell::get(accounts, row), Cell::get(totals, row));
            }
        })?;
        for row in &journal.statement_accounts {
            let Some(sums) = all.get_mut(&text_key(row.key())) else { continue };
            let Some(at) = block(row.frame, row.time_us) else { continue };
            add(at, sums, &row.account, row.total_ns);
        }

        self.each_row(range, |row: PlanRow| {
            let (Some(at), Some(sums)) =
                (block(row.frame, row.time_us), all.get_mut(&text_key(row.statement())))
            else {
                return;
            };
            let known = sums.history.plans.entry(row.planid);
            let sum = &mut known.or_insert_with(|| vec![0; blocks])[at];
            *sum = sum.saturating_add(row.noted);
        })?;

        let p99 =
            |histogram: &Histogram| Some(histogram.quantile(0.99, 0, u64::MAX)? as f64 / rate);
        Ok(all
            .into_iter()
            .map(|(key, sums)| {
                let p99_seconds = sums.histograms.iter().map(p99).collect();
                (key, StatementHistory { p99_seconds, ..sums.history })
            })
            .collect())
    }
}
