// SPDX-License-Identifier: PostgreSQL
//! The contents of one slot or group: identity, running account, statistics and held locks.

use crate::directory::{Directory, Stat, StatId, StatKind};
use crate::histogram::Histogram;
use crate::histogram_store::{HistogramRef, HistogramStore};
use crate::layout::{entry, head, i32_at, text_at, u32_at, u64_at};
use std::sync::Arc;

/// Stands for the number of a statistic without a name in the directory. Only a damaged segment has such
/// statistics, and they are not shown.
pub const NAMELESS: StatId = StatId::MAX;

/// The identity of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// "client backend", ...
    pub kind: String,
    /// Name of the database, or empty.
    pub database: String,
    /// Name of the user, or empty.
    pub user: String,
    /// application_name, or empty.
    pub application: String,
    /// The client's address; "local" for a Unix-domain socket; empty without a client, and for a group.
    pub client: String,
}

/// Whether a slot's owner still runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Life {
    /// Its process exists, or that cannot be determined.
    Alive,
    /// Its process has ended, and no process has merged the slot yet.
    Dead,
    /// It has ended properly, and its slot is not merged yet.
    #[default]
    Retired,
}

/// One statistic of a book. `total` and `count` include the pending wait; `total` also includes the
/// running account up to [`Book::now`].
#[derive(Debug, Clone, Default)]
pub struct Head {
    /// The statistic; [`NAMELESS`] if the directory has no name for it.
    pub stat: StatId,
    /// Its number in the file: 1 + index in the directory.
    pub(crate) raw_stat: u32,
    /// Number of events.
    pub count: u64,
    /// Their sum; in ticks for accounts and timers.
    pub total: u64,
    /// For the running account: the part of `total` that has not ended yet.
    pub running: u64,
    /// Their minimum; `u64::MAX` if there were none.
    pub min: u64,
    /// Their maximum.
    pub max: u64,
    /// Bytes that its events transferred, if any.
    pub amount: u64,
    /// Events that continued where the previous one had ended.
    pub follows: u64,
    /// The count in the file, which shows whether the histogram has changed.
    pub(crate) raw_count: u64,
    /// Whether its writer keeps no histogram: none was found after several events.
    pub(crate) plain: bool,
    /// Its histogram among those of the book.
    pub(crate) histogram: HistogramRef,
}

/// A lightweight lock that a session holds. Several locks may be read at different instants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// Its address, the same in all processes.
    pub lock: u64,
    /// When it was acquired, tick.
    pub since: u64,
    /// Its tranche's number; [`Snapshot::tranches`] names it.
    pub tranche: u32,
    /// Whether it is held in shared rather than exclusive mode.
    pub shared: bool,
}

/// The contents of a slot or a group.
#[derive(Debug, Clone, Default)]
pub struct Book {
    /// Index of its slot, or of its group after the slots.
    pub slot: u32,
    /// Number of times that the slot was claimed; together with `slot`, it identifies a session.
    pub generation: u32,
    /// The process.
    pub pid: i32,
    /// The leader, if this is a parallel worker, otherwise 0.
    pub leader_pid: i32,
    /// 0 when none or unknown.
    pub database_id: u32,
    /// 0 when none or unknown.
    pub user_id: u32,
    /// When the slot was claimed, tick.
    pub claimed_tick: u64,
    /// When the slot was claimed, ns of CLOCK_BOOTTIME.
    pub claimed_boot_ns: u64,
    /// Its identity.
    pub identity: Arc<Identity>,
    pub(crate) identity_seq: u32,
    /// Whether the owner still runs.
    pub life: Life,
    /// Whether it could not be read consistently within the limit of attempts, because its writer was stopped or killed
    /// during an update.
    pub torn: bool,
    /// The sequence counter.
    pub(crate) seq: u64,
    /// The running account: index of its head.
    pub(crate) run_head: Option<usize>,
    /// The pending wait, which is already included in its head.
    pub(crate) pend: Option<Pending>,
    /// Since when, tick.
    pub run_start: u64,
    /// When the conservation of its time begins, tick.
    pub born: u64,
    /// When its current or last transaction began, tick; 0: not known.
    pub transaction: u64,
    /// When its current or last wait for a client message began, tick; 0: not known.
    pub between: u64,
    /// When the conservation of its time ends, tick.
    pub now: u64,
    /// Calls through each probe.
    pub calls: Vec<u64>,
    /// Number of lightweight locks held.
    pub holding: u32,
    /// The first of them.
    pub holds: Vec<Hold>,
    /// The statistics, in the order of their first use.
    pub heads: Vec<Head>,
    /// Whether some of them may still be [`NAMELESS`].
    pub(crate) unnamed: bool,
    /// Their histograms.
    pub(crate) histograms: HistogramStore,
    /// For a group: number of sessions merged into it.
    pub sessions: u64,
}

/// A wait that is not recorded yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pending {
    /// Index of its head.
    pub head: usize,
    pub ticks: u64,
    /// Whether the wait has ended. If not, a signal has interrupted it, and it may continue: its time counts, but not
    /// as an event.
    pub ended: bool,
}

impl Book {
    /// The running account.
    pub fn run(&self) -> Option<StatId> {
        self.run_head.and_then(|i| self.heads.get(i)).map(|h| h.stat)
    }

