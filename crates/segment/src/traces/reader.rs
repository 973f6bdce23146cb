// SPDX-License-Identifier: PostgreSQL
//! Follows one ring: returns the records since the last call, and how many were overwritten before they were read.
//!
//! Concurrency contract. The writer clears a record's number, writes the record, stores its number, and then the head.
//! The reader copies records up to the head, reads the head again, and ignores records that may have been overwritten
//! meanwhile. The number of a record contains its generation and position; a record with a different number counts as
//! lost.

use super::{generation_of, TraceRecord, TraceState};
use crate::error::Error;
use crate::layout::{trace, trace_record, u32_at, u64_at, TRACE_RECORDS};
use crate::segment::Segment;
use std::sync::atomic::{fence, Ordering};

/// Number of records to copy at a time.
const BATCH: u64 = 512;
/// The bits of a record's number that are its position; those above are the generation (libtally/include/tally_trace.h).
const POSITION_BITS: u32 = 40;

/// The process that writes to a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traced {
    /// The process.
    pub pid: i32,
    /// The leader of a parallel worker.
    pub leader_pid: Option<i32>,
    /// Its slot.
    pub slot: u32,
    /// Generation of the slot, which identifies its owner.
    pub slot_generation: u32,
    /// When the trace began, tick.
    pub begun: u64,
}

/// The place where a traced process stores the running node of its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceNode {
    ring: u32,
    generation: u32,
}

impl TraceNode {
    /// The plan_node_id of the node running at this moment; `Some(None)`: no node of a plan; `None`: no process writes
    /// to the ring. This is one read of the file, which may be as old as the duration of the call.
    pub fn read(&self, segment: &Segment) -> Result<Option<Option<u16>>, Error> {
        let mut bytes = [0; trace::NODE + 4];
        segment.read(ring_at(segment, self.ring)?, &mut bytes)?;
        let claim = u32_at(&bytes, trace::CLAIM);
        let runs = generation_of(claim) == self.generation
            && TraceState::from_claim(claim) == TraceState::Running;
        let number = u32_at(&bytes, trace::NODE);
        Ok(runs.then(|| number.checked_sub(1).and_then(|node| u16::try_from(node).ok())))
    }
}

/// The offset of a ring in the file.
fn ring_at(segment: &Segment, ring: u32) -> Result<u64, Error> {
    let region = segment.regions.traces.filter(|region| ring < region.count);
    let missing = || Error::Damaged {
        path: segment.path().to_path_buf(),
        what: "it has no such trace ring".into(),
    };
    Ok(region.ok_or_else(missing)?.entry(ring))
}

/// Follows a ring.
#[derive(Debug)]
pub struct TraceReader {
    ring: u32,
    generation: u32,
    position: u64,
}

impl TraceReader {
    /// A reader for a ring that was armed with this generation.
    pub(super) fn new(ring: u32, generation: u32) -> TraceReader {
        TraceReader { ring, generation, position: 0 }
    }

    /// The number of the ring.
    pub fn ring(&self) -> u32 {
        self.ring
    }

    /// The place where its writer stores the running node.
    pub fn node(&self) -> TraceNode {
        TraceNode { ring: self.ring, generation: self.generation }
    }

    fn at(&self, segment: &Segment) -> Result<u64, Error> {
        ring_at(segment, self.ring)
    }

    /// The state of the ring; `Free` if it has a different generation by now.
    pub fn state(&self, segment: &Segment) -> Result<TraceState, Error> {
        let claim = segment.read_u32(self.at(segment)? + trace::CLAIM as u64)?;
        let ours = generation_of(claim) == self.generation;
        Ok(if ours { TraceState::from_claim(claim) } else { TraceState::Free })
    }

    /// The process that writes, or has written, to the ring; `None`: no process has taken it yet, or it belongs to
    /// another reader by now.
    pub fn traced(&self, segment: &Segment) -> Result<Option<Traced>, Error> {
        if !matches!(self.state(segment)?, TraceState::Running | TraceState::Ended) {
            return Ok(None);
        }
        let at = self.at(segment)?;
        // The writer fills these fields in before its first record.
        if segment.read_u64(at + trace::HEAD as u64)? == 0 {
            return Ok(None);
        }
        let word = |field: usize| segment.read_u32(at + field as u64);
        let leader_pid = word(trace::LEADER_PID)? as i32;
        Ok(Some(Traced {
            pid: word(trace::OWNER_PID)? as i32,
            leader_pid: (leader_pid != 0).then_some(leader_pid),
            slot: word(trace::SLOT)?,
            slot_generation: word(trace::SLOT_GENERATION)?,
            begun: segment.read_u64(at + trace::BEGUN as u64)?,
        }))
    }

    /// Number of records written so far. Bits beyond those of a position mean nothing.
    fn head(&self, segment: &Segment) -> Result<u64, Error> {
        let head = segment.read_u64(self.at(segment)? + trace::HEAD as u64)?;
        Ok(head & ((1 << POSITION_BITS) - 1))
    }

    /// Number of records written so far, and of executions that were not recorded because another process was writing.
    pub(super) fn counts(&self, segment: &Segment) -> Result<(u64, u64), Error> {
        let missed = segment.read_u64(self.at(segment)? + trace::MISSED as u64)?;
        Ok((self.head(segment)?, missed))
    }

    /// Pass the records since the last call to `see`, each with the number of records lost before it. Returns the
    /// number of records lost after the last one.
    pub fn poll(
        &mut self,
        segment: &Segment,
        mut see: impl FnMut(u64, TraceRecord),
    ) -> Result<u64, Error> {
        let at = self.at(segment)?;
        let mut lost = 0;
        let mut bytes = Vec::new();
        let mut head = self.head(segment)?;
        // This ends whatever a damaged ring contains: each turn advances, and the number of turns is limited.
        let mut turns = 2 * TRACE_RECORDS;
        while self.position < head && turns > 0 {
            turns -= 1;
            let oldest = head.saturating_sub(TRACE_RECORDS);
            if self.position < oldest {
                lost += oldest - self.position;
                self.position = oldest;
            }
            let first = self.position % TRACE_RECORDS;
            let count = (head - self.position).min(BATCH).min(TRACE_RECORDS - first);
            bytes.resize(count as usize * trace_record::SIZE, 0);
            fence(Ordering::Acquire);
            let records = at + trace::SIZE as u64;
            segment.read(records + first * trace_record::SIZE as u64, &mut bytes)?;
            fence(Ordering::Acquire);
            head = self.head(segment)?;
            // The record after the head may be changing.
            let whole_from = (head + 1).saturating_sub(TRACE_RECORDS);
            for record in bytes.chunks_exact(trace_record::SIZE) {
                let number = u64::from(self.generation) << POSITION_BITS | (self.position + 1);
                if self.position < whole_from || u64_at(record, trace_record::NUMBER) != number {
                    lost += 1;
                } else {
                    see(std::mem::take(&mut lost), TraceRecord::decode(record));
                }
                self.position += 1;
            }
        }
        Ok(lost)
    }
}
