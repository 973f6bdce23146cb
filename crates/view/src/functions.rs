// SPDX-License-Identifier: PostgreSQL
//! The functions pane, and the tree of callers and callees.

use crate::choose;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use segment::functions::{EdgeRow, FunctionRow};
use segment::interval::{Interval, Timing};

use super::methods;
use super::rows::{accepts, by, left, sorted, RowOptions};
use super::table::field::{rate, Field, Picked};
use super::table::{Cell, Row, Table, Tone, Unit};
use super::timing;

/// Maximum depth of the call tree.
const MAX_DEPTH: usize = 100;

/// Why there are no functions to show.
pub fn note(interval: &Interval) -> Option<String> {
    if !interval.functions.is_empty() {
        return None;
    }
    Some(match interval.functions_probed {
        0 => "no functions are being timed; run tally functions --set 'XLogFlush, heap_insert' to time these, \
              or tally functions --list '*' to list those that can be timed"
            .to_string(),
        probed => format!("none of the {probed} timed functions was called"),
    })
}

type F = Field<FunctionRow>;

/// The columns of functions.
pub const FIELDS: &[F] = &[
    F::new("name", "Function", Unit::Text, |row, _| (&row.name).into()),
    F::new("phase", "Phase", Unit::Text, |row, _| (&row.phase).into()).expendable(5),
    F::new("calls", "Calls", Unit::Count, |row, _| row.calls.into()),
    F::new("per_second", "Rate", Unit::PerSecond, |row, s| rate(row.calls, s)).expendable(6),
    F::new("seconds", "Inclusive", Unit::Seconds, |row, _| row.inclusive.seconds.into())
        .help("including the functions that it called"),
    F::new("mean_seconds", "Mean", Unit::Seconds, |row, _| row.inclusive.mean_seconds.into())
        .expendable(1),
    F::new("p50_seconds", "p50", Unit::Seconds, |row, _| row.inclusive.p50_seconds.into())
        .expendable(7),
    F::new("p99_seconds", "p99", Unit::Seconds, |row, _| row.inclusive.p99_seconds.into())
        .expendable(2),
    F::new("max_seconds", "Max", Unit::Seconds, |row, _| row.inclusive.max_seconds.into())
        .expendable(3),
    F::new("exclusive_seconds", "Exclusive", Unit::Seconds, |row, _| row.exclusive_seconds.into())
        .help("without the timed functions that it called"),
    F::new("exclusive_mean_seconds", "Mean exclusive", Unit::Seconds, |row, _| {
        row.exclusive_mean_seconds.into()
    })
    .expendable(4),
    F::new("counted", "Not timed", Unit::Count, |row, _| row.counted.into())
        .help("calls that were counted but not timed, because they were too frequent")
        .expendable(8),
];

/// Functions by total time and, when opened, by phase.
pub fn functions(interval: &Interval, wish: &RowOptions) -> Table {
    let figures = Picked::of_pane(choose!(
        FIELDS,
        "calls=COUNT, seconds=TOTAL, mean_seconds=AVERAGE, max_seconds, exclusive_seconds:1, \
         exclusive_mean_seconds=EXCLUSIVE AVERAGE:3, p50_seconds:6, p99_seconds:2, counted:5"
    ));
    let mut groups: BTreeMap<&str, Vec<&FunctionRow>> = BTreeMap::new();
    for row in &interval.functions {
        if accepts(wish, &[&row.name, &row.phase]) {
            groups.entry(&row.name).or_default().push(row);
        }
    }
    let summed: Vec<(FunctionRow, Vec<&FunctionRow>)> = groups
        .into_values()
        .map(|rows| (FunctionRow::sum(&rows, interval.clock.ticks_per_second), rows))
        .collect();
    let order = |a: (&FunctionRow, &str), b: (&FunctionRow, &str)| {
        // Functions that are only counted have calls but no times.
        let timing = |row: &FunctionRow| Timing { count: row.calls, ..row.inclusive };
        by(&wish.sort, (&timing(a.0), a.1), (&timing(b.0), b.1))
    };
    let summed = sorted(summed, wish, |a, b| order((&a.0, &a.0.name), (&b.0, &b.0.name)));
    let line = |key: String, names: [String; 2], row: &FunctionRow, branches: bool| Row {
        branches,
        ..Row::new(key, figures.cells_after(names.map(Cell::from), row, 0.0))
    };
    let mut rows = Vec::new();
    for (sum, parts) in &summed {
        let many = parts.len() > 1;
        let phase = match parts.as_slice() {
            [only] => only.phase.to_string(),
            many => format!("{} phases", many.len()),
        };
        let key = sum.name.to_string();
        rows.push(line(key.clone(), [key.clone(), phase], sum, many));
        if many && wish.open.shows(&key) {
            for part in sorted(parts.clone(), wish, |a, b| order((a, &a.phase), (b, &b.phase))) {
                let key = format!("{key} {}", part.phase);
                rows.push(line(key, [format!("  {}", part.phase), String::new()], part, false));
            }
        }
    }
    Table::from_rows(figures.columns_after([left("NAME", 0), left("PHASE", 4)]), rows)
}

