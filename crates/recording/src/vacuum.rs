// SPDX-License-Identifier: PostgreSQL
//! How far vacuum was behind, as the server reported every few minutes.

use crate::table::{table, Cell, Cells, Column, Columns, Table, Unit};
use std::sync::Arc;

table! {
    /// A table with many dead rows.
    DeadRowsRow in "dead_rows" by |a, b| (&a.database, &a.table, a.frame).cmp(&(&b.database, &b.table, b.frame));
    database: Arc<str>, Text, "Name of the database.";
    table: Arc<str>, Text, "Name of the table, schema-qualified unless the schema is `public`.";
    live: u64, Count, "The server's estimate of live rows.";
    dead: u64, Count, "The server's estimate of dead rows.";
    threshold: f64, Count, "Number of dead rows at which autovacuum vacuums the table.";
    autovacuum_off: bool, Flag, "Whether autovacuum is off, for the server or for this table.";
    #[serde(skip_serializing_if = "Option::is_none")]
    vacuumed_ago_ns: Option<u64>, Ns, "Time since the last vacuum; null: none since the statistics were reset.";
}

table! {
    /// What kept dead rows from being removed.
    SnapshotRow in "snapshots" by |a, b| (&a.name, a.frame).cmp(&(&b.name, b.frame));
    name: Arc<str>, Text, "`session 123 (application psql, ...)`, `replication slot s`, `prepared transaction t`.";
    state: Arc<str>, Text, "The session's state, or empty.";
    transactions: u64, Count, "Transactions that began since the oldest one that the snapshot can see.";
    #[serde(skip_serializing_if = "Option::is_none")]
    held_ns: Option<u64>, Ns, "How long the snapshot has been held; null: not known.";
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<Arc<str>>, Text, "The only database that the snapshot holds back; null: all databases.";
}
