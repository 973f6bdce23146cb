// SPDX-License-Identifier: PostgreSQL
//! What is wrong with a clock, whether that matters, and what to do about it.

use serde::Serialize;

use crate::report::{ClockReport, Pair, Report};
use crate::sources::{Refused, Roles};

/// A clock is slow when more than a tenth of the readings take longer, s: PostgreSQL's own measure
/// (pg_test_timing: more than 90 % should take less than a microsecond).
pub const SLOW_SECONDS: f64 = 1e-6;
/// It is coarse when it cannot tell this apart, s: what a page from the kernel's cache takes.
pub const COARSE_SECONDS: f64 = 1e-6;
/// A rate further off than this, millionths, is wrong: a time service sets a clock by no more
/// than 500.
pub const WRONG_PPM: f64 = 500.0;
/// A rate that is not known better than this, millionths, is unsteady.
pub const UNSTEADY_PPM: f64 = 200.0;
/// Processors that are known to agree within this, s, agree.
const TOLD_APART_SECONDS: f64 = 2e-6;
/// The share of the time that others may take before it is worth a word.
const TAKEN_SHARE: f64 = 0.02;

/// What kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// It cannot be read.
    Refused,
    /// It went back on one processor.
    Back,
    /// It went back when a thread changed the processor.
    BackMigrating,
    /// Processors disagree.
    Skewed,
    /// Its steps are too large.
    Coarse,
    /// Reading it takes long.
    Slow,
    /// It goes faster or slower than it should.
    Wrong,
    /// It goes now faster, now slower.
    Unsteady,
}

impl FaultKind {
    /// In a word or two.
    pub fn word(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Back => "goes back",
            Self::BackMigrating => "goes back migrating",
            Self::Skewed => "skewed",
            Self::Coarse => "coarse",
            Self::Slow => "slow",
            Self::Wrong => "wrong rate",
            Self::Unsteady => "unsteady",
        }
    }
}

/// Something wrong.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// In words, with figures.
    pub text: String,
}

/// What is wrong with this one.
pub fn faults(clock: &ClockReport) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut add = |kind, text| faults.push(Fault { kind, text });
    let back = clock.backward;
    if back.count > 0 {
        let who: Vec<String> = clock
            .processors
            .iter()
            .filter(|on| on.backward.count > 0)
            .filter_map(|on| on.processor.map(|processor| processor.to_string()))
            .collect();
        let place = match who.len() {
            0 => String::new(),
            1 => format!(" on processor {}", who[0]),
            _ => format!(" on processors {}", who.join(", ")),
        };
        add(
            FaultKind::Back,
            format!(
                "went back {}{place}, by {} at most",
                times(back.count),
                ns(back.largest_seconds)
            ),
        );
    }
    if let Some(back) = clock.migrating.filter(|back| back.count > 0) {
        add(
            FaultKind::BackMigrating,
            format!(
                "went back {} when a thread changed its processor, by {} at most",
                times(back.count),
                ns(back.largest_seconds)
            ),
        );
    }
    if let Some(text) = skew(&clock.pairs) {
        add(FaultKind::Skewed, text);
    }
    match clock.resolution.min_step_seconds {
        // Without equal readings the least step is what a reading takes.
        Some(step) if step <= COARSE_SECONDS || clock.resolution.unchanged_share == 0.0 => {}
        Some(step) => add(FaultKind::Coarse, format!("advances by {} at least", ns(step))),
        None => add(FaultKind::Coarse, "stood still all the time".into()),
    }
    if clock.loop_cost.p90_seconds >= SLOW_SECONDS {
        add(
            FaultKind::Slow,
            format!("one reading in ten takes {} or more", ns(clock.loop_cost.p90_seconds)),
        );
    }
    if let Some(rate) = &clock.rate {
        // A coarse clock's rate is as uncertain as its steps are large.
        let least = clock.resolution.min_step_seconds.unwrap_or(0.0);
        if rate.error_ppm > UNSTEADY_PPM && least <= COARSE_SECONDS {
            add(FaultKind::Unsteady, format!("is up to {} off an even pace", ns(rate.off_seconds)));
        }
        if let Some(ppm) = rate.ppm.filter(|ppm| ppm.abs() - rate.error_ppm > WRONG_PPM) {
            add(FaultKind::Wrong, format!("goes {ppm:+.0} ppm off its rate"));
        }
    }
    faults
}

/// The worst pair, if any two processors disagree.
fn skew(pairs: &[Pair]) -> Option<String> {
    let size = |pair: &Pair| {
        let ahead = pair.min_offset_seconds.unwrap_or(0.0).max(0.0);
        let behind = -pair.max_offset_seconds.unwrap_or(0.0).min(0.0);
        pair.warps.largest_seconds.max(if pair.proven { ahead.max(behind) } else { 0.0 })
    };
    let wrong: Vec<&Pair> =
        pairs.iter().filter(|pair| pair.proven || pair.warps.count > 0).collect();
    let worst = wrong.iter().max_by(|a, b| size(a).total_cmp(&size(b)))?;
    let [one, other] = worst.processors;
    let more = match wrong.len() {
        1 => String::new(),
        n => format!(", the worst of {n} pairs"),
    };
    Some(format!(
        "differs by {} or more between processors {one} and {other}{more} ({} of {} readings \
         below an earlier one)",
        ns(size(worst)),
        worst.warps.count,
        worst.readings
    ))
}

