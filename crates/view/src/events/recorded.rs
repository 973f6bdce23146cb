// SPDX-License-Identifier: PostgreSQL
//! Events of a recording.

use recording::EventRow;
use segment::{EventKind, Payload};

use super::Row;

impl From<EventRow> for Row {
    fn from(row: EventRow) -> Row {
        let kind = EventKind::from(&*row.kind);
        Row {
            number: row.number,
            time: Some(row.time_us as f64 * 1e-6),
            pid: i32::try_from(row.pid).unwrap_or(0),
            process: row.process.map(|kind| kind.to_string()),
            database: row.database.map(|name| name.to_string()),
            user: row.user.map(|name| name.to_string()),
            kind,
            text: row.text.to_string(),
            payload: Payload::of_text(kind, &row.text),
            lost: row.lost,
        }
    }
}
