// SPDX-License-Identifier: PostgreSQL
//! The views: which rows of which table count, and what their columns mean. Each is a file in `sql/views/`.

use crate::source::Files;
use crate::template::expand;
use crate::{Dialect, Root, Window};

/// A view of the recordings of all hosts.
#[derive(Debug)]
pub struct View {
    /// Its name.
    pub name: &'static str,
    /// What one of its rows is, in a few words.
    pub about: &'static str,
    sql: &'static str,
}

macro_rules! views {
    ($($name:literal: $about:literal,)*) => {
        /// All views.
        pub const VIEWS: &[View] = &[$(View {
            name: $name,
            about: $about,
            sql: include_str!(concat!("../sql/views/", $name, ".sql")),
        }),*];
    };
}

views! {
    "intervals": "an interval of a host: length, CPUs, commands, sessions, CPU time of the machine",
    "statistics": "a statistic of one kind of process in an interval",
    "histograms": "the distribution of a statistic's values in a detail interval",
    "ledger": "the time of an account in an interval, with phase, activity, class, and whether it is idle",
    "waits": "the same, for waits that are not idle",
    "files": "operations on one kind of file in an interval",
    "statements": "a statement in a detail interval, with its text and fingerprint",
    "events": "a notable event",
    "sessions": "a session that was not idle in an interval, with what it waited for and who blocked it",
    "plans": "executions of a plan in a detail interval, with its text",
    "conditions": "a condition of the server, from its own views: slots, archiver, transaction IDs, sizes",
    "settings": "a setting of the server, the machine or the recorder, at the start and when it changes",
}

/// The text of a file without its first line, the license.
pub(crate) fn body(sql: &str) -> &str {
    sql.split_once('\n').map_or(sql, |(_, body)| body).trim_end()
}

impl View {
    /// The query that defines the view.
    pub(crate) fn query(&self, files: &Files<'_>) -> String {
        expand(body(self.sql), files.dialect, Some(files), None)
    }
}

/// The SQL that creates all views, each statement with a semicolon.
pub fn schema(dialect: Dialect, root: &Root) -> String {
    create_views(&Files { dialect, root, window: None::<&Window>, tables: None })
}

/// The SQL that creates all views on these files.
pub(crate) fn create_views(files: &Files<'_>) -> String {
    let create = match files.dialect {
        Dialect::Spark => "CREATE OR REPLACE TEMPORARY VIEW",
        _ => "CREATE OR REPLACE VIEW",
    };
    let one = |view: &View| {
        format!(
            "-- {}: {}\n{create} {} AS\n{};\n\n",
            view.name,
            view.about,
            view.name,
            view.query(files)
        )
    };
    VIEWS.iter().map(one).collect()
}

/// The views that a query uses.
pub(crate) fn views_of(sql: &str) -> Vec<&'static View> {
    let words: Vec<&str> = sql
        .split(|c: char| c.is_whitespace() || "(),".contains(c))
        .filter(|w| !w.is_empty())
        .collect();
    let read = |name: &str| {
        (name == "intervals" && sql.contains("{{rates "))
            || words.windows(2).any(|pair| matches!(pair[0], "FROM" | "JOIN") && pair[1] == name)
    };
    VIEWS.iter().filter(|view| read(view.name)).collect()
}

/// A query with the views that it uses, on these files.
pub(crate) fn with_views(text: &str, query: &str, files: &Files<'_>) -> String {
    let views: Vec<String> = views_of(text)
        .into_iter()
        .map(|view| format!("{} AS (\n{}\n)", view.name, view.query(files)))
        .collect();
    let views = views.join(", ");
    match query.strip_prefix("WITH ") {
        Some(rest) => format!("WITH {views}, {rest}"),
        None => format!("WITH {views}\n{query}"),
    }
}
