// SPDX-License-Identifier: PostgreSQL
//! Adds parallel workers to their leaders.

use crate::interval::{Interval, SessionAccount, SessionRow};
use std::collections::{HashMap, HashSet};

impl Interval {
    /// Adds every parallel worker's time, accounts, commands and locks to its leader's row, and removes the
    /// worker's row. A worker whose leader has no slot keeps its row. The leader's current activity does not
    /// change, nor does the ledger, which covers the whole server.
    pub fn roll_up_workers(&mut self) {
        roll_up(&mut self.sessions);
    }
}

fn roll_up(sessions: &mut Vec<SessionRow>) {
    let rows = std::mem::take(sessions);
    let leads = |row: &&SessionRow| row.leader_pid.is_none();
    let leaders: HashSet<i32> = rows.iter().filter(leads).map(|row| row.pid).collect();
    let is_led = |row: &SessionRow| {
        row.leader_pid.is_some_and(|leader| leader != row.pid && leaders.contains(&leader))
    };
    let (workers, mut kept): (Vec<_>, Vec<_>) = rows.into_iter().partition(is_led);
    let mut places = HashMap::new();
    for (at, row) in kept.iter().enumerate().filter(|(_, row)| leads(row)) {
        places.entry(row.pid).or_insert(at);
    }
    for worker in workers {
        let place = worker.leader_pid.and_then(|leader| places.get(&leader));
        if let Some(leader) = place.and_then(|at| kept.get_mut(*at)) {
            add(leader, worker);
        }
    }
    *sessions = kept;
}

fn add(leader: &mut SessionRow, worker: SessionRow) {
    leader.lived_seconds += worker.lived_seconds;
    leader.busy_seconds += worker.busy_seconds;
    leader.cpu_seconds = leader.cpu_seconds.zip(worker.cpu_seconds).map(|(a, b)| a + b);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::HoldingRow;
    use crate::wait_class::WaitClass;

    fn account(phase: &str, activity: &str, count: u64, seconds: f64) -> SessionAccount {
        SessionAccount {
            phase: phase.into(),
            activity: activity.into(),
            count,
            seconds,
            idle: false,
        }
    }

    fn session(pid: i32, leader_pid: Option<i32>, accounts: Vec<SessionAccount>) -> SessionRow {
        SessionRow {
            pid,
            leader_pid,
            kind: String::new(),
            database: None,
            user: None,
            application: String::new(),
            client_address: None,
            phase: "execute".into(),
            activity: "cpu".into(),
            class: WaitClass::Cpu,
            since_seconds: 0.0,
            transaction_seconds: None,
            age_seconds: None,
            state: "active",
            lived_seconds: 8.0,
            busy_seconds: 4.0,
            cpu_seconds: Some(2.0),
            commands: 16,
            slot: 0,
            generation: 1,
            holding_count: 32,
            holding: vec![HoldingRow { lock: pid.to_string(), mode: "shared", seconds: 0.0 }],
            accounts,
            pauses: None,
        }
    }

    #[test]
    fn a_leader_has_the_sums_of_its_workers() {
        let cpu = |count, seconds| account("execute", "cpu", count, seconds);
        let mut rows = vec![
            session(3, Some(1), vec![cpu(3, 0.5), account("execute", "IO:WALSync", 1, 9.0)]),
            session(1, None, vec![cpu(2, 1.0), account("bind", "cpu", 1, 2.0)]),
            session(4, Some(1), vec![cpu(1, 0.25)]),
            session(5, Some(99), vec![]),
            session(6, Some(3), vec![]),
            session(7, Some(7), vec![]),
        ];
        roll_up(&mut rows);
        assert_eq!(rows.iter().map(|row| row.pid).collect::<Vec<_>>(), [1, 5, 6, 7]);
        let leader = &rows[0];
        let sums = (leader.lived_seconds, leader.busy_seconds, leader.cpu_seconds, leader.commands);
        assert_eq!(sums, (24.0, 12.0, Some(6.0), 48));
        let holds: Vec<_> = leader.holding.iter().map(|hold| hold.lock.as_str()).collect();
        assert_eq!((leader.holding_count, holds), (96, vec!["1", "3", "4"]));
        let accounts = [
            account("execute", "IO:WALSync", 1, 9.0),
            account("bind", "cpu", 1, 2.0),
            cpu(6, 1.75),
        ];
        assert_eq!(leader.accounts, accounts);
    }
}
