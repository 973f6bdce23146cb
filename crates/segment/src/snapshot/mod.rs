// SPDX-License-Identifier: PostgreSQL
//! One consistent reading of a whole segment.
//!
//! Concurrency contract. Readers never block writers. `books` documents how one book is read, and
//! `groups` how the groups are read.
//!
//! A session that ends is merged into its group, and counts once: the slots are read first, then the
//! groups, between two equal readings of the number of merges while no merge is active. Slots in the
//! merge log since the start are dropped, because their group already contains them. If the merging
//! process was killed, the journal restores the group's former content, and the slot is used without the
//! statistics that were already moved.
//!
//! If the totals are reset during the reading, it starts again.

mod books;
mod context;
mod groups;
mod histograms;

use crate::book::{Book, Life, NAMELESS};
use crate::clock::Clock;
use crate::directory::Directory;
use crate::error::Error;
use crate::layout::{entry, header, slot_state, u32_at, u64_at};
use crate::level::{resets_of_word, Level, LevelEnd};
use crate::mapping::MappedFile;
use crate::overflows::Overflows;
use crate::segment::Segment;
use crate::this_host;
use crate::tranches::Tranches;
use books::Buffers;
use context::{Previous, ReadContext};
use groups::{Groups, InterruptedMerge};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// A consistent reading of a segment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// When the reading was complete, tick.
    pub tick: u64,
    /// When the reading was complete, ns since 1970.
    pub realtime_ns: u64,
    /// The clock as known at that time.
    pub clock: Clock,
    /// The current level.
    pub level: Level,
    /// When and how the level ends by itself.
    pub level_end: Option<LevelEnd>,
    /// Time at level locks or above since the last reset, ticks.
    pub locks_ticks: u64,
    /// Number of resets.
    pub resets: u32,
    /// When the totals were last reset, tick.
    pub reset_tick: u64,
    /// Overflows so far.
    pub overflows: Overflows,
    /// Whether a process still has no slot.
    pub refused_claims: bool,
    /// Number of events begun since the segment was created.
    pub event_count: u64,
    /// Number of completed merges.
    pub merges: u64,
    /// The sessions, by slot.
    pub books: Vec<Book>,
    /// The groups of merged sessions, by index.
    pub groups: Vec<Book>,
    /// The names of the statistics.
    pub directory: Arc<Directory>,
    /// The names of the tranches of held locks.
    pub tranches: Arc<Tranches>,
    /// Number of statistics without a name, which are not shown.
    pub nameless: u64,
    /// Whether an interrupted merge was found, whose process was killed.
    pub stuck_merge: bool,
}

impl Snapshot {
    /// The book of a session.
    pub fn book(&self, slot: u32, generation: u32) -> Option<&Book> {
        let at = self.books.binary_search_by_key(&slot, |b| b.slot).ok()?;
        self.books.get(at).filter(|b| b.generation == generation)
    }
}

/// Maximum number of attempts at a whole snapshot.
const RESTARTS: u32 = 20;
/// Number of slots that a thread takes at a time.
const BATCH: usize = 32;
/// Number of unchanged slots whose process is checked per snapshot.
const LIVENESS_CHECKS: usize = 32;

impl Segment {
    /// Read the whole segment. If a previous snapshot of this segment is given, only changes are read, and the
    /// two snapshots share the rest; and the reader follows the segment, so it maps the file.
    pub fn snapshot(&mut self, previous: Option<&Snapshot>) -> Result<Snapshot, Error> {
        if self.is_of_this_boot() {
            self.measure_clock();
        }
        if previous.is_some() && std::mem::take(&mut self.may_map) {
            // Without a mapping, it takes longer.
            self.mapped = MappedFile::map(&self.file, self.header().size).ok();
        }
        for attempt in 0..RESTARTS {
            if attempt > 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            if let Some(snapshot) = self.try_snapshot(previous)? {
                return Ok(snapshot);
            }
        }
        Err(Error::Unstable { path: self.path().to_path_buf(), tries: RESTARTS })
    }

