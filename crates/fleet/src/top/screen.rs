// SPDX-License-Identifier: PostgreSQL
//! The state of `tally fleet top`, and how keys and results change it. It uses no terminal and no engine: its
//! owner asks which query the screen needs, and brings the result.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, MouseEvent};
use fleet_sql::HostFilter;
use jiff::tz::TimeZone;
use report::fleet::{Failure, FleetQueryResult, Question};
use view::table::{Cell, Row, Table};

use super::help::HELP;
use super::rows::{chosen, Order};
use terminal::{action, Action};
use terminal::{edit, Edit};
use terminal::{mouse_action, Look, Spots, Tab, Viewport};

const fn tab(key: char, name: &'static str, short: &'static str) -> Tab {
    Tab { key, name, short }
}

/// Instead of a query: diagnoses of the recordings.
pub const DOCTOR: &str = "doctor";
/// The key of its pane.
const DOCTOR_KEY: char = 'd';
/// The key of the pane behind the ten with digits.
const HEALTH_KEY: char = 'e';
/// The pane with which the screen begins if there are no recordings to diagnose.
const LOAD: usize = 2;

/// The panes by their keys, each with its query.
pub const PANES: [(Tab, &str); 12] = [
    (tab(DOCTOR_KEY, "Doctor", "Doc"), DOCTOR),
    (tab('0', "Hosts", "Host"), "hosts"),
    (tab('1', "Load", "Load"), "load"),
    (tab('2', "Statements", "Stm"), "statements"),
    (tab('3', "Regressions", "Reg"), "regressions"),
    (tab('4', "Outliers", "Out"), "outliers"),
    (tab('5', "Blocking", "Blk"), "blocking"),
    (tab('6', "Checkpoints", "Ckpt"), "checkpoints"),
    (tab('7', "P99", "P99"), "p99"),
    (tab('8', "Capacity", "Cap"), "capacity"),
    (tab('9', "Waits", "Wait"), "waits"),
    (tab(HEALTH_KEY, "Health", "Hlth"), "health"),
];

/// What keys act on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mode {
    /// The panes.
    Normal,
    /// A filter being typed.
    Filter(String),
    /// The help page, and its first visible line.
    Help(usize),
}

/// The query to run next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaneQuery {
    /// The pane that it is for.
    pub pane: usize,
    /// The selected hosts.
    pub only: HostFilter,
}

/// The state of a pane.
#[derive(Debug)]
struct Pane {
    known: Question<Table>,
    order: Order,
    /// When its query was last run; `None` if it should be run now.
    asked: Option<Instant>,
}

/// Everything that is drawn.
#[derive(Debug)]
pub struct FleetScreen {
    whole: HostFilter,
    /// The selected hosts.
    pub only: HostFilter,
    /// Index into `PANES`.
    pub pane: usize,
    panes: Vec<Pane>,
    /// Only rows with this text are shown; in lower case.
    pub filter: String,
    /// The visible rows.
    pub sight: Viewport,
    /// Number of rows drawn last time.
    pub page: usize,
    /// The columns that were drawn last time.
    pub columns: Vec<usize>,
    /// A row that is shown alone.
    pub opened: Option<Row>,
    /// What keys act on.
    pub mode: Mode,
    /// The query that is running, and since when.
    pub asking: Option<(PaneQuery, Instant)>,
    /// Whether refreshing is paused.
    pub paused: bool,
    /// How often to run the query.
    pub interval: Duration,
    /// The engine's name.
    pub engine: String,
    /// What the terminal can show.
    pub look: Look,
    /// Whether the mouse is on.
    pub mouse: bool,
    /// What was drawn where.
    pub spots: Spots,
    /// Time zone for times of day.
    pub zone: TimeZone,
}

