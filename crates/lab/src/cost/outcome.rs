// SPDX-License-Identifier: PostgreSQL

//! Turns the record of a run into figures and a verdict.

use serde::Serialize;

use super::runner::Record;
use crate::study::cost::contrast::{percent, RoundContrast};
use crate::study::cost::CostOf;
use error::Error;
use stats::{Estimate, FEWEST_ROUNDS};

/// The placebo may differ from zero by chance in 1 of 100 runs.
const PLACEBO_CONFIDENCE: f64 = 0.99;
/// Maximum changes per command with measuring off, as a share of those with measuring on: backends close their
/// accounts at the first probe after the toggle.
const STRAGGLERS: f64 = 0.05;

/// The change from side A to side B.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// The change, percent.
    pub percent: f64,
    /// Half-width of its 95 % confidence interval, percentage points.
    pub half_width: f64,
    /// Two-sided p-value of Wilcoxon's signed-rank test.
    pub rank_p: f64,
    /// Number of rounds.
    pub rounds: usize,
    /// Adjacent rounds that were averaged because they were correlated; 1 if they were not.
    pub block: usize,
    /// Lag-1 correlation of the rounds.
    pub correlation: f64,
}

/// The verdict about the cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CostVerdict {
    /// The whole confidence interval is above the margin.
    Exceeds,
    /// The whole confidence interval is below the margin.
    Within,
    /// Neither.
    Inconclusive,
}

/// The result of a run.
#[derive(Debug, Clone, Serialize)]
pub struct CostOutcome {
    /// CPU time per command; `None` if there were too few rounds.
    pub cpu: Option<Figure>,
    /// Commands per second.
    pub throughput: Option<Figure>,
    pub placebo_cpu: Option<Figure>,
    pub placebo_throughput: Option<Figure>,
    pub verdict: CostVerdict,
    /// Why the verdict is inconclusive; empty if it is not.
    pub reason: String,
    /// Whether both the interval and the signed ranks exclude zero.
    pub differs_from_zero: bool,
}

impl CostOutcome {
    /// `margin` in percent.
    pub fn compute(record: &Record, margin: f64) -> Self {
        let estimate = |what: fn(&RoundContrast) -> f64| {
            Estimate::from_values(&record.rounds.iter().map(what).collect::<Vec<f64>>())
        };
        let cpu = estimate(|round| round.real.cpu);
        let placebo = estimate(|round| round.placebo.cpu);
        let throughput = estimate(|round| round.real.throughput);
        let placebo_throughput = estimate(|round| round.placebo.throughput);
        let (verdict, reason) = judge(cpu.as_ref(), placebo.as_ref(), margin, record);
        Self {
            differs_from_zero: cpu.as_ref().is_some_and(|e| e.above(0.0) || e.below(0.0)),
            cpu: cpu.as_ref().map(figure),
            throughput: throughput.as_ref().map(figure),
            placebo_cpu: placebo.as_ref().map(figure),
            placebo_throughput: placebo_throughput.as_ref().map(figure),
            verdict,
            reason,
        }
    }
}

fn figure(estimate: &Estimate) -> Figure {
    Figure {
        percent: percent(estimate.mean),
        // The slope of percent() at the estimate.
        half_width: 100.0 * estimate.mean.exp() * estimate.half_width,
        rank_p: estimate.rank_p(0.0),
        rounds: estimate.values,
        block: estimate.block,
        correlation: estimate.correlation,
    }
}

fn judge(
    cpu: Option<&Estimate>,
    placebo: Option<&Estimate>,
    margin: f64,
    record: &Record,
) -> (CostVerdict, String) {
    let not = |reason: String| (CostVerdict::Inconclusive, reason);
    let (Some(cpu), Some(placebo)) = (cpu, placebo) else {
        let rounds = record.rounds.len();
        return not(format!(
            "only {rounds} usable rounds, at least {FEWEST_ROUNDS} are needed; measure longer"
        ));
    };
    if placebo.mean.abs() > placebo.half_width_at(PLACEBO_CONFIDENCE)
        && placebo.rank_p(0.0) < 1.0 - PLACEBO_CONFIDENCE
    {
        return not(
            "the placebo differs from zero: something other than the toggled switch has an \
             effect"
                .into(),
        );
    }
    let bound = (margin / 100.0).ln_1p();
    if cpu.above(bound) {
        return (CostVerdict::Exceeds, String::new());
    }
    if cpu.below(bound) {
        return (CostVerdict::Within, String::new());
    }
    let outside = (cpu.mean - bound).abs() > cpu.half_width;
    not(if outside {
        "confidence interval and rank test disagree; measure longer".into()
    } else {
        "the confidence interval contains the margin; measure longer or on a quieter machine".into()
    })
}

