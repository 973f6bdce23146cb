// SPDX-License-Identifier: PostgreSQL
//! CPU demand of other processes, which may explain differences.

use super::comparison::Total;
use super::processors::Processors;
use view::units::{duration, two};

/// Other processes are reported if their CPU use differs by this share of the machine's CPUs,
const OTHERS: f64 = 0.1;
/// or if the share of time that sessions wait for a CPU differs by this much.
const WAITING: f64 = 0.05;

/// Beyond this share of the machine's CPUs, other processes determine how fast the sessions compute: they share caches, memory
/// and, as hyper-threads, the cores themselves. The kernel counts that as the sessions' own CPU time,
const CROWDED: f64 = 0.5;
/// if sessions also wait for a CPU this share of the time in which they need one.
const QUEUED: f64 = 0.2;

impl Processors {
    /// Whether other processes determine the sessions' CPU time.
    fn crowded(&self) -> bool {
        self.others >= CROWDED * self.all && self.waiting_share >= QUEUED
    }
}

/// A sentence about the difference, if it is large enough, or if waiting for a CPU or crowded CPUs explain a change of `total`.
/// `common`: no statement changed more than the others.
pub fn finding(
    a: &Processors,
    b: &Processors,
    total: Option<&Total>,
    common: bool,
) -> Option<String> {
    let others = (b.others - a.others).abs() >= OTHERS * a.all.min(b.all);
    let waiting = (b.waiting_share - a.waiting_share).abs() >= WAITING;
    let explained = total.filter(|total| total.waiting_explains());
    let is_real = total.is_some_and(|total| total.change.verdict.is_real());
    let crowded = is_real && common && (a.crowded() || b.crowded());
    (others || waiting || crowded || explained.is_some()).then(|| {
        let conclusion = match explained {
            Some(total) => {
                let [a, b] = [total.a_waiting_seconds, total.b_waiting_seconds]
                    .map(Option::unwrap_or_default);
                format!(
                    "Waiting for a CPU accounts for the change: {} per {}, was {}.",
                    duration(b),
                    total.per.name(),
                    duration(a)
                )
            }
            None if crowded => "While other processes use most of the CPUs, the sessions' CPU time varies on its own: this is no evidence of a change in the server. Compare when the machine is quieter."
                .to_owned(),
            None => "This may explain differences.".to_owned(),
        };
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
    use super::super::comparison::{Change, ChangeVerdict, DiffUnit};
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
            ..Total::new(DiffUnit::Command, Change::default())
        };
        let explained = total([120e-6, 175e-6], ChangeVerdict::More);
        let text = finding(&side, &side, Some(&explained), true).unwrap();
        assert!(
            text.ends_with(
                "Waiting for a CPU accounts for the change: 175 us per command, was 120 us."
            ),
            "{text}"
        );
        // The sessions need more CPU time themselves, or wait less although they take more.
        for waiting in [[120e-6, 130e-6], [175e-6, 120e-6]] {
            assert_eq!(
                finding(&side, &side, Some(&total(waiting, ChangeVerdict::More)), true),
                None
            );
        }
        // There is no change to explain.
        assert_eq!(
            finding(&side, &side, Some(&total([120e-6, 175e-6], ChangeVerdict::Noise)), true),
            None
        );
    }

    #[test]
    fn a_common_change_on_crowded_processors_is_no_evidence() {
        let total = Total {
            change: Change {
                change_seconds: -1e-4,
                verdict: ChangeVerdict::Less,
                ..Change::default()
            },
            ..Total::new(DiffUnit::Command, Change::default())
        };
        let says = |busy: u64, queued: u64, common: bool| {
            let side = recorded(busy * SECOND, 5 * SECOND, queued * SECOND).unwrap();
            finding(&side, &side, Some(&total), common)
        };
        assert!(says(4, 4, true).unwrap().contains("no evidence of a change"));
        // One statement changed by itself; the others left half of the CPUs; nobody waited.
        assert_eq!([says(4, 4, false), says(2, 4, true), says(4, 1, true)], [None, None, None]);
    }

    #[test]
    fn other_processes_cpu_time_is_the_machines_minus_the_sessions() {
        let quiet = recorded(2 * SECOND, 15 * SECOND, SECOND).unwrap();
        assert_eq!((quiet.all, quiet.others), (4.0, 0.5));
        assert!((quiet.waiting_share - 1.0 / 16.0).abs() < 1e-12);
        let same = recorded(2 * SECOND + 100_000_000, 15 * SECOND, SECOND).unwrap();
        assert_eq!(finding(&quiet, &same, None, true), None);
        let busy = recorded(4 * SECOND, 15 * SECOND, 5 * SECOND).unwrap();
        let text = finding(&quiet, &busy, None, true).unwrap();
        assert!(text.contains("0.50 CPUs in A and 2.50 in B"), "{text}");
        assert!(text.ends_with("This may explain differences."), "{text}");
        assert!(text.contains("a CPU 6 % and 25 % of"), "{text}");
        assert_eq!((recorded(0, SECOND, 0), recorded(SECOND, 0, 0)), (None, None));
    }
}
