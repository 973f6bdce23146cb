// SPDX-License-Identifier: PostgreSQL
//! Statements in words and numbers: the figures of one reading or of one interval, as every
//! view and `--json` have them (docs/reference-json.md), the table of them and the page of one.

mod current;
mod histogram;
mod page;
mod pane;
mod row;

use std::sync::Arc;

use segment::statements::{AccountTime, WaitClass};
use segment::{StatementKey, StatementsDelta};
use serde::Serialize;

pub use current::CurrentRow;
pub use histogram::Bucket;
pub use page::{page, Section};
pub use pane::{note, one_line, ordered, statements, table};
pub use row::{Moments, Quantiles, StatementRow};

/// The statements of a segment, in an interval or since the last reset (docs/reference-json.md).
#[derive(Debug, Clone, Default, Serialize)]
pub struct Statements {
    /// When this was read, seconds since 1970.
    pub time: f64,
    /// Length of the interval; `None`: since the last reset.
    pub interval_seconds: Option<f64>,
    /// Time worked for what the clients themselves asked for, the not identified included.
    pub seconds: f64,
    /// The table that all sessions share.
    pub table: TableRow,
    /// Statements are not counted for the moment: `tally cost` measures what that costs.
    pub paused: bool,
    /// The statements that did something, most time first.
    pub rows: Vec<StatementRow>,
    /// What the sessions work for now, by slot.
    pub current: Vec<CurrentRow>,
    /// What all this was made from.
    #[serde(skip)]
    pub source: Option<Arc<segment::Statements>>,
}

/// The table of statements that all sessions share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TableRow {
    /// Statements in it.
    pub used: u32,
    /// Statements for which it has room.
    pub capacity: u32,
    /// Taken out for others, ever.
    pub evicted: u64,
    /// Counts that found no room, ever.
    pub dropped: u64,
    /// Left half changed by a process that died, ever.
    pub lost: u64,
    /// Texts that were cut because there was no room for more, ever.
    pub texts_cut: u64,
}

impl TableRow {
    /// As a reading found it.
    pub fn of(source: &segment::Statements) -> TableRow {
        TableRow {
            used: source.entries(),
            capacity: source.capacity(),
            evicted: source.evicted(),
            dropped: source.dropped(),
            lost: source.lost(),
            texts_cut: source.texts_cut(),
        }
    }
}

impl Statements {
    /// What happened between two readings; without an earlier one, since the last reset.
    pub fn between(
        earlier: Option<&segment::Statements>,
        later: &Arc<segment::Statements>,
    ) -> Statements {
        let delta = StatementsDelta::between(earlier, later);
        let mut rows: Vec<StatementRow> =
            delta.statements().iter().map(|it| StatementRow::of(it, later)).collect();
        current::add_unfinished(&mut rows, earlier, later);
        let asked_for = rows.iter().filter(|row| row.toplevel);
        let seconds = asked_for.map(|row| row.seconds).fold(0.0, |sum, s| sum + s);
        for row in &mut rows {
            row.share = if seconds > 0.0 { row.seconds / seconds } else { 0.0 };
        }
        rows.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then_with(|| a.key.cmp(&b.key)));
        Statements {
            time: later.realtime_ns() as f64 * 1e-9,
            interval_seconds: earlier.map(|_| delta.seconds()),
            seconds,
            table: TableRow::of(later),
            paused: later.paused(),
            rows,
            current: later.in_flight().iter().map(|it| CurrentRow::of(it, later)).collect(),
            source: Some(later.clone()),
        }
    }

    /// The statement of this key, where it did something.
    pub fn row(&self, key: &StatementKey) -> Option<&StatementRow> {
        self.rows.iter().find(|row| row.key == *key)
    }

    /// The same since the last reset.
    pub fn whole(&self, key: &StatementKey) -> Option<StatementRow> {
        let source = self.source.as_ref()?;
        let mut row = StatementRow::of(source.get(key)?, source);
        let asked_for = source.statements().iter().filter(|it| it.key.toplevel);
        let seconds = asked_for.map(|it| it.seconds()).fold(0.0, |sum, s| sum + s);
        row.share = if seconds > 0.0 { row.seconds / seconds } else { 0.0 };
        Some(row)
    }

    /// From now on `whole` knows of nothing; what all this was made from is large.
    pub fn forget_source(&mut self) {
        self.source = None;
    }

    /// What a session works for.
    pub fn current_of(&self, slot: u32, generation: u32) -> Option<&CurrentRow> {
        self.current.iter().find(|row| (row.slot, row.generation) == (slot, generation))
    }
}

/// Time by class of activity.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Split {
    pub cpu_seconds: f64,
    pub io_seconds: f64,
    pub lock_seconds: f64,
    pub lwlock_seconds: f64,
    pub client_seconds: f64,
    pub ipc_seconds: f64,
    pub other_seconds: f64,
}

impl Split {
    /// Of these activities.
    pub fn of(activities: &[ActivityRow]) -> Split {
        let mut split = Split::default();
        for row in activities {
            *match row.class.shown_as() {
                WaitClass::Cpu => &mut split.cpu_seconds,
                WaitClass::Io => &mut split.io_seconds,
                WaitClass::Lock => &mut split.lock_seconds,
                WaitClass::Lwlock => &mut split.lwlock_seconds,
                WaitClass::Client => &mut split.client_seconds,
                WaitClass::Ipc => &mut split.ipc_seconds,
                _ => &mut split.other_seconds,
            } += row.seconds;
        }
        split
    }

    /// Of one class.
    pub fn class(&self, class: WaitClass) -> f64 {
        match class.shown_as() {
            WaitClass::Cpu => self.cpu_seconds,
            WaitClass::Io => self.io_seconds,
            WaitClass::Lock => self.lock_seconds,
            WaitClass::Lwlock => self.lwlock_seconds,
            WaitClass::Client => self.client_seconds,
            WaitClass::Ipc => self.ipc_seconds,
            _ => self.other_seconds,
        }
    }
}

/// Time in one account of the ledger.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ActivityRow {
    /// What was done for the client.
    pub phase: Arc<str>,
    /// "cpu", or the wait event as `Type:Event`.
    pub activity: Arc<str>,
    /// The class of that.
    #[serde(skip)]
    pub class: WaitClass,
    /// Stretches.
    pub count: u64,
    /// Their time.
    pub seconds: f64,
}

impl ActivityRow {
    fn all(split: segment::statements::Split) -> Vec<ActivityRow> {
        let row = |a: AccountTime| ActivityRow {
            phase: a.phase,
            activity: a.activity,
            class: a.class,
            count: a.count,
            seconds: a.seconds,
        };
        split.accounts.into_iter().map(row).collect()
    }
}
