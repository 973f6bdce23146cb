// SPDX-License-Identifier: PostgreSQL
//! Sums of statements over a range, and their executions over time.

use crate::error::Error;
use crate::index::{clock_kind, TickRates};
use crate::range::Range;
use crate::recorded_statement::RecordedStatementRow;
use crate::recording::Recording;
use crate::rows::{text_key, RecordedStatementKey, StatementAccountRow, TextKey, TextRow};
use crate::statement;
use crate::statement_keys::KeyCells;
use crate::sum::buckets_of;
use crate::table::{AddColumns, Cell, Columns, Table};
use segment::interval::Interval;
use segment::statements::StatementRecord;
use segment::{Application, Clock, Histogram, Producer, StatementsReading};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Texts of statements by queryid, database, user and toplevel.
pub type StatementTexts = HashMap<TextKey, TextRow>;

/// Statements, and of all applications together over time.
pub type StatementsOverTime = (StatementsReading, HashMap<TextKey, StatementSeries>);

/// The figures of a statement over time, by block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatementSeries {
    /// Executions without an error.
    pub calls: Vec<u64>,
    /// Total time of these executions, ns.
    pub exec_ns: Vec<u64>,
    /// Time that the server worked for the statement: parse, plan, execute, commit; ns.
    pub total_ns: Vec<i64>,
    /// The same by account.
    pub accounts: Vec<(Arc<str>, Vec<i64>)>,
}

impl StatementSeries {
    /// Zeros in this number of blocks.
    pub fn with_blocks(blocks: usize) -> StatementSeries {
        StatementSeries {
            calls: vec![0; blocks],
            exec_ns: vec![0; blocks],
            total_ns: vec![0; blocks],
            accounts: Vec::new(),
        }
    }
}

/// The histogram of a row in the ticks of another clock, `ratio` times as many.
pub(crate) fn add_buckets(
    sum: &mut Histogram,
    ratio: f64,
    buckets: impl Iterator<Item = (usize, u64)>,
) {
    if (ratio - 1.0).abs() < statement::NEARLY {
        sum.add_buckets(buckets);
    } else {
        sum.merge(&Histogram::of_buckets(buckets).rescaled(ratio));
    }
}

/// The sums of statements by key, in the order in which they are found.
struct StatementSums<K> {
    /// The key under which the rows of a statement are summed.
    key: K,
    positions: HashMap<RecordedStatementKey, usize>,
    sums: Vec<(RecordedStatementKey, Histogram)>,
    /// The sums without their histograms.
    rows: Vec<RecordedStatementRow>,
    /// The previous row's key and its position: the rows of a statement are adjacent.
    last: Option<(RecordedStatementKey, usize)>,
}

impl<K: Fn(RecordedStatementKey) -> RecordedStatementKey> StatementSums<K> {
    fn new(key: K) -> StatementSums<K> {
        StatementSums {
            key,
            positions: HashMap::new(),
            sums: Vec::new(),
            rows: Vec::new(),
            last: None,
        }
    }

