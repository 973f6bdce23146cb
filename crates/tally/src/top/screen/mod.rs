// SPDX-License-Identifier: PostgreSQL
//! The state of the full-screen view, and what keys, clicks and intervals make of it. It knows
//! no terminal and touches no file: what only its owner can do, it asks for.

mod act;
mod orders;
mod typing;

#[cfg(test)]
pub mod tests;

use std::collections::HashSet;
use std::time::Duration;
use view::Sort;

use jiff::tz::TimeZone;
use segment::StatementKey;

use super::history::{History, STATEMENTS};
use super::keys::Form;
use super::mouse::Spots;
use super::views;
use super::{saved::Saved, INTERVAL};
use crate::top::{TopArgs, View};
use live::feed::Step;
use view::panes::{Open, Wish};
use view::statements::{page, Section};
use view::table::{speaks_utf8, Table};
use view::Reading;

pub use orders::of_column;

/// The shortest and the longest interval that can be typed, seconds.
pub const INTERVALS: std::ops::RangeInclusive<f64> = 0.1..=3600.0;

/// The slowest and the fastest replay.
pub const SPEEDS: std::ops::RangeInclusive<f64> = 0.125..=1024.0;

/// The panes, in order.
pub const PANES: [(&str, View); 9] = [
    ("Ledger", View::Ledger),
    ("Waits", View::Waits),
    ("Commands", View::Commands),
    ("Sessions", View::Sessions),
    ("LWLocks", View::Lwlocks),
    ("Locks", View::Locks),
    ("Functions", View::Functions),
    ("Statements", View::Statements),
    ("IO", View::Io),
];

/// What keys go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// The panes.
    Normal,
    /// The filter that is being typed.
    Filter(String),
    /// The interval that is being typed.
    Interval(String),
    /// The time that is being typed.
    Time(String),
    /// The page of help, and its first line that is seen.
    Help(usize),
}

/// What only the owner of the screen can do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ask {
    /// Leave.
    Quit,
    /// Write what is shown into a file.
    Export(Form),
    /// Save the view.
    Save,
    /// Listen to the mouse, or leave it to the terminal.
    Mouse,
    /// Show an interval that lies by so many beyond those that are kept.
    Further(i64),
    /// Show a time that is not among them, seconds since 1970.
    Seek(f64),
}

/// How a recording is played.
#[derive(Debug, Clone, PartialEq)]
pub struct Play {
    /// What is played.
    pub what: String,
    /// It goes on by itself.
    pub on: bool,
    /// Times as fast as it was.
    pub speed: f64,
    /// Number of the interval that comes next, from 0 on.
    pub next: usize,
    /// How many there are.
    pub of: usize,
}

impl Play {
    /// From the first interval on.
    pub fn new(what: String, of: usize, speed: f64) -> Play {
        Play { what, on: true, speed, next: 0, of }
    }
}

/// Everything that is drawn.
#[derive(Debug)]
pub struct Screen {
    /// The intervals, and which of them is shown.
    pub history: History,
    /// Where these are a recording's, how it is played.
    pub play: Option<Play>,
    /// Of `PANES`.
    pub pane: usize,
    /// Order, filter and the like.
    pub wish: Wish,
    /// Row under the cursor.
    pub cursor: usize,
    /// First row that is drawn.
    pub top: usize,
    /// Rows that were drawn last time.
    pub page: usize,
    /// What was drawn where last time.
    pub spots: Spots,
    /// The statement whose page is shown in place of the pane.
    pub statement: Option<StatementKey>,
    /// What keys go to.
    pub mode: Mode,
    /// What became of the server, until there is an interval again.
    pub message: Option<String>,
    /// What became of a key, until the next one.
    pub notice: Option<String>,
    /// Length of an interval.
    pub length: Duration,
    /// The mouse is listened to.
    pub mouse: bool,
    /// Use colour.
    pub color: bool,
    /// Draw bars in ASCII.
    pub ascii: bool,
    /// Times of day are of this zone.
    pub zone: TimeZone,
}

impl Screen {
    /// As the command line wants it, and for the rest as it was saved.
    pub fn new(args: &TopArgs, saved: &Saved, color: bool) -> Screen {
        let view = args.view.or(saved.view).unwrap_or(View::Ledger);
        let open = if saved.open { Open::All } else { Open::These(HashSet::new()) };
        let wish = views::wish(args, open);
        // An order that was asked for is not turned round by what was saved.
        let (sort, reverse) = match &args.sort {
            Some(sort) => (sort.clone(), args.reverse),
            None => (saved.sort.clone().unwrap_or(Sort::Time), args.reverse ^ saved.reverse),
        };
        Screen {
            history: History::default(),
            play: None,
            pane: PANES.iter().position(|p| p.1 == view).unwrap_or(0),
            wish: Wish { sort, reverse, idle: args.idle || saved.idle, ..wish },
            cursor: 0,
            top: 0,
            page: 1,
            spots: Spots::default(),
            statement: None,
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

    /// What `W` saves of it.
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

    /// The table of the pane that is shown.
    pub fn table(&self) -> Option<Table> {
        let reading = self.reading()?;
        Some(views::table(self.view(), reading, &self.wish()))
    }

    /// How rows are chosen, with the filter that is being typed.
    pub fn wish(&self) -> Wish {
        let mut wish = self.wish.clone();
        if let Mode::Filter(typed) = &self.mode {
            wish.filter = typed.to_lowercase();
        }
        wish
    }

    /// The pane that is shown.
    pub fn view(&self) -> View {
        PANES[self.pane].1
    }

    /// What is to be said of it.
    pub fn note(&self) -> Option<String> {
        let reading = self.reading()?;
        let statements = reading.statements.as_ref().map_or(0, |it| it.rows.len());
        if self.view() == View::Statements && self.history.is_past() && statements == STATEMENTS {
            return Some(format!("past intervals keep the {STATEMENTS} statements with most time"));
        }
        views::remark(self.view(), reading)
    }

    /// The page that is shown in place of a table, if one is.
    pub fn sections(&self) -> Option<Vec<Section>> {
        let reading = self.reading()?;
        match self.statement {
            Some(key) => self.statement_page(&key),
            None => views::page(self.view(), reading, &self.wish()),
        }
    }

    /// What a statement did in the interval; if nothing, since the last reset.
    fn statement_page(&self, key: &StatementKey) -> Option<Vec<Section>> {
        let statements = self.reading()?.statements.as_ref()?;
        let whole = statements.whole(key);
        Some(page(statements, statements.row(key), whole.as_ref()))
    }

    /// What an interval, or the lack of one, changes.
    pub fn step(&mut self, step: Step) {
        match step {
            Step::Interval(reading) => {
                self.history.push(reading);
                self.message = None;
            }
            Step::Attached => {
                self.history.gap("the server was restarted".to_string());
                self.message = Some("the server was restarted; figures follow".to_string());
            }
            Step::Absent(reason) => {
                self.history.gap(reason.clone());
                self.message = Some(reason);
            }
        }
    }

    /// Number of the interval of a recording that is shown, from 0 on.
    pub fn shown_index(&self) -> Option<usize> {
        Some(self.reading()?.recorded.as_ref()?.index)
    }
}
