// SPDX-License-Identifier: PostgreSQL
//! One event, with its time and process, as text and as JSON.

use jiff::tz::TimeZone;
use recording::EventRow;
use segment::book::Identity;
use segment::{owner_at, Event, EventKind, Payload, Segment};
use serde::{Serialize, Serializer};

use super::when::{local, When};
use error::Error;

/// An event as it is printed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Its number in the segment, from 1.
    pub number: u64,
    /// When it happened, seconds since 1970; `None` if the segment's clock is unknown.
    pub time: Option<f64>,
    /// The process ID.
    pub pid: i32,
    /// The kind of process; `None` if it has ended.
    pub process: Option<String>,
    /// Its database, if any.
    pub database: Option<String>,
    /// Its user, if any.
    pub user: Option<String>,
    /// The kind of event.
    #[serde(serialize_with = "in_words")]
    pub kind: EventKind,
    /// What happened.
    pub text: String,
    /// The same as values, for slow operations and checkpoints.
    #[serde(skip)]
    pub payload: Option<Payload>,
    /// Number of events lost (overwritten) between the previously printed event and this one.
    pub lost: u64,
}

fn in_words<S: Serializer>(kind: &EventKind, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(kind)
}

/// Events, with what is known about their processes now.
pub fn rows(segment: &Segment, events: Vec<Event>) -> Result<Vec<Row>, Error> {
    let pids: Vec<i32> = events.iter().map(|event| event.pid).collect();
    let owners = if pids.is_empty() { Vec::new() } else { segment.owners(&pids)? };
    let when = When::from_segment(segment);
    let row = |event: Event| {
        let owner = owner_at(&owners, event.pid, event.tick).map(|owner| &*owner.identity);
        let text = |part: fn(&Identity) -> &String| {
            owner.map(part).filter(|text| !text.is_empty()).cloned()
        };
        Row {
            number: event.number,
            time: when.as_ref().map(|when| when.seconds(event.tick)),
            pid: event.pid,
            process: text(|session| &session.kind),
            database: text(|session| &session.database),
            user: text(|session| &session.user),
            kind: event.kind,
            text: event.text,
            payload: event.payload,
            lost: 0,
        }
    };
    Ok(events.into_iter().map(row).collect())
}

impl Row {
    /// "2026-03-01 17:30:00.123 CET [4711] client backend app@shop SLOW: fsync: ..."
    pub fn line(&self, zone: &TimeZone, color: bool) -> String {
        let (dim, tint, off) = match color {
            true => ("\x1b[2m", tint(self.kind), "\x1b[0m"),
            false => ("", "", ""),
        };
        let time = self.time.map_or("-".to_string(), |seconds| local(seconds, zone));
        let mut who = String::new();
        for part in [self.process.as_deref(), self.account().as_deref()].into_iter().flatten() {
            who.push(' ');
            who.push_str(part);
        }
        let kind = self.kind.to_string().to_uppercase();
        format!("{dim}{time} [{}]{who}{off} {tint}{kind}:{off} {}", self.pid, self.text)
    }

    /// Duration of a slow operation, seconds; 0 for other events.
    pub fn slow_seconds(&self) -> f64 {
        match &self.payload {
            Some(Payload::Slow(slow)) => slow.seconds,
            _ => 0.0,
        }
    }

    /// user@database
    fn account(&self) -> Option<String> {
        match (&self.user, &self.database) {
            (Some(user), Some(database)) => Some(format!("{user}@{database}")),
            (one, other) => one.clone().or_else(|| other.as_ref().map(|name| format!("@{name}"))),
        }
    }
}

/// The colour of an event kind.
fn tint(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Warning => "\x1b[33m",
        EventKind::Slow => "\x1b[31m",
        EventKind::Blocked => "\x1b[35m",
        EventKind::Checkpoint => "\x1b[36m",
        EventKind::Note | EventKind::Other(_) => "",
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row {
            number: 7,
            time: Some(1_782_907_200.123_9),
            pid: 4711,
            process: Some("client backend".to_string()),
            database: Some("shop".to_string()),
            user: Some("app".to_string()),
            kind: EventKind::Slow,
            text: "fsync: 7.02 s, 1 write of 8 kB since its last: pg_xact/000C".to_string(),
            payload: None,
            lost: 0,
        }
    }

    #[test]
    fn an_event_is_a_line_like_those_of_the_server_log() {
        assert_eq!(
            row().line(&TimeZone::UTC, false),
            "2026-07-01 12:00:00.123 UTC [4711] client backend app@shop SLOW: \
             fsync: 7.02 s, 1 write of 8 kB since its last: pg_xact/000C"
        );
        let background = Row {
            process: Some("checkpointer".to_string()),
            database: None,
            user: None,
            kind: EventKind::Checkpoint,
            text: "start: time".to_string(),
            ..row()
        };
        assert!(background
            .line(&TimeZone::UTC, false)
            .ends_with(" [4711] checkpointer CHECKPOINT: start: time"));
        let ended = Row { process: None, kind: EventKind::Other(9), time: None, ..background };
        assert_eq!(ended.line(&TimeZone::UTC, false), "- [4711] EVENT 9: start: time");
    }

    #[test]
    fn colour_is_used_only_on_request() {
        assert!(row().line(&TimeZone::UTC, true).contains("\x1b[31mSLOW:\x1b[0m"));
        assert!(!row().line(&TimeZone::UTC, false).contains('\x1b'));
    }

    #[test]
    fn an_event_as_json_has_its_kind_in_words() {
        let json = |row: &Row| serde_json::to_value(row).unwrap();
        assert_eq!(json(&row())["kind"], "slow");
        assert_eq!(json(&Row { kind: EventKind::Other(9), ..row() })["kind"], "event 9");
        assert_eq!(json(&Row { user: None, ..row() })["user"], serde_json::Value::Null);
    }
}
