// SPDX-License-Identifier: PostgreSQL
//! What else the machine did: time that differs may be due to others who wanted its processors.

use recording::{FrameRow, KernelRow};
use serde::Serialize;

use view::units::two;

/// Others who keep so much more of the machine's processors busy are worth a word ...
const OTHERS: f64 = 0.1;
/// ... and so is a part of the sessions' time of being ready that they wait longer.
const WAITING: f64 = 0.05;

/// The processors of the machine while a side was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Processors {
    /// How many there are.
    pub all: f64,
    /// How many were kept busy by others than the server's sessions, on average.
    pub others: f64,
    /// The part of the time in which sessions wanted a processor that they waited for one.
    pub waiting_share: f64,
}

impl Processors {
    /// By the kernel's count; `None` where it was not recorded.
    pub fn of(heads: &[FrameRow], kernel: &[KernelRow]) -> Option<Processors> {
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

/// What is to be said of their difference, if anything is.
pub fn finding(a: &Processors, b: &Processors) -> Option<String> {
    let others = (b.others - a.others).abs() >= OTHERS * a.all.min(b.all);
    let waiting = (b.waiting_share - a.waiting_share).abs() >= WAITING;
    (others || waiting).then(|| {
        format!(
            "Beside the server's sessions others kept {} processors busy in A and {} in B; sessions \
             waited for {:.0} and {:.0} % of the time in which they wanted one. What differs may be \
             due to that.",
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
        Processors::of(&vec![head; 10], &[row])
    }

    #[test]
    fn what_others_did_is_what_the_machine_did_less_what_the_sessions_did() {
        let quiet = recorded(2 * SECOND, 15 * SECOND, SECOND).unwrap();
        assert_eq!((quiet.all, quiet.others), (4.0, 0.5));
        assert!((quiet.waiting_share - 1.0 / 16.0).abs() < 1e-12);
        let same = recorded(2 * SECOND + 100_000_000, 15 * SECOND, SECOND).unwrap();
        assert_eq!(finding(&quiet, &same), None);
        let busy = recorded(4 * SECOND, 15 * SECOND, 5 * SECOND).unwrap();
        let said = finding(&quiet, &busy).unwrap();
        assert!(said.contains("0.50 processors busy in A and 2.50 in B"), "{said}");
        assert!(said.contains("for 6 and 25 % of"), "{said}");
        assert_eq!((recorded(0, SECOND, 0), recorded(SECOND, 0, 0)), (None, None));
    }
}
