// SPDX-License-Identifier: PostgreSQL
//! Listings of a cell (rows of a query, events, output of programs), and events for charts.

use pq::Client;
use segment::Segment;

use super::cell::Mark;
use super::file::{From, Listing, Study};
use super::material::Material;
use super::server::ArmServer;
use crate::engine::background::last_lines;
use error::Error;
use view::events::{rows, Row};
use view::table::Table;

/// Number of the server's events so far; 0 without a segment.
pub fn event_count(server: &ArmServer) -> Result<u64, Error> {
    match &server.segment {
        Some(path) => Ok(Segment::open(path)?.event_count()?),
        None => Ok(0),
    }
}

/// The listings taken from the running server, in the order of the study. Listings of program output stay
/// empty.
pub fn of_server(
    study: &Study,
    server: &ArmServer,
    client: &mut Client,
    events_before: u64,
) -> Result<Vec<String>, Error> {
    study
        .listings
        .iter()
        .map(|listing| match (&listing.sql, &listing.events) {
            (Some(sql), _) => table(client, sql, listing.lines),
            (_, Some(kinds)) => {
                let rows = events(server, events_before, kinds)?;
                let last = rows.len().saturating_sub(listing.lines);
                let lines: Vec<String> = rows[last..]
                    .iter()
                    .map(|row| {
                        let process = row.process.as_deref().unwrap_or("process");
                        format!("{process} ({}): {}", row.pid, row.text)
                    })
                    .collect();
                Ok(lines.join("\n"))
            }
            _ => Ok(String::new()),
        })
        .collect()
}

/// Fills the listings of program output.
pub fn of_output(study: &Study, material: &Material, listings: &mut [String]) {
    for (listing, text) in study.listings.iter().zip(listings) {
        let Listing { output: Some(from), lines, .. } = listing else { continue };
        let output = match from {
            From::Instrument => &material.instrument_output,
            From::Workload => &material.workload_output,
        };
        *text = last_lines(output, *lines);
    }
}

/// The events that charts mark; `began` is the start of the measurement, seconds since 1970.
pub fn marks(
    study: &Study,
    server: &ArmServer,
    events_before: u64,
    began: f64,
) -> Result<Vec<Mark>, Error> {
    let kinds: Vec<String> = study.charts.iter().flat_map(|chart| chart.marks.clone()).collect();
    let rows = events(server, events_before, &kinds)?;
    let mark = |row: Row| {
        Some(Mark { time: row.time? - began, kind: row.kind.to_string(), text: row.text })
    };
    Ok(rows.into_iter().filter_map(mark).collect())
}

fn events(server: &ArmServer, after: u64, kinds: &[String]) -> Result<Vec<Row>, Error> {
    let Some(path) = server.segment.as_ref().filter(|_| !kinds.is_empty()) else {
        return Ok(Vec::new());
    };
    let segment = Segment::open(path)?;
    let mut found = segment.events(after)?;
    found.retain(|event| kinds.contains(&event.kind.to_string()));
    rows(&segment, found)
}

fn table(client: &mut Client, sql: &str, lines: usize) -> Result<String, Error> {
    let (names, rows) = client.table(sql)?;
    if rows.is_empty() {
        return Ok(String::new());
    }
    let mut table = Table::with_headings(&names, 1..names.len());
    for row in rows.into_iter().take(lines) {
        table.push_texts(row.into_iter().map(Option::unwrap_or_default));
    }
    Ok(table.to_string().trim_end().to_string())
}
