// SPDX-License-Identifier: PostgreSQL
//! An attached segment: the checks of its header, and what is read from it directly.
//!
//! The cold part of the header is read and checked once; what a writer may change later
//! (level, overflows, probes, events, slots) is read anew at each call. Nothing is ever
//! taken from the file as an offset or a size without having been checked here.

use crate::clock::{Clock, ClockKind};
use crate::directory::{Directory, Stat, StatId, StatKind};
use crate::error::Error;
use crate::layout::{self, header, i32_at, text_at, u32_at, u64_at, Region};
use crate::level::Level;
use crate::process;
use crate::segment_path::{is_own, SegmentPath, ToSegmentPath};
use crate::statements::Texts;
use crate::tranches::Tranches;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// Bytes of a table that are read at a time.
const BATCH: usize = 64 * 1024;

/// What the creator of a segment wrote down once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Bytes of the file.
    pub size: u64,
    /// Where its ticks come from.
    pub clock_kind: ClockKind,
    /// An instant in ticks ...
    pub clock_tick0: u64,
    /// ... and in nanoseconds of CLOCK_MONOTONIC.
    pub clock_ns0: u64,
    /// When it was created, nanoseconds since 1970.
    pub created_realtime_ns: u64,
    /// Inode of the writers' pid namespace, 0 when unknown.
    pub pid_namespace: u64,
    /// Writers' slots.
    pub slots: u32,
    /// Groups of retired slots.
    pub groups: u32,
    /// Statistics that fit into one book.
    pub stats_per_book: u32,
    /// The boot during which it was made.
    pub boot_id: String,
    /// What is measured; for a server its data directory.
    pub host: String,
    /// The creator and its version.
    pub producer: String,
    /// "PostgreSQL 15.20", or empty.
    pub server: String,
    /// The server's first process, 0 when unknown.
    pub server_pid: u32,
    /// The server's port, 0 when unknown.
    pub server_port: u32,
    /// The folder of the server's socket, or empty.
    pub socket_dir: String,
    /// Whether all processes of the server write here, not its sessions alone.
    pub all_processes: bool,
}

/// Where things lie; checked against the size of the file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Regions {
    pub probes: Region,
    pub directory: Region,
    pub events: Region,
    pub fold_log: Region,
    pub journal: Region,
    pub entries: Region,
    pub books: Region,
    /// Where statements are kept.
    pub statements: Option<StatementRegions>,
    /// Where relations are kept.
    pub relations: Option<RelationRegions>,
}

/// Where the statements lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StatementRegions {
    pub sets: Region,
    pub table: Region,
    /// What finds no place in the entries of the table.
    pub rests: Region,
    pub texts: Region,
    pub caches: Region,
}

/// Where the relations lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RelationRegions {
    pub table: Region,
    pub places: Region,
}

/// What found no room, since the segment was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Overflows {
    /// Sessions that found no slot and run uninstrumented.
    pub slots: u64,
    /// Statistics that found no room in their session's book.
    pub statistics: u64,
    /// Names that found no room in the directory.
    pub directory: u64,
    /// Sessions folded into the group of last resort.
    pub groups: u64,
    /// Growths that the file system refused, and sessions that found no memory for a slot.
    pub memory: u64,
    /// Slots found damaged and not folded.
    pub lost_merges: u64,
    /// What was counted of statements and could not be laid down in their table.
    pub statements_dropped: u64,
    /// Statements left half changed by a process that died.
    pub statements_lost: u64,
    /// Texts of statements cut for want of room.
    pub texts_cut: u64,
    /// What was counted of a relation and left half laid down by a process that died.
    pub relations_lost: u64,
}

