// SPDX-License-Identifier: PostgreSQL
//! `tally top`: where the time goes, interval by interval; full-screen on a terminal, else as
//! text or JSON.

mod draw;
mod feed;
mod keys;
mod live;
mod tablespaces;
mod text;
mod watch;

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::cli::{TopArgs, View};
use crate::error::Error;
use crate::model::panes::{self, Open, Wish};
use crate::model::statements::Section;
use crate::model::table::Table;
use crate::model::{functions, io, locks, statements};
use crate::target;
use feed::{Feed, Step};

pub use feed::Reading;

/// How often a sleeping `top` looks whether it should end.
const NAP: Duration = Duration::from_millis(100);

/// Show it.
pub fn run(args: &TopArgs, color: bool) -> Result<(), Error> {
    if args.per_second && args.view != Some(View::Lwlocks) {
        return Err(Error::Usage("--per-second goes with --view lwlocks".into()));
    }
    let path = target::path(args.target.as_deref())?;
    let plain = args.once || args.json || args.count.is_some() || args.per_second;
    let plain = plain || !std::io::stdout().is_terminal();
    let first = args.view.unwrap_or(if plain { View::All } else { View::Ledger });
    let statements = args.json || of_statements(first);
    let mut feed = Feed::open(path, !args.no_witness, args.leaders, statements)?;
    if args.json || of_io(first) {
        feed.ask_for_io();
    }
    if plain {
        return print(args, feed, color);
    }
    live::run(args, feed, color)
}

/// Whether a view shows anything of the statements.
fn of_statements(view: View) -> bool {
    matches!(view, View::Statements | View::Sessions | View::All)
}

/// Whether a view shows the storage side.
fn of_io(view: View) -> bool {
    matches!(view, View::Io | View::All)
}

/// A view that is no table but a page of several.
fn page(view: View, reading: &Reading, wish: &Wish) -> Option<Vec<Section>> {
    (view == View::Io).then(|| io::page(&reading.interval, reading.io.as_ref(), wish))
}

/// What is to be said of a view beside its figures.
fn remark(view: View, reading: &Reading) -> Option<String> {
    let interval = &reading.interval;
    match view {
        View::Lwlocks | View::Locks => locks::note(interval),
        View::Functions => functions::note(interval),
        View::Statements if !reading.asked => Some("the statements are being read".to_string()),
        View::Statements => statements::note(reading.statements.as_ref()),
        _ => None,
    }
}

/// The table of a view.
fn table(view: View, reading: &Reading, wish: &Wish) -> Table {
    let interval = &reading.interval;
    match view {
        View::Waits => panes::waits(interval, wish),
        View::Commands => panes::commands(interval, wish),
        View::Sessions => panes::sessions(interval, reading.statements.as_ref(), wish),
        View::Lwlocks => locks::lwlocks(interval, wish),
        View::Locks => locks::locks(interval, wish),
        View::Functions => functions::functions(interval, wish),
        View::Statements => match &reading.statements {
            Some(statements) => statements::statements(statements, wish),
            None => Table { columns: Vec::new(), rows: Vec::new(), bars_after: None },
        },
        View::Ledger | View::Io | View::All => panes::ledger(interval, wish),
    }
}

fn wish(args: &TopArgs, open: Open) -> Wish {
    Wish {
        sort: args.sort.clone(),
        reverse: args.reverse,
        filter: args.filter.as_deref().unwrap_or("").to_lowercase(),
        idle: args.idle,
        open,
    }
}

/// Intervals as text or JSON: as many as asked for, or until nobody reads them.
fn print(args: &TopArgs, mut feed: Feed, color: bool) -> Result<(), Error> {
    let mut left = if args.once { Some(1) } else { args.count };
    let wish = wish(args, Open::All);
    let mut due = Instant::now();
    let mut told = None;
    while left != Some(0) {
        due = (due + args.interval).max(Instant::now());
        while let Some(wait) = due.checked_duration_since(Instant::now()) {
            if args.until.is_some_and(|until| Instant::now() >= until) {
                return Ok(());
            }
            std::thread::sleep(wait.min(NAP));
        }
        match feed.next() {
            Step::Interval(reading) => {
                write(args, &reading, &wish, color)?;
                left = left.map(|n| n - 1);
                told = None;
            }
            Step::Attached => note(args, "the server has started anew", &mut told),
            Step::Gone(reason) if args.once => return Err(Error::Failed(reason)),
            Step::Gone(reason) => note(args, &reason, &mut told),
        }
    }
    Ok(())
}

/// Say it on standard error, once.
fn note(args: &TopArgs, text: &str, told: &mut Option<String>) {
    if told.as_deref() != Some(text) {
        let target = args.target.as_deref().map_or(String::new(), |t| format!("{t}: "));
        // Nobody may be listening there; the intervals matter.
        let _ = writeln!(std::io::stderr(), "tally: {target}{text}");
        *told = Some(text.to_string());
    }
}

fn write(args: &TopArgs, reading: &Reading, wish: &Wish, color: bool) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer(&mut out, reading)?;
        writeln!(out)?;
    } else {
        let view = args.view.unwrap_or(View::All);
        if args.per_second {
            out.write_all(locks::per_second(&reading.interval, wish)?.as_bytes())?;
            return Ok(out.flush()?);
        }
        let width = std::io::stdout()
            .is_terminal()
            .then(|| ratatui::crossterm::terminal::size().ok())
            .flatten()
            .map(|(width, _)| usize::from(width));
        out.write_all(text::render(reading, wish, view, width, color).as_bytes())?;
    }
    Ok(out.flush()?)
}
