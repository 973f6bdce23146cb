// SPDX-License-Identifier: PostgreSQL
//! The reader's results for the actions of writers, on segments written according to the layout.
#![allow(missing_docs)]

mod maker;

use maker::{Maker, Shape, Slot, Who, ACCOUNT, NAME, TIMER, VALUE};
use proptest::prelude::*;
use segment::book::Life;
use segment::clock::monotonic_ns;
use segment::directory::StatKind;
use segment::layout::{book, directory, entry, head, header, journal, slot_state};
use segment::locks::LwlockRow;
use segment::{
    set_level, Delta, Error, Frame, Interval, Level, LevelEnd, LevelSetting, LevelSwitch,
    ProbeState, Segment, Snapshot, WaitClass,
};
use std::collections::HashMap;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const SHAPE: Shape = Shape { slots: 8, groups: 4, stats_per_book: 16 };

fn make() -> (TempDir, Maker) {
    let folder = tempfile::tempdir().unwrap();
    let maker = Maker::new(&folder.path().join("pg_tally.1.2"), SHAPE);
    (folder, maker)
}

/// The ticks of everything in a snapshot, by name of the statistic.
fn totals(snapshot: &Snapshot) -> HashMap<String, (u64, u64)> {
    let mut sums = HashMap::new();
    for book in snapshot.books.iter().chain(&snapshot.groups) {
        for head in &book.heads {
            let name = snapshot.directory.get(head.stat).unwrap().name.clone();
            let sum: &mut (u64, u64) = sums.entry(name).or_default();
            sum.0 += head.count;
            sum.1 += head.total;
        }
    }
    sums
}

fn seconds(interval: &Interval, phase: &str, activity: &str) -> f64 {
    interval
        .ledger
        .iter()
        .find(|a| &*a.phase == phase && &*a.activity == activity)
        .map_or(0.0, |a| a.timing.seconds)
}

/// Queries by tally do not count as load: an idle server handles no commands, however often tally queries it.
#[test]
fn commands_are_those_of_clients() {
    let (_folder, mut maker) = make();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let handled = maker.stat("command::Query::handle", TIMER);
    let now = monotonic_ns();
    let whose = [("client backend", 3), (segment::own::PROCESS, 10), ("walsender", 2)];
    for (at, (kind, commands)) in (0..).zip(whose) {
        let who = Who { kind, ..Who::client() };
        let mut slot = maker.claim(at, 1, who, cpu, now - 1_000_000_000);
        (0..commands).for_each(|_| slot.record(handled, 1000));
        maker.write(&slot);
    }
    let mut segment = Segment::open(&maker.path).unwrap();
    let snapshot = segment.snapshot(None).unwrap();
    let interval = Interval::between(&segment, None, &snapshot);
    assert_eq!((interval.commands_handled, interval.own_commands), (3, 10));
    assert_eq!(interval.commands.iter().map(|row| row.handle.count).sum::<u64>(), 3);
    assert_eq!(segment::clients::ClientTotals::from_snapshot(&snapshot).commands, 3);
    // Their time is part of the ledger.
    assert!(interval.wall_seconds >= 3.0, "{}", interval.wall_seconds);
}

#[test]
fn a_wait_in_progress_counts_up_to_this_instant() {
    let (_folder, mut maker) = make();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let sync = maker.stat("execute::wait::IO:WALSync", ACCOUNT);
    let now = monotonic_ns();
    let mut slot = maker.claim(0, 1, Who::client(), cpu, now - 8_000_000_000);
    slot.switch(sync, now - 7_900_000_000);
    maker.write(&slot);

    let mut segment = Segment::open(&maker.path).unwrap();
    let mut before = monotonic_ns();
    let mut previous = segment.snapshot(None).unwrap();
    for _ in 0..3 {
        let after_previous = monotonic_ns();
        std::thread::sleep(Duration::from_millis(5));
        let before_next = monotonic_ns();
        let snapshot = segment.snapshot(Some(&previous)).unwrap();
        let interval = Interval::between(&segment, Some(&previous), &snapshot);
        let waited = seconds(&interval, "execute", "IO:WALSync");
        assert!((waited / interval.wall_seconds - 1.0).abs() < 1e-9, "{interval:?}");
        let within = (before_next - after_previous) as f64 * 1e-9;
        let around = (monotonic_ns() - before) as f64 * 1e-9;
        for length in [waited, interval.interval_seconds] {
            assert!((within..=around).contains(&length), "{length}, not {within} to {around}");
        }
        before = before_next;
        let row = &interval.ledger[0].timing;
        assert_eq!(row.count, 0);
        assert!(row.max_seconds.unwrap() > 7.9, "what runs still is the longest: {row:?}");
        let session = &interval.sessions[0];
        assert_eq!((&*session.phase, &*session.activity), ("execute", "IO:WALSync"));
        assert!(session.since_seconds > 7.9 && session.state == "active");
        previous = snapshot;
    }
}

#[test]
fn time_that_moves_to_another_account_between_two_snapshots_is_counted_once() {
    for ends in [false, true] {
        let (_folder, mut maker) = make();
        let idle = maker.stat("idle::cpu", ACCOUNT);
        let query = maker.stat("simple query::cpu", ACCOUNT);
        let mut group = maker.group(0);
        let born = monotonic_ns() - 5_000_000_000;
        let mut slot = maker.claim(0, 1, Who::client(), idle, born);
        maker.write(&slot);

        let mut segment = Segment::open(&maker.path).unwrap();
        let before = monotonic_ns();
        let previous = segment.snapshot(None).unwrap();
        std::thread::sleep(Duration::from_millis(10));
        // It turns out that the command began at the session's start.
        slot.run = Some(slot.head(query));
        slot.seq += 2;
        maker.write(&slot);
        if ends {
            maker.merge(slot, &mut group, monotonic_ns());
        }
        let snapshot = segment.snapshot(Some(&previous)).unwrap();
        let interval = Interval::between(&segment, Some(&previous), &snapshot);
        let ledger: f64 = interval.ledger.iter().map(|a| a.timing.seconds).sum();
        assert!((ledger - interval.wall_seconds).abs() < 1e-9, "{interval:?}");
        let around = (monotonic_ns() - before) as f64 * 1e-9;
        assert!(ledger <= around, "five seconds were reported before: {ledger} of {around}");
        assert_eq!(ledger, seconds(&interval, "simple query", "cpu"));
    }
}