impl Overflows {
    pub(crate) fn of(live: &[u8]) -> Overflows {
        Overflows {
            slots: u64_at(live, header::OVERFLOW_SLOTS),
            statistics: u64_at(live, header::OVERFLOW_STATS),
            directory: u64_at(live, header::OVERFLOW_DIRECTORY),
            groups: u64_at(live, header::OVERFLOW_GROUPS),
            memory: u64_at(live, header::OVERFLOW_MEMORY)
                .saturating_add(u64_at(live, header::REFUSED_MEMORY)),
            lost_merges: u64_at(live, header::LOST_MERGES),
            statements_dropped: u64_at(live, header::STATEMENTS_DROPPED),
            statements_lost: u64_at(live, header::STATEMENTS_LOST),
            texts_cut: u64_at(live, header::TEXTS_CUT),
            relations_lost: u64_at(live, header::RELATIONS_LOST),
        }
    }

    /// Whether there were none.
    pub fn is_zero(&self) -> bool {
        *self == Overflows::default()
    }

    /// Add others.
    pub fn add(&mut self, other: &Overflows) {
        let pairs = [
            (&mut self.slots, other.slots),
            (&mut self.statistics, other.statistics),
            (&mut self.directory, other.directory),
            (&mut self.groups, other.groups),
            (&mut self.memory, other.memory),
            (&mut self.lost_merges, other.lost_merges),
            (&mut self.statements_dropped, other.statements_dropped),
            (&mut self.statements_lost, other.statements_lost),
            (&mut self.texts_cut, other.texts_cut),
        ];
        for (sum, more) in pairs {
            *sum = sum.saturating_add(more);
        }
    }

    /// Those since an earlier reading.
    pub fn since(&self, earlier: &Overflows) -> Overflows {
        Overflows {
            slots: self.slots.saturating_sub(earlier.slots),
            statistics: self.statistics.saturating_sub(earlier.statistics),
            directory: self.directory.saturating_sub(earlier.directory),
            groups: self.groups.saturating_sub(earlier.groups),
            memory: self.memory.saturating_sub(earlier.memory),
            lost_merges: self.lost_merges.saturating_sub(earlier.lost_merges),
            statements_dropped: self.statements_dropped.saturating_sub(earlier.statements_dropped),
            statements_lost: self.statements_lost.saturating_sub(earlier.statements_lost),
            texts_cut: self.texts_cut.saturating_sub(earlier.texts_cut),
            relations_lost: self.relations_lost.saturating_sub(earlier.relations_lost),
        }
    }

    /// A writer looks once for what a directory or a book has no room for, and counts it no more: so no
    /// interval after that has everything.
    pub(crate) fn with_lasting(self, ever: &Overflows) -> Overflows {
        Overflows {
            statistics: self.statistics.max(ever.statistics.min(1)),
            directory: self.directory.max(ever.directory.min(1)),
            ..self
        }
    }
}

/// What became of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeState {
    /// It is in place.
    Installed,
    /// It was left out; the reason says why.
    LeftOut,
}

/// A place where the producer looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Its place in the table, and, of the first ones, in every book's counters of calls.
    pub index: u32,
    /// Installed or left out.
    pub state: ProbeState,
    /// "import fsync", ...
    pub name: String,
    /// Why it was left out; empty when installed.
    pub reason: String,
}

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Information.
    Note,
    /// Something was left out or lost.
    Warning,
    /// One process kept another waiting for long.
    Blocked,
    /// An operation that took long.
    Slow,
    /// A checkpoint begins or ends.
    Checkpoint,
    /// One that a later writer knows, by its number.
    Other(u32),
}

impl EventKind {
    fn of(number: u32) -> EventKind {
        match number {
            1 => EventKind::Note,
            2 => EventKind::Warning,
            3 => EventKind::Blocked,
            4 => EventKind::Slow,
            5 => EventKind::Checkpoint,
            other => EventKind::Other(other),
        }
    }
}

impl std::fmt::Display for EventKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EventKind::Note => f.pad("note"),
            EventKind::Warning => f.pad("warning"),
            EventKind::Blocked => f.pad("blocked"),
            EventKind::Slow => f.pad("slow"),
            EventKind::Checkpoint => f.pad("checkpoint"),
            EventKind::Other(number) => f.pad(&format!("event {number}")),
        }
    }
}

