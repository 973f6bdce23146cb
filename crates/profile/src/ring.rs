// SPDX-License-Identifier: PostgreSQL
//! The ring that an event's samples come in, shared with the kernel.
//!
//! The kernel writes at the head, this reader moves the tail. A full ring loses samples, which the kernel
//! counts in the next record.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::event::Event;

/// Pages of samples, a power of two. With the page of the head, they stay below the 516 kB for each CPU
/// that a user may lock without privilege (kernel.perf_event_mlock_kb).
const PAGES: usize = 64;

/// Offsets in the first page (`struct perf_event_mmap_page`).
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

const RECORD_LOST: u32 = 2;
const RECORD_THROTTLE: u32 = 5;
const RECORD_SAMPLE: u32 = 9;
const HEADER: usize = 8;

/// Marks in a stack: where the process's frames begin; above the lowest one is no address.
const CONTEXT_USER: u64 = -512i64 as u64;
const CONTEXT_MAX: u64 = -4095i64 as u64;

/// What the ring had.
#[derive(Debug, PartialEq, Eq)]
pub enum Record<'r> {
    /// A sample.
    Sample(Sample<'r>),
    /// That many samples had no space.
    Lost(u64),
    /// The kernel has slowed the clock down.
    Throttled,
}

/// A sample.
#[derive(Debug, PartialEq, Eq)]
pub struct Sample<'r> {
    /// The process.
    pub pid: i32,
    /// Its thread.
    pub tid: i32,
    /// When, CLOCK_MONOTONIC in ns.
    pub time: u64,
    /// Addresses in the kernel, innermost first.
    pub kernel: &'r [u64],
    /// Addresses in the process, innermost first.
    pub user: &'r [u64],
}

/// The ring of one event.
#[derive(Debug)]
pub struct Ring {
    memory: NonNull<u8>,
    length: usize,
    page: usize,
    /// A record in one piece, since one may wrap around.
    record: Vec<u8>,
    chain: Vec<u64>,
}

// SAFETY: the mapping belongs to this value alone.
unsafe impl Send for Ring {}

impl Ring {
    /// Map the ring of this event.
    pub fn of(event: &Event) -> io::Result<Ring> {
        // SAFETY: a query without memory.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let length = (PAGES + 1) * page;
        // SAFETY: a new shared mapping of the event, at an address of the kernel's choice.
        let memory = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.raw(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Ring { memory, length, page, record: Vec::new(), chain: Vec::new() })
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: within the first page, aligned to 8, alive as long as self; the kernel changes it too.
        unsafe { AtomicU64::from_ptr(self.memory.as_ptr().add(offset).cast()) }
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.word(DATA_HEAD).load(Ordering::Acquire) == self.word(DATA_TAIL).load(Ordering::Relaxed)
    }

    /// Pass what is in it to `see`, oldest first.
    pub fn drain(&mut self, mut see: impl FnMut(Record<'_>)) {
        // Acquire pairs with the kernel's barrier before it moves the head.
        let head = self.word(DATA_HEAD).load(Ordering::Acquire);
        let mut tail = self.word(DATA_TAIL).load(Ordering::Relaxed);
        while tail < head {
            let mut header = [0u8; HEADER];
            self.copy(tail, &mut header);
            let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
            let size = usize::from(u16::from_ne_bytes([header[6], header[7]]));
            if size < HEADER || size as u64 > head - tail {
                tail = head;
                break;
            }
            let mut record = std::mem::take(&mut self.record);
            record.resize(size, 0);
            self.copy(tail, &mut record);
            if let Some(found) = decode(kind, &record[HEADER..], &mut self.chain) {
                see(found);
            }
            self.record = record;
            tail += size as u64;
        }
        // Release: everything has been copied before the kernel may write there again.
        self.word(DATA_TAIL).store(tail, Ordering::Release);
    }

    fn copy(&self, from: u64, to: &mut [u8]) {
        let size = self.length - self.page;
        let at = from as usize % size;
        let first = to.len().min(size - at);
        // SAFETY: both pieces lie in the data pages; the kernel does not write between tail and head.
        unsafe {
            let data = self.memory.as_ptr().add(self.page);
            std::ptr::copy_nonoverlapping(data.add(at), to.as_mut_ptr(), first);
            std::ptr::copy_nonoverlapping(data, to.as_mut_ptr().add(first), to.len() - first);
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `of`; no reference to it is left.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.length) };
    }
}

/// The body of a record; `None`: of no interest, or not as expected.
fn decode<'c>(kind: u32, body: &[u8], chain: &'c mut Vec<u64>) -> Option<Record<'c>> {
    let word = |at: usize| {
        body.get(8 * at..8 * at + 8).and_then(|it| it.try_into().ok()).map(u64::from_ne_bytes)
    };
    match kind {
        RECORD_LOST => Some(Record::Lost(word(1)?)),
        RECORD_THROTTLE => Some(Record::Throttled),
        RECORD_SAMPLE => {
            let (address, ids, time, length) = (word(0)?, word(1)?, word(2)?, word(3)?);
            chain.clear();
            let mut user_at = None;
            for at in 0..usize::try_from(length).ok()? {
                match word(4 + at)? {
                    CONTEXT_USER => user_at = Some(chain.len()),
                    mark if mark >= CONTEXT_MAX => {}
                    frame => chain.push(frame),
                }
            }
            // Where the kernel could not walk the stack at all, there is still the instruction.
            if chain.is_empty() {
                chain.push(address);
                user_at = (address < 1 << 63).then_some(0);
            }
            let (kernel, user) = chain.split_at(user_at.unwrap_or(chain.len()));
            let bytes = ids.to_ne_bytes();
            let id = |at: usize| {
                i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
            };
            Some(Record::Sample(Sample { pid: id(0), tid: id(4), time, kernel, user }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT_KERNEL: u64 = -128i64 as u64;

    fn body(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|it| it.to_ne_bytes()).collect()
    }

    fn ids(pid: u32, tid: u32) -> u64 {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&pid.to_ne_bytes());
        bytes[4..].copy_from_slice(&tid.to_ne_bytes());
        u64::from_ne_bytes(bytes)
    }

    #[test]
    fn a_sample_has_the_frames_of_kernel_and_process() {
        let words = [9, ids(7, 8), 1_000, 5, CONTEXT_KERNEL, 9, 10, CONTEXT_USER, 11];
        let mut chain = Vec::new();
        let expected = Sample { pid: 7, tid: 8, time: 1_000, kernel: &[9, 10], user: &[11] };
        let found = decode(RECORD_SAMPLE, &body(&words), &mut chain);
        assert_eq!(found, Some(Record::Sample(expected)));
    }

    #[test]
    fn a_record_that_ends_too_early_is_ignored() {
        let mut chain = Vec::new();
        assert_eq!(decode(RECORD_SAMPLE, &body(&[9, 1, 1, 3, CONTEXT_KERNEL]), &mut chain), None);
        assert_eq!(decode(RECORD_SAMPLE, &body(&[9, 1]), &mut chain), None);
        assert_eq!(decode(RECORD_LOST, &[], &mut chain), None);
    }
}
