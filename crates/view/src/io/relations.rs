// SPDX-License-Identifier: PostgreSQL
//! Operations on the files of each relation, as a table of the busiest relations.

use segment::interval::{Interval, Timing};
use segment::layout::{SPACE_DEFAULT, SPACE_GLOBAL};
use segment::relations::RelationTiming;
use segment::RelationRow;
use segment::WaitClass;

use super::{Io, RelationNames};
use crate::rows::{accepts, by, left, sorted, RowOptions};
use crate::table::field::{per, rate, Field, Picked};
use crate::table::{Cell, Row, Table, Tone, Unit};
use crate::units::duration;

/// Number of relations to show without a filter.
const BUSIEST: usize = 12;

/// "shop/orders", "shop/16384_fsm@16390", "global/1262", "(others)"
pub fn name(row: &RelationRow, names: &RelationNames) -> String {
    let (Some(tablespace), Some(relfilenode)) = (row.tablespace, row.relfilenode) else {
        return "(others)".to_string();
    };
    let folder = match (tablespace, row.database_id) {
        (SPACE_GLOBAL, _) | (_, None) => "global".to_string(),
        (_, Some(id)) => row.database.clone().unwrap_or_else(|| id.to_string()),
    };
    let fork = match row.fork {
        None | Some("main") => String::new(),
        Some(fork) => format!("_{fork}"),
    };
    let temporary = if row.temporary { " temporary" } else { "" };
    let relation = names.get(row).map_or(relfilenode.to_string(), str::to_string);
    match tablespace {
        SPACE_DEFAULT | SPACE_GLOBAL => format!("{folder}/{relation}{fork}{temporary}"),
        _ => format!("{folder}/{relation}{fork}@{tablespace}{temporary}"),
    }
}

/// A hint if some names are only numbers.
fn notes(shown: &[(String, Timing, &RelationRow)], names: &RelationNames) -> Vec<String> {
    let unnamed = |row: &RelationRow| row.relfilenode.is_some() && names.get(row).is_none();
    match shown.iter().any(|(_, _, row)| unnamed(row)) {
        true => vec![
            "numbers are file numbers; the view tally.relations of that database shows the names"
                .to_string(),
        ],
        false => Vec::new(),
    }
}

/// Notes, and the busiest relations that match the filter; `None` if there is no relation to show.
pub fn table(io: &Io, interval: &Interval, wish: &RowOptions) -> Option<(Vec<String>, Table)> {
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
        let tone = if row.failed > 0 { Tone::from_class(WaitClass::Lock) } else { Tone::IO };
        Row { tone, ..Row::new(format!("relation {name}"), cells) }
    };
    let rows: Vec<Row> = named.into_iter().map(row).collect();
    let columns = figures.columns_after([left("RELATION", 0)]);
    (!rows.is_empty()).then(|| (notes, Table::from_rows(columns, rows)))
}

type F = Field<RelationRow>;

