// SPDX-License-Identifier: PostgreSQL
//! One book: what a session has counted, taken while it goes on counting.
//!
//! Concurrency contract. The book is copied between two readings of its sequence counter
//! that are equal and even (the loads pair with A and B of tally.h); the clock is read
//! before the second one, so that the running account still ran at that tick. Histograms
//! are read after the heads and outside of that: they may run ahead by the updates made
//! meanwhile, never behind.

use crate::directory::{Directory, StatId, StatKind};
use crate::error::Error;
use crate::histogram::Histogram;
use crate::layout::{
    self, book, bucket, entry, head, hold, i32_at, state, text_at, u32_at, u64_at,
};
use crate::process;
use crate::segment::Segment;
use crate::shelf::{Filler, Place, Shelf};
use crate::snapshot::Snapshot;
use std::sync::atomic::{fence, AtomicU32, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// The number of a statistic that the directory does not name. Only a damaged segment has
/// such; what it holds is not shown.
pub const NAMELESS: StatId = StatId::MAX;

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
    /// Which statistic; [`NAMELESS`] where the directory does not say.
    pub stat: StatId,
    /// Its number in the file: 1 + index in the directory.
    pub(crate) raw_stat: u32,
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
    /// Bytes that its events moved, where they move any.
    pub amount: u64,
    /// How many of these went on where the one before had ended.
    pub follows: u64,
    /// As the file has it, to see whether the histogram has changed.
    pub(crate) raw_count: u64,
    /// Its writer keeps no histogram of it: there was none when there should have been.
    plain: bool,
    /// Where its histogram lies, on the shelf of its book.
    pub(crate) place: Place,
}

/// A lightweight lock that a session holds. What is read of several may be of several
/// instants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// Its address, the same in all processes.
    pub lock: u64,
    /// Since when, tick.
    pub since: u64,
    /// Its tranche's number; [`Snapshot::tranches`] names it.
    pub tranche: u32,
    /// Shared, or else exclusive.
    pub shared: bool,
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
    pub(crate) identity_seq: u32,
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
    /// Lightweight locks held.
    pub holding: u32,
    /// The first of them.
    pub holds: Vec<Hold>,
    /// The statistics, in the order of their first use.
    pub heads: Vec<Head>,
    /// Some of them may still be [`NAMELESS`].
    pub(crate) unnamed: bool,
    /// Their histograms.
    pub(crate) shelf: Shelf,
    /// Of a group: sessions folded into it.
    pub sessions: u64,
}

impl Book {
    /// The account that runs.
    pub fn run(&self) -> Option<StatId> {
        self.run_head.and_then(|i| self.heads.get(i)).map(|h| h.stat)
    }

    /// The histogram of one of its heads, since the statistic began.
    pub fn histogram(&self, head: &Head) -> Histogram {
        let (first, counts) = self.shelf.get(head.place);
        let mut histogram = Histogram::new();
        histogram.add_counts(first, counts);
        histogram
    }

    /// Ticks in all accounts, the running one included: the age of the session.
    pub fn accounted(&self, directory: &Directory) -> u64 {
        self.heads
            .iter()
            .filter(|h| directory.get(h.stat).is_some_and(|s| s.kind == StatKind::Account))
            .fold(0, |sum, h| sum.saturating_add(h.total))
    }
}

/// How often a book is read again while its writer changes it ...
const BOOK_TRIES: u32 = 1000;
/// ... and all books of a snapshot together, so that stopped writers cannot stop us.
const ALL_TRIES: u32 = 5000;
/// An empty histogram beside so many records is not kept by its writer, and not looked for
/// again.
const PLAIN_FROM: u64 = 8;
/// Histograms that lie no further apart are read together, bytes ...
const GAP: usize = 2 * 1024;
/// ... but not more than this at once.
const SPAN: usize = 256 * 1024;

/// What must hold for the whole of a snapshot.
pub(crate) struct Frame<'a> {
    pub previous: Option<&'a Snapshot>,
    pub resets: u32,
    pub reset_tick: u64,
    /// Readings repeated, all books together.
    pub repeats: AtomicU32,
}

