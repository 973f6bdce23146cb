// SPDX-License-Identifier: PostgreSQL
//! `tally statements`: lists the statements that took the most time since the last reset or in an interval, or
//! shows all details of one statement.

use std::io::Write;
use std::sync::Arc;

use segment::{Parts, Segment};
use serde::Serialize;

use clap::Args;
use command::interval;
use command::{ConnectionFlags, SamplingFlags};
use error::Error;
use std::time::Duration;
use view::measured::Measured;
use view::rows::RowOptions;
use view::statement_example::StatementExample;
use view::statements::{self, PlanRow, StatementFigures, StatementsTable};
use view::table::{speaks_utf8, wrap};
use view::units::{bytes, duration, percent, whole};
use view::{Sort, SortParser};

/// Arguments of `tally statements`.
#[derive(Debug, Args)]
#[command(after_help = "\
TIME is the time that the server spends on a statement, from the client's message to the commit: \
parse, bind, plan, execute and all waits. MEAN to MAX cover executions alone, as in pg_stat_statements.

Examples:
  sudo -u postgres tally statements
  tally statements --sort p99 --limit 5 --database shop
  tally statements --sort IO:DataFileRead --interval 10
  tally statements --id -7143523112337563914
  tally statements --json | jq '.rows[] | [.queryid, .seconds, .query]'")]
pub struct StatementsArgs {
    /// Segment, data directory or connection string
    pub target: Option<String>,
    /// Connection options
    #[command(flatten)]
    pub connection: ConnectionFlags,
    /// How to sample a server
    #[command(flatten)]
    pub sampling: SamplingFlags,
    /// Sort order; can also be an activity, such as IO:DataFileRead
    #[arg(long, value_name = "KEY", default_value = "time", value_parser = SortParser)]
    pub sort: Sort,
    /// Maximum number of statements to show [default: 20; with --json all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// Only statements of this database
    #[arg(long, value_name = "NAME")]
    pub database: Option<String>,
    /// Only statements of this user
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Only statements of this application (with pg_tally.statements_application)
    #[arg(long, value_name = "NAME")]
    pub application: Option<String>,
    /// Include nested statements, such as those in functions, and those of tally itself
    #[arg(long)]
    pub all: bool,
    /// Show all details of the statement with this query ID
    #[arg(long, value_name = "QUERYID", allow_negative_numbers = true)]
    pub id: Option<i64>,
    /// Show an interval of this length instead of the totals since the last reset: seconds, or with a unit
    /// (500ms, 2s, 1min) [default if the server is sampled: 10s]
    #[arg(long, short, value_name = "TIME", value_parser = interval)]
    pub interval: Option<Duration>,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

/// Default number of rows.
const ROWS: u32 = 20;
/// Default length of the interval of a server that is sampled.
const SAMPLED: Duration = Duration::from_secs(10);
/// Width of sentences if the output is not a terminal.
const WIDTH: usize = 120;

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct StatementsJson<'s> {
    /// For example "PostgreSQL 15.20", or the producer if it is not a server.
    server: &'s str,
    /// The data directory, or another name of what is measured.
    host: &'s str,
    /// The segment's file.
    segment: String,
    /// With `--id`: commands that show the plan of the statement.
    #[serde(skip_serializing_if = "Option::is_none")]
    example: Option<StatementExample>,
    #[serde(flatten)]
    statements: &'s StatementsTable,
}

/// Prints the statements.
pub fn run(args: &StatementsArgs, color: bool) -> Result<(), Error> {
    let mut segment = args.sampling.source(args.target.as_deref())?.open()?;
    args.sort.check_on(&segment)?;
    let Some(mut all) = read(&mut segment, args)? else {
        return Err(nothing(None, &segment));
    };
    if args.id.is_some() || args.json {
        segment.want(Parts::PLANS)?;
        all.plans = PlanRow::all(&segment)?;
        all.plans.retain(|plan| args.id.is_none_or(|id| plan.queryid == id));
    }
    let of_id = |row: &StatementFigures| args.id.is_none_or(|id| row.queryid.unwrap_or(0) == id);
    let is = |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|w| w == name);
    let known = !all.rows.is_empty();
    let of_application =
        |row: &StatementFigures| is(&args.application, row.application.name().unwrap_or_default());
    all.rows.retain(|row| {
        of_id(row)
            && is(&args.database, &row.database)
            && is(&args.user, &row.user)
            && of_application(row)
    });
    match args.id {
        Some(id) if all.rows.is_empty() => Err(unknown(id, &all, &segment)),
        _ if args.json => json(args, &mut all, &segment),
        Some(_) => pages(&all, color),
        None if !known && all.sample_seconds.is_some() => idle(&all),
        None if !known => Err(nothing(Some(&all), &segment)),
        None => table(args, &all),
    }
}

fn read(segment: &mut Segment, args: &StatementsArgs) -> Result<Option<StatementsTable>, Error> {
    let Some(first) = segment.statements()?.map(Arc::new) else { return Ok(None) };
    // Samples begin with the command.
    let sampled = segment.sample_seconds().map(|_| SAMPLED);
    let Some(interval) = args.interval.or(sampled) else {
        return Ok(Some(StatementsTable::between(None, &first)));
    };
    std::thread::sleep(interval);
    segment.refresh()?;
    let later = segment.statements()?.map(Arc::new);
    Ok(later.map(|later| StatementsTable::between(Some(&first), &later)))
}

