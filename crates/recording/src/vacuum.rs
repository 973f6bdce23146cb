// SPDX-License-Identifier: PostgreSQL
//! How far vacuum was behind, as the server answered every few minutes.

use crate::table::{table, Cell, Cells, Column, Columns, Table, Unit};
use std::sync::Arc;

table! {
    /// A table with many dead rows.
    DeadRowsRow in "dead_rows" by |a, b| (&a.database, &a.table, a.frame).cmp(&(&b.database, &b.table, b.frame));
    database: Arc<str>, Text, "Its database.";
    table: Arc<str>, Text, "Its name, with the schema unless that is `public`.";
    live: u64, Count, "Its rows, as the server estimates them.";
    dead: u64, Count, "Rows that no transaction needs any more, or that vacuum could not remove.";
    threshold: f64, Count, "Dead rows at which autovacuum comes.";
    autovacuum_off: bool, Flag, "Whether autovacuum is off, for the server or for this table.";
    #[serde(skip_serializing_if = "Option::is_none")]
    vacuumed_ago_ns: Option<u64>, Ns, "Time since its last vacuum; null: none since statistics were reset.";
}

table! {
    /// What kept dead rows from being removed.
    SnapshotRow in "snapshots" by |a, b| (&a.name, a.frame).cmp(&(&b.name, b.frame));
    name: Arc<str>, Text, "`session 123 (application psql, ...)`, `replication slot s`, `prepared transaction t`.";
    state: Arc<str>, Text, "The session's state, or empty.";
    transactions: u64, Count, "Transactions that began since the oldest one that it could see.";
    #[serde(skip_serializing_if = "Option::is_none")]
    held_ns: Option<u64>, Ns, "How long it had held that; null: not known.";
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<Arc<str>>, Text, "Whether it holds back only that database; null: all.";
}