impl<'a> Frame<'a> {
    /// The previous book of a slot, which is mostly the one after that of the slot before:
    /// a search would go by books that have left the cache.
    fn previous_of(&self, slot: u32, next: &mut usize) -> Option<&'a Book> {
        let books = &self.previous?.books;
        if books.get(*next).is_none_or(|book| book.slot != slot) {
            *next = books.binary_search_by_key(&slot, |book| book.slot).ok()?;
        }
        *next += 1;
        books.get(*next - 1)
    }
}

impl Book {
    /// An empty book of the owner that `bytes`, its entry, tells of.
    pub(crate) fn of_entry(index: u32, bytes: &[u8]) -> Book {
        Book {
            slot: index,
            generation: u32_at(bytes, entry::GENERATION),
            pid: i32_at(bytes, entry::PID),
            leader_pid: i32_at(bytes, entry::LEADER_PID),
            database_id: u32_at(bytes, entry::DATABASE_ID),
            user_id: u32_at(bytes, entry::USER_ID),
            claimed_tick: u64_at(bytes, entry::CLAIMED_TICK),
            claimed_boot_ns: u64_at(bytes, entry::CLAIMED_BOOT_NS),
            identity: Arc::default(),
            identity_seq: u32_at(bytes, entry::IDENTITY_SEQ),
            life: Life::Retired,
            torn: false,
            seq: 0,
            run_head: None,
            run_start: 0,
            born: 0,
            now: 0,
            calls: Vec::new(),
            holding: 0,
            holds: Vec::new(),
            heads: Vec::new(),
            unnamed: false,
            shelf: Shelf::default(),
            sessions: 1,
        }
    }

    /// Let the running account run up to `now`, and no further.
    pub(crate) fn run_until(&mut self, now: u64) {
        self.now = now.max(self.run_start);
        let running = self.now - self.run_start;
        if let Some(head) = self.run_head.and_then(|i| self.heads.get_mut(i)) {
            head.total = (head.total - head.running).saturating_add(running);
            head.running = running;
        }
    }

    /// Of a writer that stopped inside an update: the stretch that ends may already be in
    /// the heads and the next one not have begun. What exceeds the time from birth to the
    /// stretch's begin is taken out of the running one.
    pub(crate) fn settle_torn(&mut self, directory: &Directory) {
        let Some(index) = self.run_head.filter(|_| self.seq % 2 == 1) else {
            return;
        };
        let running = self.heads.get(index).map_or(0, |h| h.running);
        let ended = self.accounted(directory).saturating_sub(running);
        let twice = ended.saturating_sub(self.run_start.saturating_sub(self.born));
        let running = running.saturating_sub(twice);
        if let Some(head) = self.heads.get_mut(index) {
            head.total = (head.total - head.running).saturating_add(running);
            head.running = running;
        }
    }
}

impl Head {
    /// The head in `bytes`, without its histogram.
    pub(crate) fn of(bytes: &[u8], stat: StatId) -> Head {
        let count = u64_at(bytes, head::COUNT);
        Head {
            stat,
            raw_stat: u32_at(bytes, head::STAT),
            count,
            total: u64_at(bytes, head::TOTAL),
            running: 0,
            min: u64_at(bytes, head::MIN),
            max: u64_at(bytes, head::MAX),
            amount: u64_at(bytes, head::AMOUNT),
            follows: u64_at(bytes, head::FOLLOWS),
            raw_count: count,
            plain: false,
            place: Place::default(),
        }
    }

    /// Whether nothing was counted since `before`.
    pub(crate) fn is_still(&self, before: &Head) -> bool {
        self.raw_stat == before.raw_stat && self.raw_count == before.raw_count
    }

    fn clear(&mut self) {
        (self.count, self.raw_count, self.total) = (0, 0, 0);
        (self.min, self.max) = (u64::MAX, 0);
        (self.amount, self.follows) = (0, 0);
    }
}

