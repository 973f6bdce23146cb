// SPDX-License-Identifier: PostgreSQL
//! Exclusive locks on files and directories (flock).

use std::fs::File;
use std::io;

use rustix::fs::{flock, FlockOperation};

/// A lock on a file or directory, held until it is dropped.
///
/// It is released then, even if a process that another thread is just starting still has a copy of the descriptor: closing the
/// file alone would leave the lock to that process until it executes its program.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Takes the lock; `None` if another process, or another `Lock`, has it.
    pub fn take(file: File) -> io::Result<Option<Lock>> {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Lock(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Without an effect only if it is no longer held.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_ends_with_its_owner_whoever_else_has_the_descriptor() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let take = || Lock::take(file.reopen().unwrap()).unwrap();
        let lock = take().unwrap();
        assert!(take().is_none());
        // As a process has it between fork and exec.
        let copy = lock.0.try_clone().unwrap();
        drop(lock);
        assert!(take().is_some());
        drop(copy);
    }
}