#[test]
fn a_pending_wait_is_counted_in_its_account() {
    let (_folder, mut maker) = make();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let lock = maker.stat("execute::wait::LWLock:WALWrite", ACCOUNT);
    let now = monotonic_ns() - 1_000_000_000;
    let mut slot = maker.claim(0, 1, Who::client(), cpu, now);
    slot.switch(lock, now + 1_000_000);
    slot.switch_later(cpu, now + 5_000_000);
    maker.write(&slot);
    let mut segment = Segment::open(&maker.path).unwrap();
    let snapshot = segment.snapshot(None).unwrap();
    assert_eq!(totals(&snapshot)["execute::wait::LWLock:WALWrite"], (1, 4_000_000));
    let book = &snapshot.books[0];
    assert_eq!(book.accounted(&snapshot.directory), book.now - book.born);
}

#[test]
fn a_session_that_ends_between_two_snapshots_is_counted_once() {
    let (_folder, mut maker) = make();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let wait = maker.stat("idle::wait::Client:ClientRead", ACCOUNT);
    let handle = maker.stat("command::Query::handle", TIMER);
    let mut group = maker.group(0);
    maker.group_kind(&group, Who::client().kind);
    let start = monotonic_ns() - 1_000_000_000;
    let mut slot = maker.claim(2, 7, Who::client(), cpu, start);
    slot.switch(wait, start + 300_000_000);
    slot.record(handle, 300_000_000);
    maker.write(&slot);
    let mut segment = Segment::open(&maker.path).unwrap();
    let first = segment.snapshot(None).unwrap();
    let end = monotonic_ns();
    slot.switch(cpu, end);
    slot.record(handle, 5_000_000);
    maker.merge(slot, &mut group, end + 1_000);
    // The next owner of the same slot begins.
    let next = maker.claim(2, 8, Who::client(), cpu, end + 2_000);
    maker.write(&next);

    let second = segment.snapshot(Some(&first)).unwrap();
    let interval = Interval::between(&segment, Some(&first), &second);
    assert_eq!(interval.ended.sessions, 1);
    let lived = (end + 1_000 - first.books[0].now) as f64 * 1e-9;
    assert!((interval.ended.seconds - lived).abs() < 1e-9, "{:?} {lived}", interval.ended);
    assert_eq!(interval.sessions.len(), 1);
    assert_eq!(interval.sessions[0].generation, 8);
    let command = &interval.commands[0];
    assert_eq!((command.kind.as_str(), command.handle.count), ("Query", 1));
    assert!((command.handle.seconds - 0.005).abs() < 1e-9);
    let sum: f64 = interval.ledger.iter().map(|a| a.timing.seconds).sum();
    assert!((sum - interval.wall_seconds).abs() < 1e-9);
}

#[test]
fn a_slot_merged_during_the_reading_is_dropped() {
    let (_folder, mut maker) = make();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let mut group = maker.group(0);
    let start = monotonic_ns() - 1_000_000_000;
    let slot = maker.claim(1, 3, Who::client(), cpu, start);
    maker.merge(slot.clone(), &mut group, start + 500_000_000);
    // Simulate a reader whose copy of the entries is older than the merge: the entry is restored, and so are
    // the counts from before the merge ...
    maker.write(&slot);
    maker.set_state(1, slot_state::LIVE);
    let merges = maker.get_u64(header::MERGE_COUNT as u64);
    let mut segment = Segment::open(&maker.path).unwrap();
    let twice = segment.snapshot(None).unwrap();
    assert_eq!(twice.books.len(), 1, "the log names no merge since this reader began");
    // ... and the number of merges increases after the reader has begun.
    maker.u64(header::MERGE_COUNT as u64, merges - 1);
    let path = maker.path.clone();
    let reader = rustix::thread::gettid();
    let slept = move || -> u64 {
        let path = format!("/proc/self/task/{}/status", reader.as_raw_nonzero());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        line.unwrap().trim().parse().unwrap()
    };
    let (ready, is_ready) = std::sync::mpsc::channel();
    let counter = std::thread::spawn(move || {
        // The first time that the reader sleeps, it waits for the merge.
        let before = is_ready.recv().unwrap();
        while slept() == before {
            std::thread::yield_now();
        }
        maker.u64(header::MERGE_COUNT as u64, merges);
        maker.u64(header::MERGE_ACTIVE as u64, 0);
        maker
    });
    // While a merge is active the reader waits, having read the slots.
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    let active = 1u64.to_ne_bytes();
    std::os::unix::fs::FileExt::write_all_at(&file, &active, header::MERGE_ACTIVE as u64).unwrap();
    let own = std::process::id().to_ne_bytes();
    std::os::unix::fs::FileExt::write_all_at(&file, &own, header::MERGE_LOCK as u64).unwrap();
    ready.send(slept()).unwrap();
    let once = segment.snapshot(None).unwrap();
    counter.join().unwrap();
    assert_eq!(once.books.len(), 0);
    assert_eq!(totals(&once)["execute::cpu"], (1, 500_000_000));
}

