// SPDX-License-Identifier: PostgreSQL
//! What to do about a clock that is slow, and about gaps.

use crate::report::Report;
use crate::text::ns;

/// The share of the time that others may take before the report mentions it.
const TAKEN_SHARE: f64 = 0.02;
/// A reading that takes longer, s, is a system call.
const SYSTEM_CALL_SECONDS: f64 = 150e-9;

/// Advice for the reader of a report.
pub(crate) fn advice(report: &Report) -> Vec<String> {
    let mut advice = Vec::new();
    let system = &report.system;
    let source = system.clock_source.as_deref().unwrap_or("unknown");
    // Other processors have one source only, and it is a good one.
    if cfg!(target_arch = "x86_64") && source != "tsc" {
        let why = match source {
            "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "xen" => {
                "every reading is a system call, or worse"
            }
            _ => "it costs more than the processor's counter, and pg_tally cannot use that either",
        };
        let remedy = if system.available.iter().any(|name| name == "tsc") {
            "tsc is available: echo tsc > \
             /sys/devices/system/clocksource/clocksource0/current_clocksource, and for good \
             clocksource=tsc on the kernel's command line"
                .to_string()
        } else {
            let given_up = system.given_up.as_ref().map(|text| format!(" ({text})"));
            let hypervisor = match system.virtual_machine {
                true => ", and ask the operator of the hypervisor for an invariant TSC",
                false => "",
            };
            format!(
                "tsc is not available here{}: look for \"tsc\" in the kernel's log{hypervisor}",
                given_up.unwrap_or_default()
            )
        };
        advice.push(format!("the clock source is {source}: {why}; {remedy}"));
    }
    let slow = |seconds: f64| seconds > SYSTEM_CALL_SECONDS;
    let server = report.used_by("server");
    if source == "tsc" && server.is_some_and(|clock| slow(clock.loop_cost.typical_seconds)) {
        advice.push(
            "the clock source is tsc, yet a reading takes as long as a system call: the kernel \
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
            "interrupts and the hypervisor took {:.1} % of the time, up to {} at once: the \
             server's waits get longer by such gaps, and none of its settings helps",
            100.0 * share(gaps.hypervisor.seconds),
            ns(gaps.hypervisor.longest_seconds)
        ));
    }
    advice
}
