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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::cli::Sort;
    use crate::model::panes::Open;
    use crate::model::sample;

    fn wish() -> Wish {
        Wish {
            sort: Sort::Time,
            reverse: false,
            filter: String::new(),
            idle: false,
            open: Open::All,
        }
    }

    #[test]
    fn the_text_of_an_interval() {
        insta::assert_snapshot!(render(&sample::interval(), &wish(), View::All, None, false));
    }

    #[test]
    fn the_text_on_eighty_columns() {
        let text = render(&sample::interval(), &wish(), View::All, Some(80), false);
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        insta::assert_snapshot!(text);
    }

    #[test]
    fn warnings_are_seen_without_colour() {
        let mut interval = sample::interval();
        interval.overflow.slots = 12;
        interval.uninstrumented_seconds = 0.5;
        interval.kernel.unexplained_share = 0.05;
        let text = render(&interval, &wish(), View::Ledger, None, false);
        let loud: Vec<&str> = text.lines().filter(|l| l.starts_with("! ")).collect();
        assert_eq!(loud.len(), 3, "{text}");
        assert!(loud.iter().any(|l| l.contains("12 sessions found no slot")));
    }

    fn names(text: &str) -> Vec<&str> {
        let names = text.lines().filter_map(|line| line.split_whitespace().next());
        names.skip_while(|name| *name != "ACTIVITY").skip(1).collect()
    }

    #[test]
    fn rows_are_sorted_filtered_and_opened_as_wished() {
        let interval = sample::interval();
        let shown = |change: &dyn Fn(&mut Wish)| {
            let mut wish = Wish { open: Open::These(HashSet::new()), ..wish() };
            change(&mut wish);
            let text = render(&interval, &wish, View::Ledger, None, false);
            names(&text).into_iter().map(String::from).collect::<Vec<_>>()
        };
        let all = ["cpu", "LWLock:WALWrite", "IO:WALSync", "Lock:transactionid"];
        assert_eq!(shown(&|_| ()), all);
        assert_eq!(shown(&|w| w.sort = Sort::Name)[0], "IO:WALSync");
        assert_eq!(shown(&|w| w.reverse = true)[0], "Lock:transactionid");
        assert_eq!(shown(&|w| w.sort = Sort::Mean)[0], "cpu");
        assert_eq!(shown(&|w| w.filter = "wal".into()), ["LWLock:WALWrite", "IO:WALSync"]);
        assert_eq!(shown(&|w| w.filter = "sync".into()), ["IO:WALSync"]);
        let idle = shown(&|w| w.idle = true);
        assert!(idle.contains(&"Client:ClientRead".to_string()), "{idle:?}");
        let open = HashSet::from(["cpu".to_string()]);
        let opened = shown(&|w| w.open = Open::These(open.clone()));
        assert_eq!(opened[..3], ["cpu", "execute", "parse"]);
    }
}
