// SPDX-License-Identifier: PostgreSQL
//! Hooks through which tests control a reader. With the feature `test-hooks`, a test is called before each reading of
//! the file, and these are all the points at which a writer's stores can interleave; the reader gives up at once where
//! it would wait for a writer. Without the feature, as in every release, nothing is left of the hooks.

use std::time::Duration;

#[cfg(feature = "test-hooks")]
use std::sync::{atomic::AtomicBool, atomic::Ordering, Mutex};

/// Called before each reading, with its offset and number of bytes.
#[cfg(feature = "test-hooks")]
pub type BeforeReading = Box<dyn FnMut(u64, usize) + Send>;

/// The hooks of one segment.
#[derive(Default)]
pub(crate) struct Hooks {
    #[cfg(feature = "test-hooks")]
    before_reading: Mutex<Option<BeforeReading>>,
    /// Whether there is one: without it, as in a benchmark, threads do not compete for the lock.
    #[cfg(feature = "test-hooks")]
    is_set: AtomicBool,
    #[cfg(feature = "test-hooks")]
    impatient: AtomicBool,
}

impl std::fmt::Debug for Hooks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hooks")
    }
}

#[cfg(not(feature = "test-hooks"))]
impl Hooks {
    #[inline(always)]
    pub fn before_reading(&self, _offset: u64, _length: usize) {}

    #[inline(always)]
    pub fn tries(&self, limit: u32) -> u32 {
        limit
    }

    #[inline(always)]
    pub fn patience(&self, limit: Duration) -> Duration {
        limit
    }
}

#[cfg(feature = "test-hooks")]
impl Hooks {
    /// Called before the file is read.
    pub fn before_reading(&self, offset: u64, length: usize) {
        if !self.is_set.load(Ordering::Relaxed) {
            return;
        }
        let Ok(mut hook) = self.before_reading.lock() else { return };
        if let Some(hook) = hook.as_mut() {
            hook(offset, length);
        }
    }

    /// How many times to retry reading an object that a writer changes.
    pub fn tries(&self, limit: u32) -> u32 {
        match self.impatient.load(Ordering::Relaxed) {
            true => limit.min(3),
            false => limit,
        }
    }

    /// How long to wait for a writer.
    pub fn patience(&self, limit: Duration) -> Duration {
        match self.impatient.load(Ordering::Relaxed) {
            true => Duration::ZERO,
            false => limit,
        }
    }

    /// Call this before each reading.
    pub fn set(&self, hook: Option<BeforeReading>) {
        if let Ok(mut place) = self.before_reading.lock() {
            self.is_set.store(hook.is_some(), Ordering::Relaxed);
            *place = hook;
        }
    }

    /// Do not wait for writers.
    pub fn set_impatient(&self) {
        self.impatient.store(true, Ordering::Relaxed);
    }
}
