// SPDX-License-Identifier: PostgreSQL
//! Total time and number of all clients' messages since the last reset, at a snapshot.
//!
//! The checkpointer puts the same totals into its events, so that a reader can compute the activity
//! since then.

use serde::Serialize;

use crate::directory::StatId;
use crate::own;
use crate::snapshot::Snapshot;

/// The totals of all clients.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ClientTotals {
    /// Number of resets so far.
    pub resets: u32,
    /// Messages handled.
    pub commands: u64,
    /// Time spent handling messages.
    pub seconds: f64,
    /// Completed periods in which a process was not measured.
    pub off_stretches: u64,
}

/// The activity of all clients over a period.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClientActivity {
    /// Length of the period, seconds.
    pub seconds: f64,
    /// Messages handled.
    pub commands: u64,
    /// Messages handled per second.
    pub commands_per_second: Option<f64>,
    /// Mean time to handle one, seconds.
    pub mean_handle_seconds: Option<f64>,
    /// Time to handle all of them, seconds.
    #[serde(skip)]
    pub handle_seconds: f64,
}

impl ClientActivity {
    /// The activity over a period: messages handled, and the time that took; seconds.
    pub fn from_totals(seconds: f64, commands: u64, handle_seconds: f64) -> ClientActivity {
        ClientActivity {
            seconds,
            commands,
            commands_per_second: (seconds > 0.0).then(|| commands as f64 / seconds),
            mean_handle_seconds: (commands > 0).then(|| handle_seconds / commands as f64),
            handle_seconds,
        }
    }
}

impl ClientTotals {
    /// The activity since `then`, which was this many seconds earlier. `None` if part of it was not measured.
    pub fn since(&self, then: &ClientTotals, seconds: f64) -> Option<ClientActivity> {
        let whole = self.resets == then.resets && self.off_stretches == then.off_stretches;
        let commands = self.commands.checked_sub(then.commands).filter(|_| whole)?;
        let handle = (self.seconds - then.seconds).max(0.0);
        Some(ClientActivity::from_totals(seconds.max(0.0), commands, handle))
    }

    /// The totals at a snapshot.
    pub fn from_snapshot(snapshot: &Snapshot) -> ClientTotals {
        let directory = &snapshot.directory;
        let mut are_handled = vec![false; directory.len()];
        let mut is_off = vec![false; directory.len()];
        for (id, (handled, off)) in are_handled.iter_mut().zip(&mut is_off).enumerate() {
            if let Some(stat) = directory.get(id as StatId) {
                *handled = matches!(stat.command(), Some((_, true)));
                *off = &**stat.phase() == "off";
            }
        }
        let (mut commands, mut ticks, mut off_stretches) = (0u64, 0u64, 0u64);
        let books = snapshot.books.iter().chain(&snapshot.groups);
        let heads = books.flat_map(|book| book.heads.iter().map(move |head| (book, head)));
        for (book, head) in heads {
            let at = head.stat as usize;
            if are_handled.get(at) == Some(&true) {
                if own::is_client(&book.identity.kind) {
                    commands = commands.saturating_add(head.count);
                    ticks = ticks.saturating_add(head.total);
                }
            } else if is_off.get(at) == Some(&true) {
                off_stretches = off_stretches.saturating_add(head.count);
            }
        }
        ClientTotals {
            resets: snapshot.resets,
            commands,
            seconds: snapshot.clock.seconds(ticks),
            off_stretches,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activity_is_the_growth_if_all_of_it_was_seen() {
        let totals = |commands, seconds, off_stretches, resets| ClientTotals {
            resets,
            commands,
            seconds,
            off_stretches,
        };
        let then = totals(100, 5.0, 1, 2);
        let figures = totals(300, 6.0, 1, 2).since(&then, 4.0).unwrap();
        assert_eq!((figures.seconds, figures.commands, figures.handle_seconds), (4.0, 200, 1.0));
        assert_eq!(
            (figures.commands_per_second, figures.mean_handle_seconds),
            (Some(50.0), Some(0.005))
        );
        let none = then.since(&then, 0.0).unwrap();
        assert_eq!((none.commands_per_second, none.mean_handle_seconds), (None, None));
        for unseen in [totals(300, 6.0, 2, 2), totals(300, 6.0, 1, 3), totals(99, 6.0, 1, 2)] {
            assert_eq!(unseen.since(&then, 4.0), None);
        }
    }
}
