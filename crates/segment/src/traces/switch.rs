// SPDX-License-Identifier: PostgreSQL
//! Requests traces from processes: arms rings, renews requests and withdraws them.
//!
//! Concurrency contract. Processes that arm rings take turns by a lock on the file. A ring whose lease has expired
//! belongs to no one; arming it assigns a new generation, which invalidates anything that its last writer or reader may
//! still do.

use super::{claim_of, generation_of, TraceReader, TraceState};
use crate::clock::Clock;
use crate::error::Error;
use crate::layout::{
    header, trace, trace_record, TRACE_NODES, TRACE_PARAMETERS, TRACE_RECORDS, TRACE_SLOW,
    TRACE_WORKERS,
};
use crate::segment::Segment;
use crate::shared_page::{self, SharedPage, PAGE};
use rustix::fs::{FallocateFlags, FlockOperation};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A request that is not renewed ends after this time, s.
const LEASE: f64 = 5.0;
/// In place of a PID: the ring is for no single process.
const NO_PROCESS: i32 = -1;
/// Maximum time to wait for other processes that arm rings.
const TURN: Duration = Duration::from_secs(2);
const NAP: Duration = Duration::from_millis(10);
/// Space of the file system that is left to others: a quarter of it, at most this (libtally/src/memory.c).
const HEADROOM: u64 = 256 << 20;
/// The purpose of opening the segment, for errors.
const WISH: &str = "trace its processes";

/// The processes to trace. Empty texts match all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceRequest {
    /// The process with this PID; `None`: sessions that match the texts below.
    pub pid: Option<i32>,
    /// Whether to trace the parallel workers that the process leads instead of the process itself.
    pub workers: bool,
    /// Whether to record plan nodes.
    pub nodes: bool,
    /// Whether to record the parameters of executions, if the server's settings allow it.
    pub parameters: bool,
    /// Whether to record, instead of a process, the slow executions of all sessions with their parameters.
    pub slow: bool,
    /// Sessions with this application_name.
    pub application: String,
    /// Sessions of this user.
    pub user: String,
    /// Sessions in this database.
    pub database: String,
}

/// A ring that this process has armed.
#[derive(Debug)]
struct Armed {
    ring: u32,
    generation: u32,
    page: SharedPage,
    request: TraceRequest,
}

impl Armed {
    /// Whether no other reader has armed it since, which it may after the lease.
    fn is_ours(&self) -> bool {
        generation_of(self.page.u32(trace::CLAIM).load(Ordering::Acquire)) == self.generation
    }
}

/// The rings that this process has armed. Dropping this value withdraws them; if this process is killed, the traced
/// processes stop by themselves.
///
/// Requires permission to write the segment, so only the server's user and root can do this.
#[derive(Debug)]
pub struct TraceSwitch {
    path: PathBuf,
    file: File,
    region: crate::layout::Region,
    header: SharedPage,
    clock: Clock,
    armed: Vec<Armed>,
}

impl TraceSwitch {
    /// A switch for the traces of this segment.
    pub fn open(segment: &Segment) -> Result<TraceSwitch, Error> {
        let path = segment.path();
        let (file, checked) = shared_page::open(segment.segment_path(), WISH)?;
        let region = checked.regions.traces.ok_or_else(|| Error::NoTraces { path: path.into() })?;
        if !region.offset.is_multiple_of(PAGE as u64) || !region.stride.is_multiple_of(PAGE as u32)
        {
            return Err(Error::Damaged {
                path: path.into(),
                what: "its trace rings are not page-aligned".into(),
            });
        }
        debug_assert_eq!(header::SIZE, PAGE);
        let io = |source| Error::Io { path: path.to_path_buf(), wish: WISH, source };
        let header = SharedPage::map(&file, 0).map_err(io)?;
        let clock = *checked.clock();
        Ok(TraceSwitch { path: path.into(), file, region, header, clock, armed: Vec::new() })
    }

    fn io(&self, source: io::Error) -> Error {
        Error::Io { path: self.path.clone(), wish: WISH, source }
    }

    /// Number of rings in the segment.
    pub fn rings(&self) -> u32 {
        self.region.count
    }

