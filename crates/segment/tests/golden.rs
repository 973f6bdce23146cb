// SPDX-License-Identifier: PostgreSQL
//! The golden segment, written by the C library, read by the Rust reader.
#![allow(missing_docs)]

use flate2::read::GzDecoder;
use segment::book::Book;
use segment::clients::{ClientActivity, ClientTotals};
use segment::event_payload::{
    Checkpoint, CheckpointClients, CheckpointFailed, CheckpointStarted, CheckpointWrites,
    SlowOperation, Written,
};
use segment::statements::{AccountTicks, Moments, COUNTER};
use segment::{
    layout, Payload, ProbeState, Segment, Snapshot, Statement, StatementKey, StatementsReading,
};
use serde_json::{json, Map, Value};
use std::io::Read;
use std::path::Path;

fn golden() -> (tempfile::TempDir, Segment, Value) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../format/golden");
    let mut bytes = Vec::new();
    let packed = std::fs::File::open(folder.join("v3.seg.gz")).unwrap();
    GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
    let reading = std::fs::read(folder.join("v3.json")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v3.seg");
    std::fs::write(&path, bytes).unwrap();
    let segment = Segment::open(&path).unwrap();
    (folder, segment, serde_json::from_slice(&reading).unwrap())
}

#[test]
fn segments_of_earlier_versions_are_refused_by_name() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../format/golden");
    let place = tempfile::tempdir().unwrap();
    for version in [1, 2] {
        let mut bytes = Vec::new();
        let packed = std::fs::File::open(folder.join(format!("v{version}.seg.gz"))).unwrap();
        GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
        let name = format!("v{version}.seg");
        let path = place.path().join(&name);
        std::fs::write(&path, bytes).unwrap();
        let error = Segment::open(&path).unwrap_err().to_string();
        assert!(error.contains(&name) && error.contains(&format!("version {version}")), "{error}");
    }
}

