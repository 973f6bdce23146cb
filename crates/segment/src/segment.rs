// SPDX-License-Identifier: PostgreSQL
//! An attached segment: checks its header, and reads values directly from it.
//!
//! The cold part of the header is read and checked once. Values that writers change (level, overflows,
//! probes, events, slots) are read at each call. Every offset and size in the file is checked here
//! before it is used.

use crate::clock::Clock;
use crate::directory::{Directory, StatId};
use crate::error::Error;
use crate::header::{parse_header, Header, Regions};
use crate::hooks::Hooks;
use crate::layout::{self, header, Region};
use crate::mapping::MappedFile;
use crate::origin::{first_image, Origin, Remote};
use crate::overflows::Overflows;
use crate::segment_path::{is_own, SegmentPath, ToSegmentPath};
use crate::statement_text::Texts;
use crate::this_host;
use crate::tranches::Tranches;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// Number of bytes of a table to read at a time.
const BATCH: usize = 64 * 1024;

/// An attached segment.
#[derive(Debug)]
pub struct Segment {
    segment_path: SegmentPath,
    pub(crate) file: File,
    /// The file as mapped at the second snapshot, from which books are copied.
    pub(crate) mapped: Option<MappedFile>,
    /// Whether it may still be mapped: once, if it belongs to this boot and is not an image.
    pub(crate) may_map: bool,
    pub(crate) remote: Option<Remote>,
    owner: u32,
    identity: (u64, u64),
    header: Header,
    pub(crate) regions: Regions,
    pub(crate) clock: Clock,
    /// Whether the writers' processes belong to this boot and to our PID namespace.
    pub(crate) pids_known: bool,
    live: bool,
    /// When the run ended, if it has; "now" is never later than this.
    ended: Option<u64>,
    pub(crate) directory: Arc<Directory>,
    /// Our numbers of statistics by directory index, for published names.
    pub(crate) ids: Vec<Option<StatId>>,
    /// The names of tranches that have been looked up.
    pub(crate) tranches: Arc<Tranches>,
    /// The texts of statements that have been read.
    pub(crate) texts: Texts,
    /// Buffers kept between snapshots.
    pub(crate) entries_buffer: Vec<u8>,
    pub(crate) liveness_turn: usize,
    pub(crate) hooks: Hooks,
}

/// The error for a failed open, with its remedy.
pub(crate) fn open_error(path: &Path, wish: &'static str, source: io::Error) -> Error {
    let path = path.to_path_buf();
    match source.kind() {
        io::ErrorKind::NotFound => Error::NotFound { path },
        io::ErrorKind::PermissionDenied => {
            let metadata = std::fs::symlink_metadata(&path);
            let (owner, mode) = metadata.map_or(("unknown".to_string(), 0), |m| {
                (this_host::user_name(m.uid()), m.mode() & 0o7777)
            });
            let hint = if mode & 0o040 != 0 && wish == "read it" {
                ", or join the file's group"
            } else {
                ""
            };
            Error::Permission { path, wish, owner, mode, hint }
        }
        _ if source.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            Error::NotAFile { path }
        }
        _ => Error::Io { path, wish, source },
    }
}

