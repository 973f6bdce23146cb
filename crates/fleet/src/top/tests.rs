// SPDX-License-Identifier: PostgreSQL
//! Keys and results, and what is drawn afterwards.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::backend::TestBackend;
use view::table::{Column, Row, Unit};

use super::draw::draw;
use super::*;
use crate::doctor::{self, HostDiagnoses};
use diagnose::{Confidence, Diagnoses, Diagnosis, Kind, Rule};

const INTERVAL: Duration = Duration::from_secs(30);

fn screen() -> FleetScreen {
    let look = Look { color: false, ascii: true };
    let mut screen = FleetScreen::new(HostFilter::default(), "duckdb".into(), INTERVAL, look);
    screen.zone = jiff::tz::TimeZone::UTC;
    screen
}

/// The index of the pane with which it begins.
const LOAD: usize = 2;

fn answer(table: Table) -> Option<Result<FleetQueryResult<Table>, Failure>> {
    Some(Ok(FleetQueryResult { value: table, window: (0.0, 900.0), seconds: 0.25 }))
}

fn failure() -> Option<Result<FleetQueryResult<Table>, Failure>> {
    Some(Err(Failure { time: 901.0, text: "duckdb: out of memory".into() }))
}

fn load() -> Table {
    let columns = vec![
        Column::new("cluster", "CLUSTER", Unit::Id),
        Column::new("host", "HOST", Unit::Id),
        Column::new("activity", "ACTIVITY", Unit::Id),
        Column::new("sessions", "SESSIONS", Unit::Sessions),
    ];
    let row = |host: &str, activity: &str, sessions: f64| {
        Row::new("", vec!["shop".into(), host.into(), activity.into(), sessions.into()])
    };
    Table::from_rows(
        columns,
        vec![row("db-1", "cpu", 3.0), row("db-2", "LWLock:WALWrite", 1.5), row("db-3", "cpu", 2.0)],
    )
}

fn press(screen: &mut FleetScreen, keys: &str) -> bool {
    let mut goes_on = true;
    for c in keys.chars() {
        let code = match c {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\x1b' => KeyCode::Esc,
            '↓' => KeyCode::Down,
            c => KeyCode::Char(c),
        };
        goes_on = screen.key(KeyEvent::new(code, KeyModifiers::NONE));
    }
    goes_on
}

fn drawn(screen: &mut FleetScreen, width: u16, height: u16) -> String {
    let mut terminal = ratatui::Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, screen, Instant::now())).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y| -> String { (0..width).map(|x| buffer[(x, y)].symbol()).collect() };
    (0..height).map(|y| line(y).trim_end().to_string() + "\n").collect()
}

/// With a result about the load.
fn answered() -> FleetScreen {
    let mut screen = screen();
    let wanted = screen.wanted(Instant::now()).unwrap();
    screen.take(&wanted, answer(load()));
    screen
}

/// The hosts that are drawn, from above.
fn hosts(screen: &mut FleetScreen) -> Vec<String> {
    let seen = drawn(screen, 80, 24);
    let rows = seen.lines().filter(|line| line.starts_with("shop"));
    rows.map(|line| line.split_whitespace().nth(1).unwrap().to_string()).collect()
}

#[test]
fn the_engine_is_asked_about_the_shown_pane_once_an_interval() {
    let mut screen = screen();
    let begin = Instant::now();
    let wanted = screen.wanted(begin).unwrap();
    assert_eq!(wanted, PaneQuery { pane: LOAD, only: HostFilter::default() });
    // One query at a time, even for another pane.
    press(&mut screen, "2");
    assert_eq!(screen.wanted(begin), None);
    assert!(drawn(&mut screen, 80, 24).contains("querying Load"));
    screen.take(&wanted, answer(load()));
    let wanted = screen.wanted(begin).unwrap();
    assert_eq!(PANES[wanted.pane].1, "statements");
    screen.take(&wanted, answer(Table::default()));
    // The first pane has its result, until an interval later.
    press(&mut screen, "1");
    assert_eq!(screen.wanted(begin + INTERVAL / 2), None);
    press(&mut screen, "p");
    assert_eq!(screen.wanted(begin + INTERVAL), None, "paused");
    press(&mut screen, "l");
    assert!(screen.wanted(begin + INTERVAL / 2).is_some(), "l asks at once");
    screen.take(&PaneQuery { pane: LOAD, only: HostFilter::default() }, answer(load()));
    press(&mut screen, "p");
    assert!(screen.wanted(begin + INTERVAL * 2).is_some());
}

