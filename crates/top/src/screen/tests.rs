// SPDX-License-Identifier: PostgreSQL
//! Keys, clicks and intervals, and what is drawn afterwards.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::backend::TestBackend;
use ratatui::Terminal;

use super::*;
use crate::draw;
use live::backend::{SessionAction, SessionId};
use live::follower::Absent;
use terminal::{Action, Form};
use view::sample;

/// The same as without options.
pub fn args() -> TopArgs {
    TopArgs { no_config: true, ..TopArgs::default() }
}

fn screen() -> Screen {
    let mut screen = Screen::new(&args(), &Saved::default(), true);
    (screen.ascii, screen.zone) = (false, TimeZone::UTC);
    screen.step(Step::Interval(Box::new(sample::reading())));
    press(&mut screen, "1");
    screen
}

/// Presses keys; returns what the last one requests.
pub fn press(screen: &mut Screen, keys: &str) -> Option<Ask> {
    let press = |c| {
        let code = match c {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\x1b' => KeyCode::Esc,
            '→' => KeyCode::Right,
            '←' => KeyCode::Left,
            '↓' => KeyCode::Down,
            '↑' => KeyCode::Up,
            c => KeyCode::Char(c),
        };
        screen.key(KeyEvent::new(code, KeyModifiers::NONE))
    };
    keys.chars().map(press).last().flatten()
}

/// The contents of a terminal of this size.
pub fn drawn(screen: &mut Screen, width: u16, height: u16) -> String {
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
    press(&mut screen, "0");
    for _ in PANES {
        all.push_str(&drawn(&mut screen, 80, 24));
        press(&mut screen, "\t");
    }
    insta::assert_snapshot!(all);
}

#[test]
fn on_eighty_by_twenty_four_the_head_has_four_lines_and_the_panes_have_names() {
    let mut screen = screen();
    let seen = drawn(&mut screen, 80, 24);
    let lines: Vec<&str> = seen.lines().collect();
    assert!(
        lines[0].starts_with("PostgreSQL 15.20") && lines[0].ends_with("level locks"),
        "{seen}"
    );
    assert!(lines[3].starts_with("cpu 0.48 s/s  kernel: on CPU"), "{seen}");
    let names = " 0Diag 1Ledger 2Waits 3Cmds 4Sess 5LWLocks 6Locks 7Funcs 8Stmts 9IO";
    assert!(lines[4].starts_with(names) && lines[4].ends_with("every 1 s"), "{seen}");
    // Lines that say that the figures are incomplete are not cut off.
    let mut reading = sample::reading();
    reading.interval.kernel.unexplained_share = 0.05;
    screen.step(Step::Interval(Box::new(reading)));
    let seen = drawn(&mut screen, 80, 24);
    assert!(seen.contains("unexplained 5.0 % ± 0.4"), "{seen}");
}

#[test]
fn every_size_of_the_terminal_can_be_drawn() {
    let mut screen = screen();
    screen.message = Some("the server has ended; waiting for it to come back".to_string());
    for mode in ["", "?", "x/wal"] {
        press(&mut screen, mode);
        for (width, height) in
            [(1, 1), (2, 3), (20, 10), (40, 8), (41, 9), (500, 8), (40, 100), (200, 2), (3, 60)]
        {
            for _ in PANES {
                drawn(&mut screen, width, height);
                screen.act(Action::NextPane(1));
            }
            screen.act(Action::Pane(8));
            screen.act(Action::Toggle);
            drawn(&mut screen, width, height);
        }
    }
}

#[test]
fn missing_intervals_and_missing_servers_are_reported() {
    let mut screen = Screen::new(&args(), &Saved::default(), false);
    assert!(drawn(&mut screen, 80, 24).contains("measuring the first interval"));
    screen.step(Step::Absent(Absent::Ended));
    assert!(drawn(&mut screen, 80, 24).contains("the server has ended"));
    screen.step(Step::Attached { fresh: true });
    assert!(drawn(&mut screen, 80, 24).contains("was restarted"));
    screen.step(Step::Interval(Box::new(sample::reading())));
    assert!(!drawn(&mut screen, 80, 24).contains("was restarted"));
    press(&mut screen, "1/nowhere\n");
    assert!(drawn(&mut screen, 80, 24).contains("no row matches the filter"));
}