#[test]
fn an_interrupted_merge_counts_everything_once() {
    let (_folder, mut maker) = make();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let wait = maker.stat("execute::wait::IO:DataFileRead", ACCOUNT);
    let third = maker.stat("execute::wait::IO:WALSync", ACCOUNT);
    let start = monotonic_ns() - 1_000_000_000;
    let mut slot = maker.claim(0, 1, Who::client(), cpu, start);
    slot.switch(wait, start + 1_000);
    slot.switch(third, start + 30_000);
    slot.close(start + 600_000);
    maker.write(&slot);
    maker.set_state(0, slot_state::MERGING);
    // The first statistic has been moved, the second is half added, the third is to come.
    let mut group = maker.group(0);
    group.record(cpu, 1_000);
    group.record(wait, 77);
    maker.write(&group);
    maker.set_state(group.index, slot_state::GROUP);
    maker.u32(maker.entry_at(0) + entry::MERGED as u64, 1);
    maker.u32(maker.journal + journal::ACTIVE as u64, 1);
    maker.u32(maker.journal + journal::SLOT as u64, 0);
    maker.u32(maker.journal + journal::GROUP as u64, group.index);
    maker.u32(maker.journal + journal::HEAD as u64, 1);
    let saved = maker.journal + journal::SAVED as u64;
    maker.u32(saved, wait);
    maker.u64(saved + 24, u64::MAX);
    maker.u64(saved + 40, 1);
    maker.u64(header::MERGE_ACTIVE as u64, 1);
    maker.u32(header::MERGE_LOCK as u64, 0);

    let mut segment = Segment::open(&maker.path).unwrap();
    let snapshot = segment.snapshot(None).unwrap();
    assert!(snapshot.stuck_merge);
    let totals = totals(&snapshot);
    assert_eq!(totals["execute::cpu"], (1, 1_000));
    assert_eq!(totals["execute::wait::IO:DataFileRead"], (1, 29_000));
    assert_eq!(totals["execute::wait::IO:WALSync"], (1, 570_000));
}

#[test]
fn a_merge_that_never_comes_to_rest_ends_the_reading() {
    let (_folder, maker) = make();
    maker.u64(header::MERGE_ACTIVE as u64, 1);
    let mut segment = Segment::open(&maker.path).unwrap();
    segment.set_impatient();
    let head = maker.journal + journal::HEAD as u64;
    let mut heads = 0;
    // Whatever is read, another head is being merged by then.
    segment.set_before_reading(Some(Box::new(move |_, _| {
        heads += 1;
        assert!(heads < 10_000, "reading does not end");
        maker.u32(head, heads);
    })));
    assert!(matches!(segment.snapshot(None), Err(Error::Unstable { .. })));
}

/// A reader that follows a segment copies books from a mapping, whose pages go missing when the file is truncated.
#[test]
fn a_file_truncated_at_any_point_of_a_reading_is_reported() {
    let (_folder, mut maker) = make();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let handled = maker.stat("command::Query::handle", TIMER);
    let begin = monotonic_ns() - 1_000_000_000;
    for index in 0..3 {
        let mut slot = maker.claim(index, 1, Who::client(), cpu, begin);
        (0..4).for_each(|i| slot.record(handled, 1000 << i));
        maker.write(&slot);
    }
    let whole = std::fs::read(&maker.path).unwrap();
    let (mut phase, mut refused) = (0, 0);
    loop {
        phase += 1;
        // A file of its own for each point, because the reader keeps the mapping of the last one.
        let path = maker.path.with_file_name(format!("pg_tally.{phase}.2"));
        std::fs::write(&path, &whole).unwrap();
        let mut segment = Segment::open(&path).unwrap();
        segment.set_impatient();
        let first = segment.snapshot(None).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        // Each book is read again.
        for index in 0..3 {
            file.write_all_at(&2u64.to_ne_bytes(), maker.book_at(index) + book::SEQ as u64)
                .unwrap();
            let count = maker.book_at(index) + (book::SIZE + head::SIZE + head::COUNT) as u64;
            file.write_all_at(&5u64.to_ne_bytes(), count).unwrap();
        }
        let readings = Arc::new(AtomicUsize::new(0));
        let counter = readings.clone();
        segment.set_before_reading(Some(Box::new(move |_, _| {
            if counter.fetch_add(1, Ordering::Relaxed) + 1 == phase {
                file.set_len(4096).unwrap();
            }
        })));
        let second = segment.snapshot(Some(&first));
        segment.set_before_reading(None);
        if let Ok(second) = &second {
            // All of it was read before.
            let counts: Vec<u64> = second.books.iter().map(|book| book.heads[1].count).collect();
            assert_eq!(counts, [5; 3], "point {phase}");
            let of_histograms =
                second.books.iter().map(|book| book.histogram(&book.heads[1]).count());
            assert_eq!(of_histograms.collect::<Vec<_>>(), [4; 3], "point {phase}");
        }
        if readings.load(Ordering::Relaxed) < phase {
            assert!(second.is_ok());
            break;
        }
        refused += usize::from(matches!(second, Err(Error::Truncated { .. })));
        assert!(
            matches!(segment.snapshot(Some(&first)), Err(Error::Truncated { .. })),
            "point {phase}"
        );
    }
    assert!(refused > 10, "{refused} of {phase}");
}

