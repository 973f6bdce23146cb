// SPDX-License-Identifier: PostgreSQL
//! Locks: lightweight, heavyweight, and related waits.

use segment::interval::{Interval, Timing};
use segment::WaitClass;
use view::choose;

use super::{timing, SECONDS};
use view::document::{Column, Table, Tone, Unit};
use view::locks;
use view::table::field::Picked;

/// Lightweight locks by tranche, mode and phase.
pub fn lwlocks(interval: &Interval) -> Table {
    let figures = Picked::of_document(choose!(
        locks::FIELDS,
        "lock, mode, phase:5, held_count, held_seconds:6, held_mean_seconds, held_p99_seconds:9, \
         held_max_seconds:8, acquire_count:12, acquire_seconds:10, wait_count, wait_seconds, \
         wait_mean_seconds:1, wait_p99_seconds:3, wait_max_seconds:2, failed:11"
    ));
    let mut table = Table::new("lwlocks", "Lightweight locks", figures.columns.clone())
        .sorted("wait_seconds")
        .noted(locks::note(interval));
    for row in &interval.lwlocks {
        let class = if row.wait.count > 0 { WaitClass::Lwlock } else { WaitClass::Other };
        table.push(Tone::Class(class), figures.cells(row, interval.locks_seconds));
    }
    table
}

/// Waits for heavyweight locks, checks for deadlocks, delays at spinlocks, pinned buffers.
pub fn locks(interval: &Interval) -> Table {
    let names = [
        Column::new("type", "Lock", Unit::Text),
        Column::new("mode", "Mode", Unit::Text),
        Column::new("phase", "Phase", Unit::Text).expendable(6),
        SECONDS,
    ];
    let figures = timing();
    let columns = figures.columns_after(names);
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
    let pins = interval.ledger.iter().filter(|a| a.class == WaitClass::BufferPin);
    rows.extend(pins.map(|pin| ("buffer pin", "", &*pin.phase, &pin.timing, WaitClass::Other)));
    rows.sort_by(|a, b| b.3.seconds.total_cmp(&a.3.seconds));
    for (name, mode, phase, of, class) in rows {
        let names = [name.into(), mode.into(), phase.into(), of.seconds.into()];
        let cells = figures.cells_after(names, of, interval.instrumented_seconds);
        table.push(Tone::Class(class), cells);
    }
    table
}
