// SPDX-License-Identifier: PostgreSQL
//! The ledger that samples make: a session whose account changes between two samples has changed it in the middle between
//! them, so the accounts of a session add up to its life, as those of a server's processes do.
//!
//! Beside each account, the variance of its total is estimated from the sampling itself, not from how much the load varies: an
//! estimate is compared with what has happened in the same time. Only where the number of sessions in an account changes from
//! one sample to the next, there is a part of the error. The square of such a change counts with
//!
//! - a half of the square of the time for which the sample stands, if nothing says how long the stretch was. Of short
//!   stretches, samples are independent, and the mean square of successive differences is twice their variance (von Neumann,
//!   Kent, Bellinson and Hart, 1941; for samples of strata, Cochran, Sampling Techniques, 5A.12). Of long ones, this is too
//!   much. Sessions that change together count as such.
//! - a twelfth of the square of the time between the two samples, if two samples have seen the same stretch: its beginning or
//!   end lies uniformly between them.

use std::collections::{BTreeMap, HashMap, HashSet};

use segment::{layout, own};

use super::observation::{Blockage, Observation, Sample};

/// The most statements that are kept apart.
pub(super) const MOST_STATEMENTS: usize = 512 * layout::WAYS;
/// The most statistics of a session or group, and the most groups.
pub(super) const MOST_FIGURES: usize = 256;
pub(super) const MOST_GROUPS: usize = 1023;
/// Parts of the squares: see above.
const UNSEEN: f64 = 1.0 / 2.0;
const SEEN: f64 = 1.0 / 12.0;
/// A session that changed its state less than this before a sample, or less than the sample is late, may have been in another
/// account at the instant that was drawn, ns.
const FRESH_NS: u64 = 2_000_000;
/// What a session does while it has a processor is seen less often than it happens, because the sampler takes the processor:
/// the doubt about CPU time, and about I/O that the kernel's page cache answers, counts this many times. Chosen by comparisons with the
/// exact ledger on one server, and judged by others on other servers (docs/any-server.md).
const ON_PROCESSOR: f64 = 1.5;

/// A name of the image's directory; its index is its number there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Name {
    pub text: String,
    pub kind: NameKind,
}

/// The kind of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum NameKind {
    Account,
    Timer,
    Variance,
}

/// A statistic of a session or group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Figure {
    /// Its number in the directory.
    pub name: u32,
    pub count: u64,
    pub total: f64,
    pub min: u64,
    pub max: u64,
}

/// The statistics of a session or group, in the order of their first use.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Figures {
    pub all: Vec<Figure>,
    /// Whether there was no space for one.
    full: bool,
}

impl Figures {
    fn position(&self, name: u32) -> Option<usize> {
        self.all.iter().position(|figure| figure.name == name)
    }

    /// The figure of this name, which is added if there is space.
    fn get(&mut self, name: u32) -> Option<&mut Figure> {
        let at = self.position(name).or_else(|| {
            let space = self.all.len() < MOST_FIGURES;
            space.then(|| {
                self.all.push(Figure { name, count: 0, total: 0.0, min: u64::MAX, max: 0 });
                self.all.len() - 1
            })
        })?;
        self.all.get_mut(at)
    }

    /// Add time to a figure. The first time that there is no space for one counts in `overflow`.
    fn add(&mut self, name: u32, total: f64, overflow: &mut u64) {
        match self.get(name) {
            Some(figure) => figure.total += total,
            None => *overflow += u64::from(!std::mem::replace(&mut self.full, true)),
        }
    }

    fn record(&mut self, name: u32, value: u64) {
        if let Some(figure) = self.get(name) {
            figure.count += 1;
            figure.total += value as f64;
            figure.min = figure.min.min(value);
            figure.max = figure.max.max(value);
        }
    }
}

/// A session that the last sample has seen.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub observed: Observation,
    /// Tick since which it is known.
    pub born: u64,
    /// Its account: a number in the directory.
    pub account: u32,
    /// Tick since which that account runs.
    pub since: u64,
    /// Number of changes of what identifies it.
    pub identity: u32,
    pub figures: Figures,
    /// Since when it waits for a heavyweight lock, tick, and for which.
    pub blocked: Option<(u64, Blockage)>,
    /// Identifies the stretch in the account, and whether two samples of the run have seen the same one.
    stretch: Option<i64>,
    seen_again: bool,
    /// Whether the last sample was the first of the run.
    entered: bool,
    /// What is uncertain about the last sample of it.
    uncertain: Uncertain,
}

