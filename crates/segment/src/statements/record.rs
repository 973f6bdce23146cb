// SPDX-License-Identifier: PostgreSQL
//! Statements as recordings store them: the growth of each in an interval, in plain numbers, and a
//! reading built from the sums of many intervals.

use super::account_ticks::AccountTicks;
use super::delta::StatementsDelta;
use super::figures::Statement;
use super::key::StatementKey;
use super::reading::{StatementsOrigin, StatementsReading};
use super::sums::Sums;
use crate::clock::Clock;
use crate::directory::{Directory, Stat, StatKind};
use crate::owners::Names;
use crate::statement_text::Text;
use std::collections::HashMap;
use std::sync::Arc;

/// Time in one account of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRecord {
    /// Its name, such as `execute::wait::IO:DataFileRead`.
    pub account: Arc<str>,
    /// Number of events.
    pub count: u64,
    /// Time, ticks. Negative if time of a message in progress was later moved to another statement.
    pub ticks: i64,
}

/// A statement in an interval.
#[derive(Debug, Clone)]
pub struct StatementRecord {
    /// Its key.
    pub key: StatementKey,
    /// Name of its database, or empty.
    pub database: Arc<str>,
    /// Name of its user, or empty.
    pub user: Arc<str>,
    /// Its text, if it is known.
    pub text: Option<Text>,
    /// Its counts.
    pub sums: Sums,
    /// Its time by account, including work in progress up to the interval's end.
    pub parts: Vec<AccountRecord>,
}

impl StatementRecord {
    fn empty(key: StatementKey, source: &StatementsReading) -> StatementRecord {
        let name = |known: Option<&str>| known.unwrap_or_default().into();
        StatementRecord {
            key,
            database: name(source.database(key.database_id)),
            user: name(source.user(key.user_id)),
            text: source.get(&key).and_then(|statement| statement.text.clone()),
            sums: Sums::default(),
            parts: Vec::new(),
        }
    }

    fn from_statement(statement: &Statement, source: &StatementsReading) -> StatementRecord {
        let mut record = StatementRecord {
            sums: statement.sums.clone(),
            ..StatementRecord::empty(statement.key, source)
        };
        record.change(&statement.parts, &source.directory, 1);
        record
    }

    fn change(&mut self, parts: &[AccountTicks], directory: &Directory, sign: i64) {
        for part in parts {
            let account = directory.get(part.stat).map_or("", |stat| stat.name.as_str());
            let ticks = i64::try_from(part.ticks).unwrap_or(i64::MAX).saturating_mul(sign);
            // Executions in progress have not been counted yet.
            let count = if sign > 0 { part.count } else { 0 };
            self.add_account(AccountRecord { account: account.into(), count, ticks });
        }
    }

    fn add_account(&mut self, more: AccountRecord) {
        match self.parts.iter_mut().find(|known| known.account == more.account) {
            Some(known) => {
                known.count = known.count.saturating_add(more.count);
                known.ticks = known.ticks.saturating_add(more.ticks);
            }
            None => self.parts.push(more),
        }
    }

    /// Add the same statement of a later interval, in ticks of the same clock.
    pub fn merge(&mut self, later: &StatementRecord) {
        self.sums.add(&later.sums);
        later.parts.iter().for_each(|part| self.add_account(part.clone()));
        if self.text.is_none() {
            self.text.clone_from(&later.text);
        }
    }

    fn drop_zeros(&mut self) {
        self.parts.retain(|part| part.count > 0 || part.ticks != 0);
    }

    /// Whether nothing was counted.
    pub fn is_zero(&self) -> bool {
        self.sums.is_zero() && self.parts.iter().all(|part| part.count == 0 && part.ticks == 0)
    }
}

