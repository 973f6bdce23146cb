// SPDX-License-Identifier: PostgreSQL

//! The result as text and as JSON; both are described in docs/cost.md.

use std::fmt::Write;
use std::time::Duration;

use serde::Serialize;

use super::outcome::{CostOutcome, CostVerdict, Figure};
use super::runner::{CostPlan, Discarded, Record};
use crate::study::cost::contrast::Slice;
use crate::study::cost::CostOf;
use live::host::Host;
use view::measured::Measured;

/// The result, and all that is printed with it.
pub struct Result<'a> {
    pub plan: &'a CostPlan,
    pub record: &'a Record,
    pub outcome: &'a CostOutcome,
    pub host: &'a Host,
    pub server: &'a str,
    pub load: &'a str,
    pub unit: &'a str,
    pub commands_per_unit: f64,
    /// Percent.
    pub margin: f64,
}

#[derive(Serialize)]
struct CostJson<'a> {
    of: &'a str,
    level: segment::Level,
    server: &'a str,
    load: &'a str,
    unit: &'a str,
    cpu: Option<&'a Figure>,
    throughput: Option<&'a Figure>,
    placebo: Placebo<'a>,
    margin_percent: f64,
    verdict: CostVerdict,
    reason: &'a str,
    differs_from_zero: bool,
    off: SideJson,
    on: SideJson,
    rounds: Rounds,
    backends: Backends,
    seed: u64,
    slice_seconds: f64,
    discarded_seconds_per_slice: f64,
    reading_seconds: f64,
    elapsed_seconds: f64,
    interrupted: bool,
    host: &'a Host,
}

#[derive(Serialize)]
struct Placebo<'a> {
    cpu: Option<&'a Figure>,
    throughput: Option<&'a Figure>,
}

#[derive(Serialize)]
struct SideJson {
    commands: u64,
    cpu_seconds: f64,
    seconds: f64,
    cpu_seconds_per_unit: Option<f64>,
    units_per_second: Option<f64>,
    changes: u64,
}

#[derive(Serialize)]
struct Rounds {
    used: usize,
    discarded: Discarded,
}

#[derive(Serialize)]
struct Backends {
    fewest: usize,
    most: usize,
}

