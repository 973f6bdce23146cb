// SPDX-License-Identifier: PostgreSQL
//! What happened between two snapshots: per session, and in all.
//!
//! Sessions are matched by slot and generation. What has ended in between is in the groups:
//! the groups' growth, less what the ended sessions had at the first snapshot, is what they
//! did since then, and what came and went unseen besides. So the whole counts everything
//! once, and the whole is the sum of the sessions and of what has ended.

use crate::book::{Book, Head, Life};
use crate::directory::{Directory, StatId, StatKind};
use crate::histogram::{Counts, Histogram};
use crate::layout::{self, bucket_middle};
use crate::process;
use crate::snapshot::Snapshot;
use std::borrow::Cow;
use std::sync::Arc;

mod ended;

/// What one statistic did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Change {
    /// Events that ended.
    pub count: u64,
    /// Of accounts: ticks of the interval. Otherwise the sum of what ended.
    pub total: u64,
    /// The least of what ended. Exact when it is the least ever or was the only one, else
    /// the middle of its bucket (6.25 %).
    pub min: Extreme,
    /// The greatest of what ended, known as well as `min`; of an account also what is
    /// running still, as long as it has lasted so far.
    pub max: Extreme,
    /// Bytes that these events moved.
    pub amount: u64,
    /// How many of them went on where the one before had ended.
    pub follows: u64,
}

/// The least or the greatest of some values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Extreme {
    /// There are no values.
    #[default]
    None,
    /// There are, and their extreme is not known: a statistic that keeps no histogram, in an
    /// interval without a new record.
    Unknown,
    /// It is this.
    Of(u64),
}

impl Extreme {
    /// It, where it is known.
    pub fn known(self) -> Option<u64> {
        match self {
            Extreme::Of(value) => Some(value),
            Extreme::None | Extreme::Unknown => None,
        }
    }

    fn join(self, other: Extreme, better: fn(u64, u64) -> u64) -> Extreme {
        match (self, other) {
            (Extreme::None, one) | (one, Extreme::None) => one,
            (Extreme::Of(a), Extreme::Of(b)) => Extreme::Of(better(a, b)),
            _ => Extreme::Unknown,
        }
    }
}

impl Change {
    /// Whether nothing happened.
    pub fn is_zero(&self) -> bool {
        self.count == 0 && self.total == 0
    }

    fn add(&mut self, other: &Change) {
        self.count = self.count.saturating_add(other.count);
        self.total = self.total.saturating_add(other.total);
        self.min = self.min.join(other.min, u64::min);
        self.max = self.max.join(other.max, u64::max);
        self.amount = self.amount.saturating_add(other.amount);
        self.follows = self.follows.saturating_add(other.follows);
    }
}

/// What one statistic did in all sessions together.
#[derive(Debug, Clone, Default)]
pub struct Total {
    /// Count, sum and extremes.
    pub change: Change,
    /// The histogram of what ended.
    pub histogram: Histogram,
}

impl Total {
    /// A quantile of what ended, in ticks. `None` where the histogram falls far short of the
    /// count: its writers keep none, or only some of them do.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        if self.histogram.count() < self.change.count / 2 {
            return None;
        }
        let min = self.change.min.known().unwrap_or(0);
        let max = self.change.max.known().unwrap_or(u64::MAX);
        self.histogram.quantile(q, min, max)
    }

    /// The same in the ticks of a clock that has `ratio` times as many. Nearly equal clocks,
    /// as one that has been measured again, keep the buckets as they are.
    pub(crate) fn rescaled(&self, ratio: f64, kind: StatKind) -> Cow<'_, Total> {
        if ratio == 1.0 || kind == StatKind::Value {
            return Cow::Borrowed(self);
        }
        let ticks = |n| crate::frame::scaled(n, ratio);
        let extreme = |it| match it {
            Extreme::Of(n) => Extreme::Of(ticks(n)),
            other => other,
        };
        let histogram = if (ratio - 1.0).abs() < 0.01 {
            self.histogram.clone()
        } else {
            self.histogram.rescaled(ratio)
        };
        let change = &self.change;
        let change = Change {
            total: ticks(change.total),
            min: extreme(change.min),
            max: extreme(change.max),
            ..*change
        };
        Cow::Owned(Total { change, histogram })
    }

    /// Add another one.
    pub fn merge(&mut self, other: &Total) {
        self.change.add(&other.change);
        self.histogram.merge(&other.histogram);
    }
}

