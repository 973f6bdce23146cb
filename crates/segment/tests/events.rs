// SPDX-License-Identifier: PostgreSQL
//! The ring of events, and the processes that recorded them.
#![allow(missing_docs)]

mod maker;

use maker::{Maker, Shape, Who, ACCOUNT};
use segment::clock::monotonic_ns;
use segment::layout::header;
use segment::{owner_at, EventKind, Segment};

const SHAPE: Shape = Shape { slots: 4, groups: 2, stats_per_book: 32 };

fn numbers(segment: &Segment, since: u64) -> Vec<u64> {
    segment.events(since).unwrap().iter().map(|event| event.number).collect()
}

#[test]
fn kinds_are_known_by_name_and_others_by_number() {
    let folder = tempfile::tempdir().unwrap();
    let maker = Maker::new(&folder.path().join("s"), SHAPE);
    for kind in 1..=5 {
        maker.event(u64::from(kind), kind, "x");
    }
    maker.event(6, 77, "x");
    let segment = Segment::open(&maker.path).unwrap();
    let events = segment.events(0).unwrap();
    assert_eq!((events[3].kind, events[4].kind), (EventKind::Slow, EventKind::Checkpoint));
    let names: Vec<String> = events.iter().map(|event| event.kind.to_string()).collect();
    assert_eq!(names, ["note", "warning", "blocked", "slow", "checkpoint", "event 77"]);
    assert_eq!((segment.event_count().unwrap(), segment.event_capacity()), (6, 16));
}

#[test]
fn a_ring_that_wrapped_gives_its_last_events_and_none_that_is_being_written() {
    let folder = tempfile::tempdir().unwrap();
    let maker = Maker::new(&folder.path().join("s"), SHAPE);
    let segment = Segment::open(&maker.path).unwrap();
    assert!(numbers(&segment, 0).is_empty());
    (1..=40).for_each(|number| maker.event(number, 1, "x"));
    assert_eq!(numbers(&segment, 0), (25..=40).collect::<Vec<_>>());
    assert_eq!(numbers(&segment, 38), [39, 40]);
    assert!(numbers(&segment, 40).is_empty());
    assert!(numbers(&segment, u64::MAX).is_empty());
    // Two more events have begun; their entries still contain the events that they replace.
    maker.u64(header::EVENT_COUNT as u64, 42);
    assert_eq!(numbers(&segment, 0), (27..=40).collect::<Vec<_>>());
    // An impossible count.
    maker.u64(header::EVENT_COUNT as u64, u64::MAX);
    assert!(numbers(&segment, 0).is_empty());
}

#[test]
fn an_owner_is_found_by_its_pid_and_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut maker = Maker::new(&folder.path().join("s"), SHAPE);
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let then = monotonic_ns() - 2_000_000_000;
    // The PID of the first session was reused.
    let second = Who { user: "bob", ..Who::client() };
    let third = Who { pid: Who::client().pid + 1, kind: "checkpointer", ..Who::client() };
    for (slot, who, since) in [(0, Who::client(), then), (2, second, then + 1000), (3, third, then)]
    {
        maker.claim(slot, 1, who, cpu, since);
    }
    let segment = Segment::open(&maker.path).unwrap();
    let pid = Who::client().pid as i32;
    let owners = segment.owners(&[pid]).unwrap();
    assert_eq!(owners.len(), 2);
    let user = |pid, tick| owner_at(&owners, pid, tick).map(|owner| owner.identity.user.as_str());
    assert_eq!(user(pid, then + 999), Some("alice"));
    assert_eq!(user(pid, then + 1000), Some("bob"));
    assert_eq!(user(pid, then - 1), None);
    assert_eq!(user(pid + 1, then), None);
    assert_eq!(segment.owners(&[pid, pid + 1]).unwrap().len(), 3);
    assert!(segment.owners(&[]).unwrap().is_empty());
}
