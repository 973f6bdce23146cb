// SPDX-License-Identifier: PostgreSQL
//! Writes the ledger of samples as the image of a segment (format/layout.toml). Nobody else writes or reads the image
//! meanwhile, so no sequence is ever odd.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use segment::layout::{
    self, block, blocked, book, counts, current, directory, entry, event, head, header, journal,
    key, level, moments, name_state, part, probe, region, rest, set, slot_state, stat_kind,
    statement,
};

use super::ledger::{
    Figures, Group, Ledger, NameKind, Session, MOST_FIGURES, MOST_GROUPS, MOST_STATEMENTS,
};
use super::observation::Blockage;
use super::statements::{Counted, Statements};

/// Statistics of a session.
const STATS: u32 = MOST_FIGURES as u32;
/// Groups; the first one is the sampler's own.
const GROUPS: u32 = MOST_GROUPS as u32 + 1;
const NAMES: u32 = 4096;
const EVENTS: u32 = 16;
const MERGE_LOG: u32 = 64;
/// Sets of statements.
const SETS: u32 = (MOST_STATEMENTS / layout::WAYS) as u32;
/// Blocks of text for each statement.
const BLOCKS: u32 = 6;
const PAGE: u64 = 4096;
/// PostgreSQL's number of UTF8, in which the texts come.
const UTF8: u32 = 6;

/// The content of the header.
#[derive(Debug, Clone, Default)]
pub(super) struct About {
    /// "PostgreSQL 15.20".
    pub server: String,
    /// Where the server is.
    pub host: String,
    pub port: u32,
    /// When the server began, ns since 1970.
    pub begun_ns: u64,
    /// When sampling began, by both clocks.
    pub tick: u64,
    pub realtime_ns: u64,
    /// Maximum number of sessions.
    pub slots: u32,
    pub producer: String,
}

/// Bytes to be written at a place in the image.
struct Bytes(Vec<u8>);

impl Bytes {
    fn zeroed(size: usize) -> Bytes {
        Bytes(vec![0; size])
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn u16(&mut self, at: usize, value: u16) {
        self.put(at, &value.to_ne_bytes());
    }

    fn u32(&mut self, at: usize, value: u32) {
        self.put(at, &value.to_ne_bytes());
    }

    fn u64(&mut self, at: usize, value: u64) {
        self.put(at, &value.to_ne_bytes());
    }

    fn f64(&mut self, at: usize, value: f64) {
        self.put(at, &value.to_ne_bytes());
    }

    /// A terminated text in a field of this size, cut between two characters if it is too long.
    fn text(&mut self, at: usize, size: usize, text: &str) {
        let text = cut(text, size - 1);
        self.put(at, text.as_bytes());
    }
}

/// The first characters of a text, of at most so many bytes.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Where everything is in the image.
#[derive(Debug)]
pub(super) struct Image {
    slots: u32,
    directory: u64,
    events: u64,
    merge_log: u64,
    journal: u64,
    entries: u64,
    books: u64,
    book_stride: u64,
    sets: u64,
    statements: u64,
    rests: u64,
    texts: u64,
    caches: u64,
    cache_stride: u64,
    size: u64,
    /// Numbers of names and of text blocks that the image already has.
    names: usize,
    blocks: u32,
}

impl Image {
    pub(super) fn new(slots: u32) -> Image {
        let mut end = header::SIZE as u64;
        let mut region = |count: u64, stride: u64| {
            let at = end;
            end = (end + count * stride).next_multiple_of(PAGE);
            at
        };
        let all = u64::from(slots + GROUPS);
        let book_stride = (layout::book_size(STATS as usize) as u64).next_multiple_of(PAGE);
        let cache_stride = (layout::CACHE_SIZE as u64).next_multiple_of(PAGE);
        let statements = u64::from(SETS) * layout::WAYS as u64;
        Image {
            slots,
            directory: region(u64::from(NAMES), directory::SIZE as u64),
            events: region(u64::from(EVENTS), event::SIZE as u64),
            merge_log: region(u64::from(MERGE_LOG), 8),
            journal: region(1, journal::SIZE.next_multiple_of(8) as u64),
            entries: region(all, entry::SIZE as u64),
            books: region(all, book_stride),
            sets: region(u64::from(SETS), set::SIZE as u64),
            statements: region(statements, statement::SIZE as u64),
            // They follow the statements.
            rests: region(statements, rest::SIZE as u64),
            texts: region(statements * u64::from(BLOCKS), block::SIZE as u64),
            caches: region(u64::from(slots), cache_stride),
            book_stride,
            cache_stride,
            size: end,
            names: 0,
            blocks: 0,
        }
    }

