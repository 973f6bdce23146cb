// SPDX-License-Identifier: PostgreSQL
//! Relations of segments made for tests: table and local entries together, with each operation counted once.
#![allow(missing_docs)]

mod maker;

use maker::relations::Reads;
use maker::{Maker, Shape, Who, ACCOUNT};
use segment::layout::{header, relation};
use segment::{RelationRow, Segment};
use std::path::PathBuf;

const SHAPE: Shape = Shape { slots: 3, groups: 2, stats_per_book: 16 };

fn made() -> (tempfile::TempDir, PathBuf, Maker) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("segment");
    let mut maker = Maker::new(&path, SHAPE);
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    for slot in 0..2 {
        maker.claim(slot, 1, Who::client(), cpu, segment::clock::monotonic_ns());
    }
    maker.with_relations(10);
    (folder, path, maker)
}

fn reads(rows: &[RelationRow]) -> Vec<(Option<u32>, u64, u64)> {
    let mut reads: Vec<_> =
        rows.iter().map(|row| (row.relfilenode, row.read.count, row.failed)).collect();
    reads.sort_unstable();
    reads
}

#[test]
fn entries_and_local_entries_add_up_also_if_an_entry_exists_twice() {
    let (_folder, path, maker) = made();
    maker.relation(0, &Reads::new(0, 3));
    maker.relation(1, &Reads::new(16384, 100));
    maker.relation(4, &Reads::new(16384, 10));
    maker.relation(5, &Reads::new(16385, 0));
    maker.local_relation(0, 0, 1, 1, &Reads::new(16384, 8));
    maker.local_relation(1, 9, 1, 1, &Reads::new(16384, 4));
    maker.local_relation(1, 10, 1, 5, &Reads::new(16385, 1));
    // A free local entry that still has content, and one for an entry that does not exist.
    maker.local_relation(1, 11, 0, 5, &Reads::new(16385, 1000));
    maker.local_relation(1, 12, 1, 4711, &Reads::new(16385, 1000));
    let relations = Segment::open(&path).unwrap().relations().unwrap().unwrap();
    let rows = relations.since(None);
    assert_eq!(
        reads(&rows),
        [(None, 3, 0), (Some(16384), 122, 25 + 2 + 2 + 1), (Some(16385), 1, 0)]
    );
    assert_eq!(rows[0].read.bytes, 122 * 8192);
    assert_eq!(relations.torn(), 0);
}

#[test]
fn a_slot_does_not_count_until_it_has_noticed_a_reset() {
    let (_folder, path, maker) = made();
    maker.relation(1, &Reads::new(16384, 100));
    maker.local_relation(0, 0, 1, 1, &Reads::new(16384, 8));
    let segment = Segment::open(&path).unwrap();
    let before = segment.relations().unwrap().unwrap();
    maker.level_word(1 << 16 | 1);
    maker.relation(1, &Reads::new(16384, 2));
    let now = segment.relations().unwrap().unwrap();
    assert_eq!(reads(&now.since(None)), [(Some(16384), 2, 0)]);
    assert_eq!(reads(&now.since(Some(&before))), [(Some(16384), 2, 0)], "all of it came since");
}

#[test]
fn an_endless_flush_is_read_as_it_is_and_reported_as_torn() {
    let (_folder, path, maker) = made();
    maker.relation(1, &Reads::new(16384, 100));
    maker.relation(2, &Reads::new(16385, 7));
    maker.local_relation(0, 0, 2, 1, &Reads::new(16384, 8));
    let relations = Segment::open(&path).unwrap().relations().unwrap().unwrap();
    assert_eq!(reads(&relations.since(None)), [(Some(16384), 100, 25), (Some(16385), 7, 1)]);
    assert_eq!(relations.torn(), 1);
}

#[test]
fn an_entry_being_created_is_no_relation_yet_and_an_unlinked_one_still_is() {
    let (_folder, path, maker) = made();
    for (number, state) in [(1, 1), (2, 3)] {
        maker.relation(number, &Reads::new(16383 + number, 5));
        maker.u32(maker.relation_at(number) + relation::STATE as u64, state);
    }
    maker.u64(header::OVERFLOW_RELATIONS as u64, 4);
    let relations = Segment::open(&path).unwrap().relations().unwrap().unwrap();
    assert_eq!(reads(&relations.since(None)), [(Some(16385), 5, 1)]);
    assert_eq!((relations.entries(), relations.capacity(), relations.overflow()), (1, 10, 4));
}

#[test]
fn a_segment_without_them_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("segment");
    Maker::new(&path, SHAPE);
    assert!(Segment::open(&path).unwrap().relations().unwrap().is_none());
}
