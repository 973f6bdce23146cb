// SPDX-License-Identifier: PostgreSQL
//! Writes segments according to the layout, as a writer would, for tests and benchmarks of the reader.
//! Ticks are nanoseconds of CLOCK_MONOTONIC.
#![allow(dead_code, missing_docs)]

pub mod relations;

use segment::clock::{boottime_ns, monotonic_ns, realtime_ns};
use segment::layout::{
    self, block, book, bucket, counts, current, directory, entry, event, head, header, hold, key,
    local_statement, message_text, moments, part, probe, rest, set, slot_state, statement,
};
use segment::StatementKey;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

#[allow(unused_imports)]
pub use segment::layout::stat_kind::{ACCOUNT, NAME, TIMER, VALUE};

pub const PROBES: u32 = 256;
pub const DIRECTORY: u32 = 256;
pub const EVENTS: u32 = 16;
pub const MERGE_LOG: u32 = 64;

/// Capacities of the segment to create.
#[derive(Clone, Copy)]
pub struct Shape {
    pub slots: u32,
    pub groups: u32,
    pub stats_per_book: u32,
}

pub struct Maker {
    pub path: PathBuf,
    pub file: File,
    pub shape: Shape,
    names: Vec<(String, u32)>,
    entries: u64,
    books: u64,
    pub stride: u64,
    merge_log: u64,
    pub journal: u64,
    events: u64,
    probes: u64,
    directory: u64,
    /// The regions of statements.
    pub statements: Option<StatementRegions>,
}

/// The offsets of the regions of statements, and the number of sets.
#[derive(Clone, Copy)]
pub struct StatementRegions {
    pub sets: u32,
    pub sets_at: u64,
    pub table_at: u64,
    pub rests_at: u64,
    pub texts_at: u64,
    pub caches_at: u64,
    pub cache_stride: u64,
}

/// Blocks of text for each entry.
pub const BLOCKS: u32 = 6;

fn round(n: u64, to: u64) -> u64 {
    n.div_ceil(to) * to
}

impl Maker {
    /// An empty segment of this boot and this PID namespace, at level waits.
    pub fn new(path: &Path, shape: Shape) -> Maker {
        Maker::with_statements(path, shape, 0)
    }

