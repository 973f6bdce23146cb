// SPDX-License-Identifier: PostgreSQL
//! The result, as text and as JSON.

use std::io::{self, Write};

use ::clock::report::{ClockReport, Pair};
use ::clock::{GapSum, Report};
use serde::Serialize;

use super::forecast::Forecast;
use super::verify::{Check, EstimateVerdict, Verified};
use view::table::Table;
use view::units::{duration, maybe_duration, whole};

/// The result, as `--json` prints it.
#[derive(Serialize)]
pub(super) struct ClockTest {
    #[serde(flatten)]
    pub(super) report: Report,
    pub(super) forecasts: Vec<Forecast>,
    pub(super) verified: Option<Verified>,
}

/// Maximum number of CPU pairs to list.
const PAIRS_SHOWN: usize = 10;

/// Writes the whole result, the verdict last.
pub fn text(outcome: &ClockTest, out: &mut impl Write) -> io::Result<()> {
    let report = &outcome.report;
    for line in machine(report).lines() {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    readings(report, out)?;
    writeln!(out)?;
    agreement(report, out)?;
    histogram(report, out)?;
    pairs(report, out)?;
    gaps(report, out)?;
    writeln!(out)?;
    forecasts(&outcome.forecasts, out)?;
    if let Some(verified) = &outcome.verified {
        writeln!(out)?;
        checks(verified, out)?;
    }
    writeln!(out)?;
    writeln!(out, "Verdict: {}", report.verdict)?;
    for advice in &report.advice {
        writeln!(out, "Advice: {advice}")?;
    }
    for refused in &report.refused {
        writeln!(out, "Not tested: {}: {}", refused.name, refused.reason)?;
    }
    for note in &report.notes {
        writeln!(out, "Note: {note}")?;
    }
    Ok(())
}

fn machine(report: &Report) -> String {
    let system = &report.system;
    let source = system.clock_source.as_deref().unwrap_or("unknown");
    let mut line = format!("Clock source {source}");
    if !system.available.is_empty() {
        line += &format!(" (available: {})", system.available.join(", "));
    }
    if let Some(counter) = &system.counter {
        line +=
            &format!("; counter at {:.3} MHz according to {}", counter.hz / 1e6, counter.source);
        if !system.steady_counter {
            line += ", not constant in all power states";
        }
    }
    if system.virtual_machine {
        line += "; a virtual machine";
    }
    // A counter's rate is measured; a tick of a kernel clock is one nanosecond by definition.
    let counter = report.sources.iter().find(|clock| clock.ticks_per_second != 1e9);
    if let Some((clock, rate)) = counter.and_then(|clock| Some((clock, clock.rate.as_ref()?))) {
        let mhz = clock.ticks_per_second / 1e6;
        line +=
            &format!("\n{} found at {mhz:.6} MHz ± {:.6}", clock.name, mhz * rate.error_ppm * 1e-6);
    }
    let tested = match report.processors.len() {
        0 => "on CPUs chosen by the scheduler".into(),
        1 => "1 processor".into(),
        n => format!("{n} processors"),
    };
    format!("{line}\n{tested} tested in {}", duration(report.elapsed_seconds))
}

/// The cost of a clock reading.
fn readings(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let mut table = Table::with_headings(
        &[
            "CLOCK", "USED BY", "READING", "MEAN", "p50", "p90", "p99", "p99.9", "MAX", "STEP",
            "EQUAL",
        ],
        2..11,
    );
    for (title, rank) in [("p90", 4), ("p99.9", 3), ("EQUAL", 2), ("MEAN", 1)] {
        let column = table.columns.iter_mut().find(|column| column.title == title);
        column.into_iter().for_each(|column| column.expendable = rank);
    }
    for clock in &report.sources {
        let cost = &clock.loop_cost;
        let mut row = vec![clock.name.clone(), users(clock)];
        row.extend(
            [
                cost.typical_seconds,
                cost.mean_seconds,
                cost.p50_seconds,
                cost.p90_seconds,
                cost.p99_seconds,
                cost.p999_seconds,
                cost.max_seconds,
            ]
            .map(duration),
        );
        row.push(maybe_duration(clock.resolution.min_step_seconds));
        row.push(match clock.resolution.unchanged_share {
            0.0 => "0".into(),
            share => format!("{:.1} %", 100.0 * share),
        });
        table.push_texts(row);
    }
    out.write_all(table.for_stdout().as_bytes())
}

fn users(clock: &ClockReport) -> String {
    clock.used_by.join(", ")
}

/// Backward steps, differences between CPUs, and rates.
fn agreement(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let mut table = Table::with_headings(
        &["CLOCK", "BACK", "MIGRATING", "WARPS", "CPU PAIRS DIFFER BY", "RATE (ppm)", "FAULTS"],
        1..6,
    );
    for clock in &report.sources {
        let pairs = &clock.pairs;
        let min = pairs.iter().filter_map(|pair| pair.min_offset_seconds).reduce(f64::min);
        let max = pairs.iter().filter_map(|pair| pair.max_offset_seconds).reduce(f64::max);
        let rate = clock.rate.as_ref().map(|rate| match rate.ppm {
            Some(ppm) => format!("{ppm:+.3} ± {:.3}", rate.error_ppm),
            None => format!("? ± {:.3}", rate.error_ppm),
        });
        let dash = || "-".to_string();
        table.push_texts(vec![
            clock.name.clone(),
            clock.backward.count.to_string(),
            clock.migrating.map_or_else(dash, |back| back.count.to_string()),
            match pairs.len() {
                0 => dash(),
                _ => pairs.iter().map(|pair| pair.warps.count).sum::<u64>().to_string(),
            },
            min.zip(max).map_or_else(dash, |(min, max)| bounds(min, max)),
            rate.unwrap_or_else(dash),
            clock.faults.iter().map(|fault| fault.kind.word()).collect::<Vec<_>>().join(", "),
        ]);
    }
    out.write_all(table.for_stdout().as_bytes())
}

fn bounds(min: f64, max: f64) -> String {
    format!("{} .. {}", signed(min), signed(max))
}

fn signed(seconds: f64) -> String {
    let sign = if seconds > 0.0 { "+" } else { "" };
    format!("{sign}{}", duration(seconds))
}

/// Reading costs of the clocks in use, by powers of two.
fn histogram(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let mut clocks: Vec<&ClockReport> = Vec::new();
    for clock in ["server", "pgtally"].into_iter().filter_map(|user| report.used_by(user)) {
        if !clocks.iter().any(|other| other.name == clock.name) {
            clocks.push(clock);
        }
    }
    let mut headings = vec!["READING TOOK".to_string()];
    for clock in &clocks {
        headings.extend([clock.name.clone(), format!("{} COUNT", clock.name)]);
    }
    let mut table = Table::with_headings(&headings, 0..headings.len());
    let powers = |clock: &ClockReport, at: usize| clock.loop_cost.powers_of_two.get(at).copied();
    let last = clocks.iter().map(|clock| clock.loop_cost.powers_of_two.len()).max().unwrap_or(0);
    let first = (0..last).find(|at| clocks.iter().any(|clock| powers(clock, *at) > Some(0)));
    for at in first.unwrap_or(0)..last {
        let mut row = vec![format!("< {}", duration((1u64 << at) as f64 * 1e-9))];
        for clock in &clocks {
            let count = powers(clock, at).unwrap_or(0);
            let share = 100.0 * count as f64 / clock.loop_cost.readings.max(1) as f64;
            row.extend([format!("{share:.5} %"), whole(count)]);
        }
        table.push_texts(row);
    }
    if clocks.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    out.write_all(table.for_stdout().as_bytes())
}

/// CPU pairs, by the server's clock; if there are many, those with the largest differences.
fn pairs(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let Some(clock) = report.used_by("server").filter(|clock| clock.pairs.len() > 1) else {
        return Ok(());
    };
    let reach = |pair: &Pair| {
        let [min, max] =
            [pair.min_offset_seconds, pair.max_offset_seconds].map(|s| s.unwrap_or(0.0).abs());
        min.max(max)
    };
    let mut pairs: Vec<&Pair> = clock.pairs.iter().collect();
    if pairs.len() > PAIRS_SHOWN {
        pairs.sort_by(|a, b| {
            (b.proven, b.warps.count)
                .cmp(&(a.proven, a.warps.count))
                .then(reach(b).total_cmp(&reach(a)))
        });
    }
    writeln!(out)?;
    let mut table = Table::with_headings(
        &["PROCESSORS", "DIFFER BY", "ROUNDS", "WARPS", "OF", clock.name.as_str()],
        1..5,
    );
    for pair in pairs.iter().take(PAIRS_SHOWN) {
        let [one, other] = pair.processors;
        let differ = pair.min_offset_seconds.zip(pair.max_offset_seconds);
        table.push_texts(vec![
            format!("{one} - {other}"),
            differ.map_or("-".into(), |(min, max)| bounds(min, max)),
            whole(pair.rounds),
            pair.warps.count.to_string(),
            whole(pair.readings),
            if pair.proven { "skewed".into() } else { String::new() },
        ]);
    }
    out.write_all(table.for_stdout().as_bytes())?;
    if pairs.len() > PAIRS_SHOWN {
        writeln!(
            out,
            "({} more pairs with smaller differences: see --json)",
            pairs.len() - PAIRS_SHOWN
        )?;
    }
    Ok(())
}

/// Times in which this process did not run, by cause.
fn gaps(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let gaps = &report.gaps;
    if gaps.watched_seconds == 0.0 {
        return Ok(());
    }
    writeln!(out)?;
    let heading = format!("GAPS IN {}", duration(gaps.watched_seconds));
    let mut table = Table::with_headings(&[&heading, "COUNT", "TOTAL", "SHARE", "LONGEST"], 1..5);
    let mut add = |cause: &str, gap: GapSum| {
        table.push_texts(vec![
            cause.into(),
            whole(gap.count),
            duration(gap.seconds),
            format!("{:.2} %", 100.0 * gap.seconds / gaps.watched_seconds),
            duration(gap.longest_seconds),
        ]);
    };
    add("scheduler (other processes ran)", gaps.scheduler);
    add("hypervisor or interrupts", gaps.hypervisor);
    if gaps.unknown.count > 0 {
        add("unknown (one of these)", gaps.unknown);
    }
    out.write_all(table.for_stdout().as_bytes())
}

/// The estimated cost of timing.
fn forecasts(forecasts: &[Forecast], out: &mut impl Write) -> io::Result<()> {
    let mut table = Table::with_headings(
        &["TIMING COSTS HERE", "CLOCK", "READINGS", "READING TIME", "OTHER", "TOTAL"],
        2..6,
    );
    for forecast in forecasts {
        table.push_texts(vec![
            forecast.what.clone(),
            forecast.clock.clone(),
            whole(forecast.readings as u64),
            duration(forecast.clock_seconds),
            maybe_duration(forecast.besides_seconds),
            duration(forecast.clock_seconds + forecast.besides_seconds.unwrap_or(0.0)),
        ]);
    }
    out.write_all(table.for_stdout().as_bytes())
}

/// The estimates, compared with measurements on a server.
fn checks(verified: &Verified, out: &mut impl Write) -> io::Result<()> {
    let mut table =
        Table::with_headings(&["ON A SCRATCH SERVER", "ESTIMATED", "MEASURED", "RATIO", ""], 1..4);
    for check in &verified.checks {
        table.push_texts(vec![
            check.what.into(),
            duration(check.estimated_seconds),
            format!(
                "{} ± {}",
                duration(check.measured_seconds),
                duration(check.half_width_seconds)
            ),
            format!("{:.2}", check.measured_seconds / check.estimated_seconds),
            verdict(check).into(),
        ]);
    }
    out.write_all(table.for_stdout().as_bytes())?;
    let explain = verified.explain;
    writeln!(
        out,
        "{}; an estimate holds within a factor of {}; CPU time, 95 % intervals",
        verified.server, verified.tolerance,
    )?;
    writeln!(
        out,
        "the count takes {}; EXPLAIN (ANALYZE, TIMING OFF) adds {}, EXPLAIN ANALYZE adds {}",
        duration(explain.plain_seconds),
        duration(explain.counting_seconds),
        duration(explain.analyze_seconds),
    )?;
    for note in &verified.notes {
        writeln!(out, "Note: {note}")?;
    }
    Ok(())
}

fn verdict(check: &Check) -> &'static str {
    match check.verdict {
        EstimateVerdict::Holds => "holds",
        EstimateVerdict::Fails => "does not hold",
        EstimateVerdict::Inconclusive => "inconclusive",
    }
}