    fn try_snapshot(&mut self, previous: Option<&Snapshot>) -> Result<Option<Snapshot>, Error> {
        let live = self.read_live()?;
        let word = u32_at(&live, header::LEVEL_WORD);
        let resets = resets_of_word(word);
        let merges_before = u64_at(&live, header::MERGE_COUNT);
        // After a reset, earlier values are not comparable. The clock may have restarted with it.
        if self.is_of_this_boot() && previous.is_some_and(|p| p.resets != resets) {
            self.read_clock_origin()?;
        }
        let comparable = previous.filter(|p| p.resets == resets);
        let context = ReadContext {
            previous: comparable.map(|p| Previous { books: &p.books, groups: &p.groups }),
            resets,
            reset_tick: u64_at(&live, header::RESET_TICK),
            repeats: AtomicU32::new(0),
        };
        let entries = self.read_entries()?;
        let mut books = self.read_slots(&entries, &context)?;
        let merging = |slot: u32| {
            let at = slot as usize * self.regions.entries.stride as usize;
            u32_at(entries.get(at..).unwrap_or(&[]), entry::STATE) == slot_state::MERGING
        };
        let groups = self.read_groups(&context)?;
        if self.mapped.take_if(|mapped| mapped.is_lost()).is_some() {
            // Zeros may have been read. The next attempt uses `pread`, which fails if the file was truncated.
            return Ok(None);
        }
        let Some(Groups { books: mut groups, merges, stuck }) = groups else {
            return Ok(None);
        };
        if let Some(InterruptedMerge { merge, .. }) = &stuck {
            // Statistics that the interrupted merge has already moved are in the group.
            let same = |b: &Book| b.slot == merge.slot && b.generation == merge.generation;
            if merge.has_all() {
                books.retain(|book| !same(book));
            } else if let Some(book) = books.iter_mut().find(|b| same(b)) {
                if merging(book.slot) {
                    book.heads.drain(..(merge.merged as usize).min(book.heads.len()));
                    book.run_head = None;
                } else if merge.is_merging() {
                    // The slot was copied before it was complete.
                    return Ok(None);
                }
            }
        }
        let done = merges.wrapping_sub(merges_before);
        let log = self.regions.merge_log;
        if done > u64::from(log.count) {
            return Ok(None);
        }
        if done > 0 {
            let mut merged = HashSet::new();
            for n in merges_before..merges {
                let at = (n % u64::from(log.count)) as u32;
                merged.insert(self.read_u64(log.entry(at))?);
            }
            books
                .retain(|b| !merged.contains(&(u64::from(b.generation) << 32 | u64::from(b.slot))));
        }
        let tick = self.now();
        let locks_ticks = self.locks_ticks(tick)?;
        let after = self.read_live()?;
        let merges_after = u64_at(&after, header::MERGE_COUNT);
        if resets_of_word(u32_at(&after, header::LEVEL_WORD)) != resets
            || merges_after.wrapping_sub(merges_before) > u64::from(log.count)
        {
            return Ok(None);
        }
        self.entries_buffer = entries;
        let nameless = self.name(&mut books)? + self.name(&mut groups)?;
        self.check_liveness(&mut books, comparable);
        self.name_tranches(books.iter().flat_map(|book| &book.holds).map(|hold| hold.tranche))?;
        Ok(Some(Snapshot {
            tick,
            realtime_ns: self.realtime_ns(),
            clock: self.clock,
            level: Level::of_word(word),
            level_end: LevelEnd::decode(&after),
            locks_ticks,
            resets,
            reset_tick: context.reset_tick,
            overflows: Overflows::decode(&after),
            refused_claims: u32_at(&after, header::REFUSED_CLAIMS) != 0,
            event_count: u64_at(&after, header::EVENT_COUNT),
            merges,
            books,
            groups,
            directory: self.directory.clone(),
            tranches: self.tranches.clone(),
            nameless,
            stuck_merge: stuck.is_some(),
        }))
    }

