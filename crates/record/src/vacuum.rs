// SPDX-License-Identifier: PostgreSQL
//! Rows with the contents of the server's own views.

use recording::{Batch, ConditionRow, DeadRowsRow, SnapshotRow};
use view::vacuum::Vacuum;

fn ns(seconds: f64) -> u64 {
    (seconds * 1e9).max(0.0).round() as u64
}

fn count(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

/// Adds the rows of a reply of the server; they are stamped with the current interval.
pub fn add(answer: &Vacuum, batch: &mut Batch) {
    batch.dead_rows.extend(answer.tables.iter().map(|table| DeadRowsRow {
        database: table.database.as_str().into(),
        table: table.name.as_str().into(),
        live: count(table.live_rows),
        dead: count(table.dead_rows),
        threshold: table.threshold,
        autovacuum_off: table.autovacuum_off,
        vacuumed_ago_ns: table.vacuumed_seconds_ago.map(ns),
        ..DeadRowsRow::default()
    }));
    batch.snapshots.extend(answer.holders.iter().map(|holder| SnapshotRow {
        name: holder.name.as_str().into(),
        state: holder.state.as_str().into(),
        transactions: count(holder.transactions),
        held_ns: holder.seconds.map(ns),
        database: holder.database.as_deref().map(Into::into),
        ..SnapshotRow::default()
    }));
    // Otherwise an answer without conditions would leave the former ones as the last.
    let name = answer.scope.name().into();
    batch.conditions.push(ConditionRow { kind: "asked".into(), name, ..ConditionRow::default() });
    let recorded = answer.conditions.iter().filter(|condition| condition.kind.is_recorded());
    batch.conditions.extend(recorded.map(|condition| ConditionRow {
        kind: condition.kind.name().into(),
        name: condition.name.as_str().into(),
        database: condition.database.as_deref().map(Into::into),
        state: condition.state.as_str().into(),
        count: count(condition.count),
        bytes: count(condition.bytes),
        age_ns: condition.seconds.map(ns),
        ..ConditionRow::default()
    }));
}
