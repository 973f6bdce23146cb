// SPDX-License-Identifier: PostgreSQL
//! The golden segment, written by the C library, read by the Rust reader.
#![allow(missing_docs)]

use flate2::read::GzDecoder;
use segment::book::Book;
use segment::{EventKind, ProbeState, Segment, Snapshot};
use serde_json::{json, Map, Value};
use std::io::Read;
use std::path::Path;

fn golden() -> (tempfile::TempDir, Segment, Value) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../format/golden");
    let mut bytes = Vec::new();
    let packed = std::fs::File::open(folder.join("v1.seg.gz")).unwrap();
    GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    let reading = std::fs::read(folder.join("v1.json")).unwrap();
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("v1.seg");
    std::fs::write(&path, bytes).unwrap();
    let segment = Segment::open(&path).unwrap();
    (place, segment, serde_json::from_slice(&reading).unwrap())
}

#[test]
fn the_header_reads_as_it_was_written() {
    let (_place, segment, golden) = golden();
    let h = segment.header();
    let overflows = segment.overflows().unwrap();
    let read = json!({
        "segment_size": h.size,
        "clock_tick0": h.clock_tick0,
        "clock_ns0": h.clock_ns0,
        "created_realtime_ns": h.created_realtime_ns,
        "pid_namespace": h.pid_namespace,
        "slots": h.slots,
        "groups": h.groups,
        "stats_per_book": h.stats_per_book,
        "boot_id": h.boot_id,
        "host": h.host,
        "producer": h.producer,
        "server": h.server,
        "server_pid": h.server_pid,
        "server_port": h.server_port,
        "socket_dir": h.socket_dir,
        "overflow_slots": overflows.slots,
        "overflow_stats": overflows.statistics,
        "overflow_directory": overflows.directory,
        "overflow_groups": overflows.groups,
        "overflow_memory": overflows.memory,
        "lost_folds": overflows.lost_folds,
    });
    for (key, value) in read.as_object().unwrap() {
        assert_eq!(value, &golden["header"][key], "{key}");
    }
    assert!(!segment.is_of_this_boot());
}

#[test]
fn probes_and_events_read_as_they_were_written() {
    let (_place, segment, golden) = golden();
    let probes: Vec<Value> = segment
        .probes()
        .unwrap()
        .iter()
        .map(|p| {
            let state = if p.state == ProbeState::Installed { 1 } else { 2 };
            json!({"index": p.index, "state": state, "name": p.name, "reason": p.reason})
        })
        .collect();
    assert_eq!(Value::from(probes), golden["probes"]);
    let events: Vec<Value> = segment
        .events(0)
        .unwrap()
        .iter()
        .map(|e| {
            let kind = if e.kind == EventKind::Note { 1 } else { 2 };
            json!({"number": e.number, "tick": e.tick, "pid": e.pid, "kind": kind, "text": e.text})
        })
        .collect();
    assert_eq!(Value::from(events), golden["events"]);
}

/// A book as the golden reading has it: without what pends or runs.
fn book(book: &Book, snapshot: &Snapshot, golden: &Value) -> Value {
    let heads: Vec<Value> = book
        .heads
        .iter()
        .enumerate()
        .map(|(index, head)| {
            let stat = snapshot.directory.get(head.stat).unwrap();
            let pending = golden["pend"] == json!(index);
            let ticks = if pending { golden["pend_ticks"].as_u64().unwrap() } else { 0 };
            let buckets: Map<String, Value> =
                book.histogram(head).buckets().map(|(b, n)| (b.to_string(), n.into())).collect();
            json!({
                "index": index,
                "name": stat.name,
                "count": head.count - u64::from(pending),
                "total": head.total - head.running - ticks,
                "min": head.min,
                "max": head.max,
                "buckets": buckets,
            })
        })
        .collect();
    let calls: Map<String, Value> = book
        .calls
        .iter()
        .enumerate()
        .filter(|(_, &n)| n > 0)
        .map(|(i, &n)| (i.to_string(), n.into()))
        .collect();
    json!({ "index": book.slot, "calls": calls, "heads": heads })
}

#[test]
fn sessions_and_groups_read_as_they_were_written() {
    let (_place, mut segment, golden) = golden();
    let snapshot = segment.snapshot(None).unwrap();
    let word = golden["header"]["level_word"].as_u64().unwrap();
    assert_eq!(u64::from(snapshot.resets), word >> 8);
    assert_eq!(json!(snapshot.reset_tick), golden["header"]["reset_tick"]);
    assert_eq!(json!(snapshot.folds), golden["header"]["fold_count"]);
    let end = snapshot.level_end.as_ref().expect("the level has an end");
    assert_eq!(json!(end.tick), golden["header"]["level_until"]);
    assert_eq!(end.then, segment::Level::Waits);

    let entries = golden["entries"].as_array().unwrap();
    let books = golden["books"].as_array().unwrap();
    let mut seen = 0;
    for b in snapshot.books.iter().chain(&snapshot.groups) {
        let entry = entries.iter().find(|e| e["index"] == json!(b.slot)).unwrap();
        let identity = &b.identity;
        let read = json!({
            "generation": b.generation,
            "pid": b.pid,
            "leader_pid": b.leader_pid,
            "claimed_tick": b.claimed_tick,
            "database_id": b.database_id,
            "user_id": b.user_id,
            "kind": identity.kind,
            "database": identity.database,
            "user": identity.user,
            "application": identity.application,
        });
        for (key, value) in read.as_object().unwrap() {
            assert_eq!(value, &entry[key], "slot {}: {key}", b.slot);
        }
        let written = books.iter().find(|w| w["index"] == json!(b.slot)).unwrap();
        let holds: Vec<Value> = b
            .holds
            .iter()
            .map(|h| {
                let mode = u32::from(h.shared);
                json!({"lock": h.lock, "since": h.since, "tranche": h.tranche, "mode": mode})
            })
            .collect();
        assert_eq!(b.holding, holds.len() as u32, "slot {}", b.slot);
        assert_eq!(json!(holds), *written.get("holds").unwrap_or(&json!([])), "slot {}", b.slot);
        let state = &entry["state"];
        if state != &json!(5) && written["resets"] != json!(snapshot.resets) {
            // It has not noticed the reset: nothing of before counts.
            assert!(b.heads.iter().all(|h| h.count == 0 && h.total == h.running));
            assert_eq!(b.born, snapshot.reset_tick);
        } else {
            let read = book(b, &snapshot, written);
            for key in ["calls", "heads"] {
                assert_eq!(read[key], written[key], "slot {}: {key}", b.slot);
            }
        }
        seen += 1;
    }
    let used = entries.iter().filter(|e| [2, 3, 4, 5].map(Value::from).contains(&e["state"]));
    assert_eq!(seen, used.count());
}
