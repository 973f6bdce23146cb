// SPDX-License-Identifier: PostgreSQL
//! Messages of the server's log, and how far the log was read.

use crate::table::{table, Cell, Cells, Column, Columns, Table, Unit};
use std::sync::Arc;

table! {
    /// A message of the server's log.
    LogRow in "log" by |a, b| (a.time_us, a.frame).cmp(&(b.time_us, b.frame));
    #[serde(skip_serializing_if = "Option::is_none")]
    logged_us: Option<i64>, Time, "When the server logged it, also if it was read much later; null: no time, or none that could be read.";
    kind: Arc<str>, Text, "`error`, `deadlock`, `warning`, `plan`, `statement`, `lock wait`, `autovacuum`, `checkpoint` or `temporary file`.";
    pid: i64, Id, "PID of the process; 0: not in the log.";
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<Arc<str>>, Text, "Kind of the process, as in pg_stat_activity.";
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<Arc<str>>, Text, "Its database.";
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<Arc<str>>, Text, "Its user.";
    #[serde(skip_serializing_if = "Option::is_none")]
    application: Option<Arc<str>>, Text, "Its application_name.";
    severity: Arc<str>, Text, "`ERROR`, `LOG` and so on, as the server wrote it.";
    sqlstate: Arc<str>, Text, "The SQLSTATE code; empty if the log has none.";
    message: Arc<str>, Text, "The message; empty with `--texts hash` and `omit`, because it may contain values.";
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<Arc<str>>, Text, "Its DETAIL: of a deadlock, both statements.";
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<Arc<str>>, Text, "Its CONTEXT.";
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<Arc<str>>, Text, "The statement, with `?` for its constants.";
    #[serde(skip_serializing_if = "Option::is_none")]
    queryid: Option<i64>, Id, "Its query id.";
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ns: Option<u64>, Ns, "The duration that the message states.";
}

table! {
    /// How far the server's log was read.
    LogFileRow in "log_files" by |a, b| (a.time_us, a.frame).cmp(&(b.time_us, b.frame));
    file: Arc<str>, Text, "Path of the file.";
    inode: u64, Id, "Its inode number.";
    offset: u64, Bytes, "Bytes of it that were read.";
    messages: u64, Count, "Messages read since the previous row, of all kinds.";
    left_out: u64, Count, "Messages of the kinds above not stored in `log`, because there were too many in the interval.";
    unknown: u64, Count, "Messages that could not be understood.";
}