    /// Arm up to `most` rings for a request, and notify all processes. Returns a reader for each ring; fewer, or none,
    /// if the other rings are in use.
    pub fn arm(&mut self, request: &TraceRequest, most: u32) -> Result<Vec<TraceReader>, Error> {
        let _turn = Turn::take(&self.file).map_err(|error| self.io(error))?;
        let mut readers = Vec::new();
        for ring in 0..self.region.count {
            if readers.len() as u32 >= most {
                break;
            }
            if let Some(armed) = self.arm_ring(ring, request)? {
                readers.push(TraceReader::new(ring, armed.generation));
                self.armed.push(armed);
            }
        }
        // At the end of a slow execution, sessions look for a ring without being told.
        if !readers.is_empty() && !request.slow {
            self.announce();
        }
        Ok(readers)
    }

    /// Arm a ring; `None`: another reader uses it.
    fn arm_ring(&self, ring: u32, request: &TraceRequest) -> Result<Option<Armed>, Error> {
        if self.armed.iter().any(|armed| armed.ring == ring) {
            return Ok(None);
        }
        let at = self.region.entry(ring);
        let armed_bit = 1u64 << ring;
        let bits = self.header.u64(header::TRACES_ARMED);
        // A ring that was never armed has no memory, which must be reserved before it is touched.
        self.reserve(at, PAGE as u64)?;
        let page = SharedPage::map(&self.file, at).map_err(|e| self.io(e))?;
        let claim = page.u32(trace::CLAIM).load(Ordering::Acquire);
        let free = TraceState::from_claim(claim) == TraceState::Free
            || page.u64(trace::UNTIL).load(Ordering::Acquire) < self.header.now(&self.clock);
        if !free {
            return Ok(None);
        }
        self.reserve(at + PAGE as u64, TRACE_RECORDS * trace_record::SIZE as u64)?;
        // The generation has 24 bits and is never 0.
        let generation = generation_of(claim) % 0xFF_FFFF + 1;
        page.u32(trace::CLAIM).store(claim_of(generation, TraceState::Free), Ordering::Release);
        let flags = [
            (request.workers, TRACE_WORKERS),
            (request.nodes, TRACE_NODES),
            (request.parameters, TRACE_PARAMETERS),
            (request.slow, TRACE_SLOW),
        ];
        let flags: u32 = flags.iter().filter(|(asked, _)| *asked).map(|(_, flag)| flag).sum();
        page.u32(trace::FLAGS).store(flags, Ordering::Relaxed);
        let pid = if request.slow { NO_PROCESS } else { request.pid.unwrap_or(0) };
        page.u32(trace::PID).store(pid as u32, Ordering::Relaxed);
        page.u32(trace::READER_PID).store(std::process::id(), Ordering::Relaxed);
        page.u64(trace::READER_BOOT_NS).store(crate::clock::boottime_ns(), Ordering::Relaxed);
        page.set_text(trace::APPLICATION, &request.application);
        page.set_text(trace::USER, &request.user);
        page.set_text(trace::DATABASE, &request.database);
        page.u32(trace::OWNER_PID).store(0, Ordering::Relaxed);
        page.u64(trace::HEAD).store(0, Ordering::Relaxed);
        page.u64(trace::MISSED).store(0, Ordering::Relaxed);
        page.u64(trace::UNTIL).store(self.lease(), Ordering::Relaxed);
        page.u32(trace::CLAIM).store(claim_of(generation, TraceState::Armed), Ordering::Release);
        bits.fetch_or(armed_bit, Ordering::AcqRel);
        Ok(Some(Armed { ring, generation, page, request: request.clone() }))
    }

    fn lease(&self) -> u64 {
        self.header.now(&self.clock).saturating_add(self.clock.ticks(LEASE))
    }

