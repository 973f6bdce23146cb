// SPDX-License-Identifier: PostgreSQL
//! Invariants of every reading, whatever the writer's stop is.

use std::collections::HashMap;
use std::path::Path;

use segment::book::{Identity, Life};
use segment::directory::StatKind;
use segment::layout::{book, header, slot_state};
use segment::{Delta, Frame, Interval, Rising, Segment, Snapshot};

/// The outcome of a scenario's sessions: ticks in all accounts of sessions that have ended, ...
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ended {
    /// ... at its beginning
    pub before: u64,
    /// ... and at its end.
    pub after: u64,
}

/// Checks one run of a scenario repeatedly.
pub struct Witness {
    /// The texts that a session may have.
    knows: fn(&Identity) -> bool,
    ended: Ended,
    /// Set if the clock is real: then the outcome is learned from the last reading of sessions before they are merged.
    learns: Option<Learned>,
    previous: Option<Snapshot>,
    rising: Rising,
    totals: HashMap<String, u64>,
    counts: HashMap<String, u64>,
    seen: bool,
    /// Whether a session that died is being merged: its last running account counts once it is merged.
    pub is_merging: bool,
    pub torn: usize,
}

/// The ticks in all accounts of sessions that are no longer alive.
pub fn ended_ticks(snapshot: &Snapshot) -> u64 {
    let ended = snapshot.books.iter().filter(|book| book.life == Life::Retired);
    ended.chain(&snapshot.groups).map(|book| book.accounted(&snapshot.directory)).sum()
}

/// All ticks.
fn all_ticks(snapshot: &Snapshot) -> u64 {
    let all = snapshot.books.iter().chain(&snapshot.groups);
    all.map(|book| book.accounted(&snapshot.directory)).sum()
}

/// The figures of the session seen last.
#[derive(Debug, Clone, Default)]
struct Learned {
    generation: u32,
    /// Whether it was read after it had closed its last account.
    is_closed: bool,
}

fn is_of_the_server(identity: &Identity) -> bool {
    let texts = [&*identity.kind, &*identity.database, &*identity.user, &*identity.client];
    texts == ["client backend", "alpha", "ann", "local"]
        && ["first application", "another one"].contains(&&*identity.application)
}

fn name_of(process: &str, stat: &segment::directory::Stat) -> String {
    format!("{process}: {} ({:?})", stat.name, stat.kind)
}

impl Witness {
    pub fn new(ended: Ended) -> Witness {
        Witness {
            knows: is_of_the_server,
            ended,
            learns: None,
            previous: None,
            rising: Rising::default(),
            totals: HashMap::new(),
            counts: HashMap::new(),
            seen: false,
            is_merging: false,
            torn: 0,
        }
    }

    /// A witness of consecutive sessions with such texts, with a real clock.
    pub fn of_threads(knows: fn(&Identity) -> bool) -> Witness {
        Witness { knows, learns: Some(Learned::default()), ..Witness::new(Ended::default()) }
    }

    /// A witness with the same knowledge, whose writer has been killed.
    pub fn after_death(&self) -> Witness {
        let learns = self.learns.clone();
        Witness { learns, seen: self.seen, knows: self.knows, ..Witness::new(self.ended) }
    }

    /// Learn the outcome of sessions from the live session.
    fn learn(&mut self, snapshot: &Snapshot) {
        let Some(learned) = &mut self.learns else { return };
        if self.previous.as_ref().is_some_and(|previous| previous.resets != snapshot.resets) {
            self.ended = Ended::default();
            *learned = Learned::default();
        }
        match snapshot.books.first() {
            // A session that is being merged is partly in its group.
            Some(book) if !snapshot.stuck_merge => {
                if book.generation != learned.generation {
                    *learned = Learned { generation: book.generation, is_closed: false };
                    self.ended.before = self.ended.after;
                    self.seen = false;
                }
                self.ended.after = self.ended.before + book.accounted(&snapshot.directory);
                learned.is_closed = book.run().is_none();
            }
            _ if !learned.is_closed => {
                learned.is_closed = true;
                self.ended.after = ended_ticks(snapshot);
            }
            _ => {}
        }
    }

    /// Take a snapshot while the writer continues from one stop to another; `stopped`: it does not move.
    pub fn look(&mut self, segment: &mut Segment, begin: u64, stopped: bool) -> Result<(), String> {
        let path = segment.path().to_path_buf();
        let before = SlotWords::read(&path);
        let snapshot =
            segment.snapshot(self.previous.as_ref()).map_err(|error| error.to_string())?;
        let delta = Delta::between(self.previous.as_ref(), &snapshot);
        let closing = before.is_closed || SlotWords::read(&path).state == slot_state::LIVE;
        self.learn(&snapshot);
        self.sessions(&snapshot, begin, closing)?;
        self.change(&delta, &snapshot)?;
        if stopped {
            torn_is_marked(segment.path(), &snapshot)?;
        }
        let interval = Interval::between(segment, self.previous.as_ref(), &snapshot);
        let torn = snapshot.books.iter().filter(|book| book.torn).count();
        self.torn += torn;
        if torn > 0 && interval.exact {
            return Err("a session that was read in an update is called exact".into());
        }
        self.counters(segment, &snapshot, torn > 0)?;
        self.previous = Some(snapshot);
        Ok(())
    }

