// SPDX-License-Identifier: PostgreSQL
//! The state of the full-screen view, and how keys, clicks and intervals change it. It uses no terminal and no
//! files: its owner does that on request.

mod act;
mod ask;
mod session;

#[cfg(test)]
pub mod tests;

use std::borrow::Cow;
use std::collections::HashSet;
use std::time::Duration;
use view::Sort;

use diagnose::Diagnoses;
use jiff::tz::TimeZone;
use segment::StatementKey;

use super::args::INTERVAL;
use super::history::{History, STATEMENTS};
use super::saved::Saved;
use super::views::{self, PANES};
use crate::{TopArgs, View};
use live::follower::Step;
use terminal::{Look, Spots};
use view::rows::{Open, RowOptions};
use view::session::{page as session_page, SessionId};
use view::statements::page;
use view::table::{speaks_utf8, PaneSection, Table};
use view::Reading;

pub use crate::orders::of_heading;
pub use ask::Request;
pub use ask::{Ask, Mode};

/// The state of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Play {
    /// The recording's name.
    pub what: String,
    /// Whether it is playing.
    pub on: bool,
    /// Speed, relative to the original.
    pub speed: f64,
    /// Number of the next interval, from 0.
    pub next: usize,
    /// Number of intervals.
    pub of: usize,
}

impl Play {
    /// Starts at the first interval.
    pub fn new(what: String, of: usize, speed: f64) -> Play {
        Play { what, on: true, speed, next: 0, of }
    }
}

/// Everything that is drawn.
#[derive(Debug)]
pub struct Screen {
    /// The intervals, and which of them is shown.
    pub history: History,
    /// The state of the replay; `None` if live.
    pub play: Option<Play>,
    /// Index into `PANES`.
    pub pane: usize,
    /// Sort order, filter and similar options.
    pub wish: RowOptions,
    /// Row under the cursor.
    pub cursor: usize,
    /// First visible row.
    pub top: usize,
    /// Number of rows that were drawn last time.
    pub page: usize,
    /// What was drawn where last time.
    pub spots: Spots,
    /// The statement whose page is shown instead of the pane.
    pub statement: Option<StatementKey>,
    /// The session whose page is shown instead of the pane.
    pub session: Option<SessionId>,
    /// The trace of a session that is shown instead of the pane, line by line.
    pub trace: Option<Vec<String>>,
    /// What keys act on.
    pub mode: Mode,
    /// A message about the server, until the next interval.
    pub message: Option<String>,
    /// The result of a key, until the next one.
    pub notice: Option<String>,
    /// Length of an interval.
    pub length: Duration,
    /// Whether the mouse is on.
    pub mouse: bool,
    /// Whether to use colour.
    pub color: bool,
    /// Whether to draw bars in ASCII.
    pub ascii: bool,
    /// The zone for times of day.
    pub zone: TimeZone,
}

impl Screen {
    /// The initial state: options of the command line, then the saved view.
    pub fn new(args: &TopArgs, saved: &Saved, color: bool) -> Screen {
        let view = args.view.or(saved.view).unwrap_or(View::Diagnoses);
        let open = if saved.open { Open::All } else { Open::These(HashSet::new()) };
        let wish = views::wish(args, open);
        // A saved reversal applies only together with the saved order.
        let (sort, reverse) = match &args.sort {
            Some(sort) => (sort.clone(), args.reverse),
            None => (saved.sort.clone().unwrap_or(Sort::Time), args.reverse ^ saved.reverse),
        };
        Screen {
            history: History::default(),
            play: None,
            pane: PANES.iter().position(|pane| pane.2 == view).unwrap_or(0),
            wish: RowOptions { sort, reverse, idle: args.idle || saved.idle, ..wish },
            cursor: 0,
            top: 0,
            page: 1,
            spots: Spots::default(),
            statement: None,
            session: None,
            trace: None,
            mode: Mode::Normal,
            message: None,
            notice: None,
            length: args.interval.or(saved.interval).unwrap_or(INTERVAL),
            mouse: args.mouse || saved.mouse,
            color,
            ascii: !speaks_utf8(),
            zone: TimeZone::system(),
        }
    }

