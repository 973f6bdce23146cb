// SPDX-License-Identifier: PostgreSQL
//! Statements in the table and in the sessions' caches.
#![allow(missing_docs)]

mod maker;

use maker::{sets_of, Counted, Maker, Shape, Who, ACCOUNT};
use proptest::prelude::*;
use segment::clock::monotonic_ns;
use segment::layout::{self, current, header, local_statement, set, statement};
use segment::statements::{in_progress, AccountRecord, Holder, WaitClass};
use segment::{
    Segment, SessionStatement, Statement, StatementKey, StatementsDelta, StatementsReading,
};
use std::collections::BTreeMap;

const SHAPE: Shape = Shape { slots: 3, groups: 2, stats_per_book: 16 };
const SETS: u32 = 4;
const UTF8: i32 = 6;

struct World {
    maker: Maker,
    _folder: tempfile::TempDir,
}

fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let maker = Maker::with_statements(&folder.path().join("pg_tally.1.2"), SHAPE, SETS);
    World { maker, _folder: folder }
}

impl World {
    fn read(&self) -> StatementsReading {
        Segment::open(&self.maker.path).unwrap().statements().unwrap().unwrap()
    }
}

fn key(id: u64) -> StatementKey {
    Counted::new(id, &[]).key
}

fn get(statements: &StatementsReading, id: u64) -> &Statement {
    statements.get(&key(id)).unwrap()
}

/// Converts seconds to nanoseconds, which are the ticks here.
fn ns(seconds: Option<f64>) -> Option<u64> {
    seconds.map(|s| (s * 1e9).round() as u64)
}

#[test]
fn a_segment_without_statements_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let maker = Maker::new(&folder.path().join("pg_tally.1.2"), SHAPE);
    assert!(Segment::open(&maker.path).unwrap().statements().unwrap().is_none());
}

#[test]
fn table_and_caches_are_added() {
    let world = world();
    let maker = &world.maker;
    maker.enter(&Counted::new(1, &[100, 200]).parts(&[(1, 2, 250)]), 7);
    maker.enter(&Counted::new(2, &[1000]), 8);
    maker.cache(0, 3, 1, &Counted::new(1, &[300]).parts(&[(2, 1, 10), (1, 1, 290)]));
    maker.cache(2, 63, 9, &Counted::new(1, &[50, 60]));
    // Only a session has this statement.
    maker.cache(1, 0, 5, &Counted { seen: (5_000_000, 6_500_000), ..Counted::new(3, &[40]) });
    let read = world.read();
    assert_eq!(read.statements().len(), 3);
    assert_eq!((read.entries(), read.capacity()), (2, 80));
    let one = get(&read, 1);
    assert_eq!((one.calls(), one.rows(), one.born), (5, 5, 7));
    assert_eq!(ns(one.exec().min), Some(50));
    assert_eq!(ns(one.exec().max), Some(300));
    assert_eq!(ns(one.exec().mean), Some(142));
    // The deviation of 50, 60, 100, 200, 300 is about 95, the mean about 142.
    assert_eq!(ns(one.exec().stddev), Some(95));
    assert_eq!(one.histogram().count(), 5);
    assert_eq!(ns(one.quantile(1.0)), Some(300));
    let parts: Vec<_> = one.parts().iter().map(|p| (p.count, p.ticks)).collect();
    // The directory has no name for either, so they are added up.
    assert_eq!(parts, [(4, 550)]);
    let three = get(&read, 3);
    assert_eq!((three.calls(), three.born, three.text.is_none()), (1, 0, true));
    assert_eq!((three.first_seen(), three.last_seen()), (Some(5.0), Some(6.5)));
    assert_eq!(three.histogram().count(), 1);
    assert_eq!(get(&read, 2).first_seen(), None);
}