/// What one session did.
#[derive(Debug, Clone)]
pub struct SessionDelta<'a> {
    /// The session as it is now.
    pub book: &'a Book,
    /// Ticks that it lived in the interval.
    pub lived: u64,
    /// Its statistics that changed.
    pub changes: Vec<(StatId, Change)>,
}

/// What the processes of one kind did.
#[derive(Debug, Clone)]
pub struct KindTotals {
    /// "client backend", ...
    pub kind: Arc<str>,
    /// By statistic.
    pub totals: Vec<Total>,
}

/// What happened between two snapshots.
#[derive(Debug, Clone)]
pub struct Delta<'a> {
    /// The later one.
    pub snapshot: &'a Snapshot,
    /// Ticks between them, or since the reset that came between them.
    pub ticks: u64,
    /// The sessions that are there now.
    pub sessions: Vec<SessionDelta<'a>>,
    /// How many have ended.
    pub ended_sessions: u64,
    /// Ticks of the interval that these lived.
    pub ended_ticks: u64,
    /// What all did, by kind of process.
    pub kinds: Vec<KindTotals>,
    /// What all did, by statistic.
    pub totals: Vec<Total>,
    /// Calls through each probe.
    pub calls: Vec<u64>,
}

impl<'a> Delta<'a> {
    /// What happened since `previous`; without one, or with one from before a reset, since
    /// the last reset or the segment's beginning.
    pub fn between(previous: Option<&Snapshot>, snapshot: &'a Snapshot) -> Delta<'a> {
        let previous = previous.filter(|p| p.resets == snapshot.resets);
        let since = previous.map_or(snapshot.reset_tick, |p| p.tick);
        let Part { sessions, mut kinds, mut calls } = sessions(previous, snapshot);
        let ended = ended::ended(previous, snapshot, &mut calls);
        let ended_ticks = ended.iter().fold(0, |sum: u64, kind| {
            let accounts = kind.totals.iter().enumerate();
            let accounts =
                accounts.filter(|(id, _)| is_account(&snapshot.directory, *id as StatId));
            accounts.fold(sum, |sum, (_, total)| sum.saturating_add(total.change.total))
        });
        merge_kinds(&mut kinds, ended);
        let mut totals = vec![Total::default(); snapshot.directory.len()];
        for kind in &kinds {
            let changed = totals.iter_mut().zip(&kind.totals).filter(|(_, t)| !t.change.is_zero());
            changed.for_each(|(sum, part)| sum.merge(part));
        }
        let gone = |s: &Snapshot| {
            s.groups.iter().fold(0u64, |n, g| n.saturating_add(g.sessions))
                + s.books.iter().filter(|b| b.life == Life::Retired).count() as u64
        };
        Delta {
            snapshot,
            ticks: snapshot.tick.saturating_sub(since),
            sessions,
            ended_sessions: gone(snapshot).saturating_sub(previous.map_or(0, gone)),
            ended_ticks,
            kinds,
            totals,
            calls,
        }
    }

    /// The statistics that changed, with what all sessions did.
    pub fn changed(&self) -> impl Iterator<Item = (&crate::directory::Stat, &Total)> {
        self.totals
            .iter()
            .enumerate()
            .filter(|(_, t)| !t.change.is_zero())
            .filter_map(|(id, t)| Some((self.snapshot.directory.get(id as StatId)?, t)))
    }
}

/// What some of the sessions did.
struct Part<'a> {
    sessions: Vec<SessionDelta<'a>>,
    kinds: Vec<KindTotals>,
    calls: Vec<u64>,
}

