// SPDX-License-Identifier: PostgreSQL
//! The delay after a failure: 1 s, doubled after each further failure up to 5 min, minus a random part of
//! up to half, so that a thousand recorders do not retry at the same time.

use rand::Rng;
use std::time::Duration;

const FIRST: Duration = Duration::from_secs(1);
const MAX: Duration = Duration::from_secs(300);

/// Counts consecutive failures.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    pub fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// The time to wait after another failure.
    pub fn failed(&mut self) -> Duration {
        let wait = FIRST.saturating_mul(1 << self.failures.min(16)).min(MAX);
        self.failures += 1;
        wait.mul_f64(rand::rng().random_range(0.5..=1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_from_a_second_to_five_minutes() {
        let mut backoff = Backoff::default();
        let waits: Vec<Duration> = (0..40).map(|_| backoff.failed()).collect();
        assert!((0.5..=1.0).contains(&waits[0].as_secs_f64()));
        assert!(waits[20..].iter().all(|wait| (150.0..=300.0).contains(&wait.as_secs_f64())));
        backoff.succeeded();
        assert!(backoff.failed() <= FIRST);
    }
}
