// SPDX-License-Identifier: PostgreSQL
//! Who blocked whom at the end of a recorded interval.

use std::collections::HashMap;

use recording::{SessionHistoryRow, StatementTexts};
use segment::interval::SessionRow;

use super::{join, Forest, LastStatement, SessionLookup, Wait, Waits, MODES, TYPES};

/// The static name of a type or mode that a recording contains.
fn known(name: Option<&str>, all: &[&'static str]) -> &'static str {
    all.iter().find(|known| Some(**known) == name).copied().unwrap_or("unknown")
}

fn pid(pid: u64) -> i32 {
    i32::try_from(pid).unwrap_or(0)
}

impl Forest {
    /// The forest made from an interval's rows.
    pub fn recorded(rows: &[SessionHistoryRow], texts: &StatementTexts) -> Forest {
        let mut waits = Waits::new();
        for row in rows {
            let Some(waited) = row.lock_wait_ns else { continue };
            let own = i32::try_from(row.pid).unwrap_or(0);
            let wait = Wait {
                pid: own,
                lock: row.lock.as_deref().unwrap_or_default().to_string(),
                lock_type: known(row.lock_type.as_deref(), &TYPES),
                mode: known(row.lock_mode.as_deref(), &MODES),
                seconds: waited as f64 * 1e-9,
                blockers: row.blockers.iter().map(|blocker| pid(*blocker)).collect(),
                blocker_count: u16::try_from(row.blocker_count).unwrap_or(u16::MAX),
            };
            let leader = row.leader_pid.and_then(|pid| i32::try_from(pid).ok());
            join(&mut waits, leader.unwrap_or(own), wait);
        }
        let sessions: Vec<SessionRow> = rows.iter().map(SessionHistoryRow::session).collect();
        let mut by_pid = HashMap::new();
        for row in rows {
            by_pid.entry(row.pid).or_insert(row);
        }
        let last = |session: &SessionRow| {
            let row = by_pid.get(&i64::from(session.pid))?;
            let text = texts.get(&row.statement()?).map(|text| text.text.to_string());
            Some(LastStatement { queryid: row.queryid, text, seconds: None })
        };
        Forest::arranged(&waits, &SessionLookup { sessions: &sessions, last: &last })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::TextRow;

    fn row(pid: i64, application: &str, blockers: &[u64]) -> SessionHistoryRow {
        SessionHistoryRow {
            pid,
            application: application.into(),
            user: Some("joe".into()),
            database: Some("shop".into()),
            state: if blockers.is_empty() { "idle in transaction" } else { "active" }.into(),
            phase: "simple query".into(),
            activity: "Lock:tuple".into(),
            since_ns: 41_000_000_000,
            queryid: Some(-pid),
            lock: (!blockers.is_empty()).then(|| "row (0,1) of relation orders".into()),
            lock_type: (!blockers.is_empty()).then(|| "tuple".into()),
            lock_mode: (!blockers.is_empty()).then(|| "ExclusiveLock".into()),
            lock_wait_ns: (!blockers.is_empty()).then_some(2_000_000_000),
            blockers: blockers.to_vec(),
            blocker_count: blockers.len() as u32,
            ..SessionHistoryRow::default()
        }
    }

    #[test]
    fn a_recorded_interval_names_root_and_waiters() {
        let worker = SessionHistoryRow { leader_pid: Some(3), ..row(4, "waiter", &[1]) };
        let rows =
            [row(1, "forgetful", &[]), row(2, "waiter", &[1]), row(3, "waiter", &[2]), worker];
        let text = TextRow { text: "update orders set v = $1".into(), ..TextRow::default() };
        let texts = StatementTexts::from([((-1, 0, 0, true), text)]);
        let forest = Forest::recorded(&rows, &texts);
        assert_eq!((forest.blocked, forest.roots.len()), (2, 1), "a worker waits for its leader");
        let root = &forest.roots[0];
        assert_eq!((root.pid, root.waiters, root.queryid), (1, 2, Some(-1)));
        assert_eq!(root.name(), "session 1 (forgetful, joe@shop)");
        assert_eq!(root.doing(), "idle in transaction for 41 s");
        assert_eq!(
            forest.lines()[1..3],
            [
                "  last: update orders set v = $1",
                "  session 2 (waiter, joe@shop) waits for row (0,1) of relation orders (ExclusiveLock) for 2 s"
            ]
        );
    }
}
