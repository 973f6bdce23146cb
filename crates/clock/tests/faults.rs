// SPDX-License-Identifier: PostgreSQL
//! Simulated faults are found, with their size and processor; sound clocks have no faults.

mod doubles;

use clock::{ClockReport, FaultKind, Report};
use doubles::{machine, Fault};

fn kinds(report: &Report) -> Vec<FaultKind> {
    report.used_by("server").unwrap().faults.iter().map(|fault| fault.kind).collect()
}

fn servers(report: &Report) -> &ClockReport {
    report.used_by("server").unwrap()
}

#[test]
fn a_sound_clock_is_fit() {
    for processors in [1, 2, 3] {
        let report = machine(processors).test(20, Fault::None);
        assert!(report.fit, "{}", report.verdict);
        assert!(report.verdict.starts_with("fit: "), "{}", report.verdict);
        let agree = report.verdict.contains("processors agree within 20 ns");
        assert_eq!(agree, processors > 1, "{}", report.verdict);
        let clock = servers(&report);
        assert_eq!(clock.faults, []);
        // A reading advances the clock by 20 ns, whatever else happens.
        assert_eq!(clock.loop_cost.p50_seconds, 20.0 * 1e-9);
        assert_eq!(clock.loop_cost.p999_seconds, 20.0 * 1e-9);
        assert_eq!(clock.loop_cost.powers_of_two.len(), 6, "16 ns and more, less than 32 ns");
        assert_eq!(clock.resolution.min_step_seconds, Some(20.0 * 1e-9));
        assert_eq!(clock.pairs.len(), [0, 1, 3][processors as usize - 1]);
        for pair in &clock.pairs {
            assert_eq!(pair.warps.count, 0);
            assert!(
                pair.min_offset_seconds.unwrap() <= 0.0 && pair.max_offset_seconds.unwrap() >= 0.0
            );
            assert!(pair.readings > 0 && pair.rounds > 0, "{pair:?}");
        }
    }
}

#[test]
fn a_clock_that_steps_back_is_found_with_the_size_of_its_step() {
    let report = machine(2).test(20, Fault::Back { every: 1_000, by: 520, on: None });
    assert!(!report.fit);
    assert!(kinds(&report).contains(&FaultKind::Back), "{}", report.verdict);
    let back = servers(&report).backward;
    // The reading before was 20 ns earlier.
    assert_eq!(back.largest_seconds, 500.0 * 1e-9);
    let readings = servers(&report).loop_cost.readings;
    assert!(back.count.abs_diff(readings / 1_000) <= 2, "{} in {readings}", back.count);
    assert!(report.verdict.contains("by up to 500 ns"), "{}", report.verdict);
}

#[test]
fn a_single_processor_that_steps_back_is_named() {
    let report = machine(3).test(20, Fault::Back { every: 100, by: 70, on: Some(1) });
    let clock = servers(&report);
    let by: Vec<bool> = clock.processors.iter().map(|on| on.backward.count > 0).collect();
    assert_eq!(by, [false, true, false]);
    assert!(report.verdict.contains("on processor 1, by up to 50 ns"), "{}", report.verdict);
}

#[test]
fn a_skewed_processor_is_found_and_its_skew_bounded() {
    for by in [700, -700, 1_000_000_000] {
        let report = machine(3).test(20, Fault::Skew { processor: 2, by });
        assert!(!report.fit, "{by}");
        let clock = servers(&report);
        assert!(kinds(&report).contains(&FaultKind::Skewed), "{}", report.verdict);
        assert!(kinds(&report).contains(&FaultKind::BackMigrating), "{}", report.verdict);
        assert!(!kinds(&report).contains(&FaultKind::Back), "none on any one processor");
        for pair in &clock.pairs {
            let skewed = pair.processors.contains(&2);
            assert_eq!(pair.proven, skewed, "{pair:?}");
            assert_eq!(pair.warps.count > 0, skewed, "{pair:?}");
            let truth = if skewed { by as f64 * 1e-9 } else { 0.0 };
            let (min, max) = (pair.min_offset_seconds.unwrap(), pair.max_offset_seconds.unwrap());
            assert!(min <= truth + 1e-15 && truth <= max + 1e-15, "{by}: {pair:?}");
            // At least two readings lie in between, and no more in a good round.
            assert!(max - min < 100e-9, "{by}: {pair:?}");
        }
        let largest = clock.migrating.unwrap().largest_seconds;
        assert!(largest <= by.unsigned_abs() as f64 * 1e-9, "{largest}");
    }
}

