// SPDX-License-Identifier: PostgreSQL
//! One consistent reading of a whole segment.
//!
//! Concurrency contract. Writers go on while we read, and are never held up.
//!
//! A book is copied between two readings of its sequence counter that are equal and even
//! (the loads pair with A and B of tally.h); the clock is read before the second one, so
//! that the running account still ran at that tick. Histograms are read after the heads and
//! outside of that: they may run ahead by the updates made meanwhile, never behind.
//!
//! A session that ends is folded into its group. The whole counts it once: the slots are
//! read first, then the groups, between two equal readings of the number of folds while no
//! fold is active; then every slot that the log of folds names for the time since we began
//! is dropped, because its group already holds it. A fold whose process was killed stands
//! still: then the journal gives the group back what it held before, and the slot goes
//! without the statistics that had already been moved.
//!
//! A reset during the reading starts it again.

use crate::clock::{self, Clock};
use crate::directory::{Directory, StatId, StatKind};
use crate::error::Error;
use crate::layout::{
    self, book, bucket, entry, head, header, i32_at, journal, state, text_at, u32_at, u64_at,
};
use crate::level::{resets_of_word, Level};
use crate::process;
use crate::segment::{Overflows, Segment};
use std::cell::Cell;
use std::collections::HashSet;
use std::sync::atomic::{fence, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Who a session is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// "client backend", ...
    pub kind: String,
    /// Name of the database, or empty.
    pub database: String,
    /// Name of the user, or empty.
    pub user: String,
    /// What the client calls itself, or empty.
    pub application: String,
}

/// Whether a slot's owner still writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// Its process is there, or that cannot be known.
    Alive,
    /// Its process is gone and nobody has folded the slot yet.
    Dead,
    /// It has ended properly and is not folded yet.
    Retired,
}

/// One statistic of a book. `total` counts what is pending and what is still running up to
/// [`Book::now`]; `count` counts what is pending.
#[derive(Debug, Clone)]
pub struct Head {
    /// Which statistic.
    pub stat: StatId,
    /// Events.
    pub count: u64,
    /// Their sum; of accounts and timers in ticks.
    pub total: u64,
    /// Of the running account: the part of `total` that has not ended yet.
    pub running: u64,
    /// The least; `u64::MAX` while there was none.
    pub min: u64,
    /// The greatest.
    pub max: u64,
    /// As the file has it, to see whether the histogram has changed.
    raw_count: u64,
    /// First bucket of `buckets`.
    pub(crate) first_bucket: usize,
    /// The histogram since the statistic began, shared with earlier snapshots while it does
    /// not change.
    pub(crate) buckets: Arc<[u64]>,
}

/// What a slot holds, or a group.
#[derive(Debug, Clone)]
pub struct Book {
    /// Index of its slot, or of its group after the slots.
    pub slot: u32,
    /// How often the slot was claimed; with `slot` it names a session.
    pub generation: u32,
    /// The process.
    pub pid: i32,
    /// The leader of a parallel worker, else 0.
    pub leader_pid: i32,
    /// 0 when none or unknown.
    pub database_id: u32,
    /// 0 when none or unknown.
    pub user_id: u32,
    /// When the slot was claimed, tick.
    pub claimed_tick: u64,
    /// When the slot was claimed, ns of CLOCK_BOOTTIME.
    pub claimed_boot_ns: u64,
    /// Who.
    pub identity: Arc<Identity>,
    identity_seq: u32,
    /// Whether it still runs.
    pub life: Life,
    /// Not read consistently within the tries we allow: its writer was stopped or killed in
    /// the middle of an update.
    pub torn: bool,
    /// The sequence counter.
    pub(crate) seq: u64,
    /// The account that runs: index of its head.
    pub(crate) run_head: Option<usize>,
    /// Since when, tick.
    pub run_start: u64,
    /// Since when its time is conserved, tick.
    pub born: u64,
    /// Up to when it is conserved, tick.
    pub now: u64,
    /// Calls through each probe.
    pub calls: Vec<u64>,
    /// The statistics, in the order of their first use.
    pub heads: Vec<Head>,
    /// Of a group: sessions folded into it.
    pub sessions: u64,
}

