// SPDX-License-Identifier: PostgreSQL
//! The tables over time: their sums in each point of the charts, from which a page shows them for any part of the time.
//!
//! The sums of a point are cells of the same tables, made from the interval of that point, so a figure of a part is computed in
//! no other way than that of the whole time.

use std::collections::{BTreeMap, HashMap};

use segment::Interval;
use view::document::{
    Axis, Column, Derivation, OverTime, Parts, SumSeries, Table, TableParts, Unit, MEASURED,
};

use crate::material::Material;
use crate::point::{Figures, Point};
use crate::statement_id::{statement_id, StatementId};
use crate::sums::{is_sum, sum_columns, PointSums, RowId, StatementSums, POINTS};
use crate::tables;

/// Maximum number of rows of a table that are known over time, those with the most time.
const ROWS: usize = 100;

/// Why the figures of samples are not shown for a part of the time.
const SAMPLED: &str = "the half-widths of samples are known for the whole time only";
/// Why a table is not split where nothing else is known.
const NOT_KEPT: &str = "these sums are not kept over time";
/// Why statements by application are not split.
const BY_APPLICATION: &str = "over time, statements are known for all applications together";

/// The sums of an interval's tables; none if the server is sampled.
pub fn sums(interval: &Interval) -> PointSums {
    if interval.sampling.is_some() {
        return PointSums::default();
    }
    PointSums::from_tables(&tables::of_interval(interval))
}

