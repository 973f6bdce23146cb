// SPDX-License-Identifier: PostgreSQL
//! A segment's file, mapped for reading.
//!
//! Copying from a mapping takes a third of the time of `pread`, which a reader of many sessions notices. A page of a
//! mapping may be missing, because the file was truncated, or because its file system is full: then the reader gets
//! SIGBUS. Its handler maps zeros over the whole mapping and marks it as lost, as `libtally/src/guard.c` does for writers.
//! The reader discards what it has read since, and reads with `pread` from then on.
//!
//! Concurrency contract. Other processes write to the file at any time, so everything is loaded by relaxed atomic
//! operations; fences order them as the writers' stores are ordered. The handler is async-signal-safe: it only uses atomic
//! operations and system calls.

use rustix::mm::{MapFlags, ProtFlags};
use std::fs::File;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// What the handler must know of one mapping.
struct Guard {
    /// Its first address; 0: this guard is free.
    begin: AtomicUsize,
    /// Its length, bytes; 0: not guarded yet, or not any more.
    size: AtomicUsize,
    /// Whether a page was missing.
    lost: AtomicBool,
}

/// Maximum number of mappings. The segments beyond are read with `pread`.
const GUARDS: usize = 64;

static ALL_GUARDS: [Guard; GUARDS] = [const {
    Guard { begin: AtomicUsize::new(0), size: AtomicUsize::new(0), lost: AtomicBool::new(false) }
}; GUARDS];

/// The action of SIGBUS before the handler was installed.
static EARLIER: OnceLock<libc::sigaction> = OnceLock::new();

/// A file mapped for reading, from its beginning.
#[derive(Debug)]
pub(crate) struct MappedFile {
    at: NonNull<AtomicU64>,
    /// Its length, bytes.
    size: usize,
    guard: &'static Guard,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").field("lost", &self.lost).finish_non_exhaustive()
    }
}

// SAFETY: the mapping belongs to its owner until it is dropped, and is only accessed by atomic operations.
unsafe impl Send for MappedFile {}
// SAFETY: as above.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// Map the first `size` bytes of a file.
    pub fn map(file: &File, size: u64) -> io::Result<MappedFile> {
        let size = usize::try_from(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
        install_handler()?;
        // SAFETY: this is a new mapping, which does not replace anything.
        let at = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), size, ProtFlags::READ, MapFlags::SHARED, file, 0)
        }?;
        let begin = at as usize;
        let free = ALL_GUARDS.iter().find(|guard| {
            guard.begin.compare_exchange(0, begin, Ordering::Acquire, Ordering::Relaxed).is_ok()
        });
        match (free, NonNull::new(at.cast())) {
            (Some(guard), Some(at)) => {
                guard.lost.store(false, Ordering::Relaxed);
                // From here on, the handler knows the mapping.
                guard.size.store(size, Ordering::Release);
                Ok(MappedFile { at, size, guard })
            }
            _ => {
                // SAFETY: nothing refers to the mapping. Unmapping what is mapped does not fail.
                let _ = unsafe { rustix::mm::munmap(at, size) };
                Err(io::ErrorKind::OutOfMemory.into())
            }
        }
    }

    /// Whether a page was missing: what was read so far may be zeros.
    pub fn is_lost(&self) -> bool {
        self.guard.lost.load(Ordering::Acquire)
    }

    /// The `count` words from `offset` on; `None` beyond the end, or if they are not aligned.
    pub fn words(&self, offset: u64, count: usize) -> Option<&[AtomicU64]> {
        let offset = usize::try_from(offset).ok().filter(|offset| offset.is_multiple_of(8))?;
        let end = offset.checked_add(count.checked_mul(8)?)?;
        if end > self.size {
            return None;
        }
        // SAFETY: the words are aligned and within the mapping, which stays where it is as long as self lives: the handler
        // replaces its pages in place. Other processes change them, and so this one only loads them, atomically.
        Some(unsafe { std::slice::from_raw_parts(self.at.add(offset / 8).as_ptr(), count) })
    }

    /// Have the processor load the cache line at `offset` without waiting for it.
    pub fn prefetch(&self, offset: u64) {
        #[cfg(target_arch = "x86_64")]
        if let Some([word, ..]) = self.words(offset, 1) {
            use core::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
            // SAFETY: every x86-64 processor has this instruction, which changes nothing and raises no signal.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(word).cast()) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = offset;
    }

    /// Copy from `offset` on. False if the mapping does not have the bytes.
    pub fn copy(&self, offset: u64, buffer: &mut [u8]) -> bool {
        let (whole, rest) = buffer.as_chunks_mut::<8>();
        let Some(words) = self.words(offset, whole.len()) else { return false };
        for (bytes, word) in whole.iter_mut().zip(words) {
            *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        rest.is_empty()
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // First the handler forgets the mapping, because its addresses may soon belong to another one.
        self.guard.size.store(0, Ordering::Release);
        // SAFETY: references into the mapping borrow self, so none is left. Unmapping what is mapped does not fail.
        let _ = unsafe { rustix::mm::munmap(self.at.as_ptr().cast(), self.size) };
        self.guard.begin.store(0, Ordering::Release);
    }
}

/// Install the handler, once in a process.
fn install_handler() -> io::Result<()> {
    static INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if *installed {
        return Ok(());
    }
    // SAFETY: a sigaction of zeros is valid: no flags, an empty mask, the default action. The calls read their second
    // argument and fill the third, which live until they return.
    let done = unsafe {
        let mut earlier: libc::sigaction = std::mem::zeroed();
        let mut action: libc::sigaction = std::mem::zeroed();
        let known = libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut earlier);
        action.sa_sigaction = on_sigbus as *const () as usize;
        // On the stack that the earlier handler, usually the standard library's, expects.
        action.sa_flags =
            libc::SA_SIGINFO | libc::SA_RESTART | (earlier.sa_flags & libc::SA_ONSTACK);
        known == 0
            && EARLIER.set(earlier).is_ok()
            && libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut()) == 0
    };
    if !done {
        return Err(io::Error::last_os_error());
    }
    *installed = true;
    Ok(())
}