impl Book {
    /// The account that runs.
    pub fn run(&self) -> Option<StatId> {
        self.run_head.and_then(|i| self.heads.get(i)).map(|h| h.stat)
    }

    /// Ticks in all accounts, the running one included: the age of the session.
    pub fn accounted(&self, directory: &Directory) -> u64 {
        self.heads
            .iter()
            .filter(|h| directory.get(h.stat).is_some_and(|s| s.kind == StatKind::Account))
            .fold(0, |sum, h| sum.saturating_add(h.total))
    }
}

/// A consistent reading of a segment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// When it was complete, tick.
    pub tick: u64,
    /// When it was complete, ns since 1970.
    pub realtime_ns: u64,
    /// The clock as known then.
    pub clock: Clock,
    /// The level in force.
    pub level: Level,
    /// How often everything was set to zero.
    pub resets: u32,
    /// When that last happened, tick.
    pub reset_tick: u64,
    /// What found no room so far.
    pub overflows: Overflows,
    /// Events ever begun.
    pub event_count: u64,
    /// Folds completed.
    pub folds: u64,
    /// The sessions, by slot.
    pub books: Vec<Book>,
    /// The groups of folded sessions, by index.
    pub groups: Vec<Book>,
    /// The names of the statistics.
    pub directory: Arc<Directory>,
    /// Heads that name no statistic; what they hold is not shown.
    pub nameless: u64,
    /// A fold was found standing still, its process killed.
    pub stuck_fold: bool,
}

impl Snapshot {
    /// The book of a session.
    pub fn book(&self, slot: u32, generation: u32) -> Option<&Book> {
        let at = self.books.binary_search_by_key(&slot, |b| b.slot).ok()?;
        self.books.get(at).filter(|b| b.generation == generation)
    }
}

/// How often a whole snapshot is begun again before we give up.
const RESTARTS: u32 = 20;
/// How often a book is read again while its writer changes it ...
const BOOK_TRIES: u32 = 1000;
/// ... and all books of a snapshot together, so that stopped writers cannot stop us.
const ALL_TRIES: u32 = 5000;
/// How long we wait for a fold to end before we look whether its process lives.
const FOLD_PATIENCE: Duration = Duration::from_millis(20);
/// How long we wait for a fold at all.
const FOLD_LIMIT: Duration = Duration::from_millis(500);
/// Slots in which nothing moves whose process is looked at more closely per snapshot.
const LIVENESS_CHECKS: usize = 32;

/// The parts of an entry that a snapshot needs.
struct Entry {
    state: u32,
    generation: u32,
    pid: i32,
    identity_seq: u32,
}

impl Entry {
    fn of(bytes: &[u8]) -> Entry {
        Entry {
            state: u32_at(bytes, entry::STATE),
            generation: u32_at(bytes, entry::GENERATION),
            pid: i32_at(bytes, entry::PID),
            identity_seq: u32_at(bytes, entry::IDENTITY_SEQ),
        }
    }
}

/// What must hold for the whole of a snapshot.
struct Frame<'a> {
    previous: Option<&'a Snapshot>,
    resets: u32,
    reset_tick: u64,
    /// Readings repeated, all books together.
    repeats: Cell<u32>,
}

/// The groups, and the number of folds that they hold.
struct Groups {
    books: Vec<Book>,
    folds: u64,
    stuck: Option<Stuck>,
}

/// A fold that stands still, its process killed.
struct Stuck {
    slot: u32,
    undo: Option<Undo>,
}

/// The head that it was changing, and what that held before.
struct Undo {
    group: u32,
    head: u32,
    saved: [u8; head::SIZE],
    hist: Vec<u64>,
}

impl Segment {
    /// Read the whole segment. Give the previous snapshot of this segment, if there is one:
    /// only what has changed since is read, and the two share the rest.
    pub fn snapshot(&mut self, previous: Option<&Snapshot>) -> Result<Snapshot, Error> {
        if self.is_of_this_boot() {
            self.clock.measure();
        }
        for attempt in 0..RESTARTS {
            if attempt > 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            if let Some(snapshot) = self.try_snapshot(previous)? {
                return Ok(snapshot);
            }
        }
        Err(Error::Restless { path: self.path().to_path_buf(), tries: RESTARTS })
    }