#[test]
fn it_begins_with_what_is_wrong_and_keeps_that_of_past_intervals() {
    let mut screen = Screen::new(&args(), &Saved::default(), false);
    let healthy = |seconds: f64| {
        let mut reading = sample::reading();
        reading.interval.time += seconds;
        reading.interval.ledger.clear();
        reading.interval.sessions.clear();
        reading.interval.kernel = Default::default();
        reading
    };
    screen.step(Step::Interval(Box::new(healthy(0.0))));
    let seen = drawn(&mut screen, 80, 24);
    assert_eq!(screen.view(), View::Diagnoses);
    assert!(seen.contains("The last 1 s.") && seen.contains("Healthy, but at a limit."), "{seen}");
    // Diagnoses of the last seconds, though not of the last interval.
    let mut wrong = healthy(1.0);
    let mut interval = sample::interval();
    interval.interval_seconds = 10.0;
    wrong.recent = Some(Box::new(view::Recent { interval, statements: None }));
    wrong.blocking = Some(sample::blocking());
    wrong.uncovered_processes = Some(3);
    screen.step(Step::Interval(Box::new(wrong)));
    let seen = drawn(&mut screen, 100, 40);
    for text in [
        "The last 10 s. 3 processes of the server are not covered",
        "8 sessions wait for session 4304 (psql, joe@shop), idle in transaction for 41 s.",
        "What to do: If its client has abandoned it, end it:",
    ] {
        assert!(seen.contains(text), "{text}: {seen}");
    }
    assert!(screen.history.shown().unwrap().recent.is_none(), "it is too large to keep");
    screen.step(Step::Interval(Box::new(healthy(2.0))));
    assert!(drawn(&mut screen, 100, 40).contains("Healthy"));
    press(&mut screen, "←");
    assert!(drawn(&mut screen, 100, 40).contains("8 sessions wait for session 4304"));
    screen.key(KeyEvent::new(KeyCode::End, KeyModifiers::NONE));
    assert!(!drawn(&mut screen, 40, 12).contains("The last 10 s"), "it scrolls");
}

/// A screen with an interval in which eight sessions wait for one.
fn blocked() -> Screen {
    let mut screen = screen();
    let reading = view::Reading { blocking: Some(sample::blocking()), ..sample::reading() };
    screen.step(Step::Interval(Box::new(reading)));
    screen
}

#[test]
fn a_line_in_every_pane_names_the_session_that_others_wait_for() {
    let mut screen = blocked();
    for _ in PANES {
        let seen = drawn(&mut screen, 120, 30);
        let first = seen.lines().next().unwrap();
        assert_eq!(
            first,
            "8 sessions wait for session 4304 (psql, joe@shop), idle in transaction for 41 s; \
             longest 41 s"
        );
        press(&mut screen, "\t");
    }
    screen.step(Step::Interval(Box::new(sample::reading())));
    assert!(!drawn(&mut screen, 120, 30).contains("sessions wait for session"));
}

#[test]
fn the_tree_of_those_who_wait_is_above_the_locks() {
    let mut screen = blocked();
    press(&mut screen, "6");
    insta::assert_snapshot!(drawn(&mut screen, 120, 32));
    let low = drawn(&mut screen, 80, 24);
    assert!(low.contains("4304 psql, joe@shop") && low.contains("Waits for locks"), "{low}");
    // Without level locks there are no rows below, and the note says why.
    let mut reading = view::Reading { blocking: Some(sample::blocking()), ..sample::reading() };
    reading.interval.locks_seconds = 0.0;
    reading.interval.locks.clear();
    reading.interval.deadlock_checks.clear();
    reading.interval.spin_delays.clear();
    screen.step(Step::Interval(Box::new(reading)));
    let seen = drawn(&mut screen, 120, 32);
    assert!(
        seen.contains("4304 psql") && seen.contains("lock statistics require level locks"),
        "{seen}"
    );
    screen.key(KeyEvent::new(KeyCode::End, KeyModifiers::NONE));
    assert!(drawn(&mut screen, 80, 12).contains("4317 shop"), "the cursor moves in the tree");
}

