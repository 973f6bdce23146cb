// SPDX-License-Identifier: PostgreSQL
//! Time by a clock that the test advances, so that every result of a reader can be checked exactly.
#![allow(missing_docs)]

mod maker;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use maker::{Maker, Shape, Who, ACCOUNT};
use segment::layout::{book, header, PEND_OPEN};
use segment::{
    Interval, Level, LevelEnd, LevelSetting, LevelSwitch, Moment, Origin, Parts, Segment,
};

const SHAPE: Shape = Shape { slots: 2, groups: 1, stats_per_book: 16 };
const SECOND: u64 = 1_000_000_000;

fn segment() -> (tempfile::TempDir, Maker, Segment) {
    let folder = tempfile::tempdir().unwrap();
    let maker = Maker::new(&folder.path().join("pg_tally.1.2"), SHAPE).with_virtual_clock();
    let segment = Segment::open(&maker.path).unwrap();
    (folder, maker, segment)
}

/// Supplies the whole file, as if its clock were a CPU counter with two ticks per nanosecond.
#[derive(Debug)]
struct Image(PathBuf);

impl Origin for Image {
    fn bring(&mut self, image: &File, _: Parts) -> Result<Moment, segment::Error> {
        let mut bytes = std::fs::read(&self.0).unwrap();
        let word = |at| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        let (tick, tick0) = (word(header::VIRTUAL_TICK), word(header::CLOCK_TICK0));
        let ns = word(header::CLOCK_NS0) + (tick - tick0) / 2;
        bytes[header::CLOCK_KIND..][..4].copy_from_slice(&2u32.to_ne_bytes());
        image.write_all_at(&bytes, 0).unwrap();
        Ok(Moment {
            tick,
            monotonic_ns: ns,
            realtime_ns: ns,
            slots: vec![tick; SHAPE.slots as usize],
            processors: 1,
            complete: true,
            sample_seconds: None,
        })
    }

    fn server(&self) -> &str {
        "elsewhere"
    }

    fn conninfo(&self) -> &str {
        ""
    }
}

#[test]
fn a_wait_in_progress_is_in_each_interval_as_long_as_the_interval() {
    let (_folder, mut maker, mut segment) = segment();
    let stat = maker.stat("execute::wait::IO:WALSync", ACCOUNT);
    maker.claim(0, 1, Who::client(), stat, maker.now());
    let mut previous = segment.snapshot(None).unwrap();
    for seconds in [8, 1, 3] {
        maker.advance(seconds * SECOND);
        let snapshot = segment.snapshot(Some(&previous)).unwrap();
        let interval = Interval::between(&segment, Some(&previous), &snapshot);
        let seconds = seconds as f64;
        assert_eq!((interval.interval_seconds, interval.wall_seconds), (seconds, seconds));
        assert_eq!(interval.busy_seconds, seconds);
        assert_eq!(interval.ledger[0].timing.seconds, seconds);
        assert_eq!(snapshot.realtime_ns - previous.realtime_ns, snapshot.tick - previous.tick);
        assert!(interval.exact);
        previous = snapshot;
    }
    let interval = Interval::between(&segment, None, &previous);
    assert_eq!(interval.sessions[0].since_seconds, 12.0);
}

#[test]
fn a_level_with_an_end_says_how_long_it_lasts() {
    let (_folder, maker, mut segment) = segment();
    let switch = LevelSwitch::open(&maker.path).unwrap();
    let end = LevelEnd { tick: maker.now() + 60 * SECOND, then: Level::Waits };
    switch.apply(LevelSetting { level: Level::Locks, end: Some(end) });
    let mut left = Vec::new();
    for seconds in [0, 45, 10] {
        maker.advance(seconds * SECOND);
        let snapshot = segment.snapshot(None).unwrap();
        left.push(Interval::between(&segment, None, &snapshot).level_left_seconds);
    }
    assert_eq!(left, [Some(60.0), Some(15.0), Some(5.0)]);
}

#[test]
fn the_time_at_level_locks_is_that_from_one_change_to_the_other() {
    let (_folder, maker, mut segment) = segment();
    let switch = LevelSwitch::open(&maker.path).unwrap();
    let first = segment.snapshot(None).unwrap();
    maker.advance(2 * SECOND);
    assert_eq!(switch.set(Level::Locks), Level::Waits);
    maker.advance(3 * SECOND);
    let second = segment.snapshot(Some(&first)).unwrap();
    maker.advance(4 * SECOND);
    assert_eq!(switch.set(Level::Waits), Level::Locks);
    maker.advance(5 * SECOND);
    let third = segment.snapshot(Some(&second)).unwrap();
    let locks = |from, to| {
        let interval = Interval::between(&segment, Some(from), to);
        (interval.locks_seconds, interval.interval_seconds)
    };
    assert_eq!(locks(&first, &second), (3.0, 5.0));
    assert_eq!(locks(&second, &third), (4.0, 9.0));
    assert_eq!(locks(&first, &third), (7.0, 14.0));
}