    fn try_snapshot(&mut self, previous: Option<&Snapshot>) -> Result<Option<Snapshot>, Error> {
        let live = self.read_live()?;
        let word = u32_at(&live, header::LEVEL_WORD);
        let resets = resets_of_word(word);
        let folds_before = u64_at(&live, header::FOLD_COUNT);
        let frame = Frame {
            // After a reset nothing of before is comparable, histograms least of all.
            previous: previous.filter(|p| p.resets == resets),
            resets,
            reset_tick: u64_at(&live, header::RESET_TICK),
            repeats: Cell::new(0),
        };
        let mut nameless = 0;

        let entries = self.read_entries()?;
        let mut books = Vec::with_capacity(frame.previous.map_or(16, |p| p.books.len() + 8));
        let mut folding = Vec::new();
        for slot in 0..self.header().slots {
            let at = slot as usize * self.regions.entries.stride as usize;
            let seen = Entry::of(entries.get(at..).unwrap_or(&[]));
            if !matches!(seen.state, state::LIVE | state::RETIRED | state::FOLDING) {
                continue;
            }
            if seen.state == state::FOLDING {
                folding.push(slot);
            }
            let bytes = entries[at..at + entry::SIZE].to_vec();
            books.push(self.read_slot(slot, &seen, &bytes, &frame, &mut nameless)?);
        }
        self.entries_buffer = entries;
        self.check_liveness(&mut books, &frame);

        let Some(Groups { books: groups, folds, stuck }) =
            self.read_groups(&frame, &mut nameless)?
        else {
            return Ok(None);
        };
        if let Some(stuck) = &stuck {
            // What the killed fold has already moved is in the group now.
            if let Some(book) = books.iter_mut().find(|b| b.slot == stuck.slot) {
                if folding.contains(&book.slot) {
                    let folded = self.folded_of(book.slot)? as usize;
                    book.heads.drain(..folded.min(book.heads.len()));
                }
            }
        }
        let done = folds.wrapping_sub(folds_before);
        let log = self.regions.fold_log;
        if done > u64::from(log.count) {
            return Ok(None);
        }
        if done > 0 {
            let mut folded = HashSet::new();
            for n in folds_before..folds {
                let at = (n % u64::from(log.count)) as u32;
                folded.insert(self.read_u64(log.entry(at))?);
            }
            books
                .retain(|b| !folded.contains(&(u64::from(b.generation) << 32 | u64::from(b.slot))));
        }
        let after = self.read_live()?;
        let folds_after = u64_at(&after, header::FOLD_COUNT);
        if resets_of_word(u32_at(&after, header::LEVEL_WORD)) != resets
            || folds_after.wrapping_sub(folds_before) > u64::from(log.count)
        {
            return Ok(None);
        }
        Ok(Some(Snapshot {
            tick: self.clock.now(),
            realtime_ns: clock::realtime_ns(),
            clock: self.clock,
            level: Level::of_word(word),
            resets,
            reset_tick: frame.reset_tick,
            overflows: Overflows::of(&after),
            event_count: u64_at(&after, header::EVENT_COUNT),
            folds,
            books,
            groups,
            directory: self.directory.clone(),
            nameless,
            stuck_fold: stuck.is_some(),
        }))
    }

    /// All entries, slots and groups, in one go.
    fn read_entries(&mut self) -> Result<Vec<u8>, Error> {
        let region = self.regions.entries;
        let size = region.count as usize * region.stride as usize;
        let mut entries = std::mem::take(&mut self.entries_buffer);
        entries.resize(size, 0);
        self.read(region.offset, &mut entries)?;
        Ok(entries)
    }

    fn folded_of(&self, slot: u32) -> Result<u32, Error> {
        let mut bytes = [0u8; 4];
        let at = self.regions.entries.entry(slot) + entry::FOLDED as u64;
        self.read(at, &mut bytes)?;
        Ok(u32_at(&bytes, 0))
    }

