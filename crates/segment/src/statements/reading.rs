// SPDX-License-Identifier: PostgreSQL
//! One reading of all statements: the shared table and the caches of the slots together.

use super::caches::{Owner, Rest, Working};
use super::seqlock::Tries;
use super::settle::StatementCopies;
use super::sums::Sums;
use crate::book::NAMELESS;
use crate::clock::Clock;
use crate::directory::{Directory, Stat, StatKind};
use crate::error::Error;
use crate::layout::{block, entry, header, u32_at, u64_at};
use crate::level::resets_of_word;
use crate::origin::Parts;
use crate::owners::Names;
use crate::segment::Segment;
use std::collections::HashMap;
use std::sync::Arc;

use super::account_ticks::AccountTicks;
use super::figures::{InFlight, Statement};
use super::key::StatementKey;
use crate::statement_text::Text;

/// Number of calls from which on the figures of a session's cached statement are also kept by session.
const OFTEN: u64 = 30;

/// The origin of a segment's statements.
#[derive(Debug, Clone, Copy)]
pub(super) struct StatementsOrigin {
    /// When the segment was created, ns since 1970.
    pub segment: u64,
    /// Start of the counts, ns since 1970.
    pub since: u64,
    pub clock: Clock,
}

impl StatementsOrigin {
    /// Whether the statements continue those of `earlier`. A writer that does not report the start of the counts may
    /// have loaded some.
    fn continues(&self, earlier: &StatementsOrigin) -> bool {
        let handed_on = self.since == earlier.since && self.clock.is_like(&earlier.clock);
        self.segment == earlier.segment || handed_on
    }
}

/// All statements of a segment at nearly one instant.
#[derive(Debug, Clone)]
pub struct StatementsReading {
    pub(super) origin: StatementsOrigin,
    pub(super) tick: u64,
    pub(super) realtime_ns: u64,
    pub(super) clock: Clock,
    pub(super) directory: Arc<Directory>,
    pub(super) statements: Vec<Statement>,
    pub(super) by_key: HashMap<StatementKey, usize>,
    pub(super) in_flight: Vec<InFlight>,
    /// The last known statement of each session, by slot and generation.
    pub(super) latest: HashMap<(u32, u32), StatementKey>,
    /// The statements that sessions' caches have often, by slot and key: calls since they were flushed last.
    pub(super) of_slots: HashMap<(u32, StatementKey), u64>,
    pub(super) capacity: u32,
    pub(super) entries: u32,
    pub(super) evicted: u64,
    pub(super) dropped: u64,
    pub(super) lost: u64,
    pub(super) texts_cut: u64,
    pub(super) text_bytes: u64,
    pub(super) paused: bool,
    pub(super) torn: u32,
    pub(super) names: Names,
    pub(super) sample_seconds: Option<f64>,
}

getters! {
    StatementsReading:
    tick: u64, "When the reading was complete, in ticks.";
    realtime_ns: u64, "When the reading was complete, in ns since 1970.";
    capacity: u32, "Capacity of the table, in statements.";
    entries: u32, "Statements in the table.";
    evicted: u64, "Statements evicted since the segment was created.";
    dropped: u64, "Statement counts that could not be flushed into the table, since the segment was created.";
    lost: u64, "Statements that a process left half updated when it died, since the segment was created.";
    texts_cut: u64, "Texts truncated because their space was full, since the segment was created.";
    text_bytes: u64, "Maximum total size of all texts, in bytes.";
    paused: bool, "Whether counting statements is paused.";
    sample_seconds: Option<f64>, "The mean distance between the samples that the times are made of; `None`: they were measured.";
    torn: u32, "Statements read during an update, because their writers were stopped or killed.";
}

impl StatementsReading {
    /// The statements, in no particular order, including those without counts.
    pub fn statements(&self) -> &[Statement] {
        &self.statements
    }

    /// One statement.
    pub fn get(&self, key: &StatementKey) -> Option<&Statement> {
        self.by_key.get(key).and_then(|&at| self.statements.get(at))
    }

    /// The current statement of each session, by slot.
    pub fn in_flight(&self) -> &[InFlight] {
        &self.in_flight
    }

    /// The current statement of a session.
    pub fn in_flight_of(&self, slot: u32, generation: u32) -> Option<&InFlight> {
        let at = self.in_flight.binary_search_by_key(&slot, |f| f.slot).ok()?;
        self.in_flight.get(at).filter(|f| f.generation == generation)
    }

    /// The statements that clients sent often, and that are still in their sessions' caches: slot, key, and calls since
    /// then. A session that executes many different statements flushes them early, and later calls count from zero.
    pub fn of_slots(&self) -> impl Iterator<Item = (u32, &StatementKey, u64)> {
        self.of_slots.iter().map(|((slot, key), calls)| (*slot, key, *calls))
    }

    /// Calls of this statement in the slot's cache; 0: few or none.
    pub fn calls_of_slot(&self, slot: u32, key: &StatementKey) -> u64 {
        self.of_slots.get(&(slot, *key)).copied().unwrap_or(0)
    }

