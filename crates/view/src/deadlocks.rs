// SPDX-License-Identifier: PostgreSQL
//! Deadlocks, from the events of the sessions that the server cancelled (`pg_tally/lock/blocking.c` writes the text).

use segment::EventKind;

use crate::events::Row;

/// One of the two sessions that waited for each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadlockSession {
    /// Its process.
    pub pid: i32,
    /// "session 4711 (psql, joe@shop)"; an event that is full truncates it.
    pub name: String,
    /// The statement that it executed for its client; `None`: not known.
    pub queryid: Option<i64>,
}

/// A deadlock that the server ended. There may have been more than these two sessions in the circle.
#[derive(Debug, Clone, PartialEq)]
pub struct Deadlock {
    /// When the server ended it, seconds since 1970; `None`: not known.
    pub time: Option<f64>,
    /// The session whose statement the server cancelled.
    pub cancelled: DeadlockSession,
    /// The session for which it waited.
    pub other: DeadlockSession,
}

impl Deadlock {
    /// Reads the event; `None`: it is another one.
    pub fn from_event(row: &Row) -> Option<Deadlock> {
        if row.kind != EventKind::Blocked {
            return None;
        }
        let text = row.text.strip_prefix("deadlock of statements ")?;
        let (statements, sessions) = text.split_once(": ")?;
        let (of_cancelled, of_other) = statements.split_once(" and ")?;
        let (cancelled, other) = sessions.split_once(", cancelled, waited for ")?;
        let session = |name: &str, statement: &str| {
            let pid = name.split(' ').nth(1)?.parse().ok()?;
            let queryid = statement.parse().ok().filter(|id| *id != 0);
            Some(DeadlockSession { pid, name: name.to_owned(), queryid })
        };
        Some(Deadlock {
            time: row.time,
            cancelled: session(cancelled, of_cancelled)?,
            other: session(other, of_other)?,
        })
    }

    /// The statements of both, the same whoever was cancelled.
    pub fn statements(&self) -> [Option<i64>; 2] {
        let mut both = [self.cancelled.queryid, self.other.queryid];
        both.sort_unstable();
        both
    }

    /// The database of the cancelled session, if its name has it.
    pub fn database(&self) -> Option<&str> {
        let (_, database) = self.cancelled.name.strip_suffix(')')?.rsplit_once('@')?;
        Some(database)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: EventKind, text: &str) -> Row {
        Row {
            number: 1,
            time: Some(5.0),
            pid: 123,
            process: None,
            database: None,
            user: None,
            kind,
            text: text.to_owned(),
            payload: None,
            lost: 0,
        }
    }

    #[test]
    fn both_sessions_and_both_statements_are_read_from_the_text() {
        let text = "deadlock of statements -4711 and 0: session 123 (psql, joe@shop), cancelled, waited for session 456 (a";
        let found = Deadlock::from_event(&event(EventKind::Blocked, text)).unwrap();
        assert_eq!((found.cancelled.pid, found.other.pid), (123, 456));
        assert_eq!(found.cancelled.name, "session 123 (psql, joe@shop)");
        assert_eq!((found.cancelled.queryid, found.other.queryid), (Some(-4711), None));
        assert_eq!((found.database(), found.time), (Some("shop"), Some(5.0)));
        let turned = Deadlock {
            cancelled: found.other.clone(),
            other: found.cancelled.clone(),
            ..found.clone()
        };
        assert_eq!(found.statements(), turned.statements());
    }

    #[test]
    fn other_events_are_no_deadlocks() {
        let waits =
            "3 sessions wait for session 2834 (postgres@shop), idle in transaction for 1.4 s";
        assert_eq!(Deadlock::from_event(&event(EventKind::Blocked, waits)), None);
        for text in [
            "deadlock of statements 1 and 2",
            "deadlock of statements 1 and 2: x, cancelled, waited for y",
        ] {
            assert_eq!(Deadlock::from_event(&event(EventKind::Blocked, text)), None, "{text}");
        }
        let note = "deadlock of statements 1 and 2: session 1, cancelled, waited for session 2";
        assert_eq!(Deadlock::from_event(&event(EventKind::Note, note)), None);
    }
}