    /// The texts of an entry, read while they do not change.
    fn read_identity(&self, index: u32, seen: &[u8]) -> Result<(Arc<Identity>, u32), Error> {
        let offset = self.regions.entries.entry(index);
        let mut bytes = [0u8; entry::SIZE];
        bytes.copy_from_slice(&seen[..entry::SIZE]);
        for _ in 0..100 {
            self.read(offset, &mut bytes)?;
            fence(Ordering::Acquire);
            let mut seq = [0u8; 4];
            self.read(offset + entry::IDENTITY_SEQ as u64, &mut seq)?;
            let before = u32_at(&bytes, entry::IDENTITY_SEQ);
            if before % 2 == 0 && before == u32_at(&seq, 0) {
                break;
            }
            std::thread::yield_now();
        }
        let text = |at| text_at(&bytes, at, 64);
        let identity = Identity {
            kind: text(entry::KIND),
            database: text(entry::DATABASE),
            user: text(entry::USER),
            application: text(entry::APPLICATION),
        };
        Ok((Arc::new(identity), u32_at(&bytes, entry::IDENTITY_SEQ)))
    }

    fn read_slot(
        &mut self,
        slot: u32,
        seen: &Entry,
        bytes: &[u8],
        frame: &Frame<'_>,
        nameless: &mut u64,
    ) -> Result<Book, Error> {
        let previous = frame.previous.and_then(|p| p.book(slot, seen.generation));
        let known =
            previous.filter(|p| p.identity_seq == seen.identity_seq && seen.identity_seq % 2 == 0);
        let (identity, identity_seq) = match known {
            Some(p) => (p.identity.clone(), p.identity_seq),
            None => self.read_identity(slot, bytes)?,
        };
        let life = match seen.state {
            state::LIVE if !self.is_of_this_boot() => Life::Dead,
            state::LIVE if self.pids_known && !process::exists(seen.pid) => Life::Dead,
            state::LIVE => Life::Alive,
            _ => Life::Retired,
        };
        let mut book = Book {
            slot,
            generation: seen.generation,
            pid: seen.pid,
            leader_pid: i32_at(bytes, entry::LEADER_PID),
            database_id: u32_at(bytes, entry::DATABASE_ID),
            user_id: u32_at(bytes, entry::USER_ID),
            claimed_tick: u64_at(bytes, entry::CLAIMED_TICK),
            claimed_boot_ns: u64_at(bytes, entry::CLAIMED_BOOT_NS),
            identity,
            identity_seq,
            life,
            torn: false,
            seq: 0,
            run_head: None,
            run_start: 0,
            born: 0,
            now: 0,
            calls: Vec::new(),
            heads: Vec::new(),
            sessions: 1,
        };
        self.read_book(&mut book, previous, frame, nameless)?;
        Ok(book)
    }