    /// The parts that do not change.
    pub(super) fn create(&self, file: &File, about: &About) -> io::Result<()> {
        file.set_len(self.size)?;
        let mut bytes = Bytes::zeroed(header::SIZE);
        bytes.put(header::MAGIC, layout::MAGIC);
        bytes.u32(header::BYTE_ORDER, layout::BYTE_ORDER);
        bytes.u32(header::VERSION, layout::FORMAT_VERSION);
        bytes.u32(header::HEADER_SIZE, header::SIZE as u32);
        bytes.u32(header::HIST_BUCKETS, layout::HIST_BUCKETS as u32);
        bytes.u64(header::SEGMENT_SIZE, self.size);
        bytes.u32(header::CLOCK_KIND, layout::clock_kind::MONOTONIC);
        bytes.u64(header::CLOCK_TICK0, about.tick);
        bytes.u64(header::CLOCK_NS0, about.tick);
        bytes.u64(header::CREATED_REALTIME_NS, about.begun_ns);
        bytes.u64(header::RESET_TICK, about.tick);
        bytes.u64(header::STATEMENTS_SINCE_NS, about.realtime_ns);
        bytes.u32(header::EXTREMES_RESETS, 1);
        bytes.u32(header::LEVEL_WORD, level::WAITS);
        bytes.u32(header::SLOTS, self.slots);
        bytes.u32(header::GROUPS, GROUPS);
        bytes.u32(header::STATS_PER_BOOK, STATS);
        bytes.u32(header::FLAGS, layout::SEGMENT_SERVER);
        bytes.u32(header::SERVER_PORT, about.port);
        bytes.text(header::SERVER, header::SERVER_BYTES, &about.server);
        bytes.text(header::HOST, header::HOST_BYTES, &about.host);
        bytes.text(header::PRODUCER, header::PRODUCER_BYTES, &about.producer);
        let statements = SETS * layout::WAYS as u32;
        let all = self.slots + GROUPS;
        for (at, offset, count, stride) in [
            (header::PROBES, self.directory, 0, probe::SIZE as u64),
            (header::DIRECTORY, self.directory, NAMES, directory::SIZE as u64),
            (header::EVENTS, self.events, EVENTS, event::SIZE as u64),
            (header::MERGE_LOG, self.merge_log, MERGE_LOG, 8),
            (header::JOURNAL, self.journal, 1, journal::SIZE.next_multiple_of(8) as u64),
            (header::ENTRIES, self.entries, all, entry::SIZE as u64),
            (header::BOOKS, self.books, all, self.book_stride),
            (header::SETS, self.sets, SETS, set::SIZE as u64),
            (header::STATEMENTS, self.statements, statements, statement::SIZE as u64),
            (header::TEXTS, self.texts, statements * BLOCKS, block::SIZE as u64),
            (header::CACHES, self.caches, self.slots, self.cache_stride),
        ] {
            bytes.u64(at + region::OFFSET, offset);
            bytes.u32(at + region::COUNT, count);
            bytes.u32(at + region::STRIDE, stride as u32);
        }
        file.write_all_at(&bytes.0, 0)
    }

    /// Writes the present content of the ledger.
    pub(super) fn write(&mut self, file: &File, ledger: &Ledger) -> io::Result<()> {
        let now = ledger.last.map_or(0, |last| last.tick);
        self.write_names(file, ledger)?;
        for (slot, (uses, session)) in (0u32..).zip(&ledger.slots) {
            self.write_session(file, slot, (*uses, session.as_ref()), now)?;
        }
        self.write_group(file, 0, segment::sampling::PROCESS, None, &ledger.sampler)?;
        for (at, group) in (1..GROUPS).zip(&ledger.groups) {
            self.write_group(file, at, &group.kind, Some(group), &group.figures)?;
        }
        let words = [
            (header::MERGE_COUNT, ledger.merges),
            (header::OVERFLOW_SLOTS, ledger.overflow.slots),
            (header::OVERFLOW_STATS, ledger.overflow.figures),
            (header::OVERFLOW_GROUPS, ledger.overflow.groups),
            (
                header::OVERFLOW_DIRECTORY,
                (ledger.names.len() as u64).saturating_sub(u64::from(NAMES)),
            ),
        ];
        words.iter().try_for_each(|(at, word)| file.write_all_at(&word.to_ne_bytes(), *at as u64))
    }

