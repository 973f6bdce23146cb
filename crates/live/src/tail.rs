// SPDX-License-Identifier: PostgreSQL
//! New events of the event ring, each once and in order, and how many were lost.
//!
//! An event whose number is missing may still arrive: its writer has claimed the number and is about
//! to write. The event is lost once a later one has overwritten it, or if it does not arrive in time
//! because its writer was killed.

use std::time::{Duration, Instant};

use error::Error;
use segment::{Event, Segment};
use view::events::{rows, Row};

/// How long to wait for a missing event before later ones are reported.
const PATIENCE: Duration = Duration::from_secs(1);

/// An event, or a gap before the next one.
#[derive(Debug, PartialEq)]
enum Item {
    /// An event.
    Event(Event),
    /// This many events were lost.
    Lost(u64),
}

/// How far the ring has been read.
#[derive(Debug)]
pub struct Tail {
    last: u64,
    /// Since when the next event has been missing although later ones exist.
    waiting: Option<Instant>,
    /// Lost events that no row has reported yet.
    lost: u64,
    /// How many events the ring keeps.
    pub capacity: u32,
}

impl Tail {
    /// All events after this number.
    pub fn after(number: u64) -> Tail {
        Tail { last: number, waiting: None, lost: 0, capacity: 0 }
    }

    /// Whether events are held back because an earlier one is missing.
    pub fn waits(&self) -> bool {
        self.waiting.is_some()
    }

    /// The new events in this segment's ring as rows, each with the number lost before it. If the
    /// writers have `ended`, events that are missing now are lost.
    pub fn rows(&mut self, segment: &Segment, ended: bool) -> Result<Vec<Row>, Error> {
        let (mut events, mut losses) = (Vec::new(), Vec::new());
        for item in self.read(segment, Instant::now(), ended)? {
            match item {
                Item::Lost(number) => self.lost += number,
                Item::Event(event) => {
                    losses.push(std::mem::take(&mut self.lost));
                    events.push(event);
                }
            }
        }
        let mut rows = rows(segment, events)?;
        for (row, lost) in rows.iter_mut().zip(losses) {
            row.lost = lost;
        }
        Ok(rows)
    }

    /// The new events and gaps in this segment's ring. If the writers have `ended`, events that
    /// are missing now are lost.
    fn read(
        &mut self,
        segment: &Segment,
        now: Instant,
        ended: bool,
    ) -> Result<Vec<Item>, segment::Error> {
        self.capacity = segment.event_capacity();
        let begun = segment.event_count()?;
        if !self.has_more(begun) {
            return Ok(Vec::new());
        }
        let lost = begun.saturating_sub(u64::from(self.capacity));
        Ok(self.take(segment.events(self.last)?, lost, (!ended).then_some(now)))
    }

    /// Whether there are new events if this many were begun.
    fn has_more(&mut self, begun: u64) -> bool {
        if begun < self.last {
            // The writer has started again in the same file.
            (self.last, self.waiting) = (0, None);
        }
        begun > self.last
    }

    /// `found`: the events after the last one, oldest first. Events up to number `lost` were
    /// overwritten. Without `now`, missing events count as lost at once.
    fn take(&mut self, found: Vec<Event>, lost: u64, now: Option<Instant>) -> Vec<Item> {
        let mut items = Vec::new();
        // PATIENCE applies to each gap: the time so far counts for the first one only.
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

    /// Events up to this number that have not arrived are lost.
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
            payload: None,
        };
        numbers.iter().map(event).collect()
    }

    /// Events by their numbers, losses as negative numbers.
    fn numbers(items: Vec<Item>) -> Vec<i64> {
        let number = |item| match item {
            Item::Event(event) => event.number as i64,
            Item::Lost(number) => -(number as i64),
        };
        items.into_iter().map(number).collect()
    }

    #[test]
    fn each_event_comes_once_and_in_order() {
        let (mut tail, now) = (Tail::after(0), Instant::now());
        assert_eq!(numbers(tail.take(events(&[1, 2]), 0, Some(now))), [1, 2]);
        assert!(numbers(tail.take(events(&[]), 0, Some(now))).is_empty());
        assert_eq!(numbers(tail.take(events(&[3]), 0, Some(now))), [3]);
        assert!(!tail.waits());
    }

    #[test]
    fn a_server_that_began_again_is_read_from_its_first_event() {
        let (mut tail, now) = (Tail::after(7), Instant::now());
        assert!(!tail.has_more(7));
        assert!(tail.has_more(9));
        assert!(numbers(tail.take(events(&[9]), 0, Some(now))).is_empty());
        assert!(tail.has_more(2));
        assert!(!tail.waits());
        assert_eq!(numbers(tail.take(events(&[1, 2]), 0, Some(now))), [1, 2]);
        assert!(!tail.has_more(0));
    }

    #[test]
    fn overwritten_events_are_counted_as_lost() {
        let (mut tail, now) = (Tail::after(0), Instant::now());
        assert_eq!(numbers(tail.take(events(&[21, 22]), 20, Some(now))), [-20, 21, 22]);
        // The writer of 23 is late; then the ring wraps and overwrites everything.
        assert!(numbers(tail.take(events(&[24]), 20, Some(now))).is_empty());
        assert!(tail.waits());
        assert_eq!(numbers(tail.take(events(&[]), 38, Some(now))), [-16]);
        assert_eq!(numbers(tail.take(events(&[39]), 38, Some(now))), [39]);
    }

    #[test]
    fn a_late_event_is_waited_for_but_not_forever() {
        let (mut tail, now) = (Tail::after(7), Instant::now());
        assert_eq!(numbers(tail.take(events(&[8, 10]), 0, Some(now))), [8]);
        assert!(tail.waits());
        let soon = now + PATIENCE / 2;
        assert_eq!(numbers(tail.take(events(&[9, 10]), 0, Some(soon))), [9, 10]);
        assert!(!tail.waits());
        assert!(numbers(tail.take(events(&[12]), 0, Some(soon))).is_empty());
        assert!(numbers(tail.take(events(&[12]), 0, Some(soon + PATIENCE / 2))).is_empty());
        // The next gap has a time limit of its own.
        let late = soon + PATIENCE;
        assert_eq!(numbers(tail.take(events(&[12, 14]), 0, Some(late))), [-1, 12]);
        assert_eq!(numbers(tail.take(events(&[13, 14]), 0, Some(late + PATIENCE / 2))), [13, 14]);
        // Once the writers have ended there is nothing to wait for.
        assert_eq!(numbers(tail.take(events(&[16]), 0, None)), [-1, 16]);
    }
}