/// The judgement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// Whether both clocks that matter can be relied on.
    pub fit: bool,
    /// In a sentence.
    pub sentence: String,
}

/// Judge the clocks that the server and pg_tally use; what is wrong with others does not matter.
pub fn judge(tested: &[ClockReport], refused: &[Refused], roles: &Roles) -> Judged {
    let mut users = vec![(roles.server.as_str(), "the server's clock")];
    if roles.pgtally == roles.server {
        users[0].1 = "the server's clock and pg_tally's";
    } else {
        users.push((roles.pgtally.as_str(), "pg_tally's clock"));
    }
    let mut wrong = Vec::new();
    let mut right = Vec::new();
    let mut apart: Option<f64> = None;
    for (name, whose) in users {
        if let Some(no) = refused.iter().find(|no| no.name == name) {
            wrong.push(format!("{name}, {whose}, cannot be read ({})", no.reason));
        }
        let Some(clock) = tested.iter().find(|clock| clock.name == name) else { continue };
        for fault in &clock.faults {
            wrong.push(format!("{name}, {whose}, {}", fault.text));
        }
        right.push(format!(
            "{name} ({whose}) takes {} to read",
            ns(clock.loop_cost.typical_seconds)
        ));
        let bounds =
            clock.pairs.iter().flat_map(|pair| [pair.min_offset_seconds, pair.max_offset_seconds]);
        apart = bounds.flatten().map(f64::abs).chain(apart).reduce(f64::max);
    }
    if !wrong.is_empty() {
        return Judged { fit: false, sentence: format!("unfit: {}", wrong.join("; ")) };
    }
    let none = if right.len() > 1 { "neither" } else { "it never" };
    let agree = match apart {
        None => String::new(),
        Some(apart) if apart <= TOLD_APART_SECONDS => {
            format!(", and processors agree within {}", ns(apart))
        }
        Some(apart) => format!(
            ", and processors are not found to differ (but that is known within {} only; a quiet \
             machine or more --seconds tell more)",
            ns(apart)
        ),
    };
    let sentence = format!("fit: {}; {none} went back{agree}", right.join(", "));
    Judged { fit: true, sentence }
}

/// What the reader might do.
pub fn advice(report: &Report) -> Vec<String> {
    let mut advice = Vec::new();
    let system = &report.system;
    let source = system.clock_source.as_deref().unwrap_or("unknown");
    let tsc = system.available.iter().any(|name| name == "tsc");
    // Other processors have one source only, and it is a good one.
    if cfg!(target_arch = "x86_64") && source != "tsc" {
        let why = match source {
            "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies" | "xen" => {
                "every reading is a system call, or worse"
            }
            _ => "it costs more than the processor's counter, and pg_tally cannot use that either",
        };
        advice.push(if tsc {
            format!(
                "the clock source is {source}: {why}; tsc is available: echo tsc > \
                 /sys/devices/system/clocksource/clocksource0/current_clocksource, and for good \
                 clocksource=tsc on the kernel's command line"
            )
        } else {
            let given_up =
                system.given_up.as_ref().map(|text| format!(" ({text})")).unwrap_or_default();
            format!(
                "the clock source is {source}: {why}; tsc is not available here{given_up}: look \
                 for \"tsc\" in the kernel's log{}",
                if system.virtual_machine {
                    ", and ask who runs the hypervisor for an invariant TSC"
                } else {
                    ""
                }
            )
        });
    }
    let servers = report.used_by("server");
    if source == "tsc" && servers.is_some_and(|clock| clock.loop_cost.typical_seconds > 150e-9) {
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
            "others ran on the tested processors for {:.1} % of the time: figures of a quiet \
             machine are better",
            100.0 * share(gaps.scheduler.seconds)
        ));
    }
    if share(gaps.hypervisor.seconds) > TAKEN_SHARE {
        advice.push(format!(
            "interrupts and the hypervisor took {:.1} % of the time, {} at once: waits of the \
             server are longer by such gaps, and no setting of it helps",
            100.0 * share(gaps.hypervisor.seconds),
            ns(gaps.hypervisor.longest_seconds)
        ));
    }
    advice
}

fn times(count: u64) -> String {
    match count {
        1 => "once".into(),
        n => format!("{n} times"),
    }
}

/// Seconds with the unit that suits them.
fn ns(seconds: f64) -> String {
    match seconds {
        s if s < 999.5e-9 => format!("{:.0} ns", s * 1e9),
        s if s < 999.5e-6 => format!("{:.1} us", s * 1e6),
        s if s < 999.5e-3 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.1} s"),
    }
}
