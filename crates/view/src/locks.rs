// SPDX-License-Identifier: PostgreSQL
//! The lock panes, and the table of lightweight locks per second.
//!
//! Rates are per second of the time in which the level was `locks`.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use segment::interval::{Interval, Timing};
use segment::locks::{LwlockRow, PhaseRow};
use segment::WaitClass;

use super::rows::{accepts, by, left, right, sorted, texts, Wish};
use super::table::{Row, Table, Tone};
use super::units::{count, duration, maybe_duration, two};
use crate::Sort;

/// Why there are no locks to show, or not those of the whole interval.
pub fn note(interval: &Interval) -> Option<String> {
    let whole = interval.interval_seconds;
    if interval.locks_seconds <= 0.0 {
        return Some(format!(
            "Lock statistics need level locks; the level is {}. Run: tally level locks --for 60s",
            interval.level
        ));
    }
    (interval.locks_seconds < 0.99 * whole).then(|| {
        format!(
            "level locks was in force for {:.2} s of {whole:.2} s; rates are per second of that",
            interval.locks_seconds
        )
    })
}

fn rate(n: f64, interval: &Interval) -> f64 {
    n / interval.locks_seconds.max(1e-9)
}

/// Order by waiting time, then by hold time.
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

fn wanted<'i>(interval: &'i Interval, wish: &Wish) -> Vec<&'i LwlockRow> {
    let shown = |row: &&LwlockRow| accepts(wish, &[&row.lock, &row.mode, &row.phase]);
    interval.lwlocks.iter().filter(shown).collect()
}

/// Lightweight locks by tranche and, opened, by mode and phase.
pub fn lwlocks(interval: &Interval, wish: &Wish) -> Table {
    let columns = vec![
        left("LOCK", 0),
        left("CONTEXT", 7),
        right("HELD/S", 0),
        right("HELD S/S", 5),
        right("HELD MEAN", 0),
        right("HELD P99", 9),
        right("HELD MAX", 6),
        right("ACQUIRE/S", 8),
        right("ACQ S/S", 11),
        right("WAIT/S", 0),
        right("WAIT S/S", 1),
        right("WAIT MEAN", 2),
        right("WAIT P99", 4),
        right("WAIT MAX", 3),
        right("FAILED/S", 10),
    ];
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
        let [lock, context] = names;
        let per_second = |n: u64| count(rate(n as f64, interval));
        let (held, wait) = (&row.held, &row.wait);
        Row {
            key,
            cells: texts(vec![
                lock,
                context,
                per_second(held.count),
                two(rate(held.seconds, interval)),
                maybe_duration(held.mean_seconds),
                maybe_duration(held.p99_seconds),
                maybe_duration(held.max_seconds),
                per_second(row.acquire.count),
                two(rate(row.acquire.seconds, interval)),
                per_second(wait.count),
                two(rate(wait.seconds, interval)),
                maybe_duration(wait.mean_seconds),
                maybe_duration(wait.p99_seconds),
                maybe_duration(wait.max_seconds),
                per_second(row.failed),
            ]),
            tone: if wait.count > 0 { Tone::Class(WaitClass::Lwlock) } else { Tone::Plain },
            branches,
            ..Row::default()
        }
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
    Table::of(columns, rows)
}

