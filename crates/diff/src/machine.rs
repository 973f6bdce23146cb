// SPDX-License-Identifier: PostgreSQL
//! CPU demand of other processes, which may explain differences.

use recording::{FrameRow, KernelRow};
use serde::Serialize;

use view::units::two;

/// Other processes are reported if their CPU use differs by this share of the machine's CPUs,
const OTHERS: f64 = 0.1;
/// or if the share of time that sessions wait for a CPU differs by this much.
const WAITING: f64 = 0.05;

/// The CPUs of the machine while a side was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Processors {
    /// Number of CPUs.
    pub all: f64,
    /// Mean number of CPUs used by processes other than the server's sessions.
    pub others: f64,
    /// Share of the sessions' CPU demand that was spent waiting for a CPU.
    pub waiting_share: f64,
}

impl Processors {
    /// From the kernel's counters; `None` if they were not recorded.
    pub fn from_rows(heads: &[FrameRow], kernel: &[KernelRow]) -> Option<Processors> {
        let sum = |figure: fn(&KernelRow) -> u64| kernel.iter().map(figure).sum::<u64>() as f64;
        let (on_cpu, queued) = (sum(|row| row.on_cpu_ns), sum(|row| row.run_queue_ns));
        let (known, length) = (sum(|row| row.interval_ns), heads.iter().map(|row| row.interval_ns));
        let length = length.sum::<u64>() as f64;
        let busy: u64 = heads.iter().map(|row| row.host_user_ns + row.host_system_ns).sum();
        if busy == 0 || on_cpu == 0.0 || known == 0.0 || length == 0.0 {
            return None;
        }
        Some(Processors {
            all: heads.last()?.cores as f64,
            others: (busy as f64 / length - on_cpu / known).max(0.0),
            waiting_share: queued / (on_cpu + queued),
        })
    }
}

/// A sentence about the difference, if it is large enough.
pub fn finding(a: &Processors, b: &Processors) -> Option<String> {
    let others = (b.others - a.others).abs() >= OTHERS * a.all.min(b.all);
    let waiting = (b.waiting_share - a.waiting_share).abs() >= WAITING;
    (others || waiting).then(|| {
        format!(
            "Other processes used {} CPUs in A and {} in B; sessions waited for a CPU {:.0} % and \
             {:.0} % of the time in which they needed one. This may explain differences.",
            two(a.others),
            two(b.others),
            a.waiting_share * 100.0,
            b.waiting_share * 100.0
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn recorded(busy: u64, on_cpu: u64, queued: u64) -> Option<Processors> {
        let head = FrameRow {
            interval_ns: SECOND,
            cores: 4,
            host_user_ns: busy * 3 / 4,
            host_system_ns: busy / 4,
            ..FrameRow::default()
        };
        let row = KernelRow {
            interval_ns: 10 * SECOND,
            on_cpu_ns: on_cpu,
            run_queue_ns: queued,
            ..KernelRow::default()
        };
        Processors::from_rows(&vec![head; 10], &[row])
    }

    #[test]
    fn other_processes_cpu_time_is_the_machines_minus_the_sessions() {
        let quiet = recorded(2 * SECOND, 15 * SECOND, SECOND).unwrap();
        assert_eq!((quiet.all, quiet.others), (4.0, 0.5));
        assert!((quiet.waiting_share - 1.0 / 16.0).abs() < 1e-12);
        let same = recorded(2 * SECOND + 100_000_000, 15 * SECOND, SECOND).unwrap();
        assert_eq!(finding(&quiet, &same), None);
        let busy = recorded(4 * SECOND, 15 * SECOND, 5 * SECOND).unwrap();
        let text = finding(&quiet, &busy).unwrap();
        assert!(text.contains("0.50 CPUs in A and 2.50 in B"), "{text}");
        assert!(text.contains("a CPU 6 % and 25 % of"), "{text}");
        assert_eq!((recorded(0, SECOND, 0), recorded(SECOND, 0, 0)), (None, None));
    }
}
