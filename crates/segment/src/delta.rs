// SPDX-License-Identifier: PostgreSQL
//! The changes between two snapshots: per session, and for all sessions of each kind of process.
//!
//! Sessions are matched by slot and generation. Sessions that ended in between are in the groups: the
//! growth of the groups, minus the figures of these sessions at the first snapshot, is their activity
//! since then. It includes sessions that started and ended in between. So everything is counted once.

use crate::book::{Book, Head, Life};
use crate::directory::{Directory, StatId};
use crate::histogram::{Counts, Histogram};
use crate::snapshot::Snapshot;
use crate::this_host;
use crate::total::extremes;
use std::sync::Arc;

mod ended;
mod kinds;
mod moved;

pub use crate::total::{Change, Extreme, Total};
pub use ended::EndedOrigin;
pub use kinds::KindTotals;
use kinds::{merge_kinds, totals_of};
pub(crate) use moved::take_back;

/// The activity of one session.
#[derive(Debug, Clone)]
pub struct SessionDelta<'a> {
    /// The session at the later snapshot.
    pub book: &'a Book,
    /// Its lifetime in the interval, ticks.
    pub lived: u64,
    /// Its statistics that changed.
    pub changes: Vec<(StatId, Change)>,
    /// Its waits for the client between transactions, if there were many; in ticks.
    pub idle: Option<Histogram>,
}

/// Number of waits between transactions from which on those of a session are kept separately.
const MANY_WAITS: u64 = 30;

/// The changes between two snapshots.
#[derive(Debug, Clone)]
pub struct Delta<'a> {
    /// The later snapshot.
    pub snapshot: &'a Snapshot,
    /// Ticks between the snapshots, or since a reset between them.
    pub ticks: u64,
    /// The sessions at the later snapshot.
    pub sessions: Vec<SessionDelta<'a>>,
    /// Number of sessions that have ended.
    pub ended_sessions: u64,
    /// Their lifetime in the interval, ticks.
    pub ended_ticks: u64,
    /// The sessions among them whose slots are merged, by kind, database and user.
    pub ended_origins: Vec<EndedOrigin>,
    /// The activity of all sessions, by kind of process.
    pub kinds: Vec<KindTotals>,
}

impl<'a> Delta<'a> {
    /// The changes since `previous`; without a previous snapshot, or with one from before a reset, since
    /// the last reset or the segment's creation.
    pub fn between(previous: Option<&Snapshot>, snapshot: &'a Snapshot) -> Delta<'a> {
        let previous = previous.filter(|p| p.resets == snapshot.resets);
        let since = previous.map_or(snapshot.reset_tick, |p| p.tick);
        let SessionsPart { sessions, mut kinds } = sessions(previous, snapshot);
        let ended = ended::ended(previous, snapshot);
        let ended_ticks = ended.iter().fold(0, |sum: u64, kind| {
            let accounts = kind.totals.iter().enumerate();
            let accounts = accounts.filter(|(id, _)| snapshot.directory.is_account(*id as StatId));
            accounts.fold(sum, |sum, (_, total)| sum.saturating_add(total.change.total))
        });
        merge_kinds(&mut kinds, ended);
        let ended_in = |s: &Snapshot| {
            s.groups.iter().fold(0u64, |n, g| n.saturating_add(g.sessions))
                + s.books.iter().filter(|b| b.life == Life::Retired).count() as u64
        };
        Delta {
            snapshot,
            ticks: snapshot.tick.saturating_sub(since),
            sessions,
            ended_sessions: ended_in(snapshot).saturating_sub(previous.map_or(0, ended_in)),
            ended_ticks,
            ended_origins: ended::origins(previous, snapshot),
            kinds,
        }
    }
}

/// The activity of a part of the sessions.
struct SessionsPart<'a> {
    sessions: Vec<SessionDelta<'a>>,
    kinds: Vec<KindTotals>,
}

/// The activity of the sessions. If there are many, several threads share the work, which is mostly
/// waiting for memory.
fn sessions<'a>(previous: Option<&Snapshot>, snapshot: &'a Snapshot) -> SessionsPart<'a> {
    let count = |books: &'a [Book]| {
        let mut share =
            SessionsPart { sessions: Vec::with_capacity(books.len()), kinds: Vec::new() };
        for book in books.iter().filter(|b| b.life != Life::Retired) {
            let before = previous.and_then(|p| p.book(book.slot, book.generation));
            let totals = totals_of(&mut share.kinds, &book.identity.kind, snapshot.directory.len());
            share.sessions.push(session(book, before, totals, &snapshot.directory));
        }
        share
    };
    let books = snapshot.books.as_slice();
    let mut shares = books.chunks(books.len().div_ceil(this_host::workers(books.len())).max(1));
    let own = shares.next().unwrap_or(&[]);
    std::thread::scope(|scope| {
        let others: Vec<_> = shares.map(|share| scope.spawn(move || count(share))).collect();
        let mut every = count(own);
        for other in others {
            // Propagate the panic of a worker.
            let other = other.join().unwrap_or_else(|e| std::panic::resume_unwind(e));
            every.sessions.extend(other.sessions);
            merge_kinds(&mut every.kinds, other.kinds);
        }
        every
    })
}

/// Heads do not move in a book; only an interrupted merge removes the first ones.
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
    let mut idle = None;
    for (index, head) in book.heads.iter().enumerate() {
        let then = counterpart(before, index, head.stat);
        let count = head.count.saturating_sub(then.map_or(0, |t| t.count));
        let total = head.total.saturating_sub(then.map_or(0, |t| t.total));
        let is_account = directory.is_account(head.stat);
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
            if count >= MANY_WAITS && is_account && directory.is_between_transactions(head.stat) {
                let mut own = Histogram::new();
                own.add_growth(counts(Some(book), Some(head)), counts(before, then));
                idle = Some(own);
            }
        }
        if count > 0 {
            let (min, max) = extremes(
                growth,
                (head.min, head.max),
                then.filter(|t| t.count > 0).map(|t| (t.min, t.max)),
            );
            // An event may have begun before the interval; its whole length counts as the extreme.
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
    let accounts = changes.iter_mut().filter(|(stat, _)| directory.is_account(*stat));
    take_back(moved, accounts.map(|(stat, change)| (*stat, &mut change.total)), |stat, ticks| {
        if let Some(sum) = totals.get_mut(stat as usize) {
            sum.change.total = sum.change.total.saturating_sub(ticks);
        }
    });
    // A writer without accounts has no time to conserve; one that has closed its accounts lived as long as they add up
    // to.
    let lived = match book.run_head {
        Some(_) => book.now.saturating_sub(before.map_or(book.born, |b| b.now)),
        None => accounted.saturating_sub(moved),
    };
    SessionDelta { book, lived, changes, idle }
}

/// The histogram of a head: its first bucket, and the counts from there on.
fn counts<'b>(book: Option<&'b Book>, head: Option<&Head>) -> (usize, Counts<'b>) {
    match (book, head) {
        (Some(book), Some(head)) => book.histograms.get(head.histogram),
        _ => (0, Counts::Narrow(&[])),
    }
}
