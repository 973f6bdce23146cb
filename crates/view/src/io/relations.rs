// SPDX-License-Identifier: PostgreSQL
//! Operations on the files of each relation, as a table of the busiest.

use segment::interval::{Interval, Timing};
use segment::relations::RelationTiming;
use segment::RelationRow;
use segment::WaitClass;

use super::files::megabytes;
use super::{Io, RelationNames};
use crate::rows::{accepts, by, left, right, sorted, texts, Wish};
use crate::table::{Row, Table, Tone};
use crate::units::{count, duration, maybe_duration, two};

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
    let rate = |n: f64| n / seconds.max(1e-9);
    let columns = vec![
        left("RELATION", 0),
        right("R/S", 0),
        right("R MB/S", 0),
        right("R MEAN", 2),
        right("W/S", 0),
        right("W MB/S", 0),
        right("W MEAN", 3),
        right("EXT/S", 0),
        right("EXT MB/S", 4),
        right("SYNC/S", 0),
        right("SYNC MEAN", 0),
        right("TRUNC/S", 6),
        right("MAX", 5),
        right("S/S", 1),
        right("FAILED", 7),
    ];
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
    let rows: Vec<Row> = named
        .into_iter()
        .map(|(name, all, row)| {
            let per_second = |timing: &RelationTiming| match timing.count {
                0 => String::new(),
                n => count(rate(n as f64)),
            };
            let moved = |timing: &RelationTiming| match timing.count {
                0 => String::new(),
                _ => megabytes(rate(timing.bytes as f64)),
            };
            let mean = |timing: &RelationTiming| match timing.count {
                0 => String::new(),
                n => duration(timing.seconds / n as f64),
            };
            Row {
                key: format!("relation {name}"),
                cells: texts(vec![
                    name,
                    per_second(&row.read),
                    moved(&row.read),
                    mean(&row.read),
                    per_second(&row.write),
                    moved(&row.write),
                    mean(&row.write),
                    per_second(&row.extend),
                    moved(&row.extend),
                    per_second(&row.sync),
                    mean(&row.sync),
                    per_second(&row.truncate),
                    maybe_duration(all.max_seconds),
                    two(rate(row.seconds)),
                    count(row.failed as f64),
                ]),
                tone: if row.failed > 0 { Tone::Class(WaitClass::Lock) } else { Tone::IO },
                ..Row::default()
            }
        })
        .collect();
    (!rows.is_empty()).then_some((notes, Table::of(columns, rows)))
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
