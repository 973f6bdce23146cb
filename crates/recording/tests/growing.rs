// SPDX-License-Identifier: PostgreSQL
//! A recording while it grows: killed, resumed, rolled up, let go, its clock set, its files
//! damaged.

mod support;

use recording::{Range, Recording, RetentionPolicy, Writer};
use std::path::{Path, PathBuf};
use std::time::Duration;
use support::{assert_same, assert_same_spread, copy, files, Maker, MIDNIGHT, SECOND};

fn journals(folder: &Path) -> Vec<PathBuf> {
    files(folder).into_iter().filter(|path| path.extension().is_some_and(|e| e == "log")).collect()
}

/// As a recorder that is killed leaves it: nothing is closed.
fn abandon(maker: Maker) {
    std::mem::forget(maker.writer);
}

#[test]
fn a_truncated_journal_gives_its_complete_intervals() {
    let folder = tempfile::tempdir().unwrap();
    let mut maker = Maker::new(folder.path());
    maker.seconds(12);
    let journal = journals(folder.path()).pop().unwrap();
    let bytes = std::fs::read(&journal).unwrap();
    let ends: Vec<usize> =
        bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect();
    // Each line has an interval.
    assert_eq!(ends.len(), 12);
    for cut in (ends[0]..bytes.len()).step_by(97).chain(ends.iter().copied()) {
        std::fs::write(&journal, &bytes[..cut]).unwrap();
        let whole = ends.iter().filter(|end| **end <= cut).count();
        let recording = Recording::open(folder.path(), None).unwrap();
        let heads = recording.frame_rows(Range::ALL).unwrap();
        assert_eq!(heads.len(), whole, "cut at {cut}");
        assert_eq!(recording.problems(), Vec::<String>::new());
    }
    // Damage in the middle is reported.
    let mut damaged = bytes.clone();
    damaged[ends[2] + 20] ^= 1;
    std::fs::write(&journal, &damaged).unwrap();
    let recording = Recording::open(folder.path(), None).unwrap();
    assert_eq!(recording.frame_rows(Range::ALL).unwrap().len(), 3);
    assert_eq!(recording.problems().len(), 1);
    abandon(maker);
}

#[test]
fn a_recording_of_a_killed_recorder_is_continued() {
    let folder = tempfile::tempdir().unwrap();
    let mut maker = Maker::new(folder.path());
    maker.seconds(75);
    let first = maker.sum.clone().unwrap();
    abandon(maker);
    let copied = tempfile::tempdir().unwrap();
    copy(folder.path(), copied.path());
    let mut maker =
        Maker::with_retention(copied.path(), RetentionPolicy::default(), MIDNIGHT + 200 * SECOND);
    let last = maker.writer.resumed().unwrap();
    assert_eq!((last.frame, last.time_us, last.server), (75, MIDNIGHT + 75 * SECOND, 1));
    assert_eq!(journals(copied.path()).len(), 1, "what was left has become parts");
    maker.sum = Some(first);
    maker.seconds(20);
    let sum = maker.sum.clone().unwrap();
    maker.writer.close().unwrap();
    assert_eq!(journals(copied.path()).len(), 0);
    let recording = Recording::open(copied.path(), None).unwrap();
    let heads = recording.frame_rows(Range::ALL).unwrap();
    assert_eq!(heads.iter().map(|row| row.frame).collect::<Vec<_>>(), (1..=95).collect::<Vec<_>>());
    assert_same(&sum, &recording.sum(Range::ALL).unwrap(), 2.0);
}

#[test]
fn a_recording_that_has_ended_is_continued_within_the_hour() {
    let folder = tempfile::tempdir().unwrap();
    let mut sum = None;
    for run in 0..3 {
        let mut maker = Maker::with_retention(
            folder.path(),
            RetentionPolicy::default(),
            MIDNIGHT + run * 100 * SECOND,
        );
        maker.sum = sum.take();
        maker.seconds(20);
        sum = maker.sum.take();
        maker.writer.close().unwrap();
        let recording = Recording::open(folder.path(), None).unwrap();
        let frames = recording.frame_rows(Range::ALL).unwrap();
        assert_eq!(frames.len() as i64, 20 * (run + 1));
        assert_same(sum.as_ref().unwrap(), &recording.sum(Range::ALL).unwrap(), 6.0);
    }
}

