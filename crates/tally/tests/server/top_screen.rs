// SPDX-License-Identifier: PostgreSQL
//! The full-screen view of `tally top` in a real terminal, on segments that the test writes.

use crate::support;
use crate::waiting;
use std::fs::File;
use std::io::Read;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::maker::{Maker, Who, ACCOUNT};
#[cfg(target_arch = "x86_64")]
use crate::support::strace::Strace;
use crate::support::tmux::Tmux;
use rustix::pty::{grantpt, openpt, ptsname, unlockpt, OpenptFlags};
use segment::clock::monotonic_ns;
use serde_json::Value;
use tempfile::TempDir;

/// A session that waits for WAL, and one that computes.
fn segment() -> (TempDir, PathBuf, Maker) {
    let (folder, path, mut maker) = waiting::segment();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let slot = maker.claim(1, 1, Who::client(), cpu, monotonic_ns() - 600_000_000);
    maker.write(&slot);
    (folder, path, maker)
}

fn top(args: &str, path: &Path) -> String {
    let tally = env!("CARGO_BIN_EXE_tally");
    format!("{tally} top --interval 0.2 --no-witness {args} {}", path.display())
}

/// Goes from the first pane to the ledger.
fn ledger(tmux: &Tmux) {
    tmux.until_seen("The last ");
    tmux.press(&["1"]);
}

/// The history columns of the rows.
fn histories(seen: &str) -> Vec<String> {
    let rows = seen.lines().skip_while(|line| !line.contains("HISTORY")).skip(1);
    let rows = rows.filter(|line| line.contains("cpu") || line.contains("IO:"));
    rows.filter_map(|line| line.split_whitespace().last().map(String::from)).collect()
}

#[test]
fn keys_select_panes_and_past_intervals_on_eighty_columns() {
    let (_folder, path, _maker) = segment();
    let tmux = Tmux::run(80, 24, &top("", &path));
    let seen = tmux.until_seen("The last ");
    assert!(seen.contains("0 Diagnoses"), "it begins with what is wrong: {seen}");
    tmux.press(&["1"]);
    let seen = tmux.until("a history", |seen| {
        histories(seen).iter().any(|history| history.chars().count() >= 4)
    });
    assert!(seen.contains("IO:WALSync") && seen.contains("1 Ledger"), "{seen}");
    assert!(histories(&seen).iter().all(|history| history.contains('█')), "{seen}");
    assert!(seen.lines().all(|line| line.chars().count() <= 80), "{seen}");
    tmux.press(&["Left", "Left"]);
    tmux.until("the past", |seen| seen.contains("PAST ") && seen.contains(" ago: interval "));
    support::eventually("the first interval", || {
        tmux.press(&["S-Left"]);
        tmux.seen().contains("interval 1 of ")
    });
    tmux.press(&["."]);
    tmux.until_seen("interval 2 of ");
    tmux.press(&["l"]);
    tmux.until("the present", |seen| !seen.contains("PAST"));
    tmux.press(&["Tab"]);
    tmux.until_seen("2 Waits");
    tmux.press(&["8"]);
    tmux.until_seen("8 Statements");
    tmux.press(&["BTab", "BTab", "BTab", "BTab"]);
    tmux.until_seen("4 Sessions");
    tmux.press(&["1", "/", "w", "a", "l", "Enter"]);
    tmux.until("only WAL", |seen| seen.contains("filter \"wal\"") && !seen.contains("\ncpu   "));
    tmux.press(&["Escape"]);
    tmux.until_seen("\ncpu   ");
    tmux.press(&["?"]);
    tmux.until_seen("tally top: Up and Down scroll");
    tmux.press(&["y"]);
    tmux.until("the panes", |seen| !seen.contains("any other key goes back"));
    tmux.press(&["q"]);
    let after = tmux.until_seen("ended with 0");
    assert!(!after.contains("Ledger"), "the terminal is as it was: {after}");
}

#[test]
fn a_wide_terminal_has_all_columns_a_small_one_a_message_and_no_size_ends_it() {
    let (_folder, path, _maker) = segment();
    let tmux = Tmux::run(200, 50, &top("", &path));
    ledger(&tmux);
    let seen = tmux.until_seen("IO:WALSync");
    for head in ["PHASE", "S/S", "US/CMD", "COUNT/S", "P50", "P99", "MAX", "HISTORY", "9 IO"] {
        assert!(seen.contains(head), "{head}: {seen}");
    }
    tmux.resize(20, 10);
    tmux.until_seen("20 x 10 is too");
    for (width, height) in [(1, 1), (40, 8), (39, 8), (300, 2), (80, 24)] {
        tmux.resize(width, height);
    }
    let seen = tmux.until_seen("HISTORY");
    assert!(!seen.contains("P50"), "{seen}");
    tmux.resize(20, 10);
    tmux.until_seen("small: at least 40");
    tmux.press(&["q"]);
    tmux.until_seen("ended with 0");
}

