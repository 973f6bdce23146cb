// SPDX-License-Identifier: PostgreSQL
//! Processors, and the affinity of threads.

use std::io;

use process::Schedstat;
use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};

/// The operations that the tests need from a machine.
pub trait Platform: Sync {
    /// The processors that this process may use, by number.
    fn processors(&self) -> io::Result<Vec<u32>>;

    /// Binds the calling thread to a processor; it runs there on return.
    fn pin(&self, processor: u32) -> io::Result<()>;

    /// How often the scheduler has dispatched the calling thread; `None` if the kernel does not count that.
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
    fn a_thread_runs_where_it_is_pinned_and_a_wait_is_a_dispatch() {
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
    fn a_processor_that_does_not_exist_is_refused() {
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(ThisMachine.pin(CpuSet::MAX_CPU as u32 - 1).is_err()));
        });
    }
}
