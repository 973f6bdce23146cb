// SPDX-License-Identifier: PostgreSQL
//! When to sample: at random distances, so that nothing periodic on the server keeps step with it.

use std::str::FromStr;
use std::time::Duration;

/// Samples per second, from 1 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleRate(u32);

impl Default for SampleRate {
    fn default() -> SampleRate {
        SampleRate(10)
    }
}

impl FromStr for SampleRate {
    type Err = String;

    fn from_str(text: &str) -> Result<SampleRate, String> {
        let number = text.strip_suffix("/s").unwrap_or(text);
        let rate = number.parse().ok().filter(|rate| (1..=100).contains(rate));
        rate.map(SampleRate)
            .ok_or_else(|| "must be between 1 and 100 samples per second".to_string())
    }
}

impl SampleRate {
    /// The number itself.
    pub fn per_second(self) -> u32 {
        self.0
    }

    /// The mean distance of two samples.
    pub fn distance(self) -> Duration {
        Duration::from_secs(1) / self.0
    }
}

/// Draws the distances between samples: uniformly from half the mean to one and a half times the mean.
#[derive(Debug)]
pub(super) struct Schedule {
    mean: Duration,
    state: u64,
}

impl Schedule {
    pub(super) fn new(rate: SampleRate, seed: u64) -> Schedule {
        Schedule { mean: rate.distance(), state: seed }
    }

    /// The distance to the next sample.
    pub(super) fn draw(&mut self) -> Duration {
        // SplitMix64 (Steele, Lea and Flood, 2014).
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let uniform = ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64;
        self.mean.mul_f64(0.5 + uniform)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_between_1_and_100_a_second() {
        for (text, rate) in [("1", 1), ("10/s", 10), ("100", 100)] {
            assert_eq!(text.parse(), Ok(SampleRate(rate)), "{text}");
        }
        for text in ["0", "101", "-1", "1.5", "", "ten"] {
            assert!(text.parse::<SampleRate>().is_err(), "{text}");
        }
    }

    #[test]
    fn distances_vary_around_the_mean() {
        let mut schedule = Schedule::new(SampleRate(10), 2);
        let drawn: Vec<f64> = (0..10_000).map(|_| schedule.draw().as_secs_f64()).collect();
        assert!(drawn.iter().all(|distance| (0.05..=0.15).contains(distance)));
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        assert!((0.099..0.101).contains(&mean), "{mean}");
        let mut again = Schedule::new(SampleRate(10), 2);
        assert_eq!(again.draw().as_secs_f64(), drawn[0]);
    }
}