    /// Every session's accounts add up to the time since it was claimed.
    fn sessions(&mut self, snapshot: &Snapshot, begin: u64, closing: bool) -> Result<(), String> {
        let mut lives = false;
        for book in &snapshot.books {
            let identity = &book.identity;
            if !(self.knows)(identity) {
                return Err(format!("foreign or half texts: {identity:?}"));
            }
            if book.life == Life::Retired {
                continue;
            }
            lives = true;
            let accounted = book.accounted(&snapshot.directory);
            let age = book.now - book.born;
            if accounted != age {
                return Err(format!(
                    "a session of {age} ticks has {accounted} in its accounts; torn: {}",
                    book.torn
                ));
            }
            let from = if book.run().is_some() && book.life == Life::Alive { begin } else { 0 };
            if book.born < book.claimed_tick || !(from..=snapshot.tick).contains(&book.now) {
                return Err(format!(
                    "born {}, now {}, snapshot {}",
                    book.born, book.now, snapshot.tick
                ));
            }
            if book.run().is_none() && book.life == Life::Alive && !closing {
                return Err("a session lives and has no account that runs".into());
            }
        }
        if self.previous.as_ref().is_some_and(|previous| previous.resets != snapshot.resets) {
            self.seen = false;
        }
        let ended = ended_ticks(snapshot);
        let fits = match (lives, snapshot.resets) {
            _ if self.is_merging => {
                (self.ended.before.min(ended)..=self.ended.after).contains(&ended)
            }
            (true, 0) => ended == self.ended.before,
            (true, _) => ended == 0,
            (false, _) => ended == self.ended.after || (ended == self.ended.before && !self.seen),
        };
        self.seen |= lives || ended == self.ended.after;
        if fits {
            return Ok(());
        }
        Err(format!(
            "the sessions that ended have {ended} ticks, not {:?}; one lives: {lives}",
            self.ended
        ))
    }

    /// The accounts of an interval add up to the lifetime of its sessions in it.
    fn change(&self, delta: &Delta<'_>, snapshot: &Snapshot) -> Result<(), String> {
        let totals = delta.kinds.iter().flat_map(|kind| (0..).zip(&kind.totals));
        let is_account =
            |stat| snapshot.directory.get(stat).is_some_and(|stat| stat.kind == StatKind::Account);
        let accounts = totals.filter(|(stat, _)| is_account(*stat));
        let ticks: u64 = accounts.map(|(_, total)| total.change.total).sum();
        let lived =
            delta.sessions.iter().map(|session| session.lived).sum::<u64>() + delta.ended_ticks;
        if ticks != lived {
            return Err(format!(
                "an interval has {ticks} ticks in accounts, and its sessions lived {lived}"
            ));
        }
        let previous = self.previous.as_ref().filter(|previous| previous.resets == snapshot.resets);
        let growth = all_ticks(snapshot).saturating_sub(previous.map_or(0, all_ticks));
        if ticks != growth {
            return Err(format!(
                "an interval has {ticks} ticks, and the accounts have grown by {growth}"
            ));
        }
        Ok(())
    }

    /// No counter falls.
    fn counters(
        &mut self,
        segment: &Segment,
        snapshot: &Snapshot,
        torn: bool,
    ) -> Result<(), String> {
        let mut frame = Frame::between(segment, None, snapshot);
        if self.previous.as_ref().is_some_and(|previous| previous.resets != snapshot.resets) {
            self.totals.clear();
            self.counts.clear();
        }
        let all = all_ticks(snapshot);
        self.rising.hold(snapshot.resets, &mut frame);
        let mut held = 0;
        let mut totals = HashMap::new();
        for statistic in &frame.statistics {
            let name = name_of(&statistic.process, &statistic.stat);
            if statistic.stat.kind == StatKind::Account {
                held += statistic.total.change.total;
                totals.insert(name.clone(), statistic.total.change.total);
            }
            let count = statistic.total.change.count;
            let before = self.counts.get(&name).copied().unwrap_or(0);
            // A pending record may count twice in a book that was read during an update.
            if count < before {
                return Err(format!("{name}: {before} were counted, and now {count}"));
            }
            if !torn {
                self.counts.insert(name, count);
            }
        }
        for (name, before) in &self.totals {
            let now = totals.get(name).copied().unwrap_or(0);
            if now < *before {
                return Err(format!("{name}: had {before} ticks, and now {now}"));
            }
        }
        self.totals = totals;
        if held < all {
            return Err(format!("counters have {held} ticks of {all}"));
        }
        Ok(())
    }
}

/// The first slot, as in the file.
struct SlotWords {
    state: u32,
    /// Whether it has no running account.
    is_closed: bool,
}

impl SlotWords {
    fn read(path: &Path) -> SlotWords {
        let (entry, book) = (word(path, header::ENTRIES as u64), word(path, header::BOOKS as u64));
        let run = word(path, book + book::RUN as u64) as u32;
        SlotWords { state: word(path, entry) as u32, is_closed: run == u32::MAX }
    }
}

/// Words of the file, according to the format.
pub fn word(path: &Path, at: u64) -> u64 {
    use std::os::unix::fs::FileExt;
    let mut bytes = [0; 8];
    std::fs::File::open(path).unwrap().read_exact_at(&mut bytes, at).unwrap();
    u64::from_ne_bytes(bytes)
}

/// A live session is torn if and only if its book says that it is in an update.
fn torn_is_marked(path: &Path, snapshot: &Snapshot) -> Result<(), String> {
    let at = header::BOOKS as u64;
    let (books, stride) = (word(path, at), word(path, at + 8) >> 32);
    for book in snapshot.books.iter().filter(|book| book.life == Life::Alive) {
        let odd = word(path, books + u64::from(book.slot) * stride) % 2 == 1;
        if odd != book.torn {
            return Err(format!("its writer is in an update: {odd}; known as torn: {}", book.torn));
        }
    }
    Ok(())
}