/// Hibernation: the counter restarts, a writer announces that as a reset, and the first writer that follows sets the
/// origin. A second process has not read the clock since.
#[test]
fn a_clock_that_begins_anew_is_a_new_beginning_and_time_goes_on() {
    const AFTER: u64 = 5 * SECOND;
    let (_folder, mut maker, mut segment) = segment();
    let stat = maker.stat("execute::wait::IO:WALSync", ACCOUNT);
    let mut follows = maker.claim(0, 1, Who::client(), stat, maker.now());
    maker.claim(1, 2, Who::client(), stat, maker.now());
    maker.advance(8 * SECOND);
    let previous = segment.snapshot(None).unwrap();
    let mut elsewhere = Segment::of_origin(Box::new(Image(maker.path.clone()))).unwrap();
    let previous_elsewhere = elsewhere.snapshot(None).unwrap();
    assert!(AFTER < segment.header().clock_tick0);

    maker.u64(header::VIRTUAL_TICK as u64, AFTER);
    maker.u64(header::RESET_TICK as u64, AFTER);
    maker.u64(header::CLOCK_NS0 as u64, AFTER);
    maker.u64(header::CLOCK_TICK0 as u64, AFTER);
    maker.level_word(maker.get_u32(header::LEVEL_WORD as u64) + 0x1_0000);
    (follows.resets, follows.born, follows.run_start) = (1, AFTER, AFTER);
    maker.write(&follows);
    maker.advance(2 * SECOND);
    let snapshot = segment.snapshot(Some(&previous)).unwrap();
    let interval = Interval::between(&segment, Some(&previous), &snapshot);
    assert_eq!(interval.interval_seconds, 2.0);
    assert_eq!(interval.busy_seconds, 4.0);
    assert_eq!(segment.header().clock_tick0, AFTER);
    assert_eq!(segment.clock().ns_of(snapshot.tick), AFTER + 2 * SECOND);
    assert!(interval.exact);

    // The same for a reader of images.
    elsewhere.refresh().unwrap();
    let snapshot = elsewhere.snapshot(Some(&previous_elsewhere)).unwrap();
    let interval = Interval::between(&elsewhere, Some(&previous_elsewhere), &snapshot);
    assert_eq!((interval.interval_seconds, interval.busy_seconds), (1.0, 2.0));
    assert_eq!(elsewhere.clock().ns_of(snapshot.tick), AFTER + SECOND);
}

/// A session waits for its client: each wake-up starts the account again, but the activity began at the end of the
/// message. A writer that does not report this has 0 there.
#[test]
fn a_session_is_idle_since_its_last_message_whatever_wakes_it() {
    for (account, known, since) in [
        ("idle::wait::Client:ClientRead", true, 82.0),
        ("idle in transaction::wait::Client:ClientRead", true, 82.0),
        ("idle in transaction::cpu", true, 82.0),
        ("idle in transaction::wait::Client:ClientRead", false, 2.0),
        ("simple query::wait::Client:ClientRead", true, 2.0),
        ("simple query::cpu", true, 2.0),
    ] {
        let (_folder, mut maker, mut segment) = segment();
        let stat = maker.stat(account, ACCOUNT);
        let mut slot = maker.claim(0, 1, Who::client(), stat, maker.now());
        slot.between = if known { maker.now() } else { 0 };
        maker.advance(80 * SECOND);
        slot.switch(stat, maker.now());
        maker.write(&slot);
        maker.advance(2 * SECOND);
        let snapshot = segment.snapshot(None).unwrap();
        let interval = Interval::between(&segment, None, &snapshot);
        assert_eq!(interval.sessions[0].since_seconds, since, "{account}, known: {known}");
    }
}

/// An interrupted wait is time of its account, and counts as an event when it is over.
#[test]
fn an_interrupted_wait_is_time_and_no_event_until_it_is_over() {
    let (_folder, mut maker, mut segment) = segment();
    let (lock, cpu) =
        (maker.stat("execute::wait::Lock:tuple", ACCOUNT), maker.stat("execute::cpu", ACCOUNT));
    let mut slot = maker.claim(0, 1, Who::client(), lock, maker.now());
    let mut found = Vec::new();
    maker.advance(3 * SECOND);
    slot.switch_later(cpu, maker.now());
    maker.write(&slot);
    for open in [true, false] {
        let at = maker.book_at(0) + book::PEND as u64;
        maker.u32(at, if open { PEND_OPEN } else { 0 });
        let snapshot = segment.snapshot(None).unwrap();
        let head = &snapshot.books[0].heads[0];
        found.push((
            head.count,
            head.total,
            head.max,
            snapshot.books[0].accounted(&snapshot.directory),
        ));
        assert_eq!(segment.ledger(0, 1).unwrap().unwrap().ticks.values().sum::<u64>(), 3 * SECOND);
    }
    assert_eq!(found, [(0, 3 * SECOND, 0, 3 * SECOND), (1, 3 * SECOND, 3 * SECOND, 3 * SECOND)]);
}