    /// Fill the part of `book` that its owner writes.
    fn read_book(
        &mut self,
        book: &mut Book,
        previous: Option<&Book>,
        frame: &Frame<'_>,
        nameless: &mut u64,
    ) -> Result<(), Error> {
        let base = self.regions.books.entry(book.slot);
        let most = self.header().stats_per_book as usize;
        let mut room = previous.map_or(24, |p| p.heads.len() + 4).min(most);
        let mut buffer = std::mem::take(&mut self.book_buffer);
        let mut tries = 0;
        loop {
            let before = self.read_u64(base + book::SEQ as u64)?;
            fence(Ordering::Acquire);
            buffer.resize(book::SIZE + room * head::SIZE, 0);
            self.read(base, &mut buffer)?;
            let used = (u32_at(&buffer, book::USED) as usize).min(most);
            if used > room {
                room = used;
                continue;
            }
            book.now = self.clock.now();
            fence(Ordering::Acquire);
            let after = self.read_u64(base + book::SEQ as u64)?;
            book.seq = after;
            if before == after && before % 2 == 0 {
                break;
            }
            tries += 1;
            frame.repeats.set(frame.repeats.get() + 1);
            // A process that is gone does not finish its update; one that is stopped may not
            // for hours.
            let gone = book.life != Life::Alive && before == after;
            if gone || tries >= BOOK_TRIES || frame.repeats.get() >= ALL_TRIES {
                book.torn = book.life == Life::Alive;
                break;
            }
            if tries > 50 {
                std::thread::sleep(Duration::from_micros(50));
            } else {
                std::thread::yield_now();
            }
        }

        let empty = u32_at(&buffer, book::RESETS) != frame.resets;
        let used = (u32_at(&buffer, book::USED) as usize).min(most);
        let run = u32_at(&buffer, book::RUN) as usize;
        book.run_start = u64_at(&buffer, book::RUN_START);
        book.born = u64_at(&buffer, book::BORN);
        if empty {
            // Reset, and its owner has not noticed: only what runs since then counts.
            book.run_start = book.run_start.max(frame.reset_tick);
            book.born = book.born.max(frame.reset_tick);
        } else {
            book.calls.extend((0..layout::CALLS).map(|i| u64_at(&buffer, book::CALLS + 8 * i)));
        }
        book.heads.reserve_exact(used);
        let mut index_of_run = None;
        let mut index_of_pend = None;
        let pend = u32_at(&buffer, book::PEND) as usize;
        for index in 0..used {
            let bytes = &buffer[book::SIZE + index * head::SIZE..];
            let Some(stat) = self.stat(u32_at(bytes, head::STAT))? else {
                *nameless += 1;
                continue;
            };
            if index == run {
                index_of_run = Some(book.heads.len());
            }
            if index == pend {
                index_of_pend = Some(book.heads.len());
            }
            let one = if empty {
                Head::empty(stat)
            } else {
                let base = base + (book::SIZE + most * head::SIZE) as u64;
                let at = base + (index * layout::HIST_SIZE) as u64;
                self.read_head(bytes, stat, previous, book.heads.len(), at)?
            };
            book.heads.push(one);
        }
        if let (Some(head), false) = (index_of_pend, empty) {
            let ticks = u64_at(&buffer, book::PEND_TICKS);
            let head = &mut book.heads[head];
            head.count = head.count.saturating_add(1);
            head.total = head.total.saturating_add(ticks);
            head.min = head.min.min(ticks);
            head.max = head.max.max(ticks);
        }
        self.book_buffer = buffer;
        book.run_head = index_of_run;
        // What runs ends with its process; nobody knows when that was, but not before we
        // last saw it.
        book.now = match book.life {
            Life::Alive => book.now.max(book.run_start),
            Life::Dead | Life::Retired => {
                previous.map_or(book.run_start, |p| p.now.max(book.run_start))
            }
        };
        if let Some(index) = index_of_run {
            let mut running = book.now - book.run_start;
            if book.seq % 2 == 1 && !empty {
                // Its writer stopped inside an update, perhaps with the stretch that ends
                // already in the heads and the next one not yet begun.
                let span = book.run_start.saturating_sub(book.born);
                let counted = book.accounted(&self.directory).saturating_sub(span);
                running = running.saturating_sub(counted);
            }
            let head = &mut book.heads[index];
            head.running = running;
            head.total = head.total.saturating_add(running);
        }
        Ok(())
    }

    fn read_head(
        &self,
        bytes: &[u8],
        stat: StatId,
        previous: Option<&Book>,
        index: usize,
        hist_at: u64,
    ) -> Result<Head, Error> {
        let mut head = Head {
            stat,
            count: u64_at(bytes, head::COUNT),
            total: u64_at(bytes, head::TOTAL),
            running: 0,
            min: u64_at(bytes, head::MIN),
            max: u64_at(bytes, head::MAX),
            raw_count: 0,
            first_bucket: 0,
            buckets: Arc::new([]),
        };
        head.raw_count = head.count;
        let before = previous.and_then(|p| p.heads.get(index)).filter(|p| p.stat == stat);
        match before {
            Some(p) if p.raw_count == head.raw_count => {
                head.first_bucket = p.first_bucket;
                head.buckets = p.buckets.clone();
            }
            _ if head.count > 0 && head.min <= head.max => {
                let first = bucket(head.min);
                let count = bucket(head.max) - first + 1;
                let mut bytes = [0u8; layout::HIST_SIZE];
                let bytes = &mut bytes[..count * 8];
                self.read(hist_at + first as u64 * 8, bytes)?;
                head.first_bucket = first;
                head.buckets = (0..count).map(|i| u64_at(bytes, i * 8)).collect();
            }
            _ => {}
        }
        Ok(head)
    }

