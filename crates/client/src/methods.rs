// SPDX-License-Identifier: PostgreSQL
//! `tally methods`: prints the calls and times of a client's methods, as measured by the agent in client/java, or of
//! libpq's functions in a client (client/libpq).

mod calls_between;

use std::io::Write;

use clap::Args;
use segment::functions::FunctionRow;
use segment::interval::Timing;
use segment::{stat_names, Interval};
use serde::Serialize;

use self::calls_between::{CallsBetweenArgs, Edge};
use crate::{is_java, ClientArgs, ClientHead};
use error::Error;
use view::methods::{self, MethodSort};

/// Arguments of `tally methods`.
#[derive(Debug, Args)]
#[command(after_help = "\
Start the application with -javaagent:pgtally-agent.jar, or attach the agent to it: \
java -jar pgtally-agent.jar PID. By default the methods of PostgreSQL's JDBC driver are timed.
For programs that use libpq (psql, psycopg2): LD_PRELOAD=/usr/local/lib/pgtally/libtally_pq.so PROGRAM

Without --sort, tally prints five tables: by number of calls, and by elapsed and CPU time, each \
inclusive and in callees. CPU times require the agent's option cpu=on; --callers and --callees \
require edges=on.

Examples:
  tally methods
  tally methods 4711
  tally methods --interval 10 --sort excl --top 20
  tally methods --callers=PgResultSet.next
  tally methods /dev/shm/pg_tally.java.4711 --json")]
pub struct MethodsArgs {
    /// The client and the time to measure
    #[command(flatten)]
    pub client: ClientArgs,
    /// Print a single table in this order
    #[arg(long, value_name = "BY", conflicts_with = "CallsBetweenArgs")]
    pub sort: Option<MethodSort>,
    /// The calls between methods
    #[command(flatten)]
    pub calls_between: CallsBetweenArgs,
    /// Rows in each table [default: 5; all with --callers or --callees]
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
}

/// Default number of rows in a table.
const TOP: usize = 5;

/// The calls of an interval, as `--json` prints them.
#[derive(Debug, Serialize)]
struct Methods<'i> {
    #[serde(flatten)]
    head: &'i ClientHead<'i>,
    wall_seconds: f64,
    busy_seconds: f64,
    methods_timed: usize,
    methods: Vec<Method<'i>>,
    edges: Vec<Edge<'i>>,
    collections: Vec<Collections<'i>>,
    pauses: Vec<Pause<'i>>,
}

/// Pauses in which the virtual machine stopped all threads.
#[derive(Debug, Serialize)]
struct Pause<'i> {
    reason: &'i str,
    count: u64,
    seconds: f64,
}

/// The pauses of an interval, by reason.
fn pauses(interval: &Interval) -> Vec<Pause<'_>> {
    let rows = interval.ledger.iter().filter(|row| &*row.phase == "pause");
    rows.map(|row| {
        let (count, seconds) = (row.timing.count, row.timing.seconds);
        Pause { reason: &row.activity, count, seconds }
    })
    .collect()
}

/// Time of threads in timed methods, seconds: busy time without the virtual machine's own pauses.
fn in_methods(interval: &Interval) -> f64 {
    interval.busy_seconds - pauses(interval).iter().map(|pause| pause.seconds).sum::<f64>()
}

/// The collections of one garbage collector.
#[derive(Debug, Serialize)]
struct Collections<'i> {
    collector: &'i str,
    count: u64,
    seconds: f64,
    max_seconds: Option<f64>,
}

/// The garbage collections of an interval.
fn collections(interval: &Interval) -> Vec<Collections<'_>> {
    let mut rows = Vec::new();
    for statistic in &interval.statistics {
        if let Some(collector) = statistic.name.strip_prefix(stat_names::COLLECTION) {
            let (count, seconds, max_seconds) = (statistic.count, statistic.total, statistic.max);
            rows.push(Collections { collector, count, seconds, max_seconds });
        }
    }
    rows
}

/// A method.
#[derive(Debug, Serialize)]
struct Method<'i> {
    package: &'i str,
    method: &'i str,
    calls: u64,
    thrown: u64,
    inclusive: Timing,
    exclusive_seconds: f64,
    callees_seconds: f64,
    bytes: u64,
    cpu_inclusive_seconds: Option<f64>,
    cpu_exclusive_seconds: Option<f64>,
    cpu_callees_seconds: Option<f64>,
}

