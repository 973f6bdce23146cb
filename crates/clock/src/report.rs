// SPDX-License-Identifier: PostgreSQL
//! The report, with figures in seconds. docs/clock.md describes its JSON.

use serde::Serialize;

use crate::fault::Fault;
use crate::gaps::Gaps;
use crate::measure::{median, MeasuredSource};
use crate::pair::PairFindings;
use crate::rate::Rate;
use crate::roles::{Refused, Roles};
use crate::source::{Scope, Source};
use crate::steps::{Backward, Steps};
use crate::system::System;

/// The result of a test of clocks.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Whether the clocks that the server and pg_tally use can be relied on.
    pub fit: bool,
    /// The verdict in a sentence, with the reasons.
    pub verdict: String,
    /// Advice.
    pub advice: Vec<String>,
    /// How long the tests took.
    pub elapsed_seconds: f64,
    /// Notes on tests that were not possible, and why.
    pub notes: Vec<String>,
    /// Information from the kernel about its clocks.
    pub system: System,
    /// The tested processors.
    pub processors: Vec<u32>,
    /// How often the thread moved to another processor.
    pub migrations: u64,
    /// The clocks.
    pub sources: Vec<ClockReport>,
    /// Clocks that could not be read.
    pub refused: Vec<Refused>,
    /// Periods in which the processor did something else while the server's clock was read.
    pub gaps: Gaps,
}

/// A tested clock.
#[derive(Debug, Clone, Serialize)]
pub struct ClockReport {
    /// Its short name.
    pub name: String,
    /// How it is read.
    pub call: String,
    /// "server", "pgtally", "reference".
    pub used_by: Vec<&'static str>,
    /// Ticks per second.
    pub ticks_per_second: f64,
    /// Cost of a reading.
    pub loop_cost: LoopCost,
    /// The size of its steps.
    pub resolution: Resolution,
    /// Steps back in the loops.
    pub backward: BackwardSteps,
    /// Steps back by processor.
    pub processors: Vec<OnProcessor>,
    /// Steps back from one processor to the next; `None` for a clock of CPU time.
    pub migrating: Option<BackwardSteps>,
    /// Pairs of processors.
    pub pairs: Vec<Pair>,
    /// Its rate; `None` for the reference and for clocks of CPU time.
    pub rate: Option<AgainstReference>,
    /// Its faults for timing.
    pub faults: Vec<Fault>,
}

/// Seconds from one reading to the next.
#[derive(Debug, Clone, Serialize)]
pub struct LoopCost {
    /// Number of readings.
    pub readings: u64,
    /// The mean, including gaps, as in pg_test_timing.
    pub mean_seconds: f64,
    /// The median over blocks of 1,024 readings: the cost when nothing interferes.
    pub typical_seconds: f64,
    /// The median, exact to the tick.
    pub p50_seconds: f64,
    /// 90th percentile.
    pub p90_seconds: f64,
    /// 99th percentile.
    pub p99_seconds: f64,
    /// 99.9th percentile.
    pub p999_seconds: f64,
    /// Maximum.
    pub max_seconds: f64,
    /// Numbers of readings that took less than 1, 2, 4, 8, ... ns, and at least half of that.
    pub powers_of_two: Vec<u64>,
}

/// The size of a clock's steps.
#[derive(Debug, Clone, Serialize)]
pub struct Resolution {
    /// The shortest non-zero step.
    pub min_step_seconds: Option<f64>,
    /// The greatest common divisor of all steps.
    pub grain_seconds: Option<f64>,
    /// Share of readings equal to the one before, 0 to 1.
    pub unchanged_share: f64,
}

/// Steps back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct BackwardSteps {
    /// Number of steps.
    pub count: u64,
    /// The largest one.
    pub largest_seconds: f64,
}

/// Steps back on one processor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OnProcessor {
    /// Its number; `None` if it could not be chosen.
    pub processor: Option<u32>,
    /// Steps back on it.
    #[serde(flatten)]
    pub backward: BackwardSteps,
}

/// The clock on two processors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// Their numbers.
    pub processors: [u32; 2],
    /// Readings below an earlier one of the other processor.
    pub warps: BackwardSteps,
    /// Readings compared with the other processor's last reading.
    pub readings: u64,
    /// Lower bound of the second processor's lead; negative if it may lag.
    pub min_offset_seconds: Option<f64>,
    /// Upper bound of the second processor's lead.
    pub max_offset_seconds: Option<f64>,
    /// Rounds of ping-pong from which the bounds were computed.
    pub rounds: u64,
    /// Whether they differ: zero is not between the bounds.
    pub proven: bool,
}

