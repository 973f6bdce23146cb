// SPDX-License-Identifier: PostgreSQL
//! Details are divided by the intervals that they cover, whenever a recording begins and however it was rolled up.

mod support;

use recording::{
    Batch, Detail, FrameRow, Range, RecordedStatementRow, Recording, RetentionPolicy, Writer,
};
use std::path::Path;
use std::time::Duration;
use support::{about, server, Dice, MIDNIGHT, SECOND};

const HOUR: i64 = 3600 * SECOND;

/// A recorder of a server whose statements are its commands: details come at multiples of ten seconds, a few
/// milliseconds late, like intervals, and at the end.
struct MadeRecording {
    /// Commands of each interval, by its number minus 1.
    commands: Vec<u64>,
}

fn make(
    folder: &Path,
    policy: RetentionPolicy,
    (from_us, length_us): (i64, i64),
    marked: bool,
) -> MadeRecording {
    let to_us = from_us + length_us;
    let mut dice = Dice(length_us as u64);
    let mut ends = Vec::new();
    let mut second = from_us.div_euclid(SECOND) + 1;
    while second * SECOND + 3_000 < to_us {
        ends.push(second * SECOND + dice.throw(5) as i64 * 1_000);
        second += 1;
    }
    ends.push(to_us);
    let mut writer = Writer::open(folder, about(), policy).unwrap();
    writer.threaded = false;
    let servers = vec![server(1, from_us)];
    writer.push(Batch { servers, ..Batch::default() }).unwrap();
    let mut made = MadeRecording { commands: Vec::new() };
    let (mut before, mut calls) = (from_us, [0u64; 2]);
    for time_us in ends {
        let commands = dice.throw(20);
        made.commands.push(commands);
        // The second statement is rare.
        let rare = if dice.throw(40) == 0 { commands / 2 } else { 0 };
        calls = [calls[0] + commands - rare, calls[1] + rare];
        let frame = writer.next_frame();
        let ten = |us: i64| us.div_euclid(10 * SECOND);
        let is_detail = ten(time_us) != ten(before) || time_us == to_us;
        let mut batch = Batch::default();
        if is_detail {
            let taken = std::mem::take(&mut calls);
            batch.statements =
                (1..).zip(taken).filter(|pair| pair.1 > 0).map(row(frame, time_us)).collect();
        }
        let frames = vec![FrameRow { commands, ..interval(frame, before, time_us) }];
        if !marked {
            // Like an earlier version: the writer does not see the details with their interval.
            writer.push(std::mem::take(&mut batch)).unwrap();
        }
        writer.push(Batch { frames, ..batch }).unwrap();
        before = time_us;
    }
    // Hours later, minute by minute, files are rolled up.
    for minute in 0..3 {
        let frame = writer.next_frame();
        let time_us = MIDNIGHT + 3 * HOUR + minute * 60 * SECOND;
        let frames = vec![interval(frame, time_us - SECOND, time_us)];
        writer.push(Batch { frames, ..Batch::default() }).unwrap();
    }
    writer.close().unwrap();
    made
}

fn interval(frame: u64, from_us: i64, time_us: i64) -> FrameRow {
    FrameRow {
        frame,
        time_us,
        interval_ns: (time_us - from_us) as u64 * 1000,
        monotonic_ns: (time_us - MIDNIGHT) as u64 * 1000,
        server: 1,
        level: "waits".into(),
        ticks_per_second: 1e9,
        exact: true,
        ..FrameRow::default()
    }
}

fn row(frame: u64, time_us: i64) -> impl Fn((i64, u64)) -> RecordedStatementRow {
    move |(queryid, calls)| RecordedStatementRow {
        frame,
        time_us,
        queryid,
        toplevel: true,
        calls,
        exec_ns: calls * 1_000,
        buckets: vec![8],
        counts: vec![calls],
        ..RecordedStatementRow::default()
    }
}

/// Calls of all statements in each of these details.
fn calls(recording: &Recording, details: &[Detail]) -> Vec<u64> {
    let Some(range) = Detail::range(details) else { return Vec::new() };
    let block_of = |frame: u64| details.iter().position(|detail| detail.contains(frame));
    let found = recording.statements_over_time(range, details.len(), block_of).unwrap();
    // Sums of floating-point numbers depend on the order.
    let keys = |(all, _): &recording::StatementsOverTime| {
        all.statements().iter().map(|statement| statement.key).collect::<Vec<_>>()
    };
    assert!(found.as_ref().is_none_or(|found| keys(found).is_sorted()));
    let sum = |at: usize| {
        found.iter().flat_map(|(_, series)| series.values()).map(|sery| sery.calls[at]).sum()
    };
    let calls: Vec<u64> = (0..details.len()).map(sum).collect();
    let whole = found
        .as_ref()
        .map_or(0, |(all, _)| all.statements().iter().map(|statement| statement.calls()).sum());
    assert_eq!(calls.iter().sum::<u64>(), whole, "by block, and together");
    calls
}

