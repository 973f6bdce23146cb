// SPDX-License-Identifier: PostgreSQL
//! Rows that are written can be read back.

mod support;

use recording::{Error, Range, Recording};
use segment::directory::StatKind;
use segment::Interval;
use std::time::Duration;
use support::{assert_same, assert_same_spread, Maker, MIDNIGHT, SECOND};

#[test]
fn any_range_is_the_sum_of_its_frames_and_steps_and_lines_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let mut maker = Maker::new(folder.path());
    maker.seconds(130);
    let range = Range { from_us: MIDNIGHT + 20 * SECOND, to_us: MIDNIGHT + 110 * SECOND };
    let recording = Recording::open(folder.path(), None).unwrap();
    let sum = recording.sum(range).unwrap();
    for step in [None, Some(1), Some(7), Some(10), Some(60)] {
        let frames = recording.frames(range, step.map(Duration::from_secs)).unwrap();
        let frames: Vec<_> = frames.map(Result::unwrap).collect();
        let mut whole = frames[0].clone();
        frames[1..].iter().for_each(|frame| whole.merge(frame));
        assert_same(&sum, &whole, 90.0);
        if step >= Some(10) {
            assert_same_spread(&sum, &whole);
        }
        if step.is_none() {
            assert_eq!(frames.len(), 90);
        }
    }
    let bounds: Vec<i64> = (0..=9).map(|i| range.from_us + i * 10 * SECOND).collect();
    let lines = ["execute::cpu", "execute::wait::IO:DataFileRead"];
    let grid = recording
        .grid(range, &bounds, 2, |series| lines.iter().position(|l| *l == series.stat.name))
        .unwrap();
    for (line, name) in grid.cells.iter().zip(lines) {
        let rows = support::statistics_of(&sum);
        let whole: f64 = rows.iter().filter(|row| row.1 == name).map(|row| row.3).sum();
        let seconds: f64 = line.iter().map(|cell| cell.total as f64 * 1e-9).sum();
        assert!((whole - seconds).abs() < 1e-8, "{whole} {seconds}");
    }
    assert!(grid.covered_ns.iter().all(|ns| ns.abs_diff(10_000_000_000) < 20));
}

#[test]
fn latencies_are_the_histograms_of_the_detail_intervals() {
    let folder = tempfile::tempdir().unwrap();
    let mut maker = Maker::new(folder.path());
    maker.seconds(100);
    maker.writer.close().unwrap();
    let recording = Recording::open(folder.path(), None).unwrap();
    let wanted = |series: &recording::Series| {
        series.stat.kind == StatKind::Timer && series.stat.command().is_some()
    };
    let (sum, latencies) = recording.sum_and_latencies(recording.range(), wanted).unwrap();
    assert_eq!(latencies.len(), 10);
    assert!(latencies.iter().all(|latency| latency.interval_ns.abs_diff(10_000_000_000) < 20));
    let values: u64 = latencies.iter().map(|latency| latency.histogram.count()).sum();
    assert_eq!(values, Interval::from_frame(&sum).commands_handled);
}

/// Number of bytes that this thread has read so far.
fn bytes_read() -> u64 {
    let counts = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    counts.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok()).unwrap()
}

#[test]
fn a_sum_with_latencies_reads_no_more_than_the_sum_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut maker = Maker::new(folder.path());
    maker.seconds(100);
    maker.writer.close().unwrap();
    let recording = Recording::open(folder.path(), None).unwrap();
    let range = recording.range();
    let begin = bytes_read();
    recording.sum(range).unwrap();
    let alone = bytes_read() - begin;
    let begin = bytes_read();
    let (_, latencies) = recording.sum_and_latencies(range, |_| true).unwrap();
    let both = bytes_read() - begin;
    assert_eq!(latencies.len(), 10);
    // Reading the counters themselves adds a hundred bytes or so.
    assert!(both <= alone + 200, "{both} bytes, {alone} for the sum");
    assert!(alone > 10_000, "{alone} bytes for the sum");
}

#[test]
fn invalid_ranges_and_directories_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let not = Recording::open(folder.path(), None).unwrap_err();
    assert!(matches!(not, Error::NotARecording { .. }), "{not}");
    let nothing = Recording::open(&folder.path().join("no"), None).unwrap_err();
    assert!(matches!(nothing, Error::NotARecording { .. }), "{nothing}");
    let mut maker = Maker::new(folder.path());
    let empty = Recording::open(folder.path(), None).unwrap_err();
    assert!(matches!(empty, Error::Empty { .. }), "{empty}");
    maker.seconds(3);
    let recording = Recording::open(folder.path(), None).unwrap();
    let (begin, end) = (MIDNIGHT, MIDNIGHT + 3 * SECOND);
    assert!(matches!(recording.clip(Some(end), Some(begin)), Err(Error::Backwards { .. })));
    assert!(matches!(recording.clip(Some(end), None), Err(Error::EmptyRange { .. })));
    assert!(matches!(recording.clip(None, Some(begin)), Err(Error::EmptyRange { .. })));
    assert_eq!(recording.clip(Some(begin - 9), None).unwrap(), recording.range());
    let elsewhere = Recording::open(folder.path(), Some("elsewhere")).unwrap_err();
    assert!(matches!(elsewhere, Error::NoSuchHost { .. }), "{elsewhere}");
    let file = folder.path().join("recording.json");
    let about = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, about.replace("\"format\": 2", "\"format\": 99")).unwrap();
    let newer = Recording::open(folder.path(), None).unwrap_err();
    assert!(matches!(newer, Error::Newer { found: 99, .. }), "{newer}");
    std::fs::write(&file, "{").unwrap();
    let damaged = Recording::open(folder.path(), None).unwrap_err();
    assert!(matches!(damaged, Error::Damaged { .. }), "{damaged}");
}