    /// The same, with this many sets of statements.
    pub fn with_statements(path: &Path, shape: Shape, sets: u32) -> Maker {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .unwrap();
        let all = u64::from(shape.slots + shape.groups);
        let stride = round(layout::book_size(shape.stats_per_book as usize) as u64, 4096);
        let probes = 4096;
        let directory = probes + u64::from(PROBES) * probe::SIZE as u64;
        let events = directory + u64::from(DIRECTORY) * directory::SIZE as u64;
        let merge_log = events + u64::from(EVENTS) * event::SIZE as u64;
        let journal = merge_log + u64::from(MERGE_LOG) * 8;
        let entries = round(journal + layout::journal::SIZE as u64, 64);
        let books = round(entries + all * entry::SIZE as u64, 4096);
        let mut size = books + all * stride;
        let mut region = |count: u32, stride: u64| {
            let at = round(size, 4096);
            size = round(at + u64::from(count) * stride, 4096);
            at
        };
        let entries_of_sets = sets * layout::WAYS as u32;
        let cache = layout::MESSAGE_TEXT_OFFSET + message_text::SIZE;
        let statements = (sets > 0).then(|| StatementRegions {
            sets,
            sets_at: region(sets, set::SIZE as u64),
            table_at: region(entries_of_sets, statement::SIZE as u64),
            rests_at: region(entries_of_sets, rest::SIZE as u64),
            texts_at: region(entries_of_sets * BLOCKS, block::SIZE as u64),
            cache_stride: round(cache as u64, 4096),
            caches_at: region(shape.slots, round(cache as u64, 4096)),
        });
        file.set_len(size).unwrap();
        let maker = Maker {
            path: path.to_path_buf(),
            file,
            shape,
            names: Vec::new(),
            entries,
            books,
            stride,
            merge_log,
            journal,
            events,
            probes,
            directory,
            statements,
        };
        maker.bytes(header::MAGIC as u64, layout::MAGIC);
        maker.u32(header::BYTE_ORDER as u64, layout::BYTE_ORDER);
        maker.u32(header::VERSION as u64, layout::FORMAT_VERSION);
        maker.u32(header::HEADER_SIZE as u64, layout::header::SIZE as u32);
        maker.u32(header::HIST_BUCKETS as u64, layout::HIST_BUCKETS as u32);
        maker.u64(header::SEGMENT_SIZE as u64, size);
        maker.u32(header::CLOCK_KIND as u64, 1);
        let now = monotonic_ns() - 10_000_000_000;
        maker.u64(header::CLOCK_TICK0 as u64, now);
        maker.u64(header::CLOCK_NS0 as u64, now);
        maker.u64(header::CREATED_REALTIME_NS as u64, realtime_ns() - 10_000_000_000);
        let namespace = std::fs::metadata("/proc/self/ns/pid").unwrap().ino();
        maker.u64(header::PID_NAMESPACE as u64, namespace);
        maker.u32(header::SLOTS as u64, shape.slots);
        maker.u32(header::GROUPS as u64, shape.groups);
        maker.u32(header::STATS_PER_BOOK as u64, shape.stats_per_book);
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        maker.text(header::BOOT_ID as u64, boot.trim());
        maker.region(header::PROBES, probes, PROBES, probe::SIZE as u64);
        maker.region(header::DIRECTORY, directory, DIRECTORY, directory::SIZE as u64);
        maker.region(header::EVENTS, events, EVENTS, event::SIZE as u64);
        maker.region(header::MERGE_LOG, merge_log, MERGE_LOG, 8);
        maker.region(header::JOURNAL, journal, 1, round(layout::journal::SIZE as u64, 8));
        maker.region(header::ENTRIES, entries, all as u32, entry::SIZE as u64);
        maker.region(header::BOOKS, books, all as u32, stride);
        if let Some(p) = statements {
            let texts = entries_of_sets * BLOCKS;
            maker.region(header::SETS, p.sets_at, sets, set::SIZE as u64);
            maker.region(header::STATEMENTS, p.table_at, entries_of_sets, statement::SIZE as u64);
            maker.region(header::TEXTS, p.texts_at, texts, block::SIZE as u64);
            maker.region(header::CACHES, p.caches_at, shape.slots, p.cache_stride);
        }
        maker.text(header::HOST as u64, "/srv/data");
        maker.text(header::PRODUCER as u64, "pg_tally 0.3.0");
        maker.text(header::SERVER as u64, "PostgreSQL 15.20");
        maker.u32(header::SERVER_PID as u64, std::process::id());
        maker.u32(header::SERVER_PORT as u64, 5432);
        maker.text(header::SOCKET_DIR as u64, "/tmp");
        maker.u32(header::LEVEL_WORD as u64, 1);
        maker.u64(header::RESET_TICK as u64, now);
        maker
    }

    /// The same segment with a virtual clock, which only the test advances.
    pub fn with_virtual_clock(self) -> Maker {
        let now = self.get_u64(header::CLOCK_TICK0 as u64) + 10_000_000_000;
        self.u32(header::CLOCK_KIND as u64, 255);
        self.u64(header::VIRTUAL_TICK as u64, now);
        self
    }

    /// The current tick of the virtual clock, in nanoseconds.
    pub fn now(&self) -> u64 {
        self.get_u64(header::VIRTUAL_TICK as u64)
    }

    /// Advance the virtual clock.
    pub fn advance(&self, ticks: u64) {
        self.u64(header::VIRTUAL_TICK as u64, self.now() + ticks);
    }

    pub fn bytes(&self, at: u64, bytes: &[u8]) {
        self.file.write_all_at(bytes, at).unwrap();
    }

    pub fn u32(&self, at: u64, value: u32) {
        self.bytes(at, &value.to_ne_bytes());
    }

    pub fn u64(&self, at: u64, value: u64) {
        self.bytes(at, &value.to_ne_bytes());
    }

    pub fn get_u32(&self, at: u64) -> u32 {
        self.get_u64(at) as u32
    }