#[test]
fn a_click_shows_a_pane_and_opens_a_row() {
    let mut screen = answered();
    assert!(press(&mut screen, "m") && screen.mouse);
    let at = |kind, column, row| MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
    let click = |screen: &mut FleetScreen, word: &str| {
        let seen = drawn(screen, 80, 24);
        let row = seen.lines().position(|line| line.contains(word)).unwrap();
        let line = seen.lines().nth(row).unwrap();
        let column = line[..line.find(word).unwrap()].chars().count() as u16;
        screen.click(at(MouseEventKind::Down(MouseButton::Left), column, row as u16));
    };
    click(&mut screen, "db-3");
    assert_eq!(screen.sight.cursor, 2);
    screen.click(at(MouseEventKind::ScrollUp, 0, 0));
    assert_eq!(screen.sight.cursor, 0);
    click(&mut screen, "db-2");
    click(&mut screen, "db-2");
    assert_eq!(screen.only.host.as_deref(), Some("db-2"));
    click(&mut screen, "Blk");
    assert_eq!(PANES[screen.pane].1, "blocking");
}

#[test]
fn enter_on_a_host_shows_that_host_alone_and_escape_all_of_them() {
    let mut screen = answered();
    drawn(&mut screen, 80, 24);
    press(&mut screen, "↓\n");
    let one = HostFilter { cluster: Some("shop".into()), host: Some("db-2".into()) };
    assert_eq!(screen.only, one);
    let wanted = screen.wanted(Instant::now()).unwrap();
    assert_eq!(wanted.only, one);
    // A result about all hosts arrives too late.
    screen.take(&PaneQuery { pane: LOAD, only: HostFilter::default() }, answer(load()));
    assert!(hosts(&mut screen).is_empty());
    screen.take(&wanted, answer(load()));
    let seen = drawn(&mut screen, 80, 24);
    assert!(
        seen.starts_with("Host db-2 of cluster shop, 1970-01-01 00:00:00 to 00:15:00"),
        "{seen}"
    );
    // Once more: the whole row.
    press(&mut screen, "↓\n");
    let seen = drawn(&mut screen, 80, 24);
    assert!(seen.contains("ACTIVITY  LWLock:WALWrite"), "{seen}");
    press(&mut screen, "\x1b");
    assert_eq!(hosts(&mut screen).len(), 3);
    press(&mut screen, "\x1b");
    assert_eq!(screen.only, HostFilter::default());
    // The selection of the command line is never left.
    press(&mut screen, "\x1b");
    assert_eq!(screen.only, HostFilter::default());
}

#[test]
fn rows_are_ordered_by_the_columns_that_are_drawn_and_filtered() {
    let mut screen = answered();
    assert_eq!(hosts(&mut screen), ["db-1", "db-2", "db-3"]);
    press(&mut screen, "<");
    assert_eq!(hosts(&mut screen), ["db-1", "db-3", "db-2"]);
    assert!(drawn(&mut screen, 80, 24).contains("sort: SESSIONS"));
    press(&mut screen, "r");
    assert_eq!(hosts(&mut screen), ["db-2", "db-3", "db-1"]);
    press(&mut screen, ">");
    assert_eq!(hosts(&mut screen), ["db-1", "db-2", "db-3"]);
    press(&mut screen, "/wAlw");
    assert_eq!(hosts(&mut screen), ["db-2"], "while it is typed");
    press(&mut screen, "\n");
    assert_eq!(hosts(&mut screen), ["db-2"]);
    assert!(drawn(&mut screen, 80, 24).contains("filter \"walw\""));
    press(&mut screen, "/x\n");
    assert!(drawn(&mut screen, 80, 24).contains("no row matches the filter"));
    press(&mut screen, "\x1b");
    assert_eq!(hosts(&mut screen).len(), 3);
}

#[test]
fn a_failure_is_shown_above_the_last_answer() {
    let mut screen = answered();
    press(&mut screen, "l");
    let wanted = screen.wanted(Instant::now()).unwrap();
    screen.take(&wanted, failure());
    assert!(drawn(&mut screen, 80, 24).contains("Could not refresh: duckdb: out of memory"));
    assert_eq!(hosts(&mut screen).len(), 3);
    press(&mut screen, "3");
    let wanted = screen.wanted(Instant::now()).unwrap();
    screen.take(&wanted, failure());
    assert!(drawn(&mut screen, 80, 24).contains("Query failed: duckdb: out of memory"));
}