    /// All entries, of slots and groups, in one reading.
    fn read_entries(&mut self) -> Result<Vec<u8>, Error> {
        let region = self.regions.entries;
        let size = region.count as usize * region.stride as usize;
        let mut entries = std::mem::take(&mut self.entries_buffer);
        entries.resize(size, 0);
        self.read(region.offset, &mut entries)?;
        Ok(entries)
    }

    /// The books of all slots in use. If there are many, several threads share the work.
    fn read_slots(&self, entries: &[u8], context: &ReadContext<'_>) -> Result<Vec<Book>, Error> {
        let stride = self.regions.entries.stride as usize;
        let used: Vec<(u32, &[u8])> = (0..self.header().slots)
            .zip(entries.chunks_exact(stride))
            .filter(|(_, bytes)| {
                let state = u32_at(bytes, entry::STATE);
                matches!(state, slot_state::LIVE | slot_state::RETIRED | slot_state::MERGING)
            })
            .collect();
        // Small batches rather than equal shares, because a thread may be delayed.
        let batches: Vec<_> = used.chunks(BATCH).collect();
        let next = AtomicUsize::new(0);
        let work = || -> Result<Vec<(usize, Vec<Book>)>, Error> {
            let mut buffers = Buffers::default();
            let mut done = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(batch) = batches.get(number) else {
                    return Ok(done);
                };
                let mut books = Vec::with_capacity(batch.len());
                for (at, (slot, bytes)) in batch.iter().enumerate() {
                    if let Some((next, _)) = batch.get(at + 1) {
                        self.prefetch_book(*next);
                    }
                    books.push(self.read_slot(*slot, bytes, context, &mut buffers)?);
                }
                done.push((number, books));
            }
        };
        let mut done = std::thread::scope(|scope| {
            let others: Vec<_> =
                (1..this_host::workers(used.len())).map(|_| scope.spawn(work)).collect();
            let mut done = work()?;
            for other in others {
                // Propagate the panic of a worker.
                done.extend(other.join().unwrap_or_else(|e| std::panic::resume_unwind(e))?);
            }
            Ok(done)
        })?;
        done.sort_unstable_by_key(|(number, _)| *number);
        let mut books = Vec::with_capacity(used.len());
        books.extend(done.into_iter().flat_map(|(_, books)| books));
        Ok(books)
    }

    /// Set the numbers of new statistics. Returns the number of statistics without a name.
    fn name(&mut self, books: &mut [Book]) -> Result<u64, Error> {
        let mut nameless = 0;
        for book in books {
            if book.unnamed {
                for head in book.heads.iter_mut().filter(|h| h.stat == NAMELESS) {
                    match self.stat(head.raw_stat)? {
                        Some(id) => head.stat = id,
                        None => nameless += 1,
                    }
                }
            }
            if book.seq % 2 == 1 || book.torn {
                book.settle_torn(&self.directory);
            }
            book.settle_closed(&self.directory);
        }
        Ok(nameless)
    }

    /// Check some of the unchanged slots, different ones each time, because the PID of a dead process may be reused.
    fn check_liveness(&mut self, books: &mut [Book], previous: Option<&Snapshot>) {
        if !self.pids_known {
            return;
        }
        let count = books.len();
        let mut checks = 0;
        for _ in 0..count {
            if checks == LIVENESS_CHECKS {
                break;
            }
            self.liveness_turn = (self.liveness_turn + 1) % count;
            let book = &mut books[self.liveness_turn];
            let previous = previous.and_then(|p| p.book(book.slot, book.generation));
            let Some(previous) = previous.filter(|p| p.seq == book.seq) else {
                continue;
            };
            checks += 1;
            if book.life == Life::Alive && !this_host::is_same(book.pid, book.claimed_boot_ns) {
                book.life = Life::Dead;
                book.run_until(previous.now);
            }
        }
    }
}
