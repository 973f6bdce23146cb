// SPDX-License-Identifier: PostgreSQL
//! The clocks of this machine: whatever they are like, the figures are consistent.

use std::time::Duration;

use clock::{test_clocks, Platform, ThisMachine};

#[test]
fn the_report_of_this_machine_is_consistent() {
    let mut last = 0.0;
    let report = test_clocks(Duration::from_millis(500), &mut |what, done| {
        assert!(!what.is_empty());
        assert!(done >= last && done <= 1.0, "{done} after {last}");
        last = done;
    });
    let processors = ThisMachine.processors().unwrap();
    assert_eq!(report.processors, processors);
    let pairs = processors.len() * (processors.len() - 1) / 2;
    let server = report.used_by("server").unwrap();
    assert_eq!(server.name, "monotonic");
    for clock in &report.sources {
        let cost = &clock.loop_cost;
        assert!(cost.readings >= 1_000, "{clock:?}");
        assert_eq!(cost.powers_of_two.iter().sum::<u64>(), cost.readings, "{}", clock.name);
        let rising = [
            cost.p50_seconds,
            cost.p90_seconds,
            cost.p99_seconds,
            cost.p999_seconds,
            cost.max_seconds,
        ];
        assert!(rising.windows(2).all(|pair| pair[0] <= pair[1]), "{clock:?}");
        assert!(cost.typical_seconds > 0.0 && cost.typical_seconds < 1e-3, "{clock:?}");
        assert_eq!(clock.processors.len(), processors.len());
        match clock.migrating {
            Some(_) => assert_eq!(clock.pairs.len(), pairs, "{}", clock.name),
            None => assert!(clock.pairs.is_empty() && clock.name.ends_with("_cpu")),
        }
        for pair in &clock.pairs {
            assert!(pair.rounds > 0 && pair.min_offset_seconds.is_some(), "{pair:?}");
        }
    }
    assert!(report.gaps.watched_seconds > 0.0 && report.migrations > 0);
}

/// False alarm: a rate is off by more than the error that its report states.
#[test]
#[ignore = "verify: rates of this machine's clocks"]
fn verify_the_rates_of_this_machines_clocks() {
    let report = test_clocks(Duration::from_millis(500), &mut |_, _| {});
    // A clock in nanoseconds has its rate, but for the adjustments of a time service.
    let rate = report.used_by("server").unwrap().rate.as_ref().unwrap();
    assert!(rate.ppm.unwrap().abs() < 1_000.0 + rate.error_ppm, "{rate:?}");
    let (Some(counter), Some(clock)) = (&report.system.counter, report.source("rdtsc")) else {
        return;
    };
    if report.system.clock_source.as_deref() == Some("tsc") {
        // Both are the same counter: one read directly, the other by the kernel.
        let found = clock.ticks_per_second;
        let allowed = 20e-6 + clock.rate.as_ref().unwrap().error_ppm * 1e-6;
        assert!((found / counter.hz - 1.0).abs() < allowed, "{found} {counter:?}");
    }
}