/// A clock's rate, measured with the reference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgainstReference {
    /// The reference's name.
    pub against: String,
    /// How much faster it runs than it should, ppm; `None` if unknown.
    pub ppm: Option<f64>,
    /// Half-width of the 95 % confidence interval, ppm.
    pub error_ppm: f64,
    /// Maximum distance of a reading from the straight line.
    pub off_seconds: f64,
}

impl Report {
    /// The clock with this name.
    pub fn source(&self, name: &str) -> Option<&ClockReport> {
        self.sources.iter().find(|source| source.name == name)
    }

    /// The clock that `user` reads: "server" or "pgtally".
    pub fn used_by(&self, user: &str) -> Option<&ClockReport> {
        self.sources.iter().find(|source| source.used_by.contains(&user))
    }
}

impl ClockReport {
    /// The figures of a clock, without its faults; `None` if the length of its tick is unknown.
    pub(crate) fn new(
        source: &dyn Source,
        measured: &MeasuredSource,
        roles: &Roles,
        nominal: Option<f64>,
    ) -> Option<Self> {
        // Equal readings show that it rests between its steps.
        let step = measured.steps.min().filter(|_| measured.steps.zeros() > 0).unwrap_or(0);
        let rate = Rate::fit(&measured.instants, step);
        let found = rate.map(|rate| 1.0 / rate.ticks).or(nominal.map(|hz| 1e9 / hz));
        let ns_per_tick = source.ns_per_tick().or(found)?;
        let name = source.name().to_string();
        // A clock in nanoseconds should run as fast as the reference, a counter at its nominal rate.
        let should =
            if source.ns_per_tick().is_some() { Some(1.0) } else { nominal.map(|hz| hz / 1e9) };
        let used_by = [
            (&roles.server, "server"),
            (&roles.pgtally, "pgtally"),
            (&roles.reference, "reference"),
        ];
        let shared = source.scope() == Scope::Machine;
        Some(Self {
            call: source.call().into(),
            used_by: used_by
                .iter()
                .filter(|(user, _)| **user == name)
                .map(|(_, user)| *user)
                .collect(),
            ticks_per_second: 1e9 / ns_per_tick,
            loop_cost: LoopCost::new(measured, ns_per_tick)?,
            resolution: Resolution::new(&measured.steps, ns_per_tick),
            backward: BackwardSteps::new(measured.steps.backward(), ns_per_tick),
            processors: measured
                .by_processor
                .iter()
                .map(|(processor, backward)| OnProcessor {
                    processor: *processor,
                    backward: BackwardSteps::new(*backward, ns_per_tick),
                })
                .collect(),
            migrating: shared.then(|| BackwardSteps::new(measured.migrating, ns_per_tick)),
            pairs: measured.pairs.iter().map(|pair| Pair::new(pair, ns_per_tick)).collect(),
            rate: rate.map(|rate| AgainstReference {
                against: roles.reference.clone(),
                ppm: should.map(|should| (rate.ticks / should - 1.0) * 1e6),
                error_ppm: rate.error * 1e6,
                off_seconds: rate.off * 1e-9,
            }),
            faults: Vec::new(),
            name,
        })
    }
}

impl LoopCost {
    fn new(measured: &MeasuredSource, ns_per_tick: f64) -> Option<Self> {
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
            max_seconds: steps.max().map(seconds)?,
            powers_of_two: steps.powers_of_two(ns_per_tick),
        })
    }
}

impl Resolution {
    fn new(steps: &Steps, ns_per_tick: f64) -> Self {
        let seconds = |ticks: u64| ticks as f64 * ns_per_tick * 1e-9;
        Self {
            min_step_seconds: steps.min().map(seconds),
            grain_seconds: steps.grain().map(seconds),
            unchanged_share: steps.zeros() as f64 / steps.count().max(1) as f64,
        }
    }
}

impl BackwardSteps {
    fn new(backward: Backward, ns_per_tick: f64) -> Self {
        Self {
            count: backward.count,
            largest_seconds: backward.largest as f64 * ns_per_tick * 1e-9,
        }
    }
}

impl Pair {
    fn new((one, other, found): &(u32, u32, PairFindings), ns_per_tick: f64) -> Self {
        let bounds = found.bounds;
        let seconds = |ticks: i64| (bounds.rounds > 0).then_some(ticks as f64 * ns_per_tick * 1e-9);
        Self {
            processors: [*one, *other],
            warps: BackwardSteps::new(found.warps, ns_per_tick),
            readings: found.readings,
            min_offset_seconds: seconds(bounds.min),
            max_offset_seconds: seconds(bounds.max),
            rounds: bounds.rounds,
            proven: bounds.proven(),
        }
    }
}
