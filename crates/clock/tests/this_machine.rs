// SPDX-License-Identifier: PostgreSQL
//! The clocks of this machine, whose figures must be consistent whatever they are like.

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
        assert!(cost.typical_seconds > 0.0, "{clock:?}");
        assert_eq!(clock.processors.len(), processors.len());
        match clock.migrating {
            Some(_) => assert_eq!(clock.pairs.len(), pairs, "{}", clock.name),
            None => assert!(clock.pairs.is_empty() && clock.name.ends_with("_cpu")),
        }
        for pair in &clock.pairs {
            assert_eq!(pair.rounds > 0, pair.min_offset_seconds.is_some(), "{pair:?}");
        }
    }
    // A clock in nanoseconds has the right rate, except for the adjustments of a time service.
    let rate = server.rate.as_ref().unwrap();
    assert!(rate.ppm.unwrap().abs() < 1_000.0 + rate.error_ppm, "{rate:?}");
    assert!(report.gaps.watched_seconds > 0.0 && report.migrations > 0);
}