    pub fn get_u64(&self, at: u64) -> u64 {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, at).unwrap();
        u64::from_ne_bytes(bytes)
    }

    /// A terminated text.
    pub fn text(&self, at: u64, text: &str) {
        self.bytes(at, text.as_bytes());
        self.bytes(at + text.len() as u64, &[0]);
    }

    fn region(&self, at: usize, offset: u64, count: u32, stride: u64) {
        self.u64(at as u64, offset);
        self.u32(at as u64 + 8, count);
        self.u32(at as u64 + 12, stride as u32);
    }

    pub fn entry_at(&self, index: u32) -> u64 {
        self.entries + u64::from(index) * entry::SIZE as u64
    }

    pub fn book_at(&self, index: u32) -> u64 {
        self.books + u64::from(index) * self.stride
    }

    pub fn directory_at(&self, index: u32) -> u64 {
        self.directory + u64::from(index) * directory::SIZE as u64
    }

    /// The number of this statistic in a head; the statistic is registered if necessary.
    pub fn stat(&mut self, name: &str, kind: u32) -> u32 {
        if let Some(at) = self.names.iter().position(|n| n.0 == name && n.1 == kind) {
            return 1 + at as u32;
        }
        self.names.push((name.to_string(), kind));
        let index = self.names.len() as u32 - 1;
        let at = self.directory_at(index);
        self.u32(at + directory::KIND as u64, kind);
        self.text(at + directory::NAME as u64, name);
        let unit = if kind == VALUE { "bytes" } else { "ticks" };
        self.text(at + directory::UNIT as u64, unit);
        self.u32(at, 2);
        index + 1
    }

    /// An account whose class the writer has stored.
    pub fn account_of_class(&mut self, name: &str, class: u8) -> u32 {
        let stat = self.stat(name, ACCOUNT);
        let at = self.directory_at(stat - 1);
        self.bytes(at + directory::ACCOUNT_CLASS as u64, &[class]);
        stat
    }

    pub fn level_word(&self, word: u32) {
        self.u32(header::LEVEL_WORD as u64, word);
    }

    /// The locks that a session holds: address, tick, tranche, mode.
    pub fn holds(&self, slot: u32, holds: &[(u64, u64, u32, u32)]) {
        let at = self.book_at(slot);
        for (i, &(lock, since, tranche, mode)) in holds.iter().take(layout::HOLDS).enumerate() {
            let at = at + (book::HOLDS + i * hold::SIZE) as u64;
            self.u64(at + hold::LOCK as u64, lock);
            self.u64(at + hold::SINCE as u64, since);
            self.u32(at + hold::TRANCHE as u64, tranche);
            self.u32(at + hold::MODE as u64, mode);
        }
        self.u32(at + book::HOLDING as u64, holds.len() as u32);
    }

    pub fn probe(&self, index: u32, state: u32, name: &str, reason: &str) {
        let at = self.probes + u64::from(index) * probe::SIZE as u64;
        self.u32(at, state);
        self.text(at + probe::NAME as u64, name);
        self.text(at + probe::REASON as u64, reason);
    }

    pub fn event(&self, number: u64, kind: u32, text: &str) {
        let at = self.events + (number - 1) % u64::from(EVENTS) * event::SIZE as u64;
        self.u64(at + event::TICK as u64, monotonic_ns());
        self.u32(at + event::PID as u64, std::process::id());
        self.u32(at + event::KIND as u64, kind);
        self.text(at + event::DATA as u64, text);
        self.u64(at, number);
        self.u64(header::EVENT_COUNT as u64, number);
    }

    /// Begin a session at `now` in the account `stat`.
    pub fn claim(&self, slot: u32, generation: u32, who: Who<'_>, stat: u32, now: u64) -> Slot {
        let at = self.entry_at(slot);
        self.bytes(at, &[0; entry::SIZE]);
        self.u32(at + entry::GENERATION as u64, generation);
        self.u32(at + entry::PID as u64, who.pid);
        self.u64(at + entry::CLAIMED_BOOT_NS as u64, boottime_ns());
        self.u64(at + entry::CLAIMED_TICK as u64, now);
        self.u32(at + entry::DATABASE_ID as u64, who.database_id);
        self.u32(at + entry::USER_ID as u64, who.user_id);
        self.text(at + entry::KIND as u64, who.kind);
        self.text(at + entry::DATABASE as u64, who.database);
        self.text(at + entry::USER as u64, who.user);
        self.text(at + entry::APPLICATION as u64, who.application);
        let mut book = Slot {
            index: slot,
            generation,
            seq: 2,
            run: Some(0),
            run_start: now,
            pend: None,
            born: now,
            between: 0,
            resets: 0,
            heads: Vec::new(),
        };
        book.head(stat);
        self.write(&book);
        self.u32(at, slot_state::LIVE);
        book
    }

    pub fn set_state(&self, index: u32, state: u32) {
        self.u32(self.entry_at(index), state);
    }

    /// Write a book out.
    pub fn write(&self, slot: &Slot) {
        let at = self.book_at(slot.index);
        self.u64(at, slot.seq | 1);
        let index = |i: Option<usize>| i.map_or(layout::NONE, |i| i as u32);
        self.u32(at + book::RUN as u64, index(slot.run));
        self.u32(at + book::USED as u64, slot.heads.len() as u32);
        self.u64(at + book::RUN_START as u64, slot.run_start);
        self.u32(at + book::PEND as u64, index(slot.pend.map(|p| p.0)));
        self.u32(at + book::RESETS as u64, slot.resets);
        self.u64(at + book::PEND_TICKS as u64, slot.pend.map_or(0, |p| p.1));
        self.u64(at + book::BORN as u64, slot.born);
        self.u64(at + book::BETWEEN as u64, slot.between);
        let hists = at + (book::SIZE + self.shape.stats_per_book as usize * head::SIZE) as u64;
        for (i, h) in slot.heads.iter().enumerate() {
            let at = at + (book::SIZE + i * head::SIZE) as u64;
            let mut bytes = [0u8; head::SIZE];
            bytes[head::STAT..head::STAT + 4].copy_from_slice(&h.stat.to_ne_bytes());
            for (at, value) in [
                (head::COUNT, h.count),
                (head::TOTAL, h.total),
                (head::MIN, h.min),
                (head::MAX, h.max),
                (head::AMOUNT, h.amount),
                (head::FOLLOWS, h.follows),
            ] {
                bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
            }
            self.bytes(at, &bytes);
            for (octave, counts) in h.hist.chunks_exact(layout::OCTAVE).enumerate() {
                let bytes: Vec<u8> = counts.iter().flat_map(|n| n.to_ne_bytes()).collect();
                let at = layout::bucket_offset(i, octave * layout::OCTAVE);
                self.bytes(hists + at as u64, &bytes);
            }
        }
        self.u64(at, slot.seq & !1);
    }

    /// Count values of one statistic, and write only the words that change, as a writer does.
    pub fn count(&self, slot: &mut Slot, stat: u32, values: &[u64]) {
        let at = self.book_at(slot.index);
        let index = slot.head(stat);
        let hists = at + (book::SIZE + self.shape.stats_per_book as usize * head::SIZE) as u64;
        for &value in values {
            slot.add(index, value);
            let bucket = bucket(value);
            let at = layout::bucket_offset(index, bucket) as u64;
            self.u64(hists + at, slot.heads[index].hist[bucket]);
        }
        let head = &slot.heads[index];
        let mut words = [0u8; 32];
        for (chunk, n) in
            words.chunks_exact_mut(8).zip([head.count, head.total, head.min, head.max])
        {
            chunk.copy_from_slice(&n.to_ne_bytes());
        }
        self.bytes(at + (book::SIZE + index * head::SIZE + head::COUNT) as u64, &words);
        self.u64(at, slot.seq & !1);
    }

    /// End a session at `now` and merge it into group `group`, whose book is `into`.
    pub fn merge(&self, mut slot: Slot, into: &mut Slot, now: u64) {
        slot.close(now);
        self.write(&slot);
        self.u64(header::MERGE_ACTIVE as u64, 1);
        into.absorb(&slot);
        self.write(into);
        let at = self.entry_at(into.index) + entry::SESSIONS as u64;
        self.u64(at, self.get_u64(at) + 1);
        self.set_state(into.index, slot_state::GROUP);
        self.set_state(slot.index, slot_state::FREE);
        let merges = self.get_u64(header::MERGE_COUNT as u64);
        self.u64(
            self.merge_log + merges % u64::from(MERGE_LOG) * 8,
            u64::from(slot.generation) << 32 | u64::from(slot.index),
        );
        self.u64(header::MERGE_COUNT as u64, merges + 1);
        self.u64(header::MERGE_ACTIVE as u64, 0);
    }

    /// The kind of the processes that are merged into a group.
    pub fn group_kind(&self, group: &Slot, kind: &str) {
        self.text(self.entry_at(group.index) + entry::KIND as u64, kind);
    }

    /// The book of an empty group.
    pub fn group(&self, group: u32) -> Slot {
        Slot {
            index: self.shape.slots + group,
            generation: 0,
            seq: 2,
            run: None,
            run_start: 0,
            pend: None,
            born: 0,
            between: 0,
            resets: 0,
            heads: Vec::new(),
        }
    }
}