/// Fails unless the extension's data changed while measuring was on, and only then.
pub fn check_alive(record: &Record, of: CostOf) -> Result<(), Error> {
    // The cost of something outside pgtally does not show in pgtally's data.
    if record.rounds.is_empty() || of == CostOf::Outside {
        return Ok(());
    }
    let what = of.name();
    let rate = |changes: u64, commands: u64| changes as f64 / commands.max(1) as f64;
    let on = rate(record.on.changes, record.on.commands);
    let off = rate(record.off.changes, record.off.commands);
    if on <= 0.0 {
        return Err(Error::Failed(format!(
            "nothing was counted with {what} on, so there is no difference to measure: the backends \
             do not use this segment{}",
            match of {
                CostOf::Statements => ", or pg_tally.statements is none",
                _ => "",
            }
        )));
    }
    if off > STRAGGLERS * on {
        return Err(Error::Failed(format!(
            "counted {off:.3} changes per command with {what} off and {on:.3} with {what} on: the \
             backends do not follow the switch; try a longer --slice"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::cost::contrast::{Contrast, Slice};

    /// A change of `mean` percent, uniformly distributed over `spread` to either side.
    fn scattered(i: usize, mean: f64, spread: f64) -> Contrast {
        // Multiples of the golden ratio are evenly distributed, and neighbours far apart.
        let u = (i as f64 * 0.618_033_988_749_895).fract() * 2.0 - 1.0;
        let cpu = ((mean + spread * u) / 100.0).ln_1p();
        Contrast { cpu, throughput: -cpu }
    }

    fn rounds(n: usize, mean: f64, placebo: f64) -> Vec<RoundContrast> {
        (0..n)
            .map(|i| RoundContrast {
                real: scattered(i, mean, 4.0),
                placebo: scattered(i, placebo, 4.0),
            })
            .collect()
    }

    fn outcome(n: usize, mean: f64, placebo: f64, margin: f64) -> CostOutcome {
        let record = Record { rounds: rounds(n, mean, placebo), ..Record::default() };
        CostOutcome::compute(&record, margin)
    }

    #[test]
    fn costs_above_and_within_the_margin_and_inconclusive_ones_are_distinguished() {
        let over = outcome(5000, 1.0, 0.0, 0.3);
        assert_eq!((over.verdict, over.differs_from_zero), (CostVerdict::Exceeds, true));
        let within = outcome(5000, 0.1, 0.0, 0.3);
        assert_eq!((within.verdict, within.differs_from_zero), (CostVerdict::Within, true));
        let open = outcome(100, 0.1, 0.0, 0.3);
        assert_eq!((open.verdict, open.differs_from_zero), (CostVerdict::Inconclusive, false));
        assert!(open.reason.contains("measure longer"));
    }

    #[test]
    fn a_placebo_that_differs_from_zero_makes_the_result_inconclusive() {
        let spoilt = outcome(5000, 0.1, 0.5, 0.3);
        assert_eq!(spoilt.verdict, CostVerdict::Inconclusive);
        assert!(spoilt.reason.contains("placebo"), "{}", spoilt.reason);
    }

    #[test]
    fn too_few_rounds_give_no_figure() {
        let few = outcome(FEWEST_ROUNDS - 1, 0.1, 0.0, 0.3);
        assert!(few.cpu.is_none() && few.verdict == CostVerdict::Inconclusive);
        assert!(few.reason.contains("19 usable rounds"), "{}", few.reason);
    }

    #[test]
    fn figures_are_in_percent() {
        let cpu = outcome(2000, 10.0, 0.0, 0.3).cpu.unwrap();
        assert!((cpu.percent - 10.0).abs() < 0.02, "{}", cpu.percent);
        // The winsorised values have a standard deviation of 4 % x 0.546, so the half-width is
        // 1.961 x 4 % x 0.546 / (0.8 x 44.7).
        assert!((cpu.half_width - 0.12).abs() < 0.01, "{}", cpu.half_width);
    }

    #[test]
    fn it_is_an_error_if_no_backend_follows_the_level() {
        let side = |changes| Slice { commands: 1000, changes, ..Slice::default() };
        let record = |off, on| Record {
            rounds: rounds(FEWEST_ROUNDS, 0.0, 0.0),
            off: side(off),
            on: side(on),
            ..Record::default()
        };
        for of in [CostOf::Level, CostOf::Statements] {
            assert!(check_alive(&record(0, 4000), of).is_ok());
            assert!(check_alive(&record(100, 4000), of).is_ok());
            let dead = check_alive(&record(0, 0), of).unwrap_err().to_string();
            assert!(dead.contains("nothing was counted"), "{dead}");
            assert!(check_alive(&record(4000, 4000), of).is_err());
        }
        assert!(check_alive(&record(0, 0), CostOf::Outside).is_ok());
    }
}