#[test]
fn the_header_reads_as_it_was_written() {
    let (_place, mut segment, golden) = golden();
    let since = segment.statements().unwrap().unwrap().since_ns();
    let h = segment.header();
    let overflows = segment.overflows().unwrap();
    let read = json!({
        "segment_size": h.size,
        "clock_tick0": h.clock_tick0,
        "clock_ns0": h.clock_ns0,
        "created_realtime_ns": h.created_realtime_ns,
        "statements_since_ns": since,
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
        "lost_folds": overflows.lost_merges, // old name
        "statements_dropped": overflows.statements_dropped,
        "statements_lost": overflows.statements_lost,
        "texts_cut": overflows.texts_cut,
        "overflow_files": segment.files_given_up().unwrap(),
        "relations_lost": overflows.relations_lost,
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
        .zip(golden["events"].as_array().unwrap())
        .map(|(e, golden)| {
            let kind = match golden["kind"].as_u64().unwrap() {
                1 => "note",
                2 => "warning",
                6 => "slow",
                _ => "checkpoint",
            };
            assert_eq!(e.kind.to_string(), kind);
            json!({
                "number": e.number,
                "tick": e.tick,
                "pid": e.pid,
                "kind": golden["kind"],
                "text": e.text,
            })
        })
        .collect();
    assert_eq!(Value::from(events), golden["events"]);
}

#[test]
fn payloads_of_events_read_as_they_were_written() {
    let (_place, segment, _golden) = golden();
    let payloads: Vec<Option<Payload>> =
        segment.events(0).unwrap().into_iter().map(|event| event.payload).collect();
    let before = ClientActivity::from_totals(30.012345678, 51234, 40.123456789);
    let during = ClientActivity::from_totals(26.951, 0, 0.0);
    let clients =
        Some(ClientTotals { resets: 2, commands: 60000, seconds: 50.0, off_stretches: 3 });
    let slow = |operation: &str, seconds, details: &str| {
        let (operation, details) = (operation.to_string(), details.to_string());
        Some(Payload::Slow(SlowOperation { operation, seconds, details }))
    };
    let written = [("slru", 4), ("pg_default", 1000), ("pg_global", 200), ("16385", 28)];
    let written = written.into_iter().chain([("others", 6)]);
    let buffers = |(tablespace, buffers): (&str, u64)| Written {
        tablespace: tablespace.to_string(),
        buffers,
    };
    let expected = [
        None,
        None,
        slow("Lock:transactionid", 1.500499999, ""),
        slow("sync", 7.02, ", after 1 write of 8192 bytes: pg_xact/000C"),
        slow("write", 1.003, ", 16384 bytes: base/5/16384: 2"),
        slow("extend", 2.0, ", failed: base/5/16385"),
        Some(Payload::Started(CheckpointStarted {
            reason: "wal".to_string(),
            before: Some(before),
            clients,
        })),
        Some(Payload::Completed(Box::new(Checkpoint {
            reason: "wal".to_string(),
            seconds: 26.951234567,
            slru_seconds: 0.002,
            write_seconds: 26.81,
            sync_seconds: 0.12,
            buffers: 1234,
            files_synced: 32,
            longest_sync_seconds: 0.08,
            longest_sync_file: Some("base/5/a b=c".to_string()),
            wal_added: 1,
            wal_removed: 2,
            wal_recycled: 3,
            ..Checkpoint::default()
        }))),
        Some(Payload::Writes(CheckpointWrites {
            target: Some(0.9),
            spread: Some(0.893667),
            interval_seconds: Some(30.001),
            buffers: written.map(buffers).collect(),
        })),
        Some(Payload::Clients(CheckpointClients {
            before: Some(before),
            during: Some(during),
            clients,
        })),
        Some(Payload::Failed(CheckpointFailed { reason: "shutdown".to_string(), seconds: 1.234 })),
    ];
    assert_eq!(payloads, expected);
}

/// A book as in the golden reading, without pending and running time.
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
                "amount": head.amount,
                "follows": head.follows,
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
    assert_eq!(json!(layout::FORMAT_VERSION), golden["header"]["version"]);
    let word = golden["header"]["level_word"].as_u64().unwrap();
    assert_eq!(u64::from(snapshot.resets), word >> 16);
    assert_eq!(json!(snapshot.reset_tick), golden["header"]["reset_tick"]);
    assert_eq!(json!(snapshot.merges), golden["header"]["merge_count"]);
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
        let client = written.get("client").and_then(Value::as_str).unwrap_or_default();
        assert_eq!(identity.client, client, "slot {}", b.slot);
        let transaction = written.get("transaction").and_then(Value::as_u64).unwrap_or(0);
        assert_eq!(b.transaction, transaction, "slot {}", b.slot);
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
            // Its owner has not noticed the reset, so nothing from before counts.
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

fn key(key: &StatementKey) -> Value {
    json!({
        "id": key.id,
        "database_id": key.database_id,
        "user_id": key.user_id,
        "toplevel": u8::from(key.toplevel),
    })
}

/// Seconds as ticks, which are nanoseconds here.
fn ticks(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// Compares count, sum and extremes; the sum of squares follows from the deviation.
fn assert_moments(read: Moments, golden: &Value, what: &str) {
    assert_eq!(json!(read.count), golden["count"], "{what}");
    assert_eq!(json!(ticks(read.seconds)), golden["total"], "{what}");
    assert_eq!(json!(read.min.map(ticks)), golden["min"], "{what}");
    assert_eq!(json!(read.max.map(ticks)), golden["max"], "{what}");
    let number = |key: &str| golden[key].as_f64().unwrap();
    let mean = number("total") / number("count");
    let variance = number("squares") / number("count") - mean * mean;
    let stddev = read.stddev.unwrap() * 1e9;
    assert!((stddev - variance.max(0.0).sqrt()).abs() < 1e-3, "{what}: {stddev}");
}

fn parts(parts: &[AccountTicks], statements: &StatementsReading) -> Value {
    let parts = parts.iter().map(|part| {
        let name = &statements.directory().get(part.stat).unwrap().name;
        json!({"name": name, "count": part.count, "ticks": part.ticks})
    });
    parts.collect()
}

/// Compares the counts with the golden reading, in which counters that code accesses by number are lists.
fn assert_counts(read: &Statement, golden: &Value) {
    assert_moments(read.exec(), &golden["exec"], "exec");
    assert_moments(read.plan(), &golden["plan"], "plan");
    let seconds = |s: Option<f64>| (s.unwrap() * 1e6).round() as u64;
    assert_eq!(json!(seconds(read.first_seen())), golden["first_us"]);
    assert_eq!(json!(seconds(read.last_seen())), golden["last_us"]);
    let lists = [
        ("blocks", "shared_hit shared_read shared_dirtied shared_written local_hit local_read local_dirtied \
                    local_written temp_read temp_written"),
        ("wal", "wal_records wal_fpi wal_bytes"),
        ("io_ticks", "read_ticks write_ticks temp_read_ticks temp_write_ticks"),
        ("io_ns", "server_read_ns server_write_ns server_temp_read_ns server_temp_write_ns \
                   server_local_read_ns server_local_write_ns"),
        ("jit", "jit_functions jit_generation_ns jit_inlinings jit_inlining_ns jit_optimizations \
                 jit_optimization_ns jit_emissions jit_emission_ns jit_deformings jit_deforming_ns"),
        ("failed", "failed_connection failed_data failed_integrity failed_transaction failed_rollback \
                    failed_syntax failed_resources failed_object failed_system failed_other"),
    ];
    for (counter, value) in COUNTER.iter().zip(read.counted()) {
        let listed = lists.iter().find_map(|(list, names)| {
            let at = names.split(' ').position(|name| name == counter.name)?;
            Some(&golden[list][at])
        });
        let written = listed.unwrap_or(&golden[counter.name]).as_u64().unwrap_or(0);
        assert_eq!(*value, written, "{}", counter.name);
    }
    let shown = read.counters();
    let both = |i: usize| ["io_ticks", "io_ns"].map(|key| golden[key][i].as_u64().unwrap());
    let io = [shown.io.read_seconds, shown.io.write_seconds];
    for (i, time) in io.into_iter().enumerate() {
        assert_eq!(ticks(time), both(i).iter().sum::<u64>(), "io {i}");
    }
    assert_eq!(json!(ticks(shown.user_seconds.unwrap())), golden["user_ns"]);
    assert_eq!(json!(shown.failed["08"]), golden["failed"][0]);
}

#[test]
fn statements_read_as_they_were_written() {
    let (_place, mut segment, golden) = golden();
    let statements = segment.statements().unwrap().unwrap();
    assert_eq!(json!(statements.evicted()), golden["header"]["statements_evicted"]);
    assert_eq!(json!(statements.dropped()), golden["header"]["statements_dropped"]);
    assert_eq!(json!(statements.lost()), golden["header"]["statements_lost"]);
    assert_eq!(json!(statements.texts_cut()), golden["header"]["texts_cut"]);
    assert_eq!(json!(statements.capacity()), golden["regions"]["statements"]["count"]);
    assert!(statements.paused());

    let written = &golden["statements"];
    let expected = written["reading"].as_array().unwrap();
    let mut read: Vec<&Statement> = statements.statements().iter().collect();
    read.sort_by_key(|statement| statement.key.id);
    // By number, the one with 64 bits is the last.
    assert_eq!(read.len(), expected.len());
    for (read, expected) in read.into_iter().zip(expected) {
        assert_eq!(key(&read.key), expected["key"]);
        let text = read.text.as_ref().unwrap();
        assert_eq!(json!(&*text.shown), expected["text"]);
        assert_eq!(json!(text.whole), expected["text_whole"]);
        assert_counts(read, &expected["counts"]);
        assert_eq!(parts(read.parts(), &statements), expected["parts"]);
        let buckets = read.histogram().buckets().map(|(b, n)| (b.to_string(), n.into()));
        assert_eq!(Value::Object(buckets.collect()), expected["buckets"]);
        let entry =
            written["table"].as_array().unwrap().iter().find(|e| e["key"] == key(&read.key));
        assert_eq!(json!(read.born), entry.unwrap()["born"]);
        assert_eq!(json!(read.since_us), entry.unwrap()["since_us"]);
    }

    // The segment is of another boot, so no account runs on beyond the written time.
    let current = &written["caches"][0]["current"];
    let [flight] = statements.in_flight() else { panic!("{:?}", statements.in_flight()) };
    assert_eq!((flight.slot, key(&flight.key)), (0, current["key"].clone()));
    assert_eq!(parts(flight.parts(), &statements), current["parts"]);
    let number = |key: &str| current[key].as_u64().unwrap();
    assert_eq!(ticks(flight.age_seconds), number("since") - number("begun"));
    assert_eq!(statements.database(16384), Some("app"));
}

#[test]
fn relations_read_as_they_were_written() {
    let (_place, segment, golden) = golden();
    let relations = segment.relations().unwrap().unwrap();
    assert_eq!(json!(relations.overflow()), golden["header"]["overflow_relations"]);
    assert_eq!(json!(relations.capacity() + 1), golden["regions"]["relations"]["count"]);
    assert_eq!(relations.torn(), 0);
    let mut rows = relations.since(None);
    rows.sort_by_key(|row| row.key);
    let read: Vec<Value> = rows
        .iter()
        .map(|row| {
            let all = [&row.read, &row.write, &row.extend, &row.sync, &row.truncate];
            let of = all.map(|timing| {
                let max = timing.max_seconds.map(ticks);
                json!({"count": timing.count, "bytes": timing.bytes, "ticks": ticks(timing.seconds), "max": max})
            });
            json!({
                "tablespace": row.key.tablespace,
                "database": row.key.database,
                "relation": row.key.relfilenode,
                "fork": row.key.fork,
                "backend": row.key.backend,
                "failed": row.failed,
                "of": of,
            })
        })
        .collect();
    assert_eq!(Value::from(read), golden["relations"]["reading"]);
    assert_eq!(json!(relations.entries()), json!(rows.len()));
    assert!(rows.iter().all(|row| row.database.as_deref() == Some("app")));
}