/// Checks that each detail has as many calls as its intervals have commands.
fn assert_covered(recording: &Recording, details: &[Detail]) {
    let frames = recording.frame_rows(Range::ALL).unwrap();
    let commands = |detail: &Detail| -> u64 {
        frames.iter().filter(|row| detail.contains(row.frame)).map(|row| row.commands).sum()
    };
    let expected: Vec<u64> = details.iter().map(commands).collect();
    assert_eq!(calls(recording, details), expected);
    let covered = |detail: &Detail| -> u64 {
        frames.iter().filter(|row| detail.contains(row.frame)).map(|row| row.interval_ns).sum()
    };
    assert!(details.iter().all(|detail| detail.covered_ns == covered(detail) && detail.exact));
}

#[test]
fn whenever_it_begins_and_ends_all_readings_count_and_are_divided_by_their_own_intervals() {
    let never = Duration::from_secs(1 << 30);
    let policy = RetentionPolicy { details: never, tens: never, sixties: never, retention: None };
    for tenth in (0..100).step_by(7) {
        for length in [600, 2_000, 2_060, 2_450, 6_000, 6_060] {
            let folder = tempfile::tempdir().unwrap();
            let (from, length) = (MIDNIGHT + tenth * 100_000, length * 10_000);
            let made = make(folder.path(), policy, (from, length), tenth % 2 == 0);
            let recording = Recording::open(folder.path(), None).unwrap();
            let range = Range { from_us: from, to_us: from + length };
            let details = recording.details(range).unwrap();
            assert_covered(&recording, &details);
            assert_eq!(details.last().unwrap().last as usize, made.commands.len());
            let all: u64 = calls(&recording, &details).iter().sum();
            assert_eq!(all, made.commands.iter().sum::<u64>(), "{tenth} {length}");
            assert!((Detail::seconds(&details) - length as f64 * 1e-6).abs() < 1e-6);
        }
    }
}

#[test]
fn parts_that_follow_each_other_have_no_detail_in_common_and_lose_none() {
    let folder = tempfile::tempdir().unwrap();
    let from = MIDNIGHT + 3_700_000;
    make(folder.path(), RetentionPolicy::default(), (from, 95 * SECOND), true);
    let recording = Recording::open(folder.path(), None).unwrap();
    let of = |from_us: i64, to_us: i64| recording.details(Range { from_us, to_us }).unwrap();
    let end = from + 95 * SECOND;
    let whole = of(from, end);
    for cut in (0..95).map(|at| from + at * SECOND + 500_000) {
        let parts = [of(from, cut), of(cut, end)].concat();
        assert_eq!(parts, whole, "{cut}");
    }
}

#[test]
fn a_roll_up_leaves_each_detail_with_its_own_intervals() {
    let (now, never) = (Duration::ZERO, Duration::from_secs(1 << 30));
    let policy =
        |details, tens, sixties| RetentionPolicy { details, tens, sixties, retention: None };
    let range = Range { from_us: MIDNIGHT, to_us: MIDNIGHT + HOUR - SECOND };
    // Grades hour, 10s and 60s.
    for (policy, frames) in [
        (policy(now, never, never), 3000),
        (policy(now, now, never), 301),
        (policy(now, now, now), 51),
    ] {
        for marked in [true, false] {
            let folder = tempfile::tempdir().unwrap();
            let span = (MIDNIGHT + 300 * SECOND + 400_000, 3_000 * SECOND);
            let made = make(folder.path(), policy, span, marked);
            let recording = Recording::open(folder.path(), None).unwrap();
            let found = recording.frame_rows(range).unwrap().len();
            assert!(found.abs_diff(frames) <= 1, "{found} is not {frames}");
            let details = recording.details(range).unwrap();
            assert_covered(&recording, &details);
            let all: u64 = calls(&recording, &details).iter().sum();
            assert_eq!(all, made.commands.iter().sum::<u64>());
            assert!(details.len().abs_diff(51) <= 1, "a minute each: {}", details.len());
        }
    }
}
