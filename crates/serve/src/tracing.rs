// SPDX-License-Identifier: PostgreSQL
//! `/trace`, with `--allow-trace`: the sessions as links, and the trace of one of them as a page of waterfalls.
//!
//! A trace has a cost for the traced session, so only one runs at a time, and its length is limited.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use error::Error;
use hyper::StatusCode;
use live::target::SegmentSource;
use segment::interval::SessionRow;
use segment::{own, Interval, Segment};
use tokio::sync::Semaphore;
use view::document::{Column, Document, Section, Table, Tone, Unit};
use view::page;

use super::request::Refusal;

/// Length of a trace in seconds: the default, and the maximum. The response takes no longer than others may.
const USUAL: u64 = 3;
const MOST: u64 = 20;
const WHO: &str = "tally serve --allow-trace";

/// What a URL requests.
#[derive(Debug, PartialEq, Eq)]
enum TraceQuery {
    /// The list of sessions.
    Sessions,
    /// A trace of this process.
    Trace { pid: i32, seconds: u64 },
}

/// Makes traces for clients.
#[derive(Debug)]
pub struct Tracing {
    place: SegmentSource,
    turn: Semaphore,
}

impl Tracing {
    /// For processes of the server at `place`, whose segment must be a file on this machine.
    pub fn new(place: &SegmentSource) -> Result<Tracing, Error> {
        place.file(WHO)?;
        Ok(Tracing { place: place.clone(), turn: Semaphore::new(1) })
    }

    /// The page that the query string of a URL requests.
    pub async fn page(&self, query: &str) -> Result<String, Refusal> {
        let asked = asked(query).map_err(|why| (StatusCode::BAD_REQUEST, why))?;
        let place = self.place.clone();
        let failed = |error: &dyn std::fmt::Display| {
            (StatusCode::SERVICE_UNAVAILABLE, format!("could not trace: {error}"))
        };
        let Ok(_turn) = self.turn.try_acquire() else {
            return Err((
                StatusCode::SERVICE_UNAVAILABLE,
                "another trace is in progress; try again in some seconds".into(),
            ));
        };
        // The thread that drives all connections does not wait for it.
        let made = tokio::task::spawn_blocking(move || make(&place, &asked)).await;
        made.map_err(|error| failed(&error))?.map_err(|error| failed(&error))
    }
}

/// Parses `pid=N&seconds=N`; an empty query string requests the list of sessions.
fn asked(query: &str) -> Result<TraceQuery, String> {
    let mut asked = (None, USUAL);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match name {
            "pid" => {
                let pid = value.parse::<i32>().ok().filter(|&pid| pid > 0);
                asked.0 = Some(pid.ok_or("pid must be a process ID")?);
            }
            "seconds" => {
                let seconds =
                    value.parse::<u64>().ok().filter(|seconds| (1..=MOST).contains(seconds));
                asked.1 = seconds.ok_or_else(|| format!("seconds must be between 1 and {MOST}"))?;
            }
            _ => return Err("the URL must be /trace or /trace?pid=PID&seconds=SECONDS".into()),
        }
    }
    Ok(match asked {
        (None, _) => TraceQuery::Sessions,
        (Some(pid), seconds) => TraceQuery::Trace { pid, seconds },
    })
}

fn make(place: &SegmentSource, asked: &TraceQuery) -> Result<String, Error> {
    match *asked {
        TraceQuery::Sessions => sessions(place.open()?),
        TraceQuery::Trace { pid, seconds } => {
            let stop = AtomicBool::new(false);
            let length = Duration::from_secs(seconds);
            trace::page_for_a_while(pid, Some(&place.target()), length, &stop)
        }
    }
}

/// Client sessions, the active ones first.
fn sessions(mut segment: Segment) -> Result<String, Error> {
    segment.refresh()?;
    let snapshot = segment.snapshot(None)?;
    let interval = Interval::between(&segment, None, &snapshot);
    let is_client = |row: &&SessionRow| row.state != "background" && !own::is_process(&row.kind);
    let mut rows: Vec<_> = interval.sessions.iter().filter(is_client).collect();
    rows.sort_by_key(|row| (row.state != "active", row.state == "idle", row.pid));
    page::page(&list(&rows))
}

fn list(rows: &[&SessionRow]) -> Document {
    let columns = vec![
        Column { link: Some("trace?pid={pid}"), ..Column::new("pid", "PID", Unit::Number) },
        Column::new("user", "User", Unit::Text),
        Column::new("database", "Database", Unit::Text),
        Column::new("application", "Application", Unit::Text),
        Column::new("state", "State", Unit::Text),
        Column::new("activity", "Now", Unit::Text),
        Column::new("since", "Since", Unit::Seconds),
    ];
    let mut table = Table::new("sessions", "Client sessions", columns);
    for row in rows {
        table.push(
            Tone::Class(row.class),
            vec![
                row.pid.to_string().into(),
                row.user.as_deref().into(),
                row.database.as_deref().into(),
                row.application.as_str().into(),
                row.state.into(),
                format!("{}: {}", row.phase, row.activity).into(),
                row.since_seconds.into(),
            ],
        );
    }
    let note = match rows {
        [] => "There are no client sessions.".to_string(),
        _ => format!(
            "Click a PID to trace that session for {USUAL} seconds, with the nodes of its plans, and then see \
             what it did."
        ),
    };
    let section = Section {
        id: "sessions",
        title: "Sessions",
        note: Some(note),
        tables: vec!["sessions"],
        ..Section::default()
    };
    let mut document = Document {
        sections: vec![section],
        tables: vec![table],
        ..Document::new("Trace a session".into())
    };
    document.tidy();
    document
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_process_and_a_length_or_nothing() {
        assert_eq!(asked(""), Ok(TraceQuery::Sessions));
        assert_eq!(asked("pid=42"), Ok(TraceQuery::Trace { pid: 42, seconds: USUAL }));
        assert_eq!(asked("seconds=20&pid=42"), Ok(TraceQuery::Trace { pid: 42, seconds: 20 }));
        for bad in ["pid=0", "pid=-1", "pid=x", "pid=1&seconds=21", "seconds=0", "database=x"] {
            assert!(asked(bad).is_err(), "{bad}");
        }
    }
}
