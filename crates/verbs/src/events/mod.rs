// SPDX-License-Identifier: PostgreSQL
//! `tally events`: lists notable events of the server's processes, oldest first; with `--follow`, also new ones
//! as they happen.

mod args;

use std::io::Write;
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use rustix::event::PollFlags;

use error::Error;
use live::follower::{Absent, FollowOptions, Follower, Step};
use live::hangup;
use live::target;
use view::events::Row;

pub use args::{EventsArgs, Since};

/// How often `--follow` looks for events.
const NAP: Duration = Duration::from_millis(100);

/// Waits until the next poll. Returns false if the reader has closed our output: on a quiet server, no write
/// would fail to reveal it.
fn nap() -> Result<bool, Error> {
    Ok(hangup::wait(view::escape::process_stdout(), PollFlags::empty(), NAP)?)
}

/// Prints the events.
pub fn run(args: &EventsArgs, color: bool) -> Result<(), Error> {
    let stop = if args.follow { command::stop_on_signals()? } else { Arc::default() };
    let after = Some(match args.since {
        Some(Since::Number(number)) => number,
        _ => 0,
    });
    let path = target::source(args.target.as_deref())?;
    let mut follower = Follower::open(path, FollowOptions { after, ..FollowOptions::default() })?;
    let mut rows = Vec::new();
    loop {
        for step in follower.step(false) {
            match step {
                Step::Events(new) => rows.extend(new),
                Step::Absent(Absent::Unreadable(error)) => return Err(error),
                _ => {}
            }
        }
        if !follower.waits() || stop.load(Ordering::Relaxed) || !nap()? {
            break;
        }
    }
    let mut printer = Printer { args, color, zone: TimeZone::system(), lost: 0, noted: None };
    let rows = first(args, rows);
    if !args.json && !rows.iter().any(|row| wanted(args, row)) {
        let note = match rows.is_empty() && args.since.is_none() {
            true => "no events so far",
            false => "no events match",
        };
        printer.note(note);
    }
    printer.rows(rows, follower.event_capacity())?;
    while args.follow && !stop.load(Ordering::Relaxed) && nap()? {
        for step in follower.step(false) {
            match step {
                Step::Events(rows) => printer.rows(rows, follower.event_capacity())?,
                Step::Attached { .. } => printer.note("the server was restarted"),
                // The segment may be incomplete while it is being replaced; try again.
                Step::Absent(why) => printer.note(&why.waiting()),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Selects from the events that exist at the start.
fn first(args: &EventsArgs, mut rows: Vec<Row>) -> Vec<Row> {
    if let Some(Since::Ago(length)) = args.since {
        let begin = segment::clock::realtime_ns() as f64 / 1e9 - length.as_secs_f64();
        rows.retain(|row| row.time.is_none_or(|time| time >= begin));
    }
    if let Some(last) = args.last {
        rows.retain(|row| wanted(args, row));
        rows.drain(..rows.len().saturating_sub(last));
    }
    // Events that were lost before the requested ones do not matter.
    if args.last.is_some() || matches!(args.since, Some(Since::Ago(_))) {
        if let Some(row) = rows.first_mut() {
            row.lost = 0;
        }
    }
    rows
}

fn wanted(args: &EventsArgs, row: &Row) -> bool {
    (args.kind.is_empty() || args.kind.iter().any(|kind| row.kind == (*kind).into()))
        && (args.pid.is_empty() || args.pid.contains(&row.pid))
}

/// Prints events on standard output, and notes on standard error.
struct Printer<'a> {
    args: &'a EventsArgs,
    color: bool,
    zone: TimeZone,
    /// Lost events that precede rows outside the selection.
    lost: u64,
    /// The last note, which is not repeated.
    noted: Option<String>,
}

impl Printer<'_> {
    fn rows(&mut self, rows: Vec<Row>, capacity: u32) -> Result<(), Error> {
        let mut out = view::escape::coloured_stdout(self.color);
        for mut row in rows {
            self.noted = None;
            if row.lost > 0 {
                out.flush()?;
                self.note(&losses(row.lost, capacity));
            }
            self.lost += row.lost;
            if !wanted(self.args, &row) {
                continue;
            }
            row.lost = std::mem::take(&mut self.lost);
            if self.args.json {
                serde_json::to_writer(&mut out, &row)?;
                writeln!(out)?;
            } else {
                writeln!(out, "{}", row.line(&self.zone, self.color))?;
            }
        }
        Ok(out.flush()?)
    }

    /// Prints a note on standard error, unless it repeats the last one.
    fn note(&mut self, text: &str) {
        if self.noted.as_deref() != Some(text) {
            view::escape::say_of(self.args.target.as_deref(), text);
            self.noted = Some(text.to_string());
        }
    }
}

fn losses(number: u64, capacity: u32) -> String {
    let events = if number == 1 { "event was" } else { "events were" };
    format!("{number} {events} lost: only the last {capacity} are kept (pg_tally.max_events)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use segment::EventKind;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: EventsArgs,
    }

    fn args(more: &[&str]) -> EventsArgs {
        Cli::try_parse_from(["events"].iter().chain(more)).unwrap().args
    }

    fn rows() -> Vec<Row> {
        let now = segment::clock::realtime_ns() as f64 / 1e9;
        let kinds = [
            EventKind::Note,
            EventKind::Slow,
            EventKind::Other(9),
            EventKind::Slow,
            EventKind::Note,
        ];
        let row = |(kind, number): (EventKind, u64)| Row {
            number,
            time: Some(now - 60.0 * (6 - number) as f64),
            pid: 10 + number as i32,
            process: None,
            database: None,
            user: None,
            kind,
            text: String::new(),
            payload: None,
            lost: if number == 1 { 3 } else { 0 },
        };
        kinds.into_iter().zip(1..).map(row).collect()
    }

    /// Numbers of the events printed at the start, and the first one's count of lost events.
    fn printed(more: &[&str]) -> (Vec<u64>, Option<u64>) {
        let args = args(more);
        let rows = first(&args, rows());
        let lost = rows.first().map(|row| row.lost);
        (rows.into_iter().filter(|row| wanted(&args, row)).map(|row| row.number).collect(), lost)
    }

    #[test]
    fn only_requested_events_are_printed() {
        assert_eq!(printed(&[]), (vec![1, 2, 3, 4, 5], Some(3)));
        assert_eq!(printed(&["--kind", "slow"]), (vec![2, 4], Some(3)));
        assert_eq!(printed(&["--kind", "slow,note", "--last", "3"]), (vec![2, 4, 5], Some(0)));
        assert_eq!(printed(&["--pid", "12,15"]).0, [2, 5]);
        assert_eq!(printed(&["--since", "150s"]), (vec![4, 5], Some(0)));
        assert_eq!(printed(&["--last", "0"]), (vec![], None));
        assert!(printed(&["--kind", "warning"]).0.is_empty());
    }

    #[test]
    fn notes_about_lost_events_name_the_setting() {
        let one = "1 event was lost: only the last 16 are kept (pg_tally.max_events)";
        assert_eq!(losses(1, 16), one);
        assert!(losses(40, 16).starts_with("40 events were lost"));
    }
}
