// SPDX-License-Identifier: PostgreSQL
//! The session history: rolled up, and in a recording from before the table existed.

mod support;

use recording::{Range, Recording, RetentionPolicy, SessionHistoryRow};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use support::{assert_same, Maker, MIDNIGHT, SECOND};

/// Rows of three sessions in each interval.
fn seconds(maker: &mut Maker, n: usize) {
    for _ in 0..n {
        let (_, mut batch) = maker.batch();
        let (number, interval_ns) = (batch.frames[0].frame, batch.frames[0].interval_ns);
        for pid in [11, 12, 13] {
            let busy_ns = maker.dice.throw(1_000_000_000);
            batch.session_history.push(SessionHistoryRow {
                frame: number,
                time_us: maker.time_us,
                interval_ns,
                pid,
                process: "client backend".into(),
                application: "shop".into(),
                state: "active".into(),
                phase: "execute".into(),
                activity: "Lock:tuple".into(),
                since_ns: number * 1_000_000_007,
                busy_ns,
                cpu_ns: busy_ns / 3,
                queryid: Some(-pid),
                lock: (pid > 11).then(|| "transaction 742".into()),
                lock_wait_ns: (pid > 11).then_some(17),
                blockers: if pid > 11 { vec![11] } else { Vec::new() },
                ..SessionHistoryRow::default()
            });
        }
        maker.writer.push(batch).unwrap();
    }
}

fn busy(rows: &[SessionHistoryRow]) -> BTreeMap<i64, u64> {
    let mut sums = BTreeMap::new();
    rows.iter().for_each(|row| *sums.entry(row.pid).or_default() += row.busy_ns);
    sums
}

fn history(folder: &Path) -> Vec<SessionHistoryRow> {
    Recording::open(folder, None).unwrap().session_history(Range::ALL).unwrap()
}

/// Let upkeep with this policy do its work after a year.
fn year_later(folder: &Path, policy: RetentionPolicy) -> Vec<SessionHistoryRow> {
    let year = MIDNIGHT + 365 * 24 * 3600 * SECOND;
    let mut maker = Maker::with_retention(folder, policy, year);
    // Upkeep starts when a minute ends, and closing waits for it.
    maker.seconds(1);
    maker.time_us += 60 * SECOND;
    maker.seconds(1);
    maker.writer.close().unwrap();
    let recording = Recording::open(folder, None).unwrap();
    assert_eq!(recording.problems(), Vec::<String>::new());
    recording.session_history(Range::ALL).unwrap()
}

#[test]
fn an_hour_keeps_every_second_and_every_sum_and_later_a_sample_each_ten_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let mut maker = Maker::new(folder.path());
    seconds(&mut maker, 605);
    // Some rows are still in the journal.
    let written = history(folder.path());
    assert_eq!(written.len(), 3 * 605);
    assert_eq!((written[0].blockers.as_slice(), written[0].is_blocked()), (&[][..], false));
    assert_eq!((written[1].blockers.as_slice(), written[1].is_blocked()), (&[11][..], true));
    maker.writer.close().unwrap();
    let never = Duration::from_secs(u32::MAX.into());
    let policy =
        RetentionPolicy { details: Duration::ZERO, tens: never, sixties: never, retention: None };
    let hour = year_later(folder.path(), policy);
    assert_eq!(hour.len(), written.len());
    assert_eq!(busy(&hour), busy(&written), "sums of sessions are exact");
    assert_ne!(hour[7].busy_ns, written[7].busy_ns, "and their times are rounded");
    for (before, after) in written.iter().zip(&hour) {
        let key = |row: &SessionHistoryRow| (row.frame, row.pid, row.blockers.clone());
        assert_eq!(key(before), key(after));
        let off = before.since_ns.abs_diff(after.since_ns);
        assert!(off * 1024 <= before.since_ns, "{before:?} {after:?}");
    }
    let policy = RetentionPolicy { tens: Duration::ZERO, ..policy };
    let tens = year_later(folder.path(), policy);
    let ends: Vec<u64> = tens.iter().filter(|row| row.pid == 11).map(|row| row.frame).collect();
    assert_eq!((ends.len(), &ends[..3]), (61, &[10, 20, 30][..]));
    // A sample is unchanged, and has the length of its original interval.
    let sample = tens.iter().find(|row| (row.frame, row.pid) == (20, 12)).unwrap();
    let before = hour.iter().find(|row| (row.frame, row.pid) == (20, 12)).unwrap();
    assert_eq!(sample.interval_ns, before.interval_ns);
    assert!(sample.busy_ns.abs_diff(before.busy_ns) * 500 <= before.busy_ns);
    let frames = Recording::open(folder.path(), None).unwrap().frame_rows(Range::ALL).unwrap();
    assert_eq!(frames[1].interval_ns / sample.interval_ns, 10);
}

#[test]
fn a_recording_without_the_table_reads_as_before() {
    let folder = tempfile::tempdir().unwrap();
    let mut maker = Maker::new(folder.path());
    maker.seconds(70);
    let sum = maker.sum.clone().unwrap();
    maker.writer.close().unwrap();
    assert!(!folder.path().join("session_history").exists());
    let recording = Recording::open(folder.path(), None).unwrap();
    assert_eq!(recording.session_history(Range::ALL).unwrap(), []);
    let mut calls = 0;
    recording.each_session_history(Range::ALL, |_| calls += 1).unwrap();
    assert_eq!(calls, 0);
    assert_same(&sum, &recording.sum(Range::ALL).unwrap(), 2.0);
    assert_eq!(recording.problems(), Vec::<String>::new());
    // The recording can be continued, and then has the table.
    let mut maker = Maker::new(folder.path());
    maker.time_us += 100 * SECOND;
    seconds(&mut maker, 5);
    maker.writer.close().unwrap();
    assert_eq!(history(folder.path()).len(), 15);
}
