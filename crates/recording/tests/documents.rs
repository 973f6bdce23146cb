// SPDX-License-Identifier: PostgreSQL
//! docs/reference-recording.md has every column of every table with its type and unit, and no others.

use recording::{
    Batch, ClientWaitsRow, Column, ConditionRow, DeadRowsRow, DeviceRow, EndedSessionsRow,
    EventRow, FrameRow, GapRow, HistogramRow, KernelRow, LogFileRow, LogRow, MarkRow, PlanRow,
    PlanTextRow, RecordedStatementRow, RelationRow, RunRow, ServerIoRow, ServerRow,
    SessionHistoryRow, SessionsRow, SettingRow, Shape, SlowExecutionRow, SnapshotRow, StatRow,
    StatementAccountRow, Table, TextRow, Unit, TABLES,
};
use std::collections::BTreeMap;

/// The columns of a table by name: type and unit.
type Described = BTreeMap<String, (String, String)>;

fn shape(column: &Column) -> &'static str {
    match (column.shape, column.unit) {
        (Shape::Long, Unit::Time) => "timestamp",
        (Shape::OptLong, Unit::Time) => "timestamp or null",
        (Shape::Long, _) => "int64",
        (Shape::OptLong, _) => "int64 or null",
        (Shape::Double, _) => "double",
        (Shape::Bool, _) => "boolean",
        (Shape::Text, _) => "text",
        (Shape::OptText, _) => "text or null",
        (Shape::Longs, _) => "list of int64",
    }
}

fn unit(column: &Column) -> &'static str {
    match column.unit {
        Unit::Time => "UTC",
        Unit::Ns => "ns",
        Unit::Count => "count",
        Unit::Bytes => "bytes",
        Unit::Id => "id",
        Unit::Text => "text",
        Unit::Flag => "yes/no",
        Unit::NsSquared => "ns²",
        Unit::Share => "share",
        Unit::Given => "`unit`",
    }
}

fn columns<T: Table>() -> (&'static str, Described) {
    let own = |column: &Column| {
        (column.name.to_string(), (shape(column).to_string(), unit(column).to_string()))
    };
    let others = |(name, _): &(String, _)| name != "frame" && name != "time";
    (T::NAME, T::columns().iter().map(own).filter(others).collect())
}

#[test]
fn the_document_has_every_column() {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference-recording.md"
    ))
    .unwrap();
    let mut documented: BTreeMap<&str, Described> = BTreeMap::new();
    for section in text.split("\n## `").skip(1) {
        let (name, body) = section.split_once('`').unwrap();
        let columns = documented.entry(name).or_default();
        for row in body.lines().filter(|line| line.starts_with("| `")) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            for column in cells[1].split(',') {
                let described = (cells[2].to_string(), cells[3].to_string());
                columns.insert(column.trim_matches([' ', '`']).to_string(), described);
            }
        }
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
    // Described for `statistics`, and in a word that is more exact than the unit.
    for (table, columns) in &mut documented {
        for (column, described) in columns {
            let actual = known.get(table).and_then(|columns| columns.get(column));
            let exact = described.1 == "planner's units" || *described == Default::default();
            if let (true, Some(actual)) = (exact, actual) {
                *described = actual.clone();
            }
        }
    }
    assert_eq!(documented, known);
    assert!(Batch::default().is_empty());
}
