// SPDX-License-Identifier: PostgreSQL
//! A segment with a waiting session, written byte by byte. For test programs that include `maker`.

use std::path::PathBuf;

use segment::clock::monotonic_ns;
use tempfile::TempDir;

use crate::maker::{Maker, Shape, Who, ACCOUNT, TIMER};

pub const SHAPE: Shape = Shape { slots: 4, groups: 2, stats_per_book: 32 };

/// A session that has waited for a WAL sync for half a second. The segment is removed with the directory.
pub fn segment() -> (TempDir, PathBuf, Maker) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pg_tally.1.2");
    let mut maker = Maker::new(&path, SHAPE);
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let sync = maker.stat("execute::wait::IO:WALSync", ACCOUNT);
    let handle = maker.stat("command::Execute::handle", TIMER);
    let start = monotonic_ns() - 600_000_000;
    let mut slot = maker.claim(0, 1, Who::client(), cpu, start);
    slot.record(handle, 1000);
    slot.switch(sync, start + 100_000_000);
    maker.write(&slot);
    maker.holds(0, &[(0x1000, start, 4, 0)]);
    (folder, path, maker)
}
