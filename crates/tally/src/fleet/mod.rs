// SPDX-License-Identifier: PostgreSQL
//! `tally fleet`: questions over the recordings of many servers, for engines that exist. What is asked is
//! defined in crate `fleet`.

mod args;
mod doctor;
mod engine;

use std::io::Write;

use error::Error;
use fleet::{schema, table, Asked, Dialect, Only, Query, Window, QUERIES};
use report::Edge;
use serde::Serialize;
use view::table::{fit, speaks_utf8, Cell, Table};
use view::text::Style;
use view::{escape, output};

pub use args::FleetArgs;
use args::{AskArgs, Period, Verb};

/// A query, as `tally fleet queries --json` lists it.
#[derive(Debug, Serialize)]
struct Listed {
    name: &'static str,
    about: &'static str,
    columns: Vec<&'static str>,
}

/// An answer (docs/reference-json.md).
#[derive(Debug, Serialize)]
struct Answer<'a> {
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
                Some(per) if engine.dialect() == Dialect::ClickHouse => fleet::tables(root, *per),
                Some(_) => {
                    return Err(Error::Usage(
                        "--tables is for ClickHouse; for the others leave it out".into(),
                    ))
                }
            };
            Ok(write!(escape::stdout(), "{text}")?)
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
                    Window::new(ms(*since).unwrap_or(0), until, Only::default())
                })
                .transpose()
                .map_err(Error::Usage)?;
            let run = now.as_microsecond();
            Ok(write!(escape::stdout(), "{}", fleet::refresh(root, window.as_ref(), *tables, run))?)
        }
        Verb::Sql { name, engine, root, period } => {
            if let Some(root) = root {
                readable(engine.dialect(), root)?;
            }
            let sql = name.sql(engine.dialect(), root.as_ref(), &asked(period)?);
            Ok(writeln!(escape::stdout(), "{sql};")?)
        }
        Verb::Ask(args) => ask(args, color),
        Verb::Doctor(args) => doctor::run(args, color),
    }
}

fn queries(json: bool) -> Result<(), Error> {
    if json {
        let listed = |query: &Query| Listed {
            name: query.name,
            about: query.about,
            columns: query.columns.iter().map(|column| column.key).collect(),
        };
        return output::json(&QUERIES.iter().map(listed).collect::<Vec<_>>());
    }
    let mut table = Table::with_headings(&["QUERY", "ANSWERS"], 0..0);
    for query in QUERIES {
        table.push_texts([query.name, query.about]);
    }
    Ok(write!(escape::stdout(), "{table}")?)
}

fn readable(dialect: Dialect, root: &fleet::Root) -> Result<(), Error> {
    if root.is_read_by(dialect) {
        return Ok(());
    }
    Err(Error::Usage(format!("{dialect} does not read http(s) addresses as object storage; give the root as s3://BUCKET/PREFIX")))
}

/// The windows that a question is of.
fn asked(period: &Period) -> Result<Asked, Error> {
    let scope = &period.scope;
    let only = Only { cluster: scope.cluster.clone(), host: scope.host.clone() };
    let window = |since: f64, until: f64| {
        Window::new((since * 1e3).round() as i64, (until * 1e3).round() as i64, only.clone())
            .map_err(Error::Usage)
    };
    let (since, until) = scope.window();
    let against = period.against.as_ref();
    let to = against.and_then(|it| it.to).map_or(since, |edge| edge.resolve(since));
    let from = against.and_then(|it| it.from).map_or(to - (until - since), |edge| edge.resolve(to));
    Ok(Asked { window: window(since, until)?, against: window(from, to)?, limit: period.limit })
}

fn ask(args: &AskArgs, color: bool) -> Result<(), Error> {
    let asked = asked(&args.period)?;
    let root = args.root.as_ref();
    if let Some(root) = root {
        readable(args.engine.dialect(), root)?;
    } else if !args.engine.is_server() {
        return Err(Error::Usage(
            "give --root, the directory or bucket of the recordings; only a ClickHouse server keeps the views \
             of `tally fleet schema`"
                .into(),
        ));
    }
    let sql = args.name.sql(args.engine.dialect(), root, &asked);
    let answer = args.engine.ask(&sql)?;
    let mut table = table(args.name, &answer).map_err(Error::Failed)?;
    let seconds = |ms: i64| ms as f64 / 1e3;
    if args.json {
        return output::json(&Answer {
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
        return Ok(write!(out, "{}", table.csv())?);
    }
    if table.rows.is_empty() {
        let span = view::table::span(
            seconds(asked.window.since_ms),
            seconds(asked.window.until_ms),
            &jiff::tz::TimeZone::system(),
        );
        return Ok(writeln!(out, "none, {span}")?);
    }
    one_line(&mut table);
    let style = Style::of_terminal(color);
    Ok(write!(out, "{}", table.drawn(style.width, style.ascii || !speaks_utf8()))?)
}

/// Max. characters of a statement in a table where something else takes the remaining width.
const STATEMENT: usize = 48;

/// Makes a line of each text, and cuts statements that are not the column with the remaining width.
fn one_line(table: &mut Table) {
    for (at, column) in table.columns.iter().enumerate() {
        let is_cut = column.key == "statement" && !column.elastic;
        for cell in table.rows.iter_mut().filter_map(|row| row.cells.get_mut(at)) {
            let Cell::Text(text) = cell else { continue };
            let line = view::statements::one_line(text);
            *cell = match is_cut && line.chars().count() > STATEMENT {
                true => fit(&line, STATEMENT, false).into(),
                false => line.into(),
            };
        }
    }
}
