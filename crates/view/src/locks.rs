// SPDX-License-Identifier: PostgreSQL
//! The lock panes, and the table of lightweight locks per second.
//!
//! Rates are per second of the time in which the level was `locks`.

use crate::choose;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use segment::interval::{Interval, Timing};
use segment::locks::{LwlockRow, PhaseRow};
use segment::WaitClass;

use super::rows::{accepts, by, left, sorted, RowOptions};
use super::table::field::{per, rate, Field, Picked};
use super::table::{Cell, Row, Table, Tone, Unit};
use super::timing;
use crate::escape::wrap_text;
use crate::Sort;

/// Why there are no locks to show, or not those of the whole interval.
pub fn note(interval: &Interval) -> Option<String> {
    let whole = interval.interval_seconds;
    if interval.locks_seconds <= 0.0 {
        return Some(format!(
            "lock statistics require level locks, but the level is {}; run tally level locks --for 60s",
            interval.level
        ));
    }
    (interval.locks_seconds < 0.99 * whole).then(|| {
        format!(
            "level locks was in force for {:.2} s of {whole:.2} s; rates are per second of that time",
            interval.locks_seconds
        )
    })
}

/// Orders by waiting time, then by hold time.
fn order(sort: &Sort, a: &LwlockRow, b: &LwlockRow) -> Ordering {
    let name = |row: &LwlockRow| format!("{} {} {}", row.lock, row.mode, row.phase);
    let (x, y) = (name(a), name(b));
    let held = || by(sort, (&a.held, &x), (&b.held, &y));
    if matches!(sort, Sort::Count | Sort::Name) {
        return held();
    }
    let key = |t: &Timing| match sort {
        Sort::Mean => t.mean_seconds.unwrap_or(0.0),
        Sort::Max => t.max_seconds.unwrap_or(0.0),
        _ => t.seconds,
    };
    key(&b.wait).total_cmp(&key(&a.wait)).then_with(held)
}

/// Mode and phase of a row: "exclusive execute".
fn context(row: &LwlockRow) -> String {
    format!("{} {}", row.mode, row.phase)
}

fn wanted<'i>(interval: &'i Interval, wish: &RowOptions) -> Vec<&'i LwlockRow> {
    let shown = |row: &&LwlockRow| accepts(wish, &[&row.lock, &row.mode, &row.phase]);
    interval.lwlocks.iter().filter(shown).collect()
}

type F = Field<LwlockRow>;

/// The columns of lightweight locks.
pub const FIELDS: &[F] = &[
    F::new("lock", "Lock", Unit::Text, |row, _| (&row.lock).into()),
    F::new("mode", "Mode", Unit::Text, |row, _| (&row.mode).into()),
    F::new("phase", "Phase", Unit::Text, |row, _| (&row.phase).into()),
    F::new("held_count", "Held", Unit::Count, |row, _| row.held.count.into()),
    F::new("held_per_second", "Held/s", Unit::PerSecond, |row, s| rate(row.held.count, s)),
    F::new("held_seconds", "Held time", Unit::Seconds, |row, _| row.held.seconds.into()),
    F::new("held_sessions", "Held s/s", Unit::Sessions, |row, s| per(row.held.seconds, s)),
    F::new("held_mean_seconds", "Held mean", Unit::Seconds, |row, _| row.held.mean_seconds.into()),
    F::new("held_p99_seconds", "Held p99", Unit::Seconds, |row, _| row.held.p99_seconds.into()),
    F::new("held_max_seconds", "Held max", Unit::Seconds, |row, _| row.held.max_seconds.into()),
    F::new("acquire_count", "Acquired", Unit::Count, |row, _| row.acquire.count.into()),
    F::new("acquire_per_second", "Acquire/s", Unit::PerSecond, |row, s| rate(row.acquire.count, s)),
    F::new("acquire_seconds", "Acquiring", Unit::Seconds, |row, _| row.acquire.seconds.into())
        .help("time of those that queued, including their waits"),
    F::new("acquire_sessions", "Acq s/s", Unit::Sessions, |row, s| per(row.acquire.seconds, s)),
    F::new("wait_count", "Waits", Unit::Count, |row, _| row.wait.count.into()),
    F::new("wait_per_second", "Wait/s", Unit::PerSecond, |row, s| rate(row.wait.count, s)),
    F::new("wait_seconds", "Waiting", Unit::Seconds, |row, _| row.wait.seconds.into()),
    F::new("wait_sessions", "Wait s/s", Unit::Sessions, |row, s| per(row.wait.seconds, s)),
    F::new("wait_mean_seconds", "Wait mean", Unit::Seconds, |row, _| row.wait.mean_seconds.into()),
    F::new("wait_p99_seconds", "Wait p99", Unit::Seconds, |row, _| row.wait.p99_seconds.into()),
    F::new("wait_max_seconds", "Wait max", Unit::Seconds, |row, _| row.wait.max_seconds.into()),
    F::new("failed", "Failed", Unit::Count, |row, _| row.failed.into())
        .help("conditional acquisitions that failed, and waits that did not acquire the lock"),
    F::new("failed_per_second", "Failed/s", Unit::PerSecond, |row, s| rate(row.failed, s)),
];