/// The owner of a session.
#[derive(Clone, Copy)]
pub struct Who<'a> {
    pub pid: u32,
    pub kind: &'a str,
    pub database_id: u32,
    pub database: &'a str,
    pub user_id: u32,
    pub user: &'a str,
    pub application: &'a str,
}

impl Who<'_> {
    /// A client backend in this process.
    pub fn client() -> Who<'static> {
        Who {
            pid: std::process::id(),
            kind: "client backend",
            database_id: 5,
            database: "postgres",
            user_id: 10,
            user: "alice",
            application: "psql",
        }
    }
}

/// A statistic of a book.
#[derive(Clone)]
pub struct Stat {
    pub stat: u32,
    pub count: u64,
    pub total: u64,
    pub min: u64,
    pub max: u64,
    pub amount: u64,
    pub follows: u64,
    pub hist: Vec<u64>,
}

/// A book in memory, which changes as in tally.h.
#[derive(Clone)]
pub struct Slot {
    pub index: u32,
    pub generation: u32,
    pub seq: u64,
    pub run: Option<usize>,
    pub run_start: u64,
    pub pend: Option<(usize, u64)>,
    pub born: u64,
    pub between: u64,
    pub resets: u32,
    pub heads: Vec<Stat>,
}

impl Slot {
    pub fn head(&mut self, stat: u32) -> usize {
        if let Some(at) = self.heads.iter().position(|h| h.stat == stat) {
            return at;
        }
        self.heads.push(Stat {
            stat,
            count: 0,
            total: 0,
            min: u64::MAX,
            max: 0,
            amount: 0,
            follows: 0,
            hist: vec![0; layout::HIST_BUCKETS],
        });
        self.heads.len() - 1
    }