#[test]
fn a_coarse_clock_is_found_with_its_step() {
    let report = machine(2).test(20, Fault::Coarse { step: 100_000 });
    assert_eq!(kinds(&report), [FaultKind::Coarse]);
    assert!(!report.fit);
    let resolution = &servers(&report).resolution;
    assert_eq!(resolution.min_step_seconds, Some(100_000.0 * 1e-9));
    assert_eq!(resolution.grain_seconds, Some(100_000.0 * 1e-9));
    assert!(resolution.unchanged_share > 0.999);
    // Half a microsecond is good enough for a server's timings.
    let report = machine(2).test(20, Fault::Coarse { step: 500 });
    assert!(report.fit, "{}", report.verdict);
    assert_eq!(servers(&report).resolution.min_step_seconds, Some(500.0 * 1e-9));
}

#[test]
fn a_clock_that_never_advances_is_coarse_and_no_error() {
    let report = machine(2).test(20, Fault::Still);
    assert_eq!(kinds(&report), [FaultKind::Coarse]);
    assert!(report.verdict.contains("did not advance"), "{}", report.verdict);
}

#[test]
fn a_slow_clock_is_found() {
    let report = machine(2).test(1_500, Fault::None);
    assert_eq!(kinds(&report), [FaultKind::Slow]);
    assert!(report.verdict.contains("1.5 us"), "{}", report.verdict);
}

#[test]
fn a_rate_is_found_and_a_wrong_one_is_a_fault() {
    for (ppm, fit) in [(0.0, true), (40.0, true), (-300.0, true), (900.0, false)] {
        let report = machine(2).test(20, Fault::Fast { ppm });
        let rate = servers(&report).rate.clone().unwrap();
        let found = rate.ppm.unwrap();
        assert!((found - ppm).abs() <= rate.error_ppm.max(0.01), "{ppm}: {rate:?}");
        assert_eq!(report.fit, fit, "{}", report.verdict);
        assert_eq!(kinds(&report).contains(&FaultKind::Wrong), !fit);
    }
}

#[test]
fn a_rate_that_changes_is_unsteady() {
    let report = machine(2).test(20, Fault::EverFaster);
    assert!(kinds(&report).contains(&FaultKind::Unsteady), "{:?}", servers(&report).rate);
}

#[test]
fn faults_of_an_unused_clock_do_not_matter() {
    let machine = machine(2);
    let report = machine.test_all(vec![
        machine.clock("tested", 20, Fault::None),
        machine.clock("sound", 10, Fault::None),
        machine.clock("unused", 10, Fault::Back { every: 10, by: 1_000, on: None }),
    ]);
    assert!(report.fit, "{}", report.verdict);
    assert_ne!(report.source("unused").unwrap().faults, []);
}

#[test]
fn gaps_are_classified_by_dispatches_of_the_thread() {
    for (dispatched, silent) in [(true, false), (false, false), (false, true)] {
        let mut machine = machine(1);
        machine.silent = silent;
        let report = machine.test(20, Fault::Gap { every: 5_000, ns: 50_000, dispatched });
        let gaps = &report.gaps;
        let kind = match (dispatched, silent) {
            (_, true) => gaps.unknown,
            (true, _) => gaps.scheduler,
            (false, _) => gaps.hypervisor,
        };
        assert_eq!(kind, gaps.all());
        let expected = servers(&report).loop_cost.readings / 5_000;
        assert!(kind.count.abs_diff(expected) <= 2, "{kind:?}, {expected} expected");
        assert!((kind.longest_seconds - 50_020e-9).abs() < 1e-12, "{kind:?}");
        assert!((kind.seconds / (kind.count as f64 * 50_020e-9) - 1.0).abs() < 1e-9);
        assert!(gaps.watched_seconds > kind.seconds);
        assert!(report.fit, "a gap is no fault of the clock: {}", report.verdict);
    }
    // Less than 10 us does not count as a gap.
    let report = machine(1).test(20, Fault::Gap { every: 5_000, ns: 9_000, dispatched: true });
    assert_eq!(report.gaps.all().count, 0);
}

#[test]
fn without_permission_to_bind_threads_a_note_says_what_was_not_tested() {
    let mut machine = machine(2);
    machine.refused = vec![0, 1];
    let report = machine.test(20, Fault::Back { every: 1_000, by: 520, on: None });
    assert!(report.notes.iter().any(|note| note.contains("could not bind")), "{:?}", report.notes);
    assert!(report.processors.is_empty() && servers(&report).pairs.is_empty());
    assert_eq!(kinds(&report), [FaultKind::Back]);
}

#[test]
fn with_one_processor_a_note_says_that_agreement_was_not_tested() {
    let report = machine(1).test(20, Fault::None);
    assert!(
        report.notes.iter().any(|note| note.contains("only one processor")),
        "{:?}",
        report.notes
    );
    assert!(!report.verdict.contains("agree"), "{}", report.verdict);
}
