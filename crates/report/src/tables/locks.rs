// SPDX-License-Identifier: PostgreSQL
//! Locks: lightweight ones, heavyweight ones, and what goes with them.

use segment::interval::{Interval, Timing};
use segment::WaitClass;

use super::{timing, SECONDS, TIMING};
use view::document::{Column, Table, Tone, Unit};
use view::locks;

/// Lightweight locks by tranche, mode and phase.
pub fn lwlocks(interval: &Interval) -> Table {
    let count = |key, title| Column::new(key, title, Unit::Count);
    let seconds = |key, title| Column::new(key, title, Unit::Seconds);
    let columns = vec![
        Column::new("lock", "Lock", Unit::Text),
        Column::new("mode", "Mode", Unit::Text),
        Column::new("phase", "Phase", Unit::Text).expendable(5),
        count("held_count", "Held"),
        seconds("held_seconds", "Held time").expendable(6),
        seconds("held_mean_seconds", "Held mean"),
        seconds("held_p99_seconds", "Held p99").expendable(9),
        seconds("held_max_seconds", "Held max").expendable(8),
        count("acquire_count", "Acquired").expendable(12),
        seconds("acquire_seconds", "Acquiring")
            .help("of those that queued, waits included")
            .expendable(10),
        count("wait_count", "Waits"),
        seconds("wait_seconds", "Waiting"),
        seconds("wait_mean_seconds", "Wait mean").expendable(1),
        seconds("wait_p99_seconds", "Wait p99").expendable(3),
        seconds("wait_max_seconds", "Wait max").expendable(2),
        count("failed", "Failed")
            .help("taken and not waited for, or waited for and not acquired")
            .expendable(11),
    ];
    let mut table = Table::new("lwlocks", "Lightweight locks", columns)
        .sorted("wait_seconds")
        .noted(locks::note(interval));
    for row in &interval.lwlocks {
        let Timing { count, seconds, mean_seconds, p99_seconds, max_seconds, .. } = row.held;
        let wait = &row.wait;
        let class = if wait.count > 0 { WaitClass::Lwlock } else { WaitClass::Other };
        let cells = vec![
            (&row.lock).into(),
            (&row.mode).into(),
            (&row.phase).into(),
            count.into(),
            seconds.into(),
            mean_seconds.into(),
            p99_seconds.into(),
            max_seconds.into(),
            row.acquire.count.into(),
            row.acquire.seconds.into(),
            wait.count.into(),
            wait.seconds.into(),
            wait.mean_seconds.into(),
            wait.p99_seconds.into(),
            wait.max_seconds.into(),
            row.failed.into(),
        ];
        table.push(Tone::Class(class), cells);
    }
    table
}

/// Waits for heavyweight locks, checks for deadlocks, delays at spinlocks, pinned buffers.
pub fn locks(interval: &Interval) -> Table {
    let mut columns = vec![
        Column::new("type", "Lock", Unit::Text),
        Column::new("mode", "Mode", Unit::Text),
        Column::new("phase", "Phase", Unit::Text).expendable(6),
        SECONDS,
    ];
    columns.extend(TIMING);
    let mut table =
        Table::new("locks", "Heavyweight locks, deadlock checks, spinlocks, buffer pins", columns)
            .sorted("seconds")
            .noted(locks::note(interval));
    let mut rows: Vec<(&str, &str, &str, &Timing, WaitClass)> = Vec::new();
    rows.extend(
        interval.locks.iter().map(|l| (&*l.kind, &*l.mode, &*l.phase, &l.wait, WaitClass::Lock)),
    );
    for (name, others) in
        [("deadlock check", &interval.deadlock_checks), ("spinlock", &interval.spin_delays)]
    {
        rows.extend(
            others.iter().map(|row| (name, "", &*row.phase, &row.timing, WaitClass::Other)),
        );
    }
    let pins = interval.ledger.iter().filter(|a| a.activity.starts_with("BufferPin:"));
    rows.extend(pins.map(|pin| ("buffer pin", "", &*pin.phase, &pin.timing, WaitClass::Other)));
    rows.sort_by(|a, b| b.3.seconds.total_cmp(&a.3.seconds));
    for (name, mode, phase, of, class) in rows {
        let mut row = vec![name.into(), mode.into(), phase.into(), of.seconds.into()];
        row.extend(timing(of, interval));
        table.push(Tone::Class(class), row);
    }
    table
}