impl Result<'_> {
    pub fn json(&self) -> serde_json::Result<String> {
        let (record, outcome) = (self.record, self.outcome);
        serde_json::to_string_pretty(&CostJson {
            of: self.plan.of.name(),
            level: self.plan.level,
            server: self.server,
            load: self.load,
            unit: self.unit,
            cpu: outcome.cpu.as_ref(),
            throughput: outcome.throughput.as_ref(),
            placebo: Placebo {
                cpu: outcome.placebo_cpu.as_ref(),
                throughput: outcome.placebo_throughput.as_ref(),
            },
            margin_percent: self.margin,
            verdict: outcome.verdict,
            reason: &outcome.reason,
            differs_from_zero: outcome.differs_from_zero,
            off: self.side(&record.off),
            on: self.side(&record.on),
            rounds: Rounds { used: record.rounds.len(), discarded: record.discarded },
            backends: Backends { fewest: record.backends.0, most: record.backends.1 },
            seed: self.plan.seed,
            slice_seconds: record.slice.as_secs_f64(),
            discarded_seconds_per_slice: self.plan.discard.as_secs_f64(),
            reading_seconds: record.effort.as_secs_f64(),
            elapsed_seconds: record.elapsed.as_secs_f64(),
            interrupted: record.interrupted,
            host: self.host,
        })
    }

    fn side(&self, slice: &Slice) -> SideJson {
        SideJson {
            commands: slice.commands,
            cpu_seconds: slice.cpu_ns as f64 / 1e9,
            seconds: slice.wall_ns as f64 / 1e9,
            cpu_seconds_per_unit: self.cpu_us(slice).map(|us| us / 1e6),
            units_per_second: self.units_per_second(slice),
            changes: slice.changes,
        }
    }

    /// CPU time per unit, microseconds.
    fn cpu_us(&self, slice: &Slice) -> Option<f64> {
        Some(slice.cpu_per_command()? * self.commands_per_unit / 1e3)
    }

    fn units_per_second(&self, slice: &Slice) -> Option<f64> {
        Some(slice.commands_per_second()? / self.commands_per_unit)
    }

    pub fn text(&self) -> String {
        // Writing to a String cannot fail.
        let mut out = String::new();
        let (record, outcome) = (self.record, self.outcome);
        let backends = match record.backends {
            (fewest, most) if fewest == most => plural(most, "backend"),
            (fewest, most) => format!("{fewest} to {most} backends"),
        };
        let _ = writeln!(
            out,
            "Cost of {} on {}: {}, {backends}\n",
            match self.plan.of {
                CostOf::Level => format!("level {}", self.plan.level),
                of => format!("{} at level {}", of.name(), self.plan.level),
            },
            self.server,
            self.load
        );
        let _ = writeln!(out, "{:<22}{:>18}{:>20}", "95 % intervals", "change", "placebo");
        let cpu = format!("CPU per {}", self.unit);
        for (name, figure, placebo) in [
            (cpu.as_str(), &outcome.cpu, &outcome.placebo_cpu),
            ("throughput", &outcome.throughput, &outcome.placebo_throughput),
        ] {
            let (figure, placebo) = (change(figure.as_ref()), change(placebo.as_ref()));
            let _ = writeln!(out, "{name:<22}{figure:>18}{placebo:>20}");
        }
        if let (Some(off), Some(on)) = (self.cpu_us(&record.off), self.cpu_us(&record.on)) {
            let rate = |slice| self.units_per_second(slice).unwrap_or(0.0);
            let _ = writeln!(
                out,
                "\noff: {off:.2} us of CPU per {unit}, {:.0} {unit}s/s; on: {on:.2} us, {:.0}/s",
                rate(&record.off),
                rate(&record.on),
                unit = self.unit
            );
        }
        let _ = writeln!(out, "\nMargin {:.2} %: {}", self.margin, self.verdict());
        let _ = writeln!(out, "\n{}", self.method());
        out
    }

    fn verdict(&self) -> String {
        let outcome = self.outcome;
        let zero = if outcome.differs_from_zero {
            "differs from zero"
        } else {
            "the interval contains zero"
        };
        let bound = |sign: f64| {
            outcome.cpu.as_ref().map_or(f64::NAN, |cpu| cpu.percent + sign * cpu.half_width)
        };
        match outcome.verdict {
            CostVerdict::Within => format!("within: no more than {:+.2} %; {zero}", bound(1.0)),
            CostVerdict::Exceeds => format!("exceeded: at least {:+.2} %; {zero}", bound(-1.0)),
            CostVerdict::Inconclusive => format!("inconclusive: {}", outcome.reason),
        }
    }

    /// The method and the machine.
    fn method(&self) -> String {
        let (record, host) = (self.record, self.host);
        let mut out = String::new();
        let _ = write!(
            out,
            "{} of 8 slices in {}{}; slices of {} after {} discarded; seed {}",
            plural(record.rounds.len(), "round"),
            minutes(record.elapsed),
            if record.interrupted { ", interrupted" } else { "" },
            millis(record.slice),
            millis(self.plan.discard),
            self.plan.seed,
        );
        let Discarded { idle, reset, level } = record.discarded;
        for (count, why) in [
            (idle, "too few commands"),
            (reset, "statistics were reset"),
            (level, "another process set the level"),
        ] {
            if count > 0 {
                let _ = write!(out, "\n{} discarded: {why}", plural(count as usize, "round"));
            }
        }
        if let Some(cpu) = self.outcome.cpu.as_ref() {
            let _ = write!(out, "\nsigned ranks: p = {}", probability(cpu.rank_p));
            if cpu.block > 1 {
                let _ = write!(
                    out,
                    "; neighbouring rounds correlated ({:+.2}), averaged in groups of {}",
                    cpu.correlation, cpu.block
                );
            }
        }
        let _ = write!(
            out,
            "\n{} x {}, Linux {}, clock {} (segment: {})",
            host.processors, host.processor, host.kernel, host.clock_source, host.segment_clock
        );
        let known = |share: Option<f64>| share.map_or("unknown".into(), |s| format!("{s:.1} %"));
        let _ = write!(
            out,
            "\nstolen by the hypervisor: {}; time with a process waiting for a CPU: {}",
            known(host.steal_percent),
            known(host.pressure_percent)
        );
        out
    }
}