#[test]
fn after_a_reset_only_the_time_since_counts() {
    let (_folder, mut maker) = make();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let wait = maker.stat("execute::wait::IO:DataFileRead", ACCOUNT);
    let start = monotonic_ns() - 1_000_000_000;
    let mut slot = maker.claim(0, 1, Who::client(), cpu, start);
    slot.switch(wait, start + 400_000_000);
    maker.write(&slot);
    let mut segment = Segment::open(&maker.path).unwrap();
    let before = segment.snapshot(None).unwrap();
    let reset = monotonic_ns();
    maker.u64(header::RESET_TICK as u64, reset);
    maker.level_word(1 << 16 | 1);
    // The session has not noticed yet.
    let after = segment.snapshot(Some(&before)).unwrap();
    let delta = Delta::between(Some(&before), &after);
    assert_eq!(delta.ticks, after.tick - reset);
    assert_eq!(delta.sessions[0].lived, after.books[0].now - reset);
    let interval = Interval::between(&segment, Some(&before), &after);
    assert_eq!(interval.ledger.len(), 1);
    assert_eq!(&*interval.ledger[0].activity, "IO:DataFileRead");
    assert!(interval.wall_seconds <= (monotonic_ns() - reset) as f64 * 1e-9);
}

#[test]
fn a_dead_session_does_not_grow_and_its_total_does_not_shrink() {
    let (_folder, mut maker) = make();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let start = monotonic_ns();
    let who = Who { pid: child.id(), ..Who::client() };
    maker.claim(0, 1, who, cpu, start);
    let mut segment = Segment::open(&maker.path).unwrap();
    let first = segment.snapshot(None).unwrap();
    assert_eq!(first.books[0].life, Life::Alive);
    child.kill().unwrap();
    child.wait().unwrap();
    let second = segment.snapshot(Some(&first)).unwrap();
    assert_eq!(second.books[0].life, Life::Dead);
    assert_eq!(totals(&first), totals(&second));
    let interval = Interval::between(&segment, Some(&first), &second);
    assert_eq!(interval.sessions[0].state, "dead");
    assert_eq!(interval.sessions[0].lived_seconds, 0.0);
}

#[test]
fn a_reused_pid_is_not_the_session() {
    let (_folder, mut maker) = make();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    maker.claim(0, 1, Who::client(), cpu, monotonic_ns());
    // The slot was claimed before this process, which now has the PID, was started.
    maker.u64(maker.entry_at(0) + entry::CLAIMED_BOOT_NS as u64, 1);
    let mut segment = Segment::open(&maker.path).unwrap();
    assert_eq!(segment.snapshot(None).unwrap().books[0].life, Life::Dead);
}

#[test]
fn a_writer_stopped_during_an_update_does_not_block_the_reader() {
    let (_folder, mut maker) = make();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let wait = maker.stat("execute::wait::IO:WALSync", ACCOUNT);
    let start = monotonic_ns() - 1_000_000_000;
    let mut slot = maker.claim(0, 1, Who::client(), cpu, start);
    slot.switch(wait, start + 100_000_000);
    // The end of the wait is counted, but the next account has not begun.
    slot.record(wait, 500_000_000);
    maker.write(&slot);
    maker.u64(maker.book_at(0) + book::SEQ as u64, 9);
    let mut segment = Segment::open(&maker.path).unwrap();
    let snapshot = segment.snapshot(None).unwrap();
    let book = &snapshot.books[0];
    assert!(book.torn);
    assert_eq!(book.accounted(&snapshot.directory), book.now - book.born);
    assert!(!Interval::between(&segment, None, &snapshot).exact);
}

#[test]
fn names_come_from_any_session_that_knows_them() {
    let (_folder, mut maker) = make();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let now = monotonic_ns();
    maker.claim(0, 1, Who::client(), cpu, now);
    maker.claim(1, 1, Who { database: "", user: "", ..Who::client() }, cpu, now);
    let stranger = Who { database: "", user: "", database_id: 77, user_id: 0, ..Who::client() };
    maker.claim(2, 1, stranger, cpu, now);
    let mut segment = Segment::open(&maker.path).unwrap();
    let snapshot = segment.snapshot(None).unwrap();
    let interval = Interval::between(&segment, None, &snapshot);
    assert_eq!(interval.sessions[1].database.as_deref(), Some("postgres"));
    assert_eq!(interval.sessions[1].user.as_deref(), Some("alice"));
    assert_eq!(interval.sessions[2].database.as_deref(), Some("77"));
    assert_eq!(interval.sessions[2].user, None);
}

#[test]
fn the_same_name_in_two_places_of_the_directory_is_one_statistic() {
    let (_folder, mut maker) = make();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    maker.stat("x", VALUE);
    let twin = maker.stat("execute::cpv", ACCOUNT);
    maker.text(maker.directory_at(twin - 1) + 16, "execute::cpu");
    let start = monotonic_ns() - 1_000_000_000;
    let mut slot = maker.claim(0, 1, Who::client(), cpu, start);
    slot.switch(twin, start + 10);
    slot.switch(cpu, start + 30);
    maker.write(&slot);
    let mut segment = Segment::open(&maker.path).unwrap();
    let snapshot = segment.snapshot(None).unwrap();
    let interval = Interval::between(&segment, None, &snapshot);
    assert_eq!(interval.ledger.len(), 1);
    assert_eq!(interval.ledger[0].timing.count, 2);
}