/// What is used again from one book to the next.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    book: Vec<u8>,
    histograms: HistogramBuffers,
    /// Where the next slot's book is expected among those of the previous snapshot.
    next: usize,
}

/// The same, for histograms.
#[derive(Debug, Default)]
pub(crate) struct HistogramBuffers {
    bytes: Vec<u8>,
    counts: Vec<u64>,
    wanted: Vec<Wanted>,
}

/// A histogram that has to be read: of which head, from which bucket on, and where it lies
/// in the region of histograms, bytes.
#[derive(Debug)]
struct Wanted {
    index: usize,
    first: usize,
    from: usize,
    to: usize,
}

/// What runs in a slot at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Running {
    /// The account.
    pub stat: StatId,
    /// Since when, tick.
    pub since: u64,
}

/// The locks that the book in `bytes` says are held, of `holding` in all.
fn holds(bytes: &[u8], holding: u32) -> impl Iterator<Item = Hold> + '_ {
    let held = (holding as usize).min(layout::HOLDS);
    bytes[book::HOLDS..].chunks_exact(hold::SIZE).take(held).map(|bytes| Hold {
        lock: u64_at(bytes, hold::LOCK),
        since: u64_at(bytes, hold::SINCE),
        tranche: u32_at(bytes, hold::TRANCHE),
        shared: u32_at(bytes, hold::MODE) == 1,
    })
}

/// The texts of an entry.
pub(crate) fn identity_of(bytes: &[u8]) -> Identity {
    let text = |at| text_at(bytes, at, 64);
    Identity {
        kind: text(entry::KIND),
        database: text(entry::DATABASE),
        user: text(entry::USER),
        application: text(entry::APPLICATION),
    }
}

impl Segment {
    /// The identity of a slot's owner, read while it does not change.
    pub(crate) fn read_identity(&self, index: u32) -> Result<(Arc<Identity>, u32), Error> {
        let offset = self.regions.entries.entry(index);
        let mut bytes = [0u8; entry::SIZE];
        for _ in 0..100 {
            self.read(offset, &mut bytes)?;
            fence(Ordering::Acquire);
            let mut seq = [0u8; 4];
            self.read(offset + entry::IDENTITY_SEQ as u64, &mut seq)?;
            let before = u32_at(&bytes, entry::IDENTITY_SEQ);
            if before.is_multiple_of(2) && before == u32_at(&seq, 0) {
                break;
            }
            std::thread::yield_now();
        }
        Ok((Arc::new(identity_of(&bytes)), u32_at(&bytes, entry::IDENTITY_SEQ)))
    }

    /// The book of the slot whose entry reads `bytes`. Statistics that have not been met
    /// before are left [`NAMELESS`].
    pub(crate) fn read_slot(
        &self,
        slot: u32,
        bytes: &[u8],
        frame: &Frame<'_>,
        buffers: &mut Buffers,
    ) -> Result<Book, Error> {
        let mut book = Book::of_entry(slot, bytes);
        let previous = frame.previous_of(slot, &mut buffers.next);
        let previous = previous.filter(|p| p.generation == book.generation);
        let same =
            |p: &&Book| p.identity_seq == book.identity_seq && p.identity_seq.is_multiple_of(2);
        (book.identity, book.identity_seq) = match previous.filter(same) {
            Some(p) => (p.identity.clone(), p.identity_seq),
            None => self.read_identity(slot)?,
        };
        book.life = match u32_at(bytes, entry::STATE) {
            state::LIVE if self.is_there(&book, previous) => Life::Alive,
            state::LIVE => Life::Dead,
            _ => Life::Retired,
        };
        self.read_book(&mut book, previous, frame, buffers)?;
        Ok(book)
    }

    /// Whether the owner still runs. A dead process may have left its number to another, so
    /// those that are new to us are looked at more closely.
    fn is_there(&self, book: &Book, previous: Option<&Book>) -> bool {
        if !self.is_of_this_boot() {
            return false;
        }
        if !self.pids_known {
            return true;
        }
        match previous.map(|p| p.life) {
            Some(Life::Alive) => process::exists(book.pid),
            _ => process::is_same(book.pid, book.claimed_boot_ns),
        }
    }