impl Segment {
    /// Attach to the segment at a path, read-only, if it belongs to the right owner (see
    /// [`SegmentPath`]). Symbolic links are not followed. If the segment was created less than 50 ms ago,
    /// this waits until its clock can be measured.
    pub fn open(path: &(impl ToSegmentPath + ?Sized)) -> Result<Segment, Error> {
        let path = path.to_segment_path();
        let open = |flags: OFlags| {
            // Without O_NONBLOCK, opening a named pipe would block.
            let flags = (flags | OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
            OpenOptions::new().read(true).custom_flags(flags).open(path.path())
        };
        // Without updates of the access time, a pread takes 8 % less; only the file's owner and root may request this.
        let file = match open(OFlags::NOATIME) {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => open(OFlags::empty()),
            opened => opened,
        }
        .map_err(|e| open_error(path.path(), "read it", e))?;
        Segment::from_file(file, path)
    }

    /// A second handle of the same segment, for another thread. If the segment is read through a connection, the handle
    /// has the last image.
    pub fn again(&self) -> Result<Segment, Error> {
        let file = self.file.try_clone().map_err(|e| open_error(self.path(), "read it", e))?;
        Ok(Segment {
            segment_path: self.segment_path.clone(),
            file,
            mapped: None,
            may_map: self.changes(),
            remote: None,
            owner: self.owner,
            identity: self.identity,
            pids_known: self.pids_known,
            live: self.live,
            ended: self.ended,
            clock: self.clock,
            directory: Arc::default(),
            ids: Vec::new(),
            tranches: Arc::default(),
            texts: Texts::default(),
            header: self.header.clone(),
            regions: self.regions,
            entries_buffer: Vec::new(),
            liveness_turn: 0,
            hooks: Hooks::default(),
        })
    }

    /// A segment whose bytes come from elsewhere.
    pub fn of_origin(origin: Box<dyn Origin>) -> Result<Segment, Error> {
        let (file, remote) = first_image(origin)?;
        let path = Path::new(remote.origin.server()).to_segment_path();
        Segment::attach(file, path, Some(remote))
    }

    /// The same for the file at that path, which has been opened.
    pub fn from_file(file: File, segment_path: SegmentPath) -> Result<Segment, Error> {
        Segment::attach(file, segment_path, None)
    }

    fn attach(
        file: File,
        segment_path: SegmentPath,
        remote: Option<Remote>,
    ) -> Result<Segment, Error> {
        let path = segment_path.path().to_path_buf();
        let metadata = file.metadata().map_err(|source| Error::Io {
            path: path.clone(),
            wish: "read it",
            source,
        })?;
        if !metadata.is_file() {
            return Err(Error::NotAFile { path });
        }
        let mut head = Vec::new();
        read_up_to(&file, &path, 0, layout::header::SIZE, &mut head)?;
        let (mut header, regions) = parse_header(&path, &head, metadata.len())?;
        if let Some(remote) = &remote {
            remote.describe(&mut header);
        }
        if remote.is_none() {
            segment_path.check(&metadata, &header)?;
        }
        let own_boot = this_host::own_boot_id();
        let live = remote.is_some() || own_boot.is_empty() || own_boot == header.boot_id;
        // The PIDs of an image may belong to another machine.
        let namespace = remote.is_none().then(this_host::own_namespace).unwrap_or(0);
        let (kind, tick0, ns0) = (header.clock_kind, header.clock_tick0, header.clock_ns0);
        let clock = match &remote {
            Some(remote) => Clock::of_moment(kind, tick0, ns0, &remote.moment),
            None => Clock::new(&path, kind, tick0, ns0, live)?,
        };
        Ok(Segment {
            segment_path,
            file,
            mapped: None,
            may_map: live && remote.is_none(),
            remote,
            owner: metadata.uid(),
            identity: (metadata.dev(), metadata.ino()),
            pids_known: live && namespace != 0 && namespace == header.pid_namespace,
            live,
            ended: None,
            clock,
            directory: Arc::new(Directory::default()),
            ids: Vec::new(),
            tranches: Arc::default(),
            texts: Texts::default(),
            header,
            regions,
            entries_buffer: Vec::new(),
            liveness_turn: 0,
            hooks: Hooks::default(),
        })
    }

    /// Its path, and its required owner.
    pub fn segment_path(&self) -> &SegmentPath {
        &self.segment_path
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.segment_path.path()
    }

    /// The owner of the file.
    pub fn owner(&self) -> u32 {
        self.owner
    }

    /// Whether the file belongs to us or to root. Use the content of another user's segment only for purposes
    /// that this user may influence.
    pub fn is_own(&self) -> bool {
        is_own(self.owner)
    }

    /// The part of the header that the creator wrote.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The current tick; for a run that has ended, the tick of its end.
    pub(crate) fn now(&self) -> u64 {
        let now = self.unending_now();
        self.ended.map_or(now, |end| now.min(end))
    }

    fn unending_now(&self) -> u64 {
        match self.clock.is_virtual() {
            true => self.read_u64(header::VIRTUAL_TICK as u64).unwrap_or(0),
            false => self.clock.now(),
        }
    }

    /// How long ago the run ended, ns; 0: it has not ended.
    pub(crate) fn ended_ns_ago(&self) -> u64 {
        let ticks = self.ended.map_or(0, |end| self.unending_now().saturating_sub(end));
        (self.clock.seconds(ticks) * 1e9) as u64
    }

    /// When the run in this file ended, according to its server or to the server of `next`, which is now at the same
    /// path. `None`: it continues, or was killed at an unknown time.
    pub fn end_of_run(&self, next: Option<&Segment>) -> Result<Option<u64>, Error> {
        let ended = Some(self.read_u64(header::ENDED_TICK as u64)?).filter(|tick| *tick != 0);
        let successor = next.map(Segment::header).filter(|next| {
            next.created_realtime_ns != self.header.created_realtime_ns
                && next.clock_kind == self.header.clock_kind
                && next.boot_id == self.header.boot_id
        });
        Ok(ended.or(successor.map(|next| next.clock_tick0)))
    }

    /// If the process of a client has ended: from now on, everything is read as of its end; if it was killed, as of the last
    /// change of a thread's account. Returns whether it has ended, and was killed.
    pub fn end_with_process(&mut self) -> Result<Option<bool>, Error> {
        if self.server_runs() != Some(false) {
            return Ok(None);
        }
        let end = self.end_of_run(None)?;
        let last = match end {
            Some(tick) => tick,
            None => {
                let snapshot = self.snapshot(None)?;
                let changes = snapshot.books.iter().map(|book| book.run_start);
                changes.fold(snapshot.reset_tick, u64::max)
            }
        };
        self.end_at(last);
        Ok(Some(end.is_none()))
    }

    /// Set the end of the run. From now on, everything is read as of that instant.
    pub fn end_at(&mut self, tick: u64) {
        self.ended = Some(tick);
    }

    /// Measure the clock again, which makes it more precise.
    pub(crate) fn measure_clock(&mut self) {
        match self.clock.is_virtual() {
            true => self.clock.set_now(self.unending_now()),
            false => self.clock.measure(),
        }
    }

    /// Read the clock's origin again. If it has changed, a writer has found that the clock has restarted (hibernation).
    pub(crate) fn read_clock_origin(&mut self) -> Result<(), Error> {
        let tick0 = self.read_u64(header::CLOCK_TICK0 as u64)?;
        let ns0 = self.read_u64(header::CLOCK_NS0 as u64)?;
        if (tick0, ns0) != (self.header.clock_tick0, self.header.clock_ns0) {
            (self.header.clock_tick0, self.header.clock_ns0) = (tick0, ns0);
            self.clock.set_origin(tick0, ns0);
            match &self.remote {
                Some(remote) => self.clock.set_moment(&remote.moment),
                None => self.measure_clock(),
            }
        }
        Ok(())
    }

    /// The clock, as known at the last snapshot.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Whether the segment was created during this boot, so that its clock still runs and its processes may exist.
    pub fn is_of_this_boot(&self) -> bool {
        self.live
    }

    /// Whether the bytes may change while they are read. An image does not change.
    pub(crate) fn changes(&self) -> bool {
        self.live && self.remote.is_none()
    }

    /// Whether the writers' PIDs belong to our PID namespace. If not, dead and idle writers cannot be
    /// distinguished, and /proc has neither.
    pub fn knows_pids(&self) -> bool {
        self.pids_known
    }

    /// Whether the path now names another file, or none, because the writers have created a new segment or the
    /// server has ended.
    pub fn replaced(&self) -> bool {
        if self.remote.is_some() {
            let created = self.read_u64(header::CREATED_REALTIME_NS as u64);
            return created.is_ok_and(|created| created != self.header.created_realtime_ns);
        }
        std::fs::symlink_metadata(self.path()).map_or(true, |m| (m.dev(), m.ino()) != self.identity)
    }

    /// Whether the server runs; `None` if that is unknown. A restarted server may reuse the file, so its
    /// PID is read again.
    pub fn server_runs(&self) -> Option<bool> {
        if !self.live {
            return Some(false);
        }
        if self.remote.is_some() {
            // The server has just supplied the image.
            return Some(true);
        }
        let pid = i32::try_from(self.server_pid().ok()?).ok().filter(|&p| p > 0)?;
        self.pids_known.then(|| this_host::runs_since(pid, self.header.process_started))
    }

    /// Whether a different server process uses the file than when it was opened.
    pub fn server_changed(&self) -> bool {
        self.server_pid().is_ok_and(|pid| pid != self.header.server_pid)
    }

    fn server_pid(&self) -> Result<u32, Error> {
        self.read_u32(header::SERVER_PID as u64)
    }

    pub(crate) fn io(&self, source: io::Error) -> Error {
        io_error(self.path(), source)
    }

    /// Fill `buffer` from `offset` on; fails if the file was truncated.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        self.hooks.before_reading(offset, buffer.len());
        self.pread(offset, buffer)
    }

