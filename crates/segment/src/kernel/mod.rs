// SPDX-License-Identifier: PostgreSQL
//! The kernel's figures about the same processes, to check the ledger.
//!
//! /proc/PID/schedstat has the time that a process ran on a CPU and the time that it waited in a run
//! queue. The `cpu` account contains both. If the account exceeds their sum, the process was blocked
//! outside every probe. If it is smaller, that is not an error: a process waits in the run queue after it
//! was woken, still within its wait, and the kernel does work at the start and end of a wait ("runnable
//! inside waits").
//!
//! The latter can mask blocked time. So every 5 ms, a thread asks the kernel about three of the sessions
//! in turn, then reads the running account and its start. An account that started before the query was
//! running when the kernel answered. A process that is blocked while its account is `cpu` is a sample of
//! unexplained time. All sessions are sampled equally often, and only busy ones count, so the share of
//! such samples is a share of busy time. A blocked process whose account changed between the two readings
//! (about 10 µs apart) does not count.
//!
//! The kernel adds a stay in the run queue when it ends, and CPU time at a tick. Time that it has not added yet, for
//! sessions whose account is `cpu` at the end of the watch, is an error of the sums. Another error is CPU time taken by
//! interrupts and the hypervisor, which may be in the `cpu` account of the running process, but in no process's CPU
//! time.

mod proc;
mod sampler;

use crate::book::{Book, Life};
use crate::directory::{Directory, Stat};
use crate::segment::Segment;
use crate::snapshot::Snapshot;
use crate::this_host;
use process::Proc as Processes;
use sampler::{Sampler, Target};
use serde::Serialize;
use stats::Z95;
use std::collections::HashMap;

/// The kernel's figures for an interval. Seconds cover the interval and the sessions that existed at both
/// of its ends; the share covers all intervals since the watch started.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct KernelView {
    /// Whether the figures are available.
    pub available: bool,
    /// Why they are not available.
    pub reason: Option<String>,
    /// The time that the seconds cover, if it is longer than the interval: a recording has one view for
    /// each detail interval.
    pub of_seconds: Option<f64>,
    /// Sessions compared.
    pub sessions: usize,
    /// Time in the `cpu` account of the ledger.
    pub cpu_account_seconds: f64,
    /// Time on a CPU, according to the kernel.
    pub on_cpu_seconds: f64,
    /// Time in the run queue, according to the kernel.
    pub run_queue_seconds: f64,
    /// The kernel's time beyond the `cpu` account: runnable inside waits.
    pub runnable_inside_waits_seconds: f64,
    /// Busy time blocked outside every probe: the share below times this interval's busy time.
    pub unexplained_seconds: f64,
    /// The unexplained share of busy time, from the sums or from the samples, whichever has the larger
    /// lower bound.
    pub unexplained_share: f64,
    /// The half-width of the share. From samples: of the 95 % confidence interval. From the sums: time that the kernel
    /// may not have added yet, and time that it does not count for any process.
    pub unexplained_error: f64,
    /// Samples of busy sessions since the watch began.
    pub samples: u64,
    /// Samples that were blocked while the account was `cpu`.
    pub samples_unexplained: u64,
    /// Why there are no samples.
    pub sampling_reason: Option<String>,
    /// The system calls in which unexplained samples were blocked, most first.
    pub blocked_in: Vec<BlockedIn>,
}

/// Unexplained samples of one system call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlockedIn {
    /// Number of the system call; `None`: none (a page fault), or unknown.
    pub syscall: Option<i64>,
    /// Number of samples.
    pub samples: u64,
}

impl KernelView {
    /// A view without figures, with the reason.
    pub fn unavailable(why: &str) -> KernelView {
        KernelView { reason: Some(why.to_string()), ..KernelView::default() }
    }
}

/// A reading of /proc/PID/schedstat, and the counter of the book at that time.
#[derive(Debug, Clone, Copy)]
struct Reading {
    seq: u64,
    on_cpu_ns: u64,
    run_queue_ns: u64,
}

/// Sums since the watch started.
#[derive(Debug, Clone, Copy, Default)]
struct WatchedSums {
    cpu_account: f64,
    kernel: f64,
    busy: f64,
}

