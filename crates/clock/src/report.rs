// SPDX-License-Identifier: PostgreSQL
//! The findings as figures in seconds; as JSON they are described in docs/clock.md.

use serde::Serialize;

use crate::gaps::Gaps;
use crate::measure::{Findings, Measured};
use crate::pair::Found;
use crate::rate::Rate;
use crate::source::{Scope, Source};
use crate::sources::{Refused, Roles};
use crate::steps::{Backward, Steps};
use crate::system::System;
use crate::verdict::{self, Fault};

/// Everything that is known after a run.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Whether the clocks that the server and pg_tally use can be relied on.
    pub fit: bool,
    /// The same in a sentence, with the reasons.
    pub verdict: String,
    /// What to do about it.
    pub advice: Vec<String>,
    /// How long the tests took.
    pub elapsed_seconds: f64,
    /// What could not be tested, and why.
    pub notes: Vec<String>,
    /// What the kernel says.
    pub system: System,
    /// The processors that were tested.
    pub processors: Vec<u32>,
    /// How often a thread moved from one to another.
    pub migrations: u64,
    /// The clocks.
    pub sources: Vec<ClockReport>,
    /// Clocks that could not be read.
    pub refused: Vec<Refused>,
    /// Who took the processor while the server's clock was read.
    pub gaps: Gaps,
}

/// One clock.
#[derive(Debug, Clone, Serialize)]
pub struct ClockReport {
    /// Its short name.
    pub name: String,
    /// How it is read.
    pub call: String,
    /// "server", "pgtally", "reference".
    pub used_by: Vec<&'static str>,
    /// Ticks in a second.
    pub ticks_per_second: f64,
    /// What a reading takes in a loop.
    pub loop_cost: LoopCost,
    /// How fine it is.
    pub resolution: Resolution,
    /// Steps back in the loops.
    pub backward: Back,
    /// The same by processor.
    pub processors: Vec<OnProcessor>,
    /// Steps back from one processor to the next; None of a clock of processor time.
    pub migrating: Option<Back>,
    /// Each two processors.
    pub pairs: Vec<Pair>,
    /// How fast it goes; None of the reference, and of clocks of processor time.
    pub rate: Option<AgainstReference>,
    /// What is wrong with it as a clock to time with.
    pub faults: Vec<Fault>,
}

/// Seconds from one reading to the next.
#[derive(Debug, Clone, Serialize)]
pub struct LoopCost {
    /// Readings.
    pub readings: u64,
    /// The mean, as pg_test_timing has it, gaps included.
    pub mean_seconds: f64,
    /// The median over blocks of 1,024 readings: what one takes when nothing interferes.
    pub typical_seconds: f64,
    /// Quantiles, exact to the tick.
    pub p50_seconds: f64,
    /// 90 %.
    pub p90_seconds: f64,
    /// 99 %.
    pub p99_seconds: f64,
    /// 99.9 %.
    pub p999_seconds: f64,
    /// The longest.
    pub max_seconds: f64,
    /// How many took less than 1, 2, 4, 8, ... ns, and no less than half of that.
    pub powers_of_two: Vec<u64>,
}

/// How fine a clock is.
#[derive(Debug, Clone, Serialize)]
pub struct Resolution {
    /// The shortest step that is not zero.
    pub min_step_seconds: Option<f64>,
    /// What all steps are multiples of.
    pub grain_seconds: Option<f64>,
    /// Share of the readings that were equal to the one before.
    pub unchanged_share: f64,
}

/// Steps back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Back {
    /// How many.
    pub count: u64,
    /// The largest.
    pub largest_seconds: f64,
}

/// Steps back on one processor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OnProcessor {
    /// Which; None where it could not be chosen.
    pub processor: Option<u32>,
    /// What was seen there.
    #[serde(flatten)]
    pub backward: Back,
}

/// Two processors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// Which.
    pub processors: [u32; 2],
    /// Readings below one that was made before on the other.
    pub warps: Back,
    /// Readings that were compared with the other's last one.
    pub readings: u64,
    /// By how much the second is ahead of the first, at least; negative when it may be behind.
    pub min_offset_seconds: Option<f64>,
    /// At most.
    pub max_offset_seconds: Option<f64>,
    /// Rounds of ping-pong that say so.
    pub rounds: u64,
    /// Whether they differ: zero is not between the bounds.
    pub proven: bool,
}

/// A clock's rate by the reference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgainstReference {
    /// The reference.
    pub against: String,
    /// By how much it is faster than it should be, millionths; None where that is not known.
    pub ppm: Option<f64>,
    /// Half the width of the 95 % interval, millionths.
    pub error_ppm: f64,
    /// The furthest that a reading was off the straight line.
    pub off_seconds: f64,
}

impl Report {
    /// From what was found of these sources.
    pub fn new(
        sources: &[Box<dyn Source>],
        findings: &Findings,
        mut refused: Vec<Refused>,
        roles: &Roles,
        system: System,
    ) -> Self {
        let mut notes = findings.notes.clone();
        if let Some(online) = system.online {
            let tested = findings.processors.len();
            if tested > 0 && (tested as u32) < online {
                notes.push(format!(
                    "{tested} of {online} processors were tested: this process may use no others"
                ));
            }
        }
        let nominal = system.counter.as_ref().map(|counter| counter.hz);
        let mut tested = Vec::new();
        for (source, measured) in sources.iter().zip(&findings.sources) {
            match ClockReport::new(source.as_ref(), measured, roles, nominal) {
                Some(source) => tested.push(source),
                None => refused.push(Refused {
                    name: source.name().into(),
                    reason: "how long its tick is cannot be found, for there is nothing to \
                             compare it with"
                        .into(),
                }),
            }
        }
        let judged = verdict::judge(&tested, &refused, roles);
        let mut report = Self {
            fit: judged.fit,
            verdict: judged.sentence,
            advice: Vec::new(),
            elapsed_seconds: findings.elapsed.as_secs_f64(),
            notes,
            system,
            processors: findings.processors.clone(),
            migrations: findings.migrations,
            sources: tested,
            refused,
            gaps: findings.gaps.clone(),
        };
        report.advice = verdict::advice(&report);
        report
    }