    /// When the session's current activity began, tick. Between two messages, this is when the last message was
    /// handled, even if the session is woken meanwhile by a reload of the configuration, a timer or another session's
    /// signal.
    pub fn since(&self, running: Option<&Stat>) -> u64 {
        let waits = running.is_some_and(Stat::is_between_messages);
        match self.between {
            between if waits && between != 0 => between.min(self.run_start),
            _ => self.run_start,
        }
    }

    /// The histogram of one of its heads since the statistic began.
    pub fn histogram(&self, head: &Head) -> Histogram {
        let (first, counts) = self.histograms.get(head.histogram);
        let mut histogram = Histogram::new();
        histogram.add_counts(first, counts);
        histogram
    }

    /// Ticks in all accounts, including the running one: the age of the session.
    pub fn accounted(&self, directory: &Directory) -> u64 {
        self.heads
            .iter()
            .filter(|h| directory.get(h.stat).is_some_and(|s| s.kind == StatKind::Account))
            .fold(0, |sum, h| sum.saturating_add(h.total))
    }

    /// An empty book for the owner whose entry is in `bytes`.
    pub(crate) fn of_entry(index: u32, bytes: &[u8]) -> Book {
        Book {
            slot: index,
            generation: u32_at(bytes, entry::GENERATION),
            pid: i32_at(bytes, entry::PID),
            leader_pid: i32_at(bytes, entry::LEADER_PID),
            database_id: u32_at(bytes, entry::DATABASE_ID),
            user_id: u32_at(bytes, entry::USER_ID),
            claimed_tick: u64_at(bytes, entry::CLAIMED_TICK),
            claimed_boot_ns: u64_at(bytes, entry::CLAIMED_BOOT_NS),
            identity_seq: u32_at(bytes, entry::IDENTITY_SEQ),
            sessions: 1,
            ..Book::default()
        }
    }

    /// Extend the running account to `now`.
    pub(crate) fn run_until(&mut self, now: u64) {
        self.now = now.max(self.run_start);
        let running = self.now - self.run_start;
        if let Some(head) = self.run_head.and_then(|i| self.heads.get_mut(i)) {
            head.total = (head.total - head.running).saturating_add(running);
            head.running = running;
        }
    }

    /// For an owner that has closed its last account and is about to retire: its time is conserved up to then.
    pub(crate) fn settle_closed(&mut self, directory: &Directory) {
        if self.run_head.is_some() {
            return;
        }
        let accounted = self.accounted(directory);
        if accounted > 0 {
            self.now = self.born.saturating_add(accounted);
        }
    }

    /// Correct a book whose writer stopped during an update: the heads may already contain the stretch
    /// that just ended, although the next one has not begun. Time in excess of that from birth to the stretch's
    /// start is subtracted from the running account; if that account has not run for so long, the pending record is
    /// already in its head.
    pub(crate) fn settle_torn(&mut self, directory: &Directory) {
        let Some(index) = self.run_head else { return };
        let running = self.heads.get(index).map_or(0, |h| h.running);
        let ended = self.accounted(directory).saturating_sub(running);
        let mut twice = ended.saturating_sub(self.run_start.saturating_sub(self.born));
        if let Some(pend) = self.pend.filter(|pend| pend.ticks == twice && twice > running) {
            if let Some(head) = self.heads.get_mut(pend.head) {
                head.total = head.total.saturating_sub(twice);
                twice = 0;
            }
        }
        let running = running.saturating_sub(twice);
        if let Some(head) = self.heads.get_mut(index) {
            head.total = (head.total - head.running).saturating_add(running);
            head.running = running;
        }
        // If the owner died there, no account is running, and the owner lived until that stretch ended.
        self.now = self.now.max(self.born.saturating_add(self.accounted(directory)));
    }
}

impl Head {
    /// The head in `bytes`, without its histogram.
    pub(crate) fn decode(bytes: &[u8], stat: StatId) -> Head {
        let count = u64_at(bytes, head::COUNT);
        Head {
            stat,
            raw_stat: u32_at(bytes, head::STAT),
            count,
            total: u64_at(bytes, head::TOTAL),
            min: u64_at(bytes, head::MIN),
            max: u64_at(bytes, head::MAX),
            amount: u64_at(bytes, head::AMOUNT),
            follows: u64_at(bytes, head::FOLLOWS),
            raw_count: count,
            ..Head::default()
        }
    }

    /// Whether nothing has been counted since `before`.
    pub(crate) fn is_still(&self, before: &Head) -> bool {
        self.raw_stat == before.raw_stat && self.raw_count == before.raw_count
    }

    pub(crate) fn clear(&mut self) {
        (self.count, self.raw_count, self.total) = (0, 0, 0);
        (self.min, self.max) = (u64::MAX, 0);
        (self.amount, self.follows) = (0, 0);
    }
}

/// The texts of an entry; the client's address is in its book.
pub(crate) fn identity_of(bytes: &[u8]) -> Identity {
    let text = |at| text_at(bytes, at, 64);
    Identity {
        kind: text(entry::KIND),
        database: text(entry::DATABASE),
        user: text(entry::USER),
        application: text(entry::APPLICATION),
        client: String::new(),
    }
}