#[test]
fn a_screen_is_saved_as_text_and_json_and_never_overwrites_a_file() {
    let (_folder, path, _maker) = segment();
    let tmux = Tmux::run(100, 30, &top("--filter WAL", &path));
    ledger(&tmux);
    tmux.until_seen("IO:WALSync");
    tmux.press(&["p", "x"]);
    tmux.until_seen("wrote ./tally-top-ledger-");
    tmux.press(&["X"]);
    tmux.until_seen(".json");
    tmux.press(&["x"]);
    tmux.until_seen("-2.txt");
    let mut files: Vec<String> = std::fs::read_dir(tmux.folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "socket")
        .collect();
    files.sort();
    assert_eq!(files.len(), 3, "{files:?}");
    let read = |name: &String| std::fs::read_to_string(tmux.folder().join(name)).unwrap();
    assert_eq!(read(&files[0]), read(&files[2]), "of the same interval");
    let text = read(&files[2]);
    assert!(text.starts_with("tally top: 20") && text.contains("PostgreSQL 15.20"), "{text}");
    assert!(text.contains("IO:WALSync") && !text.contains("\ncpu   "), "{text}");
    let json: Value = serde_json::from_str(&read(&files[1])).unwrap();
    assert_eq!(json["ledger"].as_array().unwrap().len(), 2);
}

#[test]
fn the_view_is_saved_and_restored_at_the_next_start() {
    let (_folder, path, _maker) = segment();
    let again = top("", &path);
    let command = format!("{again} && {again} --view ledger; {again} --no-config");
    let tmux = Tmux::run(80, 24, &command);
    ledger(&tmux);
    tmux.until_seen("IO:WALSync");
    tmux.press(&["2", "s", "i", "W"]);
    tmux.until_seen("top.toml");
    let file = tmux.folder().join("settings/pgtally/top.toml");
    let saved = std::fs::read_to_string(&file).unwrap();
    assert!(saved.contains("view = \"waits\"") && saved.contains("sort = \"calls\""), "{saved}");
    tmux.press(&["q"]);
    let seen = tmux.until_seen("1 Ledger");
    assert!(seen.contains("sort: calls") && seen.contains("with idle"), "{seen}");
    std::fs::write(&file, "sort = [").unwrap();
    tmux.press(&["q"]);
    ledger(&tmux);
    let seen = tmux.until_seen("sort: time");
    assert!(!seen.contains("with idle") && !seen.contains("top.toml"), "{seen}");
    tmux.press(&["q"]);
    tmux.until_seen("ended with 0");
}

#[test]
fn a_damaged_settings_file_is_reported_and_ignored() {
    let (_folder, path, _maker) = segment();
    let make = "mkdir -p settings/pgtally; echo 'sort = \"colour\"' > settings/pgtally/top.toml";
    let tmux = Tmux::run(120, 24, &format!("{make}; {}", top("", &path)));
    let seen = tmux.until_seen("\"colour\" is not a sort order");
    assert!(seen.contains("0 Diagnoses"), "{seen}");
    tmux.press(&["Down"]);
    tmux.until("the message disappears", |seen| !seen.contains("ignored"));
}

#[test]
fn the_mouse_works_if_enabled() {
    let (_folder, path, _maker) = segment();
    let tmux = Tmux::run(120, 30, &top("--mouse", &path));
    ledger(&tmux);
    tmux.until_seen("IO:WALSync");
    let click = |text: &str| {
        let (column, line) = tmux.position_of(text);
        tmux.click(column, line);
    };
    click("COUNT/S");
    tmux.until_seen("sort: calls");
    click("COUNT/S");
    tmux.until_seen("sort: calls reversed");
    click("3 Commands");
    tmux.until_seen("HANDLE COUNT");
    tmux.press(&["m"]);
    tmux.until_seen("mouse off");
    tmux.press(&["q"]);
    tmux.until_seen("ended with 0");
}

#[test]
fn a_closed_terminal_ends_it_even_without_a_signal() {
    let (_folder, path, _maker) = segment();
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    let theirs = File::options().read(true).write(true).open(name).unwrap();
    let other = || theirs.try_clone().unwrap();
    // This is not its controlling terminal: the kernel sends no signal.
    let mut top = Command::new("setsid")
        .args([env!("CARGO_BIN_EXE_tally"), "top", "--no-config"])
        .arg(&path)
        .stdin(other())
        .stdout(other())
        .stderr(other())
        .spawn()
        .unwrap();
    drop(theirs);
    let mut ours = File::from(ours);
    let mut seen = [0; 64];
    assert!(ours.read(&mut seen).unwrap() > 0);
    // Right after it has found the terminal open, when it asks for keys. On other processors this is the same
    // call.
    #[cfg(target_arch = "x86_64")]
    let held = Strace::hold("poll", top.id() as i32);
    #[cfg(target_arch = "x86_64")]
    if let Some(held) = &held {
        support::eventually("it asks for keys", || held.holds(top.id() as i32, "poll"));
    }
    drop(ours);
    #[cfg(target_arch = "x86_64")]
    drop(held);
    let ended = catch_unwind(AssertUnwindSafe(|| {
        support::eventually("its end", || top.try_wait().unwrap().is_some());
    }));
    let _ = top.kill();
    let _ = top.wait();
    assert!(ended.is_ok());
}