/// What the screen requests from its owner, and the question before.
fn asked(screen: &mut Screen, key: &str) -> (String, Option<Ask>) {
    assert_eq!(press(screen, key), None, "not without a question");
    let seen = drawn(screen, 120, 30);
    let question = seen.lines().last().unwrap().to_string();
    (question, press(screen, "y"))
}

/// A screen whose first session is the root of the tree, with accounts.
fn with_root() -> Screen {
    let mut screen = blocked();
    let mut reading = view::Reading { blocking: Some(sample::blocking()), ..sample::reading() };
    let row = reading.interval.sessions.iter_mut().find(|row| row.pid == 4304).unwrap();
    let account = |activity: &str, seconds| segment::interval::SessionAccount {
        phase: "execute".into(),
        activity: activity.into(),
        count: 12,
        seconds,
        idle: false,
    };
    row.accounts = vec![account("cpu", 0.4), account("IO:DataFileRead", 0.35)];
    reading.opened = Some(view::session::Opened {
        id: SessionId::from_row(row),
        accounts: vec![account("cpu", 400.0), account("IO:DataFileRead", 90.0)],
        queryid: Some(-7),
        query: Some("UPDATE accounts SET balance = 0".into()),
    });
    screen.step(Step::Interval(Box::new(reading)));
    screen
}

#[test]
fn enter_opens_the_page_of_a_session_and_esc_leaves_it() {
    let mut screen = with_root();
    // From the tree of pane Locks.
    press(&mut screen, "6\n");
    assert_eq!(screen.session.map(|session| session.pid), Some(4304));
    insta::assert_snapshot!(drawn(&mut screen, 100, 40));
    // Keys act on this session as on the session under the cursor.
    let (question, _) = asked(&mut screen, "k");
    assert!(question.starts_with("Terminate session 4304 ("), "{question}");
    press(&mut screen, "n\x1b");
    assert_eq!((screen.session, screen.view()), (None, View::Locks));
    // From pane Sessions, and back to its row.
    press(&mut screen, "4↓\n");
    let second = screen.session.unwrap();
    assert!(drawn(&mut screen, 100, 40).contains(&format!("Session {}", second.pid)));
    press(&mut screen, "\n");
    assert_eq!((screen.session, screen.cursor), (None, 1));
    // It has ended; another pane closes the page.
    press(&mut screen, "\n");
    let mut later = sample::reading();
    later.interval.sessions.clear();
    screen.step(Step::Interval(Box::new(later)));
    assert!(drawn(&mut screen, 100, 40).contains("this session did not exist in this interval"));
    press(&mut screen, "1");
    assert_eq!(screen.session, None);
}

#[test]
fn a_session_is_cancelled_or_terminated_after_a_question() {
    let mut screen = blocked();
    press(&mut screen, "4");
    let row = screen.reading().unwrap().interval.sessions[0].clone();
    assert!(drawn(&mut screen, 120, 30).contains("c cancel  k terminate"));
    let (question, ask) = asked(&mut screen, "c");
    let name = view::blocking::session_name(&row);
    assert_eq!(question, format!("Cancel the statement of {name}? y/n"));
    let Some(Ask::Session(request)) = ask else { panic!("{ask:?}") };
    let session = SessionId::from_row(&row);
    assert_eq!((request.deed, request.session), (SessionAction::Cancel, session));
    // Any key but y cancels it.
    for key in ["n", "\x1b", "\n", "c"] {
        press(&mut screen, "k");
        assert_eq!(press(&mut screen, key), None);
        assert!(screen.notice.as_ref().unwrap().contains("did not terminate"));
        assert_eq!(screen.mode, Mode::Normal);
    }
    // The root of the tree, which executes nothing.
    press(&mut screen, "6");
    press(&mut screen, "c");
    assert!(screen.notice.as_ref().unwrap().contains("k terminates it"), "{:?}", screen.notice);
    let (question, ask) = asked(&mut screen, "k");
    assert!(question.starts_with("Terminate session 4304 ("), "{question}");
    assert!(matches!(ask, Some(Ask::Session(request)) if request.session.pid == 4304));
    press(&mut screen, "↓k");
    assert!(screen.notice.as_ref().unwrap().contains("not measured"), "4310 is made up");
    // Where there are no sessions.
    press(&mut screen, "1k");
    assert!(screen.notice.as_ref().unwrap().contains("pane Sessions"));
    press(&mut screen, "4");
    screen.play = Some(Play::new("r".into(), 1, 1.0));
    press(&mut screen, "k");
    assert!(screen.notice.as_ref().unwrap().contains("recording"));
}

