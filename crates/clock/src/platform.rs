// SPDX-License-Identifier: PostgreSQL
//! The processors, and on which of them a thread runs.

use std::io;

use process::Schedstat;
use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};

/// The machine as the tests need it.
pub trait Platform: Sync {
    /// The processors that this process may use, by number.
    fn processors(&self) -> io::Result<Vec<u32>>;

    /// Have the calling thread run on this one only, from the return on.
    fn pin(&self, processor: u32) -> io::Result<()>;

    /// How often the scheduler has given the calling thread a processor; None where the kernel
    /// does not tell.
    fn dispatches(&self) -> Option<u64>;
}

/// This machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThisMachine;

impl Platform for ThisMachine {
    fn processors(&self) -> io::Result<Vec<u32>> {
        let allowed = sched_getaffinity(None)?;
        Ok((0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).map(|cpu| cpu as u32).collect())
    }

    fn pin(&self, processor: u32) -> io::Result<()> {
        let mut only = CpuSet::new();
        only.set(processor as usize);
        Ok(sched_setaffinity(None, &only)?)
    }

    fn dispatches(&self) -> Option<u64> {
        Some(Schedstat::read("/proc/thread-self/schedstat".as_ref())?.dispatches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_goes_where_it_is_pinned_and_waiting_is_a_dispatch() {
        let processors = ThisMachine.processors().unwrap();
        assert!(!processors.is_empty());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for processor in processors {
                    ThisMachine.pin(processor).unwrap();
                    assert_eq!(rustix::thread::sched_getcpu(), processor as usize);
                }
                let before = ThisMachine.dispatches().unwrap();
                std::thread::sleep(std::time::Duration::from_millis(2));
                assert!(ThisMachine.dispatches().unwrap() > before);
            });
        });
    }

    #[test]
    fn a_processor_that_is_not_there_is_refused() {
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(ThisMachine.pin(CpuSet::MAX_CPU as u32 - 1).is_err()));
        });
    }
}
