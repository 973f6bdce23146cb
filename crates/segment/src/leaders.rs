// SPDX-License-Identifier: PostgreSQL
//! Parallel workers counted with their leaders.

use crate::interval::{Interval, SessionAccount, SessionRow};

impl Interval {
    /// Adds every parallel worker's time, accounts, commands and locks to its leader's row and drops
    /// the worker's. A worker whose leader has no slot keeps its row. The leader's current activity and
    /// the ledger, which is of the whole server, do not change.
    pub fn roll_up_workers(&mut self) {
        let rows = std::mem::take(&mut self.sessions);
        let is_led = |row: &SessionRow| {
            row.leader_pid.is_some_and(|leader| {
                leader != row.pid && rows.iter().any(|r| r.pid == leader && r.leader_pid.is_none())
            })
        };
        let (workers, mut kept): (Vec<_>, Vec<_>) =
            rows.iter().cloned().partition(|row| is_led(row));
        for worker in workers {
            let leader = kept
                .iter_mut()
                .find(|row| Some(row.pid) == worker.leader_pid && row.leader_pid.is_none());
            if let Some(leader) = leader {
                add(leader, worker);
            }
        }
        self.sessions = kept;
    }
}

fn add(leader: &mut SessionRow, worker: SessionRow) {
    leader.lived_seconds += worker.lived_seconds;
    leader.busy_seconds += worker.busy_seconds;
    leader.cpu_seconds += worker.cpu_seconds;
    leader.commands += worker.commands;
    leader.holding_count = leader.holding_count.saturating_add(worker.holding_count);
    leader.holding.extend(worker.holding);
    for account in worker.accounts {
        let same =
            |a: &&mut SessionAccount| a.phase == account.phase && a.activity == account.activity;
        match leader.accounts.iter_mut().find(same) {
            Some(own) => {
                own.count += account.count;
                own.seconds += account.seconds;
            }
            None => leader.accounts.push(account),
        }
    }
    leader.accounts.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
}