/// Replaces the mapping with a missing page by zeros. Any other signal is left to the earlier handler, or to the default.
extern "C" fn on_sigbus(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes a valid siginfo_t. Of a signal without an address, the field is another number.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    let raised = code > 0;
    for guard in ALL_GUARDS.iter().filter(|_| raised) {
        let size = guard.size.load(Ordering::Acquire);
        let begin = guard.begin.load(Ordering::Relaxed);
        if address.wrapping_sub(begin) >= size {
            continue;
        }
        let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
        // SAFETY: this replaces a whole mapping of ours, of which others only load words; they will load zeros.
        let zeros =
            unsafe { rustix::mm::mmap_anonymous(begin as *mut _, size, ProtFlags::READ, flags) };
        if zeros.is_ok() {
            guard.lost.store(true, Ordering::Release);
            return;
        }
    }
    // The instruction is repeated when this handler returns, and raises the signal again; one that was sent is sent again.
    // SAFETY: sigaction and raise are async-signal-safe. The earlier action was set before this handler was installed.
    unsafe {
        let default: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, EARLIER.get().unwrap_or(&default), std::ptr::null_mut());
        if !raised {
            libc::raise(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    fn file(size: u64) -> File {
        let file = tempfile::tempfile_in("/dev/shm").unwrap();
        file.set_len(size).unwrap();
        file
    }

    #[test]
    fn a_mapping_has_the_words_of_the_file_as_far_as_it_reaches() {
        let file = file(3 * 4096);
        file.write_all_at(&7u64.to_ne_bytes(), 4096).unwrap();
        let mapped = MappedFile::map(&file, 2 * 4096).unwrap();
        let mut bytes = [1; 16];
        assert!(mapped.copy(4096, &mut bytes));
        assert_eq!((&bytes[..8], &bytes[8..]), (&7u64.to_ne_bytes()[..], &[0; 8][..]));
        file.write_all_at(&8u64.to_ne_bytes(), 4096).unwrap();
        assert_eq!(mapped.words(4096, 1).unwrap()[0].load(Ordering::Relaxed), 8);
        assert!(mapped.words(2 * 4096, 0).is_some() && mapped.words(2 * 4096 - 8, 1).is_some());
        for (offset, count) in
            [(2 * 4096 - 8, 2), (2 * 4096, 1), (4, 1), (u64::MAX - 7, 1), (8, usize::MAX)]
        {
            assert!(mapped.words(offset, count).is_none(), "{offset} {count}");
        }
        assert!(!mapped.copy(0, &mut [0; 12]), "part of a word");
        assert!(!mapped.is_lost());
    }

    #[test]
    fn a_truncated_file_leaves_zeros_and_a_lost_mapping() {
        let (cut, whole) = (file(8 * 4096), file(4096));
        cut.write_all_at(&[255; 4096], 0).unwrap();
        whole.write_all_at(&[255; 8], 0).unwrap();
        let mapped = MappedFile::map(&cut, 8 * 4096).unwrap();
        let other = MappedFile::map(&whole, 4096).unwrap();
        let mut bytes = [1; 4096];
        assert!(mapped.copy(0, &mut bytes) && bytes == [255; 4096]);
        cut.set_len(4096).unwrap();
        assert!(mapped.copy(0, &mut bytes) && !mapped.is_lost(), "the first page is still there");
        assert!(mapped.copy(4096, &mut bytes) && bytes == [0; 4096]);
        assert!(mapped.is_lost() && !other.is_lost());
        // Its guard is used again.
        drop(mapped);
        let again = MappedFile::map(&whole, 4096).unwrap();
        for mapped in [again, other] {
            assert!(!mapped.is_lost() && mapped.copy(0, &mut bytes[..8]) && bytes[..8] == [255; 8]);
        }
    }
}