/// What is uncertain about a sample of a session.
#[derive(Debug, Clone, Copy, Default)]
struct Uncertain {
    /// Whether the session had just changed its state.
    fresh: bool,
    /// The part of its life that no sample sees.
    unseen: f64,
}

/// The time for which uncertain samples stand, since the last settlement.
#[derive(Debug, Default)]
struct Doubts {
    /// Of sessions that had just changed their state, ns, by account.
    fresh: BTreeMap<u32, f64>,
    /// Of processes that began shortly before, by the part of their life that no sample sees, ns.
    unseen: f64,
}

impl Doubts {
    fn add(&mut self, account: u32, ns: u64, Uncertain { fresh, unseen }: Uncertain) {
        if fresh {
            *self.fresh.entry(account).or_default() += ns as f64;
        }
        self.unseen += unseen * ns as f64;
    }
}

impl Session {
    fn key(&self) -> (i32, i64) {
        (self.observed.pid, self.observed.begun_us)
    }
}

/// The ended sessions of a kind, database and role.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub kind: String,
    pub database_id: u32,
    pub user_id: u32,
    pub database: String,
    pub user: String,
    pub sessions: u64,
    pub figures: Figures,
}

/// Changes of the number of sessions in an account at one sample: those in stretches that were seen again, and others.
#[derive(Debug, Clone, Copy, Default)]
struct Changes {
    seen: f64,
    unseen: f64,
    /// Sessions in the account that no earlier sample has seen in the same stretch.
    unsure: u64,
}

impl Changes {
    fn add(&mut self, seen: bool, sessions: f64) {
        match seen {
            true => self.seen += sessions,
            false => self.unseen += sessions,
        }
    }
}

/// Time of a statement by account.
#[derive(Debug, Clone, Default)]
pub(super) struct StatementTime {
    pub parts: Vec<(u32, u64)>,
    /// Its text, if the server computes no query identifiers.
    pub text: Option<String>,
}

impl StatementTime {
    fn add(&mut self, account: u32, ticks: u64) {
        let full = self.parts.len() == layout::PARTS;
        let known = self.parts.iter().position(|(known, _)| *known == account);
        // A statement has space for so many accounts; what comes later counts with the last of them.
        match known.or(full.then_some(layout::PARTS - 1)) {
            Some(at) => self.parts[at].1 += ticks,
            None => self.parts.push((account, ticks)),
        }
    }
}

/// Time of the statement that a session executes, in an account.
fn add_time(
    all: &mut HashMap<Key, StatementTime>,
    observed: &Observation,
    account: u32,
    ticks: u64,
) {
    if observed.query_id == 0 || !observed.executes() {
        return;
    }
    let text = || Some(observed.query.clone()).filter(|text| !text.is_empty());
    let (database_id, user_id) = (observed.database_id, observed.user_id);
    let key = (observed.query_id, database_id, user_id);
    // Then it counts as unknown, and if there are too many of these, of all databases and roles together.
    let key = match all.len() {
        _ if all.contains_key(&key) => key,
        ..MOST_STATEMENTS => key,
        len if len < 2 * MOST_STATEMENTS => (0, database_id, user_id),
        _ => (0, 0, 0),
    };
    let time = all.entry(key);
    let time = time.or_insert_with(|| StatementTime { text: text(), ..StatementTime::default() });
    time.add(account, ticks);
}

/// A statement: query identifier, database and role.
pub(super) type Key = (i64, u32, u32);

/// The last sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastSample {
    pub tick: u64,
    /// Time of day, ns since 1970.
    pub realtime_ns: u64,
    /// Whether the server hides sessions from the role.
    pub hidden: bool,
}

/// How often there was no space: each session, book and merge counts once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Overflow {
    /// Sessions that could not be shown because all slots were in use.
    pub slots: u64,
    /// Sessions and groups with more statistics than fit.
    pub figures: u64,
    /// Sessions that were merged into the overflow group.
    pub groups: u64,
}

