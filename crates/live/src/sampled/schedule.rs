// SPDX-License-Identifier: PostgreSQL
//! When to sample: at random distances, so that nothing periodic on the server keeps step with it.

use std::str::FromStr;
use std::time::Duration;

/// How often to sample: 1 to 100 times per second, less often if that costs the server more than a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleRate {
    per_second: u32,
    budget: Option<Budget>,
    /// Whether to sample a server that has pg_tally, too.
    always: bool,
}

/// What sampling may cost the server at most: a share of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    parts_per_million: u32,
}

impl Default for SampleRate {
    fn default() -> SampleRate {
        SampleRate { per_second: 10, budget: None, always: false }
    }
}

impl FromStr for SampleRate {
    type Err = String;

    fn from_str(text: &str) -> Result<SampleRate, String> {
        let number = text.strip_suffix("/s").unwrap_or(text);
        let rate = number.parse().ok().filter(|rate| (1..=100).contains(rate));
        rate.map(|per_second| SampleRate { per_second, budget: None, always: true })
            .ok_or_else(|| "must be between 1 and 100 samples per second".to_string())
    }
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Budget, String> {
        let number =
            text.strip_suffix('%').and_then(|number| number.trim_end().parse::<f64>().ok());
        let percent = number.filter(|percent| (0.01..=100.0).contains(percent));
        percent
            .map(|percent| Budget { parts_per_million: (percent * 1e4).round() as u32 })
            .ok_or_else(|| "must be a percentage of one CPU from 0.01% to 100%".to_string())
    }
}

impl Budget {
    /// As a share of one CPU.
    pub fn share(self) -> f64 {
        f64::from(self.parts_per_million) * 1e-6
    }
}

impl SampleRate {
    /// The number itself.
    pub fn per_second(self) -> u32 {
        self.per_second
    }

    /// The mean distance of two samples.
    pub fn distance(self) -> Duration {
        Duration::from_secs(1) / self.per_second
    }

    /// Whether a server that has pg_tally is sampled, too: the user has named a rate. Otherwise a server is read exactly as soon as
    /// it has pg_tally.
    pub fn is_for_any_server(self) -> bool {
        self.always
    }

    /// At most as often as this budget permits.
    pub fn within(self, budget: Option<Budget>) -> SampleRate {
        SampleRate { budget, ..self }
    }
}

/// Draws the distances between samples: uniformly from half the mean to one and a half times the mean.
#[derive(Debug)]
pub(super) struct Schedule {
    rate: SampleRate,
    mean: Duration,
    /// What a sample costs the server, ns: the recent mean.
    cost_ns: Option<f64>,
    state: u64,
}

impl Schedule {
    /// The lowest rate.
    const LONGEST: Duration = Duration::from_secs(1);
    /// Weight of the latest cost.
    const LATEST: f64 = 0.1;

    pub(super) fn new(rate: SampleRate, seed: u64) -> Schedule {
        Schedule { rate, mean: rate.distance(), cost_ns: None, state: seed }
    }

    /// Notes what the last sample cost the server. If that exceeds the budget, the next samples come later,
    /// but at least one per second. The distance depends on past samples alone, so samples stay independent
    /// of what they see.
    pub(super) fn note_cost(&mut self, cost_ns: u64) {
        let Some(budget) = self.rate.budget else { return };
        let latest = cost_ns as f64;
        let cost_ns = self.cost_ns.map_or(latest, |mean| mean + Self::LATEST * (latest - mean));
        self.cost_ns = Some(cost_ns);
        let within = Duration::from_secs_f64((cost_ns * 1e-9 / budget.share()).min(1.0));
        self.mean = within.clamp(self.rate.distance(), Self::LONGEST);
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
            assert_eq!(text.parse::<SampleRate>().unwrap().per_second(), rate, "{text}");
        }
        for text in ["0", "101", "-1", "1.5", "", "ten"] {
            assert!(text.parse::<SampleRate>().is_err(), "{text}");
        }
    }

    #[test]
    fn distances_vary_around_the_mean() {
        let mut schedule = Schedule::new(SampleRate::default(), 2);
        let drawn: Vec<f64> = (0..10_000).map(|_| schedule.draw().as_secs_f64()).collect();
        assert!(drawn.iter().all(|distance| (0.05..=0.15).contains(distance)));
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        assert!((0.099..0.101).contains(&mean), "{mean}");
        let mut again = Schedule::new(SampleRate::default(), 2);
        assert_eq!(again.draw().as_secs_f64(), drawn[0]);
    }

    #[test]
    fn a_budget_is_a_percentage_of_a_cpu() {
        assert!(("0.5%".parse::<Budget>().unwrap().share() - 0.005).abs() < 1e-9);
        for text in ["0%", "0.5", "101%", "-1%", "", "%"] {
            assert!(text.parse::<Budget>().is_err(), "{text}");
        }
    }

    #[test]
    fn samples_come_later_while_they_cost_more_than_the_budget_permits() {
        let rate = SampleRate::default().within(Some("0.5%".parse().unwrap()));
        let mut schedule = Schedule::new(rate, 2);
        // 0.2 ms ten times per second are 0.2 %.
        schedule.note_cost(200_000);
        assert_eq!(schedule.mean, rate.distance());
        // 2 ms are 0.5 % at 2.5 per second.
        (0..200).for_each(|_| schedule.note_cost(2_000_000));
        assert!((schedule.mean.as_secs_f64() - 0.4).abs() < 1e-3, "{:?}", schedule.mean);
        // At least one per second, whatever it costs.
        schedule.note_cost(60_000_000_000);
        assert_eq!(schedule.mean, Schedule::LONGEST);
        (0..200).for_each(|_| schedule.note_cost(200_000));
        assert_eq!(schedule.mean, rate.distance());
        let mut without = Schedule::new(SampleRate::default(), 2);
        without.note_cost(60_000_000_000);
        assert_eq!(without.mean, rate.distance());
    }
}