#[test]
fn one_recorder_at_a_time_and_of_one_server() {
    let folder = tempfile::tempdir().unwrap();
    let maker = Maker::new(folder.path());
    let again =
        Writer::open(folder.path(), support::about(), RetentionPolicy::default()).unwrap_err();
    assert!(again.to_string().contains("another tally is recording"), "{again}");
    drop(maker);
    let other = recording::About { data_directory: "/other".into(), ..support::about() };
    let other = Writer::open(folder.path(), other, RetentionPolicy::default()).unwrap_err();
    assert!(other.to_string().contains("/data on machine, not of /other"), "{other}");
    let full = tempfile::tempdir().unwrap();
    std::fs::write(full.path().join("thesis.txt"), "years of work").unwrap();
    let error =
        Writer::open(full.path(), support::about(), RetentionPolicy::default()).unwrap_err();
    assert!(error.to_string().contains("not empty"), "{error}");
}

#[test]
fn compaction_keeps_every_sum() {
    let folder = tempfile::tempdir().unwrap();
    let hours = |n: u64| Duration::from_secs(n * 3600);
    let policy =
        RetentionPolicy { details: hours(0), tens: hours(1), sixties: hours(2), retention: None };
    let mut maker = Maker::with_retention(folder.path(), policy, MIDNIGHT);
    // Some minutes of three hours, and a gap in the first, which must not be bridged.
    maker.seconds(1000);
    maker.time_us += 95 * SECOND;
    for _ in 0..3 {
        maker.seconds(150);
        maker.time_us += 3450 * SECOND;
    }
    let sum = maker.sum.clone().unwrap();
    maker.writer.close().unwrap();
    // Closing has merged the last hour; a writer of the next year compacts everything.
    let year = MIDNIGHT + 365 * 24 * 3600 * SECOND;
    let before = Recording::open(folder.path(), None).unwrap();
    assert_same(&sum, &before.sum(Range::ALL).unwrap(), 2.0);
    let spread = before.sum(Range::ALL).unwrap();
    let lengths = |recording: &Recording| {
        let heads = recording.frame_rows(Range::ALL).unwrap();
        heads.iter().map(|row| row.interval_ns).max().unwrap() / 1_000_000_000
    };
    let mut maker = Maker::with_retention(folder.path(), policy, year);
    maker.seconds(1);
    maker.time_us += 60 * SECOND;
    maker.seconds(1);
    maker.writer.close().unwrap();
    let after = Recording::open(folder.path(), None).unwrap();
    let old = Range { from_us: i64::MIN, to_us: year };
    assert_eq!(lengths(&after), 60);
    assert!(after.frame_rows(old).unwrap().len() < 40);
    let rolled = after.sum(old).unwrap();
    assert_same(&sum, &rolled, 2.0);
    assert_same_spread(&spread, &rolled);
    // The gap is still one.
    let bounds = [MIDNIGHT + 1020 * SECOND, MIDNIGHT + 1080 * SECOND];
    let grid = after.grid(old, &bounds, 1, |_| None).unwrap();
    assert_eq!(grid.covered_ns, [0]);
    assert_eq!(after.problems(), Vec::<String>::new());
}

#[test]
fn only_rows_that_are_too_old_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let policy = RetentionPolicy {
        retention: Some(Duration::from_secs(3600)),
        ..RetentionPolicy::default()
    };
    let mut maker = Maker::with_retention(folder.path(), policy, MIDNIGHT);
    maker.seconds(30);
    maker.time_us += 3600 * SECOND;
    maker.seconds(30);
    maker.time_us += 3600 * SECOND;
    maker.seconds(1);
    maker.time_us += 60 * SECOND;
    maker.seconds(1);
    maker.writer.close().unwrap();
    let recording = Recording::open(folder.path(), None).unwrap();
    assert_eq!(recording.frame_rows(Range::ALL).unwrap().len(), 32);
}