/// Reports that no statement ran while samples were taken, which is not an error.
fn idle(all: &StatementsTable) -> Result<(), Error> {
    Ok(writeln!(view::escape::stdout(), "{}", statements::note(Some(all)).unwrap_or_default())?)
}

/// Why there is nothing to show.
fn nothing(all: Option<&StatementsTable>, segment: &Segment) -> Error {
    let reason = statements::note(all).unwrap_or_else(|| "there are no statements".to_string());
    Error::Failed(format!("{}: {reason}", segment.path().display()))
}

fn unknown(id: i64, all: &StatementsTable, segment: &Segment) -> Error {
    let when = all.interval_seconds.map_or_else(
        || "since the last reset".to_string(),
        |seconds| format!("in {}", duration(seconds)),
    );
    Error::Failed(format!(
        "{}: no statement with query ID {id} {when}; to list all statements, run `tally statements`, \
         without --database and --user",
        segment.path().display()
    ))
}

fn wish(args: &StatementsArgs) -> RowOptions {
    RowOptions {
        sort: args.sort.clone(),
        idle: args.all || args.id.is_some(),
        ..RowOptions::default()
    }
}

fn json(args: &StatementsArgs, all: &mut StatementsTable, segment: &Segment) -> Result<(), Error> {
    let limit = args.limit.map_or(usize::MAX, |limit| limit as usize);
    // Includes tally's own statements, which are marked.
    let ordered = statements::ordered(all, &RowOptions { idle: true, ..wish(args) }).into_iter();
    let ordered = ordered.filter(|row| row.toplevel || wish(args).idle);
    all.rows = ordered.take(limit).cloned().collect();
    let header = segment.header();
    let server = if header.server.is_empty() { &header.producer } else { &header.server };
    let json = StatementsJson {
        server,
        host: &header.host,
        segment: segment.path().display().to_string(),
        example: args.id.and_then(|_| all.rows.first()?.example()),
        statements: all,
    };
    let mut out = view::escape::stdout();
    serde_json::to_writer(&mut out, &json)?;
    Ok(writeln!(out)?)
}

fn table(args: &StatementsArgs, all: &StatementsTable) -> Result<(), Error> {
    let wish = wish(args);
    let ordered = statements::ordered(all, &wish);
    let limit = args.limit.unwrap_or(ROWS) as usize;
    let shown = &ordered[..limit.min(ordered.len())];
    let width = command::terminal_width().unwrap_or(WIDTH);
    let mut out = view::escape::stdout();
    if let Some(note) = statements::note(Some(all)) {
        for line in wrap(&note, width) {
            writeln!(out, "{line}")?;
        }
    }
    let mut table = statements::table(all, shown, &wish);
    if command::terminal_width().is_none() {
        statements::with_whole_texts(&mut table, shown);
    }
    out.write_all(table.for_stdout().as_bytes())?;
    for line in wrap(&closing(all, shown, ordered.len()), width) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// The line below the table: "20 of 312 statements, 93.1 % of 4.31 s; ...".
fn closing(all: &StatementsTable, shown: &[&StatementFigures], of: usize) -> String {
    let share: f64 = shown.iter().filter(|row| row.toplevel).map(|row| row.share).sum();
    let when = match all.interval_seconds {
        Some(seconds) => format!("in an interval of {}", duration(seconds)),
        None => "since the last reset".to_string(),
    };
    let table = &all.table;
    let estimate = if all.sample_seconds.is_some() { "~" } else { "" };
    let seconds = Measured::new(all.seconds, all.half_width_seconds).duration();
    let mut text = format!(
        "{} of {} statements, {estimate}{} % of {estimate}{seconds} {when}; the table has {} of at most {}",
        shown.len(),
        whole(of as u64),
        percent(share),
        whole(u64::from(table.used)),
        whole(u64::from(table.capacity)),
    );
    let space = bytes(table.text_bytes as f64);
    // A server that is sampled does not have it.
    let setting = match all.sample_seconds {
        Some(_) => "",
        None => " (pg_tally.max_statements)",
    };
    for (n, what) in [
        (table.evicted, "evicted"),
        (table.dropped, &*format!("counts were dropped because the table was full{setting}")),
        (table.lost, "were left incomplete by a process that died"),
        (
            table.texts_cut,
            &format!("texts were truncated: all texts together can take {space}{setting}"),
        ),
    ] {
        if n > 0 {
            text.push_str(&format!(", {} {what}", whole(n)));
        }
    }
    if let Some(flood) = &all.flood {
        text.push_str(&format!(
            "; {} of these are {} that ran only once (see tally doctor)",
            whole(flood.once),
            flood.kind
        ));
    }
    text
}

/// One page for each row: several databases and users may have the same query ID.
fn pages(all: &StatementsTable, color: bool) -> Result<(), Error> {
    let mut out = view::escape::coloured_stdout(color);
    let width = command::terminal_width().unwrap_or(WIDTH);
    for row in &all.rows {
        let whole = all.interval_seconds.and_then(|_| all.whole(&row.key));
        for section in statements::page(all, Some(row), whole.as_ref()) {
            match color {
                true => writeln!(out, "\x1b[1m{}\x1b[0m", section.title)?,
                false => writeln!(out, "{}", section.title)?,
            }
            for line in section.lines.iter().flat_map(|line| wrap(line, width)) {
                writeln!(out, "{line}")?;
            }
            if let Some(table) = &section.table {
                let width = command::terminal_width().unwrap_or(usize::MAX);
                out.write_all(table.drawn(width, !speaks_utf8()).as_bytes())?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}
