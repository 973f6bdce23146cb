// SPDX-License-Identifier: PostgreSQL
//! The full-screen view: its state, its keys and its loop.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind};
use segment::StatementKey;

use super::draw;
use super::feed::{Feed, Reading, Step};
use super::keys::{action, Action};
use super::NAP;
use crate::cli::{Sort, TopArgs, View};
use crate::error::Error;
use crate::model::panes::{Open, Wish};
use crate::model::statements::{page, Section};
use crate::model::table::{speaks_utf8, Table};

/// The first interval is short, so that there is soon something to see.
const FIRST: Duration = Duration::from_millis(500);
/// The shortest and the longest interval that can be typed, seconds.
const INTERVALS: std::ops::RangeInclusive<f64> = 0.1..=3600.0;

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

/// The orders, in order.
const SORTS: [Sort; 5] = [Sort::Time, Sort::Count, Sort::Mean, Sort::Max, Sort::Name];
/// And those of statements.
const STATEMENT_SORTS: [Sort; 13] = [
    Sort::Time,
    Sort::Count,
    Sort::Mean,
    Sort::P99,
    Sort::Max,
    Sort::Rows,
    Sort::Cpu,
    Sort::Io,
    Sort::Lock,
    Sort::Lwlock,
    Sort::Client,
    Sort::Ipc,
    Sort::Name,
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
    /// The page of help.
    Help,
}

