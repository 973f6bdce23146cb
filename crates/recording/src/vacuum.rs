// SPDX-License-Identifier: PostgreSQL
//! Contents of the server's own views, read every few minutes: how far vacuum was behind, and other
//! conditions.

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

table! {
    /// A condition of the server or of one of its objects that no wait shows.
    ConditionRow in "conditions" by |a, b| (&a.kind, &a.database, &a.name, a.frame).cmp(&(&b.kind, &b.database, &b.name, b.frame));
    kind: Arc<str>, Text, "`slot`, `prepared`, `age`, `archiver`, `replica`, `receiver`, `size`, `bloat`, `unused-index`, `duplicate-index`, `deadlocks`, `standby`, `throttled`, `catalog`, `statistics`, `setting`, `sequence`, `disk`, `ascending-index`, `stopped`, `table`, `column`, `index`, `foreign-key`, `hypothetical-index`, `pending-restart` or `configuration-error`, which say what the other columns mean; `asked`: the server was queried, so if no other row has this time, none of the conditions in `name` applied.";
    name: Arc<str>, Text, "`asked`: `server` (slots, ages, WAL archiving, replication, devices, stopped processes, settings), empty (also what databases say) or `objects` (also sizes, bloat, indexes). Name of the slot, gid, standby (`count` 0: synchronous_standby_names), table, setting, sequence, column, index (`ascending-index` too) or foreign key; `archiver`: WAL file archived last; `receiver`: host and port; `size`: empty for the whole database; `stopped`: role or title of the process; `disk`: what is on the file system; empty for `age`, `deadlocks` and `hypothetical-index`.";
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<Arc<str>>, Text, "Its database; null if it belongs to none.";
    state: Arc<str>, Text, "`slot`: type and whether it is inactive; `prepared`: the owner; `standby`: its states; `throttled`: the settings that make the worker sleep; `setting`: its value; `archiver`: `archives`, `fails: FILE` or, if the next attempt may succeed, `failed: FILE`; `replica`, `receiver`: its states; `unused-index`: its table; `duplicate-index`: its table and the index like it; `sequence`: the table that owns it; `ascending-index`: its table; `table`: of which it is a partition, and whether the server is a standby; `column`: its table; `index`, `foreign-key`, `hypothetical-index`: its table with the columns, then the rest; `configuration-error`: place and reason.";
    count: u64, Count, "`slot`: bytes free on the device of the WAL; `age`: age of the oldest transaction ID; `deadlocks`: since the row before; `sequence`: accesses to its page since then; `ascending-index`: rows inserted into its table; `disk`: bytes free; `standby`, `replica`, `receiver`, `throttled`, `stopped`: the pid; `archiver`: failed attempts; `catalog`, `statistics`, `size`: rows; `bloat`: size of the heap; `duplicate-index`: scans; `table`: its OID; `column`: number of its values; `hypothetical-index`: the planner's cost without it.";
    bytes: u64, Count, "`slot`: WAL retained; `age`: age of the oldest multixact; `standby`: WAL sent but not yet flushed there; `archiver`: WAL that waits; `replica`, `receiver`: WAL not replayed; `bloat`: estimated part without rows; `size`, `unused-index`, `duplicate-index`: size; `throttled`: dead rows; `catalog`: size; `setting`, `disk`: its size; `statistics`: rows changed since the last ANALYZE; `table`: size; `column`: nulls; `hypothetical-index`: the planner's cost with it.";
    #[serde(skip_serializing_if = "Option::is_none")]
    age_ns: Option<u64>, Ns, "`prepared`: age; `standby`: flush_lag; `archiver`: time since it archived a file; `replica`: replay_lag; `receiver`: time since the last replayed transaction; `bloat`, `unused-index`: age of the statistics; `throttled`: time since it began; `statistics`: time since the last ANALYZE; null: not known, or none.";
}