/// A notable thing that a writer has put down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its place in time, counted from 1.
    pub number: u64,
    /// When, in ticks.
    pub tick: u64,
    /// Who.
    pub pid: i32,
    /// What it is about.
    pub kind: EventKind,
    /// What.
    pub text: String,
}

/// A segment that is attached to.
#[derive(Debug)]
pub struct Segment {
    place: SegmentPath,
    file: File,
    owner: u32,
    identity: (u64, u64),
    header: Header,
    pub(crate) regions: Regions,
    pub(crate) clock: Clock,
    /// The writers' processes are of this boot and of our pid namespace.
    pub(crate) pids_known: bool,
    live: bool,
    pub(crate) directory: Arc<Directory>,
    /// Directory index to our number, once published.
    ids: Vec<Option<StatId>>,
    /// The names of tranches that have been asked for.
    pub(crate) tranches: Arc<Tranches>,
    /// The texts of statements that have been read.
    pub(crate) texts: Texts,
    /// Buffers that are kept between snapshots.
    pub(crate) entries_buffer: Vec<u8>,
    pub(crate) liveness_turn: usize,
}

/// Turn a failed open into the error that helps.
pub(crate) fn open_error(path: &Path, wish: &'static str, source: io::Error) -> Error {
    let path = path.to_path_buf();
    match source.kind() {
        io::ErrorKind::NotFound => Error::NotFound { path },
        io::ErrorKind::PermissionDenied => {
            let metadata = std::fs::symlink_metadata(&path);
            let (owner, mode) = metadata.map_or(("unknown".to_string(), 0), |m| {
                (process::user_name(m.uid()), m.mode() & 0o7777)
            });
            let hint =
                if mode & 0o040 != 0 && wish == "read it" { ", or join its group" } else { "" };
            Error::Permission { path, wish, owner, mode, hint }
        }
        _ if source.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            Error::NotAFile { path }
        }
        _ => Error::Io { path, wish, source },
    }
}