#[test]
fn a_trace_of_a_session_replaces_the_pane_until_esc() {
    let mut screen = blocked();
    press(&mut screen, "1T");
    assert!(screen.notice.as_ref().unwrap().contains("pane Sessions"));
    press(&mut screen, "4");
    let row = screen.reading().unwrap().interval.sessions[0].clone();
    let name = view::blocking::session_name(&row);
    assert_eq!(press(&mut screen, "T"), Some(Ask::Trace { pid: row.pid, name }));
    screen.show_trace((1..=100).map(|n| format!("  line {n} of the trace")).collect());
    let shown = drawn(&mut screen, 80, 24);
    assert!(shown.contains("  line 1 of the trace") && !shown.contains("line 90 "), "{shown}");
    // It stays while intervals come, and scrolls.
    later(&mut screen, 1.0, 1);
    press(&mut screen, "G");
    assert!(drawn(&mut screen, 80, 24).contains("line 100 of the trace"));
    press(&mut screen, "\x1b");
    assert!(!drawn(&mut screen, 80, 24).contains("of the trace"));
    assert_eq!(screen.view(), View::Sessions);
}

/// Another interval, this many seconds after the first, with this many commands.
fn later(screen: &mut Screen, seconds: f64, commands: u64) {
    let mut reading = Box::new(sample::reading());
    reading.interval.time += seconds;
    reading.interval.commands_handled = commands;
    screen.step(Step::Interval(reading));
}

#[test]
fn a_paused_screen_does_not_change_and_new_intervals_are_kept() {
    let mut screen = screen();
    press(&mut screen, "p");
    let still = drawn(&mut screen, 120, 30);
    assert!(still.contains("PAUSED at 22:13:20"), "{still}");
    later(&mut screen, 1.0, 99_900);
    let past = drawn(&mut screen, 120, 30);
    assert!(past.contains("PAST 22:13:20, 1 s ago: interval 1 of 2;"), "{past}");
    let figures = |text: &str| text.lines().skip(1).map(String::from).collect::<Vec<_>>();
    let of_table = |text: &str| figures(text).split_off(6);
    assert_eq!(of_table(&past), of_table(&still));
    press(&mut screen, "→");
    let newest = drawn(&mut screen, 120, 30);
    assert!(newest.contains("PAUSED at 22:13:21") && newest.contains("99.9k/s"), "{newest}");
    press(&mut screen, "p");
    let live = drawn(&mut screen, 120, 30);
    assert!(!live.contains("PAUSED") && !live.contains("PAST"));
}