/// Everything that is drawn.
#[derive(Debug)]
pub struct Screen {
    /// The last interval; `None` before the first.
    pub reading: Option<Box<Reading>>,
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
    /// The statement whose page is shown in place of the pane.
    pub statement: Option<StatementKey>,
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
            reading: None,
            pane: PANES.iter().position(|p| p.1 == view).unwrap_or(0),
            wish: super::wish(args, Open::These(HashSet::new())),
            cursor: 0,
            top: 0,
            page: 1,
            statement: None,
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
        let reading = self.reading.as_ref()?;
        Some(super::table(self.view(), reading, &self.wish()))
    }

    /// With the filter that is being typed.
    fn wish(&self) -> Wish {
        let mut wish = self.wish.clone();
        if let Mode::Filter(typed) = &self.mode {
            wish.filter = typed.to_lowercase();
        }
        wish
    }

    fn view(&self) -> View {
        PANES[self.pane].1
    }

    /// What is to be said of the pane that is shown.
    pub fn note(&self) -> Option<String> {
        self.reading.as_ref().and_then(|reading| super::remark(self.view(), reading))
    }

    /// The page that is shown in place of a table, if one is.
    pub fn sections(&self) -> Option<Vec<Section>> {
        let reading = self.reading.as_ref()?;
        match self.statement {
            Some(key) => self.statement_page(&key),
            None => super::page(self.view(), reading, &self.wish()),
        }
    }

    /// What a statement did in the interval; if nothing, since the last reset.
    fn statement_page(&self, key: &StatementKey) -> Option<Vec<Section>> {
        let statements = self.reading.as_ref()?.statements.as_ref()?;
        let whole = statements.whole(key);
        Some(page(statements, statements.row(key), whole.as_ref()))
    }

    /// What an interval, or the lack of one, changes.
    fn step(&mut self, step: Step) {
        match step {
            Step::Interval(_) if self.paused => {}
            Step::Interval(reading) => {
                self.reading = Some(reading);
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
                let sorts: &[Sort] = match self.view() {
                    View::Statements => &STATEMENT_SORTS,
                    _ => &SORTS,
                };
                let at = sorts.iter().position(|s| *s == self.wish.sort).unwrap_or(0);
                self.wish.sort = sorts[turn(at, by, sorts.len())].clone();
            }
            Action::Reverse => self.wish.reverse = !self.wish.reverse,
            Action::Filter => self.mode = Mode::Filter(self.wish.filter.clone()),
            Action::Clear if self.statement.is_some() => self.leave_statement(),
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
        self.statement = None;
    }

    /// Back to the table, with the cursor on the statement where it is still there.
    fn leave_statement(&mut self) {
        let key = self.statement.take();
        let statements = self.reading.as_ref().and_then(|reading| reading.statements.as_ref());
        let name = key.and_then(|key| Some(statements?.row(&key)?.name()));
        let at =
            self.table().and_then(|t| t.rows.iter().position(|r| Some(&r.key) == name.as_ref()));
        self.cursor = at.unwrap_or(0);
        self.top = 0;
    }

    fn toggle(&mut self) {
        if self.statement.is_some() {
            return self.leave_statement();
        }
        if self.view() == View::Io {
            // It has no cursor: its rows are opened together.
            self.act(Action::ToggleAll);
            return;
        }
        let Some(table) = self.table() else { return };
        let Some(row) = table.rows.get(self.cursor).filter(|r| r.branches) else { return };
        if self.view() == View::Statements {
            let statements = self.reading.as_ref().and_then(|reading| reading.statements.as_ref());
            let rows = statements.map_or(&[][..], |statements| &statements.rows);
            self.statement = rows.iter().find(|it| it.name() == row.key).map(|it| it.key);
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
                        let view = screen.view();
                        if (super::of_statements(view) && feed.ask_for_statements())
                            || (super::of_io(view) && feed.ask_for_io())
                        {
                            due = Instant::now();
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

#[cfg(test)]
mod tests {
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::KeyModifiers;
    use ratatui::Terminal;

    use super::*;
    use crate::model::sample;

    fn args() -> TopArgs {
        TopArgs {
            target: None,
            interval: Duration::from_secs(1),
            once: false,
            json: false,
            count: None,
            view: None,
            per_second: false,
            sort: Sort::Time,
            reverse: false,
            filter: None,
            idle: false,
            leaders: false,
            no_witness: false,
            until: None,
        }
    }

    fn screen() -> Screen {
        let mut screen = Screen::new(&args(), true);
        screen.ascii = false;
        screen.step(Step::Interval(Box::new(sample::reading())));
        screen
    }

    fn press(screen: &mut Screen, keys: &str) -> bool {
        keys.chars().any(|c| {
            let code = match c {
                '\n' => KeyCode::Enter,
                '\t' => KeyCode::Tab,
                '\x1b' => KeyCode::Esc,
                c => KeyCode::Char(c),
            };
            screen.key(KeyEvent::new(code, KeyModifiers::NONE))
        })
    }

    fn drawn(screen: &mut Screen, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw::draw(frame, screen)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y| -> String { (0..width).map(|x| buffer[(x, y)].symbol()).collect() };
        (0..height).map(|y| line(y).trim_end().to_string() + "\n").collect()
    }

    #[test]
    fn the_ledger_on_a_wide_terminal() {
        let mut screen = screen();
        press(&mut screen, "ie");
        insta::assert_snapshot!(drawn(&mut screen, 150, 30));
    }

    #[test]
    fn the_panes_on_eighty_columns() {
        let mut screen = screen();
        let mut all = String::new();
        for _ in PANES {
            all.push_str(&drawn(&mut screen, 80, 24));
            press(&mut screen, "\t");
        }
        insta::assert_snapshot!(all);
    }

    #[test]
    fn no_size_of_the_terminal_is_too_small() {
        let mut screen = screen();
        screen.message = Some("the server has gone; waiting for it to come back".to_string());
        for mode in ["", "?", "x/wal"] {
            press(&mut screen, mode);
            for (width, height) in [(1, 1), (2, 3), (10, 4), (200, 2), (3, 60)] {
                for _ in PANES {
                    drawn(&mut screen, width, height);
                    screen.act(Action::NextPane(1));
                }
                screen.act(Action::Pane(7));
                screen.act(Action::Toggle);
                drawn(&mut screen, width, height);
            }
        }
    }

    #[test]
    fn nothing_yet_and_nothing_left_are_said() {
        let mut screen = Screen::new(&args(), false);
        assert!(drawn(&mut screen, 80, 24).contains("being measured"));
        screen.step(Step::Gone("the server has gone".to_string()));
        assert!(drawn(&mut screen, 80, 24).contains("the server has gone"));
        screen.step(Step::Attached);
        assert!(drawn(&mut screen, 80, 24).contains("started anew"));
        screen.step(Step::Interval(Box::new(sample::reading())));
        assert!(!drawn(&mut screen, 80, 24).contains("started anew"));
        press(&mut screen, "/nowhere\n");
        assert!(drawn(&mut screen, 80, 24).contains("nothing that contains the filter"));
    }

    #[test]
    fn a_paused_screen_stands_still() {
        let mut screen = screen();
        press(&mut screen, "p");
        let still = drawn(&mut screen, 120, 30);
        assert!(still.contains("PAUSED"));
        let mut later = sample::reading();
        later.interval.commands_handled = 99_999;
        screen.step(Step::Interval(Box::new(later)));
        assert_eq!(drawn(&mut screen, 120, 30), still);
        press(&mut screen, "p");
        assert!(!drawn(&mut screen, 120, 30).contains("PAUSED"));
    }

    #[test]
    fn typing_a_filter_and_an_interval() {
        let mut screen = screen();
        press(&mut screen, "/WalS");
        assert!(drawn(&mut screen, 120, 30).contains("filter: WalS_"));
        assert_eq!(screen.table().unwrap().rows.len(), 1);
        press(&mut screen, "\n");
        assert_eq!(screen.wish.filter, "wals");
        press(&mut screen, "\x1b");
        assert_eq!(screen.table().unwrap().rows.len(), 4);
        press(&mut screen, "d2.5\n");
        assert_eq!(screen.length, Duration::from_millis(2500));
        press(&mut screen, "dnan\n");
        assert_eq!(screen.length, Duration::from_millis(2500));
        assert!(screen.message.is_some());
    }

    #[test]
    fn enter_opens_the_activity_under_the_cursor_and_shuts_it_again() {
        let mut screen = screen();
        assert_eq!(screen.table().unwrap().rows.len(), 4);
        press(&mut screen, "jj\n");
        let table = screen.table().unwrap();
        let names: Vec<&str> = table.rows.iter().map(|r| r.cells[0].as_str()).collect();
        assert_eq!(names[2..5], ["IO:WALSync", "  execute", "  sync"]);
        press(&mut screen, "\n");
        assert_eq!(screen.table().unwrap().rows.len(), 4);
        press(&mut screen, "e");
        assert_eq!(screen.table().unwrap().rows.len(), 8);
        press(&mut screen, "gG");
        drawn(&mut screen, 80, 24);
        assert_eq!(screen.cursor, 7);
    }

    #[test]
    fn enter_shows_one_statement_and_escape_goes_back_to_it() {
        let mut screen = screen();
        press(&mut screen, "8/orders\n\n");
        insta::assert_snapshot!(drawn(&mut screen, 100, 40));
        press(&mut screen, "\x1b");
        assert_eq!(screen.wish.filter, "orders");
        press(&mut screen, "\x1bj\n");
        assert_eq!(screen.statement.map(|key| key.id), Some(4242));
        press(&mut screen, "GG");
        assert!(drawn(&mut screen, 100, 30).contains("temporary files: 1, 4 MB"));
        // In an interval without it there is nothing of it, and it comes back.
        let mut later = sample::reading();
        later.statements.iter_mut().for_each(|it| it.rows.clear());
        screen.step(Step::Interval(Box::new(later)));
        assert!(drawn(&mut screen, 100, 30).contains("not in the table any more"));
        screen.step(Step::Interval(Box::new(sample::reading())));
        press(&mut screen, "\n");
        assert_eq!((screen.statement, screen.cursor), (None, 1));
    }

    #[test]
    fn the_storage_side_is_a_page_that_scrolls_and_opens_as_a_whole() {
        let mut screen = screen();
        press(&mut screen, "9");
        let top = drawn(&mut screen, 100, 24);
        assert!(top.contains("Files") && !top.contains("  extend") && !top.contains("Slow op"));
        press(&mut screen, "\n");
        assert!(drawn(&mut screen, 100, 24).contains("  extend"));
        press(&mut screen, "\n/fsync\n");
        assert!(drawn(&mut screen, 100, 24).contains("none that contains the filter"));
        press(&mut screen, "\x1b");
        screen.key(KeyEvent::new(KeyCode::End, KeyModifiers::NONE));
        let foot = drawn(&mut screen, 100, 24);
        assert!(foot.contains("pg_xact/000C") && !foot.contains("FILES"), "{foot}");
        // Before it is read the rest is there.
        let mut later = sample::reading();
        later.io = None;
        screen.step(Step::Interval(Box::new(later)));
        assert!(drawn(&mut screen, 100, 40).contains("slow operations are being read"));
    }

    #[test]
    fn statements_have_orders_of_their_own() {
        let mut screen = screen();
        press(&mut screen, "8sss");
        assert_eq!(screen.wish.sort, Sort::P99);
        assert!(drawn(&mut screen, 100, 30).contains("order: p99"));
        let ids = |screen: &Screen| -> Vec<String> {
            let rows = screen.table().unwrap().rows.into_iter();
            rows.map(|row| row.key.split(' ').next().unwrap().to_string()).collect()
        };
        assert_eq!(ids(&screen).len(), 3);
        press(&mut screen, "i<<");
        assert_eq!(screen.wish.sort, Sort::Count);
        assert_eq!(ids(&screen)[1], "77");
        screen.wish.sort = Sort::Activity("io:datafileread".to_string());
        assert_eq!(ids(&screen)[0], "4242");
        assert!(drawn(&mut screen, 120, 30).contains("%ACTIVITY"));
    }

    #[test]
    fn q_leaves_but_not_from_a_line_being_typed() {
        let mut screen = screen();
        assert!(!press(&mut screen, "/q"));
        assert!(!press(&mut screen, "\n?q"));
        assert!(press(&mut screen, "q"));
        let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert!(screen.key(control_c));
    }

    #[test]
    fn without_colour_there_is_none() {
        for (color, wanted) in [(true, true), (false, false)] {
            let mut screen = screen();
            screen.color = color;
            let mut terminal = Terminal::new(TestBackend::new(100, 30)).unwrap();
            terminal.draw(|frame| draw::draw(frame, &mut screen)).unwrap();
            let colored = terminal
                .backend()
                .buffer()
                .content()
                .iter()
                .any(|cell| cell.fg != ratatui::style::Color::Reset);
            assert_eq!(colored, wanted);
        }
    }
}
