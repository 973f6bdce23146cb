// SPDX-License-Identifier: PostgreSQL
//! CPU demand of other processes, which may explain differences.

use super::comparison::Total;
use super::processors::Processors;
use view::units::{duration, two};

/// Other processes are reported if their CPU use differs by this share of the machine's CPUs,
const OTHERS: f64 = 0.1;
/// or if the share of time that sessions wait for a CPU differs by this much.
const WAITING: f64 = 0.05;

/// A sentence about the difference, if it is large enough, or if waiting for a CPU explains a change of `total`.
pub fn finding(a: &Processors, b: &Processors, total: Option<&Total>) -> Option<String> {
    let others = (b.others - a.others).abs() >= OTHERS * a.all.min(b.all);
    let waiting = (b.waiting_share - a.waiting_share).abs() >= WAITING;
    let explained = total.filter(|total| total.waiting_explains());
    (others || waiting || explained.is_some()).then(|| {
        let conclusion = explained.map_or("This may explain differences.".to_owned(), |total| {
            let [a, b] =
                [total.a_waiting_seconds, total.b_waiting_seconds].map(Option::unwrap_or_default);
            format!(
                "Waiting for a CPU accounts for the change: {} per {}, was {}.",
                duration(b),
                total.per.name(),
                duration(a)
            )
        });
        format!(
            "Other processes used {} CPUs in A and {} in B; sessions waited for a CPU {:.0} % and \
             {:.0} % of the time in which they needed one. {conclusion}",
            two(a.others),
            two(b.others),
            a.waiting_share * 100.0,
            b.waiting_share * 100.0
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::comparison::{Change, ChangeVerdict, Per};
    use super::*;
    use recording::{FrameRow, KernelRow};

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
    fn a_change_that_is_waiting_for_a_cpu_is_said_to_be_so() {
        let side = recorded(2 * SECOND, 15 * SECOND, SECOND).unwrap();
        let total = |waiting: [f64; 2], verdict| Total {
            a_waiting_seconds: Some(waiting[0]),
            b_waiting_seconds: Some(waiting[1]),
            change: Change {
                a_seconds: 285e-6,
                b_seconds: 337e-6,
                change_seconds: 52e-6,
                verdict,
                ..Change::default()
            },
            ..Total::new(Per::Command, Change::default())
        };
        let explained = total([120e-6, 175e-6], ChangeVerdict::More);
        let text = finding(&side, &side, Some(&explained)).unwrap();
        assert!(
            text.ends_with(
                "Waiting for a CPU accounts for the change: 175 us per command, was 120 us."
            ),
            "{text}"
        );
        // The sessions need more CPU time themselves, or wait less although they take more.
        for waiting in [[120e-6, 130e-6], [175e-6, 120e-6]] {
            assert_eq!(finding(&side, &side, Some(&total(waiting, ChangeVerdict::More))), None);
        }
        // There is no change to explain.
        assert_eq!(
            finding(&side, &side, Some(&total([120e-6, 175e-6], ChangeVerdict::Noise))),
            None
        );
    }

    #[test]
    fn other_processes_cpu_time_is_the_machines_minus_the_sessions() {
        let quiet = recorded(2 * SECOND, 15 * SECOND, SECOND).unwrap();
        assert_eq!((quiet.all, quiet.others), (4.0, 0.5));
        assert!((quiet.waiting_share - 1.0 / 16.0).abs() < 1e-12);
        let same = recorded(2 * SECOND + 100_000_000, 15 * SECOND, SECOND).unwrap();
        assert_eq!(finding(&quiet, &same, None), None);
        let busy = recorded(4 * SECOND, 15 * SECOND, 5 * SECOND).unwrap();
        let text = finding(&quiet, &busy, None).unwrap();
        assert!(text.contains("0.50 CPUs in A and 2.50 in B"), "{text}");
        assert!(text.ends_with("This may explain differences."), "{text}");
        assert!(text.contains("a CPU 6 % and 25 % of"), "{text}");
        assert_eq!((recorded(0, SECOND, 0), recorded(SECOND, 0, 0)), (None, None));
    }
}
