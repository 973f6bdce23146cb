// SPDX-License-Identifier: PostgreSQL
//! A log that grows and is rotated in each way that servers and logrotate know, read in pieces: every message once.

use super::*;
use std::io::Write;

/// A log directory and a reader of it.
struct Log {
    folder: tempfile::TempDir,
    number: u64,
    seen: Vec<String>,
    notes: Vec<String>,
}

impl Log {
    fn new() -> Log {
        Log { folder: tempfile::tempdir().unwrap(), number: 0, seen: Vec::new(), notes: Vec::new() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn owners(&self) -> Vec<u32> {
        vec![std::fs::metadata(self.folder.path()).unwrap().uid()]
    }

    fn append(&self, name: &str, text: &str) {
        let file = File::options().create(true).append(true).open(self.path(name));
        file.unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Writes a message in csvlog, of two lines.
    fn write(&mut self, name: &str) {
        self.number += 1;
        let text = csv_message(self.number);
        self.append(name, &text);
    }

    fn take(&mut self, follower: &mut LogFollower) -> Option<Position> {
        let reading = follower.read(false);
        self.seen.extend(reading.entries.into_iter().map(|entry| entry.message));
        self.notes.extend(reading.notes);
        assert_eq!(reading.unknown, 0);
        reading.position
    }

    /// Whether every message was read once, in order.
    fn assert_complete(&self) {
        let all: Vec<String> =
            (1..=self.number).map(|number| format!("m {number}\n\"b\"")).collect();
        assert_eq!(self.seen, all, "{:?}", self.notes);
    }
}

fn csv_message(number: u64) -> String {
    format!(
        "2026-03-01 10:00:00.250 UTC,\"u\",\"d\",42,\"[local]\",a.b,3,\"SELECT\",2026-03-01 09:59:00 UTC,3/7,0,\
         ERROR,22012,\"m {number}\n\"\"b\"\"\",,,,,,\"select 1\",,,\"psql\",\"client backend\",,0\n"
    )
}

#[test]
fn a_file_is_read_from_its_end_in_whole_messages() {
    let mut log = Log::new();
    log.append("a.csv", &csv_message(77));
    let mut follower = LogFollower::new(LogPlace::File(log.path("a.csv")), log.owners());
    log.take(&mut follower);
    log.write("a.csv");
    log.take(&mut follower);
    log.number += 1;
    let text = csv_message(log.number);
    // Cut at every byte: within quotes, within the two quotes of one, before the end of the line.
    for at in 1..text.len() {
        log.append("a.csv", &text[at - 1..at]);
        let before = log.seen.len();
        log.take(&mut follower);
        assert_eq!(log.seen.len(), before, "cut at {at}");
    }
    log.append("a.csv", &text[text.len() - 1..]);
    log.take(&mut follower);
    log.assert_complete();
}

#[test]
fn reading_that_begins_within_a_message_begins_with_the_next_one() {
    let mut log = Log::new();
    let text = csv_message(77);
    log.append("a.csv", &text[..text.len() - 30]);
    let mut follower = LogFollower::new(LogPlace::File(log.path("a.csv")), log.owners());
    log.take(&mut follower);
    log.append("a.csv", &text[text.len() - 30..]);
    log.write("a.csv");
    log.write("a.csv");
    log.take(&mut follower);
    log.assert_complete();
}

#[test]
fn files_of_a_collector_follow_each_other() {
    let mut log = Log::new();
    let list = |log: &Log, name: &str| {
        std::fs::write(log.path("current_logfiles"), format!("stderr x.log\ncsvlog {name}\n"))
            .unwrap();
    };
    let name = |n: u32| format!("postgresql-2026-03-0{n}_000000.csv");
    log.append(&name(1), "");
    list(&log, &name(1));
    let place = LogPlace::Collector(log.folder.path().to_path_buf(), None);
    let mut follower = LogFollower::new(place, log.owners());
    log.take(&mut follower);
    log.write(&name(1));
    log.take(&mut follower);
    // Two rotations between two readings, with messages in each file.
    for n in [1, 2, 2, 3] {
        log.write(&name(n));
        list(&log, &name(n));
        set_changed(&log.path(&name(n)), u64::from(n));
    }
    // Of another server.
    log.append("other-2026-03-02_000000.csv", &csv_message(99));
    log.take(&mut follower);
    log.assert_complete();
    // The same name again, after the file was removed, as with %a.
    std::fs::remove_file(log.path(&name(1))).unwrap();
    log.write(&name(3));
    log.write(&name(1));
    list(&log, &name(1));
    log.take(&mut follower);
    log.assert_complete();
}

/// Sets the time of a file's last change to so many minutes from now, so that the order does not depend on the clock.
fn set_changed(path: &Path, minutes: u64) {
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60 * minutes);
    File::options().append(true).open(path).unwrap().set_modified(later).unwrap();
}

#[test]
fn a_renamed_file_is_read_to_its_end() {
    let mut log = Log::new();
    log.append("a.csv", "");
    let mut follower = LogFollower::new(LogPlace::File(log.path("a.csv")), log.owners());
    log.take(&mut follower);
    log.write("a.csv");
    log.take(&mut follower);
    for _ in 0..3 {
        log.write("a.csv");
        std::fs::rename(log.path("a.csv"), log.path("a.csv.1")).unwrap();
        // The server still has the renamed file open.
        log.write("a.csv.1");
        log.take(&mut follower);
        log.write("a.csv.1");
        log.write("a.csv");
        log.take(&mut follower);
        log.assert_complete();
    }
}

#[test]
fn an_emptied_file_is_read_from_its_beginning() {
    let mut log = Log::new();
    log.append("a.csv", "");
    let mut follower = LogFollower::new(LogPlace::File(log.path("a.csv")), log.owners());
    log.take(&mut follower);
    log.write("a.csv");
    log.write("a.csv");
    log.take(&mut follower);
    File::options().write(true).truncate(true).open(log.path("a.csv")).unwrap();
    log.write("a.csv");
    log.take(&mut follower);
    log.assert_complete();
    assert!(log.notes[0].contains("was truncated"), "{:?}", log.notes);
}

#[test]
fn a_reader_that_was_killed_continues_where_its_position_was_stored() {
    let mut log = Log::new();
    log.append("a.csv", "");
    let place = LogPlace::File(log.path("a.csv"));
    let mut follower = LogFollower::new(place.clone(), log.owners());
    log.take(&mut follower);
    log.write("a.csv");
    let mut position = log.take(&mut follower).unwrap();
    for round in 0..4 {
        log.write("a.csv");
        if round == 2 {
            std::fs::rename(log.path("a.csv"), log.path("a.csv.1")).unwrap();
            log.write("a.csv");
        }
        let mut next = LogFollower::new(place.clone(), log.owners());
        next.resume(position);
        position = log.take(&mut next).unwrap();
        log.assert_complete();
    }
}

#[test]
fn the_last_message_of_stderr_is_complete_when_nothing_follows() {
    let log = Log::new();
    log.append("a.log", "");
    let mut follower = LogFollower::new(LogPlace::File(log.path("a.log")), log.owners());
    follower.set_prefix("%m [%p] ");
    follower.read(false);
    let line = |text: &str| format!("2026-03-01 10:00:00.250 UTC [42] {text}\n");
    log.append("a.log", &line("ERROR:  one"));
    assert!(follower.read(false).entries.is_empty(), "its statement may follow");
    log.append("a.log", &line("STATEMENT:  select\n\tnothing"));
    assert!(follower.read(false).entries.is_empty());
    let found = follower.read(false).entries;
    assert_eq!((&*found[0].message, &*found[0].query), ("one", "select\nnothing"));
    log.append("a.log", &(line("LOG:  two") + &line("LOG:  three")));
    let found = [follower.read(false).entries, follower.read(false).entries].concat();
    let texts: Vec<&str> = found.iter().map(|entry| &*entry.message).collect();
    assert_eq!(texts, ["two", "three"]);
}

#[test]
fn a_log_whose_prefix_is_not_known_takes_bounded_memory() {
    let log = Log::new();
    log.append("a.log", "");
    let mut follower = LogFollower::new(LogPlace::File(log.path("a.log")), log.owners());
    follower.read(false);
    let line = "2026-03-01 10:00:00.250 UTC [42] LOG:  x\n";
    let number = 3 * MOST_OF_A_READING / line.len();
    log.append("a.log", &line.repeat(number));
    for _ in 0..5 {
        assert!(follower.read(false).entries.is_empty());
    }
    let held = follower.open.as_ref().unwrap().rest.len();
    assert!(held <= MOST_OF_A_READING + 2 * MOST_OF_A_MESSAGE, "{held}");
    follower.set_prefix("%m [%p] ");
    let read: usize = (0..9).map(|_| follower.read(false).entries.len()).sum();
    assert_eq!(read, number);
}

#[test]
fn damage_costs_the_message_that_is_damaged_and_no_text_looks_like_a_message() {
    let log = Log::new();
    log.append("a.csv", "");
    let mut follower = LogFollower::new(LogPlace::File(log.path("a.csv")), log.owners());
    follower.read(false);
    let half = csv_message(1);
    // An odd quote, as after a crash of the collector.
    log.append("a.csv", &format!("{}\n{}{}", &half[..90], csv_message(2), csv_message(3)));
    log.append("a.csv", &csv_message(4));
    let reading = follower.read(false);
    let last = reading.entries.last().map(|entry| entry.message.clone());
    assert_eq!(last.as_deref(), Some("m 4\n\"b\""));
    assert!(reading.unknown > 0);
    // Somebody has a message logged that contains another one.
    let within = csv_message(5).replace(
        "m 5",
        "x\n2026-03-01 10:00:00.250 UTC,,,1,,a.b,1,,,,0,PANIC,XX000,\"\"y\"\",,,,,,,,,\"\"\"\"\n",
    );
    log.append("a.csv", &within);
    let found = follower.read(false).entries;
    assert!(found.len() == 1 && found[0].severity == "ERROR", "{found:?}");
}

#[test]
fn files_of_others_and_links_are_not_read() {
    let log = Log::new();
    log.append("secret", "x\n");
    std::os::unix::fs::symlink(log.path("secret"), log.path("a.csv")).unwrap();
    let mut follower = LogFollower::new(LogPlace::File(log.path("a.csv")), log.owners());
    let reading = follower.read(false);
    assert!(
        reading.entries.is_empty() && reading.notes[0].contains("symbolic link"),
        "{:?}",
        reading.notes
    );
    let mut follower = LogFollower::new(LogPlace::File(log.path("secret")), vec![4_000_000]);
    assert!(follower.read(false).notes[0].contains("not to the server's user"));
    assert!(follower.read(false).notes.is_empty(), "it is said once");
}

#[test]
fn names_of_one_log_have_one_shape() {
    assert_eq!(
        shape("postgresql-2026-03-01_120000.csv"),
        shape("postgresql-2026-03-02_000000.csv")
    );
    assert_eq!(shape("postgresql-Mon.csv"), shape("postgresql-Tue.csv"));
    assert_ne!(shape("main-2026.csv"), shape("other-2026.csv"));
}