    /// Start of the counts, ns since 1970: the last reset of all statements, or the creation of the segment in which
    /// they began.
    pub fn since_ns(&self) -> u64 {
        self.origin.since
    }

    /// Whether these figures continue those of `earlier`: in the same segment, or in one to which clean shutdowns of
    /// the server have handed them on.
    pub fn continues(&self, earlier: &StatementsReading) -> bool {
        self.origin.continues(&earlier.origin)
    }

    /// Whether both readings are of the same segment.
    pub fn is_of_segment_of(&self, other: &StatementsReading) -> bool {
        self.origin.segment == other.origin.segment
    }

    /// Whether they are sums of a recording's intervals, and so only those that were active then.
    pub fn is_recorded(&self) -> bool {
        self.origin.segment == 0
    }

    /// Statements evicted since an earlier reading.
    pub fn evicted_since(&self, earlier: &StatementsReading) -> u64 {
        // They are not handed on to another segment.
        let before = if self.is_of_segment_of(earlier) { earlier.evicted } else { 0 };
        self.evicted.saturating_sub(before)
    }

    /// The same with what is known of the table: statements in it, how many fit, and how many were evicted.
    pub fn with_table(self, entries: u32, capacity: u32, evicted: u64) -> StatementsReading {
        StatementsReading { entries, capacity, evicted, ..self }
    }

    /// The same, made of samples at this mean distance, in seconds.
    pub fn with_samples(self, sample_seconds: Option<f64>) -> StatementsReading {
        StatementsReading { sample_seconds, ..self }
    }

    /// The same, with these calls of statements by the sessions of slots.
    pub fn with_slots(self, of_slots: HashMap<(u32, StatementKey), u64>) -> StatementsReading {
        StatementsReading { of_slots, ..self }
    }

    /// Time since an earlier reading of this segment, seconds.
    pub fn seconds_since(&self, earlier: &StatementsReading) -> f64 {
        self.clock.seconds(self.tick.saturating_sub(earlier.tick))
    }

    /// The clock as known at the time of the reading.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The names of the accounts.
    pub fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    /// The name of a database, as a session reported it.
    pub fn database(&self, id: u32) -> Option<&str> {
        self.names.databases.get(&id).map(String::as_str)
    }

    /// The name of a user, as a session reported it.
    pub fn user(&self, id: u32) -> Option<&str> {
        self.names.users.get(&id).map(String::as_str)
    }
}

impl Segment {
    fn statements_origin(&self) -> Result<StatementsOrigin, Error> {
        let segment = self.header().created_realtime_ns;
        let since = self.read_u64(header::STATEMENTS_SINCE_NS as u64)?;
        let since = if since == 0 { segment } else { since };
        Ok(StatementsOrigin { segment, since, clock: self.clock })
    }

    /// Whether the segment's statements continue those of an earlier reading ([`StatementsReading::continues`]).
    pub fn continues_statements(&self, earlier: &StatementsReading) -> Result<bool, Error> {
        Ok(self.statements_origin()?.continues(&earlier.origin))
    }

    /// The reading at this segment's creation, when nothing had been counted. `None`: the segment began with statements
    /// of an earlier one, or does not say.
    pub fn statements_at_creation(&self) -> Result<Option<StatementsReading>, Error> {
        let created = self.header().created_realtime_ns;
        let since = self.read_u64(header::STATEMENTS_SINCE_NS as u64)?;
        // After a reset of all statements, it has none from an earlier segment.
        let reset = since > created && resets_of_word(self.level_word()?) > 0;
        if since != created && !reset {
            return Ok(None);
        }
        Ok(Some(StatementsReading {
            origin: self.statements_origin()?,
            tick: self.header().clock_tick0,
            realtime_ns: created,
            clock: self.clock,
            directory: Arc::default(),
            statements: Vec::new(),
            by_key: HashMap::new(),
            in_flight: Vec::new(),
            latest: HashMap::new(),
            of_slots: HashMap::new(),
            text_bytes: 0,
            capacity: 0,
            entries: 0,
            evicted: 0,
            dropped: 0,
            lost: 0,
            texts_cut: 0,
            paused: false,
            torn: 0,
            names: Names::default(),
            sample_seconds: self.sample_seconds(),
        }))
    }