#[test]
fn the_user_steps_through_past_intervals_and_back() {
    let mut screen = screen();
    (1..40).for_each(|n| later(&mut screen, f64::from(n), 100 * n as u64));
    press(&mut screen, "←←,");
    assert!(drawn(&mut screen, 100, 30).contains("PAST 22:13:56, 3 s ago: interval 37 of 40"));
    press(&mut screen, "[[");
    screen.key(KeyEvent::new(KeyCode::Left, KeyModifiers::SHIFT));
    assert!(drawn(&mut screen, 100, 30).contains("interval 7 of 40"));
    press(&mut screen, "[");
    assert!(drawn(&mut screen, 100, 30).contains("interval 1 of 40"));
    assert_eq!(press(&mut screen, "["), Some(Ask::Further(-10)));
    press(&mut screen, "]→.");
    assert!(drawn(&mut screen, 100, 30).contains("interval 13 of 40"));
    assert_eq!(press(&mut screen, "]]]"), Some(Ask::Further(3)));
    assert!(drawn(&mut screen, 100, 30).contains("PAUSED at 22:13:59, the newest interval"));
    press(&mut screen, "l");
    assert!(screen.history.is_live());
    later(&mut screen, 40.0, 5);
    assert!(!drawn(&mut screen, 100, 30).contains("PAST"));
}

#[test]
fn the_user_goes_to_a_time() {
    let mut screen = screen();
    (1..40).for_each(|n| later(&mut screen, f64::from(n), 0));
    press(&mut screen, "t22:13:3");
    assert!(drawn(&mut screen, 120, 30).contains("go to: 22:13:3_"));
    press(&mut screen, "5\n");
    assert!(drawn(&mut screen, 120, 30).contains("PAST 22:13:35"));
    press(&mut screen, "t-10s\n");
    assert!(drawn(&mut screen, 120, 30).contains("PAST 22:13:25"));
    let time = sample::interval().time;
    assert_eq!(press(&mut screen, "t22:13\n"), Some(Ask::Seek(time - 20.0)));
    assert!(drawn(&mut screen, 120, 30).contains("interval 1 of 40"), "the nearest there is");
    press(&mut screen, "tnoon\n");
    assert!(drawn(&mut screen, 120, 30).contains("\"noon\" is not a time; enter 14:03"));
    press(&mut screen, "t\x1b");
    assert_eq!(screen.notice, None);
}

#[test]
fn every_row_and_the_load_have_a_history() {
    let mut screen = screen();
    (1..9).for_each(|n| later(&mut screen, f64::from(n), 600 * n as u64));
    let no_server = error::Error::Failed("no server".to_string());
    screen.step(Step::Absent(Absent::Unreadable(no_server)));
    later(&mut screen, 20.0, 600);
    let wide = drawn(&mut screen, 200, 30);
    assert!(wide.contains("HISTORY"), "{wide}");
    assert!(wide.contains("commands/s") && wide.contains(" ▆▁▂▃▄▅▆▇█ ▁ max 4.80k"), "{wide}");
    let of_cpu = wide.lines().find(|line| line.starts_with("cpu   ")).unwrap();
    assert!(of_cpu.ends_with("█████████ █"), "{of_cpu}");
    // A past interval has its own; a low screen has no line for it.
    press(&mut screen, "←");
    assert!(!drawn(&mut screen, 200, 30).contains("before it"));
    press(&mut screen, "→");
    assert!(drawn(&mut screen, 200, 30).contains("gap before this interval: no server"));
    press(&mut screen, "[");
    assert!(!drawn(&mut screen, 200, 30).contains("▆▇█"));
    assert!(!drawn(&mut screen, 200, 19).contains("commands/s ▁"));
    screen.ascii = true;
    press(&mut screen, "l");
    let ascii = drawn(&mut screen, 200, 30);
    assert!(!ascii.contains(['█', '▁']) && ascii.contains("*# _"), "{ascii}");
}

