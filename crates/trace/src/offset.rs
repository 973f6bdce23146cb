// SPDX-License-Identifier: PostgreSQL
//! Bounds the offset between the clocks of two machines by causality: the server reads a call's first message after the
//! call began, and the call ends after the server began to handle its last message.

/// Maximum relative drift between two clocks: adjtimex adjusts each by at most 500 ppm.
const DRIFT: f64 = 1e-3;
/// This many consecutive calls that contradict the bounds mean that a clock was set.
const CONTRADICTIONS: u32 = 3;

/// The offset to add to times of the client to get times of the server, ns.
#[derive(Debug, Default)]
pub struct Offset {
    /// Time of the client, lower bound, upper bound.
    known: Option<(u64, i64, i64)>,
    contradictions: u32,
}

impl Offset {
    /// Narrows the bounds with a call: its start and end on the client's clock; on the server's clock, when its first
    /// message was read and when the server began to handle its last one. Returns false if that contradicts the
    /// bounds.
    pub fn narrow(&mut self, call: (u64, u64), first: u64, last: u64) -> bool {
        let (lowest, highest) = (last as i64 - call.1 as i64, first as i64 - call.0 as i64);
        let (low, high) = match self.known {
            Some((at, low, high)) => {
                let drift = (call.1.abs_diff(at) as f64 * DRIFT) as i64;
                (lowest.max(low - drift), highest.min(high + drift))
            }
            None => (lowest, highest),
        };
        if low <= high {
            self.known = Some((call.1, low, high));
            self.contradictions = 0;
            return true;
        }
        self.contradictions += 1;
        if self.contradictions >= CONTRADICTIONS {
            *self = Offset::default();
        }
        false
    }

    /// The middle of the bounds, ns; 0 if unknown.
    pub fn middle(&self) -> i64 {
        self.known.map_or(0, |(_, low, high)| low + (high - low) / 2)
    }

    /// Converts a time of the server to the client's clock.
    pub fn of_client(&self, server: u64) -> u64 {
        server.saturating_add_signed(-self.middle())
    }

    /// Maximum error of the middle, ns; `None` if unknown.
    pub fn error(&self) -> Option<u64> {
        self.known.map(|(_, low, high)| (high - low) as u64 / 2 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const APART: u64 = 5_000_000_000;

    #[test]
    fn the_shortest_round_trip_bounds_it_and_long_calls_do_not_widen_it() {
        let mut offset = Offset::default();
        // 30 us to the server, 50 us back.
        assert!(offset.narrow((1_000_000, 1_100_000), 1_030_000 + APART, 1_050_000 + APART));
        assert_eq!(offset.error(), Some(40_001));
        assert!(offset.narrow((1_200_000, 9_200_000), 1_300_000 + APART, 1_300_000 + APART));
        assert!(offset.error().unwrap() < 50_000, "{offset:?}");
        let found = offset.of_client(2_000_000 + APART);
        assert!(found.abs_diff(2_000_000) <= offset.error().unwrap(), "{found}");
    }

    #[test]
    fn what_is_known_ages() {
        let mut offset = Offset::default();
        assert!(offset.narrow((0, 100_000), APART + 50_000, APART + 50_000));
        let server = APART + 1_005_000_000;
        assert!(offset.narrow((1_000_000_000, 1_010_000_000), server, server));
        assert!((900_000..1_100_000).contains(&offset.error().unwrap()), "{offset:?}");
    }

    #[test]
    fn a_contradiction_is_reported_and_a_clock_that_was_set_is_learnt() {
        let mut offset = Offset::default();
        let at = |n: u64| ((n, n + 100), n + APART, n + APART);
        let (call, first, last) = at(0);
        assert!(offset.narrow(call, first, last));
        for n in 1..=3 {
            let (call, first, last) = at(n * 1000);
            assert!(!offset.narrow(call, first + 1_000_000_000, last + 1_000_000_000));
        }
        let (call, first, last) = at(5000);
        assert!(offset.narrow(call, first + 1_000_000_000, last + 1_000_000_000));
    }
}
