// SPDX-License-Identifier: PostgreSQL
//! Turns findings into a report: the faults of each clock, and whether the clocks in use are fit.

use crate::advice::advice;
use crate::fault::{Fault, FaultKind};
use crate::measure::Findings;
use crate::report::{ClockReport, Pair, Report};
use crate::roles::{Refused, Roles};
use crate::source::Source;
use crate::system::System;
use crate::text::{ns, times};

/// A clock is slow if more than a tenth of its readings take longer than this, s: PostgreSQL's own criterion
/// (pg_test_timing: more than 90 % should take less than a microsecond).
pub const SLOW_SECONDS: f64 = 1e-6;
/// A clock is coarse if its steps are larger than this, s: the time to read a page from the kernel's cache.
pub const COARSE_SECONDS: f64 = 1e-6;
/// A rate that is off by more than this is wrong, ppm: a time service adjusts a clock by at most 500.
pub const WRONG_PPM: f64 = 500.0;
/// A rate with a larger error than this is unsteady, ppm.
pub const UNSTEADY_PPM: f64 = 200.0;
/// Processors known to agree within this count as equal, s.
const AGREE_SECONDS: f64 = 2e-6;

impl Report {
    /// The report on these sources.
    pub fn new(
        sources: &[Box<dyn Source>],
        findings: &Findings,
        mut refused: Vec<Refused>,
        roles: &Roles,
        system: System,
    ) -> Self {
        let mut notes = findings.notes.clone();
        let tested = findings.processors.len() as u32;
        if let Some(online) = system.online.filter(|online| (1..*online).contains(&tested)) {
            notes.push(format!(
                "{tested} of {online} processors were tested: this process may not use the others"
            ));
        }
        let nominal = system.counter.as_ref().map(|counter| counter.hz);
        let mut clocks = Vec::new();
        for (source, measured) in sources.iter().zip(&findings.sources) {
            match ClockReport::new(source.as_ref(), measured, roles, nominal) {
                Some(mut clock) => {
                    clock.faults = faults(&clock);
                    clocks.push(clock);
                }
                None => refused.push(Refused {
                    name: source.name().into(),
                    reason:
                        "the length of its tick is unknown, since there is no clock to compare it with"
                            .into(),
                }),
            }
        }
        let (fit, verdict) = assess(&clocks, &refused, roles);
        let mut report = Self {
            fit,
            verdict,
            advice: Vec::new(),
            elapsed_seconds: findings.elapsed.as_secs_f64(),
            notes,
            system,
            processors: findings.processors.clone(),
            migrations: findings.migrations,
            sources: clocks,
            refused,
            gaps: findings.gaps.clone(),
        };
        report.advice = advice(&report);
        report
    }
}

/// The faults of a clock.
fn faults(clock: &ClockReport) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut add = |kind, text| faults.push(Fault { kind, text });
    let back = clock.backward;
    if back.count > 0 {
        let on: Vec<String> = clock
            .processors
            .iter()
            .filter(|on| on.backward.count > 0)
            .filter_map(|on| Some(on.processor?.to_string()))
            .collect();
        let on = match on.len() {
            0 => String::new(),
            1 => format!(" on processor {}", on[0]),
            _ => format!(" on processors {}", on.join(", ")),
        };
        let largest = ns(back.largest_seconds);
        add(FaultKind::Back, format!("went back {}{on}, by up to {largest}", times(back.count)));
    }
    if let Some(back) = clock.migrating.filter(|back| back.count > 0) {
        let (count, largest) = (times(back.count), ns(back.largest_seconds));
        add(
            FaultKind::BackMigrating,
            format!(
                "went back {count} when a thread moved to another processor, by up to {largest}"
            ),
        );
    }
    if let Some(text) = skew(&clock.pairs) {
        add(FaultKind::Skewed, text);
    }
    match clock.resolution.min_step_seconds {
        // Without equal readings, the shortest step is the time of a reading.
        Some(step) if step <= COARSE_SECONDS || clock.resolution.unchanged_share == 0.0 => {}
        Some(step) => add(FaultKind::Coarse, format!("advances in steps of at least {}", ns(step))),
        None => add(FaultKind::Coarse, "did not advance".into()),
    }
    let p90 = clock.loop_cost.p90_seconds;
    if p90 >= SLOW_SECONDS {
        add(FaultKind::Slow, format!("one reading in ten takes {} or more", ns(p90)));
    }
    if let Some(rate) = &clock.rate {
        // The rate of a coarse clock is as uncertain as its steps are large.
        let step = clock.resolution.min_step_seconds.unwrap_or(0.0);
        if rate.error_ppm > UNSTEADY_PPM && step <= COARSE_SECONDS {
            let off = ns(rate.off_seconds);
            add(FaultKind::Unsteady, format!("deviates from a steady rate by up to {off}"));
        }
        if let Some(ppm) = rate.ppm.filter(|ppm| ppm.abs() - rate.error_ppm > WRONG_PPM) {
            add(FaultKind::Wrong, format!("runs {ppm:+.0} ppm off its rate"));
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
         lower than an earlier one)",
        ns(size(worst)),
        worst.warps.count,
        worst.readings
    ))
}

/// Whether the clocks of the server and pg_tally are fit, and why; faults of other clocks do not
/// matter.
fn assess(clocks: &[ClockReport], refused: &[Refused], roles: &Roles) -> (bool, String) {
    let mut users = vec![(roles.server.as_str(), "the server's clock")];
    if roles.pgtally == roles.server {
        users[0].1 = "the server's clock and pg_tally's";
    } else {
        users.push((roles.pgtally.as_str(), "pg_tally's clock"));
    }
    let (mut wrong, mut right) = (Vec::new(), Vec::new());
    let mut apart: Option<f64> = None;
    for (name, whose) in users {
        if let Some(no) = refused.iter().find(|no| no.name == name) {
            wrong.push(format!("{name}, {whose}, cannot be read ({})", no.reason));
        }
        let Some(clock) = clocks.iter().find(|clock| clock.name == name) else { continue };
        wrong.extend(clock.faults.iter().map(|fault| format!("{name}, {whose}, {}", fault.text)));
        let cost = ns(clock.loop_cost.typical_seconds);
        right.push(format!("{name} ({whose}) takes {cost} to read"));
        let bounds =
            clock.pairs.iter().flat_map(|pair| [pair.min_offset_seconds, pair.max_offset_seconds]);
        apart = bounds.flatten().map(f64::abs).chain(apart).reduce(f64::max);
    }
    if !wrong.is_empty() {
        return (false, format!("unfit: {}", wrong.join("; ")));
    }
    let none = if right.len() > 1 { "neither" } else { "it never" };
    let agree = match apart {
        None => String::new(),
        Some(apart) if apart <= AGREE_SECONDS => {
            format!(", and processors agree within {}", ns(apart))
        }
        Some(apart) => format!(
            ", and processors agree within {}, the precision of this test (test on a quiet machine, or \
             with a longer --for)",
            ns(apart)
        ),
    };
    (true, format!("fit: {}; {none} went back{agree}", right.join(", ")))
}