impl<'i> Method<'i> {
    fn from_row(row: &'i FunctionRow) -> Self {
        Self {
            package: &row.phase,
            method: &row.name,
            calls: row.calls,
            thrown: row.thrown,
            inclusive: row.inclusive,
            exclusive_seconds: row.exclusive_seconds,
            callees_seconds: methods::callees(row),
            bytes: row.bytes,
            cpu_inclusive_seconds: row.cpu_inclusive_seconds,
            cpu_exclusive_seconds: row.cpu_exclusive_seconds,
            cpu_callees_seconds: methods::cpu_callees(row),
        }
    }
}

/// Prints the methods of a Java process.
pub fn run(args: &MethodsArgs) -> Result<(), Error> {
    let (segment, interval) = args.client.measure()?;
    let head = ClientHead::from_segment(&segment, &interval);
    let rows = &interval.functions;
    if args.calls_between.are_wanted() {
        let head = (&head, &*done(&interval));
        return args.calls_between.print((&segment, &interval), head, args.client.json, args.top);
    }
    if args.client.json {
        let sort = args.sort.unwrap_or(MethodSort::Incl);
        let edges = calls_between::all(&segment, &interval)?;
        return view::output::json(&Methods {
            head: &head,
            wall_seconds: interval.wall_seconds,
            busy_seconds: in_methods(&interval),
            methods_timed: interval.functions_probed,
            methods: sort.sorted(rows).into_iter().map(Method::from_row).collect(),
            edges: edges.iter().map(Edge::from).collect(),
            collections: collections(&interval),
            pauses: pauses(&interval),
        });
    }
    if args.sort.is_some_and(MethodSort::needs_cpu) && !rows.is_empty() && !methods::has_cpu(rows) {
        let remedy = if is_java(&segment) {
            "; start the agent with cpu=on"
        } else {
            " for programs that use libpq"
        };
        return Err(Error::Failed(format!("CPU times are not measured{remedy}")));
    }
    let mut out = view::escape::stdout();
    for line in head.lines(&done(&interval)).into_iter().chain(garbage(&interval)) {
        writeln!(out, "{line}")?;
    }
    if rows.is_empty() {
        return Ok(writeln!(out, "{}", nothing(&interval))?);
    }
    let top = args.top.unwrap_or(TOP);
    if let Some(sort) = args.sort {
        return Ok(out.write_all(methods::table(rows, sort, top).for_stdout().as_bytes())?);
    }
    for (title, table) in methods::tables(rows, top) {
        writeln!(out)?;
        writeln!(out, "{title}")?;
        out.write_all(table.for_stdout().as_bytes())?;
    }
    if !methods::has_cpu(rows) && is_java(&segment) {
        writeln!(out, "\nCPU times are not measured; start the agent with cpu=on to see them")?;
    }
    Ok(())
}

fn done(interval: &Interval) -> String {
    let calls: u64 = interval.functions.iter().map(|row| row.calls).sum();
    format!(
        "{} of {} methods called, {calls} calls in {:.1} s; threads spent {:.3} s in them",
        interval.functions.len(),
        interval.functions_probed,
        interval.interval_seconds,
        in_methods(interval),
    )
}

/// A line for each collector that ran and for each reason for pauses.
fn garbage(interval: &Interval) -> Vec<String> {
    let pauses = pauses(interval);
    let pauses = pauses.iter().map(|pause| {
        format!(
            "all threads stopped: {} {} times, {:.3} s",
            pause.reason, pause.count, pause.seconds
        )
    });
    collections(interval)
        .iter()
        .map(|collection| {
            let longest = collection.max_seconds.unwrap_or(0.0) * 1e3;
            format!(
                "garbage collection: {} {} times, {:.3} s, longest {longest:.0} ms",
                collection.collector, collection.count, collection.seconds
            )
        })
        .chain(pauses)
        .collect()
}

fn nothing(interval: &Interval) -> &'static str {
    if interval.functions_probed == 0 {
        "no class with a timed method has been loaded; the agent's option methods= selects methods"
    } else {
        "no timed method has completed a call"
    }
}