    /// Fill the part of `book` that its owner writes.
    fn read_book(
        &self,
        book: &mut Book,
        previous: Option<&Book>,
        frame: &Frame<'_>,
        buffers: &mut Buffers,
    ) -> Result<(), Error> {
        let room = previous.map_or(24, |p| p.heads.len() + 4);
        self.copy_book(book, room, frame, &mut buffers.book)?;
        let buffer = &buffers.book;
        let most = self.header().stats_per_book as usize;
        let used = (u32_at(buffer, book::USED) as usize).min(most);
        book.run_start = u64_at(buffer, book::RUN_START);
        book.born = u64_at(buffer, book::BORN);
        book.holding = u32_at(buffer, book::HOLDING);
        book.holds.extend(holds(buffer, book.holding));
        // Reset, and its owner has not noticed: only what runs since then counts.
        let lags = u32_at(buffer, book::RESETS) != frame.resets;
        if lags {
            book.run_start = book.run_start.max(frame.reset_tick);
            book.born = book.born.max(frame.reset_tick);
        } else {
            let call = |i| u64_at(buffer, book::CALLS + 8 * i);
            book.calls.extend((0..layout::CALLS).map(call));
        }
        book.heads.reserve_exact(used);
        for bytes in buffer[book::SIZE..].chunks_exact(head::SIZE).take(used) {
            let stat = self.known_stat(u32_at(bytes, head::STAT)).unwrap_or(NAMELESS);
            let mut head = Head::of(bytes, stat);
            if lags {
                head.clear();
            }
            book.unnamed |= stat == NAMELESS;
            book.heads.push(head);
        }
        let comparable = previous.filter(|_| !lags);
        self.read_histograms(book, comparable, None, &mut buffers.histograms)?;
        let pend = u32_at(buffer, book::PEND) as usize;
        if let (Some(head), false) = (book.heads.get_mut(pend), lags) {
            let ticks = u64_at(buffer, book::PEND_TICKS);
            head.count = head.count.saturating_add(1);
            head.total = head.total.saturating_add(ticks);
            head.min = head.min.min(ticks);
            head.max = head.max.max(ticks);
        }
        let run = u32_at(buffer, book::RUN) as usize;
        book.run_head = (run < used).then_some(run);
        // What runs ends with its process; nobody knows when that was, but not before we
        // last saw it.
        let until = match book.life {
            Life::Alive => book.now,
            Life::Dead | Life::Retired => previous.map_or(0, |p| p.now),
        };
        book.run_until(until);
        Ok(())
    }

    /// Copy book and heads into `buffer` while they do not change.
    fn copy_book(
        &self,
        book: &mut Book,
        room: usize,
        frame: &Frame<'_>,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let base = self.regions.books.entry(book.slot);
        let most = self.header().stats_per_book as usize;
        let mut room = room.min(most);
        let mut tries = 0;
        loop {
            let before = self.read_u64(base + book::SEQ as u64)?;
            fence(Ordering::Acquire);
            buffer.resize(book::SIZE + room * head::SIZE, 0);
            self.read(base, buffer)?;
            let used = (u32_at(buffer, book::USED) as usize).min(most);
            if used > room {
                room = used;
                continue;
            }
            book.now = self.clock().now();
            fence(Ordering::Acquire);
            book.seq = self.read_u64(base + book::SEQ as u64)?;
            if before == book.seq && before % 2 == 0 {
                return Ok(());
            }
            tries += 1;
            let all = frame.repeats.fetch_add(1, Ordering::Relaxed);
            // A process that is gone does not finish its update; one that is stopped may not
            // for hours.
            let gone = book.life != Life::Alive && before == book.seq;
            if gone || tries >= BOOK_TRIES || all >= ALL_TRIES {
                book.torn = book.life == Life::Alive;
                return Ok(());
            }
            if tries > 50 {
                std::thread::sleep(Duration::from_micros(50));
            } else {
                std::thread::yield_now();
            }
        }
    }