/// The figures of a relation. Cells without operations stay empty.
const FIELDS: &[F] = &[
    F::new("read_rate", "R/S", Unit::PerSecond, |row, s| operations(&row.read, s)),
    F::new("read_bytes", "R MB/S", Unit::BytesPerSecond, |row, s| moved(&row.read, s)),
    F::new("read_mean", "R MEAN", Unit::Seconds, |row, _| mean(&row.read)).expendable(2),
    F::new("write_rate", "W/S", Unit::PerSecond, |row, s| operations(&row.write, s)),
    F::new("write_bytes", "W MB/S", Unit::BytesPerSecond, |row, s| moved(&row.write, s)),
    F::new("write_mean", "W MEAN", Unit::Seconds, |row, _| mean(&row.write)).expendable(3),
    F::new("extend_rate", "EXT/S", Unit::PerSecond, |row, s| operations(&row.extend, s)),
    F::new("extend_bytes", "EXT MB/S", Unit::BytesPerSecond, |row, s| moved(&row.extend, s))
        .expendable(4),
    F::new("sync_rate", "SYNC/S", Unit::PerSecond, |row, s| operations(&row.sync, s)),
    F::new("sync_mean", "SYNC MEAN", Unit::Seconds, |row, _| mean(&row.sync)),
    F::new("truncate_rate", "TRUNC/S", Unit::PerSecond, |row, s| operations(&row.truncate, s))
        .expendable(6),
    F::new("max", "MAX", Unit::Seconds, |row, _| timing(row).max_seconds.into()).expendable(5),
    F::new("sessions", "S/S", Unit::Sessions, |row, s| per(row.seconds, s)).expendable(1),
    F::new("failed", "FAILED", Unit::Count, |row, _| row.failed.into()).expendable(7),
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

/// All operations of a relation added up.
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

#[cfg(test)]
mod tests {
    use super::*;
    use segment::relations::RelationKey;

    fn row(
        tablespace: u32,
        database: Option<(u32, Option<&str>)>,
        fork: &'static str,
    ) -> RelationRow {
        let timing = |count, max_seconds| RelationTiming {
            count,
            bytes: 8192 * count,
            seconds: 1.0,
            max_seconds,
        };
        RelationRow {
            key: RelationKey::default(),
            tablespace: Some(tablespace),
            database_id: database.map(|database| database.0),
            database: database.and_then(|database| database.1).map(str::to_string),
            relfilenode: Some(16384),
            fork: Some(fork),
            temporary: false,
            seconds: 6.2,
            failed: 0,
            read: timing(1, Some(0.1)),
            write: timing(2, Some(0.5)),
            extend: timing(4, None),
            sync: timing(8, Some(0.2)),
            truncate: timing(16, None),
        }
    }

    #[test]
    fn a_relation_is_named_by_database_file_fork_and_tablespace() {
        let shop = Some((5, Some("shop")));
        let temporary = RelationRow { temporary: true, ..row(SPACE_DEFAULT, shop, "main") };
        let others = RelationRow { relfilenode: None, ..row(SPACE_DEFAULT, shop, "main") };
        let none = RelationNames::default();
        for (row, text) in [
            (row(SPACE_DEFAULT, shop, "main"), "shop/16384"),
            (row(SPACE_DEFAULT, Some((5, None)), "main"), "5/16384"),
            (row(16390, shop, "fsm"), "shop/16384_fsm@16390"),
            (row(SPACE_GLOBAL, None, "main"), "global/16384"),
            (temporary, "shop/16384 temporary"),
            (others, "(others)"),
        ] {
            assert_eq!(name(&row, &none), text);
        }
        let file = (Some(5), SPACE_DEFAULT, 16384);
        let names = RelationNames([(file, "orders".to_string())].into());
        assert_eq!(name(&row(SPACE_DEFAULT, shop, "vm"), &names), "shop/orders_vm");
        assert_eq!(name(&row(16390, shop, "main"), &names), "shop/16384@16390", "another file");
    }

    #[test]
    fn all_operations_of_a_relation_are_summed_and_the_busiest_shown() {
        let all = timing(&row(SPACE_DEFAULT, None, "main"));
        assert_eq!((all.count, all.max_seconds, all.mean_seconds), (31, Some(0.5), Some(0.2)));
        let interval = crate::sample::interval();
        let of = |number: u32| RelationRow {
            relfilenode: Some(number),
            seconds: f64::from(number),
            failed: u64::from(number == 20),
            ..row(SPACE_DEFAULT, Some((5, Some("shop"))), "main")
        };
        let relations = Some((1..=20).map(of).collect());
        let mut io = Io { relations, relations_seconds: Some(2.0), ..Io::default() };
        let table = |io: &Io, filter: &str| {
            let wish = RowOptions { filter: filter.into(), ..RowOptions::default() };
            super::table(io, &interval, &wish).unwrap()
        };
        let (notes, shown) = table(&io, "");
        assert_eq!((shown.rows.len(), &*shown.rows[0].key), (BUSIEST, "relation shop/20"));
        assert_eq!(notes[1], "recorded per 2 s");
        assert_eq!(
            (shown.rows[0].tone, shown.rows[1].tone),
            (Tone::from_class(WaitClass::Lock), Tone::IO)
        );
        // Over 2 s: reads, bytes, mean; writes; extensions; syncs; truncations.
        let cells: Vec<String> = shown.rows[0].cells.iter().map(|cell| cell.exact()).collect();
        let expected = [
            "shop/20", "0.5", "4096", "1", "1", "8192", "0.5", "2", "16384", "4", "0.125", "8",
            "0.5", "10", "1",
        ];
        assert_eq!(cells, expected);
        assert_eq!(table(&io, "shop").1.rows.len(), 20, "what the filter finds is shown");
        io.relation_names = RelationNames(
            (1..=20).map(|n| ((Some(5), SPACE_DEFAULT, n), format!("t{n}"))).collect(),
        );
        assert_eq!(table(&io, "").0, ["recorded per 2 s"], "no number needs an explanation");
    }
}
