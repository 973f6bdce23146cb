// SPDX-License-Identifier: PostgreSQL
//! `tally calls`: prints the statements of a Java client as its driver executed them, which the agent in client/java
//! measures.

use std::io::Write;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::Args;
use error::Error;
use segment::calls::{self, CallRow};
use segment::interval::Timing;
use segment::Interval;
use serde::Serialize;
use view::calls::{findings, table, CallSort};
use view::units::duration;

use crate::ring::Client;
use crate::{ClientArgs, ClientHead, WIDTH};

/// How often a client's ring is read.
const POLL: Duration = Duration::from_millis(20);

/// Arguments of `tally calls`.
#[derive(Debug, Args)]
#[command(after_help = "\
Start the application with -javaagent:pgtally-agent.jar, or attach the agent to it: \
java -jar pgtally-agent.jar PID. Statements of PostgreSQL's JDBC driver are shown.

ELAPSED is EXECUTE, FETCH (further round trips) and DECODE (the result's methods). WAIT is the part \
of the first two that the driver waited for the server or the network.

Examples:
  tally calls
  tally calls --interval 10 --sort trips --top 20
  tally calls /dev/shm/pg_tally.java.4711 --json
  tally calls 4711 --stream | ssh db tally trace --application shop --client -")]
pub struct CallsArgs {
    /// The client, and when
    #[command(flatten)]
    pub client: ClientArgs,
    /// Order of the statements
    #[arg(long, value_name = "BY", default_value = "time")]
    pub sort: CallSort,
    /// Statements in the table
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// Print each call as it ends, for `tally trace --client -` on the server's machine, until interrupted
    #[arg(long, conflicts_with_all = ["json", "sort", "top"])]
    pub stream: bool,
}

/// The statements of an interval, as `--json` prints them.
#[derive(Debug, Serialize)]
struct Calls<'i> {
    #[serde(flatten)]
    head: &'i ClientHead<'i>,
    pool_wait: Option<Timing>,
    calls: Vec<Call<'i>>,
    findings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Call<'i> {
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
    let (segment, interval) = args.client.measure()?;
    let head = ClientHead::from_segment(&segment, &interval);
    let (rows, pool) = calls::rows(&interval.statistics, &segment.call_texts()?);
    if args.client.json {
        return view::output::json(&Calls {
            head: &head,
            pool_wait: pool,
            calls: args.sort.sorted(&rows).into_iter().map(call).collect(),
            findings: findings(&rows),
        });
    }
    let mut out = view::escape::stdout();
    for line in head.lines(&done(&interval, &rows, pool)) {
        writeln!(out, "{line}")?;
    }
    if rows.is_empty() {
        let is_java = segment.header().producer.starts_with("pgtally-agent");
        let hint = match is_java {
            true => {
                "no statement was executed to its end by the driver org.postgresql; with the agent's \
                 option calls=off none is measured"
            }
            false => {
                "statements are measured in Java clients only; `tally methods` shows this client's \
                 calls of libpq"
            }
        };
        return Ok(writeln!(out, "{hint}")?);
    }
    let width = command::terminal_width().unwrap_or(WIDTH);
    out.write_all(table(&rows, args.sort, args.top).text(width).as_bytes())?;
    for finding in findings(&rows) {
        writeln!(out, "{finding}")?;
    }
    Ok(())
}

/// Calls as they end, for the given time or until interrupted.
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

fn call(row: &CallRow) -> Call<'_> {
    let (elapsed_seconds, driver_seconds) = (row.elapsed_seconds(), row.driver_seconds());
    Call { elapsed_seconds, driver_seconds, row }
}

fn done(interval: &Interval, rows: &[CallRow], pool: Option<Timing>) -> String {
    let sum = |figure: fn(&CallRow) -> f64| duration(rows.iter().map(figure).sum());
    let executions: u64 = rows.iter().map(|row| row.execute.count).sum();
    let pool = pool.map_or(String::new(), |it| {
        format!(
            "; waiting {} times for a connection of the pool {}",
            it.count,
            duration(it.seconds)
        )
    });
    let handled: u64 = rows.iter().map(|row| row.prepare.count + row.close.count).sum();
    let prepared = if handled == 0 {
        String::new()
    } else {
        let took = sum(|row| row.prepare.seconds + row.close.seconds);
        format!("; making and closing prepared statements {took}")
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