/// Waits for heavyweight locks by type, mode and phase; deadlock checks, spin delays, and
/// waits for buffer pins, which level waits has as well.
pub fn locks(interval: &Interval, wish: &Wish) -> Table {
    let columns = vec![
        left("LOCK", 0),
        left("MODE", 1),
        left("PHASE", 5),
        right("WAIT/S", 3),
        right("S/S", 2),
        right("COUNT", 0),
        right("TOTAL", 0),
        right("MEAN", 0),
        right("P50", 7),
        right("P99", 4),
        right("MAX", 0),
    ];
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
    let pins = interval.ledger.iter().filter(|a| a.activity.starts_with("BufferPin:")).map(|pin| {
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
        .map(|(kind, mode, phase, timing, tone, seconds)| Row {
            key: format!("{kind} {mode} {phase}"),
            cells: texts(vec![
                kind,
                mode.to_string(),
                phase.to_string(),
                count(timing.count as f64 / seconds.max(1e-9)),
                two(timing.seconds / seconds.max(1e-9)),
                count(timing.count as f64),
                duration(timing.seconds),
                maybe_duration(timing.mean_seconds),
                maybe_duration(timing.p50_seconds),
                maybe_duration(timing.p99_seconds),
                maybe_duration(timing.max_seconds),
            ]),
            tone,
            ..Row::default()
        })
        .collect();
    Table::of(columns, rows)
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
/// waited for, by mode and phase; then the times to read and handle commands.
pub fn per_second(interval: &Interval, wish: &Wish) -> std::io::Result<String> {
    let mut out = format!(
        "Per second of {:.2} s at level locks (total {:.2} s); TIME and AVG in milliseconds. \
         ACQUIRE includes its waits.\n",
        interval.locks_seconds, interval.interval_seconds
    )
    .into_bytes();
    if let Some(note) = note(interval).filter(|_| interval.lwlocks.is_empty()) {
        out.extend(format!("{note}\n").bytes());
    } else {
        let mut table =
            Table::with_headings(&["", "", "HELD", "", "", "ACQUIRE", "", "", "WAIT", ""], 1..10);
        let parts = ["COUNT", "TIME", "AVG"];
        table.push_texts(std::iter::once("TP").chain([parts; 3].into_iter().flatten()));
        let rows = sorted(wanted(interval, wish), wish, |a, b| order(&wish.sort, a, b));
        for row in rows {
            let mut cells = vec![format!("{} {}", row.lock, context(row))];
            for timing in [&row.held, &row.acquire, &row.wait] {
                cells.extend(triple(timing, interval.locks_seconds));
            }
            table.push_texts(cells);
        }
        table.write(&mut out)?;
    }
    out.push(b'\n');
    let mut table = Table::with_headings(&["COMMAND", "COUNT", "TIME", "AVG"], 1..4);
    for (part, of) in [("read", 0), ("handle", 1)] {
        for command in &interval.commands {
            let timing = [&command.read, &command.handle][of];
            let mut cells = vec![format!("{part} {}", command.kind)];
            cells.extend(triple(timing, interval.instrumented_seconds));
            table.push_texts(cells);
        }
    }
    table.write(&mut out)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::Open;
    use crate::sample;
    use crate::table::Unit;
    use segment::Level;

    fn wish() -> Wish {
        let filter = String::new();
        Wish { sort: Sort::Time, reverse: false, filter, idle: false, open: Open::All }
    }

    #[test]
    fn the_per_second_table() {
        insta::assert_snapshot!(per_second(&sample::interval(), &wish()).unwrap());
    }

    #[test]
    fn lock_rates_are_per_second_at_level_locks() {
        let mut interval = sample::interval();
        let of = |interval: &Interval| -> String {
            lwlocks(interval, &wish()).rows[0].cells[2].brief(Unit::PerSecond).into()
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
        assert!(per_second(&interval, &wish()).unwrap().contains("tally level locks"));
        (interval.locks_seconds, interval.level) = (1.0, Level::Locks);
        assert_eq!(note(&interval), None);
    }

    #[test]
    fn rows_are_ordered_by_waiting_then_holding() {
        let interval = sample::interval();
        let first = |sort| {
            let table = lwlocks(&interval, &Wish { sort, ..wish() });
            table.rows[0].cells[0].exact()
        };
        assert_eq!(first(Sort::Time), "WALWrite");
        assert_eq!(first(Sort::Count), "ProcArray");
        assert_eq!(first(Sort::Name), "ProcArray");
        let parse = Wish { filter: "bind".into(), ..wish() };
        assert_eq!(lwlocks(&interval, &parse).rows.len(), 1);
    }
}