    /// The position of a row's sum; `names` returns the database and the user of the first row.
    fn position(
        &mut self,
        key: RecordedStatementKey,
        names: impl FnOnce() -> [Arc<str>; 2],
    ) -> usize {
        if let Some((_, at)) = self.last.filter(|(last, _)| *last == key) {
            return at;
        }
        let at = match self.positions.entry((self.key)(key)) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => {
                let at = self.rows.len();
                let [database, user] = names();
                self.sums.push((*entry.key(), Histogram::new()));
                self.rows.push(RecordedStatementRow {
                    database,
                    user,
                    ..RecordedStatementRow::default()
                });
                *entry.insert(at)
            }
        };
        self.last = Some((key, at));
        at
    }

    /// Add the rows of a row group that are in a range. `ratio_at` returns how many ticks of the sums are a tick of an
    /// interval. `see` gets the key of each row, its interval, its executions and their time.
    fn add_columns(
        &mut self,
        range: Range,
        ratio_at: impl Fn(u64) -> f64,
        columns: &Columns,
        mut see: impl FnMut(RecordedStatementKey, u64, [u64; 2]),
    ) {
        let (keys, frames) = (KeyCells::new(columns), columns.find("frame"));
        let executions = ["calls", "exec_ns"].map(|name| columns.find(name));
        let names = ["database", "user"].map(|name| columns.find(name));
        let [buckets, counts] = ["buckets", "counts"].map(|name| columns.lists(name));
        let mut places: Vec<(std::ops::Range<usize>, usize)> = Vec::new();
        for (row, time_us) in columns.longs("time").iter().enumerate() {
            if !range.contains(*time_us) {
                continue;
            }
            let (key, frame) = (keys.key(row), Cell::get(frames, row));
            see(key, frame, executions.map(|cells| Cell::get(cells, row)));
            let at = self.position(key, || names.map(|cells| Cell::get(cells, row)));
            match places.last_mut() {
                Some((rows, known)) if (rows.end, *known) == (row, at) => rows.end += 1,
                _ => places.push((row..row + 1, at)),
            }
            add_buckets(&mut self.sums[at].1, ratio_at(frame), buckets_of(buckets, counts, row));
        }
        RecordedStatementRow::add_columns(&mut self.rows, &places, columns);
    }

    fn add(&mut self, ratio: f64, mut row: RecordedStatementRow) {
        let at = self.position(row.key(), || [row.database.clone(), row.user.clone()]);
        let [buckets, counts] = [&mut row.buckets, &mut row.counts].map(std::mem::take);
        add_buckets(&mut self.sums[at].1, ratio, statement::buckets(&buckets, &counts));
        self.rows[at].add(row);
    }

    /// The sums in ticks.
    fn records(self, ticks_per_second: f64) -> BTreeMap<RecordedStatementKey, StatementRecord> {
        let record = |((key, histogram), row)| {
            let mut record = statement::record_of(key, &row, ticks_per_second);
            record.sums.histogram = histogram;
            (key, record)
        };
        self.sums.into_iter().zip(self.rows).map(record).collect()
    }
}

/// The sums of accounts by statement, in the order in which they are found.
struct AccountSums<K> {
    /// The key under which the rows of a statement are summed.
    key: K,
    positions: HashMap<(RecordedStatementKey, Arc<str>), usize>,
    sums: Vec<(RecordedStatementKey, StatementAccountRow)>,
    /// The previous row's key and account, and their position: the rows of an account are adjacent.
    last: Option<(RecordedStatementKey, Arc<str>, usize)>,
}

impl<K: Fn(RecordedStatementKey) -> RecordedStatementKey> AccountSums<K> {
    fn add(&mut self, key: RecordedStatementKey, account: &Arc<str>, count: u64, total_ns: i64) {
        let last = self.last.as_ref().filter(|(last, name, _)| *last == key && name == account);
        let at = match last {
            Some((.., at)) => *at,
            None => {
                let sum_key = (self.key)(key);
                let next = self.sums.len();
                let at = *self.positions.entry((sum_key, account.clone())).or_insert(next);
                if at == next {
                    let account = account.clone();
                    let row = StatementAccountRow { account, ..StatementAccountRow::default() };
                    self.sums.push((sum_key, row));
                }
                self.last = Some((key, account.clone(), at));
                at
            }
        };
        let sum = &mut self.sums[at].1;
        sum.count = sum.count.saturating_add(count);
        sum.total_ns = sum.total_ns.saturating_add(total_ns);
    }
}

/// Statements over time, by the key of their text.
struct StatementSeriesSums<B> {
    blocks: usize,
    /// The blocks of the details that came with an interval.
    blocks_of: B,
    positions: HashMap<TextKey, usize>,
    all: Vec<(TextKey, StatementSeries)>,
    last: Option<(TextKey, usize)>,
    /// The position of the last account among those of its statement: its rows are adjacent.
    last_account: usize,
}

