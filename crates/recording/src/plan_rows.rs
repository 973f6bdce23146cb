// SPDX-License-Identifier: PostgreSQL
//! Rows about the plans of statements, as noted by the sessions.

use crate::rows::{statement_key, RecordedStatementKey};
use crate::table::{table, Cell, Cells, Column, Columns, Table, Unit};
use segment::Application;
use std::sync::Arc;

table! {
    /// The executions of a plan that were noted in a detail interval.
    PlanRow in "plans" by |a, b| (a.key(), a.frame).cmp(&(b.key(), b.frame));
    interval_ns: u64, Ns, sum, "Time since the previous detail.";
    queryid: i64, Id, "As in `statements`.";
    database_id: u32, Id, "As in `statements`.";
    user_id: u32, Id, "As in `statements`.";
    toplevel: bool, Flag, "As in `statements`.";
    application: Arc<str>, Text, "As in `statements`.";
    planid: i64, Id, "Identifier of the plan: a hash of its nodes with their relations and indexes.";
    noted: u64, Count, sum, "Executions noted: slow ones, and the second one in each session.";
    exec_ns: u64, Ns, sum, "Total time of these executions.";
    exec_max_ns: u64, Ns, max, "The longest execution noted so far.";
    rows: u64, Count, sum, "Rows that these executions returned or changed.";
    last_us: i64, Time, max, "End of the last of these executions.";
}

table! {
    /// The text of a plan, once a day.
    PlanTextRow in "plan_texts" by |a, b| (a.key(), a.time_us).cmp(&(b.key(), b.time_us));
    queryid: i64, Id, "As in `statements`.";
    database_id: u32, Id, "As in `statements`.";
    user_id: u32, Id, "As in `statements`.";
    toplevel: bool, Flag, "As in `statements`.";
    application: Arc<str>, Text, "As in `statements`.";
    planid: i64, Id, "As in `plans`.";
    text: Arc<str>, Text, "Text of the plan, one line per node.";
    cut: bool, Flag, "Whether lines are missing at the end of the text.";
    cost: f64, Count, "The planner's cost estimate for the first execution noted.";
    first_us: i64, Time, "When the plan was first noted.";
    last_us: i64, Time, "When the plan was last noted before this row.";
    noted_before: u64, Count, "Executions noted before the detail interval of this row, since the server's start.";
    exec_before_ns: u64, Ns, "Total time of these executions.";
    rows_before: u64, Count, "Rows that these executions returned or changed.";
    exec_max_ns: u64, Ns, "The longest execution noted until then.";
}

statement_key! { statement: PlanRow PlanTextRow }

/// What identifies a plan.
pub(crate) type PlanKey = (RecordedStatementKey, i64);

impl PlanRow {
    /// The plan.
    pub(crate) fn key(&self) -> PlanKey {
        (self.statement(), self.planid)
    }
}

impl PlanTextRow {
    /// The plan.
    pub(crate) fn key(&self) -> PlanKey {
        (self.statement(), self.planid)
    }

    /// The executions noted before the detail interval of this row.
    pub(crate) fn before(&self) -> PlanRow {
        PlanRow {
            time_us: self.time_us,
            queryid: self.queryid,
            database_id: self.database_id,
            user_id: self.user_id,
            toplevel: self.toplevel,
            application: self.application.clone(),
            planid: self.planid,
            noted: self.noted_before,
            exec_ns: self.exec_before_ns,
            exec_max_ns: self.exec_max_ns,
            rows: self.rows_before,
            last_us: self.last_us,
            ..PlanRow::default()
        }
    }
}
