// SPDX-License-Identifier: PostgreSQL
//! Counts the memory of each thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static USED: Cell<i64> = const { Cell::new(0) };
    static MOST: Cell<i64> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

fn count(bytes: i64) {
    // A thread that is ending still frees memory.
    let _ = USED.try_with(|used| {
        used.set(used.get() + bytes);
        let _ = MOST.try_with(|most| most.set(most.get().max(used.get())));
    });
}

// SAFETY: all calls are passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller guarantees the requirements.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller guarantees the requirements.
        unsafe { System.dealloc(at, layout) }
    }
}

/// The memory that this thread uses now, which becomes the start of the maximum.
pub fn begin() -> i64 {
    MOST.set(USED.get());
    USED.get()
}

/// The maximum memory that this thread has used since [`begin`].
pub fn most() -> i64 {
    MOST.get()
}
