// SPDX-License-Identifier: PostgreSQL
//! The rate of a clock relative to another: a straight line through pairs of readings, with its error.

use crate::source::Source;

/// Readings of two clocks at one instant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReadingPair {
    /// Ticks of the reference.
    pub reference: u64,
    /// Ticks of the clock.
    pub ticks: u64,
    /// Ticks of the reference from before to after the clock's reading.
    pub width: u64,
}

impl ReadingPair {
    /// Takes a pair now: the clock between two readings of the reference; the tightest of nine tries.
    pub fn take(reference: &dyn Source, source: &dyn Source) -> Self {
        let one = || {
            let before = reference.read_in_order();
            let ticks = source.read_in_order();
            let width = reference.read_in_order().saturating_sub(before);
            Self { reference: before + width / 2, ticks, width }
        };
        (0..9).map(|_| one()).min_by_key(|instant| instant.width).unwrap_or_else(one)
    }
}

/// The rate of a clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// Ticks of the clock in one tick of the reference.
    pub ticks: f64,
    /// Half-width of the 95 % confidence interval, as a share of the rate.
    pub error: f64,
    /// Maximum distance of a pair from the line, ticks of the reference.
    pub off: f64,
    /// Time from the first pair to the last, ticks of the reference.
    pub span: f64,
}

impl Rate {
    /// The least-squares line through the pairs; `None` for fewer than three. The error is twice the slope's
    /// standard error, plus the uncertainty from the width of the readings at either end and from `step`, the
    /// clock's step in ticks.
    pub fn fit(instants: &[ReadingPair], step: u64) -> Option<Self> {
        let first = instants.first().filter(|_| instants.len() >= 3)?;
        let n = instants.len() as f64;
        let points = || {
            instants.iter().map(|at| {
                let reference = at.reference.wrapping_sub(first.reference) as i64 as f64;
                (reference, at.ticks.wrapping_sub(first.ticks) as i64 as f64)
            })
        };
        let mean = |f: fn((f64, f64)) -> f64| points().map(f).sum::<f64>() / n;
        let (x0, y0) = (mean(|p| p.0), mean(|p| p.1));
        let sxx: f64 = points().map(|(x, _)| (x - x0).powi(2)).sum();
        let sxy: f64 = points().map(|(x, y)| (x - x0) * (y - y0)).sum();
        if sxx <= 0.0 || sxy <= 0.0 {
            return None;
        }
        let ticks = sxy / sxx;
        let off = |(x, y): (f64, f64)| y - y0 - ticks * (x - x0);
        let variance = points().map(|p| off(p).powi(2)).sum::<f64>() / (n - 2.0);
        let mut widths: Vec<u64> = instants.iter().map(|at| at.width).collect();
        widths.sort_unstable();
        let span = points().map(|p| p.0).fold(0.0, f64::max);
        let open = (widths[widths.len() / 2] as f64 + step as f64 / ticks) / span;
        Some(Self {
            ticks,
            error: 2.0 * (variance / sxx).sqrt() / ticks + open,
            off: points().map(|p| off(p).abs() / ticks).fold(0.0, f64::max),
            span,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instants(ticks: impl Fn(u64) -> u64) -> Vec<ReadingPair> {
        let at = (0..31).map(|i| 7_000_000_000 + i * 100_000_000);
        at.map(|reference| ReadingPair { reference, ticks: ticks(reference), width: 50 }).collect()
    }

    #[test]
    fn a_steady_rate_is_found_and_the_truth_lies_within_its_error() {
        // 2.6 ticks per nanosecond plus 3 ppm, each reading off by up to 20 ticks.
        let truth = 2.6 * (1.0 + 3e-6);
        let noise = |at: u64| (at / 100_000_000 * 7_919 % 41) as f64 - 20.0;
        let rate = Rate::fit(&instants(|at| (at as f64 * truth + noise(at)) as u64), 0).unwrap();
        assert!((rate.ticks / truth - 1.0).abs() < rate.error, "{rate:?}");
        assert!(rate.error < 1e-7, "{rate:?}");
        assert!(rate.off < 20.0, "{rate:?}");
    }

    #[test]
    fn a_rate_that_changes_has_a_wide_error() {
        let slow_then_fast = |at: u64| at + at.saturating_sub(8_500_000_000) / 1_000;
        let rate = Rate::fit(&instants(slow_then_fast), 0).unwrap();
        assert!(rate.error > 2e-5 && rate.off > 1e5, "{rate:?}");
    }

    #[test]
    fn the_error_includes_the_step_of_a_coarse_clock() {
        let coarse = |at: u64| at / 40_000_000 * 40_000_000;
        let rate = Rate::fit(&instants(coarse), 40_000_000).unwrap();
        assert!((rate.ticks - 1.0).abs() < rate.error && rate.error > 0.01, "{rate:?}");
    }

    #[test]
    fn too_little_gives_no_rate() {
        assert_eq!(Rate::fit(&instants(|at| at)[..2], 0), None);
        assert_eq!(Rate::fit(&instants(|_| 5), 0), None);
    }
}
