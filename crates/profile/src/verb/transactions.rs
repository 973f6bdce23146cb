// SPDX-License-Identifier: PostgreSQL
//! Transactions during a profile, where the server answers.

use live::server::Access;
use pq::Client;
use segment::{Segment, SegmentPath};

/// A session that asks for the server's number of transactions.
pub struct Transactions {
    client: Client,
    before: i64,
}

impl Transactions {
    /// Begin to count; `None` where the server cannot be asked.
    pub fn start(path: &SegmentPath) -> Option<Transactions> {
        let access = Access::open_to_us(&Segment::open(path).ok()?)?;
        let mut client = access.connect(None).ok()?;
        let before = read(&mut client)?;
        Some(Transactions { client, before })
    }

    /// How many there were since the start.
    pub fn count(mut self) -> Option<u64> {
        let now = read(&mut self.client)?;
        u64::try_from(now - self.before).ok()
    }
}

fn read(client: &mut Client) -> Option<i64> {
    // Each query is a transaction of its own, so nothing is kept from the one before.
    let query = "/* tally */ select sum(xact_commit + xact_rollback)::int8 from pg_stat_database";
    client.query_one(query, &[]).ok()?.get(0).ok()?
}
