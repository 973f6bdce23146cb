// SPDX-License-Identifier: PostgreSQL
//! What the server's own views said in a range: vacuum, other conditions, and how tables grew.

use std::collections::BTreeMap;

use recording::{ConditionRow, Range, Recording};

use error::Error;
use view::vacuum::{ConditionKind, Growth, Scope, Vacuum};

/// How far vacuum was behind when most dead rows were there, and the last conditions, with all that was counted in the range;
/// `None`: there is nothing, or nobody asked.
pub fn health(recording: &Recording, range: Range) -> Result<Option<Vacuum>, Error> {
    let (tables, holders) = recording.vacuum(range)?;
    let conditions = recording.conditions(range)?;
    let mut dead: BTreeMap<u64, u64> = BTreeMap::new();
    for row in &tables {
        *dead.entry(row.frame).or_default() += row.dead;
    }
    let worst = dead.iter().max_by_key(|(_, dead)| **dead).map(|(frame, _)| *frame);
    if worst.is_none() && conditions.is_empty() {
        return Ok(None);
    }
    let last = last(&conditions);
    let tables = tables.iter().filter(|row| Some(row.frame) == worst);
    let holders = holders.iter().filter(|row| Some(row.frame) == worst);
    Ok(Some(Vacuum {
        growths: growths(&conditions),
        ..Vacuum::recorded(tables, holders, last.iter())
    }))
}

fn object(row: &ConditionRow) -> (&str, Option<&str>, &str) {
    (&row.kind, row.database.as_deref(), &row.name)
}

/// The conditions of the last reading that asked for their kind, and the sums of those that are counted.
fn last(conditions: &[ConditionRow]) -> Vec<ConditionRow> {
    const COUNTED: [ConditionKind; 2] = [ConditionKind::Deadlocks, ConditionKind::Sequence];

    let asked = |scope: Scope| {
        let rows = conditions.iter().filter(|row| &*row.kind == "asked");
        let rows = rows.filter(|row| Scope::from_name(&row.name) >= scope);
        rows.map(|row| row.frame).max()
    };
    // The first recordings with conditions do not say when the server was asked.
    let is_marked = conditions.iter().any(|row| &*row.kind == "asked");
    let last = conditions.iter().map(|row| row.frame).max().filter(|_| !is_marked);
    let scopes = [Scope::Server, Scope::Databases, Scope::Objects];
    let frames = scopes.map(|scope| asked(scope).or(last));
    let mut all: Vec<ConditionRow> = Vec::new();
    for row in conditions {
        let Some(kind) = ConditionKind::from_name(&row.kind) else { continue };
        if !COUNTED.contains(&kind) {
            if frames[kind.scope() as usize] == Some(row.frame) {
                all.push(row.clone());
            }
            continue;
        }
        match all.iter_mut().find(|sum| object(sum) == object(row)) {
            Some(sum) => sum.count += row.count,
            None => all.push(row.clone()),
        }
    }
    all
}

/// How each table that was there in the first and the last reading grew.
fn growths(conditions: &[ConditionRow]) -> Vec<Growth> {
    let mut seen: BTreeMap<(&str, &str), (&ConditionRow, &ConditionRow)> = BTreeMap::new();
    for row in conditions.iter().filter(|row| &*row.kind == ConditionKind::Size.name()) {
        let of_row = (row.database.as_deref().unwrap_or_default(), &*row.name);
        let (first, last) = seen.entry(of_row).or_insert((row, row));
        if row.frame < first.frame {
            *first = row;
        }
        if row.frame > last.frame {
            *last = row;
        }
    }
    let growth = |((database, name), (first, last)): (_, (&ConditionRow, &ConditionRow))| {
        let seconds = (last.time_us - first.time_us) as f64 * 1e-6;
        let size = |row: &ConditionRow| i64::try_from(row.bytes).unwrap_or(i64::MAX);
        (seconds > 0.0).then(|| Growth {
            database: <&str>::to_string(&database),
            name: <&str>::to_string(&name),
            bytes: size(last) - size(first),
            seconds,
        })
    };
    seen.into_iter().filter_map(growth).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kind: &str, name: &str, frame: u64, count: u64, bytes: u64) -> ConditionRow {
        ConditionRow {
            kind: kind.into(),
            name: name.into(),
            frame,
            time_us: frame as i64 * 60_000_000,
            count,
            bytes,
            ..ConditionRow::default()
        }
    }

    #[test]
    fn each_kind_is_as_of_the_last_reading_that_asked_for_it() {
        let rows = [
            row("asked", "objects", 1, 0, 0),
            row("slot", "gone", 1, 0, 1),
            row("setting", "max_wal_size", 1, 0, 1),
            row("size", "t", 1, 0, 100),
            row("deadlocks", "", 1, 2, 0),
            row("asked", "", 2, 0, 0),
            row("setting", "max_wal_size", 2, 0, 2),
            row("deadlocks", "", 2, 3, 0),
            row("asked", "server", 3, 0, 0),
            row("slot", "s", 3, 0, 7),
        ];
        let found = last(&rows);
        let shown: Vec<_> = found.iter().map(|row| (&*row.kind, row.frame, row.count)).collect();
        let expected = [("size", 1, 0), ("deadlocks", 1, 5), ("setting", 2, 0), ("slot", 3, 0)];
        assert_eq!(shown, expected);
    }

    #[test]
    fn recordings_of_earlier_versions_have_one_kind_of_reading() {
        let rows = [
            row("asked", "", 1, 0, 0),
            row("slot", "gone", 1, 0, 1),
            row("asked", "", 2, 0, 0),
            row("prepared", "x", 2, 0, 0),
        ];
        let kinds = |rows: &[ConditionRow]| {
            last(rows).iter().map(|row| row.kind.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(kinds(&rows), ["prepared"]);
        assert_eq!(kinds(&[rows[1].clone(), rows[3].clone()]), ["prepared"]);
    }

    #[test]
    fn growth_is_between_the_first_and_the_last_reading() {
        let rows = [
            row("size", "t", 1, 0, 100),
            row("size", "t", 2, 0, 300),
            row("size", "t", 3, 0, 200),
            row("size", "new", 3, 0, 200),
        ];
        let found = growths(&rows);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].bytes, found[0].seconds), (100, 120.0));
    }
}
