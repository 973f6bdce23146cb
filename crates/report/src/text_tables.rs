// SPDX-License-Identifier: PostgreSQL
//! Tables as plain text: locks and commands per second, accounts and commands by name, and functions with their
//! callees.

use segment::interval::{Interval, Timing};

use view::document::Plain;
use view::rows::RowOptions;
use view::table::Table;
use view::{functions, locks};

/// The tables that have something to show.
pub fn texts(interval: &Interval) -> Vec<Plain> {
    let text = |id: &str, title: &str, note: &str, text: String| Plain {
        id: id.to_string(),
        title: title.to_string(),
        note: Some(note.to_string()),
        text,
    };
    let mut texts = vec![
        text(
            "locks-per-second",
            "Locks and commands, per second",
            "Time to hold, acquire and wait, by lock and context; then time to read and handle \
             commands.",
            locks::per_second(interval, &RowOptions::default(), usize::MAX),
        ),
        text(
            "by-name",
            "Accounts and commands by name",
            "Times in microseconds, shortest first.",
            by_name(interval),
        ),
    ];
    if !interval.functions.is_empty() {
        let tree = functions::tree(interval).to_string();
        texts.push(text("function-tree", "Functions and their callees", "", tree));
    }
    texts.iter_mut().for_each(|t| t.note = t.note.take().filter(|note| !note.is_empty()));
    texts
}

/// Accounts and commands by name.
fn by_name(interval: &Interval) -> String {
    let mut rows: Vec<(String, &Timing)> = Vec::new();
    for account in interval.ledger.iter().filter(|account| !account.idle) {
        rows.push((format!("{}::{}", account.phase, account.activity), &account.timing));
    }
    for command in &interval.commands {
        rows.push((format!("readCommand::{}", command.kind), &command.read));
        rows.push((format!("handleCommand::{}", command.kind), &command.handle));
    }
    rows.sort_by(|a, b| a.1.seconds.total_cmp(&b.1.seconds).then_with(|| a.0.cmp(&b.0)));
    let mut table = Table::with_headings(&["NAME", "COUNT", "TOTAL", "AVERAGE", "MAX"], 1..5);
    let us = |seconds: Option<f64>| {
        seconds.map_or_else(|| "-".to_string(), |s| format!("{:.0}", s * 1e6))
    };
    for (name, timing) in rows {
        table.push_texts(vec![
            name,
            timing.known_count().map_or_else(|| "-".to_string(), |count| count.to_string()),
            us((!timing.refused).then_some(timing.seconds)),
            us(timing.mean_seconds),
            us(timing.max_seconds),
        ]);
    }
    table.to_string()
}