#[test]
fn flushed_dropped_and_free_local_entries_do_not_count() {
    let world = world();
    let maker = &world.maker;
    let counted = Counted::new(1, &[100, 200]);
    maker.enter(&counted, 7);
    for index in 0..4 {
        maker.cache(0, index, 40 + u64::from(index), &counted);
    }
    let (_, [a, b]) = sets_of(&counted.key, SETS);
    // The first local entry was flushed into one of the sets, an earlier use of the second into the other ...
    maker.log(a, 0, 0, 40);
    maker.log(b, 0, 1, 40);
    // ... a reset has dropped the third, and only an earlier use of the fourth.
    maker.u64(maker.local_at(0, 2) + local_statement::DROP as u64, 42);
    maker.u64(maker.local_at(0, 3) + local_statement::DROP as u64, 42);
    assert_eq!(get(&world.read(), 1).calls(), 6);
    maker.log(b, 0, 1, 41);
    assert_eq!(get(&world.read(), 1).calls(), 4);
    maker.u32(maker.local_at(0, 3) + local_statement::STATE as u64, 0);
    assert_eq!(get(&world.read(), 1).calls(), 2);
}

#[test]
fn a_stopped_writer_blocks_no_reader() {
    let world = world();
    let maker = &world.maker;
    let number = maker.enter(&Counted::new(1, &[100]), 7);
    maker.u64(maker.statement_at(number), 3);
    for index in 0..64 {
        maker.cache(0, index, 1, &Counted::new(2 + u64::from(index), &[100]));
        maker.u64(maker.local_at(0, index), 1);
    }
    // Reading such a segment ends.
    let read = world.read();
    assert_eq!(read.statements().len(), 65);
    assert!(read.torn() > 0);
}

#[test]
fn texts_are_joined_and_marked_if_truncated() {
    let world = world();
    let maker = &world.maker;
    let long: String = (0..70).map(|i| format!("column_{i},\n")).collect();
    let one = maker.enter(&Counted::new(1, &[1]), 7);
    let two = maker.enter(&Counted::new(2, &[1]), 8);
    // The blocks of the two texts alternate.
    maker.give_text(one, long.as_bytes(), long.len() as u32, UTF8, (10, 2));
    maker.give_text(two, b"select \x07", 900, UTF8, (11, 2));
    let mut segment = Segment::open(&maker.path).unwrap();
    let read = segment.statements().unwrap().unwrap();
    let text = get(&read, 1).text.as_ref().unwrap();
    assert_eq!(&*text.shown, long);
    assert!(!text.is_cut());
    let text = get(&read, 2).text.as_ref().unwrap();
    assert_eq!((&*text.shown, text.kept, text.whole, text.is_cut()), ("select ?", 8, 900, true));
    // The entry of the first statement has another statement, whose text is where the other's was.
    let tag = sets_of(&key(3), SETS).0;
    let set = one / 20;
    maker.u32(maker.set_at(set) + u64::from(set::TAGS as u32 + one % 20 * 4), tag as u32);
    maker.u64(maker.statement_at(one) + statement::KEY as u64, 3);
    maker.u64(maker.statement_at(one) + statement::BORN as u64, 9);
    maker.give_text(one, b"commit", 6, UTF8, (10, 2));
    let read = segment.statements().unwrap().unwrap();
    assert_eq!(&*get(&read, 3).text.as_ref().unwrap().shown, "commit");
    assert_eq!(&*get(&read, 2).text.as_ref().unwrap().shown, "select ?");
    // A chain with a cycle, and one that leads to a block that does not exist.
    maker.give_text(one, long.as_bytes(), long.len() as u32, UTF8, (10, 0));
    maker.u32(maker.statement_at(two) + statement::TEXT as u64, u32::MAX);
    let read = segment.statements().unwrap().unwrap();
    assert!(get(&read, 3).text.as_ref().unwrap().kept <= long.len() as u32);
    assert_eq!(get(&read, 2).text.as_ref().unwrap().kept, 0);
}

