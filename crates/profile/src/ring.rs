// SPDX-License-Identifier: PostgreSQL
//! The ring of an event's samples, shared with the kernel.
//!
//! The kernel writes at the head, and this reader moves the tail. A full ring loses samples, which the kernel counts in
//! the next record.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::event::Event;
use crate::registers::{Registers, SAMPLED};

/// Pages of samples, a power of two. With 4 kB pages, these and the page of the head are the 516 kB per CPU that a user
/// may lock without privileges (kernel.perf_event_mlock_kb).
const PAGES_OF_STACKS: usize = 128;
/// Pages of samples without copies of stacks.
const PAGES: usize = 64;

/// Offsets in the first page (`struct perf_event_mmap_page`).
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

const RECORD_LOST: u32 = 2;
const RECORD_THROTTLE: u32 = 5;
const RECORD_SAMPLE: u32 = 9;
const HEADER: usize = 8;

/// Markers in a stack: where the user-space frames begin. Values above the lowest marker are not addresses.
const CONTEXT_USER: u64 = -512i64 as u64;
const CONTEXT_MAX: u64 = -4095i64 as u64;

/// A record of the ring.
#[derive(Debug, PartialEq, Eq)]
pub enum Record<'r> {
    /// A sample.
    Sample(RingSample<'r>),
    /// This many samples were lost for lack of space.
    Lost(u64),
    /// The kernel throttled the clock.
    Throttled,
}

/// A sample.
#[derive(Debug, PartialEq, Eq)]
pub struct RingSample<'r> {
    /// The process.
    pub pid: i32,
    /// Its thread.
    pub tid: i32,
    /// When, CLOCK_MONOTONIC in ns.
    pub time: u64,
    /// Addresses in the kernel, innermost first.
    pub kernel: &'r [u64],
    /// User-space addresses from frame pointers, innermost first.
    pub user: &'r [u64],
    /// Its user-space registers, if samples have them.
    pub registers: Option<Registers>,
    /// The top of the process's stack.
    pub stack: &'r [u8],
}

/// The ring of one event.
#[derive(Debug)]
pub struct Ring {
    memory: NonNull<u8>,
    length: usize,
    page: usize,
    /// Buffer for a whole record, since a record may wrap around.
    record: Vec<u8>,
    chain: Vec<u64>,
}

// SAFETY: the mapping belongs to this value alone.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring of this event; `stacks`: its samples have copies of stacks.
    pub fn map(event: &Event, stacks: bool) -> io::Result<Ring> {
        // SAFETY: a query without memory.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let length = (if stacks { PAGES_OF_STACKS } else { PAGES } + 1) * page;
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

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.word(DATA_HEAD).load(Ordering::Acquire) == self.word(DATA_TAIL).load(Ordering::Relaxed)
    }

    /// Passes its records to `see`, oldest first.
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
        // Release: everything is copied before the kernel may write there again.
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

/// Decodes the body of a record; `None` if it is irrelevant or malformed.
fn decode<'c>(kind: u32, body: &'c [u8], chain: &'c mut Vec<u64>) -> Option<Record<'c>> {
    let word = |at: usize| {
        body.get(8 * at..8 * at + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_ne_bytes)
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
            // If the kernel could not walk the stack at all, the instruction pointer is still there.
            if chain.is_empty() {
                chain.push(address);
                user_at = (address < 1 << 63).then_some(0);
            }
            let (kernel, user) = chain.split_at(user_at.unwrap_or(chain.len()));
            let bytes = ids.to_ne_bytes();
            let id = |at: usize| {
                i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
            };
            let (registers, stack) =
                end_of_stack(&body[8 * (4 + length as usize)..]).unwrap_or_default();
            Some(Record::Sample(RingSample {
                pid: id(0),
                tid: id(4),
                time,
                kernel,
                user,
                registers,
                stack,
            }))
        }
        _ => None,
    }
}

