// SPDX-License-Identifier: PostgreSQL
//! The event ring: the last notable events that writers recorded.
//!
//! Concurrency contract. An entry's number is 0 while the entry is being written. The number is read
//! before and after the entry, which is valid only if both readings are the number that its position implies.

use crate::error::Error;
use crate::event_kind::EventKind;
use crate::event_payload::Payload;
use crate::layout::{event, header, i32_at, text_at, u32_at, u64_at};
use crate::segment::Segment;

/// A notable event that a writer recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Its ordinal, counted from 1.
    pub number: u64,
    /// When it happened, tick.
    pub tick: u64,
    /// The process that recorded it.
    pub pid: i32,
    /// Its kind.
    pub kind: EventKind,
    /// The description.
    pub text: String,
    /// The description as values, for slow operations and checkpoints.
    pub payload: Option<Payload>,
}

impl Segment {
    /// The number of the last event begun.
    pub fn event_count(&self) -> Result<u64, Error> {
        self.read_u64(header::EVENT_COUNT as u64)
    }

    /// How many of the last events the ring keeps.
    pub fn event_capacity(&self) -> u32 {
        self.regions.events.count
    }

    /// The events after number `since` that are still in the ring, oldest first. Events that are being
    /// written or have been overwritten are missing.
    pub fn events(&self, since: u64) -> Result<Vec<Event>, Error> {
        let region = self.regions.events;
        let count = u64::from(region.count);
        let begun = self.event_count()?;
        let mut events = Vec::new();
        let mut bytes = [0u8; event::SIZE];
        for ordinal in since.max(begun.saturating_sub(count))..begun {
            let number = ordinal + 1;
            let offset = region.entry((ordinal % count) as u32);
            // The number before and after shows whether the entry was being written or overwritten.
            if self.read_u64(offset)? != number {
                continue;
            }
            self.read(offset, &mut bytes)?;
            if self.read_u64(offset)? != number || u64_at(&bytes, 0) != number {
                continue;
            }
            events.push(self.event(number, &bytes));
        }
        Ok(events)
    }

    fn event(&self, number: u64, bytes: &[u8]) -> Event {
        let code = u32_at(bytes, event::KIND);
        let kind = EventKind::from_number(code);
        let decoded = Payload::of_bytes(code, &bytes[event::DATA..], self.clock());
        let (text, payload) = match decoded {
            Some(payload) => (payload.to_string(), Some(payload)),
            None => {
                let text = text_at(bytes, event::DATA, event::SIZE - event::DATA);
                let payload = Payload::of_text(kind, &text);
                (text, payload)
            }
        };
        let (tick, pid) = (u64_at(bytes, event::TICK), i32_at(bytes, event::PID));
        Event { number, tick, pid, kind, text, payload }
    }
}