impl<I: IntoIterator<Item = usize>, B: Fn(u64) -> I> StatementSeriesSums<B> {
    fn new(blocks: usize, blocks_of: B) -> StatementSeriesSums<B> {
        StatementSeriesSums {
            blocks,
            blocks_of,
            positions: HashMap::new(),
            all: Vec::new(),
            last: None,
            last_account: 0,
        }
    }

    fn series(&mut self, key: TextKey) -> &mut StatementSeries {
        let at = match self.last.filter(|(last, _)| *last == key) {
            Some((_, at)) => at,
            None => {
                let next = self.all.len();
                let at = *self.positions.entry(key).or_insert(next);
                if at == next {
                    self.all.push((key, StatementSeries::with_blocks(self.blocks)));
                }
                self.last = Some((key, at));
                at
            }
        };
        &mut self.all[at].1
    }

    fn blocks_of(&self, frame: u64) -> impl Iterator<Item = usize> {
        let blocks = self.blocks;
        (self.blocks_of)(frame).into_iter().filter(move |at| *at < blocks)
    }

    fn add_executions(&mut self, key: RecordedStatementKey, frame: u64, [calls, ns]: [u64; 2]) {
        for at in self.blocks_of(frame) {
            let series = self.series(text_key(key));
            series.calls[at] = series.calls[at].saturating_add(calls);
            series.exec_ns[at] = series.exec_ns[at].saturating_add(ns);
        }
    }

    fn add_account(&mut self, key: RecordedStatementKey, frame: u64, name: &Arc<str>, ns: i64) {
        for at in self.blocks_of(frame) {
            let last = self.last_account;
            let series = self.series(text_key(key));
            series.total_ns[at] = series.total_ns[at].saturating_add(ns);
            let is_last = series.accounts.get(last).is_some_and(|(known, _)| known == name);
            let known = match is_last {
                true => Some(last),
                false => series.accounts.iter().position(|(known, _)| known == name),
            };
            let account = known.unwrap_or_else(|| {
                series.accounts.push((name.clone(), vec![0; series.total_ns.len()]));
                series.accounts.len() - 1
            });
            let sum = &mut series.accounts[account].1[at];
            *sum = sum.saturating_add(ns);
            self.last_account = account;
        }
    }
}

impl Recording {
    /// The statements of a range, as if a segment had been created at its start; `None`: not
    /// recorded.
    pub fn statements(&self, range: Range) -> Result<Option<StatementsReading>, Error> {
        Ok(self.statements_over_time(range, 0, |_| None)?.map(|(reading, _)| reading))
    }

    /// The same, and the statements of all applications together over time: `blocks_of` returns the blocks of the details
    /// that came with an interval, from 0 to `blocks` - 1. Each file is read once.
    pub fn statements_over_time<I: IntoIterator<Item = usize>>(
        &self,
        range: Range,
        blocks: usize,
        blocks_of: impl Fn(u64) -> I,
    ) -> Result<Option<StatementsOverTime>, Error> {
        self.statements_by(range, |key| key, StatementSeriesSums::new(blocks, blocks_of))
    }

    /// The same, summed over applications, whether they were counted separately or not.
    pub fn statements_of_all_applications<I: IntoIterator<Item = usize>>(
        &self,
        range: Range,
        blocks: usize,
        blocks_of: impl Fn(u64) -> I,
    ) -> Result<Option<StatementsOverTime>, Error> {
        let key = |key: RecordedStatementKey| (key.0, key.1, key.2, key.3, Application::default());
        self.statements_by(range, key, StatementSeriesSums::new(blocks, blocks_of))
    }