/// The totals of a kind of process among `kinds`, new ones if need be. There are few kinds.
fn totals_of<'k>(kinds: &'k mut Vec<KindTotals>, kind: &str, size: usize) -> &'k mut [Total] {
    let at = kinds.iter().position(|k| &*k.kind == kind).unwrap_or_else(|| {
        kinds.push(KindTotals { kind: kind.into(), totals: vec![Total::default(); size] });
        kinds.len() - 1
    });
    &mut kinds[at].totals
}

fn merge_kinds(kinds: &mut Vec<KindTotals>, more: Vec<KindTotals>) {
    for part in more {
        match kinds.iter_mut().find(|k| k.kind == part.kind) {
            Some(known) => {
                let changed = known.totals.iter_mut().zip(&part.totals);
                changed.filter(|(_, t)| !t.change.is_zero()).for_each(|(sum, t)| sum.merge(t));
            }
            None => kinds.push(part),
        }
    }
}

/// What the sessions did. With many of them, part of the work is done beside us: it is mostly
/// waiting for memory.
fn sessions<'a>(previous: Option<&Snapshot>, snapshot: &'a Snapshot) -> Part<'a> {
    let part = |books: &'a [Book]| {
        let mut part = Part {
            sessions: Vec::with_capacity(books.len()),
            kinds: Vec::new(),
            calls: vec![0u64; layout::CALLS],
        };
        for book in books.iter().filter(|b| b.life != Life::Retired) {
            let before = previous.and_then(|p| p.book(book.slot, book.generation));
            add_calls(&mut part.calls, book, before);
            let totals = totals_of(&mut part.kinds, &book.identity.kind, snapshot.directory.len());
            part.sessions.push(session(book, before, totals, &snapshot.directory));
        }
        part
    };
    let books = snapshot.books.as_slice();
    let mut shares = books.chunks(books.len().div_ceil(process::workers(books.len())).max(1));
    let own = shares.next().unwrap_or(&[]);
    std::thread::scope(|scope| {
        let others: Vec<_> = shares.map(|share| scope.spawn(move || part(share))).collect();
        let mut all = part(own);
        for other in others {
            // A panic of the worker is a panic of ours.
            let other = other.join().unwrap_or_else(|e| std::panic::resume_unwind(e));
            all.sessions.extend(other.sessions);
            merge_kinds(&mut all.kinds, other.kinds);
            for (sum, part) in all.calls.iter_mut().zip(&other.calls) {
                *sum = sum.saturating_add(*part);
            }
        }
        all
    })
}

fn add_calls(calls: &mut [u64], book: &Book, before: Option<&Book>) {
    for (i, call) in calls.iter_mut().enumerate() {
        let now = book.calls.get(i).copied().unwrap_or(0);
        let then = before.and_then(|b| b.calls.get(i)).copied().unwrap_or(0);
        *call = call.saturating_add(now.saturating_sub(then));
    }
}

/// Heads do not move in a book; only a fold that stands still takes away the first ones.
fn counterpart(before: Option<&Book>, index: usize, stat: StatId) -> Option<&Head> {
    let before = before?;
    before
        .heads
        .get(index)
        .filter(|h| h.stat == stat)
        .or_else(|| before.heads.iter().find(|h| h.stat == stat))
}

