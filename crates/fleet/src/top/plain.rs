// SPDX-License-Identifier: PostgreSQL
//! Prints the results as text or JSON, again at each interval.

use std::io::Write;
use std::time::Instant;

use error::Error;
use fleet_sql::{HostFilter, Query, QUERIES};
use jiff::tz::TimeZone;
use report::fleet::{is_asked, subject, FleetQueryResult};
use serde::Serialize;
use view::escape;
use view::table::{span, speaks_utf8, Table};
use view::text::Style;

use super::super::args::FleetTopArgs;
use super::super::asking::Asking;
use super::super::lines::one_line;
use super::rows::{chosen, Order};

/// A result as one line of JSON.
#[derive(Debug, Serialize)]
struct QueryResult<'a> {
    query: &'static str,
    since: f64,
    until: f64,
    seconds: f64,
    table: &'a Table,
}

/// Prints until the number of rounds is reached, or the reader closes the pipe.
pub fn print(
    args: &FleetTopArgs,
    asking: &Asking,
    only: &HostFilter,
    color: bool,
) -> Result<(), Error> {
    let queries: Vec<&Query> = match args.view {
        Some(query) => vec![query],
        None => QUERIES.iter().filter(|query| is_asked(query.name, only)).collect(),
    };
    let mut left = if args.once { Some(1) } else { args.count };
    while left != Some(0) {
        let begun = Instant::now();
        for (at, query) in queries.iter().enumerate() {
            let answer = super::ask(args, asking, query, only);
            let mut answer = answer.map_err(|failure| Error::Failed(failure.text))?;
            let filter = args.filter.as_deref().unwrap_or("").to_lowercase();
            let rows = chosen(&answer.value, Order::default(), &filter);
            let rows = rows.into_iter().map(|at| answer.value.rows[at].clone()).collect();
            answer.value.rows = rows;
            match args.json {
                true => json(query, &answer)?,
                false => text(query, answer, only, (at == 0, color))?,
            }
        }
        left = left.map(|n| n - 1);
        if left != Some(0) {
            std::thread::sleep(args.interval.saturating_sub(begun.elapsed()));
        }
    }
    Ok(())
}

fn json(query: &Query, answer: &FleetQueryResult<Table>) -> Result<(), Error> {
    let mut out = escape::stdout();
    let (since, until) = answer.window;
    let (query, seconds, table) = (query.name, answer.seconds, &answer.value);
    serde_json::to_writer(&mut out, &QueryResult { query, since, until, seconds, table })?;
    writeln!(out)?;
    Ok(out.flush()?)
}

fn text(
    query: &Query,
    mut answer: FleetQueryResult<Table>,
    only: &HostFilter,
    (is_first, color): (bool, bool),
) -> Result<(), Error> {
    let mut out = escape::stdout();
    let style = Style::of_terminal(color);
    if is_first {
        let (from, to) = answer.window;
        writeln!(out, "{}, {}", subject(only), span(from, to, &TimeZone::system()))?;
    }
    writeln!(out)?;
    writeln!(out, "{}: {}", query.name, query.about)?;
    one_line(&mut answer.value);
    match answer.value.rows.is_empty() {
        true => writeln!(out, "none")?,
        false => {
            let ascii = style.ascii || !speaks_utf8();
            out.write_all(answer.value.drawn(style.tables, ascii).as_bytes())?;
        }
    }
    Ok(out.flush()?)
}