/// A probability with three decimals, or its order of magnitude if it is below 0.001.
fn probability(p: f64) -> String {
    if p < 0.001 {
        format!("{p:.0e}")
    } else {
        format!("{p:.3}")
    }
}

fn change(figure: Option<&Figure>) -> String {
    figure.map_or("-".into(), |f| Measured::new(f.percent, f.half_width).change(2))
}

fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn minutes(time: Duration) -> String {
    match time.as_secs_f64() {
        seconds if seconds < 100.0 => format!("{seconds:.0} s"),
        seconds => format!("{:.1} min", seconds / 60.0),
    }
}

fn millis(time: Duration) -> String {
    format!("{} ms", (time.as_secs_f64() * 1e5).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_per_unit_and_the_verdict_names_the_end_of_the_interval_that_decides() {
        let figure = |percent, half_width| Figure {
            percent,
            half_width,
            rank_p: 0.0004,
            rounds: 30,
            block: 1,
            correlation: 0.0,
        };
        let slice = |commands, cpu_ns, changes| Slice {
            cpu_ns,
            dispatches: 0,
            commands,
            changes,
            wall_ns: 2_000_000_000,
        };
        let plan = CostPlan {
            of: CostOf::Level,
            level: segment::Level::Waits,
            slice: Duration::from_millis(20),
            discard: Duration::from_micros(1250),
            length: Duration::ZERO,
            seed: 7,
        };
        let record = Record {
            off: slice(1000, 5_000_000, 0),
            on: slice(800, 8_000_000, 9),
            backends: (1, 2),
            slice: Duration::from_millis(20),
            elapsed: Duration::from_secs(99),
            ..Record::default()
        };
        let host = live::host::Watch::start().host("tsc");
        let text = |verdict| {
            let unit = "page";
            let outcome = CostOutcome {
                cpu: Some(figure(1.5, 0.25)),
                throughput: Some(figure(-2.5, 0.75)),
                placebo_cpu: Some(figure(0.125, 0.5)),
                placebo_throughput: None,
                verdict,
                reason: "too few".into(),
                differs_from_zero: verdict == CostVerdict::Exceeds,
            };
            let (plan, record, host) = (&plan, &record, &host);
            let (server, load, commands_per_unit, margin) = ("S", "L", 10.0, 2.0);
            let result = Result {
                plan,
                record,
                outcome: &outcome,
                host,
                server,
                load,
                unit,
                commands_per_unit,
                margin,
            };
            let json: serde_json::Value = serde_json::from_str(&result.json().unwrap()).unwrap();
            assert_eq!(json["on"]["changes"], 9);
            assert_eq!(json["off"]["commands"], 1000);
            assert_eq!(json["off"]["cpu_seconds_per_unit"], 5e-5);
            result.text().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let within = text(CostVerdict::Within);
        for part in [
            "1 to 2 backends",
            "CPU per page +1.50 % ± 0.25 +0.12 % ± 0.50",
            "throughput -2.50 % ± 0.75 - off:",
            // Ten commands a page: 5 and 10 us each, 500 and 400 of them in a second.
            "off: 50.00 us of CPU per page, 50 pages/s; on: 100.00 us, 40/s",
            "Margin 2.00 %: within: no more than +1.75 %; the interval contains zero",
            "0 rounds of 8 slices in 99 s; slices of 20 ms after 1.25 ms discarded; seed 7",
            "signed ranks: p = 4e-4",
        ] {
            assert!(within.contains(part), "{part}: {within}");
        }
        assert!(
            text(CostVerdict::Exceeds).contains("exceeded: at least +1.25 %; differs from zero")
        );
        assert!(text(CostVerdict::Inconclusive).contains("inconclusive: too few"));
    }
}