/// How late samples come, and so whether they tell CPU time apart.
#[derive(Debug, Clone, Copy, Default)]
struct Lateness {
    /// A recent mean, ns.
    mean_ns: f64,
    too_late: bool,
}

impl Lateness {
    /// Beyond this mean, samples do not tell CPU time apart (docs/any-server.md has the comparisons). Below half of it, they do again.
    const LIMIT_NS: f64 = 3e6;
    /// A single sample counts no more than this, so that one interruption hides nothing.
    const MOST_NS: u64 = 12_000_000;
    /// Weight of the latest sample.
    const LATEST: f64 = 0.1;

    /// Takes in the next sample. It depends on lateness alone, not on what samples see.
    fn note(&mut self, late_ns: u64) {
        let latest = late_ns.min(Lateness::MOST_NS) as f64;
        self.mean_ns += Lateness::LATEST * (latest - self.mean_ns);
        let limit = if self.too_late { Lateness::LIMIT_NS / 2.0 } else { Lateness::LIMIT_NS };
        self.too_late = self.mean_ns > limit;
    }
}

/// All samples so far.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub names: Vec<Name>,
    by_name: HashMap<Name, u32>,
    /// By slot, with the number of times that the slot was used.
    pub slots: Vec<(u32, Option<Session>)>,
    by_key: HashMap<(i32, i64), usize>,
    pub groups: Vec<Group>,
    pub sampler: Figures,
    pub statements: HashMap<Key, StatementTime>,
    pub last: Option<LastSample>,
    pub samples: u64,
    pub merges: u64,
    pub overflow: Overflow,
    /// Sessions of the last sample that have no slot.
    without_slot: HashSet<(i32, i64)>,
    capacity: usize,
    changes: BTreeMap<u32, Changes>,
    /// The time between the last two samples.
    gap: u64,
    lateness: Lateness,
    doubts: Doubts,
}

impl Ledger {
    /// A ledger of up to this many sessions.
    pub(super) fn new(capacity: usize) -> Ledger {
        Ledger { capacity, ..Ledger::default() }
    }

    fn name(&mut self, text: &str, kind: NameKind) -> u32 {
        let name = Name { text: text.to_string(), kind };
        if let Some(&known) = self.by_name.get(&name) {
            return known;
        }
        let number = self.names.len() as u32;
        self.names.push(name.clone());
        self.by_name.insert(name, number);
        number
    }

    /// The mean time between two samples; `None`: there are none.
    pub(super) fn mean_gap_seconds(&self) -> Option<f64> {
        let is = |figure: &&Figure| {
            let name = self.names.get(figure.name as usize);
            name.is_some_and(|name| name.text == segment::sampling::GAP)
        };
        let gaps = self.sampler.all.iter().find(is).filter(|gaps| gaps.count > 0)?;
        Some(gaps.total * 1e-9 / gaps.count as f64)
    }