#[test]
fn an_interval_has_the_growth_between_its_readings() {
    let world = world();
    let maker = &world.maker;
    let mut segment = Segment::open(&maker.path).unwrap();
    let old = Counted { plans: vec![10, 30], ..Counted::new(1, &[10, 5000]) };
    maker.enter(&old.clone().parts(&[(1, 3, 600)]), 7);
    maker.enter(&Counted::new(2, &[77, 77]), 7);
    maker.enter(&Counted::new(4, &[77]), 7);
    maker.cache(0, 0, 1, &Counted::new(3, &[5]));
    let earlier = segment.statements().unwrap().unwrap();

    let mut new = old.clone();
    new.times.extend([1000, 1100, 1200]);
    new.plans.extend([20, 40]);
    new.rows += 30;
    maker.enter(&new.parts(&[(1, 4, 700)]), 7);
    // One statement was evicted and entered again; another, which was only in a cache, was flushed.
    maker.enter(&Counted::new(2, &[80, 90, 95]), 1000);
    maker.enter(&Counted::new(3, &[5, 25]), 1001);
    maker.u32(maker.local_at(0, 0) + local_statement::STATE as u64, 0);
    maker.u64(header::STATEMENTS_EVICTED as u64, 3);
    let later = segment.statements().unwrap().unwrap();
    let delta = StatementsDelta::between(&earlier, &later);
    let of = |id| delta.statements().iter().find(|s| s.key == key(id));
    assert_eq!((delta.statements().len(), delta.evicted()), (3, 3));
    assert!(delta.seconds() > 0.0);
    let one = of(1).unwrap();
    assert_eq!((one.calls(), one.rows(), one.histogram().count()), (3, 30, 3));
    assert_eq!(ns(Some(one.exec().seconds)), Some(3300));
    let near = |found: Option<u64>, exact: f64| {
        assert!((found.unwrap() as f64 / exact - 1.0).abs() <= 0.0625, "{found:?} {exact}");
    };
    near(ns(one.exec().min), 1000.0);
    near(ns(one.exec().max), 1200.0);
    near(ns(one.quantile(0.5)), 1100.0);
    assert_eq!(ns(one.exec().stddev), Some(82));
    // A new extreme is exact; one between the earlier extremes cannot be known.
    assert_eq!((one.plan().count, ns(one.plan().min), ns(one.plan().max)), (2, None, Some(40)));
    assert_eq!((one.parts()[0].count, one.parts()[0].ticks), (1, 100));
    assert_eq!(of(2).unwrap().calls(), 3);
    assert_eq!(of(3).unwrap().calls(), 1);
    assert_eq!(ns(of(3).unwrap().exec().min), Some(25));
    assert!(of(4).is_none());

    // Without an earlier reading, the delta has all counts.
    let delta = StatementsDelta::total(&later);
    assert_eq!((delta.statements().len(), delta.seconds()), (4, 0.0));
    // After a reset of a statement that only a session had.
    let earlier = later;
    maker.enter(&Counted::new(1, &[3]), 7);
    let later = segment.statements().unwrap().unwrap();
    let delta = StatementsDelta::between(&earlier, &later);
    assert_eq!((delta.statements().len(), delta.statements()[0].calls()), (1, 1));
}

/// A segment that was created `seconds` after another one, with statements that began in the segment of `since`.
fn created(seconds: u64, since: u64) -> World {
    let world = world();
    world.maker.u64(header::CREATED_REALTIME_NS as u64, BEGAN + seconds * 1_000_000_000);
    world.maker.u64(header::STATEMENTS_SINCE_NS as u64, since);
    world
}

const BEGAN: u64 = 1_700_000_000_000_000_000;

