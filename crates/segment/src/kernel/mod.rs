// SPDX-License-Identifier: PostgreSQL
//! What the kernel reports of the same processes, to check the ledger.
//!
//! /proc/PID/schedstat has the time that a process was on a processor and the time that it
//! stood in the run queue. The `cpu` account holds both, so it may never exceed their sum:
//! what exceeds it was blocked where nobody looked. The other way round is no error: a
//! process that has been woken stands in the run queue inside of its wait, and the kernel's
//! own work at a wait's begin and end lies inside of it too; that is "runnable inside waits".
//!
//! Waiting unseen may hide behind that difference. So a thread asks the kernel every 5 ms
//! about three of the sessions in turn, then reads what runs in its book and since when: if that began
//! before the kernel was asked, it ran when the kernel answered. A process that is blocked
//! while its account is `cpu` is a sample of unexplained time. Each session is looked at
//! equally often, and only what was found busy counts, so the share of such samples is the
//! share of busy time. A blocked process whose account changed between the two readings,
//! about 10 µs, cannot be judged and is not counted.

mod proc;
mod sampler;

use crate::book::{Book, Life};
use crate::directory::{Directory, Stat};
use crate::segment::Segment;
use crate::snapshot::Snapshot;
use process::Proc as Processes;
use sampler::{Sampler, Target};
use serde::Serialize;
use std::collections::HashMap;

/// What the kernel says of an interval. Seconds are of the interval and of the sessions that
/// were there at both of its ends; the share is of all intervals since the watch began.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct KernelView {
    /// Whether the kernel was asked and could answer.
    pub available: bool,
    /// Why not.
    pub reason: Option<String>,
    /// What the seconds are of, where that is longer than the interval: a recording has the
    /// kernel's view by details.
    pub of_seconds: Option<f64>,
    /// Sessions that were compared.
    pub sessions: usize,
    /// What the ledger has as `cpu`.
    pub cpu_account_seconds: f64,
    /// What the kernel has as on a processor.
    pub on_cpu_seconds: f64,
    /// What the kernel has as ready to run and not running.
    pub run_queue_seconds: f64,
    /// What the kernel has beyond the `cpu` account: runnable inside waits.
    pub runnable_inside_waits_seconds: f64,
    /// Busy time that was spent blocked outside of every probe: the share below, of this
    /// interval's busy time.
    pub unexplained_seconds: f64,
    /// The share of busy time that is unexplained: the greater of what the sums and what the
    /// samples say.
    pub unexplained_share: f64,
    /// Half-width of the 95 % confidence interval of the sampled share.
    pub unexplained_error: f64,
    /// Samples of busy sessions since the watch began.
    pub samples: u64,
    /// Of those, blocked while the account was `cpu`.
    pub samples_unexplained: u64,
    /// Why there are no samples.
    pub sampling_reason: Option<String>,
    /// In which system calls the unexplained samples were blocked, most first.
    pub blocked_in: Vec<BlockedIn>,
}

/// Unexplained samples of one system call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlockedIn {
    /// Number of the system call; `None`: outside of any, as at a page fault, or unknown.
    pub syscall: Option<i64>,
    /// Samples.
    pub samples: u64,
}

impl KernelView {
    /// A view without figures, and why there are none.
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

/// What was seen since the watch began.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    cpu_account: f64,
    kernel: f64,
    busy: f64,
}

/// Watches the processes of one segment.
#[derive(Debug)]
pub struct Watch {
    reason: Option<String>,
    readings: HashMap<(u32, u32), Reading>,
    sums: Sums,
    sampler: Option<Sampler>,
}

impl Watch {
    /// Begin to watch. Every [`KernelView`] says what stands in the way.
    pub fn start(segment: &Segment) -> Watch {
        let watch = Watch::unsampled(segment);
        Watch { sampler: watch.reason.is_none().then(|| Sampler::start(segment)), ..watch }
    }

    fn unsampled(segment: &Segment) -> Watch {
        let reason = if !segment.is_of_this_boot() {
            Some("the segment is of an earlier boot")
        } else if !segment.knows_pids() {
            Some("the server's processes are of another pid namespace; run tally where the server runs")
        } else if Processes::default().schedstat(std::process::id()).is_none() {
            Some("this kernel has no /proc/PID/schedstat (CONFIG_SCHED_INFO)")
        } else {
            None
        };
        Watch {
            sampler: None,
            reason: reason.map(str::to_string),
            readings: HashMap::new(),
            sums: Sums::default(),
        }
    }

    /// The same without the thread that samples: only the kernel's sums are reported,
    /// for a reader that runs all the time and must cost next to nothing.
    pub fn without_samples(segment: &Segment) -> Watch {
        Watch::unsampled(segment)
    }

    /// Compare the interval between two snapshots, of which `busy_seconds` were not idle, and
    /// go on watching. Call it right after taking `snapshot`, the first one included.
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
        let mut readings = HashMap::with_capacity(snapshot.books.len());
        let mut targets = Vec::new();
        let processes = Processes::default();
        for book in snapshot.books.iter().filter(|b| b.life == Life::Alive) {
            let key = (book.slot, book.generation);
            let before = self.readings.get(&key);
            // What has not moved since has not run either.
            let reading = match before.filter(|b| b.seq == book.seq && book.seq % 2 == 0) {
                Some(same) => Some(*same),
                None => processes.schedstat(book.pid as u32).map(|it| Reading {
                    seq: book.seq,
                    on_cpu_ns: it.on_cpu_ns,
                    run_queue_ns: it.run_queue_ns,
                }),
            };
            let Some(reading) = reading else { continue };
            readings.insert(key, reading);
            let idle = |stat: Option<&Stat>| stat.is_none_or(Stat::is_idle);
            let now_idle = idle(book.run().and_then(|id| snapshot.directory.get(id)));
            if !now_idle || before.is_none_or(|b| b.seq != book.seq) {
                targets.push(Target { slot: book.slot, generation: key.1, pid: book.pid });
            }
            let then = previous.and_then(|p| p.book(book.slot, book.generation));
            let (Some(before), Some(then)) = (before, then) else { continue };
            let cpu = cpu_ticks(book, &snapshot.directory)
                .saturating_sub(cpu_ticks(then, &snapshot.directory));
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
        if self.sums.busy > 0.0 {
            let exceeding = self.sums.cpu_account - self.sums.kernel;
            view.unexplained_share = (exceeding / self.sums.busy).max(0.0);
        }
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
        if view.samples > 0 {
            let share = view.samples_unexplained as f64 / view.samples as f64;
            view.unexplained_share = view.unexplained_share.max(share);
            view.unexplained_error = half_width(view.samples_unexplained, view.samples);
        }
        view.unexplained_seconds = view.unexplained_share * busy_seconds;
        view
    }
}

/// Half the width of Wilson's 95 % interval of a share: honest also when no hit was seen.
/// E. B. Wilson, JASA 22 (1927), 209-212.
pub fn half_width(hits: u64, samples: u64) -> f64 {
    const Z: f64 = 1.96;
    let n = samples as f64;
    let p = hits as f64 / n;
    Z / (1.0 + Z * Z / n) * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt()
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
    fn no_hit_in_few_samples_is_not_certainty() {
        assert!(half_width(0, 100) > 0.015);
        assert!(half_width(0, 10_000) < 0.001);
        assert!((half_width(50, 100) - 0.096).abs() < 0.002);
    }
}
