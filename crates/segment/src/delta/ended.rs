// SPDX-License-Identifier: PostgreSQL
//! The activity of sessions that have ended, by kind of process and statistic: the growth of the groups
//! and of slots that are not merged yet, minus the earlier figures of these sessions.

use super::kinds::KindTotals;
use super::moved::take_back;
use crate::book::{Book, Head, Life};
use crate::directory::StatId;
use crate::histogram::Histogram;
use crate::snapshot::Snapshot;
use crate::total::{extremes, Total};

/// A sum of additions and subtractions.
#[derive(Clone, Default)]
struct SignedTotal {
    /// Count, total, amount, follows.
    numbers: [i128; 4],
    now: Option<(u64, u64)>,
    then: Option<(u64, u64)>,
}

/// The sums of the processes of one kind.
struct Kind<'s> {
    name: &'s str,
    sums: Vec<SignedTotal>,
    totals: Vec<Total>,
}

fn positive(n: i128) -> u64 {
    u64::try_from(n.max(0)).unwrap_or(u64::MAX)
}

fn widen(span: &mut Option<(u64, u64)>, head: &Head) {
    if head.count > 0 {
        let (min, max) = span.unwrap_or((u64::MAX, 0));
        *span = Some((min.min(head.min), max.max(head.max)));
    }
}

impl Kind<'_> {
    /// Add a book of the later snapshot, or subtract one of the earlier snapshot.
    fn add(&mut self, book: &Book, now: bool) {
        for head in &book.heads {
            let at = head.stat as usize;
            let (Some(sum), Some(total)) = (self.sums.get_mut(at), self.totals.get_mut(at)) else {
                continue;
            };
            let (first, counts) = book.histograms.get(head.histogram);
            let numbers = [head.count, head.total, head.amount, head.follows].map(i128::from);
            for (sum, number) in sum.numbers.iter_mut().zip(numbers) {
                *sum += if now { number } else { -number };
            }
            if now {
                widen(&mut sum.now, head);
                total.histogram.add_counts(first, counts);
            } else {
                widen(&mut sum.then, head);
                total.histogram.subtract_counts(first, counts);
            }
        }
    }
}

fn kind_of<'k, 's>(kinds: &'k mut Vec<Kind<'s>>, book: &'s Book, size: usize) -> &'k mut Kind<'s> {
    let name = book.identity.kind.as_str();
    let at = kinds.iter().position(|k| k.name == name).unwrap_or_else(|| {
        let sums = vec![SignedTotal::default(); size];
        kinds.push(Kind { name, sums, totals: vec![Total::default(); size] });
        kinds.len() - 1
    });
    &mut kinds[at]
}

/// Sessions of a kind, database and user that have ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedOrigin {
    /// "client backend", ...
    pub kind: String,
    /// Their database; the OID if the name is not known; `None` without a database.
    pub database: Option<String>,
    /// Their user, in the same form.
    pub user: Option<String>,
    /// The application of the last one; empty: not known.
    pub application: String,
    /// Number of sessions.
    pub sessions: u64,
}

impl EndedOrigin {
    /// Adds those of a later time; most sessions come first.
    pub fn merge(all: &mut Vec<EndedOrigin>, later: &[EndedOrigin]) {
        for origin in later {
            match all.iter_mut().find(|known| known.is_same(origin)) {
                Some(known) => {
                    let sessions = known.sessions.saturating_add(origin.sessions);
                    *known = EndedOrigin { sessions, ..origin.clone() };
                }
                None => all.push(origin.clone()),
            }
        }
        all.sort_by_key(|origin| std::cmp::Reverse(origin.sessions));
    }

    /// Whether both are of the same kind, database and user.
    fn is_same(&self, other: &EndedOrigin) -> bool {
        (&self.kind, &self.database, &self.user) == (&other.kind, &other.database, &other.user)
    }
}

/// Who the sessions were that have ended, most sessions first.
pub(super) fn origins(previous: Option<&Snapshot>, snapshot: &Snapshot) -> Vec<EndedOrigin> {
    let before = |group: &Book| {
        let same =
            |earlier: &&Book| (earlier.slot, earlier.generation) == (group.slot, group.generation);
        previous?.groups.iter().find(same).map(|group| group.sessions)
    };
    let name = |id: u32, own: &str| match own {
        "" => (id != 0).then(|| id.to_string()),
        own => Some(own.to_owned()),
    };
    let grown = snapshot.groups.iter().filter_map(|group| {
        let sessions = group.sessions.saturating_sub(before(group).unwrap_or(0));
        let identity = &group.identity;
        (sessions > 0).then(|| EndedOrigin {
            kind: identity.kind.clone(),
            database: name(group.database_id, &identity.database),
            user: name(group.user_id, &identity.user),
            application: identity.application.clone(),
            sessions,
        })
    });
    let mut all: Vec<EndedOrigin> = grown.collect();
    all.sort_by_key(|origin| std::cmp::Reverse(origin.sessions));
    all
}

