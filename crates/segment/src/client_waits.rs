// SPDX-License-Identifier: PostgreSQL
//! How sessions wait for their clients. Unlike the rows of sessions, these sums survive when frames are added up, and a recording
//! has them.

use std::collections::HashMap;

use crate::own;
use crate::sessions::{Pauses, SessionRow};

/// A session and its waits for its client.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientWaits {
    /// The process.
    pub pid: i32,
    /// Its slot.
    pub slot: u32,
    /// Its ordinal among the owners of the slot.
    pub generation: u32,
    /// Its database; `None`: it has none, or it is not known.
    pub database: Option<String>,
    /// Its user, in the same form.
    pub user: Option<String>,
    /// application_name.
    pub application: String,
    /// The client's address, "local" for a Unix-domain socket.
    pub client_address: Option<String>,
    /// Commands handled.
    pub commands: u64,
    /// Time that was not idle, seconds.
    pub busy_seconds: f64,
    /// Waits for the client within a transaction.
    pub in_transaction: u64,
    /// Their time, seconds.
    pub in_transaction_seconds: f64,
    /// Waits for the client between transactions.
    pub between_transactions: u64,
    /// How those are spread; all 0: there were few, or it is not known.
    pub pauses: Pauses,
}

impl ClientWaits {
    /// Number of sessions of which a frame keeps them.
    const MOST: usize = 32;

    fn from_session(row: &SessionRow) -> Option<ClientWaits> {
        if row.kind != own::CLIENT || row.commands == 0 {
            return None;
        }
        let waits = |phase: &str| -> (u64, f64) {
            let of_phase = row.accounts.iter().filter(|a| a.idle && &*a.phase == phase);
            of_phase.fold((0, 0.0), |(n, seconds), a| (n + a.count, seconds + a.seconds))
        };
        let (in_transaction, in_transaction_seconds) = waits("idle in transaction");
        Some(ClientWaits {
            pid: row.pid,
            slot: row.slot,
            generation: row.generation,
            database: row.database.clone(),
            user: row.user.clone(),
            application: row.application.clone(),
            client_address: row.client_address.clone(),
            commands: row.commands,
            busy_seconds: row.busy_seconds,
            in_transaction,
            in_transaction_seconds,
            between_transactions: waits("idle").0,
            pauses: row.pauses.unwrap_or_default(),
        })
    }

    /// The waits of a frame's sessions. The session with the longest waits that fewer commands would
    /// save comes first.
    pub fn of_sessions(sessions: &[SessionRow]) -> Vec<ClientWaits> {
        let mut all = sessions.iter().filter_map(ClientWaits::from_session).collect();
        ClientWaits::limit(&mut all, ClientWaits::MOST);
        all
    }

    /// Keeps the sessions that waited longest, at most this many.
    pub fn limit(all: &mut Vec<ClientWaits>, most: usize) {
        all.sort_by(|a, b| {
            b.seconds().total_cmp(&a.seconds()).then_with(|| b.commands.cmp(&a.commands))
        });
        all.truncate(most);
    }

    /// Adds those of a later time.
    pub fn merge(all: &mut Vec<ClientWaits>, later: &[ClientWaits]) {
        let mut places: HashMap<_, usize> =
            all.iter().enumerate().map(|(at, waits)| (waits.session(), at)).collect();
        for waits in later {
            match places.get(&waits.session()).and_then(|at| all.get_mut(*at)) {
                Some(known) => known.add(waits),
                None => {
                    places.insert(waits.session(), all.len());
                    all.push(waits.clone());
                }
            }
        }
        ClientWaits::limit(all, ClientWaits::MOST);
    }

    /// Time of waits after which the client continued at once, seconds: fewer commands would save these
    /// waits.
    pub fn seconds(&self) -> f64 {
        self.in_transaction_seconds + self.pauses.short_seconds
    }

    /// What identifies the session.
    fn session(&self) -> (i32, u32, u32) {
        (self.pid, self.slot, self.generation)
    }

    fn add(&mut self, later: &ClientWaits) {
        self.commands = self.commands.saturating_add(later.commands);
        self.busy_seconds += later.busy_seconds;
        self.in_transaction = self.in_transaction.saturating_add(later.in_transaction);
        self.in_transaction_seconds += later.in_transaction_seconds;
        self.between_transactions =
            self.between_transactions.saturating_add(later.between_transactions);
        self.pauses.add(&later.pauses);
        self.application.clone_from(&later.application);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(pid: i32, seconds: f64) -> ClientWaits {
        ClientWaits {
            pid,
            commands: 100,
            busy_seconds: 0.5,
            in_transaction: 90,
            in_transaction_seconds: seconds,
            between_transactions: 2,
            pauses: Pauses { short: 10, short_seconds: 0.1, ..Pauses::default() },
            ..ClientWaits::default()
        }
    }

    #[test]
    fn sums_of_a_session_grow_and_those_who_wait_longest_are_kept() {
        let mut all = Vec::new();
        let later: Vec<ClientWaits> = (1..=40).map(|pid| waits(pid, f64::from(pid))).collect();
        ClientWaits::merge(&mut all, &later);
        assert_eq!((all.len(), all[0].pid, all[31].pid), (ClientWaits::MOST, 40, 9));
        ClientWaits::merge(&mut all, &[waits(9, 100.0)]);
        let first = &all[0];
        assert_eq!((first.pid, first.in_transaction_seconds), (9, 109.0));
        assert_eq!(
            (first.commands, first.in_transaction, first.between_transactions),
            (200, 180, 4)
        );
        assert_eq!((first.busy_seconds, first.pauses.short), (1.0, 20));
        // The next owner of a slot is another session.
        ClientWaits::merge(&mut all, &[ClientWaits { generation: 1, ..waits(9, 200.0) }]);
        assert_eq!((all[0].in_transaction_seconds, all[1].in_transaction_seconds), (200.0, 109.0));
    }
}
