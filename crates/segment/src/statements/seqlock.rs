// SPDX-License-Identifier: PostgreSQL
//! Copies of what others change, taken while it is at rest.
//!
//! Concurrency contract. Each thing begins with its seq, which is odd while the thing changes.
//! The system may copy the bytes of one reading in any order, so the seq in a copy tells
//! nothing of the rest of it. One thing is copied between two readings of its seq that are
//! equal and even. Many that lie together are copied twice, one copy after the other: where
//! both are the same, with an even seq, nothing changed between the two, and what they say is
//! what was there then; what they hold only grows, so it has not changed and changed back.

use crate::error::Error;
use crate::layout::u64_at;
use crate::segment::Segment;
use std::cell::Cell;
use std::sync::atomic::{fence, Ordering};
use std::time::Duration;

/// How often one thing is read again at once while its writer changes it, ...
const YIELDS: u32 = 20;
/// ... how often after a sleep, since its writer may wait for a processor, ...
const SLEEPS: u32 = 1000;
const SLEEP: Duration = Duration::from_micros(50);
/// ... and all things of a reading together, so that stopped writers cannot stop us.
const ALL_SLEEPS: u32 = 5000;

/// What it took to come by a consistent reading.
#[derive(Debug)]
pub(crate) struct Tries {
    /// That are left.
    sleeps: Cell<u32>,
    torn: Cell<u32>,
}

impl Tries {
    /// Nobody writes what is of another boot, so nothing comes to rest by waiting.
    pub fn new(written: bool) -> Tries {
        Tries { sleeps: Cell::new(if written { ALL_SLEEPS } else { 0 }), torn: Cell::new(0) }
    }

    /// Things that were taken as they were.
    pub fn torn(&self) -> u32 {
        self.torn.get()
    }

    /// Wait before another try; false: it has been enough.
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

/// Two copies of the same things, one taken after the other.
#[derive(Debug, Default)]
pub(crate) struct TwoCopies {
    first: Vec<u8>,
    second: Vec<u8>,
}

impl TwoCopies {
    /// Each thing of `size` bytes, and whether it was at rest.
    pub fn each(&self, size: usize) -> impl Iterator<Item = (&[u8], bool)> {
        self.first
            .chunks_exact(size)
            .zip(self.second.chunks_exact(size))
            .map(|(first, second)| (first, u64_at(first, 0).is_multiple_of(2) && first == second))
    }
}

impl Segment {
    /// Copy `count` things of `size` bytes from `at` on twice. Where none is `used` there is
    /// nothing to be seen in either copy. What their seqs guard elsewhere is copied in between.
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

    /// Copy what begins with its seq at `at` while it does not change. False: it did not come
    /// to rest, and is copied as it is.
    pub(crate) fn read_under_seq(
        &self,
        at: u64,
        bytes: &mut [u8],
        tries: &Tries,
    ) -> Result<bool, Error> {
        self.read_under_seq_with(at, bytes, tries, |_| Ok(()))
    }

    /// The same of what its seq guards elsewhere, too, which `and` copies.
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
