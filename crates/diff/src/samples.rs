// SPDX-License-Identifier: PostgreSQL
//! Comparisons of a recording that was made of samples with one that was measured.
//!
//! The blocks contain the noise of samples, like any other noise. They do not contain the bias: samples see
//! some activities too often or too seldom (docs/any-server.md has the comparisons), and may have missed
//! short ones. Two recordings of the same kind have the same bias, so only intervals in a comparison of
//! different kinds are widened.

use super::comparison::Change;

/// How wrong the figures of samples may be beyond their noise: part of the figure.
const BIAS: f64 = 0.1;
/// So many samples see no part of an activity that takes this much of the time between two samples, in one of 40 cases.
const MISSED: f64 = 3.7;

/// How wrong a side's figures may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampledError {
    /// Time that an activity may take without being seen by any sample, seconds per second.
    missed: f64,
}

impl SampledError {
    /// The error of a side of this length whose samples have this mean distance; both in seconds.
    pub fn of_samples(distance: f64, length: f64) -> SampledError {
        SampledError { missed: MISSED * distance / length.max(1e-9) }
    }

    /// The change as that of a sampled and a measured side: its interval is wider, and its p-value that of the part of the change
    /// which the error cannot explain.
    pub fn widen(self, change: Change) -> Change {
        let error = BIAS * change.a_seconds.max(change.b_seconds) + self.missed;
        let left = (change.change_seconds.abs() - error).max(0.0);
        let p = change.precision.map(|precision| precision.p(left));
        Change {
            half_width_seconds: change.half_width_seconds.map(|half| half + error),
            p: p.filter(|_| change.p.is_some()),
            ..change
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::Precision;

    fn change(a: f64, b: f64) -> Change {
        let precision = Precision { error: 0.001, freedom: 30.0 };
        Change {
            a_seconds: a,
            b_seconds: b,
            change_seconds: b - a,
            half_width_seconds: Some(precision.half_width()),
            p: Some(precision.p(b - a)),
            precision: Some(precision),
            ..Change::default()
        }
    }

    #[test]
    fn a_difference_that_samples_may_make_is_none() {
        let error = SampledError::of_samples(0.1, 100.0);
        for (a, b, is_found) in [
            // Biased samples of the same load.
            (1.0, 1.08, false),
            (1.0, 1.5, true),
            // What samples may have missed, and what they cannot.
            (0.0, 0.003, false),
            (0.0, 0.1, true),
        ] {
            let (sharp, wide) = (change(a, b), error.widen(change(a, b)));
            assert!(sharp.p.unwrap() < 0.01, "{a} and {b}");
            assert_eq!(wide.p.unwrap() < 0.01, is_found, "{a} and {b}: {wide:?}");
            let more = wide.half_width_seconds.unwrap() - sharp.half_width_seconds.unwrap();
            assert!((more - 0.1 * b - 0.0037).abs() < 1e-12, "{more}");
            assert_eq!(wide.change_seconds, sharp.change_seconds);
        }
    }
}
