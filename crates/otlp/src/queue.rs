// SPDX-License-Identifier: PostgreSQL
//! A bounded queue of requests to send. When it is full, the oldest request is dropped and counted.
//!
//! Concurrency contract. One thread pushes, one takes. A request stays in the queue until it is settled, so that the
//! fate of each request is always known.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum size of all waiting requests, bytes.
const BYTES: usize = 16 << 20;

/// The fate of readings, events or spans.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Fate {
    /// Accepted by the receiver.
    pub accepted: u64,
    /// Given up: refused, or dropped because the queue was full.
    pub dropped: u64,
    /// Not accepted yet.
    pub waiting: u64,
}

/// The waiting requests.
#[derive(Debug, Default)]
pub struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    requests: VecDeque<ExportRequest>,
    bytes: usize,
    fate: Fate,
    /// Number of requests removed.
    settled: u64,
    /// The queue is closed, and nothing is sent after this time.
    until: Option<Instant>,
}

#[derive(Debug, Clone)]
struct ExportRequest {
    body: Vec<u8>,
    items: u64,
}

/// A request and its ordinal.
#[derive(Debug, Clone)]
pub struct QueuedRequest {
    /// The body to send.
    pub body: Vec<u8>,
    ordinal: u64,
}

impl QueueState {
    fn remove_first(&mut self) -> Option<u64> {
        let first = self.requests.pop_front()?;
        self.bytes -= first.body.len();
        self.settled += 1;
        self.fate.waiting -= first.items;
        Some(first.items)
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        // A panic elsewhere leaves counts and requests unchanged.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request with this number of readings, events or spans.
    pub fn push(&self, body: Vec<u8>, items: u64) {
        let mut state = self.lock();
        state.bytes += body.len();
        state.fate.waiting += items;
        state.requests.push_back(ExportRequest { body, items });
        while state.bytes > BYTES {
            let Some(items) = state.remove_first() else { break };
            state.fate.dropped += items;
        }
        self.changed.notify_all();
    }

    /// Waits for the oldest request; `None` if the queue is closed and empty, or it is too late to send.
    pub fn first(&self) -> Option<QueuedRequest> {
        let mut state = self.lock();
        loop {
            if state.until.is_some_and(|until| Instant::now() >= until) {
                return None;
            }
            if let Some(first) = state.requests.front() {
                return Some(QueuedRequest { body: first.body.clone(), ordinal: state.settled });
            }
            if state.until.is_some() {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Removes a request, of whose items `rejected` were refused, or all if `None`.
    pub fn settle(&self, taken: &QueuedRequest, rejected: Option<u64>) {
        let mut state = self.lock();
        // Otherwise it was dropped meanwhile.
        if state.settled == taken.ordinal {
            if let Some(items) = state.remove_first() {
                let rejected = rejected.map_or(items, |rejected| rejected.min(items));
                state.fate.dropped += rejected;
                state.fate.accepted += items - rejected;
            }
        }
    }

    /// Whether a request has not been dropped and can still be sent.
    pub fn holds(&self, taken: &QueuedRequest) -> bool {
        let state = self.lock();
        state.settled == taken.ordinal && state.until.is_none_or(|until| Instant::now() < until)
    }

    /// Waits this long, or until the queue is closed, which leaves time for one more attempt.
    pub fn pause(&self, length: Duration) {
        let end = Instant::now() + length;
        let mut state = self.lock();
        let open = state.until.is_none();
        loop {
            if open && state.until.is_some() {
                return;
            }
            let end = state.until.map_or(end, |until| until.min(end));
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state =
                self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Closes the queue; waiting requests may be sent until `until`.
    pub fn close(&self, until: Instant) {
        self.lock().until = Some(until);
        self.changed.notify_all();
    }

    /// How much longer a request may take.
    pub fn left(&self) -> Option<Duration> {
        self.lock().until.map(|until| until.saturating_duration_since(Instant::now()))
    }

    /// The fate of all items.
    pub fn fate(&self) -> Fate {
        self.lock().fate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_dropped_and_each_is_counted_once() {
        let queue = Queue::default();
        let size = BYTES / 4;
        for _ in 0..4 {
            queue.push(vec![0; size], 10);
        }
        let taken = queue.first().unwrap();
        queue.push(vec![0; size], 10);
        assert_eq!(queue.fate(), Fate { accepted: 0, dropped: 10, waiting: 40 });
        // Accepted, but after it had been given up.
        queue.settle(&taken, Some(0));
        assert_eq!(queue.fate(), Fate { accepted: 0, dropped: 10, waiting: 40 });
        let taken = queue.first().unwrap();
        queue.settle(&taken, Some(3));
        assert_eq!(queue.fate(), Fate { accepted: 7, dropped: 13, waiting: 30 });
        let taken = queue.first().unwrap();
        queue.settle(&taken, None);
        assert_eq!(queue.fate(), Fate { accepted: 7, dropped: 23, waiting: 20 });
        queue.push(vec![0; 2 * size], 10);
        assert_eq!(
            queue.fate(),
            Fate { accepted: 7, dropped: 23, waiting: 30 },
            "there is space again"
        );
    }

    #[test]
    fn a_closed_queue_gives_what_it_has_until_it_is_too_late() {
        let queue = Queue::default();
        queue.push(vec![1], 1);
        queue.close(Instant::now() + Duration::from_secs(600));
        let taken = queue.first().unwrap();
        queue.settle(&taken, Some(0));
        assert!(queue.first().is_none());
        queue.push(vec![1], 1);
        queue.close(Instant::now());
        assert!(queue.first().is_none());
        queue.pause(Duration::from_secs(600));
    }
}