#[test]
fn keys_show_every_pane_and_quit_and_every_size_can_be_drawn() {
    let mut screen = answered();
    for (at, (tab, _)) in PANES.into_iter().enumerate() {
        press(&mut screen, &tab.key.to_string());
        assert_eq!(screen.pane, at);
        for (width, height) in [(1, 1), (20, 10), (40, 8), (80, 24), (300, 60)] {
            drawn(&mut screen, width, height);
        }
    }
    press(&mut screen, "\t");
    assert_eq!(screen.pane, 0);
    assert!(press(&mut screen, "h"));
    assert!(drawn(&mut screen, 80, 24).contains("tally fleet top: "));
    assert!(press(&mut screen, "q"), "leaves the help page");
    assert!(!press(&mut screen, "q"));
}

#[test]
fn every_query_has_a_pane() {
    for query in fleet_sql::QUERIES {
        assert!(PANES.iter().any(|(_, name)| *name == query.name), "{}", query.name);
        let mut screen = screen();
        screen.show(query.name);
        assert_eq!(PANES[screen.pane].1, query.name);
    }
    let keys: String = PANES.iter().map(|(tab, _)| tab.key).collect();
    assert_eq!(keys, "d0123456789e");
}

/// Three hosts: one with a problem, one that could not be read, one that is healthy.
fn diagnosed() -> FleetScreen {
    let found = |name: &str, failure: Option<&str>, found: Diagnoses| HostDiagnoses {
        cluster: "shop".into(),
        host: name.into(),
        failure: failure.map(str::to_owned),
        found,
    };
    let problem = Diagnosis {
        rule: Rule::Locks,
        kind: Kind::Problem,
        text:
            "3 sessions wait for session 4304 (forgetful, joe@shop), idle in transaction for 41 s."
                .into(),
        seconds: 30.0,
        share: Some(0.9),
        evidence: vec!["Its last statement: update counter set n = $1".into()],
        advice: "If its client has abandoned it, end it: SELECT pg_terminate_backend(4304).".into(),
        confidence: Confidence::Certain,
        section: "locks",
        consequence_of: None,
    };
    let limit = Diagnosis {
        rule: Rule::Processors,
        kind: Kind::Limit,
        text: "on average, 3.10 sessions compete for 2 processors.".into(),
        ..problem.clone()
    };
    let (mut healthy, mut sick) = (Diagnoses::default(), Diagnoses::default());
    (healthy.healthy, healthy.limits) = (Some(true), vec![limit]);
    (sick.healthy, sick.diagnoses) = (Some(false), vec![problem]);
    sick.diagnosed_seconds = 60.0;
    let hosts = [
        found("db-1", None, healthy),
        found("db-2", Some("db-2 has no recording of this time"), Diagnoses::default()),
        found("db-3", None, sick),
    ];
    let mut screen = screen();
    screen.show(DOCTOR);
    let wanted = screen.wanted(Instant::now()).unwrap();
    screen.take(&wanted, answer(doctor::table(&hosts)));
    screen
}

#[test]
fn the_first_screen_says_which_host_has_what_and_enter_what_to_do() {
    let mut screen = diagnosed();
    let seen = drawn(&mut screen, 80, 24);
    let words: Vec<&str> = seen.split_whitespace().collect();
    let words = words.join(" ");
    assert!(words.contains("idle in transaction for 41 s."), "nothing is cut: {seen}");
    assert!(seen.contains("problems on 1 of 3 hosts"), "{seen}");
    press(&mut screen, "\n");
    let seen = drawn(&mut screen, 80, 24);
    assert!(seen.contains("pg_terminate_backend(4304)"), "{seen}");
    assert!(seen.contains("update counter set n = $1"), "{seen}");
    press(&mut screen, "\x1b");
    for (width, height) in [(1, 1), (20, 10), (40, 8), (300, 60)] {
        drawn(&mut screen, width, height);
    }
}

#[test]
fn a_diagnosis_that_was_given_up_is_asked_for_again() {
    let mut screen = screen();
    screen.show(DOCTOR);
    let now = Instant::now();
    let wanted = screen.wanted(now).unwrap();
    press(&mut screen, "1");
    screen.take(&wanted, None);
    assert_eq!(screen.wanted(now).map(|wanted| wanted.pane), Some(LOAD));
    screen.take(&PaneQuery { pane: LOAD, only: HostFilter::default() }, answer(load()));
    press(&mut screen, "d");
    assert_eq!(screen.wanted(now), Some(wanted));
}

#[test]
fn the_screen_on_eighty_columns() {
    insta::assert_snapshot!(drawn(&mut answered(), 80, 12));
}