    /// The same for a part of a book, from the mapping if there is one. Of a mapping that is lost, the bytes are zeros: see
    /// [`Segment::snapshot`].
    pub(crate) fn read_book_bytes(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        self.hooks.before_reading(offset, buffer.len());
        match &self.mapped {
            Some(mapped) if mapped.copy(offset, buffer) => Ok(()),
            _ => self.pread(offset, buffer),
        }
    }

    fn pread(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let mut have = 0;
        while have < buffer.len() {
            // Not through libc, whose pread checks for thread cancellation before and after.
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

    /// Pass the first `size` bytes of every entry of a region to `see`. Entries are read in batches of
    /// about [`BATCH`] bytes, whatever the stride in a hostile file.
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

    pub(crate) fn read_u32(&self, offset: u64) -> Result<u32, Error> {
        let mut bytes = [0u8; 4];
        self.read(offset, &mut bytes)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    pub(crate) fn read_u64(&self, offset: u64) -> Result<u64, Error> {
        let mut bytes = [0u8; 8];
        self.read(offset, &mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// The part of the header that writers change.
    pub(crate) fn read_live(&self) -> Result<[u8; layout::LIVE_END], Error> {
        let mut live = [0u8; layout::LIVE_END];
        self.read(header::LEVEL_WORD as u64, &mut live[header::LEVEL_WORD..])?;
        Ok(live)
    }

    /// The level and the number of resets.
    pub(crate) fn level_word(&self) -> Result<u32, Error> {
        self.read_u32(header::LEVEL_WORD as u64)
    }

    /// Overflows so far.
    pub fn overflows(&self) -> Result<Overflows, Error> {
        Ok(Overflows::decode(&self.read_live()?))
    }

    /// Files that were evicted before their writes were synced: the next sync of such a file is reported
    /// with too few writes.
    pub fn files_given_up(&self) -> Result<u64, Error> {
        self.read_u64(header::OVERFLOW_FILES as u64)
    }

    /// Number of slots in use.
    pub fn population(&self) -> Result<u32, Error> {
        let mut claimed = 0;
        for slot in 0..self.header.slots {
            let state = self.read_u32(self.regions.entries.entry(slot))?;
            claimed += u32::from(state != layout::slot_state::FREE);
        }
        Ok(claimed)
    }
}

#[cfg(feature = "test-hooks")]
impl Segment {
    /// Call this hook before each reading of the file, during which a test's writer may proceed.
    pub fn set_before_reading(&self, hook: Option<crate::hooks::BeforeReading>) {
        self.hooks.set(hook);
    }

    /// Do not wait for writers, because they are stopped.
    pub fn set_impatient(&self) {
        self.hooks.set_impatient();
    }
}

fn io_error(path: &Path, source: io::Error) -> Error {
    Error::Io { path: path.to_path_buf(), wish: "read it", source }
}

/// Read up to `size` bytes; fewer only at the end of the file.
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