    /// What the terminal can show.
    pub fn look(&self) -> Look {
        Look { color: self.color, ascii: self.ascii }
    }

    /// The state that `W` saves.
    pub fn saved(&self) -> Saved {
        Saved {
            view: Some(self.view()),
            sort: Some(self.wish.sort.clone()),
            reverse: self.wish.reverse,
            idle: self.wish.idle,
            open: matches!(self.wish.open, Open::All),
            interval: Some(self.length),
            mouse: self.mouse,
        }
    }

    /// The interval that is shown.
    pub fn reading(&self) -> Option<&Reading> {
        self.history.shown()
    }

    /// The table of the current pane.
    pub fn table(&self) -> Option<Table> {
        let reading = self.reading()?;
        Some(views::table(self.view(), reading, &self.wish()))
    }

    /// The row options, with the filter that is being typed.
    pub fn wish(&self) -> RowOptions {
        let mut wish = self.wish.clone();
        if let Mode::Filter(typed) = &self.mode {
            wish.filter = typed.to_lowercase();
        }
        wish
    }

    /// The current pane.
    pub fn view(&self) -> View {
        PANES[self.pane].2
    }

    /// The diagnoses of the shown interval.
    pub fn answer(&self) -> Option<Cow<'_, Diagnoses>> {
        let known = self.history.answer().map(Cow::Borrowed);
        known.or_else(|| self.reading().map(|reading| Cow::Owned(Diagnoses::examine(reading))))
    }

    /// A note about the current pane.
    pub fn note(&self) -> Option<String> {
        let reading = self.reading()?;
        let statements = reading.statements.as_ref().map_or(0, |statements| statements.rows.len());
        if self.view() == View::Statements && self.history.is_past() && statements == STATEMENTS {
            return Some(format!(
                "past intervals store only the {STATEMENTS} statements with the most time"
            ));
        }
        // The note is about what is below the tree.
        let tree = self.view() == View::Locks && views::tree(reading).is_some();
        views::remark(self.view(), reading).filter(|_| !tree)
    }

    /// The section below the table.
    pub fn below(&self) -> Option<PaneSection> {
        views::below(self.view(), self.reading()?, &self.wish())
    }

    /// The page that replaces the table, if any.
    pub fn sections(&self) -> Option<Vec<PaneSection>> {
        let reading = self.reading()?;
        match (self.statement, self.session) {
            (Some(key), _) => self.statement_page(&key),
            (_, Some(id)) => Some(session_page(reading, id)),
            _ => views::page(self.view(), reading, &self.wish()),
        }
    }

    /// The figures of a statement in the interval or, if it was not active, since the last reset.
    fn statement_page(&self, key: &StatementKey) -> Option<Vec<PaneSection>> {
        let statements = self.reading()?.statements.as_ref()?;
        let whole = statements.whole(key);
        Some(page(statements, statements.row(key), whole.as_ref()))
    }

    /// Takes in an interval, or the reason why there is none.
    pub fn step(&mut self, step: Step) {
        match step {
            Step::Interval(reading) => {
                self.history.push(reading);
                self.message = None;
            }
            Step::Attached { .. } => {
                self.history.gap("the server was restarted".to_string());
                self.message =
                    Some("the server was restarted; waiting for the first interval".to_string());
            }
            Step::Absent(why) => {
                let reason = why.waiting();
                self.history.gap(reason.clone());
                self.message = Some(reason);
            }
            // The screen does not request frames and events.
            Step::Ended(_) | Step::Frame(_) | Step::Events(_) => {}
        }
    }

    /// Number of the shown interval of a recording, from 0.
    pub fn shown_index(&self) -> Option<usize> {
        Some(self.reading()?.recorded.as_ref()?.index)
    }
}