impl Segment {
    /// Attach to the segment at a place, read-only, if it belongs to whom it has to (see
    /// [`SegmentPath`]). A symbolic link is not followed. For a segment made less than 50 ms ago this
    /// waits until its clock can be told.
    pub fn open(place: &(impl ToSegmentPath + ?Sized)) -> Result<Segment, Error> {
        let place = place.to_segment_path();
        let open = |flags: OFlags| {
            // Without O_NONBLOCK, opening a named pipe would wait for ever.
            let flags = (flags | OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
            OpenOptions::new().read(true).custom_flags(flags).open(place.path())
        };
        // A pread that need not look after the file's access time takes 8 % less, but only
        // the file's owner and root may ask for that.
        let file = match open(OFlags::NOATIME) {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => open(OFlags::empty()),
            opened => opened,
        }
        .map_err(|e| open_error(place.path(), "read it", e))?;
        Segment::from_file(file, place)
    }

    pub(crate) fn from_file(file: File, place: SegmentPath) -> Result<Segment, Error> {
        let path = place.path().to_path_buf();
        let metadata = file.metadata().map_err(|source| Error::Io {
            path: path.clone(),
            wish: "read it",
            source,
        })?;
        if !metadata.is_file() {
            return Err(Error::NotAFile { path });
        }
        let mut head = Vec::new();
        read_up_to(&file, &path, 0, layout::HEADER_SIZE, &mut head)?;
        let (header, regions) = parse_header(&path, &head, metadata.len())?;
        place.check(&metadata, &header)?;
        let own_boot = process::own_boot_id();
        let live = own_boot.is_empty() || own_boot == header.boot_id;
        let namespace = process::own_namespace();
        let clock =
            Clock::new(&path, header.clock_kind, header.clock_tick0, header.clock_ns0, live)?;
        Ok(Segment {
            place,
            file,
            owner: metadata.uid(),
            identity: (metadata.dev(), metadata.ino()),
            pids_known: live && namespace != 0 && namespace == header.pid_namespace,
            live,
            clock,
            directory: Arc::new(Directory::default()),
            ids: Vec::new(),
            tranches: Arc::default(),
            texts: Texts::default(),
            header,
            regions,
            entries_buffer: Vec::new(),
            liveness_turn: 0,
        })
    }

    /// Where it was opened, and whose it had to be.
    pub fn segment_path(&self) -> &SegmentPath {
        &self.place
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.place.path()
    }

    /// The user that the file belongs to.
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// Whether it is our own, or root's. What another user's segment says may be followed only
    /// with what that user may know.
    pub fn is_own(&self) -> bool {
        is_own(self.owner)
    }

    /// What its creator wrote down.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Its clock, as known at the last snapshot.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Whether it was made during this boot, so that its clock runs on and its processes
    /// may still be there.
    pub fn is_of_this_boot(&self) -> bool {
        self.live
    }

    /// Whether the writers' pids are numbers of our own pid namespace. If not, a dead writer
    /// cannot be told from an idle one, and /proc says nothing about either.
    pub fn knows_pids(&self) -> bool {
        self.pids_known
    }

    /// Whether the path now names another file, or none: the writers have begun a new
    /// segment, or the server has gone.
    pub fn replaced(&self) -> bool {
        std::fs::symlink_metadata(self.path()).map_or(true, |m| (m.dev(), m.ino()) != self.identity)
    }

    /// Whether the server that it tells of runs: `None` when that cannot be known. A server
    /// that restarts may go on in the same file, so its pid is read anew.
    pub fn server_runs(&self) -> Option<bool> {
        if !self.live {
            return Some(false);
        }
        let pid = i32::try_from(self.server_pid().ok()?).ok().filter(|&p| p > 0)?;
        self.pids_known.then(|| process::exists(pid))
    }

    /// Whether another server process than when the segment was opened goes on in it.
    pub fn server_changed(&self) -> bool {
        self.server_pid().is_ok_and(|pid| pid != self.header.server_pid)
    }

    fn server_pid(&self) -> Result<u32, Error> {
        let mut bytes = [0u8; 4];
        self.read(header::SERVER_PID as u64, &mut bytes)?;
        Ok(u32_at(&bytes, 0))
    }

    pub(crate) fn io(&self, source: io::Error) -> Error {
        io_error(self.path(), source)
    }

    /// Fill `buffer` from `offset` on; a file cut short meanwhile is an error.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let mut have = 0;
        while have < buffer.len() {
            // Not by way of libc, whose pread looks for a cancelled thread before and after.
            match rustix::io::pread(&self.file, &mut buffer[have..], offset + have as u64) {
                Ok(0) => {
                    return Err(Error::Truncated {
                        path: self.path().to_path_buf(),
                        expected: self.header.size,
                        found: self.file.metadata().map_or(0, |m| m.len()),
                    })
                }
                Ok(n) => have += n,
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(self.io(e.into())),
            }
        }
        Ok(())
    }

    /// Show the first `size` bytes of every entry of a region, read many at a time; whatever
    /// the strides of a hostile file, a reading is not much longer than [`BATCH`].
    pub(crate) fn each_entry(
        &self,
        region: Region,
        size: usize,
        mut see: impl FnMut(u32, &[u8]),
    ) -> Result<(), Error> {
        let stride = region.stride as usize;
        let batch = (BATCH / stride.max(1)).max(1);
        let mut bytes = Vec::new();
        let mut first = 0;
        while first < region.count {
            let entries = batch.min((region.count - first) as usize);
            bytes.resize((entries - 1) * stride + size, 0);
            self.read(region.entry(first), &mut bytes)?;
            for (index, entry) in (first..).zip(bytes.chunks(stride.max(1))) {
                see(index, &entry[..size.min(entry.len())]);
            }
            first += entries as u32;
        }
        Ok(())
    }