    fn write_names(&mut self, file: &File, ledger: &Ledger) -> io::Result<()> {
        let new = ledger.names.iter().enumerate().take(NAMES as usize).skip(self.names);
        for (number, name) in new {
            let mut bytes = Bytes::zeroed(directory::SIZE);
            let (kind, unit) = match name.kind {
                NameKind::Account => (stat_kind::ACCOUNT, "ticks"),
                NameKind::Timer => (stat_kind::TIMER, "ticks"),
                NameKind::Variance => (stat_kind::VALUE, segment::sampling::VARIANCE_UNIT),
            };
            bytes.u32(directory::STATE, name_state::PUBLISHED);
            bytes.u32(directory::KIND, kind);
            bytes.text(directory::NAME, directory::NAME_BYTES, &name.text);
            bytes.text(directory::UNIT, directory::UNIT_BYTES, unit);
            file.write_all_at(&bytes.0, self.directory + (number * directory::SIZE) as u64)?;
        }
        self.names = ledger.names.len().min(NAMES as usize);
        Ok(())
    }

    /// The book of a slot or group: the figures, and the account that runs, with the part of its time that has not ended.
    fn write_book(
        &self,
        file: &File,
        index: u32,
        bytes: &mut Bytes,
        figures: &Figures,
        run: Option<(u32, u64)>,
    ) -> io::Result<()> {
        let mut used = 0;
        let mut runs = layout::NONE;
        let mut heads = Vec::new();
        for figure in figures.all.iter().take(STATS as usize).filter(|figure| figure.name < NAMES) {
            let mut bytes = Bytes::zeroed(head::SIZE);
            bytes.u32(head::STAT, 1 + figure.name);
            bytes.u64(head::COUNT, figure.count);
            let mut total = figure.total.round() as u64;
            if let Some((_, running)) = run.filter(|(name, _)| *name == figure.name) {
                runs = used;
                total = total.saturating_sub(running);
            }
            bytes.u64(head::TOTAL, total);
            bytes.u64(head::MIN, figure.min);
            bytes.u64(head::MAX, figure.max);
            used += 1;
            heads.extend(bytes.0);
        }
        bytes.u32(book::RUN, runs);
        bytes.u32(book::USED, used);
        bytes.u32(book::PEND, layout::NONE);
        let at = self.books + u64::from(index) * self.book_stride;
        file.write_all_at(&bytes.0, at)?;
        file.write_all_at(&heads, at + book::SIZE as u64)
    }

