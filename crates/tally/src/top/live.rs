// SPDX-License-Identifier: PostgreSQL
//! The full-screen view: its state, its keys and its loop.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind};
use segment::Interval;

use super::draw;
use super::feed::{Feed, Step};
use super::keys::{action, Action};
use super::NAP;
use crate::cli::{Sort, TopArgs, View};
use crate::error::Error;
use crate::model::panes::{self, Open, Wish};
use crate::model::table::Table;

/// The first interval is short, so that there is soon something to see.
const FIRST: Duration = Duration::from_millis(500);
/// The shortest and the longest interval that can be typed, seconds.
const INTERVALS: std::ops::RangeInclusive<f64> = 0.1..=3600.0;

/// The panes, in order.
pub const PANES: [(&str, View); 4] = [
    ("Ledger", View::Ledger),
    ("Waits", View::Waits),
    ("Commands", View::Commands),
    ("Sessions", View::Sessions),
];

/// The orders, in order.
const SORTS: [Sort; 5] = [Sort::Time, Sort::Count, Sort::Mean, Sort::Max, Sort::Name];

/// What keys go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// The panes.
    Normal,
    /// The filter that is being typed.
    Filter(String),
    /// The interval that is being typed.
    Interval(String),
    /// The page of help.
    Help,
}

/// Everything that is drawn.
#[derive(Debug)]
pub struct Screen {
    /// The last interval; `None` before the first.
    pub interval: Option<Box<Interval>>,
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
    /// Standing still.
    pub paused: bool,
    /// What keys go to.
    pub mode: Mode,
    /// What is to be said beside the figures.
    pub message: Option<String>,
    /// Length of an interval.
    pub length: Duration,
    /// Use colour.
    pub color: bool,
    /// Draw bars in ASCII.
    pub ascii: bool,
}

impl Screen {
    /// As the command line wants it.
    pub fn new(args: &TopArgs, color: bool) -> Screen {
        let view = args.view.unwrap_or(View::Ledger);
        Screen {
            interval: None,
            pane: PANES.iter().position(|p| p.1 == view).unwrap_or(0),
            wish: super::wish(args, Open::These(HashSet::new())),
            cursor: 0,
            top: 0,
            page: 1,
            paused: false,
            mode: Mode::Normal,
            message: None,
            length: args.interval,
            color,
            ascii: !speaks_utf8(),
        }
    }

    /// The table of the pane that is shown.
    pub fn table(&self) -> Option<Table> {
        let interval = self.interval.as_ref()?;
        let mut wish = self.wish.clone();
        if let Mode::Filter(typed) = &self.mode {
            wish.filter = typed.to_lowercase();
        }
        Some(match PANES[self.pane].1 {
            View::Waits => panes::waits(interval, &wish),
            View::Commands => panes::commands(interval, &wish),
            View::Sessions => panes::sessions(interval, &wish),
            View::Ledger | View::All => panes::ledger(interval, &wish),
        })
    }

    /// What an interval, or the lack of one, changes.
    fn step(&mut self, step: Step) {
        match step {
            Step::Interval(_) if self.paused => {}
            Step::Interval(interval) => {
                self.interval = Some(interval);
                self.message = None;
            }
            Step::Attached => {
                self.message = Some("the server has started anew; figures follow".to_string());
            }
            Step::Gone(reason) => self.message = Some(reason),
        }
    }

    /// What a key changes. Returns whether to leave.
    fn key(&mut self, key: KeyEvent) -> bool {
        match std::mem::replace(&mut self.mode, Mode::Normal) {
            Mode::Help => {
                return action(key) == Some(Action::Quit) && key.code != KeyCode::Char('q')
            }
            Mode::Filter(typed) => match edit(typed, key) {
                Edit::Going(typed) => {
                    self.cursor = 0;
                    self.mode = Mode::Filter(typed);
                }
                Edit::Done(typed) => self.wish.filter = typed.to_lowercase(),
                Edit::Dropped => {}
            },
            Mode::Interval(typed) => match edit(typed, key) {
                Edit::Going(typed) => self.mode = Mode::Interval(typed),
                Edit::Done(typed) => match typed.trim().parse::<f64>() {
                    Ok(seconds) if INTERVALS.contains(&seconds) => {
                        self.length = Duration::from_secs_f64(seconds);
                    }
                    _ => self.message = Some(format!("{typed}: not 0.1 to 3600 seconds")),
                },
                Edit::Dropped => {}
            },
            Mode::Normal => {
                if let Some(action) = action(key) {
                    return self.act(action);
                }
            }
        }
        false
    }