    /// Reserve memory, if enough is left to others.
    fn reserve(&self, offset: u64, length: u64) -> Result<(), Error> {
        let full = || self.io(io::ErrorKind::StorageFull.into());
        let fs = rustix::fs::fstatvfs(&self.file).map_err(|e| self.io(e.into()))?;
        let headroom = (fs.f_blocks * fs.f_frsize / 4).min(HEADROOM);
        if fs.f_blocks != 0 && fs.f_bavail * fs.f_frsize < headroom + length {
            return Err(full());
        }
        loop {
            match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), offset, length) {
                Ok(()) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(self.io(e.into())),
            }
        }
    }

    /// Change the level word, so that all processes look for requests at their next probe.
    fn announce(&self) {
        let word = self.header.u32(header::LEVEL_WORD);
        let next = |word: u32| (word & !0xF0) | ((word >> 4 & 0xF) % 15 + 1) << 4;
        let _ = word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |word| Some(next(word)));
    }

    /// Renew the requests; call this at least once a second. Requests that no process has taken yet are announced
    /// again.
    pub fn renew(&self) {
        let until = self.lease();
        let mut waits = false;
        for armed in &self.armed {
            let claim = armed.page.u32(trace::CLAIM).load(Ordering::Acquire);
            if generation_of(claim) != armed.generation {
                continue;
            }
            armed.page.u64(trace::UNTIL).store(until, Ordering::Release);
            waits |= TraceState::from_claim(claim) == TraceState::Armed
                && armed.request.pid.is_some()
                && !armed.request.workers;
        }
        if waits {
            self.announce();
        }
    }

    /// Arm the ring again after its process has ended and everything has been read, so that another matching process
    /// may take it. Returns the new reader.
    pub fn again(&mut self, reader: &TraceReader) -> Result<Option<TraceReader>, Error> {
        let Some(i) = self.armed.iter().position(|armed| armed.ring == reader.ring()) else {
            return Ok(None);
        };
        let _turn = Turn::take(&self.file).map_err(|error| self.io(error))?;
        let armed = self.armed.swap_remove(i);
        self.withdraw(&armed);
        match self.arm_ring(armed.ring, &armed.request) {
            Ok(again) => {
                let reader =
                    again.as_ref().map(|armed| TraceReader::new(armed.ring, armed.generation));
                self.armed.extend(again);
                Ok(reader)
            }
            Err(error) => {
                // Its memory is released with the others'.
                self.armed.push(armed);
                Err(error)
            }
        }
    }

    fn withdraw(&self, armed: &Armed) {
        let word = armed.page.u32(trace::CLAIM);
        let _ = word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |claim| {
            (generation_of(claim) == armed.generation)
                .then_some(claim_of(armed.generation, TraceState::Free))
        });
    }

    /// Withdraw all requests; traced processes notice at their next record. Their records remain readable until the
    /// switch is dropped.
    pub fn stop(&self) {
        for armed in &self.armed {
            let word = armed.page.u32(trace::CLAIM);
            let _ = word.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |claim| {
                (generation_of(claim) == armed.generation)
                    .then_some(claim_of(armed.generation, TraceState::Ended))
            });
        }
        self.announce();
    }
}

impl Drop for TraceSwitch {
    fn drop(&mut self) {
        let _turn = Turn::take(&self.file);
        for armed in self.armed.iter().filter(|armed| armed.is_ours()) {
            self.withdraw(armed);
            self.header.u64(header::TRACES_ARMED).fetch_and(!(1 << armed.ring), Ordering::AcqRel);
            // Keep the page with the generation, and release the memory of the records.
            let _ = rustix::fs::fallocate(
                &self.file,
                FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
                self.region.entry(armed.ring) + PAGE as u64,
                TRACE_RECORDS * trace_record::SIZE as u64,
            );
        }
        self.announce();
        // The last request clears the trace bits of the level word.
        if self.header.u64(header::TRACES_ARMED).load(Ordering::Acquire) == 0 {
            self.header.u32(header::LEVEL_WORD).fetch_and(!0xF0, Ordering::AcqRel);
        }
    }
}

/// The lock on the file, held while rings are armed or released.
struct Turn<'f>(&'f File);

impl Turn<'_> {
    /// Take the lock; fails if another process holds it.
    fn take(file: &File) -> io::Result<Turn<'_>> {
        let began = Instant::now();
        loop {
            match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Turn(file)),
                Err(_) if began.elapsed() < TURN => std::thread::sleep(NAP),
                Err(_) => {
                    let why = "another process holds its lock";
                    return Err(io::Error::new(io::ErrorKind::TimedOut, why));
                }
            }
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let _ = rustix::fs::flock(self.0, FlockOperation::Unlock);
    }
}