#[test]
fn extremes_of_an_interval_are_its_own() {
    let (_folder, mut maker) = make();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let timer = maker.stat("command::Execute::handle", TIMER);
    let mut slot = maker.claim(0, 1, Who::client(), cpu, monotonic_ns());
    slot.record(timer, 5);
    slot.record(timer, 1_000_000_000);
    maker.write(&slot);
    let mut segment = Segment::open(&maker.path).unwrap();
    let mut previous = segment.snapshot(None).unwrap();
    let mut handle = |values: &[u64]| {
        for &value in values {
            slot.record(timer, value);
        }
        maker.write(&slot);
        let snapshot = segment.snapshot(Some(&previous)).unwrap();
        let interval = Interval::between(&segment, Some(&previous), &snapshot);
        previous = snapshot;
        interval.commands.first().map(|c| c.handle)
    };
    let one = handle(&[70_000]).unwrap();
    assert_eq!((one.min_seconds, one.max_seconds), (Some(7e-5), Some(7e-5)));
    let two = handle(&[10_000, 50_000]).unwrap();
    assert!((two.min_seconds.unwrap() / 1e-5 - 1.0).abs() < 0.0625);
    assert!((two.max_seconds.unwrap() / 5e-5 - 1.0).abs() < 0.0625);
    let record = handle(&[1, 50_000, 2_000_000_000]).unwrap();
    assert_eq!((record.min_seconds, record.max_seconds), (Some(1e-9), Some(2.0)));
    assert_eq!(handle(&[]), None);
}

#[test]
fn a_statistic_without_a_histogram_has_no_quantiles_and_only_new_extremes() {
    let (_folder, mut maker) = make();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let read = maker.stat("command::Query::read", TIMER);
    let mut slot = maker.claim(0, 1, Who::client(), cpu, monotonic_ns());
    let mut segment = Segment::open(&maker.path).unwrap();
    let mut previous = segment.snapshot(None).unwrap();
    let mut timing = |values: &[u64]| {
        for &value in values {
            slot.record(read, value);
        }
        slot.heads[1].hist.fill(0);
        maker.write(&slot);
        let snapshot = segment.snapshot(Some(&previous)).unwrap();
        let interval = Interval::between(&segment, Some(&previous), &snapshot);
        previous = snapshot;
        interval.commands[0].read
    };
    let first = timing(&[5, 80, 1000]);
    assert_eq!((first.min_seconds, first.max_seconds), (Some(5e-9), Some(1e-6)));
    assert_eq!((first.p50_seconds, first.p99_seconds), (None, None));
    let second = timing(&[60, 2000]);
    assert_eq!((second.min_seconds, second.max_seconds), (None, Some(2e-6)));
    assert_eq!(second.count, 2);
    for _ in 0..2 {
        let later = timing(&[70; 10]);
        assert_eq!((later.count, later.p50_seconds, later.max_seconds), (10, None, None));
    }
}

#[test]
fn the_class_of_an_account_is_that_of_the_directory_else_that_of_its_name() {
    let (_folder, mut maker) = make();
    let odd = maker.account_of_class("execute::wait::Neon:PageServerRead", 2);
    let read = maker.stat("execute::wait::IO:DataFileRead", ACCOUNT);
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let now = monotonic_ns();
    let mut slot = maker.claim(0, 1, Who::client(), cpu, now - 3_000_000);
    slot.switch(odd, now - 2_000_000);
    slot.switch(read, now - 1_000_000);
    maker.write(&slot);
    let mut segment = Segment::open(&maker.path).unwrap();
    let snapshot = segment.snapshot(None).unwrap();
    let interval = Interval::between(&segment, None, &snapshot);
    let class = |activity: &str| {
        interval.ledger.iter().find(|a| &*a.activity == activity).map(|a| a.class).unwrap()
    };
    assert_eq!(class("Neon:PageServerRead"), WaitClass::Io);
    assert_eq!(class("IO:DataFileRead"), WaitClass::Io);
    assert_eq!(class("cpu"), WaitClass::Cpu);
}

#[test]
fn probes_events_overflows_and_the_level_are_read() {
    let (_folder, mut maker) = make();
    maker.probe(0, 1, "import fsync", "");
    maker.probe(3, 2, "detour pq_getbyte", "its first bytes are branched to");
    for number in 1..=20 {
        maker.event(number, 1 + (number % 2) as u32, &format!("event {number}"));
    }
    maker.u64(header::OVERFLOW_SLOTS as u64, 3);
    maker.stat("x", VALUE);
    let segment = Segment::open(&maker.path).unwrap();
    let probes = segment.probes().unwrap();
    assert_eq!(probes.len(), 2);
    assert_eq!((probes[1].index, probes[1].state), (3, ProbeState::LeftOut));
    assert_eq!(probes[1].reason, "its first bytes are branched to");
    let events = segment.events(0).unwrap();
    let numbers: Vec<u64> = events.iter().map(|e| e.number).collect();
    assert_eq!(numbers, (5..=20).collect::<Vec<_>>());
    assert_eq!(segment.events(19).unwrap()[0].text, "event 20");
    assert_eq!(segment.overflows().unwrap().slots, 3);
    assert_eq!(segment.level().unwrap(), Level::Waits);
}

#[test]
fn the_level_is_set_without_touching_the_resets() {
    let (_folder, maker) = make();
    maker.level_word(0x0001_2301);
    assert_eq!(set_level(&maker.path, Level::Off).unwrap(), Level::Waits);
    let mut word = [0u8; 4];
    std::os::unix::fs::FileExt::read_exact_at(&maker.file, &mut word, header::LEVEL_WORD as u64)
        .unwrap();
    assert_eq!(u32::from_ne_bytes(word), 0x0001_2300);
    let link = maker.path.with_extension("link");
    std::os::unix::fs::symlink(&maker.path, &link).unwrap();
    assert!(matches!(set_level(&link, Level::Off), Err(Error::NotAFile { .. })));
}