    pub fn record(&mut self, stat: u32, value: u64) {
        let at = self.head(stat);
        self.add(at, value);
    }

    /// Record an event that moved this many bytes.
    pub fn moved(&mut self, stat: u32, value: u64, bytes: u64, follows: bool) {
        let at = self.head(stat);
        self.add(at, value);
        self.heads[at].amount += bytes;
        self.heads[at].follows += u64::from(follows);
    }

    fn add(&mut self, at: usize, value: u64) {
        let head = &mut self.heads[at];
        head.count += 1;
        head.total += value;
        head.min = head.min.min(value);
        head.max = head.max.max(value);
        head.hist[bucket(value)] += 1;
        self.seq += 2;
    }

    pub fn switch(&mut self, stat: u32, now: u64) {
        let next = self.head(stat);
        self.settle();
        if let Some(run) = self.run {
            self.add(run, now - self.run_start);
        }
        self.run = Some(next);
        self.run_start = now;
    }

    pub fn switch_later(&mut self, stat: u32, now: u64) {
        let next = self.head(stat);
        self.settle();
        self.pend = self.run.map(|run| (run, now - self.run_start));
        self.run = Some(next);
        self.run_start = now;
        self.seq += 2;
    }

    fn settle(&mut self) {
        if let Some((at, ticks)) = self.pend.take() {
            self.add(at, ticks);
        }
    }

