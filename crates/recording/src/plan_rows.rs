// SPDX-License-Identifier: PostgreSQL
//! Rows of the plans of statements, as the sessions noted them.

use crate::rows::{statement_key, RecordedStatementKey};
use crate::table::{table, Cell, Cells, Column, Columns, Table, Unit};
use segment::Application;
use std::sync::Arc;

table! {
    /// The executions of a plan that were noted in a detail interval.
    PlanRow in "plans" by |a, b| (a.key(), a.frame).cmp(&(b.key(), b.frame));
    interval_ns: u64, Ns, sum, "Time since the detail before.";
    queryid: i64, Id, "As in `statements`.";
    database_id: u32, Id, "As in `statements`.";
    user_id: u32, Id, "As in `statements`.";
    toplevel: bool, Flag, "As in `statements`.";
    application: Arc<str>, Text, "As in `statements`.";
    planid: i64, Id, "The plan's: a hash of its nodes with their relations and indexes.";
    noted: u64, Count, sum, "Executions noted: the slow ones, and the second one of a session.";
    exec_ns: u64, Ns, sum, "Their time.";
    exec_max_ns: u64, Ns, max, "The longest of all that were noted until then.";
    rows: u64, Count, sum, "Rows that they returned or changed.";
    last_us: i64, Time, max, "When the last of them ended.";
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
    text: Arc<str>, Text, "A line for each node.";
    cut: bool, Flag, "Whether lines at its end are missing.";
    cost: f64, Count, "The planner's cost of the first execution noted.";
    first_us: i64, Time, "When it was first noted.";
    last_us: i64, Time, "When it was last noted before this row.";
    noted_before: u64, Count, "Executions noted before the detail interval of this row, since the server's start.";
    exec_before_ns: u64, Ns, "Their time.";
    rows_before: u64, Count, "Their rows.";
    exec_max_ns: u64, Ns, "The longest of all until then.";
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

    /// What was noted before the detail interval of this row.
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