#[test]
fn statements_that_were_handed_on_to_another_segment_are_counted_on() {
    let seen = |id, times: &[u64]| Counted { seen: (77, 99), ..Counted::new(id, times) };
    // Each segment numbers the accounts in the order in which they are met.
    let named = |mut world: World, names: [&str; 2]| {
        for name in names {
            world.maker.stat(name, ACCOUNT);
        }
        world
    };
    let (cpu, wait) = ("execute::cpu", "execute::wait::IO:WALSync");
    let first = named(created(0, BEGAN), [cpu, wait]);
    let parts = [(1, 3, 6000), (2, 1, 100)];
    first.maker.enter(&seen(1, &[1000, 2000, 3000]).parts(&parts), 7);
    first.maker.enter(&seen(2, &[50]), 8);
    first.maker.enter(&seen(4, &[50]), 8);
    first.maker.u64(header::STATEMENTS_EVICTED as u64, 5);
    let segment = Segment::open(&first.maker.path).unwrap();
    let nothing = segment.statements_at_creation().unwrap().unwrap();
    let earlier = first.read();
    let all = StatementsDelta::between(&nothing, &earlier);
    assert_eq!((all.statements().len(), all.evicted()), (3, 5));

    // The ticks were converted, and may have become fewer. Statement 2 did nothing; 4 was reset and executed again.
    let second = named(created(60, BEGAN), [wait, cpu]);
    let parts = [(2, 5, 6017), (1, 1, 100)];
    second.maker.enter(&seen(1, &[999, 1999, 2998, 10, 11]).parts(&parts), 900);
    second.maker.enter(&seen(2, &[49]), 900);
    second.maker.enter(&seen(3, &[5]), 950);
    second.maker.enter(&Counted { seen: (1000, 1001), ..Counted::new(4, &[6, 7]) }, 960);
    second.maker.u64(header::STATEMENTS_EVICTED as u64, 1);
    let later = second.read();
    assert!(later.continues(&earlier) && earlier.continues(&nothing));
    assert!(Segment::open(&second.maker.path).unwrap().statements_at_creation().unwrap().is_none());
    let delta = StatementsDelta::between(&earlier, &later);
    let mut calls: Vec<_> = delta.statements().iter().map(|s| (s.key.id, s.calls())).collect();
    calls.sort();
    assert_eq!((calls, delta.evicted()), (vec![(1, 2), (3, 1), (4, 2)], 1));
    let records = StatementsReading::records(&earlier, &later);
    let one = records.iter().find(|record| record.key == key(1)).unwrap();
    assert_eq!((one.sums.exec.count, one.parts.len(), one.parts[0].account.as_ref()), (2, 1, cpu));
    assert_eq!((one.parts[0].count, one.parts[0].ticks), (2, 17));

    // Statements of another segment, or of a writer that does not report their start, do not form an interval with
    // these.
    for since in [BEGAN + 1, 0] {
        let other = created(60, since);
        other.maker.enter(&seen(1, &[1000, 2000, 3000, 10]), 900);
        let later = other.read();
        assert!(!later.continues(&earlier));
        assert!(StatementsDelta::between(&earlier, &later).statements().is_empty());
        assert!(StatementsReading::records(&earlier, &later).is_empty());
        assert!(Segment::open(&other.maker.path)
            .unwrap()
            .statements_at_creation()
            .unwrap()
            .is_none());
        assert_eq!(later.total_records().len(), 1);
    }
}

#[test]
fn the_current_statement_counts_up_to_now() {
    let World { mut maker, _folder } = world();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let read = maker.stat("execute::wait::IO:DataFileRead", ACCOUNT);
    let lock = maker.stat("execute::wait::Lock:tuple", ACCOUNT);
    let now = monotonic_ns();
    let second = 1_000_000_000;
    let who = Who::client();
    // The session began 4 s ago. It waited for a lock for half a second, which is counted, computed for half
    // a second, read for a second until 2 s ago, which its book has not recorded yet, and has been waiting
    // since then.
    let mut slot = maker.claim(1, 4, who, read, now - 3 * second);
    slot.switch_later(lock, now - 2 * second);
    maker.write(&slot);
    let parts = [(cpu, 9, 2 * second), (lock, 2, second / 2)];
    maker.work(1, &Counted::new(5, &[]).parts(&parts), now - 6 * second, now - 4 * second);
    maker.u64(maker.cache_at(1) + current::WAITS as u64, second / 2);
    // A session that works for no statement, and one that has ended.
    maker.claim(0, 1, who, cpu, now);
    maker.work(0, &Counted::new(6, &[]), 0, 0);
    maker.work(2, &Counted::new(6, &[]), now, now);
    let statements = Segment::open(&maker.path).unwrap().statements().unwrap().unwrap();
    assert_eq!(statements.in_flight().len(), 1);
    assert!(statements.in_flight_of(1, 3).is_none());
    let flight = statements.in_flight_of(1, 4).unwrap();
    assert_eq!((flight.key, flight.pid), (key(5), std::process::id() as i32));
    let split = flight.split(statements.directory());
    let age = flight.age_seconds;
    assert!((6.0..6.9).contains(&age), "{age}");
    assert!((split.seconds() - age).abs() < 1e-6, "{split:?} {age}");
    assert!((split.class(WaitClass::Io) - 1.0).abs() < 1e-6, "{split:?}");
    assert!((split.class(WaitClass::Cpu) - 2.5).abs() < 1e-6, "{split:?}");
    assert!((2.5..3.4).contains(&split.class(WaitClass::Lock)), "{split:?}");
    assert_eq!(statements.database(5), Some("postgres"));
    assert_eq!((statements.user(10), statements.user(11)), (Some("alice"), None));
}

