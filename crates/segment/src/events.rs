// SPDX-License-Identifier: PostgreSQL
//! The event ring: the last notable things that writers recorded.
//!
//! Concurrency contract. An entry's number is 0 while it is being written; it is read before and
//! after the entry, and the entry counts only if both are the number that its position implies.

use crate::error::Error;
use crate::layout::{event, header, i32_at, text_at, u32_at, u64_at};
use crate::segment::Segment;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Information.
    Note,
    /// Something was left out or lost.
    Warning,
    /// One process kept another waiting for long.
    Blocked,
    /// An operation that took long.
    Slow,
    /// A checkpoint begins or ends.
    Checkpoint,
    /// A kind of a later writer, by its number.
    Other(u32),
}

impl EventKind {
    fn of(number: u32) -> EventKind {
        match number {
            1 => EventKind::Note,
            2 => EventKind::Warning,
            3 => EventKind::Blocked,
            4 => EventKind::Slow,
            5 => EventKind::Checkpoint,
            other => EventKind::Other(other),
        }
    }
}

impl std::fmt::Display for EventKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EventKind::Note => f.pad("note"),
            EventKind::Warning => f.pad("warning"),
            EventKind::Blocked => f.pad("blocked"),
            EventKind::Slow => f.pad("slow"),
            EventKind::Checkpoint => f.pad("checkpoint"),
            EventKind::Other(number) => f.pad(&format!("event {number}")),
        }
    }
}

/// A notable event that a writer recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its number in time, counted from 1.
    pub number: u64,
    /// When it happened, tick.
    pub tick: u64,
    /// The process that recorded it.
    pub pid: i32,
    /// Its kind.
    pub kind: EventKind,
    /// What happened.
    pub text: String,
}

impl Segment {
    /// The number of the last event that was begun.
    pub fn event_count(&self) -> Result<u64, Error> {
        self.read_u64(header::EVENT_COUNT as u64)
    }

    /// How many of the last events the ring keeps.
    pub fn event_capacity(&self) -> u32 {
        self.regions.events.count
    }

    /// The events later than number `since` that are still in the ring, oldest first. One that
    /// is being written is missing, as are those that others have been written over.
    pub fn events(&self, since: u64) -> Result<Vec<Event>, Error> {
        let region = self.regions.events;
        let count = u64::from(region.count);
        let begun = self.event_count()?;
        let mut events = Vec::new();
        let mut bytes = [0u8; event::SIZE];
        for ordinal in since.max(begun.saturating_sub(count))..begun {
            let number = ordinal + 1;
            let offset = region.entry((ordinal % count) as u32);
            // Not while it is being written or written over: the number before and after.
            if self.read_u64(offset)? != number {
                continue;
            }
            self.read(offset, &mut bytes)?;
            if self.read_u64(offset)? != number || u64_at(&bytes, 0) != number {
                continue;
            }
            events.push(Event {
                number,
                tick: u64_at(&bytes, event::TICK),
                pid: i32_at(&bytes, event::PID),
                kind: EventKind::of(u32_at(&bytes, event::KIND)),
                text: text_at(&bytes, event::TEXT, 232),
            });
        }
        Ok(events)
    }
}