    pub fn close(&mut self, now: u64) {
        self.settle();
        if let Some(run) = self.run.take() {
            self.add(run, now - self.run_start);
        }
        self.run_start = now;
    }

    pub fn absorb(&mut self, other: &Slot) {
        for h in &other.heads {
            let at = self.head(h.stat);
            let mine = &mut self.heads[at];
            mine.count += h.count;
            mine.total += h.total;
            mine.min = mine.min.min(h.min);
            mine.max = mine.max.max(h.max);
            mine.amount += h.amount;
            mine.follows += h.follows;
            for (a, b) in mine.hist.iter_mut().zip(&h.hist) {
                *a += b;
            }
        }
        self.seq += 2;
    }
}

/// The counts of a statement; counters that it does not have are 0.
#[derive(Clone)]
pub struct Counted {
    pub key: StatementKey,
    /// Execution times, ticks.
    pub times: Vec<u64>,
    pub plans: Vec<u64>,
    pub rows: u64,
    /// The statistic as in a head, count, ticks.
    pub parts: Vec<(u32, u64, u64)>,
    /// Microseconds since 1970.
    pub seen: (i64, i64),
}

impl Counted {
    pub fn new(id: u64, times: &[u64]) -> Counted {
        Counted {
            key: StatementKey {
                id,
                database_id: 5,
                user_id: 10,
                toplevel: true,
                ..StatementKey::default()
            },
            times: times.to_vec(),
            plans: Vec::new(),
            rows: times.len() as u64,
            parts: Vec::new(),
            seen: (0, 0),
        }
    }

    pub fn parts(mut self, parts: &[(u32, u64, u64)]) -> Counted {
        self.parts = parts.to_vec();
        self
    }

    fn times(bytes: &mut [u8], at: usize, times: &[u64]) {
        let squares: f64 = times.iter().map(|&t| t as f64 * t as f64).sum();
        for (offset, value) in [
            (moments::COUNT, times.len() as u64),
            (moments::TOTAL, times.iter().sum()),
            (moments::MIN, times.iter().copied().min().unwrap_or(0)),
            (moments::MAX, times.iter().copied().max().unwrap_or(0)),
            (moments::SQUARES, squares.to_bits()),
        ] {
            put(bytes, at + offset, value);
        }
    }

    /// Counts, parts and histogram, as in the rest of an entry, or in a local entry from its counts on.
    fn bytes(&self, narrow: bool) -> Vec<u8> {
        let width = if narrow { 4 } else { 8 };
        let hist = rest::HIST;
        let mut bytes = vec![0; hist + layout::HIST_BUCKETS * width];
        Counted::times(&mut bytes, counts::EXEC, &self.times);
        Counted::times(&mut bytes, counts::PLAN, &self.plans);
        put(&mut bytes, counts::ROWS, self.rows);
        put(&mut bytes, counts::FIRST_US, self.seen.0 as u64);
        put(&mut bytes, counts::LAST_US, self.seen.1 as u64);
        let parts = rest::PARTS;
        for (i, &(stat, count, ticks)) in self.parts.iter().enumerate() {
            let at = parts + i * part::SIZE;
            put(&mut bytes, at + part::STAT, u64::from(stat));
            put(&mut bytes, at + part::COUNT, count);
            put(&mut bytes, at + part::TICKS, ticks);
        }
        // The histogram in a cache is not used until there are two executions.
        if !narrow || self.times.len() > 1 {
            for &time in &self.times {
                bytes[hist + bucket(time) * width] += 1;
            }
        }
        bytes
    }
}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_ne_bytes());
}

fn key_bytes(k: &StatementKey) -> [u8; key::SIZE] {
    let mut bytes = [0; key::SIZE];
    put(&mut bytes, key::ID, k.id);
    put(&mut bytes, key::DATABASE_ID, u64::from(k.database_id) | u64::from(k.user_id) << 32);
    put(&mut bytes, key::TOPLEVEL, u64::from(k.toplevel));
    bytes
}