/// A message waits for ten seconds and then three more before its statement becomes known.
#[test]
fn time_before_the_statement_is_known_counts_and_moves_to_it_when_it_is_named() {
    const TEXT: &str = "select count(*) from t where a = ?";
    const SECOND: i64 = 1_000_000_000;
    let World { maker, _folder } = world();
    let mut maker = maker.with_virtual_clock();
    let lock = maker.stat("simple query::wait::Lock:relation", ACCOUNT);
    let (who, begun) = (Who::client(), maker.now());
    maker.claim(1, 4, who, lock, begun);
    let mut segment = Segment::open(&maker.path).unwrap();
    assert_eq!(segment.session_statement(1).unwrap(), SessionStatement::None);
    // It has executed statement 5.
    maker.work(1, &Counted::new(5, &[]), 0, 0);
    assert_eq!(segment.session_statement(1).unwrap(), SessionStatement::Ran(key(5)));
    maker.message(1, begun - 1, who, "another message's");
    maker.work(1, &Counted::new(5, &[]), begun, begun);
    maker.u32(maker.cache_at(1) + (current::KEY + layout::key::BEFORE) as u64, 1);
    assert_eq!(segment.session_statement(1).unwrap(), SessionStatement::Unnamed(None));
    maker.message(1, begun, who, TEXT);
    let statement = segment.session_statement(1).unwrap();
    assert_eq!((statement.key(), statement.message().map(|text| &*text.shown)), (None, Some(TEXT)));

    let growth =
        |earlier: Option<&StatementsReading>, later: &StatementsReading| -> Vec<(u64, i64)> {
            let records = match earlier {
                Some(earlier) => StatementsReading::records(earlier, later),
                None => later.total_records(),
            };
            let records = records.into_iter();
            let ticks = |parts: &[AccountRecord]| parts.iter().map(|part| part.ticks).sum::<i64>();
            let mut all: Vec<_> =
                records.map(|record| (record.key.id, ticks(&record.parts) / SECOND)).collect();
            all.sort();
            all
        };
    maker.advance(10 * SECOND as u64);
    let first = segment.statements().unwrap().unwrap();
    assert_eq!(growth(None, &first), [(0, 10)]);
    assert_eq!(first.in_flight_of(1, 4).unwrap().message.as_ref().unwrap().user_id, who.user_id);
    maker.advance(3 * SECOND as u64);
    let waits = segment.statements().unwrap().unwrap();
    assert_eq!(growth(Some(&first), &waits), [(0, 3)]);
    // The statement becomes known: all of the time belongs to statement 7.
    maker.work(1, &Counted::new(7, &[]), begun, begun);
    maker.advance(SECOND as u64);
    let named = segment.statements().unwrap().unwrap();
    assert_eq!(segment.session_statement(1).unwrap(), SessionStatement::Runs(key(7)));
    assert_eq!(growth(Some(&waits), &named), [(0, -13), (7, 14)]);
    // The message ended before a reader saw its statement.
    maker.work(1, &Counted::new(7, &[]), 0, 0);
    maker.enter(&Counted::new(7, &[1]).parts(&[(lock, 1, 14 * SECOND as u64)]), 1);
    let ended = segment.statements().unwrap().unwrap();
    assert_eq!(growth(Some(&waits), &ended), [(0, -13), (7, 14)]);
    // The holder of its time in the later reading: no interval has more time than has passed in it.
    let holders = |earlier, later| -> Vec<(u64, bool)> {
        let id = |holder| match holder {
            Holder::Statement(key) => key.id,
            Holder::Message(message) => u64::from(message.text.kept),
        };
        in_progress(Some(earlier), later)
            .map(|progress| (id(progress.holder), progress.is_later))
            .collect()
    };
    let text = TEXT.len() as u64;
    assert_eq!(holders(&first, &waits), [(text, true), (text, false)]);
    assert_eq!(holders(&waits, &named), [(7, true), (7, false)]);
    assert_eq!(holders(&waits, &ended), [(7, false)]);
}