/// How a column of a table follows from its sums; `sums` are their names.
fn derivation(column: &Column, sums: &[&'static str]) -> Derivation {
    let key = column.key;
    let known = |derivation: Derivation| match derivation {
        Derivation::Sum(of) if !sums.contains(&of) => Derivation::Unknown,
        Derivation::Quotient(of, by) => {
            let is_total = matches!(by, MEASURED | "busy" | "commands" | "commits" | "all_seconds");
            if sums.contains(&of) && (is_total || sums.contains(&by)) {
                derivation
            } else {
                Derivation::Unknown
            }
        }
        other => other,
    };
    if sums.contains(&key) && is_sum(column) {
        return Derivation::Sum(key);
    }
    let events = if sums.contains(&"calls") { "calls" } else { "count" };
    known(match (key, column.unit) {
        (_, unit) if !unit.is_figure() => Derivation::Same,
        ("per_second", _) if sums.contains(&"handle_count") => {
            Derivation::Quotient("handle_count", MEASURED)
        }
        ("per_second", _) => Derivation::Quotient(events, MEASURED),
        ("sessions", Unit::Sessions) => Derivation::Quotient("seconds", MEASURED),
        ("average", _) => Derivation::Quotient("busy_seconds", MEASURED),
        ("bytes_per_second", _) => Derivation::Quotient("bytes", MEASURED),
        ("share", _) if sums.contains(&"calls") => Derivation::Quotient("seconds", "all_seconds"),
        ("share", _) => Derivation::Quotient("seconds", "busy"),
        ("per_command_seconds", _) => Derivation::Quotient("seconds", "commands"),
        ("per_commit_seconds", _) => Derivation::Quotient("seconds", "commits"),
        ("per_call_seconds", _) => Derivation::Quotient("seconds", "calls"),
        ("mean_seconds", _) if sums.contains(&"exec_seconds") => {
            Derivation::Quotient("exec_seconds", "calls")
        }
        ("mean_seconds", _) => Derivation::Quotient("seconds", events),
        ("exclusive_mean_seconds", _) => Derivation::Quotient("exclusive_seconds", events),
        ("handle_mean_seconds", _) => Derivation::Quotient("handle_seconds", "handle_count"),
        ("read_mean_seconds", _) => Derivation::Quotient("read_seconds", "read_count"),
        ("held_mean_seconds", _) => Derivation::Quotient("held_seconds", "held_count"),
        ("wait_mean_seconds", _) => Derivation::Quotient("wait_seconds", "wait_count"),
        (share, Unit::Share) => Derivation::Quotient(share, "seconds"),
        _ => Derivation::Unknown,
    })
}

/// Points of the charts as groups; a gap is one of its own.
struct Groups {
    axis: Axis,
    /// The group of each point.
    of: Vec<usize>,
}

impl Groups {
    fn new(points: &[Point]) -> Groups {
        let each = points.len().div_ceil(POINTS).max(1);
        let mut groups = Groups { axis: Axis::default(), of: Vec::with_capacity(points.len()) };
        let (mut length, mut measured) = (0, None);
        for point in points {
            let is_measured = point.seconds > 0.0;
            if measured != Some(is_measured) || length == each {
                groups.axis.time.push(point.start);
                groups.axis.seconds.push(0.0);
                (length, measured) = (0, Some(is_measured));
            }
            length += 1;
            if let Some(seconds) = groups.axis.seconds.last_mut() {
                *seconds += point.seconds;
            }
            groups.of.push(groups.axis.time.len() - 1);
        }
        groups
    }

    fn len(&self) -> usize {
        self.axis.time.len()
    }

    /// A figure of each point, added up by group.
    fn sums(&self, points: &[Point], of: impl Fn(&Figures) -> f64) -> SumSeries {
        let mut sums = vec![0.0; self.len()];
        for (point, group) in points.iter().zip(&self.of) {
            sums[*group] += point.figures.as_ref().map_or(0.0, &of);
        }
        SumSeries(sums)
    }
}

/// The tables over time. Tables that cannot be split say why.
pub fn parts(material: &Material, tables: &mut [Table]) -> Option<Parts> {
    let is_sampled = material.whole.sampling.is_some();
    let points = &material.points;
    let groups = Groups::new(points);
    let mut parts = Parts::default();
    if !is_sampled {
        parts.tables = of_points(points, &groups, tables);
        for table in &mut *tables {
            let of = match table.id {
                "statements" => statements(material, table),
                "active_sessions" => active_sessions(material, table, &groups),
                _ => None,
            };
            parts.tables.extend(of.map(|of| (table.id, of)));
        }
    }
    for table in tables.iter_mut().filter(|table| table.over_time == OverTime::Sums) {
        if is_sampled {
            table.over_time = OverTime::Whole(SAMPLED);
        } else if !parts.tables.contains_key(table.id) {
            table.over_time = OverTime::Whole(NOT_KEPT);
        }
    }
    if parts.tables.is_empty() {
        return None;
    }
    let busy =
        |figures: &Figures| -> f64 { figures.activities.iter().map(|activity| activity.1).sum() };
    parts.totals = BTreeMap::from([
        ("busy", groups.sums(points, busy)),
        ("commands", groups.sums(points, |figures| figures.commands as f64)),
        ("commits", groups.sums(points, |figures| figures.commits as f64)),
    ]);
    parts.axis = groups.axis;
    Some(parts)
}

/// The tables of which each point has sums.
fn of_points(
    points: &[Point],
    groups: &Groups,
    tables: &[Table],
) -> BTreeMap<&'static str, TableParts> {
    let mut parts = BTreeMap::new();
    let mut places: HashMap<RowId, (&'static str, usize)> = HashMap::new();
    let split = tables.iter().filter(|table| tables::OF_INTERVAL.contains(&table.id));
    for table in split {
        let sums: Vec<&'static str> =
            sum_columns(&table.columns).iter().map(|at| table.columns[*at].key).collect();
        for (at, row) in table.rows.iter().enumerate() {
            places.insert(RowId::new(table, row), (table.id, at));
        }
        let empty = vec![SumSeries(vec![0.0; groups.len()]); sums.len()];
        let of = TableParts {
            columns: table.columns.iter().map(|column| derivation(column, &sums)).collect(),
            rows: vec![empty; table.rows.len()],
            sums,
            ..TableParts::default()
        };
        parts.insert(table.id, of);
    }
    for (point, group) in points.iter().zip(&groups.of) {
        let sums = point.figures.iter().flat_map(|figures| &figures.sums.0);
        for (id, values) in sums {
            let Some((table, row)) = places.get(id) else { continue };
            let row = parts.get_mut(table).and_then(|of: &mut TableParts| of.rows.get_mut(*row));
            for (series, value) in row.into_iter().flatten().zip(values) {
                series.0[*group] += value;
            }
        }
    }
    // Sources without sums, such as earlier versions of a history.
    parts.retain(|_, of| {
        of.rows.iter().flatten().any(|series| series.0.iter().any(|value| *value > 0.0))
    });
    parts
}

/// The statements with the most time.
fn statements(material: &Material, table: &mut Table) -> Option<TableParts> {
    let all = material.statements.as_ref()?;
    let known = material.statement_parts.as_ref()?;
    if all.rows.iter().any(|row| row.application.name().is_some()) {
        table.over_time = OverTime::Whole(BY_APPLICATION);
        return None;
    }
    const SUMS: [&str; 10] = [
        "seconds",
        "calls",
        "exec_seconds",
        "cpu_share",
        "io_share",
        "lwlock_share",
        "lock_share",
        "client_share",
        "ipc_share",
        "other_share",
    ];
    let points = known.axis.time.len();
    let of = |ids: &[StatementId]| -> Vec<SumSeries> {
        let those: Vec<&StatementSums> = ids.iter().filter_map(|id| known.sums.get(id)).collect();
        let series = |name: &str| {
            let mut sum = vec![0.0; points];
            for one in &those {
                let values = match name {
                    "seconds" => Some(&one.seconds),
                    "calls" => Some(&one.calls),
                    "exec_seconds" => Some(&one.exec_seconds),
                    class => one.classes.get(class),
                };
                for (sum, value) in sum.iter_mut().zip(values.into_iter().flatten()) {
                    *sum += value.max(0.0);
                }
            }
            SumSeries(sum)
        };
        if those.is_empty() {
            return Vec::new();
        }
        SUMS.map(series).into()
    };
    let own: Vec<StatementId> =
        all.rows.iter().filter(|row| row.own).map(|row| statement_id(&row.key)).collect();
    let others = all.rows.iter().filter(|row| !row.own).map(|row| vec![statement_id(&row.key)]);
    let groups = others.chain((!own.is_empty()).then_some(own));
    let mut rows: Vec<Vec<SumSeries>> = groups.take(ROWS).map(|ids| of(&ids)).collect();
    rows.resize(table.rows.len(), Vec::new());
    let mut all_seconds = vec![0.0; points];
    for (_, one) in known.sums.iter().filter(|(id, _)| id.3) {
        all_seconds.iter_mut().zip(&one.seconds).for_each(|(sum, one)| *sum += one.max(0.0));
    }
    Some(TableParts {
        axis: Some(known.axis.clone()),
        totals: BTreeMap::from([("all_seconds", SumSeries(all_seconds))]),
        columns: table.columns.iter().map(|column| derivation(column, &SUMS)).collect(),
        sums: SUMS.into(),
        rows,
    })
}

/// Applications, users and databases with their busy time.
fn active_sessions(material: &Material, table: &Table, groups: &Groups) -> Option<TableParts> {
    const SUMS: [&str; 4] =
        ["busy_seconds", "cpu_seconds", "blocked_seconds", "idle_in_transaction_seconds"];
    let active = &material.sessions.as_ref()?.active;
    let rows = active.iter().map(|one| {
        let mut sums = SUMS.map(|_| SumSeries(vec![0.0; groups.len()]));
        for (point, values) in &one.times {
            let Some(group) = groups.of.get(*point) else { continue };
            for (sum, value) in sums.iter_mut().zip(values) {
                sum.0[*group] += value;
            }
        }
        Vec::from(sums)
    });
    Some(TableParts {
        columns: table.columns.iter().map(|column| derivation(column, &SUMS)).collect(),
        sums: SUMS.into(),
        rows: rows.collect(),
        ..TableParts::default()
    })
}
