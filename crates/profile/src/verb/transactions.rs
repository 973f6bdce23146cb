// SPDX-License-Identifier: PostgreSQL
//! Counts transactions during a profile, if the server can be asked.

use live::server::Access;
use pq::Client;
use segment::{Segment, SegmentPath};

/// A session that reads the server's number of transactions.
pub struct Transactions {
    client: Client,
    before: i64,
}

impl Transactions {
    /// Begins to count; `None` if the server cannot be asked.
    pub fn start(path: &SegmentPath) -> Option<Transactions> {
        let access = Access::open_to_us(&Segment::open(path).ok()?)?;
        let mut client = access.connect(None).ok()?;
        let before = read(&mut client)?;
        Some(Transactions { client, before })
    }

    /// Number of transactions since the start.
    pub fn count(mut self) -> Option<u64> {
        let now = read(&mut self.client)?;
        u64::try_from(now - self.before).ok()
    }
}

fn read(client: &mut Client) -> Option<i64> {
    // Each query is a transaction of its own, so no statistics snapshot is kept from the one before.
    let query = "/* tally */ select sum(xact_commit + xact_rollback)::int8 from pg_stat_database";
    client.query_one(query, &[]).ok()?.get(0).ok()?
}
