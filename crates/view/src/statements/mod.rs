// SPDX-License-Identifier: PostgreSQL
//! Statements: the figures of one reading or of one interval, for all views and `--json`
//! (docs/reference-json.md), their table, and the page of one statement.

mod current;
mod fields;
mod flood;
mod histogram;
mod model;
mod page;
mod pane;
mod plans;
mod row;
mod slow_executions;
mod split;

use std::collections::HashMap;
use std::sync::Arc;

use segment::interval::SessionRow;
use segment::sampling::time_half_width;
use segment::statements::counter;
use segment::{StatementKey, StatementsDelta};

pub use current::CurrentRow;
pub use fields::FIELDS;
pub use flood::Flood;
pub use histogram::Bucket;
pub use model::{SessionCalls, StatementsTable, TableRow};
pub use page::page;
pub use pane::{
    beginning, named, note, one_line, ordered, own, statements, table, with_whole_texts,
};
pub use plans::PlanRow;
pub use row::{Moments, Quantiles, SecondsSource, StatementFigures, StatementSamples};
pub use slow_executions::SlowExecutionFigures;
pub use split::{ActivityRow, Split};

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

/// Half the width of the 95 % interval of the time of all statements that clients sent, whose errors are independent.
fn sum_half_width(rows: &[StatementFigures]) -> f64 {
    let asked_for = rows.iter().filter(|row| row.toplevel);
    let squares = asked_for.filter_map(|row| row.half_width_seconds).map(|half| half * half);
    (squares.sum::<f64>() + 0.0).sqrt()
}

/// What fills the table, after so many evictions.
fn flood(statements: &segment::StatementsReading, evicted: u64) -> Option<Flood> {
    let texts = statements.statements().iter().filter_map(|statement| {
        let [errors, cancels] =
            [counter::ERRORS, counter::CANCELS].map(|at| statement.counted()[at]);
        Some((&*statement.text.as_ref()?.shown, statement.calls() + errors + cancels))
    });
    let recorded = statements.is_recorded().then_some(statements.statements().len() as u64);
    Flood::detect(texts, statements.entries(), statements.capacity(), evicted, recorded)
}

impl SessionCalls {
    /// What sessions called since an earlier reading.
    pub fn between(
        earlier: Option<&segment::StatementsReading>,
        later: &segment::StatementsReading,
    ) -> Vec<SessionCalls> {
        let calls = |(slot, key, now): (u32, &StatementKey, u64)| {
            let before = earlier.map_or(0, |earlier| earlier.calls_of_slot(slot, key));
            // After a flush, the session began again at zero.
            let calls = now.checked_sub(before).unwrap_or(now);
            SessionCalls { slot, key: *key, calls }
        };
        later.of_slots().map(calls).filter(|calls| calls.calls > 0).collect()
    }

    /// The statement that the session of a slot called most, and its calls.
    pub fn most_of(all: &[SessionCalls], slot: u32) -> Option<(&StatementKey, u64)> {
        let of_slot = all.iter().filter(|calls| calls.slot == slot);
        let most = of_slot.max_by_key(|calls| (calls.calls, calls.key))?;
        Some((&most.key, most.calls))
    }
}

impl StatementsTable {
    /// The difference of two readings; without an earlier one, the figures since the last reset.
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
        if let Some(distance) = later.sample_seconds() {
            rows.iter_mut().for_each(|row| row.set_sampled(distance));
        }
        let asked_for = rows.iter().filter(|row| row.toplevel);
        let seconds = asked_for.map(|row| row.seconds).fold(0.0, |sum, s| sum + s);
        for row in &mut rows {
            row.share = if seconds > 0.0 { row.seconds / seconds } else { 0.0 };
        }
        let half_width_seconds = later.sample_seconds().map(|_| sum_half_width(&rows));
        if let Some(of_all) = half_width_seconds {
            rows.iter_mut().for_each(|row| row.set_share_half_width(seconds, of_all));
        }
        rows.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then_with(|| a.key.cmp(&b.key)));
        StatementsTable {
            time: later.realtime_ns() as f64 * 1e-9,
            interval_seconds: earlier.map(|_| delta.seconds()),
            sample_seconds: later.sample_seconds(),
            seconds,
            half_width_seconds,
            table: TableRow::from_reading(later),
            flood: flood(later, delta.evicted()),
            paused: later.paused(),
            rows,
            current: later
                .in_flight()
                .iter()
                .map(|message| CurrentRow::from_in_flight(message, later))
                .collect(),
            of_sessions: SessionCalls::between(earlier, later),
            plans: Vec::new(),
            slow_executions: Vec::new(),
            source: Some(later.clone()),
        }
    }

    /// The plans of a statement, the one used last first.
    pub fn plans_of(&self, key: &StatementKey) -> impl Iterator<Item = &PlanRow> {
        let key = *key;
        self.plans.iter().filter(move |plan| plan.key == key)
    }

    /// The slowest executions of a statement with their parameters, the slowest first.
    pub fn slow_executions_of(
        &self,
        key: &StatementKey,
    ) -> impl Iterator<Item = &SlowExecutionFigures> {
        let key = *key;
        self.slow_executions.iter().filter(move |execution| execution.key == key)
    }

    /// The statement with this key, if it was active.
    pub fn row(&self, key: &StatementKey) -> Option<&StatementFigures> {
        self.rows.iter().find(|row| row.key == *key)
    }

    /// The same statement since the last reset.
    pub fn whole(&self, key: &StatementKey) -> Option<StatementFigures> {
        let source = self.source.as_ref()?;
        let mut row = StatementFigures::from_statement(source.get(key)?, source);
        let asked_for = source.statements().iter().filter(|statement| statement.key.toplevel);
        let seconds = asked_for.map(|message| message.seconds()).fold(0.0, |sum, s| sum + s);
        row.share = if seconds > 0.0 { row.seconds / seconds } else { 0.0 };
        if let Some(distance) = source.sample_seconds() {
            row.set_sampled(distance);
            row.set_share_half_width(seconds, time_half_width(seconds, distance));
        }
        Some(row)
    }

    /// Drops the readings, which are large; afterwards [`Self::whole`] finds nothing.
    pub fn forget_source(&mut self) {
        self.source = None;
    }

    /// The statements that sessions work for, by the process.
    pub fn current_by_pid(&self) -> HashMap<i32, &CurrentRow> {
        self.current.iter().map(|row| (row.pid, row)).collect()
    }

    /// The statement that a session works for.
    pub fn current_of(&self, session: &SessionRow) -> Option<&CurrentRow> {
        self.current.iter().find(|row| row.is_of(session))
    }
}