    /// The same by these keys.
    fn statements_by<I: IntoIterator<Item = usize>, B: Fn(u64) -> I>(
        &self,
        range: Range,
        key: impl Fn(RecordedStatementKey) -> RecordedStatementKey + Copy,
        mut series: StatementSeriesSums<B>,
    ) -> Result<Option<StatementsOverTime>, Error> {
        let intervals = self.interval_rates(range)?;
        let Some(last) = intervals.last() else { return Ok(None) };
        let rate = last.ticks_per_second;
        let servers = self.servers()?;
        let run_of = |number| servers.iter().find(|run| run.server == number);
        let kind = clock_kind(run_of(last.server));
        let realtime_ns = u64::try_from(last.time_us).unwrap_or(0).saturating_mul(1000);
        // If a part was sampled, the whole is an estimate, from the samples that were taken: a budget makes them fewer.
        let runs: HashSet<u32> = intervals.iter().map(|interval| interval.server).collect();
        let is_sampled = runs
            .iter()
            .filter_map(|number| run_of(*number))
            .any(|run| Producer::from_text(&run.producer) == Producer::Sampler);
        // A recording of an earlier version does not have it.
        let table = intervals.iter().rev().find(|interval| interval.statements_capacity > 0);
        let table = table.map(|interval| {
            [interval.statements_kept, interval.statements_capacity]
                .map(|count| u32::try_from(count).unwrap_or(u32::MAX))
        });
        let evicted = intervals.iter().map(|interval| interval.statements_evicted);
        let evicted = evicted.fold(0, u64::saturating_add);
        let rates = TickRates::of_intervals(&intervals);
        drop(intervals);
        let ratio_at = |frame| rate / rates.ticks_per_second(frame);
        let mut sums = StatementSums::new(key);
        let all = RecordedStatementRow::columns();
        let journal = self.each_columns::<RecordedStatementRow>(range, &all, |columns| {
            sums.add_columns(range, ratio_at, columns, |key, frame, executions| {
                series.add_executions(key, frame, executions);
            });
        })?;
        for row in journal.statements {
            if range.contains(row.time_us) {
                series.add_executions(row.key(), row.frame, [row.calls, row.exec_ns]);
                sums.add(ratio_at(row.frame), row);
            }
        }
        let mut accounts =
            AccountSums { key, positions: HashMap::new(), sums: Vec::new(), last: None };
        let all = StatementAccountRow::columns();
        let journal = self.each_columns::<StatementAccountRow>(range, &all, |columns| {
            let keys = KeyCells::new(columns);
            let [frames, names, counts, totals] =
                ["frame", "account", "count", "total_ns"].map(|name| columns.find(name));
            for (row, time_us) in columns.longs("time").iter().enumerate() {
                if range.contains(*time_us) {
                    let (count, total_ns) = (Cell::get(counts, row), Cell::get(totals, row));
                    let (key, name) = (keys.key(row), Cell::get(names, row));
                    accounts.add(key, &name, count, total_ns);
                    series.add_account(key, Cell::get(frames, row), &name, total_ns);
                }
            }
        })?;
        for row in journal.statement_accounts {
            if range.contains(row.time_us) {
                accounts.add(row.key(), &row.account, row.count, row.total_ns);
                series.add_account(row.key(), row.frame, &row.account, row.total_ns);
            }
        }
        if sums.sums.is_empty() && accounts.sums.is_empty() {
            return Ok(None);
        }
        let texts = self.statement_texts(range)?;
        let mut records = sums.records(rate);
        for (key, row) in accounts.sums {
            let record = records.entry(key).or_insert_with(|| statement::empty(key));
            record.parts.push(statement::account_of(&row, rate));
        }
        for (key, record) in &mut records {
            record.text = texts.get(&text_key(*key)).map(statement::text_of);
        }
        let records = records.into_values().collect();
        let reading =
            StatementsReading::of_records(realtime_ns, Clock::recorded(kind, rate), records);
        let reading = match is_sampled {
            true => {
                let sampling = Interval::from_frame(&self.sum(range)?).sampling;
                reading.with_samples(sampling.map(|sampling| 1.0 / sampling.per_second))
            }
            false => reading,
        };
        let reading = reading.with_slots(self.calls_of_slots(range)?);
        let reading = match table {
            Some([kept, capacity]) => reading.with_table(kept, capacity, evicted),
            None => reading,
        };
        Ok(Some((reading, series.all.into_iter().collect())))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{read, read_columns, write, Effort};
    use proptest::prelude::*;
    use std::fs::File;

    fn row() -> impl Strategy<Value = RecordedStatementRow> {
        let times = (0u64..3, prop::option::of(1u64..1000), 0.0..1e9f64);
        let buckets = prop::collection::btree_map(0u64..90, 1u64..5, 0..4);
        let rest = (0i64..3, any::<bool>(), -2i64..5, 0u64..2);
        (1u64..40, times, buckets, rest).prop_map(|(frame, times, buckets, rest)| {
            let (buckets, counts) = buckets.into_iter().unzip();
            RecordedStatementRow {
                frame,
                time_us: frame as i64 * 1_000_000,
                queryid: rest.0,
                toplevel: rest.1,
                database: "shop".into(),
                application: if rest.2 < 0 { "till" } else { "" }.into(),
                calls: times.0,
                exec_min_ns: times.1,
                exec_max_ns: times.1.map(|ns| 2 * ns),
                exec_squares: times.2,
                first_us: 1000 * rest.2.max(0),
                last_us: 1000 * frame as i64,
                errors: rest.3,
                buckets,
                counts,
                ..RecordedStatementRow::default()
            }
        })
    }

    #[test]
    fn a_detail_may_have_several_blocks_or_none() {
        let blocks_of =
            |frame: u64| (frame < 3).then_some([frame as usize, 4]).into_iter().flatten();
        let mut sums = StatementSeriesSums::new(5, blocks_of);
        let key = |queryid| (queryid, 5, 10, true, Application::default());
        let [cpu, read]: [Arc<str>; 2] = ["execute::cpu".into(), "execute::wait::IO:X".into()];
        for frame in 0..4 {
            sums.add_executions(key(1), frame, [1, 10 + frame]);
            sums.add_account(key(1), frame, &cpu, 1);
            sums.add_account(key(1), frame, &read, 100);
            sums.add_account(key(2), frame, &read, -1);
        }
        let found: HashMap<TextKey, StatementSeries> = sums.all.into_iter().collect();
        let expected = StatementSeries {
            calls: vec![1, 1, 1, 0, 3],
            exec_ns: vec![10, 11, 12, 0, 33],
            total_ns: vec![101, 101, 101, 0, 303],
            accounts: vec![(cpu, vec![1, 1, 1, 0, 3]), (read.clone(), vec![100, 100, 100, 0, 300])],
        };
        assert_eq!(found[&text_key(key(1))], expected);
        assert_eq!(found[&text_key(key(2))].accounts, [(read, vec![-1, -1, -1, 0, -3])]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn sums_by_columns_are_those_of_the_rows(
            mut rows in prop::collection::vec(row(), 1..60)
        ) {
            RecordedStatementRow::sort(&mut rows);
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("rows.parquet");
            write(&path, &rows, Effort::Best, files::Access::Owner).unwrap();
            let open = || File::open(&path).unwrap();
            prop_assert_eq!(&read::<RecordedStatementRow>(open(), &path).unwrap(), &rows);
            let range = Range { from_us: 2_000_000, to_us: 30_000_000 };
            let mut sums = StatementSums::new(|key| key);
            let all = RecordedStatementRow::columns();
            let see = |columns: &Columns| sums.add_columns(range, |_| 1.0, columns, |_, _, _| ());
            read_columns(open(), &path, &all, see).unwrap();
            let mut expected = HashMap::new();
            for row in rows.into_iter().filter(|row| range.contains(row.time_us)) {
                crate::rollup::total(&mut expected, row.key(), row);
            }
            prop_assert_eq!(sums.rows.len(), expected.len());
            for ((key, histogram), row) in sums.sums.into_iter().zip(sums.rows) {
                let sum = expected.remove(&key).unwrap();
                prop_assert_eq!(histogram, statement::histogram(&sum.buckets, &sum.counts));
                let names = (key.0, key.3, sum.application.clone());
                let (queryid, toplevel, application) = names;
                let row = RecordedStatementRow { queryid, toplevel, application, ..row };
                prop_assert_eq!(row, RecordedStatementRow { buckets: vec![], counts: vec![], ..sum });
            }
        }
    }
}
