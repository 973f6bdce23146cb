// SPDX-License-Identifier: PostgreSQL
//! `tally calls`: prints the statements that a Java client's driver executed, as measured by the agent in
//! client/java.

use std::io::Write;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::Args;
use error::Error;
use segment::calls::{self, CallRow, ClientConnections, UnusedConnection};
use segment::Interval;
use serde::Serialize;
use view::calls::{findings, table, CallSort};
use view::units::duration;

use crate::ring::Client;
use crate::{is_java, ClientArgs, ClientHead};

/// How often to read a client's ring.
const POLL: Duration = Duration::from_millis(20);

/// Arguments of `tally calls`.
#[derive(Debug, Args)]
#[command(after_help = "\
Start the application with -javaagent:pgtally-agent.jar, or attach the agent to it: \
java -jar pgtally-agent.jar PID. tally then shows the statements of PostgreSQL's JDBC driver.

ELAPSED is the sum of EXECUTE, FETCH (further round trips) and DECODE (methods of the result set). \
WAIT is the part of EXECUTE and FETCH in which the driver waited for the server or the network.

Examples:
  tally calls
  tally calls --interval 10 --sort trips --top 20
  tally calls /dev/shm/pg_tally.java.4711 --json
  tally calls 4711 --stream | ssh db tally trace --application shop --client -")]
pub struct CallsArgs {
    /// The client and the time to measure
    #[command(flatten)]
    pub client: ClientArgs,
    /// Sort order
    #[arg(long, value_name = "BY", default_value = "time")]
    pub sort: CallSort,
    /// Maximum number of statements to print
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// Print each call when it ends, until interrupted, as input for `tally trace --client -`
    #[arg(long, conflicts_with_all = ["json", "sort", "top"])]
    pub stream: bool,
}

/// The statements of an interval, as `--json` prints them.
#[derive(Debug, Serialize)]
struct CallsJson<'i> {
    #[serde(flatten)]
    head: &'i ClientHead<'i>,
    #[serde(flatten)]
    connections: &'i ClientConnections,
    unused: &'i [UnusedConnection],
    calls: Vec<CallJson<'i>>,
    findings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct CallJson<'i> {
    elapsed_seconds: f64,
    driver_seconds: f64,
    #[serde(flatten)]
    row: &'i CallRow,
}

/// Prints the statements of a Java process.
pub fn run(args: &CallsArgs) -> Result<(), Error> {
    if args.stream {
        return stream(args);
    }
    let measured = args.client.measure()?;
    let (segment, interval) = (&measured.segment, &measured.interval);
    let head = ClientHead::from_measured(&measured);
    let (rows, connections) = calls::rows(&interval.statistics, &segment.call_texts()?);
    let unused = calls::unused_connections(&interval.sessions);
    let findings = findings(&rows).into_iter().chain(unused.iter().map(unused_text));
    if args.client.json {
        return view::output::json(&CallsJson {
            head: &head,
            connections: &connections,
            unused: &unused,
            calls: args.sort.sorted(&rows).into_iter().map(call).collect(),
            findings: findings.collect(),
        });
    }
    let mut out = view::escape::stdout();
    let [client, done] = head.lines(&done(interval, &rows, &connections));
    writeln!(out, "{client}")?;
    if !is_java(segment) {
        // It has no driver, and so no sums of one.
        writeln!(
            out,
            "statements are measured in Java clients only; `tally methods` shows this client's calls of libpq"
        )?;
        return Ok(());
    }
    writeln!(out, "{done}")?;
    if let Some(line) = sizes(&connections) {
        writeln!(out, "{line}")?;
    }
    if rows.is_empty() {
        writeln!(
            out,
            "the driver org.postgresql has completed no statement, or the agent runs with calls=off"
        )?;
    } else {
        out.write_all(table(&rows, args.sort, args.top).for_stdout().as_bytes())?;
    }
    for finding in findings {
        writeln!(out, "{finding}")?;
    }
    Ok(())
}

