// SPDX-License-Identifier: PostgreSQL
//! Rows of the plans of statements.

use std::collections::HashMap;
use std::sync::Arc;

use recording::{Batch, PlanRow, PlanTextRow};
use segment::{Clock, Plan, StatementKey};

/// Builds the rows of `plans` and `plan_texts`.
#[derive(Debug, Default)]
pub struct PlanRows {
    /// The plans at the last details; `None` before the first.
    before: Option<HashMap<(StatementKey, u64), Plan>>,
    /// Whether all texts have been passed to the writer, which writes each once a day.
    begun: bool,
}

/// The end of a detail interval, and its length.
#[derive(Debug, Clone, Copy)]
pub struct PlanSpan {
    /// The number of the interval that it ends with.
    pub frame: u64,
    /// Its end, microseconds since 1970.
    pub time_us: i64,
    /// Its end by the segment's clock, tick.
    pub tick: u64,
    /// Its length, ns.
    pub interval_ns: u64,
}

fn by_key(plans: Vec<Plan>) -> HashMap<(StatementKey, u64), Plan> {
    plans.into_iter().map(|plan| ((plan.statement, plan.shape), plan)).collect()
}

impl PlanRows {
    /// Sets the starting point: executions noted before the recording are not part of the first detail interval.
    pub fn begin(&mut self, plans: Vec<Plan>) {
        self.before = Some(by_key(plans));
    }

    /// Adds the rows of a detail interval: plans with new executions, and their texts. The first call adds the texts of
    /// all plans.
    pub fn add(&mut self, plans: Vec<Plan>, clock: &Clock, span: PlanSpan, batch: &mut Batch) {
        let ns = |ticks: u64| (clock.seconds(ticks) * 1e9).round() as u64;
        let time_us = |tick: u64| {
            let ago = clock.seconds(span.tick.saturating_sub(tick)) * 1e6;
            span.time_us.saturating_sub(ago.round() as i64)
        };
        let now = by_key(plans);
        let before = self.before.take().unwrap_or_default();
        let first = !std::mem::replace(&mut self.begun, true);
        for (key, plan) in &now {
            let none = Plan { count: 0, ticks: 0, rows: 0, ..plan.clone() };
            // A plan that was reset, or was evicted and noted again, counts from zero.
            let same = |earlier: &&Plan| earlier.first == plan.first && earlier.count <= plan.count;
            let earlier = before.get(key).filter(same).unwrap_or(&none);
            let statement = plan.statement;
            let application: Arc<str> = statement.application.name().unwrap_or_default().into();
            let noted = plan.count - earlier.count;
            if noted > 0 {
                batch.plans.push(PlanRow {
                    frame: span.frame,
                    time_us: span.time_us,
                    interval_ns: span.interval_ns,
                    queryid: statement.query_id(),
                    database_id: statement.database_id,
                    user_id: statement.user_id,
                    toplevel: statement.toplevel,
                    application: application.clone(),
                    planid: plan.shape as i64,
                    noted,
                    exec_ns: ns(plan.ticks.saturating_sub(earlier.ticks)),
                    exec_max_ns: ns(plan.max),
                    rows: plan.rows.saturating_sub(earlier.rows),
                    last_us: time_us(plan.last),
                });
            }
            if noted > 0 || first {
                batch.plan_texts.push(PlanTextRow {
                    frame: span.frame,
                    time_us: span.time_us,
                    queryid: statement.query_id(),
                    database_id: statement.database_id,
                    user_id: statement.user_id,
                    toplevel: statement.toplevel,
                    application,
                    planid: plan.shape as i64,
                    text: plan.text.as_str().into(),
                    cut: plan.cut,
                    cost: plan.cost,
                    first_us: time_us(plan.first),
                    last_us: time_us(plan.last),
                    noted_before: earlier.count,
                    exec_before_ns: ns(earlier.ticks),
                    rows_before: earlier.rows,
                    exec_max_ns: ns(plan.max),
                });
            }
        }
        self.before = Some(now);
    }
}
