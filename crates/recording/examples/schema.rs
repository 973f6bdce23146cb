// SPDX-License-Identifier: PostgreSQL
//! Prints the tables of recordings: each column with its type, its unit and how it is merged.
//!
//!     cargo run -p recording --example schema

use recording::{
    ClientWaitsRow, ConditionRow, DeadRowsRow, DeviceRow, EndedSessionsRow, EventRow, FrameRow,
    GapRow, HistogramRow, KernelRow, MarkRow, PlanRow, PlanTextRow, RecordedStatementRow,
    RelationRow, RunRow, ServerIoRow, ServerRow, SessionHistoryRow, SessionsRow, SettingRow,
    SlowExecutionRow, SnapshotRow, StatRow, StatementAccountRow, Table, TextRow,
};

fn print<T: Table>() {
    println!("{}", T::NAME);
    for column in T::columns() {
        let rule = T::rules().iter().find(|rule| rule.0 == column.name).map_or("", |rule| rule.1);
        println!("    {} {:?} {:?} {rule}", column.name, column.shape, column.unit);
    }
}

macro_rules! print_all {
    ($($row:ident)*) => {$( print::<$row>(); )*};
}

fn main() {
    print_all! {
        StatRow HistogramRow SessionsRow SessionHistoryRow ClientWaitsRow EndedSessionsRow KernelRow RecordedStatementRow StatementAccountRow
        TextRow PlanRow PlanTextRow SlowExecutionRow DeadRowsRow SnapshotRow ConditionRow RelationRow EventRow DeviceRow ServerIoRow
        SettingRow GapRow MarkRow RunRow ServerRow FrameRow
    }
}
