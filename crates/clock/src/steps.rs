// SPDX-License-Identifier: PostgreSQL
//! The steps of a clock between consecutive readings. They show the cost of a reading, the clock's
//! resolution, and whether it ever goes back.

/// Steps of at least this many ticks are kept in a list; shorter ones are counted in a table.
pub const LONG: u64 = 4096;

/// Steps in which the clock went back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backward {
    /// Number of readings below the one before.
    pub count: u64,
    /// The largest step back, ticks.
    pub largest: u64,
}

impl Backward {
    /// Adds a step of this size.
    pub fn add(&mut self, ticks: u64) {
        self.count += 1;
        self.largest = self.largest.max(ticks);
    }

    /// Adds the steps of another processor.
    pub fn merge(&mut self, other: Backward) {
        self.count += other.count;
        self.largest = self.largest.max(other.largest);
    }
}

/// The steps of a clock.
#[derive(Debug, Clone)]
pub struct Steps {
    /// Number of steps by length in ticks.
    short: Box<[u64; LONG as usize]>,
    long: Vec<u64>,
    backward: Backward,
}

impl Default for Steps {
    fn default() -> Self {
        Self {
            short: Box::new([0; LONG as usize]),
            long: Vec::new(),
            backward: Backward::default(),
        }
    }
}

impl Steps {
    /// Adds this number of readings; calls `long` with each long step. A step lasts from one call of `read` to
    /// the next and includes, as in pg_test_timing, the recording of the step before.
    #[inline(always)]
    pub fn take(&mut self, readings: u64, read: impl Fn() -> u64, long: &mut dyn FnMut(u64)) {
        let mut last = read();
        for _ in 0..readings {
            let now = read();
            let step = now.wrapping_sub(last);
            last = now;
            if step < LONG {
                self.short[step as usize] += 1;
            } else {
                self.add_long(step, long);
                last = read();
            }
        }
    }

    #[cold]
    fn add_long(&mut self, step: u64, long: &mut dyn FnMut(u64)) {
        // No clock runs for 2^63 ticks between two readings, so this is a step back.
        if step > u64::MAX / 2 {
            self.backward.add(step.wrapping_neg());
        } else {
            self.long.push(step);
            long(step);
        }
    }

    /// The steps in which the clock went back.
    pub fn backward(&self) -> Backward {
        self.backward
    }

    /// Number of steps, without those in which the clock went back.
    pub fn count(&self) -> u64 {
        self.short.iter().sum::<u64>() + self.long.len() as u64
    }

    /// Sum of the steps, ticks.
    pub fn total(&self) -> u64 {
        self.sized().map(|(ticks, count)| ticks * count).sum::<u64>()
            + self.long.iter().sum::<u64>()
    }

    /// Number of readings equal to the one before.
    pub fn zeros(&self) -> u64 {
        self.short[0]
    }

    /// The longest step, ticks.
    pub fn max(&self) -> Option<u64> {
        let short = self.sized().map(|(ticks, _)| ticks).last();
        self.long.iter().copied().max().or(short)
    }

    /// The shortest step above zero, ticks.
    pub fn min(&self) -> Option<u64> {
        let short = self.sized().map(|(ticks, _)| ticks).find(|ticks| *ticks > 0);
        short.or_else(|| self.long.iter().copied().min())
    }

    /// The greatest common divisor of all steps, ticks.
    pub fn grain(&self) -> Option<u64> {
        let short = self.sized().map(|(ticks, _)| ticks);
        match short.chain(self.long.iter().copied()).fold(0, gcd) {
            0 => None,
            grain => Some(grain),
        }
    }

