// SPDX-License-Identifier: PostgreSQL
//! How keys and clicks change the state.

use std::collections::HashSet;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, MouseEvent};

use super::{Ask, Mode, Screen};
use crate::args::SPEEDS;
use crate::help::HELP;
use crate::moment;
use crate::orders;
use crate::saved::INTERVALS;
use crate::views::PANES;
use crate::View;
use terminal::{action, mouse_action, Action};
use terminal::{edit, Edit};
use view::rows::Open;

impl Screen {
    /// Handles a key. Returns what the owner has to do.
    pub fn key(&mut self, key: KeyEvent) -> Option<Ask> {
        self.notice = None;
        match std::mem::replace(&mut self.mode, Mode::Normal) {
            Mode::Help(line) => return self.key_in_help(line, key),
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
                    _ => {
                        self.notice = Some(format!(
                            "\"{typed}\" is not a length between 0.1 and 3600 seconds"
                        ))
                    }
                },
                Edit::Dropped => {}
            },
            Mode::Time(typed) => match edit(typed, key) {
                Edit::Going(typed) => self.mode = Mode::Time(typed),
                Edit::Done(typed) => return self.jump(&typed),
                Edit::Dropped => {}
            },
            Mode::Question(request) => {
                return self.answered(request, matches!(key.code, KeyCode::Char('y' | 'Y')));
            }
            Mode::Normal => return action(key).and_then(|action| self.act(action)),
        }
        None
    }

    fn key_in_help(&mut self, line: usize, key: KeyEvent) -> Option<Ask> {
        let quits = action(key) == Some(Action::Quit) && key.code != KeyCode::Char('q');
        let to = match action(key) {
            Some(Action::Move(by)) => line.saturating_add_signed(by),
            Some(Action::Page(by)) => line.saturating_add_signed(by * self.page.max(1) as isize),
            _ => return quits.then_some(Ask::Quit),
        };
        self.mode = Mode::Help(to.min(HELP.lines().count()));
        None
    }

    /// Handles a mouse event. Returns what the owner has to do.
    pub fn mouse(&mut self, event: MouseEvent) -> Option<Ask> {
        // A question can only be answered by a key.
        let answers = !matches!(self.mode, Mode::Question(_));
        let action = mouse_action(&self.spots, event).filter(|_| answers)?;
        self.notice = None;
        if let Mode::Help(line) = self.mode {
            if let Action::Move(by) = action {
                self.mode = Mode::Help(line.saturating_add_signed(by).min(HELP.lines().count()));
            }
            return None;
        }
        self.act(action)
    }

    /// Handles an action. Returns what the owner has to do.
    pub fn act(&mut self, action: Action) -> Option<Ask> {
        let turn =
            |at: usize, by: isize, n: usize| (at as isize + by).rem_euclid(n as isize) as usize;
        match action {
            Action::Quit => return Some(Ask::Quit),
            Action::Export(form) => return Some(Ask::Export(form)),
            Action::Save => return Some(Ask::Save),
            Action::Mouse => return Some(Ask::Mouse),
            Action::Session(deed) => self.ask(deed),
            Action::Trace => return self.ask_for_trace(),
            Action::Pane(pane) => self.show(pane),
            Action::NextPane(by) => self.show(turn(self.pane, by, PANES.len())),
            Action::Move(by) => self.cursor = self.cursor.saturating_add_signed(by),
            Action::Page(by) => {
                let by = by * self.page.max(1) as isize;
                self.cursor = self.cursor.saturating_add_signed(by);
            }
            Action::Point(row) if row == self.cursor => self.toggle(),
            Action::Point(row) => self.cursor = row,
            Action::Toggle => self.toggle(),
            Action::ToggleAll => {
                self.wish.open = match self.wish.open {
                    Open::All => Open::These(HashSet::new()),
                    Open::These(_) => Open::All,
                }
            }
            Action::Sort(by) => self.wish.sort = orders::next(self.view(), &self.wish.sort, by),
            Action::Order(sort) if sort == self.wish.sort => {
                self.wish.reverse = !self.wish.reverse;
            }
            Action::Order(sort) => (self.wish.sort, self.wish.reverse) = (sort, false),
            Action::Reverse => self.wish.reverse = !self.wish.reverse,
            Action::Filter => self.mode = Mode::Filter(self.wish.filter.clone()),
            Action::Clear if self.trace.is_some() => self.leave_trace(),
            Action::Clear if self.statement.is_some() => self.leave_statement(),
            Action::Clear if self.session.is_some() => self.leave_session(),
            Action::Clear => self.wish.filter.clear(),
            Action::Interval => self.mode = Mode::Interval(String::new()),
            Action::Idle => self.wish.idle = !self.wish.idle,
            Action::Pause => self.pause(),
            Action::Live if self.play.is_some() => return Some(Ask::Seek(f64::INFINITY)),
            Action::Live => self.history.live(),
            Action::Step(by) => {
                let beyond = self.history.step(by);
                return (beyond != 0).then_some(Ask::Further(beyond));
            }
            Action::Jump => self.mode = Mode::Time(String::new()),
            Action::Speed(by) => self.speed(by),
            Action::Help => self.mode = Mode::Help(0),
        }
        None
    }

    fn pause(&mut self) {
        match &mut self.play {
            Some(play) => play.on = !play.on,
            None if self.history.is_live() => self.history.hold(),
            None => self.history.live(),
        }
    }

    fn speed(&mut self, by: i32) {
        match &mut self.play {
            Some(play) => {
                play.speed = (play.speed * 2f64.powi(by)).clamp(*SPEEDS.start(), *SPEEDS.end());
            }
            None => {
                let notice =
                    "+ and - work only in a replay (--replay); d sets the length of an interval";
                self.notice = Some(notice.to_string());
            }
        }
    }

    /// Goes to a time that the user typed.
    fn jump(&mut self, typed: &str) -> Option<Ask> {
        let position = self.history.position()?;
        // A recording may cover several days: there, a time of day is on the day that is shown.
        let last = match self.play {
            Some(_) => f64::INFINITY,
            None => position.time + position.ago_seconds,
        };
        match moment::parse(typed, position.time, last, &self.zone) {
            Ok(time) if self.history.seek(time) => None,
            Ok(time) => Some(Ask::Seek(time)),
            Err(problem) => {
                self.notice = Some(problem);
                None
            }
        }
    }

    fn show(&mut self, pane: usize) {
        self.pane = pane;
        self.cursor = 0;
        self.top = 0;
        self.statement = None;
        self.session = None;
        self.trace = None;
    }

    /// Goes back to the table, with the cursor on the statement if it is still there.
    fn leave_statement(&mut self) {
        let key = self.statement.take();
        let statements = self.reading().and_then(|reading| reading.statements.as_ref());
        let name = key.and_then(|key| Some(statements?.row(&key)?.name()));
        let at =
            self.table().and_then(|t| t.rows.iter().position(|r| Some(&r.key) == name.as_ref()));
        self.cursor = at.unwrap_or(0);
        self.top = 0;
    }

    fn toggle(&mut self) {
        if self.trace.is_some() {
            return self.leave_trace();
        }
        if self.statement.is_some() {
            return self.leave_statement();
        }
        if self.session.is_some() {
            return self.leave_session();
        }
        if self.open_session() {
            return;
        }
        if self.view() == View::Io {
            // A page has no cursor: all its rows open together.
            self.act(Action::ToggleAll);
            return;
        }
        let Some(table) = self.table() else { return };
        let Some(row) = table.rows.get(self.cursor).filter(|r| r.branches) else { return };
        if self.view() == View::Statements {
            let statements = self.reading().and_then(|reading| reading.statements.as_ref());
            let rows = statements.map_or(&[][..], |statements| &statements.rows);
            self.statement = rows
                .iter()
                .find(|statement| statement.name() == row.key)
                .map(|statement| statement.key);
            (self.cursor, self.top) = (0, 0);
            return;
        }
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
