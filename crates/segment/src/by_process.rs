// SPDX-License-Identifier: PostgreSQL
//! What statistics did in an interval, by kind of process.
//!
//! What ended between the snapshots is in the groups, which know the kind: their growth, less what
//! the ended had before.

use crate::book::{Book, Head, Life};
use crate::delta::{Change, Delta};
use crate::directory::{Directory, Stat, StatId};
use crate::snapshot::Snapshot;

/// What a statistic did, as a sum that may be put together of parts and of what is taken off.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sum {
    count: i128,
    total: i128,
    amount: i128,
    follows: i128,
}

fn positive(n: i128) -> u64 {
    u64::try_from(n.max(0)).unwrap_or(u64::MAX)
}

impl Sum {
    fn add(&mut self, sign: i128, numbers: [u64; 4]) {
        let [count, total, amount, follows] = numbers.map(|n| sign * i128::from(n));
        self.count += count;
        self.total += total;
        self.amount += amount;
        self.follows += follows;
    }

    pub(crate) fn count(&self) -> u64 {
        positive(self.count)
    }

    pub(crate) fn total(&self) -> u64 {
        positive(self.total)
    }

    pub(crate) fn amount(&self) -> u64 {
        positive(self.amount)
    }

    pub(crate) fn follows(&self) -> u64 {
        positive(self.follows)
    }
}

/// Sums by kind of process and statistic.
#[derive(Debug)]
pub(crate) struct Sums<'s> {
    directory: &'s Directory,
    /// The statistics that are wanted ...
    stats: Vec<StatId>,
    /// ... and which of these a statistic is, if any.
    places: Vec<Option<u32>>,
    /// In the order of `stats`. There are few kinds of process.
    sums: Vec<(&'s str, Vec<Sum>)>,
}

impl<'s> Sums<'s> {
    /// Of the statistics that `wanted` accepts.
    pub(crate) fn between(
        previous: Option<&'s Snapshot>,
        delta: &'s Delta<'s>,
        wanted: impl Fn(&Stat) -> bool,
    ) -> Sums<'s> {
        let snapshot = delta.snapshot;
        let previous = previous.filter(|p| p.resets == snapshot.resets);
        let mut sums = Sums::of(&snapshot.directory, wanted);
        for session in &delta.sessions {
            let numbers = |c: &Change| [c.count, c.total, c.amount, c.follows];
            let changes = session.changes.iter().map(|(stat, change)| (*stat, numbers(change)));
            sums.add(&session.book.identity.kind, 1, changes);
        }
        let retired = snapshot.books.iter().filter(|b| b.life == Life::Retired);
        for book in snapshot.groups.iter().chain(retired) {
            sums.add_book(book, 1);
        }
        let goes_on =
            |p: &Book| snapshot.book(p.slot, p.generation).is_some_and(|b| b.life != Life::Retired);
        if let Some(previous) = previous {
            let ended = previous.books.iter().filter(|p| !goes_on(p));
            for book in previous.groups.iter().chain(ended) {
                sums.add_book(book, -1);
            }
        }
        sums
    }

    /// Each kind of process with what each of its statistics did.
    pub(crate) fn kinds(
        &self,
    ) -> impl Iterator<Item = (&'s str, impl Iterator<Item = (&'s Stat, Sum)> + '_)> + '_ {
        self.sums.iter().map(|(kind, all)| {
            let named = |(stat, sum): (&StatId, &Sum)| Some((self.directory.get(*stat)?, *sum));
            (*kind, self.stats.iter().zip(all).filter_map(named))
        })
    }

    fn of(directory: &'s Directory, wanted: impl Fn(&Stat) -> bool) -> Sums<'s> {
        let mut stats = Vec::new();
        let places = (0..directory.len() as StatId)
            .map(|id| {
                directory.get(id).filter(|stat| wanted(stat)).map(|_| {
                    stats.push(id);
                    stats.len() as u32 - 1
                })
            })
            .collect();
        Sums { directory, stats, places, sums: Vec::new() }
    }

    /// Add what processes of one kind did, or take it off again.
    fn add(
        &mut self,
        process: &'s str,
        sign: i128,
        changes: impl Iterator<Item = (StatId, [u64; 4])>,
    ) {
        let at = self.sums.iter().position(|(kind, _)| *kind == process).unwrap_or_else(|| {
            self.sums.push((process, vec![Sum::default(); self.stats.len()]));
            self.sums.len() - 1
        });
        let sums = &mut self.sums[at].1;
        for (stat, numbers) in changes {
            if let Some(Some(place)) = self.places.get(stat as usize) {
                sums[*place as usize].add(sign, numbers);
            }
        }
    }

    fn add_book(&mut self, book: &'s Book, sign: i128) {
        let numbers = |head: &Head| [head.count, head.total, head.amount, head.follows];
        let changes = book.heads.iter().map(|head| (head.stat, numbers(head)));
        self.add(&book.identity.kind, sign, changes);
    }
}
