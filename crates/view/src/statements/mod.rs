// SPDX-License-Identifier: PostgreSQL
//! Statements: the figures of one reading or of one interval, as all
//! views and `--json` have them (docs/reference-json.md), their table, and the page of one.

mod current;
mod fields;
mod flood;
mod histogram;
mod page;
mod pane;
mod plans;
mod row;

use std::collections::HashMap;
use std::sync::Arc;

use segment::statements::{AccountTime, WaitClass};
use segment::{StatementKey, StatementsDelta};
use serde::{Serialize, Serializer};

pub use current::CurrentRow;
pub use fields::FIELDS;
pub use flood::Flood;
pub use histogram::Bucket;
pub use page::{page, Section};
pub use pane::{beginning, note, one_line, ordered, own, statements, table};
pub use plans::PlanRow;
pub use row::{Moments, Quantiles, StatementFigures};

/// The statements of a segment, in an interval or since the last reset (docs/reference-json.md).
#[derive(Debug, Clone, Default, Serialize)]
pub struct StatementsTable {
    /// When this was read, seconds since 1970.
    pub time: f64,
    /// Length of the interval; `None`: since the last reset.
    pub interval_seconds: Option<f64>,
    /// Time worked for clients' own statements, unidentified ones included.
    pub seconds: f64,
    /// The table that all sessions share.
    pub table: TableRow,
    /// What the table is full of, where statements of one kind evict others.
    pub flood: Option<Flood>,
    /// Statements are not counted at the moment: `tally cost` measures their cost.
    pub paused: bool,
    /// The statements that were active, most time first.
    pub rows: Vec<StatementFigures>,
    /// The statements that sessions work for now, by slot.
    pub current: Vec<CurrentRow>,
    /// Their plans; empty: none were noted, or nobody asked for them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub plans: Vec<PlanRow>,
    /// The readings from which these were computed.
    #[serde(skip)]
    pub source: Option<Arc<segment::StatementsReading>>,
}

/// The table of statements that all sessions share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct TableRow {
    /// Statements in it.
    pub used: u32,
    /// Its capacity.
    pub capacity: u32,
    /// Statements evicted, ever.
    pub evicted: u64,
    /// Counts that did not fit, ever.
    pub dropped: u64,
    /// Statements left inconsistent by a process that died, ever.
    pub lost: u64,
    /// Texts cut for lack of space, ever.
    pub texts_cut: u64,
    /// Bytes that all texts together may have.
    pub text_bytes: u64,
}

impl TableRow {
    /// The figures of one reading.
    pub fn from_reading(source: &segment::StatementsReading) -> TableRow {
        TableRow {
            used: source.entries(),
            capacity: source.capacity(),
            evicted: source.evicted(),
            dropped: source.dropped(),
            lost: source.lost(),
            texts_cut: source.texts_cut(),
            text_bytes: source.text_bytes(),
        }
    }
}

/// What the table is full of after so many evictions.
fn flood(statements: &segment::StatementsReading, evicted: u64) -> Option<Flood> {
    let texts = statements.statements().iter().filter_map(|statement| {
        Some((
            &*statement.text.as_ref()?.shown,
            statement.calls() + statement.errors() + statement.cancels(),
        ))
    });
    Flood::detect(texts, statements.entries(), statements.capacity(), evicted)
}