impl StatementsReading {
    /// The growth of each statement between two readings, including work in progress.
    pub fn records(earlier: &StatementsReading, later: &StatementsReading) -> Vec<StatementRecord> {
        let delta = StatementsDelta::between(earlier, later);
        let mut records =
            later.records_of(&delta, Some(earlier).filter(|earlier| later.continues(earlier)));
        if !later.is_of_segment_of(earlier) {
            // Work in progress of a session that was killed at shutdown was counted until then, but is not in the file.
            for part in records.iter_mut().flat_map(|record| &mut record.parts) {
                part.ticks = part.ticks.max(0);
            }
            records.iter_mut().for_each(StatementRecord::drop_zeros);
            records.retain(|record| !record.is_zero());
        }
        records
    }

    /// The figures of each statement since they began, including work in progress.
    pub fn total_records(&self) -> Vec<StatementRecord> {
        self.records_of(&StatementsDelta::total(self), None)
    }

    fn records_of(
        &self,
        delta: &StatementsDelta,
        earlier: Option<&StatementsReading>,
    ) -> Vec<StatementRecord> {
        let later = self;
        let mut records: Vec<StatementRecord> = delta
            .statements()
            .iter()
            .map(|statement| StatementRecord::from_statement(statement, later))
            .collect();
        let mut indexes: HashMap<StatementKey, usize> =
            records.iter().enumerate().map(|(at, record)| (record.key, at)).collect();
        // The time of a message whose statement is not known yet counts for no statement; that is reversed once it is
        // known.
        let readings = [(Some(later), 1), (earlier, -1)];
        for (reading, sign) in readings.into_iter().filter_map(|(r, sign)| Some((r?, sign))) {
            for flight in &reading.in_flight {
                let at = *indexes.entry(flight.key).or_insert_with(|| {
                    records.push(StatementRecord::empty(flight.key, later));
                    records.len() - 1
                });
                let parts: Vec<AccountTicks> =
                    flight.parts.iter().map(|part| AccountTicks { count: 0, ..*part }).collect();
                records[at].change(&parts, &reading.directory, sign);
            }
        }
        records.iter_mut().for_each(StatementRecord::drop_zeros);
        records.retain(|record| !record.is_zero());
        records
    }

    /// The statements of these records, which are sums of intervals, as if from a reading of a segment created
    /// at the start of the first interval. Each key must occur once.
    pub fn of_records(
        realtime_ns: u64,
        clock: Clock,
        records: Vec<StatementRecord>,
    ) -> StatementsReading {
        let second = 1.0 / clock.ticks_per_second();
        let (mut directory, mut names) = (Arc::default(), Names::default());
        let mut statements = Vec::with_capacity(records.len());
        for record in records {
            let ids = (record.key.database_id, record.key.user_id);
            names.add(ids, &record.database, &record.user, 0);
            let parts = record.parts.iter().filter(|part| part.count > 0 || part.ticks > 0);
            let parts = parts.map(|part| {
                let name = part.account.to_string();
                let stat = Stat::new(name, StatKind::Account, "ticks".to_string());
                AccountTicks {
                    stat: Directory::intern(&mut directory, stat),
                    count: part.count,
                    ticks: u64::try_from(part.ticks).unwrap_or(0),
                }
            });
            statements.push(Statement {
                key: record.key,
                parts: parts.collect(),
                sums: record.sums,
                text: record.text,
                born: 0,
                since_us: 0,
                second,
            });
        }
        let by_key =
            statements.iter().enumerate().map(|(at, statement)| (statement.key, at)).collect();
        let count = u32::try_from(statements.len()).unwrap_or(u32::MAX);
        StatementsReading {
            origin: StatementsOrigin { segment: 0, since: 0, clock },
            tick: 0,
            realtime_ns,
            clock,
            directory,
            statements,
            by_key,
            in_flight: Vec::new(),
            latest: HashMap::new(),
            of_slots: HashMap::new(),
            capacity: 0,
            entries: count,
            evicted: 0,
            dropped: 0,
            lost: 0,
            texts_cut: 0,
            text_bytes: 0,
            paused: false,
            torn: 0,
            names,
            sample_seconds: None,
        }
    }
}
