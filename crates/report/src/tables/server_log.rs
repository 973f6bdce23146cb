// SPDX-License-Identifier: PostgreSQL
//! The server's log: errors by SQLSTATE and statement, and the other messages.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use recording::LogRow;

use crate::material::Material;
use view::document::{Cell, Column, OverTime, Table, Tone, Unit};

/// Kinds of messages that are errors.
const ERRORS: [&str; 2] = ["error", "deadlock"];
/// Most messages in the table, the latest ones.
const MOST: usize = 1000;

/// When a message was logged, seconds since 1970.
pub fn logged(row: &LogRow) -> f64 {
    row.logged_us.unwrap_or(row.time_us) as f64 * 1e-6
}

/// Whether a message is an error.
pub fn is_error(row: &LogRow) -> bool {
    ERRORS.contains(&&*row.kind)
}

/// Errors that have everything but their values in common.
struct Errors<'m> {
    first: &'m LogRow,
    last: &'m LogRow,
    count: u64,
    pids: BTreeSet<i64>,
}

/// The statement of a message: its own text, or the one that was recorded for its query id.
pub fn statement(row: &LogRow, texts: &HashMap<i64, Arc<str>>) -> Option<Arc<str>> {
    row.query.clone().or_else(|| texts.get(&row.queryid?).cloned())
}

/// The texts of the statements by their ids.
pub fn texts(material: &Material) -> HashMap<i64, Arc<str>> {
    let rows = material.statements.iter().flat_map(|table| &table.rows);
    rows.filter_map(|row| Some((row.queryid?, row.text().into()))).collect()
}

/// Errors by SQLSTATE, severity and statement.
pub fn errors(material: &Material) -> Table {
    let texts = texts(material);
    let mut groups: HashMap<_, Errors<'_>> = HashMap::new();
    for row in material.log.iter().filter(|row| is_error(row)) {
        // Without a code and a statement, only the text tells errors apart.
        let text = statement(row, &texts);
        let message = (row.sqlstate.is_empty() && text.is_none()).then(|| row.message.clone());
        let group = groups
            .entry((row.sqlstate.clone(), row.severity.clone(), text, message))
            .or_insert_with(|| Errors { first: row, last: row, count: 0, pids: BTreeSet::new() });
        (group.last, group.count) = (row, group.count + 1);
        group.pids.insert(row.pid);
    }
    let columns = vec![
        Column::new("sqlstate", "SQLSTATE", Unit::Text),
        Column::new("severity", "Severity", Unit::Text).expendable(3),
        Column::new("count", "Errors", Unit::Count),
        Column::new("sessions", "Sessions", Unit::Count).expendable(2),
        Column::new("first", "First", Unit::Time).expendable(4),
        Column::new("last", "Last", Unit::Time),
        Column::new("database", "Database", Unit::Text).expendable(5),
        Column::new("user", "User", Unit::Text).expendable(6),
        Column::new("application", "Application", Unit::Text).expendable(1),
        Column::new("message", "Last message", Unit::Text).wrapped(),
        Column::new("query", "Statement", Unit::Text).wrapped(),
    ];
    let mut table = Table::new("log_errors", "Errors in the server's log", columns)
        .sorted("count")
        .over_time(OverTime::RowsOfAll(
            "first",
            "last",
            "errors are counted by statement for the whole time",
        ));
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|(a_key, a), (b_key, b)| b.count.cmp(&a.count).then_with(|| a_key.cmp(b_key)));
    for ((sqlstate, severity, text, _), group) in groups {
        let cells: Vec<Cell> = vec![
            (&*sqlstate).into(),
            (&*severity).into(),
            group.count.into(),
            (group.pids.len() as u64).into(),
            logged(group.first).into(),
            logged(group.last).into(),
            group.last.database.as_deref().into(),
            group.last.user.as_deref().into(),
            group.last.application.as_deref().into(),
            (&*group.last.message).into(),
            text.as_deref().into(),
        ];
        table.push(Tone::Plain, cells);
    }
    table
}

/// The other messages, and deadlocks with their details.
pub fn messages(material: &Material) -> Table {
    let columns = vec![
        Column::new("time", "Time", Unit::Time),
        Column::new("kind", "Kind", Unit::Text),
        Column::new("pid", "Process", Unit::Id).expendable(2),
        Column::new("database", "Database", Unit::Text).expendable(4),
        Column::new("user", "User", Unit::Text).expendable(5),
        Column::new("application", "Application", Unit::Text).expendable(3),
        Column::new("seconds", "Duration", Unit::Seconds).expendable(1),
        Column::new("text", "Message", Unit::Text).wrapped(),
    ];
    let mut table = Table::new("log_messages", "Other messages in the server's log", columns)
        .sorted("time")
        .over_time(OverTime::Rows("time", "time"));
    let others: Vec<&LogRow> = material.log.iter().filter(|row| &*row.kind != "error").collect();
    let left_out = others.len().saturating_sub(MOST);
    for row in &others[left_out..] {
        let text = [Some(&row.message), row.detail.as_ref()];
        let text: Vec<&str> = text.into_iter().flatten().map(|text| &**text).collect();
        let cells: Vec<Cell> = vec![
            logged(row).into(),
            (&*row.kind).into(),
            row.pid.to_string().into(),
            row.database.as_deref().into(),
            row.user.as_deref().into(),
            row.application.as_deref().into(),
            row.duration_ns.map(|ns| ns as f64 * 1e-9).into(),
            text.join("\n").into(),
        ];
        table.push(Tone::Plain, cells);
    }
    if left_out > 0 {
        return table.noted(Some(format!("{left_out} earlier messages are not shown")));
    }
    table
}