#[test]
fn a_level_with_an_end_is_set_and_the_time_at_locks_counts_once() {
    let (_folder, maker) = make();
    let at = |offset: usize| maker.get_u64(offset as u64);
    let switch = LevelSwitch::open(&maker.path).unwrap();
    let end = LevelEnd { tick: monotonic_ns() + 60_000_000_000, then: Level::Waits };
    let setting = LevelSetting { level: Level::Locks, end: Some(end) };
    assert_eq!(switch.apply(setting), Level::Waits);
    let mut segment = Segment::open(&maker.path).unwrap();
    assert_eq!(segment.level_setting().unwrap(), setting);
    assert_eq!(switch.level_setting(), setting);
    let since = at(header::LOCKS_SINCE);
    assert!(since <= monotonic_ns() && since > 0);
    std::thread::sleep(Duration::from_millis(20));
    let first = segment.snapshot(None).unwrap();
    assert_eq!(first.locks_ticks, first.tick - since);
    std::thread::sleep(Duration::from_millis(20));
    // If the level is set again, the time continues; if it ends, the time stops.
    assert_eq!(switch.set(Level::Locks), Level::Locks);
    assert_eq!((at(header::LOCKS_SINCE), at(header::LEVEL_UNTIL)), (since, 0));
    assert_eq!(switch.set(Level::Off), Level::Locks);
    let spent = at(header::LOCKS_TICKS);
    assert!(spent >= 40_000_000 && at(header::LOCKS_SINCE) == 0);
    std::thread::sleep(Duration::from_millis(5));
    let second = segment.snapshot(Some(&first)).unwrap();
    assert_eq!(second.locks_ticks, spent);
    let interval = Interval::between(&segment, Some(&first), &second);
    let expected = (spent - first.locks_ticks) as f64 * 1e-9;
    assert!((interval.locks_seconds - expected).abs() < 1e-9, "{interval:?}");
    assert!(interval.locks_seconds < interval.interval_seconds);
}

#[test]
fn statements_are_paused_by_their_own_bit() {
    let (_folder, maker) = make();
    let switch = LevelSwitch::open(&maker.path).unwrap();
    let word = || maker.get_u64(header::PAUSE as u64) as u32;
    maker.u64(header::PAUSE as u64, 6);
    assert!(!switch.statements_paused());
    switch.pause_statements(true);
    assert!(switch.statements_paused());
    assert_eq!(word(), 7);
    assert_eq!(switch.level(), Level::Waits);
    switch.pause_statements(false);
    assert!(!switch.statements_paused());
    assert_eq!(word(), 6);
}

#[test]
fn a_process_killed_while_setting_the_level_does_not_block_the_reader() {
    let (_folder, maker) = make();
    maker.level_word(2);
    maker.u64(header::LOCKS_TICKS as u64, 77);
    let mut segment = Segment::open(&maker.path).unwrap();
    assert_eq!(segment.snapshot(None).unwrap().locks_ticks, 77);
}

#[test]
fn statistics_of_locks_and_functions_have_their_own_rows() {
    let (_folder, mut maker) = make();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let mut slot = maker.claim(0, 1, Who::client(), cpu, monotonic_ns());
    for (name, values) in [
        ("lwlock::ProcArray::held::execute::exclusive", &[1_000, 3_000][..]),
        ("lwlock::ProcArray::acquire::execute::exclusive", &[0, 50_000]),
        ("lwlock::ProcArray::wait::execute::exclusive", &[20_000, 20_000]),
        ("lwlock::ProcArray::failed::execute::exclusive", &[0]),
        ("lwlock::ProcArray::held::parse::shared", &[500]),
        ("lock::relation::wait::execute::ShareLock", &[7_000_000]),
        ("lock::deadlock::check::execute", &[9_000]),
        ("spin::delay::execute", &[11_000, 12_000]),
        ("function::XLogFlush::inclusive::execute", &[100_000, 300_000]),
        ("function::XLogFlush::exclusive::execute", &[40_000, 60_000]),
        ("function::XLogFlush::counted::execute", &[0]),
        ("edge::XLogFlush::pg_fsync", &[200_000]),
        ("file::wal::fsync", &[5]),
    ] {
        let stat = maker.stat(name, TIMER);
        for &value in values {
            slot.record(stat, value);
        }
    }
    maker.stat("tranche::4::ProcArray", NAME);
    maker.write(&slot);
    let now = monotonic_ns();
    maker.holds(0, &[(0x1000, now - 1_000_000, 4, 0), (0x2000, now - 5_000_000_000, 99, 1)]);
    maker.probe(70, 1, "function XLogFlush", "");
    maker.probe(71, 2, "function XLogFlushAll", "too short");

    let mut segment = Segment::open(&maker.path).unwrap();
    let snapshot = segment.snapshot(None).unwrap();
    assert_eq!(snapshot.nameless, 0);
    let interval = Interval::between(&segment, None, &snapshot);
    let near = |a: f64, b: f64| (a - b).abs() < 1e-12;

    assert_eq!(interval.lwlocks.len(), 2, "{:?}", interval.lwlocks);
    let row = &interval.lwlocks[0];
    assert_eq!((&*row.lock, &*row.mode, &*row.phase), ("ProcArray", "exclusive", "execute"));
    assert_eq!((row.held.count, row.acquire.count, row.wait.count, row.failed), (2, 2, 2, 1));
    assert!(near(row.held.seconds, 4e-6) && near(row.wait.seconds, 4e-5), "{row:?}");
    assert_eq!((row.acquire.min_seconds, row.acquire.p50_seconds), (Some(0.0), None));
    let both: Vec<_> = interval.lwlocks.iter().collect();
    let sum = LwlockRow::sum(&both, interval.clock.ticks_per_second);
    assert_eq!((sum.held.count, sum.failed, &*sum.lock), (3, 1, "ProcArray"));
    assert_eq!((sum.held.min_seconds, sum.held.max_seconds), (Some(5e-7), Some(3e-6)));

    let lock = &interval.locks[0];
    assert_eq!((&*lock.kind, &*lock.mode, lock.wait.count), ("relation", "ShareLock", 1));
    assert!(near(interval.deadlock_checks[0].timing.seconds, 9e-6));
    assert_eq!(interval.spin_delays[0].timing.count, 2);

    let function = &interval.functions[0];
    assert_eq!((&*function.name, function.calls, function.counted), ("XLogFlush", 3, 1));
    assert!(near(function.inclusive.seconds, 4e-4) && near(function.exclusive_seconds, 1e-4));
    assert!(near(function.exclusive_mean_seconds.unwrap(), 5e-5));
    let edge = &interval.edges[0];
    assert_eq!((&*edge.caller, &*edge.callee), ("XLogFlush", "pg_fsync"));
    assert_eq!(interval.functions_probed, 1);

    let names: Vec<&str> = interval.statistics.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["file::wal::fsync"]);
    let session = &interval.sessions[0];
    assert_eq!(session.holding_count, 2);
    let held: Vec<_> = session.holding.iter().map(|h| (h.lock.as_str(), h.mode)).collect();
    assert_eq!(held, [("ProcArray", "exclusive"), ("99", "shared")]);
    assert!(session.holding[1].seconds >= 5.0);
}