/// Lightweight locks by tranche and, when opened, by mode and phase.
pub fn lwlocks(interval: &Interval, wish: &RowOptions) -> Table {
    let figures = Picked::of_pane(choose!(
        FIELDS,
        "held_per_second, held_sessions:5, held_mean_seconds, held_p99_seconds:9, \
         held_max_seconds:6, acquire_per_second:8, acquire_sessions:11, wait_per_second, \
         wait_sessions:1, wait_mean_seconds:2, wait_p99_seconds:4, wait_max_seconds:3, \
         failed_per_second:10"
    ));
    let mut groups: BTreeMap<&str, Vec<&LwlockRow>> = BTreeMap::new();
    for row in wanted(interval, wish) {
        groups.entry(&row.lock).or_default().push(row);
    }
    let summed: Vec<(LwlockRow, Vec<&LwlockRow>)> = groups
        .into_values()
        .map(|rows| (LwlockRow::sum(&rows, interval.clock.ticks_per_second), rows))
        .collect();
    let summed = sorted(summed, wish, |a, b| order(&wish.sort, &a.0, &b.0));
    let line = |key: String, names: [String; 2], row: &LwlockRow, branches: bool| {
        let cells = figures.cells_after(names.map(Cell::from), row, interval.locks_seconds);
        let tone =
            if row.wait.count > 0 { Tone::from_class(WaitClass::Lwlock) } else { Tone::Plain };
        Row { tone, branches, ..Row::new(key, cells) }
    };
    let mut rows = Vec::new();
    for (sum, parts) in &summed {
        let many = parts.len() > 1;
        let what = match parts.as_slice() {
            [only] => context(only),
            many => format!("{} contexts", many.len()),
        };
        let key = sum.lock.to_string();
        rows.push(line(key.clone(), [key.clone(), what], sum, many));
        if many && wish.open.shows(&key) {
            for part in sorted(parts.clone(), wish, |a, b| order(&wish.sort, a, b)) {
                let context = context(part);
                let key = format!("{key} {context}");
                rows.push(line(key, [format!("  {context}"), String::new()], part, false));
            }
        }
    }
    Table::from_rows(figures.columns_after([left("LOCK", 0), left("CONTEXT", 7)]), rows)
}

/// Waits for heavyweight locks by type, mode and phase; deadlock checks, spin delays, and waits for buffer pins,
/// which are also measured at level waits.
pub fn locks(interval: &Interval, wish: &RowOptions) -> Table {
    let figures = Picked::of_pane(choose!(
        timing::FIELDS,
        "per_second=WAIT/S:3, sessions:2, count, seconds, mean_seconds, p50_seconds:7, \
         p99_seconds:4, max_seconds"
    ));
    let locks = interval.locks_seconds;
    let heavy = interval.locks.iter().map(|lock| {
        (
            lock.kind.to_string(),
            &*lock.mode,
            &*lock.phase,
            &lock.wait,
            Tone::Class(WaitClass::Lock),
            locks,
        )
    });
    fn other<'i>(
        name: &'static str,
        rows: &'i [PhaseRow],
        seconds: f64,
    ) -> impl Iterator<Item = (String, &'i str, &'i str, &'i Timing, Tone, f64)> {
        rows.iter()
            .map(move |row| (name.into(), "", &*row.phase, &row.timing, Tone::Plain, seconds))
    }
    let checks = other("deadlock check", &interval.deadlock_checks, locks);
    let spins = other("spinlock", &interval.spin_delays, locks);
    let pins = interval.ledger.iter().filter(|a| a.class == WaitClass::BufferPin).map(|pin| {
        let name = "buffer pin".to_string();
        (
            name,
            "",
            &*pin.phase,
            &pin.timing,
            Tone::Class(WaitClass::Lwlock),
            interval.instrumented_seconds,
        )
    });
    let rows: Vec<_> = heavy
        .chain(checks)
        .chain(spins)
        .chain(pins)
        .filter(|(kind, mode, phase, ..)| accepts(wish, &[kind, mode, phase]))
        .collect();
    let rows = sorted(rows, wish, |a, b| by(&wish.sort, (a.3, &a.0), (b.3, &b.0)))
        .into_iter()
        .map(|(kind, mode, phase, timing, tone, seconds)| {
            let names = [kind.as_str().into(), mode.into(), phase.into()];
            let cells = figures.cells_after(names, timing, seconds);
            Row { tone, ..Row::new(format!("{kind} {mode} {phase}"), cells) }
        })
        .collect();
    let names = [left("LOCK", 0), left("MODE", 1), left("PHASE", 5)];
    Table::from_rows(figures.columns_after(names), rows)
}