/// The writers' hash of a key, and the sets that may contain it.
pub fn sets_of(k: &StatementKey, sets: u32) -> (u64, [u32; 2]) {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let who = u64::from(k.database_id) << 32 | u64::from(k.user_id);
    let mut h = k.id ^ who.wrapping_mul(GOLDEN) ^ u64::from(k.toplevel);
    h ^= h >> 32;
    h = h.wrapping_mul(0xD6E8_FEB8_6659_FD93);
    h = (h ^ h >> 32) | 1;
    let (a, b) = ((h >> 32) as u32 % sets, (h.wrapping_mul(GOLDEN) >> 32) as u32 % sets);
    (h, [a, if a == b { (a + 1) % sets } else { b }])
}

impl Maker {
    fn regions(&self) -> StatementRegions {
        self.statements.expect("made with statements")
    }

    pub fn set_at(&self, set: u32) -> u64 {
        self.regions().sets_at + u64::from(set) * set::SIZE as u64
    }

    pub fn statement_at(&self, number: u32) -> u64 {
        self.regions().table_at + u64::from(number) * statement::SIZE as u64
    }

    pub fn cache_at(&self, slot: u32) -> u64 {
        let regions = self.regions();
        regions.caches_at + u64::from(slot) * regions.cache_stride
    }

    pub fn local_at(&self, slot: u32, index: u32) -> u64 {
        self.cache_at(slot) + (current::SIZE + index as usize * local_statement::SIZE) as u64
    }

    /// Enter a statement in the table. Returns the number of its entry.
    pub fn enter(&self, counted: &Counted, born: u64) -> u32 {
        let (tag, sets) = sets_of(&counted.key, self.regions().sets);
        let tag = tag as u32;
        let tag_at = |set, way: usize| self.set_at(set) + (set::TAGS + 4 * way) as u64;
        let find = |wanted| {
            let ways = sets.map(|set| (0..layout::WAYS).map(move |way| (set, way)));
            let mut ways = ways.into_iter().flatten();
            ways.find(|&(set, way)| self.get_u32(tag_at(set, way)) == wanted)
        };
        let free = |set: &u32| {
            (0..layout::WAYS).filter(|&way| self.get_u32(tag_at(*set, way)) == 0).count()
        };
        let (set, way) = find(tag).unwrap_or_else(|| {
            // Use the emptier of the two sets, at its first free way.
            let set = if free(&sets[1]) > free(&sets[0]) { sets[1] } else { sets[0] };
            let way = (0..layout::WAYS).find(|&way| self.get_u32(tag_at(set, way)) == 0);
            (set, way.expect("a free entry"))
        });
        let number = set * layout::WAYS as u32 + way as u32;
        let at = self.statement_at(number);
        self.bytes(at + statement::KEY as u64, &key_bytes(&counted.key));
        self.u64(at + statement::BORN as u64, born);
        // The first line of the counts, the first part and the bucket of the first time are in the entry
        // itself; everything else is in its rest.
        let mut far = counted.bytes(false);
        let near = |far: &mut [u8], from: usize, size: usize| {
            let bytes = far[from..from + size].to_vec();
            far[from..from + size].fill(0);
            bytes
        };
        let first_us = near(&mut far, counts::FIRST_US, 8);
        self.bytes(at + statement::FIRST_US as u64, &first_us);
        self.bytes(at + statement::EXEC as u64, &near(&mut far, 0, layout::NEAR_COUNTS as usize));
        self.bytes(at + statement::PARTS as u64, &near(&mut far, rest::PARTS, part::SIZE));
        let base = counted.times.first().map_or(0, |&time| bucket(time));
        self.u32(at + statement::BASE as u64, base as u32);
        self.bytes(at + statement::HIST as u64, &near(&mut far, rest::HIST + 8 * base, 8)[..4]);
        let rest_at = self.regions().rests_at + u64::from(number) * rest::SIZE as u64;
        self.bytes(rest_at, &far);
        self.u32(at + statement::MORE as u64, u32::from(far.iter().any(|&byte| byte != 0)));
        self.u32(at + statement::STATE as u64, 1);
        self.u32(tag_at(set, way), tag);
        number
    }