    /// The histograms of the heads of a book, from the file, or from the book's previous
    /// reading where nothing was counted since; of one head, given with its counts, from
    /// there. Only the buckets between the extremes are wanted; what lies close together is
    /// read together, since finding a page takes longer than copying one.
    pub(crate) fn read_histograms(
        &self,
        book: &mut Book,
        previous: Option<&Book>,
        given: Option<(usize, &[u64])>,
        buffers: &mut HistogramBuffers,
    ) -> Result<(), Error> {
        let most = self.header().stats_per_book as usize;
        let region = self.regions.books.entry(book.slot) + (book::SIZE + most * head::SIZE) as u64;
        let HistogramBuffers { bytes, counts, wanted } = buffers;
        let mut filler = Filler::new(counts);
        wanted.clear();
        for (index, head) in book.heads.iter_mut().enumerate() {
            if let Some((_, counts)) = given.filter(|(at, _)| *at == index) {
                head.place = filler.add(0, counts.iter().copied());
                continue;
            }
            let before = previous.and_then(|p| Some((p, p.heads.get(index)?)));
            if let Some((previous, before)) = before.filter(|(_, b)| head.is_still(b)) {
                head.plain = before.plain;
                head.place = filler.keep(&previous.shelf, before.place);
            } else if before.is_some_and(|(_, b)| b.plain && b.raw_stat == head.raw_stat) {
                head.plain = true;
            } else if head.count > 0 && head.min <= head.max {
                let (first, last) = (bucket(head.min), bucket(head.max));
                let at = index * layout::HIST_SIZE;
                wanted.push(Wanted { index, first, from: at + first * 8, to: at + last * 8 + 8 });
            }
        }
        let mut rest = wanted.as_slice();
        while let Some(start) = rest.first().map(|w| w.from) {
            let together = 1 + rest
                .windows(2)
                .take_while(|pair| pair[1].from - pair[0].to <= GAP && pair[1].to - start <= SPAN)
                .count();
            let (span, later) = rest.split_at(together);
            let end = span.last().map_or(start, |w| w.to);
            if bytes.len() < end - start {
                bytes.resize(end - start, 0);
            }
            self.read(region + start as u64, &mut bytes[..end - start])?;
            for w in span {
                let bytes = &bytes[w.from - start..w.to - start];
                let head = &mut book.heads[w.index];
                if head.count >= PLAIN_FROM && bytes.iter().all(|&b| b == 0) {
                    head.plain = true;
                } else {
                    head.place = filler.read(w.first, bytes);
                }
            }
            rest = later;
        }
        book.shelf = filler.finish(book.heads.iter_mut().map(|h| &mut h.place));
        Ok(())
    }

    /// What runs in a slot now; `None` where that cannot be told at once, or the slot is no
    /// longer that owner's.
    pub(crate) fn running(&mut self, slot: u32, generation: u32) -> Result<Option<Running>, Error> {
        let mut owner = [0u8; 8];
        self.read(self.regions.entries.entry(slot), &mut owner)?;
        if u32_at(&owner, entry::STATE) != state::LIVE
            || u32_at(&owner, entry::GENERATION) != generation
        {
            return Ok(None);
        }
        let base = self.regions.books.entry(slot);
        let before = self.read_u64(base + book::SEQ as u64)?;
        fence(Ordering::Acquire);
        let mut words = [0u8; book::PEND];
        self.read(base, &mut words)?;
        let run = u32_at(&words, book::RUN);
        if run >= self.header().stats_per_book {
            return Ok(None);
        }
        let mut head = [0u8; 4];
        self.read(base + (book::SIZE + run as usize * head::SIZE) as u64, &mut head)?;
        fence(Ordering::Acquire);
        let after = self.read_u64(base + book::SEQ as u64)?;
        if before % 2 == 1 || before != after {
            return Ok(None);
        }
        let since = u64_at(&words, book::RUN_START);
        Ok(self.stat(u32_at(&head, 0))?.map(|stat| Running { stat, since }))
    }
}