    fn act(&mut self, action: Action) -> bool {
        let turn =
            |at: usize, by: isize, n: usize| (at as isize + by).rem_euclid(n as isize) as usize;
        match action {
            Action::Quit => return true,
            Action::Pane(pane) => self.show(pane),
            Action::NextPane(by) => self.show(turn(self.pane, by, PANES.len())),
            Action::Move(by) => self.cursor = self.cursor.saturating_add_signed(by),
            Action::Page(by) => {
                let by = by * self.page.max(1) as isize;
                self.cursor = self.cursor.saturating_add_signed(by);
            }
            Action::Toggle => self.toggle(),
            Action::ToggleAll => {
                self.wish.open = match self.wish.open {
                    Open::All => Open::These(HashSet::new()),
                    Open::These(_) => Open::All,
                }
            }
            Action::Sort(by) => {
                let at = SORTS.iter().position(|s| *s == self.wish.sort).unwrap_or(0);
                self.wish.sort = SORTS[turn(at, by, SORTS.len())];
            }
            Action::Reverse => self.wish.reverse = !self.wish.reverse,
            Action::Filter => self.mode = Mode::Filter(self.wish.filter.clone()),
            Action::Clear => self.wish.filter.clear(),
            Action::Interval => self.mode = Mode::Interval(String::new()),
            Action::Idle => self.wish.idle = !self.wish.idle,
            Action::Pause => self.paused = !self.paused,
            Action::Help => self.mode = Mode::Help,
        }
        false
    }

    fn show(&mut self, pane: usize) {
        self.pane = pane;
        self.cursor = 0;
        self.top = 0;
    }

    fn toggle(&mut self) {
        let Some(table) = self.table() else { return };
        let Some(row) = table.rows.get(self.cursor).filter(|r| r.branches) else { return };
        if let Open::All = self.wish.open {
            let keys = table.rows.iter().filter(|r| r.branches).map(|r| r.key.clone());
            self.wish.open = Open::These(keys.collect());
        }
        if let Open::These(keys) = &mut self.wish.open {
            if !keys.remove(&row.key) {
                keys.insert(row.key.clone());
            }
        }
    }
}

/// What a key does to a line of text.
enum Edit {
    Going(String),
    Done(String),
    Dropped,
}

fn edit(mut typed: String, key: KeyEvent) -> Edit {
    match key.code {
        KeyCode::Enter => return Edit::Done(typed),
        KeyCode::Esc => return Edit::Dropped,
        KeyCode::Backspace => drop(typed.pop()),
        KeyCode::Char(_) if action(key) == Some(Action::Quit) && !key.modifiers.is_empty() => {
            return Edit::Dropped
        }
        KeyCode::Char(c) if !c.is_control() => typed.push(c),
        _ => {}
    }
    Edit::Going(typed)
}

/// Whether the terminal can be expected to know block characters.
fn speaks_utf8() -> bool {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
    locale.is_some_and(|l| {
        let l = l.to_lowercase();
        l.contains("utf-8") || l.contains("utf8")
    })
}

/// Gives the terminal back, however the view is left. A panic is covered by the hook that
/// `ratatui::try_init` installs.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        // Where the terminal has gone there is nothing to restore.
        let _ = ratatui::try_restore();
    }
}

/// Show it until the user has seen enough.
pub fn run(args: &TopArgs, mut feed: Feed, color: bool) -> Result<(), Error> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in
        [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP, signal_hook::consts::SIGINT]
    {
        signal_hook::flag::register(signal, ended.clone())?;
    }
    let mut screen = Screen::new(args, color);
    let _restore = Restore;
    let mut terminal = ratatui::try_init()?;
    let mut due = Instant::now() + FIRST.min(screen.length);
    loop {
        terminal.draw(|frame| draw::draw(frame, &mut screen))?;
        loop {
            let now = Instant::now();
            if ended.load(Ordering::Relaxed) || args.until.is_some_and(|until| now >= until) {
                return Ok(());
            }
            if now >= due {
                screen.step(feed.next());
                // What was late is not made up for.
                due = (due + screen.length).max(Instant::now());
                break;
            }
            if event::poll(due.saturating_duration_since(now).min(NAP))? {
                match event::read()? {
                    Event::Key(key) if key.kind == KeyEventKind::Release => continue,
                    Event::Key(key) => {
                        let length = screen.length;
                        if screen.key(key) {
                            return Ok(());
                        }
                        if screen.length != length {
                            due = Instant::now() + screen.length;
                        }
                        break;
                    }
                    Event::Resize(..) => break,
                    _ => {}
                }
            }
        }
    }
}