#[test]
fn edges_of_methods_have_the_names_of_their_methods() {
    let (_folder, mut maker) = make();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let mut slot = maker.claim(0, 1, Who::client(), cpu, monotonic_ns());
    let mut hashes = Vec::new();
    for name in [
        "function::A.a()::exclusive::one",
        "function::A.a()::inclusive::one",
        "function::B.b(int)::inclusive::two.more",
    ] {
        let index = maker.stat(name, TIMER) - 1;
        // The search begins before the entry, or at it.
        let hash = u64::from(70 + index) * u64::from(maker::DIRECTORY) + u64::from(index.min(2));
        maker.u64(maker.directory_at(index) + directory::HASH as u64, hash);
        hashes.push(hash);
    }
    let unknown = hashes[2] + 1;
    for (caller, callee, value) in
        [(hashes[1], hashes[2], 300), (hashes[2], hashes[2], 200), (hashes[1], unknown, 100)]
    {
        let stat = maker.stat(&format!("edge::#{caller:016x}::#{callee:016x}"), TIMER);
        slot.record(stat, value);
    }
    maker.write(&slot);
    let mut segment = Segment::open(&maker.path).unwrap();
    let snapshot = segment.snapshot(None).unwrap();
    let interval = Interval::between(&segment, None, &snapshot);
    let edges: Vec<_> = interval.edges.iter().map(|edge| (&*edge.caller, &*edge.callee)).collect();
    let ids = [hashes[1], unknown].map(|hash| format!("#{hash:016x}"));
    assert_eq!(
        edges,
        [
            ("one::A.a()", "two.more::B.b(int)"),
            ("two.more::B.b(int)", "two.more::B.b(int)"),
            (ids[0].as_str(), ids[1].as_str()),
        ]
    );
}

#[test]
fn a_replaced_file_is_noticed() {
    let (_folder, maker) = make();
    let segment = Segment::open(&maker.path).unwrap();
    assert!(!segment.replaced());
    let other = maker.path.with_extension("new");
    Maker::new(&other, SHAPE);
    std::fs::rename(&other, &maker.path).unwrap();
    assert!(segment.replaced());
}

#[test]
fn a_file_that_is_no_segment_is_refused_with_the_reason() {
    let (folder, maker) = make();
    let path = folder.path().join("other");
    let refuse = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        Segment::open(&path).unwrap_err()
    };
    let whole = std::fs::read(&maker.path).unwrap();
    let with = |at: usize, bytes: &[u8]| {
        let mut changed = whole.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        changed
    };
    assert!(matches!(refuse(b""), Error::NotASegment { .. }));
    assert!(matches!(refuse(&vec![0; 8192]), Error::NotASegment { .. }));
    assert!(matches!(refuse(b"TALLYSEG"), Error::Truncated { .. }));
    assert!(matches!(refuse(&whole[..100]), Error::Truncated { .. }));
    assert!(matches!(refuse(&whole[..whole.len() - 1]), Error::Truncated { .. }));
    assert!(matches!(refuse(&with(12, &9u32.to_ne_bytes())), Error::Version { found: 9, .. }));
    let swapped = with(8, &0x0403_0201u32.to_ne_bytes());
    assert!(matches!(refuse(&swapped), Error::ByteOrder { .. }));
    for (at, value) in [(72, 0u32), (72, 1 << 20), (76, 0), (80, 3), (80, 5000), (20, 335), (32, 7)]
    {
        let error = refuse(&with(at, &value.to_ne_bytes()));
        assert!(matches!(error, Error::Damaged { .. }), "{at}: {error}");
    }
    let far = with(header::BOOKS, &u64::MAX.to_ne_bytes());
    assert!(refuse(&far).to_string().contains("the region of books"), "{}", refuse(&far));
    assert!(matches!(Segment::open(folder.path()), Err(Error::NotAFile { .. })));
    let nowhere = folder.path().join("nowhere");
    assert!(matches!(Segment::open(&nowhere), Err(Error::NotFound { .. })));
}

#[test]
fn a_file_truncated_during_the_reading_is_an_error() {
    let (_folder, mut maker) = make();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    maker.claim(7, 1, Who::client(), cpu, monotonic_ns());
    let mut segment = Segment::open(&maker.path).unwrap();
    segment.snapshot(None).unwrap();
    maker.file.set_len(8192).unwrap();
    assert!(matches!(segment.snapshot(None), Err(Error::Truncated { .. })));
}