/// Prints calls when they end, for the given time or until interrupted.
fn stream(args: &CallsArgs) -> Result<(), Error> {
    let segment = args.client.open()?;
    let path = segment.path().display().to_string();
    let mut client = Client::from_segment(segment, &path)?;
    let stop = command::stop_on_signals()?;
    let began = Instant::now();
    let over = || args.client.interval.is_some_and(|length| began.elapsed() >= length);
    let mut out = view::escape::stdout();
    let mut lost = 0;
    loop {
        let last = stop.load(Ordering::Relaxed) || over() || !client.runs();
        let calls = client.poll()?;
        let more = (client.lost > lost).then_some(client.lost);
        lost = client.lost;
        crate::stream::write(&mut out, calls, more)?;
        if last {
            return Ok(());
        }
        std::thread::sleep(POLL);
    }
}

fn call(row: &CallRow) -> CallJson<'_> {
    let (elapsed_seconds, driver_seconds) = (row.elapsed_seconds(), row.driver_seconds());
    CallJson { elapsed_seconds, driver_seconds, row }
}

fn done(interval: &Interval, rows: &[CallRow], connections: &ClientConnections) -> String {
    let sum = |figure: fn(&CallRow) -> f64| duration(rows.iter().map(figure).sum());
    let executions: u64 = rows.iter().map(|row| row.execute.count).sum();
    let failed = connections.pool_failed.map_or(String::new(), |failed| {
        let mean = duration(failed.seconds / failed.count as f64);
        format!(" ({} failed, after {mean} on average)", failed.count)
    });
    let pool = connections.pool_wait.map_or(String::new(), |wait| {
        format!("; {} waits for a pooled connection {}{failed}", wait.count, duration(wait.seconds))
    });
    let handled: u64 = rows.iter().map(|row| row.prepare.count + row.close.count).sum();
    let prepared = if handled == 0 {
        String::new()
    } else {
        let took = sum(|row| row.prepare.seconds + row.close.seconds);
        format!("; preparing and closing statements {took}")
    };
    format!(
        "{executions} executions of {} statements in {:.1} s took {}: waiting for the \
         server {}, driver {}, decoding {}{prepared}{pool}",
        rows.len(),
        interval.interval_seconds,
        sum(CallRow::elapsed_seconds),
        sum(|row| row.wait_seconds),
        sum(CallRow::driver_seconds),
        sum(|row| row.decode_seconds),
    )
}

/// A line on the number of connections.
fn sizes(connections: &ClientConnections) -> Option<String> {
    let open = connections.open_connections?;
    let borrowed = connections.borrowed_connections.map_or(String::new(), |borrowed| {
        match connections.pool_wait {
            Some(_) => format!(
                "; {:.1} of them borrowed from a pool, at most {} at once",
                borrowed.mean, borrowed.max
            ),
            None => String::new(),
        }
    });
    Some(format!(
        "{:.1} connections open on average, at most {}, each a session on the server{borrowed}",
        open.mean, open.max
    ))
}

/// A finding on a connection that is not used.
fn unused_text(connection: &UnusedConnection) -> String {
    let UnusedConnection { pool, thread, server, seconds } = connection;
    format!(
        "borrowed from pool {pool} and not used for {}, {server}: thread {thread} has not returned it; tally events shows where the thread was",
        duration(*seconds)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use segment::calls::SampledNumber;
    use segment::interval::Timing;

    #[test]
    fn a_clients_connections_are_compared_with_those_in_use() {
        let of = |mean, max| Some(SampledNumber { mean, max });
        let mut connections = ClientConnections::default();
        assert_eq!(sizes(&connections), None);
        connections.open_connections = of(9.5, 10);
        connections.borrowed_connections = of(1.25, 3);
        let open = "9.5 connections open on average, at most 10, each a session on the server";
        assert_eq!(sizes(&connections).as_deref(), Some(open));
        connections.pool_wait = Some(Timing::default());
        let all = format!("{open}; 1.2 of them borrowed from a pool, at most 3 at once");
        assert_eq!(sizes(&connections), Some(all));
    }

    #[test]
    fn a_connection_that_is_not_used_is_named_with_pool_thread_and_server() {
        let text = unused_text(&UnusedConnection {
            pool: "shop".into(),
            thread: "http-7".into(),
            server: "server process 4711".into(),
            seconds: 61.0,
        });
        assert!(text.starts_with("borrowed from pool shop and not used for 61"), "{text}");
        assert!(text.contains("server process 4711: thread http-7 has not"), "{text}");
    }
}
