// SPDX-License-Identifier: PostgreSQL
//! An interval as plain text.

use segment::interval::Interval;

use crate::cli::View;
use crate::model::headline::{self, Weight};
use crate::model::panes::{self, Wish};
use crate::model::table::{bar, wrap, Table};

/// Wide enough for every column when the output is no terminal.
const ROOM: usize = 160;

/// The interval, `width` characters wide (`None`: as wide as it wants to be).
pub fn render(
    interval: &Interval,
    wish: &Wish,
    view: View,
    width: Option<usize>,
    color: bool,
) -> String {
    let room = width.unwrap_or(ROOM);
    let mut out = String::new();
    for line in headline::lines(interval) {
        for part in wrap(&line.text, room) {
            match line.weight {
                Weight::Warning if color => out.push_str(&format!("\x1b[1;33m{part}\x1b[0m\n")),
                Weight::Warning => out.push_str(&format!("! {part}\n")),
                Weight::Plain => out.push_str(&format!("{part}\n")),
            }
        }
    }
    let all = view == View::All;
    let seconds = interval.interval_seconds;
    if all || view == View::Ledger {
        let title = format!("Ledger: {seconds:.2} s, {:.2} s not idle", interval.busy_seconds);
        section(&mut out, &title, &panes::ledger(interval, wish), room, color);
    }
    if all || view == View::Waits {
        section(&mut out, "Waits", &panes::waits(interval, wish), room, color);
    }
    if all || view == View::Commands {
        section(&mut out, "Commands", &panes::commands(interval, wish), room, color);
    }
    if all || view == View::Sessions {
        section(&mut out, "Sessions", &panes::sessions(interval, wish), room, color);
    }
    out.push('\n');
    out
}

fn section(out: &mut String, title: &str, table: &Table, room: usize, color: bool) {
    let bold = |text: &str| {
        if color {
            format!("\x1b[1m{text}\x1b[0m\n")
        } else {
            format!("{text}\n")
        }
    };
    out.push('\n');
    out.push_str(&bold(title));
    if table.rows.is_empty() {
        out.push_str("  nothing\n");
        return;
    }
    let layout = table.layout(room);
    out.push_str(table.heading(&layout).trim_end());
    out.push('\n');
    for row in &table.rows {
        let bar = bar(row.bar.unwrap_or(0.0), layout.bar, true);
        out.push_str(table.line(row, &layout, &bar).trim_end());
        out.push('\n');
    }
}