/// The next step of a session or of its environment.
#[derive(Debug, Clone)]
enum Step {
    Switch(usize, usize),
    SwitchLater(usize, usize),
    Record(usize, u64),
    End(usize),
    Snapshot,
    Reset,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..4usize, 0..4usize).prop_map(|(s, a)| Step::Switch(s, a)),
        2 => (0..4usize, 0..4usize).prop_map(|(s, a)| Step::SwitchLater(s, a)),
        2 => (0..4usize, 0u64..1 << 50).prop_map(|(s, v)| Step::Record(s, v)),
        2 => (0..4usize).prop_map(Step::End),
        4 => Just(Step::Snapshot),
        1 => Just(Step::Reset),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn time_is_conserved_whatever_happens(steps in steps()) {
        let (_folder, mut maker) = make();
        let accounts: Vec<u32> = ["a::cpu", "a::wait::IO:X", "b::cpu", "idle::wait::Client:ClientRead"]
            .iter()
            .map(|name| maker.stat(name, ACCOUNT))
            .collect();
        let value = maker.stat("file::bytes", VALUE);
        let mut group = maker.group(0);
        let mut sessions: Vec<Option<Slot>> = vec![None; 4];
        let mut generations = [0u32; 4];
        let mut resets = 0;
        let mut segment = Segment::open(&maker.path).unwrap();
        let mut previous = segment.snapshot(None).unwrap();
        // Sums of the intervals since the last reset, for comparison with the totals.
        let mut sums: HashMap<String, (u64, u64)> = HashMap::new();
        let mut frames: Option<Frame> = None;
        for step in steps.iter().chain([&Step::Snapshot]) {
            let now = monotonic_ns();
            let mut touched = None;
            match *step {
                Step::Switch(s, _) | Step::SwitchLater(s, _) | Step::Record(s, _) => {
                    if sessions[s].is_none() {
                        generations[s] += 1;
                        let mut slot =
                            maker.claim(s as u32, generations[s], Who::client(), accounts[0], now);
                        slot.resets = resets;
                        sessions[s] = Some(slot);
                    }
                    touched = Some(s);
                }
                _ => {}
            }
            let maker_tick = maker.get_u64(header::RESET_TICK as u64);
            let change = |slot: &mut Option<Slot>, f: &dyn Fn(&mut Slot)| {
                let slot = slot.as_mut().unwrap();
                if slot.resets != resets {
                    // The session first notices the reset.
                    let run = slot.heads[slot.run.unwrap()].stat;
                    slot.heads.clear();
                    slot.pend = None;
                    slot.run = Some(slot.head(run));
                    slot.run_start = slot.run_start.max(maker_tick);
                    slot.born = slot.born.max(maker_tick);
                    slot.resets = resets;
                }
                f(slot);
            };
            match *step {
                Step::Switch(s, a) => change(&mut sessions[s], &|slot| slot.switch(accounts[a], now)),
                Step::SwitchLater(s, a) => change(&mut sessions[s], &|slot| slot.switch_later(accounts[a], now)),
                Step::Record(s, v) => change(&mut sessions[s], &|slot| slot.record(value, v)),
                Step::End(s) => if sessions[s].is_some() {
                    change(&mut sessions[s], &|_| ());
                    maker.merge(sessions[s].take().unwrap(), &mut group, now);
                },
                Step::Reset => {
                    resets += 1;
                    maker.u64(header::RESET_TICK as u64, now);
                    maker.level_word(resets << 16 | 1);
                    group.heads.clear();
                    maker.write(&group);
                    maker.u64(maker.entry_at(group.index) + entry::SESSIONS as u64, 0);
                    sums.clear();
                    frames = None;
                }
                Step::Snapshot => {
                    let snapshot = segment.snapshot(Some(&previous)).unwrap();
                    let delta = Delta::between(Some(&previous), &snapshot);
                    for session in &delta.sessions {
                        let accounted: u64 = session.changes.iter()
                            .filter(|(id, _)| {
                                snapshot.directory.get(*id).unwrap().kind == StatKind::Account
                            })
                            .map(|(_, c)| c.total)
                            .sum();
                        prop_assert_eq!(accounted, session.lived);
                    }
                    let of_kinds = delta.kinds.iter().flat_map(|kind| (0..).zip(&kind.totals));
                    for (stat, total) in of_kinds.filter(|(_, total)| !total.change.is_zero()) {
                        let name = snapshot.directory.get(stat).unwrap().name.clone();
                        let sum = sums.entry(name).or_default();
                        sum.0 += total.change.count;
                        sum.1 += total.change.total;
                    }
                    let interval = Interval::between(&segment, Some(&previous), &snapshot);
                    let ledger: f64 = interval.ledger.iter().map(|a| a.timing.seconds).sum();
                    prop_assert!((ledger - interval.wall_seconds).abs() < 1e-9);
                    let mut expected = totals(&snapshot);
                    expected.retain(|_, sum| *sum != (0, 0));
                    prop_assert_eq!(&sums, &expected);
                    // Frames add up to the same totals, although the length of a tick has been measured again for each.
                    let mut frame = Frame::between(&segment, Some(&previous), &snapshot);
                    frame.clock.ticks_per_second = 1e9;
                    match &mut frames {
                        Some(frames) => frames.merge(&frame),
                        None => frames = Some(frame),
                    }
                    let mut added: HashMap<String, (u64, u64)> = HashMap::new();
                    for statistic in frames.iter().flat_map(|frame| &frame.statistics) {
                        let sum = added.entry(statistic.stat.name.clone()).or_default();
                        sum.0 += statistic.total.change.count;
                        sum.1 += statistic.total.change.total;
                    }
                    prop_assert_eq!(&added, &expected);
                    previous = snapshot;
                }
            }
            if let Some(slot) = touched.and_then(|s| sessions[s].as_ref()) {
                maker.write(slot);
            }
        }
    }
}