/// Count, time and mean per second, over `seconds`; times in milliseconds.
fn triple(timing: &Timing, seconds: f64) -> [String; 3] {
    let seconds = seconds.max(1e-9);
    [
        format!("{:.2}", timing.count as f64 / seconds),
        format!("{:.3}", timing.seconds * 1e3 / seconds),
        timing.mean_seconds.map_or_else(|| "-".to_string(), |mean| format!("{:.5}", mean * 1e3)),
    ]
}

/// The per-second table: how long each lock was held, acquired and
/// waited for, by mode and phase; then the times to read and handle commands. Where that is wider than `width`, a lock
/// has three rows.
pub fn per_second(interval: &Interval, wish: &RowOptions, width: usize) -> String {
    let head = format!(
        "Per second of {:.2} s at level locks (total {:.2} s); TIME and AVG in milliseconds. \
         ACQUIRE includes its waits.",
        interval.locks_seconds, interval.interval_seconds
    );
    let mut out = wrap_text(&head, Some(width)).into_owned() + "\n";
    if let Some(note) = note(interval).filter(|_| interval.lwlocks.is_empty()) {
        out += &format!("{note}\n");
    } else {
        let rows = sorted(wanted(interval, wish), wish, |a, b| order(&wish.sort, a, b));
        let wide = side_by_side(&rows, interval.locks_seconds);
        out += &match wide.lines().all(|line| line.chars().count() <= width) {
            true => wide,
            false => one_below_the_other(&rows, interval.locks_seconds).text(width),
        };
    }
    out.push('\n');
    let mut table = Table::with_headings(&["COMMAND", "COUNT", "TIME", "AVG"], 1..4);
    for (part, of) in [("read", 0), ("handle", 1)] {
        for command in &interval.commands {
            let timing = [&command.read, &command.handle][of];
            let mut cells = vec![format!("{part} {}", command.kind)];
            cells.extend(triple(timing, interval.instrumented_seconds));
            table.push_texts(cells);
        }
    }
    out + &table.text(width)
}

/// The locks with nine figures in a row.
fn side_by_side(rows: &[&LwlockRow], seconds: f64) -> String {
    let mut table =
        Table::with_headings(&["", "", "HELD", "", "", "ACQUIRE", "", "", "WAIT", ""], 1..10);
    let parts = ["COUNT", "TIME", "AVG"];
    table.push_texts(std::iter::once("LOCK").chain([parts; 3].into_iter().flatten()));
    for row in rows {
        let mut cells = vec![format!("{} {}", row.lock, context(row))];
        for timing in [&row.held, &row.acquire, &row.wait] {
            cells.extend(triple(timing, seconds));
        }
        table.push_texts(cells);
    }
    table.to_string()
}

