// SPDX-License-Identifier: PostgreSQL
//! A gate before each pgbench transaction, made from an advisory lock. While it is closed, all sessions wait at
//! it and do nothing else, so their counts are stable.

use std::time::Duration;

use postgres::Client;
use scratch::{Cluster, Load, RunningPgbench};

/// Key of the advisory lock.
const LOCK: &str = "4711";

/// The statement that waits at the gate; it precedes a script.
pub fn enter() -> String {
    format!("select pg_advisory_xact_lock_shared({LOCK});\n")
}

/// pgbench's built-in TPC-B script, behind the gate.
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
    holder: Client,
    observer: Client,
}

impl Gate {
    /// A closed gate. Requires a long deadlock_timeout, because a session that waits for a lock wakes up after
    /// it.
    pub fn new(cluster: &Cluster) -> Self {
        let connect = || cluster.connect().unwrap();
        let mut gate = Self { holder: connect(), observer: connect() };
        gate.close();
        gate
    }

    /// Stops each session before its next transaction.
    pub fn close(&mut self) {
        self.holder.batch_execute(&format!("select pg_advisory_lock({LOCK})")).unwrap();
    }

    /// Lets all sessions through.
    pub fn open(&mut self) {
        self.holder.batch_execute(&format!("select pg_advisory_unlock({LOCK})")).unwrap();
    }

    /// Waits until `count` sessions sleep at the closed gate, and returns their pids.
    pub fn assembled(&mut self, count: usize) -> Vec<i32> {
        let sql = "select pid from pg_locks where locktype = 'advisory' and not granted";
        let mut pids = Vec::new();
        super::eventually("all sessions wait at the gate", || {
            let rows = self.observer.query(sql, &[]).unwrap();
            pids = rows.iter().map(|row| row.get::<_, i32>(0)).collect();
            pids.len() == count
        });
        // A session that pg_locks shows as waiting may not be asleep yet.
        super::eventually("all sessions are asleep", || pids.iter().all(|&pid| is_asleep(pid)));
        pids
    }
}

/// Whether a process sleeps until its latch is set. An emulator sleeps in another call.
fn is_asleep(pid: i32) -> bool {
    let of =
        |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let sleeps = of("stat").rsplit_once(')').is_some_and(|(_, rest)| rest.starts_with(" S"));
    sleeps && !of("syscall").starts_with(&format!("{} ", libc::SYS_futex))
}

/// Starts pgbench with this number of sessions, for a script that begins with [`enter`].
pub fn pgbench(cluster: &Cluster, sessions: u32, script: &str) -> RunningPgbench {
    let load = cluster.pgbench().load(Load::Script(script.into())).clients(sessions).jobs(2);
    load.duration(Duration::from_secs(3600))
        .arg("--define=scale=2")
        .arg("--define=turn=0")
        .spawn()
        .unwrap()
}