/// The call tree: each function that no timed function calls and, indented below it, the functions that it
/// calls. A function with several callers appears below each of them, with the calls from there; its own callees
/// appear only the first time.
pub fn tree(interval: &Interval) -> Table {
    let mut tree = Tree {
        callees: BTreeMap::new(),
        printed: HashSet::new(),
        rows: Table::from_rows(vec![left("NAME", 0)], Vec::new()),
        figures: Picked::of_pane(choose!(
            timing::FIELDS,
            "count, seconds, mean_seconds=AVERAGE, max_seconds"
        )),
    };
    tree.rows.columns.extend(tree.figures.columns.iter().cloned());
    for edge in &interval.edges {
        tree.callees.entry(&edge.caller).or_default().push(edge);
    }
    // Edges name the methods of a client with their packages.
    let named: HashSet<&str> =
        interval.edges.iter().flat_map(|edge| [&*edge.caller, &*edge.callee]).collect();
    let mut functions: BTreeMap<&str, Vec<&FunctionRow>> = BTreeMap::new();
    for row in &interval.functions {
        let name = named.get(&*methods::method(row)).copied().unwrap_or(&row.name);
        functions.entry(name).or_default().push(row);
    }
    let timing_of = |name: &str| {
        functions.get(name).map_or_else(Timing::default, |rows| {
            FunctionRow::sum(rows, interval.clock.ticks_per_second).inclusive
        })
    };
    let called: HashSet<&str> =
        interval.edges.iter().filter(|e| e.caller != e.callee).map(|e| &*e.callee).collect();
    let names: BTreeSet<&str> =
        functions.keys().copied().chain(tree.callees.keys().copied()).collect();
    let mut names: Vec<(&str, Timing)> = names.into_iter().map(|n| (n, timing_of(n))).collect();
    // Roots first. A cycle of calls has no root, so it starts at the function with the most time.
    names.sort_by(|a, b| {
        (called.contains(a.0).cmp(&called.contains(b.0)))
            .then_with(|| b.1.seconds.total_cmp(&a.1.seconds))
            .then_with(|| a.0.cmp(b.0))
    });
    for (name, timing) in names {
        if !tree.printed.contains(name) {
            tree.print(name, &timing, 0);
        }
    }
    tree.rows
}

struct Tree<'i> {
    callees: BTreeMap<&'i str, Vec<&'i EdgeRow>>,
    printed: HashSet<&'i str>,
    rows: Table,
    figures: Picked<Timing>,
}

impl<'i> Tree<'i> {
    fn print(&mut self, name: &'i str, timing: &Timing, depth: usize) {
        let again = !self.printed.insert(name);
        let callees = self.callees.get(name).cloned().unwrap_or_default();
        let again = again || depth == MAX_DEPTH;
        let more = if again && !callees.is_empty() { " ..." } else { "" };
        let name = format!("{}{name}{more}", "  ".repeat(depth));
        self.rows.push(Tone::Plain, self.figures.cells_after([name.into()], timing, 0.0));
        if !again {
            for edge in callees {
                self.print(&edge.callee, &edge.timing, depth + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_tree_goes_from_callers_to_callees_and_ends_at_cycles() {
        let mut interval = sample::interval();
        let mut ring = interval.edges[1].clone();
        (ring.caller, ring.callee) = ("issue_xlog_fsync".into(), "XLogFlush".into());
        interval.edges.push(ring);
        insta::assert_snapshot!(tree(&interval).to_string());
    }
}
