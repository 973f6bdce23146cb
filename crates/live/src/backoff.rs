// SPDX-License-Identifier: PostgreSQL
//! When to ask a server again that has refused: after a minute, then after twice as long each time, up to an hour. Each refusal is
//! a line in its log, but the server may be restarted, and a right may be granted later.

use std::time::{Duration, Instant};

/// The first distance, and the longest.
const FIRST: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(3600);

/// The refusals of a server, or of one of its databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The first distance.
    first: Duration,
    /// The last refusal, and the distance to the next attempt; `None`: it has not refused since it answered.
    last: Option<(Instant, Duration)>,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff::beginning_with(FIRST)
    }
}

impl Backoff {
    /// With another first distance than a minute.
    pub fn beginning_with(first: Duration) -> Backoff {
        Backoff { first, last: None }
    }

    /// Whether to ask now.
    pub fn is_due(&self, now: Instant) -> bool {
        self.last.is_none_or(|(at, distance)| now.saturating_duration_since(at) >= distance)
    }

    /// Whether it has refused, and is to be asked again now.
    pub fn is_retry_due(&self, now: Instant) -> bool {
        self.last.is_some() && self.is_due(now)
    }

    /// It has refused.
    pub fn note_refusal(&mut self, now: Instant) {
        let distance = self.last.map_or(self.first, |(_, distance)| (distance * 2).min(LONGEST));
        self.last = Some((now, distance));
    }

    /// It has answered.
    pub fn note_answer(&mut self) {
        self.last = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_refuses_is_asked_again_at_growing_distances() {
        let begin = Instant::now();
        let mut backoff = Backoff::default();
        assert!(backoff.is_due(begin) && !backoff.is_retry_due(begin));
        let mut asked = Vec::new();
        for minute in 0..=300 {
            let now = begin + Duration::from_secs(60 * minute);
            if backoff.is_due(now) {
                asked.push(minute);
                backoff.note_refusal(now);
                assert!(!backoff.is_due(now));
            }
        }
        assert_eq!(asked, [0, 1, 3, 7, 15, 31, 63, 123, 183, 243]);
        // Once it has answered, it begins anew.
        let later = begin + Duration::from_secs(60 * 303);
        assert!(backoff.is_retry_due(later));
        backoff.note_answer();
        assert!(backoff.is_due(later) && !backoff.is_retry_due(later));
        backoff.note_refusal(later);
        assert!(backoff.is_retry_due(later + FIRST));
    }
}