/// The maximum delay with which the kernel adds a session's time, seconds: longer than a stay in the run queue of a
/// machine with ten times as many runnable processes as CPUs.
const MOST_LATE: f64 = 0.1;

/// A share of busy time.
#[derive(Debug, Clone, Copy, PartialEq)]
struct BusyShare {
    of_busy: f64,
    error: f64,
}

impl BusyShare {
    fn least(self) -> f64 {
        self.of_busy - self.error
    }

    /// The more significant of the two shares.
    fn better(self, samples: Option<BusyShare>) -> BusyShare {
        match samples {
            Some(samples) if self.least() <= samples.least().max(0.0) => samples,
            _ => self,
        }
    }
}

/// Watches the processes of one segment.
#[derive(Debug)]
pub struct Watch {
    reason: Option<String>,
    readings: HashMap<(u32, u32), Reading>,
    sums: WatchedSums,
    /// Time taken by interrupts and the hypervisor before the watch started, seconds.
    taken: Option<f64>,
    sampler: Option<Sampler>,
}

impl Watch {
    /// Start watching. If that is impossible, every [`KernelView`] has the reason.
    pub fn start(segment: &Segment) -> Watch {
        let watch = Watch::unsampled(segment);
        Watch { sampler: watch.reason.is_none().then(|| Sampler::start(segment)), ..watch }
    }

    fn unsampled(segment: &Segment) -> Watch {
        let reason = if segment.remote().is_some() {
            Some("the server is read through a connection; run tally where the server runs")
        } else if !segment.is_of_this_boot() {
            Some("the segment was written before the last boot")
        } else if !segment.knows_pids() {
            Some("the server's processes are in another PID namespace; run tally where the server runs")
        } else if Processes::default().schedstat(std::process::id()).is_none() {
            Some("this kernel has no /proc/PID/schedstat (CONFIG_SCHED_INFO)")
        } else {
            None
        };
        Watch {
            sampler: None,
            reason: reason.map(str::to_string),
            readings: HashMap::new(),
            sums: WatchedSums::default(),
            taken: this_host::taken_seconds(),
        }
    }

    /// The same without the sampling thread, for a reader that runs all the time and must be cheap.
    /// Only the kernel's sums are reported.
    pub fn without_samples(segment: &Segment) -> Watch {
        Watch::unsampled(segment)
    }