impl StatementsTable {
    /// The difference of two readings; without an earlier one, since the last reset.
    pub fn between(
        earlier: Option<&segment::StatementsReading>,
        later: &Arc<segment::StatementsReading>,
    ) -> StatementsTable {
        let delta = earlier.map_or_else(
            || StatementsDelta::total(later),
            |earlier| StatementsDelta::between(earlier, later),
        );
        let mut rows: Vec<StatementFigures> = delta
            .statements()
            .iter()
            .map(|statement| StatementFigures::from_statement(statement, later))
            .collect();
        current::add_unfinished(&mut rows, earlier, later);
        let asked_for = rows.iter().filter(|row| row.toplevel);
        let seconds = asked_for.map(|row| row.seconds).fold(0.0, |sum, s| sum + s);
        for row in &mut rows {
            row.share = if seconds > 0.0 { row.seconds / seconds } else { 0.0 };
        }
        rows.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then_with(|| a.key.cmp(&b.key)));
        StatementsTable {
            time: later.realtime_ns() as f64 * 1e-9,
            interval_seconds: earlier.map(|_| delta.seconds()),
            seconds,
            table: TableRow::from_reading(later),
            flood: flood(later, delta.evicted()),
            paused: later.paused(),
            rows,
            current: later
                .in_flight()
                .iter()
                .map(|it| CurrentRow::from_in_flight(it, later))
                .collect(),
            plans: Vec::new(),
            source: Some(later.clone()),
        }
    }

    /// The plans of a statement, the one used last first.
    pub fn plans_of(&self, key: &StatementKey) -> impl Iterator<Item = &PlanRow> {
        let key = *key;
        self.plans.iter().filter(move |plan| plan.key == key)
    }

    /// The statement with this key, if active.
    pub fn row(&self, key: &StatementKey) -> Option<&StatementFigures> {
        self.rows.iter().find(|row| row.key == *key)
    }

    /// The same statement since the last reset.
    pub fn whole(&self, key: &StatementKey) -> Option<StatementFigures> {
        let source = self.source.as_ref()?;
        let mut row = StatementFigures::from_statement(source.get(key)?, source);
        let asked_for = source.statements().iter().filter(|statement| statement.key.toplevel);
        let seconds = asked_for.map(|it| it.seconds()).fold(0.0, |sum, s| sum + s);
        row.share = if seconds > 0.0 { row.seconds / seconds } else { 0.0 };
        Some(row)
    }

    /// Drops the readings, which are large; [`Self::whole`] then finds nothing.
    pub fn forget_source(&mut self) {
        self.source = None;
    }

    /// The statements that sessions work for, by slot and generation.
    pub fn current_by_slot(&self) -> HashMap<(u32, u32), &CurrentRow> {
        self.current.iter().map(|row| ((row.slot, row.generation), row)).collect()
    }

    /// The statement that a session works for.
    pub fn current_of(&self, slot: u32, generation: u32) -> Option<&CurrentRow> {
        self.current.iter().find(|row| (row.slot, row.generation) == (slot, generation))
    }
}

/// Time by class of activity, seconds, in the order of [`WaitClass::ALL`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Split([f64; WaitClass::ALL.len()]);

impl Split {
    /// Sums these activities by class.
    pub fn from_activities(activities: &[ActivityRow]) -> Split {
        Split(WaitClass::ALL.map(|class| {
            let of_class = activities.iter().filter(|row| row.class.shown_as() == class);
            of_class.map(|row| row.seconds).sum::<f64>() + 0.0
        }))
    }

    /// The time of one class, seconds.
    pub fn class(&self, class: WaitClass) -> f64 {
        let shown = class.shown_as();
        WaitClass::ALL.iter().zip(self.0).find(|(it, _)| **it == shown).map_or(0.0, |(_, s)| s)
    }
}

impl Serialize for Split {
    /// As an object: `cpu_seconds`, `io_seconds`, ...
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let classes = WaitClass::ALL.iter().zip(self.0);
        to.collect_map(classes.map(|(class, s)| (format!("{}_seconds", class.name()), s)))
    }
}

/// Time in one account of the ledger.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ActivityRow {
    /// The phase.
    pub phase: Arc<str>,
    /// "cpu", or the wait event as `Type:Event`.
    pub activity: Arc<str>,
    /// The activity's class.
    #[serde(skip)]
    pub class: WaitClass,
    /// How many times it occurred.
    pub count: u64,
    /// Total time, seconds.
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