/// The activity of ended sessions.
pub(super) fn ended(previous: Option<&Snapshot>, snapshot: &Snapshot) -> Vec<KindTotals> {
    let size = snapshot.directory.len();
    let mut kinds: Vec<Kind<'_>> = Vec::new();
    let is_session =
        |p: &Book| snapshot.book(p.slot, p.generation).is_some_and(|b| b.life != Life::Retired);
    let retired = snapshot.books.iter().filter(|b| b.life == Life::Retired);
    // Additions come first, so that no histogram falls below zero.
    for book in snapshot.groups.iter().chain(retired) {
        kind_of(&mut kinds, book, size).add(book, true);
    }
    if let Some(previous) = previous {
        let ended = previous.books.iter().filter(|p| !is_session(p));
        for book in previous.groups.iter().chain(ended) {
            kind_of(&mut kinds, book, size).add(book, false);
        }
    }
    for kind in &mut kinds {
        return_moved(kind, snapshot);
    }
    share_deficits(&mut kinds, snapshot);
    kinds.into_iter().map(settle).collect()
}

/// Within a kind, correct time that a writer moved to another account late: see [`take_back`].
fn return_moved(kind: &mut Kind<'_>, snapshot: &Snapshot) {
    let owed = |sums: &[SignedTotal]| -> i128 {
        let accounts = sums.iter().enumerate();
        let accounts = accounts.filter(|(id, _)| snapshot.directory.is_account(*id as StatId));
        accounts.map(|(_, sum)| (-sum.numbers[1]).max(0)).sum()
    };
    let moved = owed(&kind.sums);
    if moved == 0 {
        return;
    }
    let mut held: Vec<(StatId, u64)> = (0..)
        .zip(&kind.sums)
        .filter(|(id, _)| snapshot.directory.is_account(*id))
        .map(|(id, sum)| (id, positive(sum.numbers[1])))
        .collect();
    let whole: i128 = held.iter().map(|(_, total)| i128::from(*total)).sum();
    if whole < moved {
        // The time was not moved; these processes have changed their kind.
        return;
    }
    take_back(positive(moved), held.iter_mut().map(|(id, total)| (*id, total)), |_, _| ());
    for (id, total) in held {
        kind.sums[id as usize].numbers[1] = i128::from(total);
    }
}

/// A process that changed its kind was subtracted from one kind and added to another. A deficit of one kind
/// is an excess of the other, in the same statistic or, if time was also moved, in another account.
fn share_deficits(kinds: &mut [Kind<'_>], snapshot: &Snapshot) {
    if kinds.iter().all(|kind| kind.sums.iter().all(|s| s.numbers.iter().all(|n| *n >= 0))) {
        return;
    }
    let mut owed = 0;
    for stat in 0..snapshot.directory.len() {
        for number in 0..4 {
            let mut lacking = 0;
            for kind in kinds.iter_mut() {
                let n = &mut kind.sums[stat].numbers[number];
                lacking -= (*n).min(0);
                *n = (*n).max(0);
            }
            for kind in kinds.iter_mut() {
                let n = &mut kind.sums[stat].numbers[number];
                let part = lacking.min(*n);
                *n -= part;
                lacking -= part;
            }
            if number == 1 && snapshot.directory.is_account(stat as StatId) {
                owed += lacking;
            }
        }
    }
    let accounts = kinds.iter_mut().flat_map(|kind| (0..).zip(&mut kind.sums));
    let mut held: Vec<(StatId, &mut i128)> = accounts
        .filter(|(id, _)| snapshot.directory.is_account(*id))
        .map(|(id, sum)| (id, &mut sum.numbers[1]))
        .collect();
    held.sort_by_key(|(_, ticks)| std::cmp::Reverse(**ticks));
    for (_, ticks) in held {
        let part = owed.min(*ticks);
        *ticks -= part;
        owed -= part;
    }
}

fn settle(mut kind: Kind<'_>) -> KindTotals {
    for (total, sum) in kind.totals.iter_mut().zip(&kind.sums) {
        let [count, ticks, amount, follows] = sum.numbers.map(positive);
        total.change.count = count;
        total.change.total = ticks;
        total.change.amount = amount;
        total.change.follows = follows;
        if count == 0 {
            total.histogram = Histogram::new();
        } else if let Some(now) = sum.now {
            let growth = (total.histogram.lowest(), total.histogram.highest());
            (total.change.min, total.change.max) = extremes(growth, now, sum.then);
        }
    }
    KindTotals { kind: kind.name.into(), totals: kind.totals }
}