fn session<'a>(
    book: &'a Book,
    before: Option<&Book>,
    totals: &mut [Total],
    directory: &Arc<Directory>,
) -> SessionDelta<'a> {
    let mut changes = Vec::with_capacity(book.heads.len());
    let mut accounted = 0u64;
    let mut moved = 0u64;
    for (index, head) in book.heads.iter().enumerate() {
        let then = counterpart(before, index, head.stat);
        let count = head.count.saturating_sub(then.map_or(0, |t| t.count));
        let total = head.total.saturating_sub(then.map_or(0, |t| t.total));
        let is_account = is_account(directory, head.stat);
        if is_account {
            moved = moved.saturating_add(then.map_or(0, |t| t.total).saturating_sub(head.total));
        }
        if count == 0 && total == 0 {
            continue;
        }
        let amount = head.amount.saturating_sub(then.map_or(0, |t| t.amount));
        let follows = head.follows.saturating_sub(then.map_or(0, |t| t.follows));
        let mut change = Change { count, total, amount, follows, ..Change::default() };
        let mut sum = totals.get_mut(head.stat as usize);
        let mut growth = (None, None);
        if !then.is_some_and(|t| head.is_still(t)) {
            let mut nowhere = Histogram::new();
            let into = sum.as_mut().map_or(&mut nowhere, |sum| &mut sum.histogram);
            growth = into.add_growth(counts(Some(book), Some(head)), counts(before, then));
        }
        if count > 0 {
            let (min, max) = extremes(
                growth,
                (head.min, head.max),
                then.filter(|t| t.count > 0).map(|t| (t.min, t.max)),
            );
            // What ended began perhaps before the interval: its whole length is the extreme.
            let whole = |h: &Head| h.total - h.running;
            let only = whole(head).saturating_sub(then.map_or(0, whole));
            (change.min, change.max) =
                if count == 1 { (Extreme::Of(only), Extreme::Of(only)) } else { (min, max) };
        }
        if head.running > 0 {
            change.max = change.max.join(Extreme::Of(head.running), u64::max);
        }
        if is_account {
            accounted = accounted.saturating_add(total);
        }
        if let Some(sum) = sum {
            sum.change.add(&change);
        }
        changes.push((head.stat, change));
    }
    let accounts = changes.iter_mut().filter(|(stat, _)| is_account(directory, *stat));
    take_back(moved, accounts.map(|(stat, change)| (*stat, &mut change.total)), |stat, ticks| {
        if let Some(sum) = totals.get_mut(stat as usize) {
            sum.change.total = sum.change.total.saturating_sub(ticks);
        }
    });
    // A writer that keeps no accounts has no time to conserve.
    let lived = match book.run_head {
        Some(_) => book.now.saturating_sub(before.map_or(book.born, |b| b.now)),
        None => accounted,
    };
    SessionDelta { book, lived, changes }
}

fn is_account(directory: &Directory, stat: StatId) -> bool {
    directory.get(stat).is_some_and(|s| s.kind == StatKind::Account)
}

/// A writer may learn late what its running time is for, and then moves it to that account:
/// since the end of the wait for a command it was the command's. If the earlier snapshot had
/// it where it was before, it has been told already, and the account it went to holds it a
/// second time. Take it from where most is, and say from where.
fn take_back<'t>(
    mut moved: u64,
    accounts: impl Iterator<Item = (StatId, &'t mut u64)>,
    mut told: impl FnMut(StatId, u64),
) {
    if moved == 0 {
        return;
    }
    let mut accounts: Vec<_> = accounts.collect();
    accounts.sort_by_key(|(_, total)| std::cmp::Reverse(**total));
    for (stat, total) in accounts {
        let part = moved.min(*total);
        *total -= part;
        moved -= part;
        told(stat, part);
    }
}

/// The histogram of a head: its first bucket and the counts from there on.
fn counts<'b>(book: Option<&'b Book>, head: Option<&Head>) -> (usize, Counts<'b>) {
    match (book, head) {
        (Some(book), Some(head)) => book.shelf.get(head.place),
        _ => (0, Counts::Narrow(&[])),
    }
}

/// Least and greatest of what was counted, given the lowest and highest bucket in which the
/// histogram grew and the extremes since ever at the end and, if there was anything, at the
/// beginning. A new record is exact.
fn extremes(
    growth: (Option<usize>, Option<usize>),
    now: (u64, u64),
    then: Option<(u64, u64)>,
) -> (Extreme, Extreme) {
    let within = |b: usize| Extreme::Of(bucket_middle(b).min(now.1).max(now.0.min(now.1)));
    let min = match then {
        Some((least, _)) if now.0 >= least => growth.0.map_or(Extreme::Unknown, within),
        _ => Extreme::Of(now.0),
    };
    let max = match then {
        Some((_, greatest)) if now.1 <= greatest => growth.1.map_or(Extreme::Unknown, within),
        _ => Extreme::Of(now.1),
    };
    (min, max)
}