    fn write_session(
        &self,
        file: &File,
        slot: u32,
        (uses, session): (u32, Option<&Session>),
        now: u64,
    ) -> io::Result<()> {
        let at = self.entries + u64::from(slot) * entry::SIZE as u64;
        let Some(session) = session else {
            return file.write_all_at(&slot_state::FREE.to_ne_bytes(), at);
        };
        let o = &session.observed;
        let ago = |age: Option<u64>, now: u64| age.map(|age| now.saturating_sub(age).max(1));
        let mut bytes = Bytes::zeroed(entry::SIZE);
        bytes.u32(entry::STATE, slot_state::LIVE);
        bytes.u32(entry::GENERATION, uses);
        bytes.put(entry::PID, &o.pid.to_ne_bytes());
        bytes.put(entry::LEADER_PID, &o.leader_pid.to_ne_bytes());
        bytes.u64(entry::CLAIMED_TICK, ago(o.ages.session, now).unwrap_or(session.born));
        bytes.u32(entry::DATABASE_ID, o.database_id);
        bytes.u32(entry::USER_ID, o.user_id);
        bytes.u32(entry::IDENTITY_SEQ, 2 * session.identity);
        bytes.text(entry::KIND, entry::KIND_BYTES, &o.kind);
        bytes.text(entry::DATABASE, entry::DATABASE_BYTES, &o.database);
        bytes.text(entry::USER, entry::USER_BYTES, &o.user);
        bytes.text(entry::APPLICATION, entry::APPLICATION_BYTES, &o.application);
        bytes.u32(entry::LOCAL_STATEMENTS, 1);
        if let Some((since, blockage)) = &session.blocked {
            put_blocked(&mut bytes, *since, blockage);
        }
        file.write_all_at(&bytes.0, at)?;

        let mut bytes = Bytes::zeroed(book::SIZE);
        // It must differ from the previous one if anything has changed.
        bytes.u64(book::SEQ, 2 * now);
        bytes.u64(book::RUN_START, session.since);
        bytes.u64(book::BORN, session.born);
        bytes.u64(book::TRANSACTION, ago(o.ages.transaction, now).unwrap_or(0));
        bytes.u64(book::BETWEEN, ago(o.ages.state, now).unwrap_or(0));
        bytes.text(book::CLIENT, book::CLIENT_BYTES, &o.client);
        let run = Some((session.account, now.saturating_sub(session.since)));
        self.write_book(file, slot, &mut bytes, &session.figures, run)?;

        let mut bytes = Bytes::zeroed(current::SIZE);
        bytes.u64(current::SEQ, 2 * now);
        put_key(&mut bytes, current::KEY, (o.query_id, o.database_id, o.user_id));
        if o.executes() {
            bytes.u64(current::BEGUN, ago(o.ages.statement, now).unwrap_or(now));
        }
        // The time of a statement in progress is in its entry already.
        bytes.u64(current::SINCE, 0);
        file.write_all_at(&bytes.0, self.caches + u64::from(slot) * self.cache_stride)
    }

    fn write_group(
        &self,
        file: &File,
        number: u32,
        kind: &str,
        group: Option<&Group>,
        figures: &Figures,
    ) -> io::Result<()> {
        let index = self.slots + number;
        let mut bytes = Bytes::zeroed(entry::SIZE);
        bytes.u32(entry::STATE, slot_state::GROUP);
        bytes.text(entry::KIND, entry::KIND_BYTES, kind);
        if let Some(group) = group {
            bytes.u32(entry::DATABASE_ID, group.database_id);
            bytes.u32(entry::USER_ID, group.user_id);
            bytes.text(entry::DATABASE, entry::DATABASE_BYTES, &group.database);
            bytes.text(entry::USER, entry::USER_BYTES, &group.user);
            bytes.u64(entry::SESSIONS, group.sessions);
        }
        file.write_all_at(&bytes.0, self.entries + u64::from(index) * entry::SIZE as u64)?;
        let mut bytes = Bytes::zeroed(book::SIZE);
        let total: u64 = figures.all.iter().map(|figure| figure.count + figure.total as u64).sum();
        bytes.u64(book::SEQ, total & !1);
        self.write_book(file, index, &mut bytes, figures, None)
    }

    /// The statements that have changed.
    pub(super) fn write_statements(
        &mut self,
        file: &File,
        statements: &mut Statements,
    ) -> io::Result<()> {
        for (number, statement) in (0u32..).zip(&mut statements.rows).take(MOST_STATEMENTS) {
            if let Some(text) = statement.text.take() {
                (statement.first_block, statement.text_bytes) = self.write_text(file, &text)?;
                statement.changed = true;
            }
            if !std::mem::take(&mut statement.changed) {
                continue;
            }
            let (set, way) = (number / layout::WAYS as u32, number % layout::WAYS as u32);
            let tag = self.sets
                + u64::from(set) * set::SIZE as u64
                + (set::TAGS as u64 + 4 * u64::from(way));
            file.write_all_at(&1u32.to_ne_bytes(), tag)?;
            let near = near_of(statement);
            file.write_all_at(
                &near.0,
                self.statements + u64::from(number) * statement::SIZE as u64,
            )?;
            let mut far = Bytes::zeroed(rest::SIZE);
            put_counts(&mut far, rest::COUNTS, &statement.counted);
            for (at, (account, ticks)) in statement.parts.iter().take(layout::PARTS).enumerate() {
                let at = rest::PARTS + at * part::SIZE;
                far.u32(at + part::STAT, 1 + account);
                far.u64(at + part::TICKS, *ticks);
            }
            file.write_all_at(&far.0, self.rests + u64::from(number) * rest::SIZE as u64)?;
        }
        let dropped = statements.dropped.to_ne_bytes();
        file.write_all_at(&dropped, header::STATEMENTS_DROPPED as u64)
    }

