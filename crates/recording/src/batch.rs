// SPDX-License-Identifier: PostgreSQL
//! Rows of all tables that are written together.

use crate::client_waits::{ClientWaitsRow, EndedSessionsRow};
use crate::error::Error;
use crate::plan_rows::{PlanRow, PlanTextRow};
use crate::recorded_statement::RecordedStatementRow;
use crate::rows::{
    DeviceRow, EventRow, FrameRow, GapRow, KernelRow, MarkRow, RelationRow, RunRow, ServerIoRow,
    ServerRow, SessionsRow, SettingRow, StatementAccountRow, TextRow,
};
use crate::server_log::{LogFileRow, LogRow};
use crate::session_history::SessionHistoryRow;
use crate::slow_executions::SlowExecutionRow;
use crate::statistics::{HistogramRow, StatRow};
use crate::table::Table;
use crate::vacuum::{ConditionRow, DeadRowsRow, SnapshotRow};
use serde::{Deserialize, Serialize};

macro_rules! batch {
    ($($field:ident: $row:ty,)*) => {
        /// Rows of all tables. The writer keeps all rows of a batch or none.
        #[derive(Debug, Clone, Default, Serialize, Deserialize)]
        #[serde(default)]
        pub struct Batch {
            /// Rows of `statistics`; the journal has its own encoding for them.
            #[serde(skip)]
            pub statistics: Vec<StatRow>,
            /// Rows of `histograms`; the journal has its own encoding for them.
            #[serde(skip)]
            pub histograms: Vec<HistogramRow>,
            $(
                #[doc = concat!("[`", stringify!($row), "`]s.")]
                #[serde(skip_serializing_if = "Vec::is_empty")]
                pub $field: Vec<$row>,
            )*
        }

        impl Batch {
            /// Visit the rows of each table, `frames` last.
            pub(crate) fn each(&mut self, visit: &mut impl Visit) -> Result<(), Error> {
                visit.table(&mut self.statistics)?;
                visit.table(&mut self.histograms)?;
                $(visit.table(&mut self.$field)?;)*
                Ok(())
            }

            /// Add the rows of another batch.
            pub fn append(&mut self, mut other: Batch) {
                self.statistics.append(&mut other.statistics);
                self.histograms.append(&mut other.histograms);
                $(self.$field.append(&mut other.$field);)*
            }

            /// Set interval and time in rows where they are 0.
            pub fn stamp(&mut self, frame: u64, time_us: i64) {
                $(for row in &mut self.$field {
                    if row.frame == 0 {
                        row.frame = frame;
                    }
                    if row.time_us == 0 {
                        row.time_us = time_us;
                    }
                })*
            }

            /// Whether there are no rows.
            pub fn is_empty(&self) -> bool {
                self.statistics.is_empty() && self.histograms.is_empty()
                    $(&& self.$field.is_empty())*
            }
        }

        /// The names of all tables.
        pub const TABLES: &[&str] =
            &[StatRow::NAME, HistogramRow::NAME, $(<$row as Table>::NAME),*];
    };
}

batch! {
    sessions: SessionsRow,
    session_history: SessionHistoryRow,
    client_waits: ClientWaitsRow,
    ended_sessions: EndedSessionsRow,
    kernel: KernelRow,
    statements: RecordedStatementRow,
    statement_accounts: StatementAccountRow,
    statement_texts: TextRow,
    plans: PlanRow,
    plan_texts: PlanTextRow,
    slow_executions: SlowExecutionRow,
    dead_rows: DeadRowsRow,
    snapshots: SnapshotRow,
    conditions: ConditionRow,
    relations: RelationRow,
    events: EventRow,
    log: LogRow,
    log_files: LogFileRow,
    devices: DeviceRow,
    server_io: ServerIoRow,
    settings: SettingRow,
    gaps: GapRow,
    marks: MarkRow,
    runs: RunRow,
    servers: ServerRow,
    frames: FrameRow,
}

/// A visitor of the rows of each table.
pub(crate) trait Visit {
    /// Visit the rows of one table.
    fn table<T: Table>(&mut self, rows: &mut Vec<T>) -> Result<(), Error>;
}