#[test]
fn active_sessions_have_the_colour_of_their_largest_class() {
    let mut screen = screen();
    screen.color = true;
    (1..5).for_each(|n| later(&mut screen, f64::from(n), 3600));
    let mut terminal = Terminal::new(TestBackend::new(200, 30)).unwrap();
    terminal.draw(|frame| draw::draw(frame, &mut screen)).unwrap();
    let cells = terminal.backend().buffer().content();
    let text =
        |row: &&[ratatui::buffer::Cell]| row.iter().map(|cell| cell.symbol()).collect::<String>();
    let row = cells.chunks(200).find(|row| text(row).contains("commands/s ")).unwrap();
    let full = row.iter().filter(|cell| cell.symbol() == "█").map(|cell| cell.fg);
    let (cpu, plain) =
        (terminal::class_color(segment::WaitClass::Cpu), ratatui::style::Color::Reset);
    // Five intervals of active sessions, then of commands.
    assert_eq!(full.collect::<Vec<_>>(), [[cpu; 5], [plain; 5]].concat());
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
    assert!(
        drawn(&mut screen, 80, 24).contains("\"nan\" is not a length between 0.1 and 3600 seconds")
    );
    press(&mut screen, "↓");
    assert_eq!(screen.notice, None, "until the next key");
}

#[test]
fn enter_opens_the_activity_under_the_cursor_and_closes_it_again() {
    let mut screen = screen();
    assert_eq!(screen.table().unwrap().rows.len(), 4);
    press(&mut screen, "↓↓\n");
    let table = screen.table().unwrap();
    let names: Vec<String> = table.rows.iter().map(|r| r.cells[0].exact()).collect();
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
    press(&mut screen, "\x1b↓\n");
    assert_eq!(screen.statement.map(|key| key.id), Some(4242));
    press(&mut screen, "GG");
    assert!(drawn(&mut screen, 100, 30).contains("temporary files: 1, 4 MB"));
    // An interval in which it was not active shows nothing, and then it comes back.
    let mut later = sample::reading();
    later.statements.iter_mut().for_each(|statement| statement.rows.clear());
    screen.step(Step::Interval(Box::new(later)));
    assert!(drawn(&mut screen, 100, 30).contains("no longer in the table"));
    screen.step(Step::Interval(Box::new(sample::reading())));
    press(&mut screen, "\n");
    assert_eq!((screen.statement, screen.cursor), (None, 1));
}

#[test]
fn the_storage_page_scrolls_and_all_its_rows_open_together() {
    let mut screen = screen();
    press(&mut screen, "9");
    let top = drawn(&mut screen, 100, 24);
    assert!(top.contains("Files") && !top.contains("  extend") && !top.contains("Slow op"));
    press(&mut screen, "\n");
    assert!(drawn(&mut screen, 100, 24).contains("  extend"));
    press(&mut screen, "\n/fsync\n");
    assert!(drawn(&mut screen, 100, 24).contains("no row matches the filter"));
    press(&mut screen, "\x1b");
    screen.key(KeyEvent::new(KeyCode::End, KeyModifiers::NONE));
    let foot = drawn(&mut screen, 100, 24);
    assert!(foot.contains("pg_xact/000C") && !foot.contains("FILES"), "{foot}");
    // Until the storage figures have been read, the rest is shown.
    let mut later = sample::reading();
    later.io = None;
    screen.step(Step::Interval(Box::new(later)));
    assert!(drawn(&mut screen, 100, 40).contains("reading checkpoints, devices and slow"));
}

