// SPDX-License-Identifier: PostgreSQL
//! Decides when the warm-up is over.

use std::collections::VecDeque;

use crate::storage::file::WarmUp;
use crate::storage::log::LoadSample;

/// Samples to compare: this many of the latest, and as many before them.
const SAMPLES: usize = 5;
/// The rate may differ from the schedule by this share.
const RATE: f64 = 0.02;
/// Response times and dirty pages may differ by this factor.
const GROWTH: f64 = 1.5;
/// Dirty bytes below this do not matter.
const FEW_BYTES: f64 = 16e6;

/// Watches the samples of the warm-up.
#[derive(Debug)]
pub struct WarmUpWatch {
    wanted: WarmUp,
    most: f64,
    began: Option<f64>,
    last: VecDeque<LoadSample>,
}

impl WarmUpWatch {
    /// `most`: the longest warm-up, seconds.
    pub fn new(wanted: WarmUp, most: f64) -> Self {
        Self { wanted, most, began: None, last: VecDeque::new() }
    }

    /// Adds a sample. Returns why the warm-up is over, if it is.
    pub fn add(&mut self, sample: &LoadSample) -> Option<String> {
        let began = *self.began.get_or_insert(sample.from);
        let seconds = sample.to - began;
        self.last.push_back(sample.clone());
        if self.last.len() > 2 * SAMPLES {
            self.last.pop_front();
        }
        let found = match self.wanted {
            WarmUp::After(time) => {
                (seconds >= time.as_secs_f64()).then(|| format!("after {seconds:.0} s"))
            }
            WarmUp::Steady => self.is_steady().then(|| format!("steady after {seconds:.0} s")),
            WarmUp::CacheFull => {
                sample.memory.is_full().then(|| format!("page cache full after {seconds:.0} s"))
            }
        };
        let late = seconds >= self.most && !matches!(self.wanted, WarmUp::After(_));
        found.or_else(|| {
            let what =
                if self.wanted == WarmUp::Steady { "not steady" } else { "page cache not full" };
            late.then(|| format!("{what} after {seconds:.0} s, the longest warm-up"))
        })
    }

    fn is_steady(&self) -> bool {
        if self.last.len() < 2 * SAMPLES {
            return false;
        }
        let on_schedule = |sample: &LoadSample| {
            let off = (sample.made() as f64 - sample.wanted as f64).abs();
            off <= (RATE * sample.wanted as f64).max(2.0)
                && sample.owed as f64 <= sample.wanted as f64
        };
        let mean = |from: usize, of: &dyn Fn(&LoadSample) -> f64| {
            self.last.iter().skip(from).take(SAMPLES).map(of).sum::<f64>() / SAMPLES as f64
        };
        let grows = |of: &dyn Fn(&LoadSample) -> f64, min_value: f64| {
            let (before, after) = (mean(0, of), mean(SAMPLES, of));
            after > min_value && after > GROWTH * before
        };
        let response =
            |sample: &LoadSample| sample.responses.map_or(0.0, |responses| responses.p50);
        self.last.iter().all(on_schedule)
            && !grows(&response, 1e-3)
            && !grows(&|sample| sample.memory.dirty as f64, FEW_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::log::Quantiles;
    use crate::storage::machine::Memory;
    use std::time::Duration;

    fn sample(second: usize, made: u64, p50: f64, dirty: u64) -> LoadSample {
        LoadSample {
            from: second as f64,
            to: second as f64 + 1.0,
            wanted: 100,
            reads: made,
            responses: Some(Quantiles { p50, ..Quantiles::default() }),
            memory: Memory {
                dirty,
                total: 100,
                free: 50,
                dirty_limit: 1 << 40,
                ..Memory::default()
            },
            ..LoadSample::default()
        }
    }

    /// The second in which the warm-up ended, and why.
    fn ended(wanted: WarmUp, of: impl Fn(usize) -> LoadSample) -> Option<(usize, String)> {
        let mut watch = WarmUpWatch::new(wanted, 40.0);
        (0..100).find_map(|second| Some((second, watch.add(&of(second))?)))
    }

    #[test]
    fn a_time_is_waited_for() {
        let (second, why) =
            ended(WarmUp::After(Duration::from_secs(3)), |s| sample(s, 100, 1e-3, 0)).unwrap();
        assert_eq!((second, why.as_str()), (2, "after 3 s"));
    }

    #[test]
    fn steady_means_on_schedule_with_constant_responses_and_dirty_pages() {
        let steady = |of: &dyn Fn(usize) -> LoadSample| ended(WarmUp::Steady, of).unwrap();
        assert_eq!(steady(&|s| sample(s, 100, 1e-3, 0)).0, 9);
        let rate = steady(&|s| sample(s, if s < 7 { 80 } else { 100 }, 1e-3, 0));
        assert_eq!(rate.0, 16);
        let owed =
            |s| LoadSample { owed: if s < 3 { 101 } else { 100 }, ..sample(s, 100, 1e-3, 0) };
        assert_eq!(steady(&owed).0, 12, "more is owed than a second wants");
        assert!(steady(&|s| sample(s, 100, 2e-3 * 1.2f64.powi(s as i32), 0))
            .1
            .contains("not steady"));
        let dirty = steady(&|s| sample(s, 100, 1e-3, 20_000_000 * 2u64.pow(s.min(12) as u32)));
        assert!((18..=22).contains(&dirty.0), "{dirty:?}");
    }

    #[test]
    fn a_full_cache_is_noticed() {
        let full = |s: usize| {
            let mut sampled = sample(s, 100, 1e-3, 0);
            sampled.memory.free = if s < 12 { 50 } else { 4 };
            sampled
        };
        let (second, why) = ended(WarmUp::CacheFull, full).unwrap();
        assert_eq!(second, 12);
        assert!(why.contains("full after 13 s"), "{why}");
    }
}
