// SPDX-License-Identifier: PostgreSQL
//! What is new in the ring of events, each once and in order, and how many were missed.
//!
//! A number that is missing may still come: its writer has taken the number and is about to
//! write. It is lost when a later event has taken its place, or when it does not come in time
//! because its writer was killed.

use std::time::{Duration, Instant};

use segment::{Event, Segment};

/// How long a writer may take over an event. The later ones wait for it.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is found in the ring, in order.
#[derive(Debug, PartialEq, Eq)]
pub enum Item {
    /// One more event.
    Event(Event),
    /// So many have been written over before they were read.
    Lost(u64),
}

/// How far the ring has been read.
#[derive(Debug)]
pub struct Tail {
    last: u64,
    /// The one after the last is missing since then, and later ones are there.
    waiting: Option<Instant>,
}

impl Tail {
    /// All events after this number.
    pub fn after(number: u64) -> Tail {
        Tail { last: number, waiting: None }
    }

    /// Whether there is something that cannot be told yet.
    pub fn waits(&self) -> bool {
        self.waiting.is_some()
    }

    /// What is new in the ring of this segment. Where its writers have gone, nothing that is
    /// missing will come.
    pub fn read(
        &mut self,
        segment: &Segment,
        now: Instant,
        gone: bool,
    ) -> Result<Vec<Item>, segment::Error> {
        let begun = segment.event_count()?;
        if begun < self.last {
            // Another writer began anew in the same file.
            *self = Tail::after(0);
        }
        if begun == self.last {
            return Ok(Vec::new());
        }
        let lost = begun.saturating_sub(u64::from(segment.event_capacity()));
        Ok(self.take(segment.events(self.last)?, lost, (!gone).then_some(now)))
    }

    /// `found` are the events after the last one, oldest first; up to number `lost` there
    /// cannot be any more. Without `now` nothing is waited for.
    fn take(&mut self, found: Vec<Event>, lost: u64, now: Option<Instant>) -> Vec<Item> {
        let mut items = Vec::new();
        // What has been waited for is the first gap; each later one gets as long.
        let mut since = self.waiting.take();
        for event in found {
            let begun = since.or(now);
            let late = begun.zip(now).is_none_or(|(begun, now)| now - begun >= PATIENCE);
            if !late && event.number > lost.max(self.last) + 1 {
                self.waiting = begun;
                break;
            }
            self.skip(event.number - 1, &mut items);
            self.last = event.number;
            items.push(Item::Event(event));
            since = None;
        }
        self.skip(lost, &mut items);
        items
    }

    /// What has not come up to this number is lost.
    fn skip(&mut self, to: u64, items: &mut Vec<Item>) {
        if to > self.last {
            items.push(Item::Lost(to - self.last));
            self.last = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segment::EventKind;

    fn events(numbers: &[u64]) -> Vec<Event> {
        let event = |&number| Event {
            number,
            tick: number,
            pid: 1,
            kind: EventKind::Note,
            text: String::new(),
        };
        numbers.iter().map(event).collect()
    }

    /// Events by their numbers, losses as negative numbers.
    fn told(items: Vec<Item>) -> Vec<i64> {
        let number = |item| match item {
            Item::Event(event) => event.number as i64,
            Item::Lost(number) => -(number as i64),
        };
        items.into_iter().map(number).collect()
    }

    #[test]
    fn each_is_told_once_and_in_order() {
        let (mut tail, now) = (Tail::after(0), Instant::now());
        assert_eq!(told(tail.take(events(&[1, 2]), 0, Some(now))), [1, 2]);
        assert!(told(tail.take(events(&[]), 0, Some(now))).is_empty());
        assert_eq!(told(tail.take(events(&[3]), 0, Some(now))), [3]);
        assert!(!tail.waits());
    }

    #[test]
    fn what_was_written_over_is_counted() {
        let (mut tail, now) = (Tail::after(0), Instant::now());
        assert_eq!(told(tail.take(events(&[21, 22]), 20, Some(now))), [-20, 21, 22]);
        // The writer of 23 is late; then the ring goes round, and over all that there was.
        assert!(told(tail.take(events(&[24]), 20, Some(now))).is_empty());
        assert!(tail.waits());
        assert_eq!(told(tail.take(events(&[]), 38, Some(now))), [-16]);
        assert_eq!(told(tail.take(events(&[39]), 38, Some(now))), [39]);
    }

    #[test]
    fn one_that_is_late_is_waited_for_and_not_for_ever() {
        let (mut tail, now) = (Tail::after(7), Instant::now());
        assert_eq!(told(tail.take(events(&[8, 10]), 0, Some(now))), [8]);
        assert!(tail.waits());
        let soon = now + PATIENCE / 2;
        assert_eq!(told(tail.take(events(&[9, 10]), 0, Some(soon))), [9, 10]);
        assert!(!tail.waits());
        assert!(told(tail.take(events(&[12]), 0, Some(soon))).is_empty());
        assert!(told(tail.take(events(&[12]), 0, Some(soon + PATIENCE / 2))).is_empty());
        // The next gap is another one, and its time begins anew.
        let late = soon + PATIENCE;
        assert_eq!(told(tail.take(events(&[12, 14]), 0, Some(late))), [-1, 12]);
        assert_eq!(told(tail.take(events(&[13, 14]), 0, Some(late + PATIENCE / 2))), [13, 14]);
        // And where nobody writes any more there is nothing to wait for.
        assert_eq!(told(tail.take(events(&[16]), 0, None)), [-1, 16]);
    }
}