#[test]
fn statements_have_their_own_orders() {
    let mut screen = screen();
    press(&mut screen, "8sss");
    assert_eq!(screen.wish.sort, Sort::P99);
    assert!(drawn(&mut screen, 100, 30).contains("sort: p99"));
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
fn q_quits_unless_a_line_is_being_typed() {
    let mut screen = screen();
    assert_eq!(press(&mut screen, "/q"), None);
    assert_eq!(press(&mut screen, "\n?q"), None);
    assert_eq!(press(&mut screen, "q"), Some(Ask::Quit));
    let control_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(screen.key(control_c), Some(Ask::Quit));
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

#[test]
fn a_terminal_that_is_too_small_shows_a_message() {
    let mut screen = screen();
    assert_eq!(
        drawn(&mut screen, 20, 4),
        "20 x 4 is too small:\nat least 40 x 8 is\nrequired. q \
                                           quits.\n\n"
    );
    assert_eq!(press(&mut screen, "q"), Some(Ask::Quit));
}

#[test]
fn a_click_shows_a_pane_sorts_by_a_column_and_opens_a_row() {
    let mut screen = screen();
    let lines = |screen: &mut Screen| -> Vec<String> {
        drawn(screen, 120, 30).lines().map(String::from).collect()
    };
    let click = |screen: &mut Screen, word: &str| {
        let seen = lines(screen);
        let row = seen.iter().rposition(|line| line.contains(word)).unwrap();
        let before = &seen[row][..seen[row].find(word).unwrap()];
        let kind = MouseEventKind::Down(MouseButton::Left);
        let column = before.chars().count() as u16;
        screen.mouse(MouseEvent { kind, column, row: row as u16, modifiers: KeyModifiers::NONE });
    };
    click(&mut screen, "MEAN");
    assert_eq!((&screen.wish.sort, screen.wish.reverse), (&Sort::Mean, false));
    click(&mut screen, "MEAN");
    assert!(screen.wish.reverse, "the same again reverses it");
    click(&mut screen, "%TIME");
    assert_eq!((&screen.wish.sort, screen.wish.reverse), (&Sort::Time, false));
    click(&mut screen, "IO:WALSync");
    assert_eq!(screen.cursor, 2);
    click(&mut screen, "IO:WALSync");
    assert!(lines(&mut screen).iter().any(|line| line.starts_with("  sync")));
    click(&mut screen, "8 Statements");
    assert_eq!(screen.view(), View::Statements);
    let wheel = |kind| MouseEvent { kind, column: 0, row: 0, modifiers: KeyModifiers::NONE };
    press(&mut screen, "?");
    drawn(&mut screen, 100, 24);
    screen.mouse(wheel(MouseEventKind::ScrollDown));
    assert_eq!(screen.mode, Mode::Help(3));
    press(&mut screen, "x");
    screen.mouse(wheel(MouseEventKind::ScrollDown));
    lines(&mut screen);
    assert_eq!(screen.cursor, 2, "not further than the last");
}

#[test]
fn the_help_page_scrolls_on_a_low_terminal() {
    let mut screen = screen();
    press(&mut screen, "?");
    insta::assert_snapshot!(drawn(&mut screen, 80, 60));
    assert!(!drawn(&mut screen, 80, 24).contains("unexplained: share"));
    screen.key(KeyEvent::new(KeyCode::End, KeyModifiers::NONE));
    assert!(drawn(&mut screen, 80, 24).contains("unexplained: share"));
    press(&mut screen, "↑");
    assert!(matches!(screen.mode, Mode::Help(line) if line > 0));
    press(&mut screen, "y");
    assert_eq!(screen.mode, Mode::Normal);
}

#[test]
fn the_screen_requests_what_only_its_owner_can_do() {
    let mut screen = screen();
    for (key, ask) in [
        ("x", Ask::Export(Form::Text)),
        ("X", Ask::Export(Form::Json)),
        ("W", Ask::Save),
        ("m", Ask::Mouse),
        ("q", Ask::Quit),
    ] {
        assert_eq!(press(&mut screen, key), Some(ask));
    }
    assert_eq!(press(&mut screen, "/x"), None);
    assert_eq!(press(&mut screen, "\n+"), None);
    assert!(screen.notice.as_ref().unwrap().contains("--replay"));
}

#[test]
fn it_starts_as_saved_unless_options_differ() {
    let mut screen = screen();
    press(&mut screen, "8ssrie");
    let saved = screen.saved();
    let again = Screen::new(&args(), &saved, true);
    assert_eq!(again.saved(), saved);
    assert_eq!((again.view(), &again.wish.sort), (View::Statements, &Sort::Mean));
    let interval = Some(Duration::from_secs(5));
    let other = TopArgs { view: Some(View::Waits), sort: Some(Sort::Name), interval, ..args() };
    let begun = Screen::new(&other, &saved, true);
    assert_eq!((begun.view(), &begun.wish.sort), (View::Waits, &Sort::Name));
    assert!(!begun.wish.reverse, "a saved reversal does not apply to an order option");
    assert_eq!(begun.length, Duration::from_secs(5));
}