    /// Take in the next sample. Time that goes back counts as none.
    pub(super) fn apply(&mut self, sample: Sample) {
        let last = self.last.map_or(sample.tick, |last| last.tick);
        let tick = sample.tick.max(last);
        let gap = tick - last;
        let sampled_us = (sample.realtime_ns / 1000) as i64;
        if self.last.is_some() {
            for (name, value) in [
                (segment::sampling::GAP, gap),
                (segment::sampling::LATE, sample.late_ns),
                (segment::sampling::READ, sample.read_ns),
                (segment::sampling::COST, sample.cost_ns),
            ] {
                let name = self.name(name, NameKind::Timer);
                self.sampler.record(name, value);
            }
        }
        self.lateness.note(sample.late_ns);
        let told_apart = !self.lateness.too_late;
        if !told_apart && self.last.is_some() {
            let name = self.name(segment::sampling::UNTOLD, NameKind::Timer);
            self.sampler.record(name, gap);
        }
        let middle = last + gap / 2;
        let window = sample.late_ns.max(FRESH_NS);
        let mut before = std::mem::take(&mut self.changes);
        let without_slot = std::mem::take(&mut self.without_slot);
        let mut gone: Vec<bool> = self.slots.iter().map(|(_, session)| session.is_some()).collect();
        for observed in sample.sessions {
            let account = self.name(&observed.account(told_apart), NameKind::Account);
            let stretch = observed.stretch(sampled_us);
            let counts = !own::is_process(&observed.kind);
            let uncertain = match counts {
                true => Uncertain {
                    fresh: observed.ages.state.is_some_and(|age| age < window),
                    unseen: observed.unseen(),
                },
                false => Uncertain::default(),
            };
            let slot = self.by_key.get(&(observed.pid, observed.begun_us)).copied();
            let known = slot.and_then(|slot| Some((slot, self.slots.get_mut(slot)?.1.as_mut()?)));
            let Some((slot, session)) = known else {
                // A new session counts as a change of its account.
                let key = (observed.pid, observed.begun_us);
                if !self.begin(observed, account, stretch, (middle, tick), uncertain) {
                    self.overflow.slots += u64::from(!without_slot.contains(&key));
                    self.without_slot.insert(key);
                }
                continue;
            };
            gone[slot] = false;
            let (was, stays) = (session.account, session.account == account);
            // The begin of a stretch is told to a microsecond, and so is the time of the sample.
            let near = |a: i64, b: i64| a.abs_diff(b) < 1000;
            let again = stays && session.stretch.zip(stretch).is_some_and(|(a, b)| near(a, b));
            session.seen_again |= again;
            if session.entered && counts {
                before.entry(was).or_default().add(session.seen_again, 1.0);
            }
            session.entered = !stays;
            if !stays {
                if counts {
                    self.changes.entry(was).or_default().add(session.seen_again, -1.0);
                }
                (session.account, session.since, session.seen_again) = (account, middle, false);
            }
            session.stretch = stretch;
            session.identity += u32::from(!session.observed.is_named_as(&observed));
            let overflow = &mut self.overflow.figures;
            session.figures.add(was, (middle - last) as f64, overflow);
            session.figures.add(account, (tick - middle) as f64, overflow);
            add_time(&mut self.statements, &session.observed, was, middle - last);
            add_time(&mut self.statements, &observed, account, tick - middle);
            self.doubts.add(was, middle - last, session.uncertain);
            self.doubts.add(account, tick - middle, uncertain);
            session.uncertain = uncertain;
            session.observed = observed;
            if counts && !again {
                self.changes.entry(account).or_default().unsure += 1;
            }
        }
        for slot in (0..gone.len()).filter(|slot| gone[*slot]) {
            if let Some(mut session) = self.slots[slot].1.take() {
                let overflow = &mut self.overflow.figures;
                session.figures.add(session.account, (middle - last) as f64, overflow);
                add_time(&mut self.statements, &session.observed, session.account, middle - last);
                self.doubts.add(session.account, middle - last, session.uncertain);
                if !own::is_process(&session.observed.kind) {
                    if session.entered {
                        before.entry(session.account).or_default().add(session.seen_again, 1.0);
                    }
                    let changes = self.changes.entry(session.account).or_default();
                    changes.add(session.seen_again, -1.0);
                }
                self.by_key.remove(&session.key());
                self.merge(session);
            }
        }
        self.settle(&before, self.gap, gap);
        self.settle_doubts();
        self.gap = gap;
        self.samples += 1;
        self.last =
            Some(LastSample { tick, realtime_ns: sample.realtime_ns, hidden: sample.hidden });
    }

    /// A session is new. It may have begun before the middle between two samples, but is known from there on. Returns whether
    /// there is a slot for it.
    fn begin(
        &mut self,
        observed: Observation,
        account: u32,
        stretch: Option<i64>,
        (middle, tick): (u64, u64),
        uncertain: Uncertain,
    ) -> bool {
        let free = self.slots.iter().position(|(_, session)| session.is_none());
        let slot = free.unwrap_or(self.slots.len());
        if slot >= self.capacity {
            return false;
        }
        if slot == self.slots.len() {
            self.slots.push((0, None));
        }
        let begun = observed.ages.session.map_or(middle, |age| tick.saturating_sub(age));
        let born = begun.clamp(middle, tick);
        self.doubts.add(account, tick - born, uncertain);
        let mut figures = Figures::default();
        figures.add(account, (tick - born) as f64, &mut self.overflow.figures);
        add_time(&mut self.statements, &observed, account, tick - born);
        // Sessions of the first sample were there before.
        let entered = self.last.is_some();
        if entered && !own::is_process(&observed.kind) {
            self.changes.entry(account).or_default().unsure += 1;
        }
        let session = Session {
            born,
            account,
            since: born,
            identity: 0,
            figures,
            blocked: None,
            stretch,
            seen_again: false,
            entered,
            uncertain,
            observed,
        };
        self.by_key.insert(session.key(), slot);
        let (uses, place) = &mut self.slots[slot];
        *uses += 1;
        *place = Some(session);
        true
    }