/// Writes executions: times by statement and lot. Lot 0 is the table; the other lots are local entries of
/// caches.
fn put(maker: &Maker, lots: &BTreeMap<(u64, usize), Vec<u64>>) {
    for ((id, lot), times) in lots {
        let counted = Counted::new(*id, times).parts(&[(1, 1, times.iter().sum())]);
        if *lot == 0 {
            maker.enter(&counted, 1);
        } else {
            // Each gets a separate local entry, although a real cache has one local entry per statement.
            let index = *id as u32 * 4 + *lot as u32 / 3;
            maker.cache(*lot as u32 % 3, index, 1, &counted);
        }
    }
}

type Deals = Vec<(u64, usize, u64)>;

fn deals() -> impl Strategy<Value = Deals> {
    prop::collection::vec((0u64..12, 0usize..5, 1u64..1 << 40), 0..150)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Executions between two readings belong to the interval, wherever they are counted.
    #[test]
    fn an_interval_is_the_executions_in_it(first in deals(), second in deals()) {
        let world = world();
        let mut segment = Segment::open(&world.maker.path).unwrap();
        let mut lots: BTreeMap<(u64, usize), Vec<u64>> = BTreeMap::new();
        for (id, lot, time) in first {
            lots.entry((id, lot)).or_default().push(time);
        }
        put(&world.maker, &lots);
        let earlier = segment.statements().unwrap().unwrap();
        let before = lots.clone();
        let mut new: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (id, lot, time) in second {
            // A statement that is in the table stays there and keeps its entry.
            let held = before.keys().any(|key| *key == (id, 0));
            let lot = if lot == 0 && !held { 1 } else { lot };
            lots.entry((id, lot)).or_default().push(time);
            new.entry(id).or_default().push(time);
        }
        put(&world.maker, &lots);
        let later = segment.statements().unwrap().unwrap();
        let delta = StatementsDelta::between(&earlier, &later);
        prop_assert_eq!(delta.statements().len(), new.len());
        for found in delta.statements() {
            let times = &new[&found.key.id];
            let (min, max) = (times.iter().min().unwrap(), times.iter().max().unwrap());
            prop_assert_eq!(found.calls(), times.len() as u64);
            prop_assert_eq!(found.rows(), times.len() as u64);
            prop_assert_eq!(found.histogram().count(), times.len() as u64);
            prop_assert_eq!(found.parts()[0].ticks, times.iter().sum::<u64>());
            for (found, exact) in [(found.exec().min, *min), (found.exec().max, *max)] {
                let error = found.unwrap() * 1e9 / exact as f64 - 1.0;
                prop_assert!(error.abs() <= 0.0626, "{found:?} {exact}");
            }
        }
    }

    /// Executions are distributed over the table and local entries of caches; the sums are those of all
    /// executions.
    #[test]
    fn wherever_executions_lie_they_are_counted_once(
        deals in deals(),
    ) {
        let world = world();
        let mut lots: BTreeMap<(u64, usize), Vec<u64>> = BTreeMap::new();
        let mut all: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (id, lot, time) in deals {
            lots.entry((id, lot)).or_default().push(time);
            all.entry(id).or_default().push(time);
        }
        put(&world.maker, &lots);
        let read = world.read();
        prop_assert_eq!(read.statements().len(), all.len());
        for (id, times) in &all {
            let found = get(&read, *id);
            let n = times.len() as f64;
            let mean = times.iter().map(|&t| t as f64).sum::<f64>() / n;
            let variance = times.iter().map(|&t| (t as f64 - mean).powi(2)).sum::<f64>() / n;
            prop_assert_eq!(found.calls(), times.len() as u64);
            prop_assert_eq!(found.rows(), times.len() as u64);
            prop_assert_eq!(ns(found.exec().min), times.iter().min().copied());
            prop_assert_eq!(ns(found.exec().max), times.iter().max().copied());
            prop_assert_eq!(found.histogram().count(), times.len() as u64);
            prop_assert_eq!(found.parts()[0].ticks, times.iter().sum::<u64>());
            let stddev = found.exec().stddev.unwrap() * 1e9;
            let error = (stddev - variance.sqrt()).abs();
            prop_assert!(error <= mean * 1e-6 + variance.sqrt() * 1e-6, "{stddev} {variance}");
        }
    }
}