    /// The quantile at this share (0 to 1), ticks; exact, not the bound of a bucket. `None` without steps.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let rank = ((share * self.count() as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (ticks, count) in self.sized() {
            seen += count;
            if seen >= rank {
                return Some(ticks);
            }
        }
        let mut long = self.long.clone();
        long.sort_unstable();
        long.get((rank - seen) as usize - 1).or(long.last()).copied()
    }

    /// Number of steps by powers of two: shorter than 1, 2, 4, 8, ... nanoseconds and at least half of that. The
    /// last number is above 0.
    pub fn powers_of_two(&self, ns_per_tick: f64) -> Vec<u64> {
        let mut powers = Vec::new();
        for (ticks, count) in self.sized().chain(self.long.iter().map(|ticks| (*ticks, 1))) {
            let ns = (ticks as f64 * ns_per_tick) as u64;
            let power = (u64::BITS - ns.leading_zeros()) as usize;
            if powers.len() <= power {
                powers.resize(power + 1, 0);
            }
            powers[power] += count;
        }
        powers
    }

    /// Adds the steps of another loop.
    pub fn merge(&mut self, other: &Steps) {
        for (mine, theirs) in self.short.iter_mut().zip(other.short.iter()) {
            *mine += theirs;
        }
        self.long.extend_from_slice(&other.long);
        self.backward.merge(other.backward);
    }

    /// The short steps: length in ticks, and number.
    fn sized(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        (0..).zip(self.short.iter().copied()).filter(|(_, count)| *count > 0)
    }
}

/// Euclid's algorithm.
fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        b => gcd(b, a % b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Steps of a clock with these readings.
    fn steps(readings: &[u64]) -> (Steps, Vec<u64>) {
        let mut steps = Steps::default();
        let (at, mut long) = (Cell::new(0), Vec::new());
        let read = || {
            at.set(at.get() + 1);
            readings[at.get() - 1]
        };
        // `take` reads once more after each long step.
        let extra = readings.windows(2).filter(|w| w[1].wrapping_sub(w[0]) >= LONG).count();
        steps.take((readings.len() - 1 - extra) as u64, read, &mut |ticks| long.push(ticks));
        (steps, long)
    }

    #[test]
    fn quantiles_are_measured_values() {
        let (steps, long) = steps(&[0, 10, 20, 30, 50, 50, 100, 10_100, 10_100]);
        assert_eq!(long, [10_000]);
        assert_eq!(steps.count(), 7);
        assert_eq!(steps.total(), 10_100);
        assert_eq!(steps.zeros(), 1);
        assert_eq!(steps.min(), Some(10));
        assert_eq!(steps.grain(), Some(10));
        assert_eq!(steps.max(), Some(10_000));
        for (share, ticks) in [(0.0, 0), (0.14, 0), (0.5, 10), (0.7, 20), (0.85, 50), (1.0, 10_000)]
        {
            assert_eq!(steps.quantile(share), Some(ticks), "{share}");
        }
        assert_eq!(steps.powers_of_two(1.0)[..7], [1, 0, 0, 0, 3, 1, 1]);
        assert_eq!(steps.powers_of_two(1.0).iter().sum::<u64>(), 7);
    }

    #[test]
    fn steps_back_are_counted_apart_from_steps() {
        let (steps, long) = steps(&[100, 110, 107, 107, 117, 67, 67]);
        assert_eq!(steps.backward(), Backward { count: 2, largest: 50 });
        assert_eq!((steps.count(), steps.total()), (2, 20));
        assert!(long.is_empty());
    }

    #[test]
    fn without_readings_there_are_no_figures() {
        let none = Steps::default();
        assert_eq!((none.quantile(0.5), none.min(), none.max()), (None, None, None));
        assert_eq!(none.grain(), None);
        assert!(none.powers_of_two(1.0).is_empty());
    }

    #[test]
    fn merging_adds_the_steps_of_both() {
        let (mut one, _) = steps(&[0, 10, 20]);
        let (other, _) = steps(&[5, 4, 4, 5_004, 5_004]);
        one.merge(&other);
        assert_eq!((one.count(), one.total(), one.max()), (3, 5_020, Some(5_000)));
        assert_eq!(one.backward(), Backward { count: 1, largest: 1 });
    }
}
