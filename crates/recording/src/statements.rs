// SPDX-License-Identifier: PostgreSQL
//! Sums of statements over a range, and their executions over time.

use crate::error::Error;
use crate::index::clock_kind;
use crate::range::Range;
use crate::recorded_statement::RecordedStatementRow;
use crate::recording::Recording;
use crate::rollup;
use crate::rows::{text_key, RecordedStatementKey, StatementAccountRow, TextKey, TextRow};
use crate::statement;
use crate::table::{columns, Table};
use segment::interval::Interval;
use segment::statements::StatementRecord;
use segment::{Application, Clock, Producer, StatementsReading};
use std::collections::HashMap;

/// Texts of statements by queryid, database, user and toplevel.
pub type StatementTexts = HashMap<TextKey, TextRow>;

/// The figures of a statement over time, by block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatementSeries {
    /// Executions without an error.
    pub calls: Vec<u64>,
    /// Total time of these executions, ns.
    pub exec_ns: Vec<u64>,
    /// Time that the server worked for the statement: parse, plan, execute, commit; ns.
    pub total_ns: Vec<i64>,
}

impl StatementSeries {
    fn with_blocks(blocks: usize) -> StatementSeries {
        StatementSeries {
            calls: vec![0; blocks],
            exec_ns: vec![0; blocks],
            total_ns: vec![0; blocks],
        }
    }
}

/// Convert a row's buckets to the ticks of another clock.
fn rebucket(row: &mut RecordedStatementRow, ratio: f64) {
    if (ratio - 1.0).abs() < statement::NEARLY {
        return;
    }
    let histogram = statement::histogram(&row.buckets, &row.counts);
    (row.buckets, row.counts) =
        histogram.rescaled(ratio).buckets().map(|(bucket, n)| (bucket as u64, n)).unzip();
}

impl Recording {
    /// The statements of a range, as if a segment had been created at its start; `None`: not
    /// recorded.
    pub fn statements(&self, range: Range) -> Result<Option<StatementsReading>, Error> {
        self.statements_by(range, |key| key)
    }

    /// The same, summed over applications, whether they were counted separately or not.
    pub fn statements_of_all_applications(
        &self,
        range: Range,
    ) -> Result<Option<StatementsReading>, Error> {
        self.statements_by(range, |key| (key.0, key.1, key.2, key.3, Application::default()))
    }

    /// The same by these keys.
    fn statements_by(
        &self,
        range: Range,
        key: impl Fn(RecordedStatementKey) -> RecordedStatementKey,
    ) -> Result<Option<StatementsReading>, Error> {
        let index = self.index(range)?;
        let Some(last) = index.frames.last() else { return Ok(None) };
        let rate = index.ticks_per_second(last.frame);
        let mut sums: HashMap<RecordedStatementKey, RecordedStatementRow> = HashMap::new();
        self.each_row(range, |mut row: RecordedStatementRow| {
            let own = index.ticks_per_second(row.frame);
            rebucket(&mut row, rate / own);
            rollup::total(&mut sums, key(row.key()), row);
        })?;
        let mut accounts: HashMap<RecordedStatementKey, Vec<StatementAccountRow>> = HashMap::new();
        self.each_row(range, |row: StatementAccountRow| {
            let known = accounts.entry(key(row.key())).or_default();
            match known.iter_mut().find(|sum| sum.account == row.account) {
                Some(sum) => sum.add(row),
                None => known.push(row),
            }
        })?;
        if sums.is_empty() && accounts.is_empty() {
            return Ok(None);
        }
        let texts = self.statement_texts(range)?;
        let record = |(key, row)| (key, statement::record_of(key, &row, rate));
        let mut records: HashMap<RecordedStatementKey, StatementRecord> =
            sums.into_iter().map(record).collect();
        for (key, rows) in accounts {
            let record = records.entry(key).or_insert_with(|| statement::empty(key));
            record.parts = rows.iter().map(|row| statement::account_of(row, rate)).collect();
        }
        for (key, record) in &mut records {
            record.text = texts.get(&text_key(*key)).map(statement::text_of);
        }
        let kind = clock_kind(index.servers.get(&last.server));
        let realtime_ns = u64::try_from(last.time_us).unwrap_or(0).saturating_mul(1000);
        let records = records.into_values().collect();
        let reading =
            StatementsReading::of_records(realtime_ns, Clock::recorded(kind, rate), records);
        // If a part was sampled, the whole is an estimate, from the samples that were taken: a budget makes them fewer.
        let is_sampled = index.frames.iter().any(|frame| {
            let server = index.servers.get(&frame.server);
            server.is_some_and(|run| Producer::from_text(&run.producer) == Producer::Sampler)
        });
        let reading = match is_sampled {
            true => {
                let sampling = Interval::from_frame(&self.sum(range)?).sampling;
                reading.with_samples(sampling.map(|sampling| 1.0 / sampling.per_second))
            }
            false => reading,
        };
        let reading = reading.with_slots(self.calls_of_slots(range)?);
        // A recording of an earlier version does not have it.
        let Some(table) = index.frames.iter().rev().find(|frame| frame.statements_capacity > 0)
        else {
            return Ok(Some(reading));
        };
        let evicted = index.frames.iter().map(|frame| frame.statements_evicted);
        let evicted = evicted.fold(0, u64::saturating_add);
        let [kept, capacity] = [table.statements_kept, table.statements_capacity]
            .map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        Ok(Some(reading.with_table(kept, capacity, evicted)))
    }

    /// Statements of all applications together over time, in one pass. `block_of` returns the block of the details that
    /// came with an interval, if they have one.
    pub fn statement_series(
        &self,
        range: Range,
        blocks: usize,
        block_of: impl Fn(u64) -> Option<usize>,
    ) -> Result<HashMap<TextKey, StatementSeries>, Error> {
        let mut all: HashMap<TextKey, StatementSeries> = HashMap::new();
        const KEY: [&str; 6] = ["frame", "time", "queryid", "database_id", "user_id", "toplevel"];
        macro_rules! add {
            ($row:ident in $rows:ident; $($column:ident to $field:ident),*) => {
                let mut add = |row: &$row| {
                    let Some(at) = block_of(row.frame).filter(|_| range.contains(row.time_us)) else {
                        return;
                    };
                    let series = all.entry(text_key(row.key())).or_insert_with(|| StatementSeries::with_blocks(blocks));
                    $(if let Some(sum) = series.$field.get_mut(at) {
                        *sum = sum.saturating_add(row.$column);
                    })*
                };
                let names: Vec<&str> = KEY.into_iter().chain([$(stringify!($column)),*]).collect();
                let wanted = columns::<$row>(&names);
                let journal = self.each_columns::<$row>(range, &wanted, |columns| {
                    $row::load(columns).iter().for_each(&mut add);
                })?;
                journal.$rows.iter().for_each(add);
            };
        }
        add! { RecordedStatementRow in statements; calls to calls, exec_ns to exec_ns }
        add! { StatementAccountRow in statement_accounts; total_ns to total_ns }
        Ok(all)
    }

    /// The latest texts of statements. Texts are written once a day, perhaps hours before the range.
    pub fn statement_texts(&self, range: Range) -> Result<StatementTexts, Error> {
        let day = 86_400_000_000;
        let days = Range {
            from_us: range.from_us.saturating_sub(day),
            to_us: range.to_us.saturating_add(day),
        };
        let rows = self.rows::<TextRow>(days)?;
        Ok(rows.into_iter().map(|row| (row.key(), row)).collect())
    }
}