/// The same with three figures in a row.
fn one_below_the_other(rows: &[&LwlockRow], seconds: f64) -> Table {
    let mut table = Table::with_headings(&["LOCK", "", "COUNT", "TIME", "AVG"], 2..5);
    for row in rows {
        let name = format!("{} {}", row.lock, context(row));
        let parts = [("held", &row.held), ("acquire", &row.acquire), ("wait", &row.wait)];
        for (at, (part, timing)) in parts.into_iter().enumerate() {
            let name = if at == 0 { name.clone() } else { String::new() };
            table.push_texts([name, part.to_string()].into_iter().chain(triple(timing, seconds)));
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Open;
    use crate::sample;
    use segment::Level;

    fn wish() -> RowOptions {
        let filter = String::new();
        RowOptions { sort: Sort::Time, reverse: false, filter, idle: false, open: Open::All }
    }

    #[test]
    fn the_per_second_table() {
        insta::assert_snapshot!(per_second(&sample::interval(), &wish(), usize::MAX));
    }

    #[test]
    fn on_eighty_columns_a_lock_has_a_row_for_each_part() {
        let text = per_second(&sample::interval(), &wish(), 80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let wide = per_second(&sample::interval(), &wish(), usize::MAX);
        let figures = |text: &str| {
            let is_figure = |word: &&str| word.parse::<f64>().is_ok();
            text.split_whitespace().filter(is_figure).map(String::from).collect::<Vec<_>>()
        };
        assert_eq!(figures(&text), figures(&wide));
    }

    #[test]
    fn lock_rates_are_per_second_at_level_locks() {
        let mut interval = sample::interval();
        let of = |interval: &Interval| -> String {
            let table = lwlocks(interval, &wish());
            table.rows[0].cells[2].below(&table.columns[2].title, Unit::PerSecond).into()
        };
        assert_eq!(of(&interval), "800", "400 in half a second");
        interval.locks_seconds = 0.25;
        assert_eq!(of(&interval), "1.60k");
        interval.interval_seconds = 60.0;
        assert_eq!(of(&interval), "1.60k");
    }

    #[test]
    fn below_level_locks_the_note_says_how_to_raise_it() {
        let mut interval = sample::interval();
        (interval.locks_seconds, interval.level) = (0.0, Level::Waits);
        interval.lwlocks.clear();
        let text = note(&interval).unwrap();
        assert!(text.contains("level is waits") && text.contains("tally level locks"), "{text}");
        assert!(per_second(&interval, &wish(), 200).contains("tally level locks"));
        (interval.locks_seconds, interval.level) = (1.0, Level::Locks);
        assert_eq!(note(&interval), None);
    }

    #[test]
    fn rows_are_ordered_by_waiting_then_holding() {
        let interval = sample::interval();
        let first = |sort| {
            let table = lwlocks(&interval, &RowOptions { sort, ..wish() });
            table.rows[0].cells[0].exact()
        };
        assert_eq!(first(Sort::Time), "WALWrite");
        assert_eq!(first(Sort::Count), "ProcArray");
        assert_eq!(first(Sort::Name), "ProcArray");
        let parse = RowOptions { filter: "bind".into(), ..wish() };
        assert_eq!(lwlocks(&interval, &parse).rows.len(), 1);
    }

    #[test]
    fn pins_are_measured_below_level_locks_and_an_incomplete_time_is_noted() {
        let mut interval = sample::interval();
        (interval.instrumented_seconds, interval.locks_seconds) = (4.0, 0.5);
        let mut pin = interval.ledger[0].clone();
        // As version 19 names it.
        (pin.activity, pin.class) = ("Buffer:BufferCleanup".into(), WaitClass::BufferPin);
        pin.timing.count = 8;
        interval.ledger.push(pin);
        let table = locks(&interval, &wish());
        let row = table.rows.iter().find(|row| row.key.starts_with("buffer pin")).unwrap();
        assert_eq!(row.cells[3].exact(), "2", "8 in 4 s");
        assert!(note(&interval).unwrap().contains("0.50 s of 1.00 s"));
        let row = |max: f64, mean: f64| {
            let mut row = interval.lwlocks[0].clone();
            (row.wait.max_seconds, row.wait.mean_seconds) = (Some(max), Some(mean));
            row
        };
        let (long, slow) = (row(2.0, 0.5), row(1.0, 1.0));
        assert_eq!(order(&Sort::Max, &long, &slow), Ordering::Less);
        assert_eq!(order(&Sort::Mean, &long, &slow), Ordering::Greater);
    }

    #[test]
    fn each_column_has_its_figure() {
        let timing = |n: u64| {
            let of = |more: f64| Some(n as f64 + more);
            let (mean_seconds, p99_seconds, max_seconds) = (of(0.25), of(0.5), of(0.75));
            Timing {
                count: n,
                seconds: 10.0 * n as f64,
                mean_seconds,
                p99_seconds,
                max_seconds,
                ..Timing::default()
            }
        };
        let (held, acquire, wait) = (timing(2), timing(4), timing(6));
        let mut row = sample::interval().lwlocks[0].clone();
        (row.held, row.acquire, row.wait, row.failed) = (held, acquire, wait, 8);
        let cells = Picked::all(FIELDS).cells(&row, 2.0);
        let shown: Vec<String> = cells[3..].iter().map(Cell::exact).collect();
        let expected = [
            "2", "1", "20", "10", "2.25", "2.5", "2.75", "4", "2", "40", "20", "6", "3", "60",
            "30", "6.25", "6.5", "6.75", "8", "4",
        ];
        assert_eq!(shown, expected);
    }
}