    /// The source of this name.
    pub fn source(&self, name: &str) -> Option<&ClockReport> {
        self.sources.iter().find(|source| source.name == name)
    }

    /// The one that this user uses: "server" or "pgtally".
    pub fn used_by(&self, user: &str) -> Option<&ClockReport> {
        self.sources.iter().find(|source| source.used_by.contains(&user))
    }
}

impl ClockReport {
    /// None where the length of its tick is not known.
    fn new(
        source: &dyn Source,
        measured: &Measured,
        roles: &Roles,
        nominal: Option<f64>,
    ) -> Option<Self> {
        // Equal readings show that it stands still between its steps.
        let step = measured.steps.least().filter(|_| measured.steps.zeros() > 0).unwrap_or(0);
        let rate = Rate::of(&measured.instants, step);
        let found = rate.map(|rate| 1.0 / rate.ticks).or(nominal.map(|hz| 1e9 / hz));
        let ns_per_tick = source.ns_per_tick().or(found)?;
        let name = source.name().to_string();
        // A clock in nanoseconds should go as fast as the reference, a counter at its nominal rate.
        let should =
            if source.ns_per_tick().is_some() { Some(1.0) } else { nominal.map(|hz| hz / 1e9) };
        let used_by = [
            (&roles.server, "server"),
            (&roles.pgtally, "pgtally"),
            (&roles.reference, "reference"),
        ];
        let shared = source.scope() == Scope::Machine;
        let mut tested = Self {
            call: source.call().into(),
            used_by: used_by
                .iter()
                .filter(|(user, _)| **user == name)
                .map(|(_, user)| *user)
                .collect(),
            ticks_per_second: 1e9 / ns_per_tick,
            loop_cost: LoopCost::new(measured, ns_per_tick)?,
            resolution: Resolution::new(&measured.steps, ns_per_tick),
            backward: Back::new(measured.steps.backward(), ns_per_tick),
            processors: measured
                .by_processor
                .iter()
                .map(|(processor, backward)| OnProcessor {
                    processor: *processor,
                    backward: Back::new(*backward, ns_per_tick),
                })
                .collect(),
            migrating: shared.then(|| Back::new(measured.migrating, ns_per_tick)),
            pairs: measured.pairs.iter().map(|pair| Pair::new(pair, ns_per_tick)).collect(),
            rate: rate.map(|rate| AgainstReference {
                against: roles.reference.clone(),
                ppm: should.map(|should| (rate.ticks / should - 1.0) * 1e6),
                error_ppm: rate.error * 1e6,
                off_seconds: rate.off * 1e-9,
            }),
            faults: Vec::new(),
            name,
        };
        tested.faults = verdict::faults(&tested);
        Some(tested)
    }
}

impl LoopCost {
    fn new(measured: &Measured, ns_per_tick: f64) -> Option<Self> {
        let steps = &measured.steps;
        let seconds = |ticks: u64| ticks as f64 * ns_per_tick * 1e-9;
        let quantile = |share| steps.quantile(share).map(seconds);
        Some(Self {
            readings: steps.count(),
            mean_seconds: seconds(steps.total()) / steps.count() as f64,
            typical_seconds: median(&measured.blocks)? * 1e-9,
            p50_seconds: quantile(0.5)?,
            p90_seconds: quantile(0.9)?,
            p99_seconds: quantile(0.99)?,
            p999_seconds: quantile(0.999)?,
            max_seconds: steps.longest().map(seconds)?,
            powers_of_two: steps.powers_of_two(ns_per_tick),
        })
    }
}

impl Resolution {
    fn new(steps: &Steps, ns_per_tick: f64) -> Self {
        let seconds = |ticks: u64| ticks as f64 * ns_per_tick * 1e-9;
        Self {
            min_step_seconds: steps.least().map(seconds),
            grain_seconds: steps.grain().map(seconds),
            unchanged_share: steps.zeros() as f64 / steps.count().max(1) as f64,
        }
    }
}

impl Back {
    fn new(backward: Backward, ns_per_tick: f64) -> Self {
        Self {
            count: backward.count,
            largest_seconds: backward.largest as f64 * ns_per_tick * 1e-9,
        }
    }
}

impl Pair {
    fn new((one, other, found): &(u32, u32, Found), ns_per_tick: f64) -> Self {
        let bounds = found.bounds;
        let seconds = |ticks: i64| (bounds.rounds > 0).then_some(ticks as f64 * ns_per_tick * 1e-9);
        Self {
            processors: [*one, *other],
            warps: Back::new(found.warps, ns_per_tick),
            readings: found.readings,
            min_offset_seconds: seconds(bounds.least),
            max_offset_seconds: seconds(bounds.most),
            rounds: bounds.rounds,
            proven: bounds.proven(),
        }
    }
}

/// The middle one; none of none.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}
