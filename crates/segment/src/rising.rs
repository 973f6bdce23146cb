// SPDX-License-Identifier: PostgreSQL
//! Totals since the start, for readers that interpret a falling total as a restart.

use crate::delta::take_back;
use crate::directory::{Stat, StatId, StatKind};
use crate::frame::{Frame, FrameStat};
use crate::total::Total;
use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::Arc;

/// The time of an account at the previous frame, and its growth since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Growth {
    before: u64,
    more: u64,
    /// Its excess if it is kept from falling.
    less: u64,
}

impl Growth {
    fn new(before: u64, now: u64) -> Growth {
        Growth { before, more: now.saturating_sub(before), less: before.saturating_sub(now) }
    }
}

/// Subtracts the excess of some accounts from those that grew. Returns the excess that these did not cover.
fn balance(accounts: &mut [Growth]) -> u64 {
    let less = accounts.iter_mut().map(|account| mem::take(&mut account.less)).sum();
    let mut left = less;
    let growing = (0..).zip(accounts).map(|(n, account): (StatId, _)| (n, &mut account.more));
    take_back(less, growing, |_, part| left -= part);
    left
}

/// Keeps the times of accounts from falling between frames that begin at the start.
///
/// They may fall a little, because time moves late to another account of the same process (`take_back`). An
/// account that would fall keeps its value, and accounts of the same kind of process that grew are reduced by the
/// difference. So the sum is exact, and so is each account once it has grown beyond its former value.
#[derive(Debug, Default)]
pub struct Rising {
    resets: u32,
    wall: u64,
    before: HashMap<(Arc<str>, Arc<Stat>), u64>,
}

impl Rising {
    /// Adjust `frame`, which must be a later frame of the same segment; `resets` is the number of resets so far.
    pub fn hold(&mut self, resets: u32, frame: &mut Frame) {
        if resets != self.resets {
            *self = Rising { resets, ..Rising::default() };
        }
        frame.wall = frame.wall.max(self.wall);
        self.wall = frame.wall;
        self.add_missing(frame);
        let mut kinds: HashMap<Arc<str>, Vec<usize>> = HashMap::new();
        for (at, statistic) in frame.statistics.iter().enumerate() {
            if statistic.stat.kind == StatKind::Account {
                kinds.entry(statistic.process.clone()).or_default().push(at);
            }
        }
        let (mut indexes, mut growths) = (Vec::new(), Vec::new());
        let mut left = 0;
        for accounts in kinds.into_values() {
            let of = |at: &usize| {
                let statistic = &frame.statistics[*at];
                let before = self.before.get(&statistic.key()).copied().unwrap_or(0);
                Growth::new(before, statistic.total.change.total)
            };
            let mut kind: Vec<Growth> = accounts.iter().map(of).collect();
            left += balance(&mut kind);
            indexes.extend(accounts);
            growths.extend(kind);
        }
        // This is time of processes that have changed their kind.
        growths.push(Growth { before: 0, more: 0, less: left });
        balance(&mut growths);
        for (at, growth) in indexes.into_iter().zip(growths) {
            let statistic = &mut frame.statistics[at];
            statistic.total.change.total = growth.before + growth.more;
            self.before.insert(statistic.key(), statistic.total.change.total);
        }
    }

    /// Add accounts that are missing from the frame because their whole time has moved.
    fn add_missing(&self, frame: &mut Frame) {
        let there: HashSet<_> = frame.statistics.iter().map(FrameStat::key).collect();
        let missing = self.before.keys().filter(|key| !there.contains(*key));
        frame.statistics.extend(missing.map(|(process, stat)| FrameStat {
            process: process.clone(),
            stat: stat.clone(),
            total: Total::default(),
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn balanced(accounts: &[(u64, u64)]) -> (Vec<u64>, u64) {
        let mut all: Vec<_> = accounts.iter().map(|(was, now)| Growth::new(*was, *now)).collect();
        let left = balance(&mut all);
        assert!(all.iter().all(|growth| growth.less == 0));
        (all.iter().map(|growth| growth.before + growth.more).collect(), left)
    }

    #[test]
    fn what_would_fall_stays_and_what_grew_gets_less() {
        // 30 moved from the first to the second.
        assert_eq!(balanced(&[(100, 70), (5, 45), (9, 9)]), (vec![100, 15, 9], 0));
        // The excess is in none of these accounts.
        assert_eq!(balanced(&[(100, 70), (5, 10)]), (vec![100, 5], 25));
        assert_eq!(balanced(&[(100, 120), (5, 10)]), (vec![120, 10], 0));
    }
}
