// SPDX-License-Identifier: PostgreSQL
//! Divides the time of a client's call completely among client, network and server.

use client::call::{Call, Span};

/// The parts of the time of a call, ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parts {
    /// In the client, before its first write or read.
    pub encode: u64,
    /// While the client waited and the server handled none of the call's messages.
    pub network: u64,
    /// While the client waited and the server handled them.
    pub server: u64,
    /// In the client after that, without garbage collections.
    pub driver: u64,
    /// Garbage collections while the client did not wait.
    pub collecting: u64,
    /// Time in which the server handled messages while the client did not wait; included in the parts of the client.
    pub overlap: u64,
}

impl Parts {
    /// Divides a call whose messages the server handled at these times, in order, without overlaps.
    pub fn divide(call: &Call, server: &[Span]) -> Parts {
        let clipped = |spans: &[Span]| -> Vec<Span> {
            let spans = spans.iter().map(|span| (span.0.max(call.span.0), span.1.min(call.span.1)));
            spans.filter(|span| span.0 < span.1).collect()
        };
        let (waits, handled) = (clipped(&call.waits), clipped(server));
        let waited = length(&waits);
        let both = common(&waits, &handled);
        let own = call.span.1.saturating_sub(call.span.0).saturating_sub(waited);
        let collecting = call.collecting.min(own);
        let before = waits.first().map_or(own, |wait| wait.0 - call.span.0);
        let encode = before.min(own - collecting);
        Parts {
            encode,
            network: waited.saturating_sub(both),
            server: both,
            driver: own - collecting - encode,
            collecting,
            overlap: length(&handled).saturating_sub(both),
        }
    }

    /// The sum of the parts, which is the time of the call.
    pub fn sum(&self) -> u64 {
        self.encode + self.network + self.server + self.driver + self.collecting
    }

    /// Adds the parts of another call.
    pub fn add(&mut self, other: &Parts) {
        self.encode += other.encode;
        self.network += other.network;
        self.server += other.server;
        self.driver += other.driver;
        self.collecting += other.collecting;
        self.overlap += other.overlap;
    }
}

fn length(spans: &[Span]) -> u64 {
    spans.iter().map(|span| span.1 - span.0).sum()
}

/// Time covered by both.
fn common(a: &[Span], b: &[Span]) -> u64 {
    let (mut i, mut j, mut sum) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        sum += x.1.min(y.1).saturating_sub(x.0.max(y.0));
        if x.1 <= y.1 {
            i += 1;
        } else {
            j += 1;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_fill_the_time_of_the_call() {
        let call = Call { span: (100, 200), waits: vec![(110, 112), (120, 180)], collecting: 5 };
        // Begins before the client has finished its write, and ends while it reads.
        let parts = Parts::divide(&call, &[(111, 125), (130, 160), (190, 300)]);
        let expected = Parts {
            encode: 10,
            network: 62 - 36,
            server: 36,
            driver: 23,
            collecting: 5,
            overlap: 8 + 10,
        };
        assert_eq!(parts, expected);
        assert_eq!(parts.sum(), 100);
    }

    #[test]
    fn collections_take_from_the_clients_own_time_alone() {
        let call = Call { span: (0, 100), waits: vec![(10, 90)], collecting: 70 };
        let parts = Parts::divide(&call, &[]);
        assert_eq!((parts.collecting, parts.encode, parts.driver), (20, 0, 0));
        assert_eq!(parts.sum(), 100);
    }

    #[test]
    fn spans_that_do_not_overlap_with_the_call_do_not_count() {
        let call = Call { span: (100, 110), ..Call::default() };
        let parts = Parts::divide(&call, &[(0, 100), (110, 120)]);
        assert_eq!(parts, Parts { encode: 10, ..Parts::default() });
    }
}
