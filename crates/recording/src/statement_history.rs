// SPDX-License-Identifier: PostgreSQL
//! Percentiles and plans of a few statements over time, by block. The sums of all statements over time are
//! [`crate::StatementSeries`].

use crate::error::Error;
use crate::index::TickRates;
use crate::plan_rows::PlanRow;
use crate::range::Range;
use crate::recorded_statement::RecordedStatementRow;
use crate::recording::Recording;
use crate::rows::{text_key, TextKey};
use crate::statement;
use crate::statement_keys::{KeyCells, KEY};
use crate::statements::add_buckets;
use crate::sum::buckets_of;
use crate::table::{columns, Cell};
use segment::Histogram;
use std::collections::{BTreeMap, HashMap};

/// The history of a statement, of all applications together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StatementHistory {
    /// The 99th percentile of the times of its executions, within 6.25 %, seconds; `None`: none ended.
    pub p99_seconds: Vec<Option<f64>>,
    /// Noted executions by plan.
    pub plans: BTreeMap<i64, Vec<u64>>,
}

/// The sums of a statement before its percentiles are computed.
#[derive(Debug, Clone)]
struct Sums {
    histograms: Vec<Histogram>,
    plans: BTreeMap<i64, Vec<u64>>,
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
        let empty = Sums { histograms: vec![Histogram::new(); blocks], plans: BTreeMap::new() };
        let mut all: HashMap<TextKey, Sums> =
            wanted.iter().map(|key| (*key, empty.clone())).collect();
        let block =
            |frame, time_us| block_of(frame).filter(|at| range.contains(time_us) && *at < blocks);

        let ratio_at = |frame| rate / rates.ticks_per_second(frame);
        let names: Vec<&str> = KEY.into_iter().chain(["buckets", "counts"]).collect();
        let read = columns::<RecordedStatementRow>(&names);
        let journal = self.each_columns::<RecordedStatementRow>(range, &read, |columns| {
            let (keys, frames) = (KeyCells::new(columns), columns.find("frame"));
            let [buckets, counts] = ["buckets", "counts"].map(|name| columns.lists(name));
            for (row, time_us) in columns.longs("time").iter().enumerate() {
                // Few statements are wanted.
                let Some(sums) = all.get_mut(&text_key(keys.key(row))) else { continue };
                let frame = Cell::get(frames, row);
                let Some(at) = block(frame, *time_us) else { continue };
                let buckets = buckets_of(buckets, counts, row);
                add_buckets(&mut sums.histograms[at], ratio_at(frame), buckets);
            }
        })?;
        for row in &journal.statements {
            let Some(sums) = all.get_mut(&text_key(row.key())) else { continue };
            let Some(at) = block(row.frame, row.time_us) else { continue };
            let buckets = statement::buckets(&row.buckets, &row.counts);
            add_buckets(&mut sums.histograms[at], ratio_at(row.frame), buckets);
        }

        self.each_row(range, |row: PlanRow| {
            let (Some(at), Some(sums)) =
                (block(row.frame, row.time_us), all.get_mut(&text_key(row.statement())))
            else {
                return;
            };
            let known = sums.plans.entry(row.planid);
            let sum = &mut known.or_insert_with(|| vec![0; blocks])[at];
            *sum = sum.saturating_add(row.noted);
        })?;

        let p99 =
            |histogram: &Histogram| Some(histogram.quantile(0.99, 0, u64::MAX)? as f64 / rate);
        Ok(all
            .into_iter()
            .map(|(key, sums)| {
                let p99_seconds = sums.histograms.iter().map(p99).collect();
                (key, StatementHistory { p99_seconds, plans: sums.plans })
            })
            .collect())
    }
}