impl FleetScreen {
    /// A new screen, before any query.
    pub fn new(only: HostFilter, engine: String, interval: Duration, look: Look) -> FleetScreen {
        FleetScreen {
            whole: only.clone(),
            only,
            pane: LOAD,
            panes: PANES.iter().map(|(_, name)| Pane::new(name)).collect(),
            filter: String::new(),
            sight: Viewport::default(),
            page: 1,
            columns: Vec::new(),
            opened: None,
            mode: Mode::Normal,
            asking: None,
            paused: false,
            interval,
            engine,
            look,
            mouse: false,
            spots: Spots::default(),
            zone: TimeZone::system(),
        }
    }

    /// Shows the pane of this query.
    pub fn show(&mut self, query: &str) {
        self.pane = PANES.iter().position(|(_, name)| *name == query).unwrap_or(self.pane);
    }

    /// Whether the current pane has sentences, which are wrapped and not cut.
    pub fn is_doctor(&self) -> bool {
        PANES[self.pane].1 == DOCTOR
    }

    /// The query to run now; from now on it counts as running.
    pub fn wanted(&mut self, now: Instant) -> Option<PaneQuery> {
        let pane = &mut self.panes[self.pane];
        let due = pane.asked.is_none_or(|asked| !self.paused && now >= asked + self.interval);
        if self.asking.is_some() || !due {
            return None;
        }
        pane.asked = Some(now);
        let wanted = PaneQuery { pane: self.pane, only: self.only.clone() };
        self.asking = Some((wanted.clone(), now));
        Some(wanted)
    }

    /// Stores the result of a query, or its error; `None`: it was given up because another pane is shown.
    pub fn take(
        &mut self,
        of: &PaneQuery,
        result: Option<Result<FleetQueryResult<Table>, Failure>>,
    ) {
        self.asking = None;
        let Some(result) = result else {
            self.panes[of.pane].asked = None;
            return;
        };
        if of.only == self.only {
            self.panes[of.pane].known.take(result);
        }
    }

    /// The state of the current pane.
    pub fn known(&self) -> &Question<Table> {
        &self.panes[self.pane].known
    }

    /// The order of the current pane.
    pub fn order(&self) -> Order {
        self.panes[self.pane].order
    }

    /// The filter, even while it is being typed.
    pub fn filter(&self) -> String {
        match &self.mode {
            Mode::Filter(typed) => typed.to_lowercase(),
            _ => self.filter.clone(),
        }
    }

    /// The rows of the current pane, filtered and sorted.
    pub fn table(&self) -> Option<Table> {
        let table = &self.known().answer.as_ref()?.value;
        let rows = chosen(table, self.order(), &self.filter());
        let rows = rows.into_iter().map(|at| table.rows[at].clone()).collect();
        Some(Table { rows, ..table.clone() })
    }

