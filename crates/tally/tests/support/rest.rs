// SPDX-License-Identifier: PostgreSQL
//! Processes at rest: they wait for their next task, and have counted all that they did before.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use segment::{Book, Segment, Snapshot};

/// The book of a process.
pub fn book(snapshot: &Snapshot, pid: i32) -> &Book {
    snapshot.books.iter().find(|book| book.pid == pid).unwrap()
}

/// The account to which a process's time is charged.
pub fn account(snapshot: &Snapshot, pid: i32) -> Option<&str> {
    let book = snapshot.books.iter().find(|book| book.pid == pid)?;
    snapshot.directory.get(book.run()?).map(|stat| stat.name.as_str())
}

/// Whether this is a wait for a task: a client's command, a turn of a main loop, a lock that the test holds.
fn is_rest(account: &str) -> bool {
    ["::wait::Client:ClientRead", "::wait::Activity:", "::wait::Lock:advisory"]
        .iter()
        .any(|wait| account.contains(wait))
}

/// Seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64()
}

/// Waits until each of these processes has been seen at rest, one after the other; returns the two instants
/// between which that was, in seconds since 1970.
pub fn seen(segment: &mut Segment, pids: &[i32]) -> BTreeMap<i32, (f64, f64)> {
    let mut seen = BTreeMap::new();
    super::eventually("all processes are at rest", || {
        let before = now();
        let snapshot = segment.snapshot(None).unwrap();
        let after = now();
        for pid in pids {
            if account(&snapshot, *pid).is_some_and(is_rest) {
                seen.entry(*pid).or_insert((before, after));
            }
        }
        seen.len() == pids.len()
    });
    seen
}
