// SPDX-License-Identifier: PostgreSQL
//! Events of a recording.

use recording::EventRow;
use segment::EventKind;

use super::Row;

impl From<EventRow> for Row {
    fn from(row: EventRow) -> Row {
        Row {
            number: row.number,
            time: Some(row.time_us as f64 * 1e-6),
            pid: i32::try_from(row.pid).unwrap_or(0),
            process: row.process.map(|it| it.to_string()),
            database: row.database.map(|it| it.to_string()),
            user: row.user.map(|it| it.to_string()),
            kind: kind(&row.kind),
            text: row.text.to_string(),
            lost: row.lost,
        }
    }
}

/// The kind of an event by its name.
fn kind(name: &str) -> EventKind {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_parsed_from_its_printed_name() {
        use EventKind::{Blocked, Checkpoint, Note, Other, Slow, Warning};
        for known in [Note, Warning, Blocked, Slow, Checkpoint, Other(77)] {
            assert_eq!(kind(&known.to_string()), known);
        }
    }
}
