// SPDX-License-Identifier: PostgreSQL
//! Consistent copies of objects that other processes change.
//!
//! Concurrency contract. Each object starts with its seq, which is odd while the object changes. The
//! system may copy the bytes of one reading in any order, so the seq in a copy proves nothing about the
//! rest of the copy. A single object is copied between two equal and even readings of its seq. Adjacent
//! objects are copied twice, one copy after the other: if both copies of an object are equal and have an
//! even seq, the object did not change between them. Counts only grow, so it cannot have changed back.

use crate::error::Error;
use crate::layout::u64_at;
use crate::segment::Segment;
use std::cell::Cell;
use std::sync::atomic::{fence, Ordering};
use std::time::Duration;

/// Maximum number of immediate retries while a writer changes an object.
const YIELDS: u32 = 20;
/// Maximum number of retries after a sleep, because the writer may be waiting for a CPU.
const SLEEPS: u32 = 1000;
const SLEEP: Duration = Duration::from_micros(50);
/// Maximum number of sleeps in a whole reading, so that stopped writers cannot block the reader.
const ALL_SLEEPS: u32 = 5000;

/// The retries of a reading.
#[derive(Debug)]
pub(crate) struct Tries {
    /// Remaining sleeps.
    sleeps: Cell<u32>,
    torn: Cell<u32>,
}

impl Tries {
    /// The retries for a reading of this segment. Waiting helps only if the segment changes: a segment of another boot
    /// has no writers, and an image does not change.
    pub fn new(segment: &Segment) -> Tries {
        let sleeps = if segment.changes() { segment.hooks.tries(ALL_SLEEPS) } else { 0 };
        Tries { sleeps: Cell::new(sleeps), torn: Cell::new(0) }
    }

    /// Number of objects that were copied during a change.
    pub fn torn(&self) -> u32 {
        self.torn.get()
    }

    /// Wait before another attempt; false: the limit is reached.
    pub fn wait(&self, attempt: u32) -> bool {
        let left = self.sleeps.get();
        if left == 0 || attempt >= YIELDS + SLEEPS {
            self.torn.set(self.torn.get().saturating_add(1));
            return false;
        }
        if attempt < YIELDS {
            std::thread::yield_now();
            return true;
        }
        self.sleeps.set(left - 1);
        std::thread::sleep(SLEEP);
        true
    }
}

/// Two copies of the same objects, one made after the other.
#[derive(Debug, Default)]
pub(crate) struct TwoCopies {
    first: Vec<u8>,
    second: Vec<u8>,
}

impl TwoCopies {
    /// Each object of `size` bytes, and whether its copy is consistent.
    pub fn each(&self, size: usize) -> impl Iterator<Item = (&[u8], bool)> {
        self.first
            .chunks_exact(size)
            .zip(self.second.chunks_exact(size))
            .map(|(first, second)| (first, u64_at(first, 0).is_multiple_of(2) && first == second))
    }
}

impl Segment {
    /// Copy `count` objects of `size` bytes, from `at` on, twice, unless none is `used`. `between` copies
    /// other data that their seqs protect.
    pub(crate) fn read_twice(
        &self,
        at: u64,
        count: usize,
        size: usize,
        used: impl Fn(&[u8]) -> bool,
        copies: &mut TwoCopies,
        between: impl FnOnce(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let TwoCopies { first, second } = copies;
        first.resize(count * size, 0);
        second.clear();
        self.read(at, first)?;
        if first.chunks_exact(size).any(used) {
            fence(Ordering::Acquire);
            between(first)?;
            fence(Ordering::Acquire);
            second.resize(count * size, 0);
            self.read(at, second)?;
        }
        Ok(())
    }

    /// Copy the object at `at` while it does not change. False: it kept changing, and the copy may be
    /// inconsistent.
    pub(crate) fn read_under_seq(
        &self,
        at: u64,
        bytes: &mut [u8],
        tries: &Tries,
    ) -> Result<bool, Error> {
        self.read_under_seq_with(at, bytes, tries, |_| Ok(()))
    }

    /// The same; `and` copies other data that its seq protects.
    pub(super) fn read_under_seq_with(
        &self,
        at: u64,
        bytes: &mut [u8],
        tries: &Tries,
        mut and: impl FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<bool, Error> {
        for attempt in 0.. {
            let before = self.read_u64(at)?;
            fence(Ordering::Acquire);
            self.read(at, bytes)?;
            fence(Ordering::Acquire);
            and(bytes)?;
            fence(Ordering::Acquire);
            if before % 2 == 0 && before == self.read_u64(at)? {
                return Ok(true);
            }
            if !tries.wait(attempt) {
                break;
            }
        }
        Ok(false)
    }
}
