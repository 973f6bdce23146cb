// SPDX-License-Identifier: PostgreSQL
//! A gate before each transaction of a pgbench: closed, all of its sessions come to stand
//! there, alive and doing nothing, so that they can be counted.

use std::time::Duration;

use postgres::Client;
use scratch::{Cluster, Load, RunningPgbench};

/// The gate's lock.
const LOCK: &str = "4711";

/// Statements that wait at the gate; in front of a script.
pub fn enter() -> String {
    format!("select pg_advisory_xact_lock_shared({LOCK});\n")
}

/// What pgbench does by itself, behind the gate.
pub fn tpcb() -> String {
    enter()
        + "\\set aid random(1, 100000 * :scale)
\\set bid random(1, 1 * :scale)
\\set tid random(1, 10 * :scale)
\\set delta random(-5000, 5000)
begin;
update pgbench_accounts set abalance = abalance + :delta where aid = :aid;
select abalance from pgbench_accounts where aid = :aid;
update pgbench_tellers set tbalance = tbalance + :delta where tid = :tid;
update pgbench_branches set bbalance = bbalance + :delta where bid = :bid;
insert into pgbench_history (tid, bid, aid, delta, mtime)
    values (:tid, :bid, :aid, :delta, current_timestamp);
end;
"
}

/// The gate, closed at first.
pub struct Gate {
    keeper: Client,
    observer: Client,
}

impl Gate {
    /// A new one. The server's deadlock_timeout is to be long, so that nobody who stands there
    /// wakes up.
    pub fn new(cluster: &Cluster) -> Self {
        let connect = || cluster.connect().unwrap();
        let mut gate = Self { keeper: connect(), observer: connect() };
        gate.close();
        gate
    }

    /// Let no more pass.
    pub fn close(&mut self) {
        self.keeper.batch_execute(&format!("select pg_advisory_lock({LOCK})")).unwrap();
    }

    /// Let them pass.
    pub fn open(&mut self) {
        self.keeper.batch_execute(&format!("select pg_advisory_unlock({LOCK})")).unwrap();
    }

    /// Wait until so many stand at the closed gate, asleep; their pids.
    pub fn assembled(&mut self, count: usize) -> Vec<i32> {
        let sql = "select pid from pg_locks where locktype = 'advisory' and not granted";
        let mut pids = Vec::new();
        super::eventually("all sessions stand at the gate", || {
            let rows = self.observer.query(sql, &[]).unwrap();
            pids = rows.iter().map(|row| row.get::<_, i32>(0)).collect();
            pids.len() == count
        });
        // Who is seen to wait may still be on its way to sleep.
        std::thread::sleep(Duration::from_millis(500));
        pids
    }
}

/// Start a pgbench of so many sessions, which come to the gate.
pub fn pgbench(cluster: &Cluster, sessions: u32, script: &str) -> RunningPgbench {
    let load = cluster.pgbench().load(Load::Script(script.into())).clients(sessions).jobs(2);
    load.duration(Duration::from_secs(3600)).arg("--define=scale=2").spawn().unwrap()
}
