// SPDX-License-Identifier: PostgreSQL
//! So many sessions that several threads read them, with each snapshot built on the previous one:
//! the result is the same as that of a reader without a previous snapshot.
#![allow(missing_docs)]

mod maker;

use maker::{Maker, Shape, Slot, Who, TIMER};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use segment::layout::{book, bucket, header, slot_state};
use segment::{Delta, Segment, Snapshot};
use std::collections::BTreeMap;

const SHAPE: Shape = Shape { slots: 700, groups: 1, stats_per_book: 16 };
const STATISTICS: usize = 10;
const ROUNDS: usize = 25;

type Counts = BTreeMap<usize, u64>;

/// Slot, application_name, calls through the first probe, and for each statistic its name, count, total and histogram.
type Reading = (u32, String, u64, Vec<(String, u64, u64, Counts)>);

fn reading(snapshot: &Snapshot) -> Vec<Reading> {
    let name = |stat| snapshot.directory.get(stat).unwrap().name.clone();
    let books = snapshot.books.iter().map(|book| {
        let heads = book.heads.iter().map(|head| {
            let histogram = book.histogram(head).buckets().collect();
            (name(head.stat), head.count, head.total, histogram)
        });
        (
            book.slot,
            book.identity.application.clone(),
            book.calls.first().copied().unwrap_or(0),
            heads.collect(),
        )
    });
    books.collect()
}

/// The values recorded since the last snapshot: for each statistic, count, total and histogram.
type Recorded = BTreeMap<String, (u64, u64, Counts)>;

fn recorded(delta: &Delta<'_>) -> Recorded {
    // All are clients.
    assert!(delta.kinds.len() <= 1, "{} kinds of process", delta.kinds.len());
    let totals = delta.kinds.iter().flat_map(|kind| (0..).zip(&kind.totals));
    let changed = totals.filter(|(_, total)| !total.change.is_zero());
    let entry = |(stat, total): (u32, &segment::delta::Total)| {
        let figures = (total.change.count, total.change.total, total.histogram.buckets().collect());
        (delta.snapshot.directory.get(stat).unwrap().name.clone(), figures)
    };
    changed.map(entry).collect()
}

struct World {
    maker: Maker,
    random: StdRng,
    slots: Vec<Option<Slot>>,
    generations: Vec<u32>,
    resets: u32,
    recorded: Recorded,
    /// Calls through the first probe by each slot.
    calls: Vec<u64>,
}

impl World {
    fn stat(&mut self, number: usize) -> (String, u32) {
        let name = format!("command::Kind{number}::handle");
        let stat = self.maker.stat(&name, TIMER);
        (name, stat)
    }

    /// A session records a few values.
    fn record(&mut self, index: usize) {
        let Some(mut slot) = self.slots[index].take() else { return };
        if slot.resets != self.resets {
            slot.resets = self.resets;
            slot.heads.clear();
            self.calls[index] = 0;
        }
        self.calls[index] += 1;
        for _ in 0..self.random.random_range(1..4) {
            let number = self.random.random_range(0..STATISTICS);
            let (name, stat) = self.stat(number);
            let bits = self.random.random_range(1..45);
            let value = self.random.random_range(0..1 << bits);
            slot.record(stat, value);
            let sum = self.recorded.entry(name).or_default();
            (sum.0, sum.1) = (sum.0 + 1, sum.1 + value);
            *sum.2.entry(bucket(value)).or_default() += 1;
        }
        self.write(slot);
    }

    fn write(&mut self, slot: Slot) {
        let index = slot.index as usize;
        self.maker.write(&slot);
        self.maker.u64(self.maker.book_at(slot.index) + book::CALLS as u64, self.calls[index]);
        self.slots[index] = Some(slot);
    }

    /// A new session takes a free slot.
    fn begin(&mut self, index: usize) {
        self.generations[index] += 1;
        let (_, stat) = self.stat(0);
        let mut slot = self.maker.claim(
            index as u32,
            self.generations[index],
            Who { application: &format!("client {}", self.generations[index]), ..Who::client() },
            stat,
            self.maker.now(),
        );
        (slot.run, slot.resets) = (None, self.resets);
        self.calls[index] = 0;
        self.write(slot);
    }

    /// A session that has recorded nothing since the last snapshot disappears.
    fn vanish(&mut self, index: usize) {
        self.maker.set_state(index as u32, slot_state::FREE);
        self.slots[index] = None;
    }

    fn reset(&mut self) {
        self.resets += 1;
        self.maker.u64(header::RESET_TICK as u64, self.maker.now());
        self.maker.level_word(self.resets << 16 | 1);
        self.recorded.clear();
    }
}

#[test]
fn a_snapshot_based_on_another_equals_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let maker = Maker::new(&folder.path().join("many.seg"), SHAPE).with_virtual_clock();
    let count = SHAPE.slots as usize;
    let mut world = World {
        maker,
        random: StdRng::seed_from_u64(7),
        slots: vec![None; count],
        generations: vec![0; count],
        resets: 0,
        recorded: Recorded::new(),
        calls: vec![0; count],
    };
    let mut segment = Segment::open(&world.maker.path).unwrap();
    let mut previous = segment.snapshot(None).unwrap();
    for round in 0..ROUNDS {
        if round % 8 == 7 {
            world.reset();
        }
        for index in 0..count {
            // Every state of a slot occurs next to every other.
            match (world.random.random_range(0..6), world.slots[index].is_some()) {
                (0, true) => world.vanish(index),
                (1, true) => {
                    world.vanish(index);
                    world.begin(index);
                    world.record(index);
                }
                (0..=3, true) => world.record(index),
                (0..=3, false) => {
                    world.begin(index);
                    world.record(index);
                }
                _ => {}
            }
        }
        let snapshot = segment.snapshot(Some(&previous)).unwrap();
        let anew = Segment::open(&world.maker.path).unwrap().snapshot(None).unwrap();
        assert_eq!(reading(&snapshot), reading(&anew), "round {round}");
        let expected = std::mem::take(&mut world.recorded);
        let delta = Delta::between(Some(&previous), &snapshot);
        assert_eq!(recorded(&delta), expected, "round {round}");
        previous = snapshot;
    }
}