    /// A text's blocks. Returns the first one, counted from 1, and the number of bytes.
    fn write_text(&mut self, file: &File, text: &str) -> io::Result<(u32, u32)> {
        let text = cut(text, BLOCKS as usize * layout::TEXT_BLOCK);
        let first = self.blocks + 1;
        let chunks = text.as_bytes().chunks(layout::TEXT_BLOCK);
        let count = chunks.len();
        for (at, chunk) in chunks.enumerate() {
            let mut bytes = Bytes::zeroed(block::SIZE);
            let more = at + 1 < count;
            bytes.u32(block::NEXT, if more { self.blocks + 2 } else { 0 });
            bytes.put(block::BYTES, chunk);
            file.write_all_at(&bytes.0, self.texts + u64::from(self.blocks) * block::SIZE as u64)?;
            self.blocks += 1;
        }
        Ok((if count > 0 { first } else { 0 }, text.len() as u32))
    }
}

fn put_key(bytes: &mut Bytes, at: usize, (id, database, user): (i64, u32, u32)) {
    bytes.put(at + key::ID, &id.to_ne_bytes());
    bytes.u32(at + key::DATABASE_ID, database);
    bytes.u32(at + key::USER_ID, user);
    bytes.u16(at + key::TOPLEVEL, 1);
}

fn put_blocked(bytes: &mut Bytes, since: u64, blockage: &Blockage) {
    let at = entry::BLOCKED;
    bytes.u64(at + blocked::SINCE, since);
    for (n, field) in blockage.fields.iter().enumerate() {
        bytes.u32(at + blocked::FIELD + 4 * n, *field);
    }
    bytes.u16(at + blocked::FIELD4, blockage.field4);
    let (kind, mode) = view::blocking::lock_numbers(&blockage.lock_type, &blockage.mode);
    bytes.put(at + blocked::TYPE, &[kind, if blockage.lock_type == "advisory" { 2 } else { 1 }]);
    for (n, pid) in blockage.blockers.iter().take(layout::BLOCKERS).enumerate() {
        bytes.put(at + blocked::PIDS + 4 * n, &pid.to_ne_bytes());
    }
    bytes.u16(at + blocked::COUNT, u16::try_from(blockage.blockers.len()).unwrap_or(u16::MAX));
    bytes.u16(at + blocked::MODE, mode);
}

/// Count, total, minimum, maximum and squares of executions.
fn put_moments(bytes: &mut Bytes, at: usize, times: &super::statements::Times) {
    bytes.u64(at + moments::COUNT, times.count);
    bytes.u64(at + moments::TOTAL, times.total_ns);
    bytes.u64(at + moments::MIN, times.min_ns);
    bytes.u64(at + moments::MAX, times.max_ns);
    bytes.f64(at + moments::SQUARES, times.squares);
}

fn near_of(row: &super::statements::StatementRow) -> Bytes {
    let mut near = Bytes::zeroed(statement::SIZE);
    put_key(&mut near, statement::KEY, row.key);
    near.u32(statement::STATE, 1);
    near.u32(statement::TEXT, row.first_block);
    near.u32(statement::TEXT_BYTES, row.text_bytes);
    near.u32(statement::TEXT_WHOLE, row.text_whole.max(row.text_bytes));
    near.u32(statement::ENCODING, UTF8);
    near.u32(statement::MORE, 1);
    near.u64(statement::BORN, row.born);
    put_moments(&mut near, statement::EXEC, &row.counted.exec);
    near.u64(statement::ROWS, row.counted.number(counts::ROWS));
    near.u64(statement::HITS, row.counted.number(counts::SHARED_HIT));
    near.put(statement::SINCE_US, &row.since_us.to_ne_bytes());
    near
}

fn put_counts(bytes: &mut Bytes, at: usize, counted: &Counted) {
    put_moments(bytes, at + counts::PLAN, &counted.plan);
    for (field, value) in &counted.numbers {
        // These two are in the entry itself.
        if ![counts::ROWS, counts::SHARED_HIT].contains(field) {
            bytes.u64(at + field, *value);
        }
    }
}