    /// A session has ended.
    fn merge(&mut self, session: Session) {
        let Observation { kind, database_id, user_id, database, user, .. } = session.observed;
        let is = |group: &Group| {
            group.kind == kind && group.database_id == database_id && group.user_id == user_id
        };
        let full = self.groups.len() >= MOST_GROUPS;
        let at = self.groups.iter().position(is).unwrap_or_else(|| {
            if full {
                self.overflow.groups += 1;
                return self.groups.len() - 1;
            }
            let (sessions, figures) = (0, Figures::default());
            self.groups.push(Group {
                kind,
                database_id,
                user_id,
                database,
                user,
                sessions,
                figures,
            });
            self.groups.len() - 1
        });
        let group = &mut self.groups[at];
        group.sessions += 1;
        for figure in &session.figures.all {
            group.figures.add(figure.name, figure.total, &mut self.overflow.figures);
        }
        self.merges += 1;
    }

    /// The changes at the last sample are now known; with the times before and after it.
    fn settle(&mut self, changes: &BTreeMap<u32, Changes>, before: u64, after: u64) {
        // In square milliseconds.
        let square = |ns: f64| (ns * 1e-6).powi(2);
        let (apart, stands) = (square(before as f64), square((before + after) as f64 / 2.0));
        for (account, Changes { seen, unseen, unsure }) in changes {
            let name = self.name_beside(segment::sampling::VARIANCE, *account, NameKind::Variance);
            let Some(figure) = self.sampler.get(name) else { continue };
            figure.count += unsure;
            figure.total += stands * UNSEEN * unseen * unseen + apart * SEEN * seen * seen;
        }
    }

    fn settle_doubts(&mut self) {
        let Doubts { fresh, unseen } = std::mem::take(&mut self.doubts);
        if unseen > 0.0 {
            let name = self.name(segment::sampling::YOUNG, NameKind::Timer);
            if let Some(figure) = self.sampler.get(name) {
                figure.total += unseen;
            }
        }
        for (account, ns) in fresh {
            let weight = if self.is_on_processor(account) { ON_PROCESSOR } else { 1.0 };
            let name = self.name_beside(segment::sampling::DOUBT, account, NameKind::Timer);
            if let Some(figure) = self.sampler.get(name) {
                figure.total += weight * ns;
            }
        }
    }

    /// Whether a session has a processor most of the time that counts in an account.
    fn is_on_processor(&self, account: u32) -> bool {
        let text = &self.names[account as usize].text;
        let activity = text.split_once("::").map_or("", |(_, activity)| activity);
        activity == "cpu" || activity.starts_with("wait::IO:")
    }

    /// The name of the sampler's statistic beside an account. The last places are for all accounts that have none of their own.
    fn name_beside(&mut self, prefix: &str, account: u32, kind: NameKind) -> u32 {
        /// One for each prefix, one for the time that is not told apart, and one for that of young processes.
        const LAST: usize = 4;

        let name = format!("{prefix}{}", self.names[account as usize].text);
        let name = self.name(&name, kind);
        if self.sampler.position(name).is_some() || self.sampler.all.len() + LAST < MOST_FIGURES {
            return name;
        }
        self.name(&format!("{prefix}{}", segment::sampling::OTHERS), kind)
    }

    /// Who blocks whom, as of this tick.
    pub(super) fn block(&mut self, blockages: Vec<Blockage>, tick: u64) {
        for (_, session) in &mut self.slots {
            let Some(session) = session else { continue };
            let found = blockages.iter().find(|blockage| blockage.pid == session.observed.pid);
            session.blocked =
                found.map(|found| (tick.saturating_sub(found.age_ns).max(1), found.clone()));
        }
    }
}