#[test]
fn a_clock_that_leaps_forward_removes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let policy = RetentionPolicy {
        retention: Some(Duration::from_secs(3600)),
        ..RetentionPolicy::default()
    };
    let mut maker = Maker::with_retention(folder.path(), policy, MIDNIGHT);
    maker.seconds(70);
    maker.leap += 365 * 24 * 3600 * SECOND;
    maker.seconds(130);
    maker.writer.close().unwrap();
    let recording = Recording::open(folder.path(), None).unwrap();
    assert_eq!(recording.frame_rows(Range::ALL).unwrap().len(), 200);
}

#[test]
fn a_clock_that_is_set_back_counts_nothing_twice_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let noon = MIDNIGHT + 12 * 3600 * SECOND;
    let mut maker = Maker::with_retention(folder.path(), RetentionPolicy::default(), noon);
    maker.seconds(90);
    maker.time_us -= 3600 * SECOND;
    maker.seconds(90);
    // And back to where it had been: the same seconds a second time.
    maker.time_us += 3600 * SECOND - 90 * SECOND;
    maker.seconds(90);
    let sum = maker.sum.clone().unwrap();
    let open = Recording::open(folder.path(), None).unwrap();
    assert_same(&sum, &open.sum(Range::ALL).unwrap(), 2.0);
    maker.writer.close().unwrap();
    let recording = Recording::open(folder.path(), None).unwrap();
    assert_eq!(recording.frame_rows(Range::ALL).unwrap().len(), 270);
    assert_same(&sum, &recording.sum(Range::ALL).unwrap(), 2.0);
    let frames: Vec<_> =
        recording.frames(Range::ALL, None).unwrap().map(|frame| frame.unwrap()).collect();
    let mut whole = frames[0].clone();
    frames[1..].iter().for_each(|frame| whole.merge(frame));
    assert_same(&sum, &whole, 300.0);
}

#[test]
fn missing_and_truncated_files_are_reported_and_the_rest_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut maker = Maker::new(folder.path());
    maker.seconds(190);
    let statistics: Vec<PathBuf> = files(&folder.path().join("statistics"));
    assert_eq!(statistics.len(), 3);
    let bytes = std::fs::read(&statistics[0]).unwrap();
    for damage in 0..4 {
        let mut cut = bytes.clone();
        match damage {
            0 => cut.truncate(cut.len() / 2),
            1 => cut.clear(),
            2 => cut[40..90].fill(0xA5),
            _ => cut = b"PAR1 but nothing more than that PAR1".to_vec(),
        }
        std::fs::write(&statistics[0], &cut).unwrap();
        let recording = Recording::open(folder.path(), None).unwrap();
        let sum = recording.sum(Range::ALL).unwrap();
        assert!(!sum.statistics.is_empty());
        let problems = recording.problems();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("statistics/host=machine"), "{problems:?}");
        assert!(recording.frames(Range::ALL, None).unwrap().all(|frame| frame.is_ok()));
    }
    std::fs::remove_file(&statistics[0]).unwrap();
    let recording = Recording::open(folder.path(), None).unwrap();
    recording.sum(Range::ALL).unwrap();
    assert!(recording.problems()[0].contains("missing"), "{:?}", recording.problems());
}

#[test]
fn recordings_of_several_machines_are_separate() {
    let folder = tempfile::tempdir().unwrap();
    let mut maker = Maker::new(folder.path());
    maker.seconds(3);
    maker.writer.close().unwrap();
    for table in std::fs::read_dir(folder.path()).unwrap().flatten() {
        let of_host = table.path().join("host=machine");
        if of_host.is_dir() {
            copy(&of_host, &table.path().join("host=other"));
        }
    }
    let error = Recording::open(folder.path(), None).unwrap_err().to_string();
    assert!(error.contains("(machine, other)") && error.contains("--host"), "{error}");
    let recording = Recording::open(folder.path(), Some("other")).unwrap();
    assert_eq!(recording.frame_rows(Range::ALL).unwrap().len(), 3);
}