    /// A dead process may have left its number to another: look closer at those slots that
    /// are new to us, and at a few of those in which nothing moved.
    fn check_liveness(&mut self, books: &mut [Book], frame: &Frame<'_>) {
        if !self.pids_known || books.is_empty() {
            return;
        }
        let known = |book: &Book| frame.previous.and_then(|p| p.book(book.slot, book.generation));
        let die = |book: &mut Book| {
            if book.life == Life::Alive && !process::is_same(book.pid, book.claimed_boot_ns) {
                book.life = Life::Dead;
                let now = known(book).map_or(book.run_start, |p| p.now.max(book.run_start));
                let running = now - book.run_start;
                if let Some(head) = book.run_head.and_then(|i| book.heads.get_mut(i)) {
                    head.total = head.total - head.running + running;
                    head.running = running;
                }
                book.now = now;
            }
        };
        for book in books.iter_mut() {
            match known(book) {
                None => die(book),
                // Once found dead, for ever dead: its number was another's already.
                Some(p) if p.life == Life::Dead => die(book),
                Some(_) => {}
            }
        }
        let count = books.len();
        let mut checks = 0;
        for step in 0..count {
            if checks == LIVENESS_CHECKS {
                break;
            }
            self.liveness_turn = (self.liveness_turn + 1) % count;
            let book = &mut books[(self.liveness_turn + step) % count];
            if known(book).is_some_and(|p| p.seq == book.seq) {
                checks += 1;
                die(book);
            }
        }
    }

    /// The groups and the number of folds that they hold; `None`: folds came too fast.
    fn read_groups(
        &mut self,
        frame: &Frame<'_>,
        nameless: &mut u64,
    ) -> Result<Option<Groups>, Error> {
        let begin = Instant::now();
        loop {
            let live = self.read_live()?;
            let folds = u64_at(&live, header::FOLD_COUNT);
            let active = u64_at(&live, header::FOLD_ACTIVE) != 0;
            if active && !self.fold_stands_still(&live, begin.elapsed()) {
                std::thread::sleep(Duration::from_micros(100));
                continue;
            }
            let stuck = if active { Some(self.read_journal()?) } else { None };
            let undo = stuck.as_ref().and_then(|s| s.undo.as_ref());
            let books = self.read_group_books(frame, undo, nameless)?;
            fence(Ordering::Acquire);
            let after = self.read_live()?;
            if u64_at(&after, header::FOLD_COUNT) == folds
                && (u64_at(&after, header::FOLD_ACTIVE) != 0) == active
            {
                return Ok(Some(Groups { books, folds, stuck }));
            }
            if begin.elapsed() > FOLD_LIMIT {
                return Ok(None);
            }
        }
    }

    fn fold_stands_still(&self, live: &[u8], waited: Duration) -> bool {
        let holder = i32_at(live, header::FOLD_LOCK);
        !self.is_of_this_boot()
            || waited > FOLD_LIMIT
            || waited > FOLD_PATIENCE && self.pids_known && !process::exists(holder)
    }