    /// Handles a key; false: the user quits.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        match std::mem::replace(&mut self.mode, Mode::Normal) {
            Mode::Filter(typed) => match edit(typed, key) {
                Edit::Going(typed) => {
                    self.sight = Viewport::default();
                    self.mode = Mode::Filter(typed);
                }
                Edit::Done(typed) => self.filter = typed.to_lowercase(),
                Edit::Dropped => {}
            },
            Mode::Help(line) => {
                let to = match action(key) {
                    Some(Action::Move(by)) => line.saturating_add_signed(by),
                    Some(Action::Page(by)) => {
                        line.saturating_add_signed(by * self.page.max(1) as isize)
                    }
                    Some(Action::Quit) if key.code != KeyCode::Char('q') => return false,
                    _ => return true,
                };
                self.mode = Mode::Help(to.min(HELP.lines().count()));
            }
            Mode::Normal if key.code == KeyCode::Char(DOCTOR_KEY) => self.turn(0),
            Mode::Normal if key.code == KeyCode::Char(HEALTH_KEY) => self.turn(PANES.len() - 1),
            Mode::Normal => return action(key).is_none_or(|action| self.act(action)),
        }
        true
    }

    /// Handles a mouse event.
    pub fn click(&mut self, event: MouseEvent) {
        let Some(action) = mouse_action(&self.spots, event) else { return };
        match (&self.mode, action) {
            (Mode::Help(line), Action::Move(by)) => {
                let to = line.saturating_add_signed(by);
                self.mode = Mode::Help(to.min(HELP.lines().count()));
            }
            // The panes are numbered as they were drawn.
            (Mode::Normal, Action::Pane(at)) => self.turn(at),
            (Mode::Normal, Action::Point(row)) if self.sight.cursor == row => self.enter(),
            (Mode::Normal, Action::Point(row)) => self.sight.cursor = row,
            (Mode::Normal, action) => {
                self.act(action);
            }
            _ => {}
        }
    }

    fn act(&mut self, action: Action) -> bool {
        let cursor = &mut self.sight.cursor;
        match action {
            Action::Quit => return false,
            Action::Pane(digit) if digit + 1 < PANES.len() => self.turn(digit + 1),
            Action::NextPane(by) => {
                let n = PANES.len() as isize;
                self.turn((self.pane as isize + by).rem_euclid(n) as usize);
            }
            Action::Move(by) => *cursor = cursor.saturating_add_signed(by),
            Action::Page(by) => {
                *cursor = cursor.saturating_add_signed(by * self.page.max(1) as isize);
            }
            Action::Toggle => self.enter(),
            Action::Sort(by) => {
                let order = self.order().next(&self.columns, by);
                self.panes[self.pane].order = order;
            }
            Action::Reverse => {
                let order = &mut self.panes[self.pane].order;
                order.reverse = !order.reverse;
            }
            Action::Filter => self.mode = Mode::Filter(self.filter.clone()),
            Action::Clear => self.back(),
            Action::Mouse => self.mouse = !self.mouse,
            Action::Pause => self.paused = !self.paused,
            Action::Live => self.panes[self.pane].asked = None,
            Action::Help => self.mode = Mode::Help(0),
            _ => {}
        }
        true
    }

    fn turn(&mut self, pane: usize) {
        self.pane = pane;
        self.opened = None;
        self.sight = Viewport::default();
        self.columns = Vec::new();
    }

    /// Opens the row: a host restricts the view to that host, another row is shown in full.
    fn enter(&mut self) {
        if self.opened.take().is_some() {
            return;
        }
        let Some(table) = self.table() else { return };
        let Some(row) = table.rows.get(self.sight.cursor) else { return };
        // What shows a problem, and what to do about it, is asked for first.
        match host(&table, row, &self.only).filter(|_| !self.is_doctor()) {
            Some(only) => self.narrow(only),
            None => self.opened = Some(row.clone()),
        }
    }

    fn narrow(&mut self, only: HostFilter) {
        self.only = only;
        for (pane, (_, name)) in self.panes.iter_mut().zip(PANES) {
            *pane = Pane { order: pane.order, ..Pane::new(name) };
        }
        self.turn(self.pane);
    }

    /// Leaves what was opened last: a row, a filter, a host.
    fn back(&mut self) {
        if self.opened.take().is_some() {
            return;
        }
        if !self.filter.is_empty() {
            self.filter.clear();
        } else if self.only != self.whole {
            self.narrow(self.whole.clone());
        }
    }
}

impl Pane {
    fn new(name: &'static str) -> Pane {
        Pane { known: Question::new(name), order: Order::default(), asked: None }
    }
}

/// The host of a row, unless the view is restricted to it already.
fn host(table: &Table, row: &Row, only: &HostFilter) -> Option<HostFilter> {
    let value = |key: &str| {
        let at = table.columns.iter().position(|column| column.key == key)?;
        row.cells.get(at).map(Cell::exact).filter(|value| !value.is_empty())
    };
    let host = Some(value("host")?);
    let of_row = HostFilter { cluster: value("cluster").or_else(|| only.cluster.clone()), host };
    (of_row != *only).then_some(of_row)
}
