// SPDX-License-Identifier: PostgreSQL
//! Operations on the files of each relation, as a table of the busiest.

use segment::interval::{Interval, Timing};
use segment::relations::RelationTiming;
use segment::RelationRow;
use segment::WaitClass;

use super::{Io, RelationNames};
use crate::rows::{accepts, by, left, sorted, Wish};
use crate::table::field::{per, rate, Field, Picked};
use crate::table::{Cell, Row, Table, Tone, Unit};
use crate::units::duration;

/// How many are shown without a filter.
const BUSIEST: usize = 12;

/// The tablespaces that every server has.
const DEFAULT: u32 = 1663;
const GLOBAL: u32 = 1664;

/// "shop/orders", "shop/16384_fsm@16390", "global/1262", "(others)"
pub fn name(row: &RelationRow, names: &RelationNames) -> String {
    let (Some(tablespace), Some(relfilenode)) = (row.tablespace, row.relfilenode) else {
        return "(others)".to_string();
    };
    let folder = match (tablespace, row.database_id) {
        (GLOBAL, _) | (_, None) => "global".to_string(),
        (_, Some(id)) => row.database.clone().unwrap_or_else(|| id.to_string()),
    };
    let fork = match row.fork {
        None | Some("main") => String::new(),
        Some(fork) => format!("_{fork}"),
    };
    let temporary = if row.temporary { " temporary" } else { "" };
    let relation = names.get(row).map_or(relfilenode.to_string(), str::to_string);
    match tablespace {
        DEFAULT | GLOBAL => format!("{folder}/{relation}{fork}{temporary}"),
        _ => format!("{folder}/{relation}{fork}@{tablespace}{temporary}"),
    }
}

/// A hint where some names are only numbers.
fn notes(shown: &[(String, Timing, &RelationRow)], names: &RelationNames) -> Vec<String> {
    let unnamed = |row: &RelationRow| row.relfilenode.is_some() && names.get(row).is_none();
    match shown.iter().any(|(_, _, row)| unnamed(row)) {
        true => vec![
            "numbers are file numbers; the view tally.relations of that database has the names"
                .to_string(),
        ],
        false => Vec::new(),
    }
}

/// Notes, and the busiest relations that contain the filter; `None`: no relation to show.
pub fn table(io: &Io, interval: &Interval, wish: &Wish) -> Option<(Vec<String>, Table)> {
    let (rows, names) = (io.relations.as_deref()?, &io.relation_names);
    let seconds = io.relations_seconds.unwrap_or(interval.instrumented_seconds);
    let figures = Picked::all(FIELDS);
    let mut named: Vec<(String, Timing, &RelationRow)> = rows
        .iter()
        .map(|row| (name(row, names), timing(row), row))
        .filter(|(name, _, _)| accepts(wish, &[name]))
        .collect();
    named = sorted(named, wish, |a, b| by(&wish.sort, (&a.1, &a.0), (&b.1, &b.0)));
    if wish.filter.is_empty() {
        named.truncate(BUSIEST);
    }
    let mut notes = notes(&named, names);
    notes.extend(io.relations_seconds.map(|s| format!("recorded per {}", duration(s))));
    let row = |(name, _, row): (String, Timing, &RelationRow)| {
        let cells = figures.cells_after([name.as_str().into()], row, seconds);
        let tone = if row.failed > 0 { Tone::of(WaitClass::Lock) } else { Tone::IO };
        Row { tone, ..Row::new(format!("relation {name}"), cells) }
    };
    let rows: Vec<Row> = named.into_iter().map(row).collect();
    let columns = figures.columns_after([left("RELATION", 0)]);
    (!rows.is_empty()).then(|| (notes, Table::of(columns, rows)))
}

type F = Field<RelationRow>;

/// The figures of a relation. Cells without operations stay empty.
const FIELDS: &[F] = &[
    F::new("read_rate", "R/S", Unit::PerSecond, |it, s| operations(&it.read, s)),
    F::new("read_bytes", "R MB/S", Unit::BytesPerSecond, |it, s| moved(&it.read, s)),
    F::new("read_mean", "R MEAN", Unit::Seconds, |it, _| mean(&it.read)).expendable(2),
    F::new("write_rate", "W/S", Unit::PerSecond, |it, s| operations(&it.write, s)),
    F::new("write_bytes", "W MB/S", Unit::BytesPerSecond, |it, s| moved(&it.write, s)),
    F::new("write_mean", "W MEAN", Unit::Seconds, |it, _| mean(&it.write)).expendable(3),
    F::new("extend_rate", "EXT/S", Unit::PerSecond, |it, s| operations(&it.extend, s)),
    F::new("extend_bytes", "EXT MB/S", Unit::BytesPerSecond, |it, s| moved(&it.extend, s))
        .expendable(4),
    F::new("sync_rate", "SYNC/S", Unit::PerSecond, |it, s| operations(&it.sync, s)),
    F::new("sync_mean", "SYNC MEAN", Unit::Seconds, |it, _| mean(&it.sync)),
    F::new("truncate_rate", "TRUNC/S", Unit::PerSecond, |it, s| operations(&it.truncate, s))
        .expendable(6),
    F::new("max", "MAX", Unit::Seconds, |it, _| timing(it).max_seconds.into()).expendable(5),
    F::new("sessions", "S/S", Unit::Sessions, |it, s| per(it.seconds, s)).expendable(1),
    F::new("failed", "FAILED", Unit::Count, |it, _| it.failed.into()).expendable(7),
];

fn operations(of: &RelationTiming, seconds: f64) -> Cell {
    if of.count > 0 {
        rate(of.count, seconds)
    } else {
        "".into()
    }
}

fn moved(of: &RelationTiming, seconds: f64) -> Cell {
    if of.count > 0 {
        rate(of.bytes, seconds)
    } else {
        "".into()
    }
}

fn mean(of: &RelationTiming) -> Cell {
    if of.count > 0 {
        per(of.seconds, of.count as f64)
    } else {
        "".into()
    }
}

/// All operations of a relation together.
pub fn timing(row: &RelationRow) -> Timing {
    let all = [&row.read, &row.write, &row.extend, &row.sync, &row.truncate];
    let count = all.iter().fold(0u64, |sum, timing| sum.saturating_add(timing.count));
    Timing {
        count,
        seconds: row.seconds,
        mean_seconds: (count > 0).then(|| row.seconds / count as f64),
        max_seconds: all.iter().filter_map(|timing| timing.max_seconds).reduce(f64::max),
        ..Timing::default()
    }
}