    /// What a killed fold was changing.
    fn read_journal(&self) -> Result<Stuck, Error> {
        /// A head is being folded, and may be half changed.
        const HEAD: u32 = 1;
        let mut bytes = vec![0u8; journal::SIZE];
        self.read(self.regions.journal.offset, &mut bytes)?;
        let mut saved = [0u8; head::SIZE];
        saved.copy_from_slice(&bytes[journal::SAVED..journal::SAVED + head::SIZE]);
        let slot = u32_at(&bytes, journal::SLOT);
        let mut undo = None;
        if u32_at(&bytes, journal::ACTIVE) == HEAD && slot < self.header().slots {
            // The first reserved word of the saved head: which of the slot's it adds.
            let source = u64_at(&saved, head::RESERVED);
            if u64::from(self.folded_of(slot)?) <= source {
                undo = Some(Undo {
                    group: u32_at(&bytes, journal::GROUP),
                    head: u32_at(&bytes, journal::HEAD),
                    saved,
                    hist: (0..layout::HIST_BUCKETS)
                        .map(|i| u64_at(&bytes, journal::HIST + 8 * i))
                        .collect(),
                });
            }
        }
        Ok(Stuck { slot, undo })
    }

    fn read_group_books(
        &mut self,
        frame: &Frame<'_>,
        undo: Option<&Undo>,
        nameless: &mut u64,
    ) -> Result<Vec<Book>, Error> {
        let region = self.regions.entries;
        let (slots, count) = (self.header().slots, self.header().groups);
        let most = self.header().stats_per_book as usize;
        let mut entries = vec![0u8; count as usize * region.stride as usize];
        self.read(region.entry(slots), &mut entries)?;
        let mut groups = Vec::new();
        for group in 0..count {
            let bytes = &entries[group as usize * region.stride as usize..];
            if u32_at(bytes, entry::STATE) != state::GROUP {
                continue;
            }
            let index = slots + group;
            let generation = u32_at(bytes, entry::GENERATION);
            let previous = frame.previous.and_then(|p| {
                let at = p.groups.binary_search_by_key(&index, |b| b.slot).ok()?;
                p.groups.get(at)
            });
            let text = |at| text_at(bytes, at, 64);
            let mut book = Book {
                slot: index,
                generation,
                pid: 0,
                leader_pid: 0,
                database_id: u32_at(bytes, entry::DATABASE_ID),
                user_id: u32_at(bytes, entry::USER_ID),
                claimed_tick: 0,
                claimed_boot_ns: 0,
                identity: Arc::new(Identity {
                    kind: text(entry::KIND),
                    database: text(entry::DATABASE),
                    user: text(entry::USER),
                    application: String::new(),
                }),
                identity_seq: 0,
                life: Life::Retired,
                torn: false,
                seq: 0,
                run_head: None,
                run_start: 0,
                born: 0,
                now: 0,
                calls: Vec::new(),
                heads: Vec::new(),
                sessions: u64_at(bytes, entry::SESSIONS),
            };
            let base = self.regions.books.entry(index);
            let mut top = [0u8; book::SIZE];
            self.read(base, &mut top)?;
            book.calls.extend((0..layout::CALLS).map(|i| u64_at(&top, book::CALLS + 8 * i)));
            let used = (u32_at(&top, book::USED) as usize).min(most);
            let mut heads = std::mem::take(&mut self.book_buffer);
            heads.resize(used * head::SIZE, 0);
            self.read(base + book::SIZE as u64, &mut heads)?;
            for head_index in 0..used {
                let bytes = &heads[head_index * head::SIZE..];
                let Some(stat) = self.stat(u32_at(bytes, head::STAT))? else {
                    *nameless += 1;
                    continue;
                };
                let undone = undo.filter(|u| (u.group, u.head) == (index, head_index as u32));
                let at =
                    base + (book::SIZE + most * head::SIZE + head_index * layout::HIST_SIZE) as u64;
                let bytes = undone.map_or(bytes, |u| u.saved.as_slice());
                let mut head = self.read_head(bytes, stat, previous, book.heads.len(), at)?;
                if let Some(undo) = undone {
                    head.first_bucket = 0;
                    head.buckets = undo.hist.as_slice().into();
                }
                book.heads.push(head);
            }
            self.book_buffer = heads;
            groups.push(book);
        }
        Ok(groups)
    }
}

impl Head {
    fn empty(stat: StatId) -> Head {
        Head {
            stat,
            count: 0,
            total: 0,
            running: 0,
            min: u64::MAX,
            max: 0,
            raw_count: 0,
            first_bucket: 0,
            buckets: Arc::new([]),
        }
    }
}
