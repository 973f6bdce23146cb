// SPDX-License-Identifier: PostgreSQL
//! `tally fleet`: queries the recordings of many servers with existing engines. The crate `fleet_sql` defines the
//! queries.

mod args;
mod asking;
mod doctor;
mod engine;
mod lines;
mod top;

use std::io::Write;

use error::Error;
use fleet_sql::{schema, Dialect, HostFilter, Query, QueryParams, Window, QUERIES};
use report::Edge;
use serde::Serialize;
use view::table::{speaks_utf8, Table};
use view::text::Style;
use view::{escape, output};

pub use args::{root, FleetArgs};
pub use asking::{asked, window, Asking};
pub use doctor::diagnosed;
pub use engine::Engine;

use args::{AskArgs, Period, Verb};
use asking::readable;
use lines::one_line;

/// A query, as `tally fleet queries --json` lists it.
#[derive(Debug, Serialize)]
struct ListedQuery {
    name: &'static str,
    about: &'static str,
    columns: Vec<&'static str>,
}

/// The output of `--json` (docs/reference-json.md).
#[derive(Debug, Serialize)]
struct FleetQueryJson<'a> {
    query: &'static str,
    since: f64,
    until: f64,
    against_since: f64,
    against_until: f64,
    table: &'a Table,
}

/// Runs the verb.
pub fn run(args: &FleetArgs, color: bool) -> Result<(), Error> {
    match &args.verb {
        Verb::Queries { json } => queries(*json),
        Verb::Schema { engine, root, tables } => {
            readable(engine.dialect(), root)?;
            let text = match tables {
                None => schema(engine.dialect(), root),
                Some(per) if engine.dialect() == Dialect::ClickHouse => {
                    fleet_sql::tables(root, *per)
                }
                Some(_) => {
                    return Err(Error::Usage(
                        "--tables is for ClickHouse only; omit it for other engines".into(),
                    ))
                }
            };
            Ok(to_be_copied().write_all(text.as_bytes())?)
        }
        Verb::Refresh { root, tables, since, until } => {
            let now = jiff::Timestamp::now();
            let ms = |edge: Option<Edge>| {
                let now = now.as_millisecond() as f64 / 1e3;
                edge.map(|edge| (edge.resolve(now) * 1e3).round() as i64)
            };
            let window = (since.is_some() || until.is_some())
                .then(|| {
                    let until = ms(*until).unwrap_or(now.as_millisecond());
                    Window::new(ms(*since).unwrap_or(0), until, HostFilter::default())
                })
                .transpose()
                .map_err(Error::Usage)?;
            let run = now.as_microsecond();
            let sql = fleet_sql::refresh(root, window.as_ref(), *tables, run);
            Ok(to_be_copied().write_all(sql.as_bytes())?)
        }
        Verb::Sql { name, engine, root, period } => {
            if let Some(root) = root {
                readable(engine.dialect(), root)?;
            }
            let sql = name.sql(engine.dialect(), root.as_ref(), &of_period(period)?);
            Ok(to_be_copied().write_all(format!("{sql};\n").as_bytes())?)
        }
        Verb::Ask(args) => ask(args, color),
        Verb::Doctor(args) => doctor::run(args, color),
        Verb::Top(args) => top::run(args, color),
    }
}

/// Standard output for SQL and CSV: a line that was wrapped could end within a literal.
fn to_be_copied() -> escape::Lines<std::io::StdoutLock<'static>> {
    escape::stdout().wrapped(None)
}

fn queries(json: bool) -> Result<(), Error> {
    if json {
        let listed = |query: &Query| ListedQuery {
            name: query.name,
            about: query.about,
            columns: query.columns.iter().map(|column| column.key).collect(),
        };
        return output::json(&QUERIES.iter().map(listed).collect::<Vec<_>>());
    }
    let mut table = Table::with_headings(&["QUERY", "SHOWS"], 0..0);
    for query in QUERIES {
        table.push_texts([query.name, query.about]);
    }
    Ok(escape::stdout().write_all(table.for_stdout().as_bytes())?)
}

/// The windows of a query.
fn of_period(period: &Period) -> Result<QueryParams, Error> {
    let (since, until) = period.scope.window();
    let against = period.against.as_ref().map(|against| {
        let to = against.to.map_or(since, |edge| edge.resolve(since));
        (against.from.map_or(to - (until - since), |edge| edge.resolve(to)), to)
    });
    asked((since, until), against, &period.scope.only(), period.limit)
}

fn ask(args: &AskArgs, color: bool) -> Result<(), Error> {
    let asked = of_period(&args.period)?;
    let asking = Asking::new(args.engine.clone(), args.root.clone())?;
    let mut table = asking.query(args.name, &asked)?;
    let seconds = |ms: i64| ms as f64 / 1e3;
    if args.json {
        return output::json(&FleetQueryJson {
            query: args.name.name,
            since: seconds(asked.window.since_ms),
            until: seconds(asked.window.until_ms),
            against_since: seconds(asked.against.since_ms),
            against_until: seconds(asked.against.until_ms),
            table: &table,
        });
    }
    let mut out = escape::stdout();
    if args.csv {
        return Ok(to_be_copied().write_all(table.csv().as_bytes())?);
    }
    if table.rows.is_empty() {
        let span = view::table::span(
            seconds(asked.window.since_ms),
            seconds(asked.window.until_ms),
            &jiff::tz::TimeZone::system(),
        );
        return Ok(writeln!(out, "no rows, {span}")?);
    }
    one_line(&mut table);
    let style = Style::of_terminal(color);
    Ok(out.write_all(table.drawn(style.tables, style.ascii || !speaks_utf8()).as_bytes())?)
}
