// SPDX-License-Identifier: PostgreSQL
//! The kinds of events, by number and by name.

use crate::layout::event_kind;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Information.
    Note,
    /// Something was not measured, or figures were lost.
    Warning,
    /// One process kept another waiting for a long time.
    Blocked,
    /// An operation that took long.
    Slow,
    /// A checkpoint has started or ended.
    Checkpoint,
    /// A kind of a later writer, with its number.
    Other(u32),
}

impl EventKind {
    pub(crate) fn from_number(number: u32) -> EventKind {
        match number {
            event_kind::NOTE => EventKind::Note,
            event_kind::WARNING => EventKind::Warning,
            event_kind::BLOCKED => EventKind::Blocked,
            event_kind::SLOW | event_kind::SLOW_OPERATION => EventKind::Slow,
            event_kind::CHECKPOINT
            | event_kind::CHECKPOINT_STARTED
            | event_kind::CHECKPOINT_COMPLETED
            | event_kind::CHECKPOINT_WRITES
            | event_kind::CHECKPOINT_CLIENTS
            | event_kind::CHECKPOINT_FAILED => EventKind::Checkpoint,
            other => EventKind::Other(other),
        }
    }
}

impl From<&str> for EventKind {
    /// The kind with this printed name.
    fn from(name: &str) -> EventKind {
        match name {
            "note" => EventKind::Note,
            "warning" => EventKind::Warning,
            "blocked" => EventKind::Blocked,
            "slow" => EventKind::Slow,
            "checkpoint" => EventKind::Checkpoint,
            other => EventKind::Other(
                other.strip_prefix("event ").and_then(|number| number.parse().ok()).unwrap_or(0),
            ),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_parsed_from_its_printed_name() {
        use EventKind::{Blocked, Checkpoint, Note, Other, Slow, Warning};
        for known in [Note, Warning, Blocked, Slow, Checkpoint, Other(77)] {
            assert_eq!(EventKind::from(known.to_string().as_str()), known);
        }
    }
}
