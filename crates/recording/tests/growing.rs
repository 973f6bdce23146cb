// SPDX-License-Identifier: PostgreSQL
//! Recordings with damaged, old or foreign files. Recorders that are killed, roll-ups and clocks that are set are
//! simulated (crates/ship/tests/simulation).

mod support;

use recording::{Range, Recording, RetentionPolicy, Writer};
use std::path::{Path, PathBuf};
use std::time::Duration;
use support::{copy, files, Maker, MIDNIGHT, SECOND};

fn journals(folder: &Path) -> Vec<PathBuf> {
    files(folder).into_iter().filter(|path| path.extension().is_some_and(|e| e == "log")).collect()
}

/// Leaves the recording as a killed recorder does: nothing is closed.
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
    let mut ends: Vec<usize> =
        bytes.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1).collect();
    // The first line has the server, each other line an interval.
    assert_eq!(ends.len(), 13);
    ends.remove(0);
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