    /// Give an entry a text, in every `step`th block from number `first` on.
    pub fn give_text(
        &self,
        number: u32,
        text: &[u8],
        whole: u32,
        encoding: i32,
        chain: (u32, u32),
    ) {
        let (first, step) = chain;
        let space = block::SIZE - block::BYTES;
        for (i, bytes) in (0..).zip(text.chunks(space)) {
            let number = first + i * step;
            let at = self.regions().texts_at + u64::from(number) * block::SIZE as u64;
            let more = (i as usize + 1) * space < text.len();
            self.u32(at, if more { number + step + 1 } else { 0 });
            self.bytes(at + block::BYTES as u64, bytes);
        }
        let at = self.statement_at(number);
        self.u32(at + statement::TEXT as u64, first + 1);
        self.u32(at + statement::TEXT_BYTES as u64, text.len() as u32);
        self.u32(at + statement::TEXT_WHOLE as u64, whole);
        self.u32(at + statement::ENCODING as u64, encoding as u32);
    }

    /// Put a statement into a local entry of a slot's cache.
    pub fn cache(&self, slot: u32, index: u32, generation: u64, counted: &Counted) {
        let at = self.local_at(slot, index);
        self.u64(at + local_statement::GENERATION as u64, generation);
        self.bytes(at + local_statement::KEY as u64, &key_bytes(&counted.key));
        self.bytes(at + local_statement::COUNTS as u64, &counted.bytes(true));
        self.u32(at + local_statement::STATE as u64, 1);
        let entry = self.entry_at(slot) + entry::LOCAL_STATEMENTS as u64;
        self.u32(entry, layout::LOCAL_STATEMENTS as u32);
    }

    /// Log in a set that this use of a local entry was flushed into it.
    pub fn log(&self, set: u32, slot: u32, index: u32, generation: u64) {
        let at = self.set_at(set);
        let flushes = self.get_u64(at + set::FLUSHES as u64);
        let item = generation << 24 | u64::from(index) << 16 | u64::from(slot);
        self.u64(at + set::LOG as u64 + flushes % layout::SET_LOG as u64 * 8, item);
        self.u64(at + set::FLUSHES as u64, flushes + 1);
    }

    /// Publish the text of the message of a slot's owner, which began at this tick. Its statement is not known until
    /// the owner works for one.
    pub fn message(&self, slot: u32, begun: u64, who: Who<'_>, text: &str) {
        let current = self.cache_at(slot);
        let at = current + layout::MESSAGE_TEXT_OFFSET as u64;
        self.u32(current + (current::KEY + key::BEFORE) as u64, 1);
        self.u32(current + current::HAS_TEXT as u64, 1);
        self.u32(at + message_text::BYTES as u64, text.len() as u32);
        self.u32(at + message_text::WHOLE as u64, text.len() as u32);
        self.u32(at + message_text::ENCODING as u64, 6);
        self.u32(at + message_text::USER_ID as u64, who.user_id);
        self.u32(at + message_text::DATABASE_ID as u64, who.database_id);
        self.bytes(at + message_text::TEXT as u64, text.as_bytes());
        self.u64(at + message_text::BEGUN as u64, begun);
    }

    /// Make a slot's owner work for a statement.
    pub fn work(&self, slot: u32, counted: &Counted, begun: u64, since: u64) {
        let at = self.cache_at(slot);
        self.bytes(at + current::KEY as u64, &key_bytes(&counted.key));
        self.u64(at + current::SINCE as u64, since);
        self.u32(at + current::USED as u64, counted.parts.len() as u32);
        let parts = &counted.bytes(true)[rest::PARTS..];
        let size = layout::PARTS * part::SIZE;
        self.bytes(at + current::PARTS as u64, &parts[..size]);
        self.u64(at + current::BEGUN as u64, begun);
        let entry = self.entry_at(slot) + entry::LOCAL_STATEMENTS as u64;
        self.u32(entry, layout::LOCAL_STATEMENTS as u32);
    }
}