    /// Read all statements; `None`: the segment keeps none.
    pub fn statements(&mut self) -> Result<Option<StatementsReading>, Error> {
        let Some(regions) = self.regions.statements else {
            return Ok(None);
        };
        self.want(Parts::STATEMENTS)?;
        if self.is_of_this_boot() {
            self.measure_clock();
        }
        let tries = Tries::new(self);
        let (owners, names) = self.read_owners()?;
        let (mut found, current) = self.read_found(&regions, &owners, &tries)?;
        let tick = self.now();
        let live = self.read_live()?;
        let entries = found.values().filter(|f| f.entry.is_some()).count() as u32;
        let mut texts =
            self.read_texts(&regions, found.values().filter_map(|f| f.entry.as_ref()))?;

        let second = 1.0 / self.clock.ticks_per_second();
        let mut statements = Vec::with_capacity(found.len());
        let mut of_slots = HashMap::new();
        for (key, found) in found.drain() {
            let key = self.statement_key(key)?;
            let often = found.cached.iter().filter(|copy| copy.sums.exec.count >= OFTEN);
            of_slots.extend(
                often.filter(|_| key.toplevel).map(|copy| ((copy.slot, key), copy.sums.exec.count)),
            );
            let text = found.entry.as_ref().and_then(|entry| texts.remove(&entry.number));
            statements.push(self.statement(key, found, text, second)?);
        }
        let by_key = statements.iter().enumerate().map(|(at, s)| (s.key, at)).collect();
        let latest = current
            .iter()
            .map(|entry| Ok(((entry.slot, entry.generation), self.statement_key(entry.latest)?)));
        let latest = latest.collect::<Result<HashMap<_, _>, Error>>()?;
        let working = current.into_iter().filter_map(|entry| entry.working);
        let in_flight = working.map(|working| self.in_flight(working, second));
        let in_flight = in_flight.collect::<Result<Vec<_>, _>>()?;
        Ok(Some(StatementsReading {
            origin: self.statements_origin()?,
            tick,
            realtime_ns: self.realtime_ns(),
            clock: self.clock,
            directory: self.directory.clone(),
            statements,
            by_key,
            in_flight,
            latest,
            of_slots,
            capacity: regions.table.count,
            entries,
            evicted: u64_at(&live, header::STATEMENTS_EVICTED),
            dropped: u64_at(&live, header::STATEMENTS_DROPPED),
            lost: u64_at(&live, header::STATEMENTS_LOST),
            texts_cut: u64_at(&live, header::TEXTS_CUT),
            text_bytes: u64::from(regions.texts.count) * (block::SIZE - block::BYTES) as u64,
            paused: u32_at(&live, header::PAUSE) & 1 != 0,
            torn: tries.torn(),
            names,
            sample_seconds: self.sample_seconds(),
        }))
    }

    /// The slots that may have statements, and the names of databases and users in all slots and groups.
    fn read_owners(&self) -> Result<(Vec<Owner>, Names), Error> {
        let (mut owners, mut names) = (Vec::new(), Names::default());
        let slots = self.header().slots;
        self.each_entry(self.regions.entries, entry::SIZE, |index, bytes| {
            names.add_entry(bytes);
            let owner = Owner::decode(index, bytes);
            if index < slots && owner.local_entries > 0 {
                owners.push(owner);
            }
        })?;
        Ok((owners, names))
    }

    fn statement(
        &mut self,
        key: StatementKey,
        found: StatementCopies,
        text: Option<Text>,
        second: f64,
    ) -> Result<Statement, Error> {
        let mut sums = Sums::default();
        let mut raw: Vec<AccountTicks> = Vec::new();
        let (mut born, mut since_us) = (0, 0);
        if let Some(entry) = found.entry {
            (born, since_us) = (entry.born, entry.since_us);
            sums = entry.sums;
            raw = entry.parts;
        }
        for copy in found.cached {
            sums.add(&copy.sums);
            copy.parts.into_iter().for_each(|part| part.add_to(&mut raw));
        }
        let parts = self.name_parts(&raw)?;
        Ok(Statement { key, text, born, since_us, parts, sums, second })
    }

    fn in_flight(&mut self, working: Working, second: f64) -> Result<InFlight, Error> {
        let Rest { pending, between, running } = working.rest;
        let mut raw = working.parts;
        pending.into_iter().chain(running).for_each(|part| part.add_to(&mut raw));
        let mut parts = self.name_parts(&raw)?;
        let running = running.map_or(Ok(None), |part| self.stat(part.stat))?;
        let phase = running.and_then(|id| self.directory.get(id)).map(|s| s.phase().clone());
        if let Some(phase) = phase.filter(|_| between > 0) {
            let name = format!("{phase}::cpu");
            let cpu = Stat::new(name, StatKind::Account, "ticks".to_string());
            let stat = Directory::intern(&mut self.directory, cpu);
            AccountTicks { stat, count: 0, ticks: between }.add_to(&mut parts);
        }
        let key = self.statement_key(working.key)?;
        Ok(InFlight {
            slot: working.slot,
            generation: working.generation,
            pid: working.pid,
            key,
            message: working.message.filter(|_| !key.is_identified()),
            begun: working.begun,
            age_seconds: working.now.saturating_sub(working.begun) as f64 * second,
            parts,
            second,
        })
    }

    /// Converts parts to our numbers of accounts. The file may have the same name twice; a part without a name keeps
    /// its time.
    fn name_parts(&mut self, raw: &[AccountTicks]) -> Result<Vec<AccountTicks>, Error> {
        let mut parts: Vec<AccountTicks> = Vec::with_capacity(raw.len());
        for part in raw {
            let stat = self.stat(part.stat)?.unwrap_or(NAMELESS);
            AccountTicks { stat, ..*part }.add_to(&mut parts);
        }
        Ok(parts)
    }
}