    pub(crate) fn read_u64(&self, offset: u64) -> Result<u64, Error> {
        let mut bytes = [0u8; 8];
        self.read(offset, &mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// The part of the header that writers change.
    pub(crate) fn read_live(&self) -> Result<[u8; header::LIVE_END], Error> {
        let mut live = [0u8; header::LIVE_END];
        self.read(header::LEVEL_WORD as u64, &mut live[header::LEVEL_WORD..])?;
        Ok(live)
    }

    /// The level and the number of resets.
    pub(crate) fn level_word(&self) -> Result<u32, Error> {
        let mut bytes = [0u8; 4];
        self.read(header::LEVEL_WORD as u64, &mut bytes)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    /// The level in force.
    pub fn level(&self) -> Result<Level, Error> {
        Ok(Level::of_word(self.level_word()?))
    }

    /// What found no room so far.
    pub fn overflows(&self) -> Result<Overflows, Error> {
        Ok(Overflows::of(&self.read_live()?))
    }

    /// Files that had to give way to others before their writes were synced: the next sync of
    /// such a one is told with fewer writes than there were.
    pub fn files_given_up(&self) -> Result<u64, Error> {
        self.read_u64(header::OVERFLOW_FILES as u64)
    }

    /// Slots that are claimed now.
    pub fn population(&self) -> Result<u32, Error> {
        let region = self.regions.entries;
        let mut entry = [0u8; 4];
        let mut claimed = 0;
        for slot in 0..self.header.slots {
            self.read(region.entry(slot), &mut entry)?;
            claimed += u32::from(u32_at(&entry, 0) != layout::state::FREE);
        }
        Ok(claimed)
    }

    /// The probes of the producer, installed or left out.
    pub fn probes(&self) -> Result<Vec<Probe>, Error> {
        let mut probes = Vec::new();
        self.each_entry(self.regions.probes, layout::probe::SIZE, |index, bytes| {
            let state = match u32_at(bytes, layout::probe::STATE) {
                1 => ProbeState::Installed,
                2 => ProbeState::LeftOut,
                _ => return,
            };
            probes.push(Probe {
                index,
                state,
                name: text_at(bytes, layout::probe::NAME, layout::probe::NAME_SIZE),
                reason: text_at(bytes, layout::probe::REASON, 120),
            });
        })?;
        Ok(probes)
    }

    /// Events that were ever begun: the number of the last one.
    pub fn event_count(&self) -> Result<u64, Error> {
        self.read_u64(header::EVENT_COUNT as u64)
    }

    /// As many of the last ones are kept.
    pub fn event_capacity(&self) -> u32 {
        self.regions.events.count
    }

    /// The events later than number `since` that are still in the ring, oldest first. One that
    /// is being written is missing, as are those that others have been written over.
    pub fn events(&self, since: u64) -> Result<Vec<Event>, Error> {
        let region = self.regions.events;
        let count = u64::from(region.count);
        let begun = self.event_count()?;
        let mut events = Vec::new();
        let mut bytes = [0u8; layout::event::SIZE];
        for place in since.max(begun.saturating_sub(count))..begun {
            let number = place + 1;
            let offset = region.entry((place % count) as u32);
            // Not while it is being written or written over: the number before and after.
            if self.read_u64(offset)? != number {
                continue;
            }
            self.read(offset, &mut bytes)?;
            if self.read_u64(offset)? != number || u64_at(&bytes, 0) != number {
                continue;
            }
            events.push(Event {
                number,
                tick: u64_at(&bytes, layout::event::TICK),
                pid: i32_at(&bytes, layout::event::PID),
                kind: EventKind::of(u32_at(&bytes, layout::event::KIND)),
                text: text_at(&bytes, layout::event::TEXT, 232),
            });
        }
        Ok(events)
    }

    /// Our number for the statistic that a head names, if it has been met before.
    pub(crate) fn known_stat(&self, stat: u32) -> Option<StatId> {
        self.ids.get(stat.checked_sub(1)? as usize).copied().flatten()
    }

    /// Our number for the statistic that a head names (1 + its index in the directory), or
    /// `None` where the directory has no such entry.
    pub(crate) fn stat(&mut self, stat: u32) -> Result<Option<StatId>, Error> {
        let Some(index) = stat.checked_sub(1) else {
            return Ok(None);
        };
        if let Some(&Some(id)) = self.ids.get(index as usize) {
            return Ok(Some(id));
        }
        let region = self.regions.directory;
        if index >= region.count {
            return Ok(None);
        }
        let mut bytes = [0u8; layout::directory::SIZE];
        self.read(region.entry(index), &mut bytes)?;
        if u32_at(&bytes, layout::directory::STATE) != 2 {
            return Ok(None);
        }
        let kind = match u32_at(&bytes, layout::directory::KIND) {
            1 => StatKind::Account,
            2 => StatKind::Timer,
            3 => StatKind::Value,
            _ => return Ok(None),
        };
        let id = Directory::intern(
            &mut self.directory,
            Stat::new(
                text_at(&bytes, layout::directory::NAME, 96),
                kind,
                text_at(&bytes, layout::directory::UNIT, 16),
            ),
        );
        if self.ids.len() <= index as usize {
            self.ids.resize(index as usize + 1, None);
        }
        self.ids[index as usize] = Some(id);
        Ok(Some(id))
    }
}

fn io_error(path: &Path, source: io::Error) -> Error {
    Error::Io { path: path.to_path_buf(), wish: "read it", source }
}

/// Read up to `size` bytes; less only where the file ends.
fn read_up_to(
    file: &File,
    path: &Path,
    offset: u64,
    size: usize,
    buffer: &mut Vec<u8>,
) -> Result<(), Error> {
    buffer.resize(size, 0);
    let mut have = 0;
    while have < size {
        match file.read_at(&mut buffer[have..], offset + have as u64) {
            Ok(0) => break,
            Ok(n) => have += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(io_error(path, e)),
        }
    }
    buffer.truncate(have);
    Ok(())
}

/// The rests of a table's entries: behind them, in their order.
fn rests_of(table: Region) -> Option<Region> {
    let offset = table.offset + (table.end()? - table.offset).checked_next_multiple_of(4096)?;
    Some(Region { offset, count: table.count, stride: layout::rest::SIZE as u32 })
}

fn parse_header(path: &Path, head: &[u8], length: u64) -> Result<(Header, Regions), Error> {
    let path = path.to_path_buf();
    if !head.starts_with(layout::MAGIC) {
        return Err(Error::NotASegment { path });
    }
    if head.len() < 16 {
        return Err(Error::Truncated { path, expected: layout::HEADER_SIZE as u64, found: length });
    }
    match u32_at(head, header::BYTE_ORDER) {
        layout::BYTE_ORDER => {}
        order if order == layout::BYTE_ORDER.swap_bytes() => return Err(Error::ByteOrder { path }),
        order => {
            return Err(Error::Damaged {
                path,
                what: format!("its byte order reads {order:#010x}"),
            })
        }
    }
    let version = u32_at(head, header::VERSION);
    if version != layout::VERSION {
        return Err(Error::Version { path, found: version, known: layout::VERSION });
    }
    let size = u64_at(head, header::SEGMENT_SIZE);
    if head.len() < layout::HEADER_SIZE || length < size {
        return Err(Error::Truncated {
            path,
            expected: size.max(layout::HEADER_SIZE as u64),
            found: length,
        });
    }
    let damaged = |what: String| Error::Damaged { path: path.clone(), what };
    let number = |what: &str, at: usize, least: u32, most: u32| {
        let value = u32_at(head, at);
        if (least..=most).contains(&value) {
            Ok(value)
        } else {
            Err(damaged(format!("{what} is {value}, not {least} to {most}")))
        }
    };
    number(
        "its header's size",
        header::HEADER_SIZE,
        layout::HEADER_SIZE as u32,
        layout::HEADER_SIZE as u32,
    )?;
    number(
        "the number of histogram buckets",
        header::HIST_BUCKETS,
        layout::HIST_BUCKETS as u32,
        layout::HIST_BUCKETS as u32,
    )?;
    let slots = number("the number of slots", header::SLOTS, 1, 65_535)?;
    let groups = number("the number of groups", header::GROUPS, 1, 4_096)?;
    let stats_per_book = number("statistics per book", header::STATS_PER_BOOK, 16, 4_096)?;
    let clock_kind = match number("the kind of clock", header::CLOCK_KIND, 1, 2)? {
        1 => ClockKind::Monotonic,
        _ => ClockKind::Tsc,
    };
    let region = |what: &str, at: usize, count: (u32, u32), stride: usize| {
        let region = Region::at(head, at);
        let fits = region.end().is_some_and(|end| end <= size)
            && region.offset >= layout::HEADER_SIZE as u64
            && region.offset.is_multiple_of(8)
            && (count.0..=count.1).contains(&region.count)
            && region.stride as usize >= stride
            && region.stride.is_multiple_of(8);
        if fits {
            Ok(region)
        } else {
            Err(damaged(format!(
                "the region of {what} ({} entries of {} bytes at {}) is impossible in {size} bytes",
                region.count, region.stride, region.offset
            )))
        }
    };
    // Kept or not; where they are, all four regions fit each other.
    let statements = if u32_at(head, header::SETS + 8) == 0 {
        None
    } else {
        let sets = region("sets of statements", header::SETS, (1, 1 << 16), layout::set::SIZE)?;
        let entries = sets.count * layout::WAYS as u32;
        let table = layout::statement::SIZE;
        let table = region("statements", header::STATEMENTS, (entries, entries), table)?;
        let cache = layout::current::SIZE + layout::CACHED * layout::cached::SIZE;
        Some(StatementRegions {
            sets,
            table,
            rests: rests_of(table)
                .filter(|rests| rests.end().is_some_and(|end| end <= size))
                .ok_or_else(|| damaged("the rests of its statements lie beyond its end".into()))?,
            texts: region("texts", header::TEXTS, (0, 1 << 24), layout::block::SIZE)?,
            caches: region("caches", header::CACHES, (slots, slots), cache)?,
        })
    };
    let relations = if u32_at(head, header::RELATIONS + 8) == 0 {
        None
    } else {
        let places = layout::LOCAL_RELATIONS * layout::local_relation::SIZE;
        Some(RelationRegions {
            table: region("relations", header::RELATIONS, (1, 1 << 20), layout::relation::SIZE)?,
            places: region("places", header::LOCAL_RELATIONS, (slots, slots), places)?,
        })
    };
    let entries = (slots + groups, slots + groups);
    let book_size =
        layout::book::SIZE + stats_per_book as usize * (layout::head::SIZE + layout::HIST_SIZE);
    let regions = Regions {
        probes: region("probes", header::PROBES, (0, 4_096), layout::probe::SIZE)?,
        directory: region("names", header::DIRECTORY, (64, 65_536), layout::directory::SIZE)?,
        events: region("events", header::EVENTS, (16, 65_536), layout::event::SIZE)?,
        fold_log: region("folds", header::MERGE_LOG, (1, 1 << 20), 8)?,
        journal: region("the journal", header::JOURNAL, (1, 1), layout::journal::SIZE)?,
        entries: region("slots", header::ENTRIES, entries, layout::entry::SIZE)?,
        books: region("books", header::BOOKS, entries, book_size)?,
        statements,
        relations,
    };
    Ok((
        Header {
            size,
            clock_kind,
            clock_tick0: u64_at(head, header::CLOCK_TICK0),
            clock_ns0: u64_at(head, header::CLOCK_NS0),
            created_realtime_ns: u64_at(head, header::CREATED_NS),
            pid_namespace: u64_at(head, header::PID_NAMESPACE),
            slots,
            groups,
            stats_per_book,
            boot_id: text_at(head, header::BOOT_ID, 40),
            host: text_at(head, header::HOST, 256),
            producer: text_at(head, header::PRODUCER, 64),
            server: text_at(head, header::SERVER, 64),
            server_pid: u32_at(head, header::SERVER_PID),
            server_port: u32_at(head, header::SERVER_PORT),
            socket_dir: text_at(head, header::SOCKET_DIR, 112),
            all_processes: u32_at(head, header::FLAGS) & 1 != 0,
        },
        regions,
    ))
}