    /// Compare the interval between two snapshots, of which `busy_seconds` were not idle, and continue
    /// watching. Call this right after each snapshot, including the first.
    pub fn observe(
        &mut self,
        previous: Option<&Snapshot>,
        snapshot: &Snapshot,
        busy_seconds: f64,
    ) -> KernelView {
        if let Some(reason) = &self.reason {
            return KernelView::unavailable(reason);
        }
        let clock = &snapshot.clock;
        let mut view = KernelView { available: true, ..KernelView::default() };
        let mut late = 0.0;
        let mut readings = HashMap::with_capacity(snapshot.books.len());
        let mut targets = Vec::new();
        let processes = Processes::default();
        for book in snapshot.books.iter().filter(|b| b.life == Life::Alive) {
            let key = (book.slot, book.generation);
            let before = self.readings.get(&key);
            let running = book.run().and_then(|id| snapshot.directory.get(id));
            let on_cpu = running.is_some_and(Stat::is_cpu);
            // If the book has not changed since, and is in a wait, the process has not run.
            let unchanged = |b: &&Reading| b.seq == book.seq && book.seq % 2 == 0 && !on_cpu;
            let reading = match before.filter(unchanged) {
                Some(same) => Some(*same),
                None => processes.schedstat(book.pid as u32).map(|schedstat| Reading {
                    seq: book.seq,
                    on_cpu_ns: schedstat.on_cpu_ns,
                    run_queue_ns: schedstat.run_queue_ns,
                }),
            };
            let Some(reading) = reading else { continue };
            readings.insert(key, reading);
            let now_idle = running.is_none_or(Stat::is_idle);
            if !now_idle || before.is_none_or(|b| b.seq != book.seq) {
                targets.push(Target { slot: book.slot, generation: key.1, pid: book.pid });
            }
            let then = previous.and_then(|p| p.book(book.slot, book.generation));
            let (Some(before), Some(then)) = (before, then) else { continue };
            let cpu = cpu_ticks(book, &snapshot.directory)
                .saturating_sub(cpu_ticks(then, &snapshot.directory));
            if on_cpu {
                let so_far = clock.seconds(book.now.saturating_sub(book.run_start));
                late += so_far.min(MOST_LATE);
            }
            view.sessions += 1;
            view.cpu_account_seconds += clock.seconds(cpu);
            view.on_cpu_seconds += reading.on_cpu_ns.saturating_sub(before.on_cpu_ns) as f64 * 1e-9;
            view.run_queue_seconds +=
                reading.run_queue_ns.saturating_sub(before.run_queue_ns) as f64 * 1e-9;
        }
        self.readings = readings;
        let kernel = view.on_cpu_seconds + view.run_queue_seconds;
        view.runnable_inside_waits_seconds = (kernel - view.cpu_account_seconds).max(0.0);
        self.sums.cpu_account += view.cpu_account_seconds;
        self.sums.kernel += kernel;
        self.sums.busy += busy_seconds;
        let taken = this_host::taken_seconds().zip(self.taken);
        late += taken.map_or(0.0, |(now, then)| (now - then).max(0.0) + this_host::tick_seconds());
        let exceeding = (self.sums.cpu_account - self.sums.kernel).max(0.0);
        let by_sums = match self.sums.busy > 0.0 {
            true => BusyShare { of_busy: exceeding / self.sums.busy, error: late / self.sums.busy },
            false => BusyShare { of_busy: 0.0, error: 0.0 },
        };
        if let Some(sampler) = &self.sampler {
            let mut state = sampler.state();
            state.targets = targets;
            view.samples = state.samples;
            view.samples_unexplained = state.unexplained.values().sum();
            view.sampling_reason = state.reason.clone();
            view.blocked_in = state
                .unexplained
                .iter()
                .map(|(&syscall, &samples)| BlockedIn { syscall, samples })
                .collect();
            view.blocked_in.sort_by_key(|b| (std::cmp::Reverse(b.samples), b.syscall));
        }
        let by_samples = (view.samples > 0).then(|| BusyShare {
            of_busy: view.samples_unexplained as f64 / view.samples as f64,
            error: half_width(view.samples_unexplained, view.samples),
        });
        let share = by_sums.better(by_samples);
        view.unexplained_share = share.of_busy;
        view.unexplained_error = share.error;
        view.unexplained_seconds = view.unexplained_share * busy_seconds;
        view
    }
}

/// Half-width of Wilson's 95 % interval of a share, also valid without any hit.
/// E. B. Wilson, JASA 22 (1927), 209-212.
pub fn half_width(hits: u64, samples: u64) -> f64 {
    let n = samples as f64;
    let p = hits as f64 / n;
    Z95 / (1.0 + Z95 * Z95 / n) * (p * (1.0 - p) / n + Z95 * Z95 / (4.0 * n * n)).sqrt()
}

/// Ticks in the `cpu` accounts of a book.
fn cpu_ticks(book: &Book, directory: &Directory) -> u64 {
    book.heads
        .iter()
        .filter(|h| directory.get(h.stat).is_some_and(Stat::is_cpu))
        .fold(0, |sum, h| sum.saturating_add(h.total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_samples_without_a_hit_leave_an_error() {
        assert!(half_width(0, 100) > 0.015);
        assert!(half_width(0, 10_000) < 0.001);
        assert!((half_width(50, 100) - 0.096).abs() < 0.002);
    }

    #[test]
    fn sums_that_the_kernel_may_be_late_with_say_less_than_samples_without_a_hit() {
        let share = |of_busy, error| BusyShare { of_busy, error };
        let no_hit = share(0.0, 0.03);
        assert_eq!(share(0.06, 0.06).better(Some(no_hit)), no_hit);
        // Processes blocked at points that the samples missed.
        assert_eq!(share(0.06, 0.01).better(Some(no_hit)), share(0.06, 0.01));
        assert_eq!(share(0.06, 0.01).better(Some(share(0.1, 0.02))), share(0.1, 0.02));
        assert_eq!(share(0.06, 0.06).better(None), share(0.06, 0.06));
    }
}
