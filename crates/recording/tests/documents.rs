// SPDX-License-Identifier: PostgreSQL
//! docs/reference-recording.md names every column of every table, and no others.

use recording::{
    Batch, ClientWaitsRow, Column, ConditionRow, DeadRowsRow, DeviceRow, EndedSessionsRow,
    EventRow, FrameRow, GapRow, HistogramRow, KernelRow, LogFileRow, LogRow, MarkRow, PlanRow,
    PlanTextRow, RecordedStatementRow, RelationRow, RunRow, ServerIoRow, ServerRow,
    SessionHistoryRow, SessionsRow, SettingRow, SlowExecutionRow, SnapshotRow, StatRow,
    StatementAccountRow, Table, TextRow, TABLES,
};
use std::collections::{BTreeMap, BTreeSet};

fn columns<T: Table>() -> (&'static str, BTreeSet<String>) {
    let own = |column: &Column| column.name.to_string();
    (T::NAME, T::columns().iter().map(own).filter(|n| n != "frame" && n != "time").collect())
}

#[test]
fn the_document_has_every_column() {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference-recording.md"
    ))
    .unwrap();
    let mut documented: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for section in text.split("\n## `").skip(1) {
        let (name, body) = section.split_once('`').unwrap();
        let cells = body.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" |"));
        let names = cells.flat_map(|(names, _)| names.split(','));
        documented
            .insert(name, names.map(|name| name.trim_matches([' ', '`']).to_string()).collect());
    }
    let known = BTreeMap::from([
        columns::<StatRow>(),
        columns::<HistogramRow>(),
        columns::<FrameRow>(),
        columns::<SessionsRow>(),
        columns::<SessionHistoryRow>(),
        columns::<ClientWaitsRow>(),
        columns::<EndedSessionsRow>(),
        columns::<KernelRow>(),
        columns::<RecordedStatementRow>(),
        columns::<StatementAccountRow>(),
        columns::<TextRow>(),
        columns::<PlanRow>(),
        columns::<DeadRowsRow>(),
        columns::<SnapshotRow>(),
        columns::<ConditionRow>(),
        columns::<PlanTextRow>(),
        columns::<SlowExecutionRow>(),
        columns::<RelationRow>(),
        columns::<EventRow>(),
        columns::<LogRow>(),
        columns::<LogFileRow>(),
        columns::<DeviceRow>(),
        columns::<ServerIoRow>(),
        columns::<SettingRow>(),
        columns::<GapRow>(),
        columns::<MarkRow>(),
        columns::<RunRow>(),
        columns::<ServerRow>(),
    ]);
    assert_eq!(known.len(), TABLES.len());
    assert_eq!(documented, known);
    assert!(Batch::default().is_empty());
}
