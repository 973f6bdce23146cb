// SPDX-License-Identifier: PostgreSQL
//! `tally methods`: prints the calls and times of a client's methods, as measured by the agent in client/java, or of
//! libpq's functions in a client (client/libpq).

mod calls_between;

use std::io::Write;

use clap::Args;
use segment::functions::FunctionRow;
use segment::interval::Timing;
use segment::{stat_names, Frame, Interval};
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

impl Pause<'_> {
    fn line(&self) -> String {
        let (reason, seconds) = (self.reason, self.seconds);
        match self.count {
            // The virtual machine counts time around its collections that is in no collection.
            0 => format!("all threads stopped: {reason} {seconds:.3} s, before and after garbage collections"),
            1 => format!("all threads stopped: {reason} once, {seconds:.3} s"),
            count => format!("all threads stopped: {reason} {count} times, {seconds:.3} s"),
        }
    }
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

/// Time of threads in timed methods, seconds: busy time without the virtual machine's own pauses, and the completed calls of
/// virtual threads, which have no accounts.
fn in_methods(frame: &Frame, interval: &Interval) -> f64 {
    let paused = pauses(interval).iter().map(|pause| pause.seconds).sum::<f64>();
    interval.busy_seconds - paused + of_virtual_threads(frame)
}

/// The kind of the books that virtual threads share (client/java, SharedBooks).
const VIRTUAL: &str = "virtual threads";

/// Time of virtual threads in timed methods, seconds.
fn of_virtual_threads(frame: &Frame) -> f64 {
    let is_own_time = |name: &str| {
        name.starts_with(stat_names::FUNCTION)
            && name.rsplit("::").nth(1) == Some(stat_names::FUNCTION_EXCLUSIVE)
    };
    let all = frame.statistics.iter().filter(|row| row.process.as_ref() == VIRTUAL);
    let ticks: u64 = all
        .filter(|row| is_own_time(&row.stat.name))
        .fold(0, |sum, row| sum.saturating_add(row.total.change.total));
    ticks as f64 / frame.clock.ticks_per_second
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
    let measured = args.client.measure()?;
    let (segment, interval) = (&measured.segment, &measured.interval);
    let in_methods = in_methods(&measured.frame, interval);
    let head = ClientHead::from_measured(&measured);
    let rows = &interval.functions;
    if args.calls_between.are_wanted() {
        let head = (&head, &*done(interval, in_methods));
        return args.calls_between.print((segment, interval), head, args.client.json, args.top);
    }
    if args.client.json {
        let sort = args.sort.unwrap_or(MethodSort::Incl);
        let edges = calls_between::all(segment, interval)?;
        return view::output::json(&Methods {
            head: &head,
            wall_seconds: interval.wall_seconds,
            busy_seconds: in_methods,
            methods_timed: interval.functions_probed,
            methods: sort.sorted(rows).into_iter().map(Method::from_row).collect(),
            edges: edges.iter().map(Edge::from).collect(),
            collections: collections(interval),
            pauses: pauses(interval),
        });
    }
    if args.sort.is_some_and(MethodSort::needs_cpu) && !rows.is_empty() && !methods::has_cpu(rows) {
        let remedy = if is_java(segment) {
            "; start the agent with cpu=on"
        } else {
            " for programs that use libpq"
        };
        return Err(Error::Failed(format!("CPU times are not measured{remedy}")));
    }
    let mut out = view::escape::stdout();
    for line in head.lines(&done(interval, in_methods)).into_iter().chain(garbage(interval)) {
        writeln!(out, "{line}")?;
    }
    if rows.is_empty() {
        return Ok(writeln!(out, "{}", nothing(interval))?);
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
    if !methods::has_cpu(rows) && is_java(segment) {
        writeln!(out, "\nCPU times are not measured; start the agent with cpu=on to see them")?;
    }
    Ok(())
}

fn done(interval: &Interval, in_methods: f64) -> String {
    let calls: u64 = interval.functions.iter().map(|row| row.calls).sum();
    format!(
        "{} of {} methods called, {calls} calls in {:.1} s; threads spent {in_methods:.3} s in them",
        interval.functions.len(),
        interval.functions_probed,
        interval.interval_seconds,
    )
}

/// A line for each collector that ran and for each reason for pauses.
fn garbage(interval: &Interval) -> Vec<String> {
    let pauses = pauses(interval);
    let pauses = pauses.iter().map(Pause::line);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_without_a_number_say_what_they_belong_to() {
        let line = |count| Pause { reason: "other safepoint", count, seconds: 0.024 }.line();
        assert_eq!(
            [line(0), line(1), line(7)],
            [
                "all threads stopped: other safepoint 0.024 s, before and after garbage collections",
                "all threads stopped: other safepoint once, 0.024 s",
                "all threads stopped: other safepoint 7 times, 0.024 s",
            ]
        );
    }
}