/// Registers and the top of the stack, which follow a sample's addresses; `None` if they are missing.
fn end_of_stack(after: &[u8]) -> Option<(Option<Registers>, &[u8])> {
    let word = |at: usize| {
        after
            .get(8 * at..8 * at + 8)
            .and_then(|bytes| bytes.try_into().ok())
            .map(u64::from_ne_bytes)
    };
    // No ABI: a kernel thread, which has no user-space registers.
    if word(0)? == 0 {
        return None;
    }
    let count = SAMPLED.count_ones() as usize;
    let values: Vec<u64> = (1..=count).map_while(word).collect();
    let size = usize::try_from(word(1 + count)?).ok()?;
    let begin = 8 * (2 + count);
    let copied = after.get(begin..begin.checked_add(size)?)?;
    // The used size of the copy.
    let used = match size {
        0 => 0,
        _ => usize::try_from(word((begin + size) / 8)?).ok()?,
    };
    Some((Registers::from_values(&values), copied.get(..used)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTEXT_KERNEL: u64 = -128i64 as u64;

    fn body(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
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
        let expected = RingSample {
            pid: 7,
            tid: 8,
            time: 1_000,
            kernel: &[9, 10],
            user: &[11],
            registers: None,
            stack: &[],
        };
        let bytes = body(&words);
        let found = decode(RECORD_SAMPLE, &bytes, &mut chain);
        assert_eq!(found, Some(Record::Sample(expected)));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_sample_has_registers_and_the_used_part_of_the_stack_s_copy() {
        let head = [9, ids(7, 8), 1_000, 2, CONTEXT_USER, 11];
        let stack = [2, 1, 2, 3, 24, 0xa, 0xb, 0xc, 16];
        let mut chain = Vec::new();
        let bytes = body(&[&head[..], &stack[..]].concat());
        let Some(Record::Sample(found)) = decode(RECORD_SAMPLE, &bytes, &mut chain) else {
            panic!("no sample")
        };
        assert_eq!(found.registers, Some(Registers { fp: 1, sp: 2, ip: 3, lr: 0 }));
        assert_eq!((found.user, found.stack), (&[11][..], &body(&[0xa, 0xb])[..]));
        // Whatever sizes the record claims, nothing beyond it is read.
        for at in 6..15 {
            for value in [u64::MAX, 1 << 40, 25, 7] {
                let mut words = [&head[..], &stack[..]].concat();
                words[at] = value;
                decode(RECORD_SAMPLE, &body(&words), &mut chain);
            }
            decode(RECORD_SAMPLE, &bytes[..8 * at], &mut chain);
        }
    }

    #[test]
    fn a_record_that_ends_too_early_is_ignored() {
        let mut chain = Vec::new();
        assert_eq!(decode(RECORD_SAMPLE, &body(&[9, 1, 1, 3, CONTEXT_KERNEL]), &mut chain), None);
        assert_eq!(decode(RECORD_SAMPLE, &body(&[9, 1]), &mut chain), None);
        assert_eq!(decode(RECORD_LOST, &[], &mut chain), None);
    }

    #[test]
    fn a_record_that_wraps_around_is_read_in_one_piece() {
        let page = 4096;
        // SAFETY: a new private mapping at an address of the kernel's choice.
        let memory = unsafe {
            let (rights, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            libc::mmap(std::ptr::null_mut(), 2 * page, rights, flags, -1, 0)
        };
        let memory = NonNull::new(memory.cast::<u8>()).unwrap();
        let mut ring =
            Ring { memory, length: 2 * page, page, record: Vec::new(), chain: Vec::new() };
        assert!(ring.is_empty());
        // Kind, flags and size, then two words; the second record has an impossible size.
        let mut lost = [&RECORD_LOST.to_ne_bytes()[..], &[0, 0, 24, 0]].concat();
        lost.extend(body(&[1, 77]));
        lost.extend([0; 8]);
        let tail = 3 * page - 16;
        for (at, byte) in lost.iter().enumerate() {
            let at = page + (tail + at) % page;
            // SAFETY: within the second page.
            unsafe { memory.as_ptr().add(at).write(*byte) };
        }
        ring.word(DATA_TAIL).store(tail as u64, Ordering::Relaxed);
        ring.word(DATA_HEAD).store((tail + 32) as u64, Ordering::Relaxed);
        let mut found = 0;
        ring.drain(|record| found += u64::from(record == Record::Lost(77)));
        assert_eq!((found, ring.is_empty()), (1, true));
    }

    #[test]
    fn marks_are_no_frames_and_without_frames_there_is_the_instruction() {
        let mut chain = Vec::new();
        let mut frames = |words: &[u64]| {
            let bytes = body(words);
            match decode(RECORD_SAMPLE, &bytes, &mut chain) {
                Some(Record::Sample(sample)) => (sample.kernel.to_vec(), sample.user.to_vec()),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(frames(&[9, 0, 1, 3, CONTEXT_MAX, CONTEXT_USER, 4]), (vec![], vec![4]));
        assert_eq!(frames(&[9, 0, 1, 0]), (vec![], vec![9]));
        assert_eq!(frames(&[1 << 63, 0, 1, 0]), (vec![1 << 63], vec![]));
    }
}
