// SPDX-License-Identifier: PostgreSQL
//! `tally blocking`: shows who waits for whom, starting with the sessions at the root.

use std::io::Write;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use error::Error;
use live::blocking::Blocking;
use live::{hangup, target};
use rustix::event::PollFlags;
use segment::{EventKind, Interval, Segment, WaitClass};
use serde::Serialize;
use view::blocking::Forest;
use view::events::When;
use view::units;

use command::{ConnectionFlags, SamplingFlags};

/// Arguments of `tally blocking`.
#[derive(Debug, Args)]
#[command(after_help = "\
Shows sessions that have waited for a lock longer than 100 ms, and who blocks them. The session that \
blocks the most others comes first, with what it is doing and did last, then those behind it. This \
works at level waits: a waiting session looks up who blocks it, at least once per second.

Examples:
  tally blocking
  tally blocking --watch
  tally blocking --json | jq '.roots[0] | [.pid, .state, .query]'")]
pub struct BlockingArgs {
    /// Segment, data directory or connection string
    pub target: Option<String>,
    /// Connection options
    #[command(flatten)]
    pub connection: ConnectionFlags,
    /// How to sample a server
    #[command(flatten)]
    pub sampling: SamplingFlags,
    /// Refresh once per second until interrupted
    #[arg(long, short)]
    pub watch: bool,
    /// Print JSON, one line for each refresh (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct BlockingJson<'f> {
    server: &'f str,
    host: &'f str,
    /// Seconds since 1970.
    time: f64,
    #[serde(flatten)]
    forest: &'f Forest,
}

/// How often `--watch` refreshes.
const NAP: Duration = Duration::from_secs(1);

/// Prints who is blocked.
pub fn run(args: &BlockingArgs) -> Result<(), Error> {
    let stop = if args.watch { command::stop_on_signals()? } else { Arc::default() };
    let mut segment = args.sampling.source(args.target.as_deref())?.open()?;
    target::need_measured(&segment)?;
    let mut blocking = Blocking::default();
    loop {
        show(args, &mut segment, &mut blocking)?;
        let naps = args.watch && !stop.load(Ordering::Relaxed);
        if !naps || !hangup::wait(view::escape::process_stdout(), PollFlags::empty(), NAP)? {
            return Ok(());
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(());
        }
        segment.refresh()?;
        if segment.server_runs() == Some(false) {
            return Err(Error::Failed("the server has stopped".into()));
        }
    }
}

fn show(args: &BlockingArgs, segment: &mut Segment, blocking: &mut Blocking) -> Result<(), Error> {
    let (forest, time) = blocking.read(segment)?;
    let mut out = view::escape::stdout();
    let header = segment.header();
    if args.json {
        let server = if header.server.is_empty() { &header.producer } else { &header.server };
        let json = BlockingJson { server, host: &header.host, time, forest: &forest };
        serde_json::to_writer(&mut out, &json)?;
        writeln!(out)?;
        return Ok(out.flush()?);
    }
    if args.watch {
        writeln!(out, "{}", view::table::time(time, &jiff::tz::TimeZone::system()))?;
    }
    let mut lines = forest.lines();
    if forest.blocked == 0 && !args.watch {
        lines.extend(past(segment, time)?);
    }
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}

/// Nobody waits for longer than 100 ms now: what the waits for locks were until now, and the last one that was reported.
fn past(segment: &mut Segment, now: f64) -> Result<Vec<String>, Error> {
    let snapshot = segment.snapshot(None)?;
    let whole = Interval::between(segment, None, &snapshot);
    let locks = || whole.ledger.iter().filter(|row| row.class == WaitClass::Lock);
    let count: u64 = locks().map(|row| row.timing.count).sum();
    let seconds: f64 = locks().map(|row| row.timing.seconds).sum();
    let longest = locks().filter_map(|row| row.timing.max_seconds).fold(0.0, f64::max);
    let mut lines = Vec::new();
    if count > 0 {
        lines.push(format!(
            "Waits for locks since measuring began, {} ago: {}, on average {}, at most {}. Short ones are in \
             `tally top --view ledger`, as Lock:...",
            crate::ls::age(whole.interval_seconds),
            units::whole(count),
            units::duration(seconds / count as f64),
            units::duration(longest),
        ));
    }
    let events = segment.events(0)?;
    if let Some(last) = events.into_iter().rev().find(|event| event.kind == EventKind::Blocked) {
        let ago = When::from_segment(segment).map(|when| {
            format!(", {} ago", crate::ls::age((now - when.seconds(last.tick)).max(0.0)))
        });
        lines.push(format!("The last that was reported{}: {}", ago.unwrap_or_default(), last.text));
    }
    Ok(lines)
}
