// SPDX-License-Identifier: PostgreSQL
//! Advice about slow clocks and about gaps.

use crate::report::Report;
use crate::text::ns;

/// Share of the time taken by others from which the report mentions it.
const TAKEN_SHARE: f64 = 0.02;
/// A reading that takes longer than this is a system call, s.
const SYSTEM_CALL_SECONDS: f64 = 150e-9;

/// Advice for the reader of a report.
pub(crate) fn advice(report: &Report) -> Vec<String> {
    let mut advice = Vec::new();
    let system = &report.system;
    let source = system.clock_source.as_deref().unwrap_or("unknown");
    // Other processors have only one source, which is a good one.
    if cfg!(target_arch = "x86_64") && source != "tsc" {
        let why = match source {
            "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "xen" => {
                "every reading takes a system call or longer"
            }
            _ => {
                "reading it costs more than reading the TSC, and pg_tally cannot use the TSC either"
            }
        };
        let remedy = if system.available.iter().any(|name| name == "tsc") {
            "tsc is available: run echo tsc > \
             /sys/devices/system/clocksource/clocksource0/current_clocksource, and add \
             clocksource=tsc to the kernel's command line to keep it after a restart"
                .to_string()
        } else {
            let given_up = system.given_up.as_ref().map(|text| format!(" ({text})"));
            let hypervisor = match system.virtual_machine {
                true => ", and ask the operator of the hypervisor for an invariant TSC",
                false => "",
            };
            format!(
                "tsc is not available here{}: search the kernel's log for \"tsc\"{hypervisor}",
                given_up.unwrap_or_default()
            )
        };
        advice.push(format!("the clock source is {source}: {why}; {remedy}"));
    }
    let slow = |seconds: f64| seconds > SYSTEM_CALL_SECONDS;
    let server = report.used_by("server");
    if source == "tsc" && server.is_some_and(|clock| slow(clock.loop_cost.typical_seconds)) {
        advice.push(
            "the clock source is tsc, yet reading it takes as long as a system call: the kernel \
             may have been started with vdso=0, or something traces or filters system calls"
                .into(),
        );
    }
    let gaps = &report.gaps;
    let share = |seconds: f64| seconds / gaps.watched_seconds.max(1e-9);
    if share(gaps.scheduler.seconds) > TAKEN_SHARE {
        advice.push(format!(
            "other threads ran on the tested processors for {:.1} % of the time: test again on a \
             quiet machine",
            100.0 * share(gaps.scheduler.seconds)
        ));
    }
    if share(gaps.hypervisor.seconds) > TAKEN_SHARE {
        advice.push(format!(
            "interrupts and the hypervisor took {:.1} % of the time, up to {} at once: these gaps \
             lengthen the server's waits, and no server setting avoids them",
            100.0 * share(gaps.hypervisor.seconds),
            ns(gaps.hypervisor.longest_seconds)
        ));
    }
    advice
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaps::{GapSum, Gaps};
    use crate::system::System;

    fn report(source: &str, available: &[&str]) -> Report {
        let mut system = System::read(std::path::Path::new("/no/such/root"));
        system.clock_source = Some(source.into());
        system.available = available.iter().map(|name| name.to_string()).collect();
        Report {
            fit: true,
            verdict: String::new(),
            advice: Vec::new(),
            elapsed_seconds: 1.0,
            notes: Vec::new(),
            system,
            processors: Vec::new(),
            migrations: 0,
            sources: Vec::new(),
            refused: Vec::new(),
            gaps: Gaps { watched_seconds: 10.0, ..Gaps::default() },
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn a_slow_clock_source_has_a_remedy_that_works_here() {
        assert_eq!(advice(&report("tsc", &["tsc", "hpet"])), [""; 0]);
        let found = advice(&report("hpet", &["tsc", "hpet"])).concat();
        assert!(found.contains("is hpet: every reading") && found.contains("echo tsc"), "{found}");
        let mut report = report("kvm-clock", &["kvm-clock"]);
        let found = advice(&report).concat();
        assert!(found.contains("costs more") && found.contains("not available here:"), "{found}");
        assert!(!found.contains("hypervisor"), "{found}");
        report.system.given_up = Some("the skew is too large".into());
        report.system.virtual_machine = true;
        let found = advice(&report).concat();
        assert!(found.contains("here (the skew is too large)"), "{found}");
        assert!(found.contains("operator of the hypervisor"), "{found}");
    }

    #[test]
    fn time_taken_by_others_is_named_with_its_share() {
        let gap = |seconds| GapSum { count: 3, seconds, longest_seconds: 0.05 };
        let of = |scheduler, hypervisor| {
            let mut report = report("tsc", &[]);
            (report.gaps.scheduler, report.gaps.hypervisor) = (gap(scheduler), gap(hypervisor));
            advice(&report)
        };
        // The limit is 2 % of 10 s.
        assert_eq!(of(0.2, 0.2), [""; 0]);
        let found = of(0.25, 0.0);
        assert!(found.len() == 1 && found[0].contains("for 2.5 % of the time: test"), "{found:?}");
        let found = of(0.0, 1.0);
        let expected = "hypervisor took 10.0 % of the time, up to 50.0 ms at once";
        assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
    }
}
