// SPDX-License-Identifier: PostgreSQL
//! The functions pane, and the tree of callers and callees.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use segment::functions::{EdgeRow, FunctionRow};
use segment::interval::{Interval, Timing};

use super::rows::{accepts, by, left, right, sorted, texts, Wish};
use super::table::{Row, Table, Tone};
use super::units::{count, duration, maybe_duration};

/// Maximum depth of the call tree.
const MAX_DEPTH: usize = 100;

/// Why there are no functions to show.
pub fn note(interval: &Interval) -> Option<String> {
    if !interval.functions.is_empty() {
        return None;
    }
    Some(match interval.functions_probed {
        0 => "no function is timed; tally functions --set 'XLogFlush, heap_insert' times them, \
              tally functions --list '*' lists those that can be timed"
            .to_string(),
        probed => format!("none of the {probed} probed functions was called"),
    })
}

/// Functions by total time and, opened, by phase.
pub fn functions(interval: &Interval, wish: &Wish) -> Table {
    let columns = vec![
        left("NAME", 0),
        left("PHASE", 4),
        right("COUNT", 0),
        right("TOTAL", 0),
        right("AVERAGE", 0),
        right("MAX", 0),
        right("EXCLUSIVE", 1),
        right("AVERAGE", 3),
        right("P50", 6),
        right("P99", 2),
        right("NOT TIMED", 5),
    ];
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
    let line = |key: String, names: [String; 2], row: &FunctionRow, branches: bool| {
        let [name, phase] = names;
        let timing = &row.inclusive;
        Row {
            key,
            cells: texts(vec![
                name,
                phase,
                count(row.calls as f64),
                duration(timing.seconds),
                maybe_duration(timing.mean_seconds),
                maybe_duration(timing.max_seconds),
                duration(row.exclusive_seconds),
                maybe_duration(row.exclusive_mean_seconds),
                maybe_duration(timing.p50_seconds),
                maybe_duration(timing.p99_seconds),
                count(row.counted as f64),
            ]),
            tone: Tone::Plain,
            branches,
            ..Row::default()
        }
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
    Table::of(columns, rows)
}

/// The call tree: every function that no probed function calls, and below it, indented,
/// those that it calls. A function with several callers appears below each, with the calls
/// from there; its own callees appear only the first time.
pub fn tree(interval: &Interval) -> Table {
    let mut tree = Tree {
        callees: BTreeMap::new(),
        printed: HashSet::new(),
        rows: Table::with_headings(&["NAME", "COUNT", "TOTAL", "AVERAGE", "MAX"], 1..5),
    };
    for edge in &interval.edges {
        tree.callees.entry(&edge.caller).or_default().push(edge);
    }
    let mut functions: BTreeMap<&str, Vec<&FunctionRow>> = BTreeMap::new();
    for row in &interval.functions {
        functions.entry(&row.name).or_default().push(row);
    }
    let timing = |name: &str| {
        functions.get(name).map_or_else(Timing::default, |rows| {
            FunctionRow::sum(rows, interval.clock.ticks_per_second).inclusive
        })
    };
    let called: HashSet<&str> =
        interval.edges.iter().filter(|e| e.caller != e.callee).map(|e| &*e.callee).collect();
    let names: BTreeSet<&str> =
        functions.keys().copied().chain(tree.callees.keys().copied()).collect();
    let mut names: Vec<(&str, Timing)> = names.into_iter().map(|n| (n, timing(n))).collect();
    // Roots first. A cycle of calls has no root, so it starts at the function with most time.
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
}

impl<'i> Tree<'i> {
    fn print(&mut self, name: &'i str, timing: &Timing, depth: usize) {
        let again = !self.printed.insert(name);
        let callees = self.callees.get(name).cloned().unwrap_or_default();
        let again = again || depth == MAX_DEPTH;
        let more = if again && !callees.is_empty() { " ..." } else { "" };
        self.rows.push_texts(vec![
            format!("{}{name}{more}", "  ".repeat(depth)),
            count(timing.count as f64),
            duration(timing.seconds),
            maybe_duration(timing.mean_seconds),
            maybe_duration(timing.max_seconds),
        ]);
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
        let mut out = Vec::new();
        tree(&interval).write(&mut out).unwrap();
        insta::assert_snapshot!(String::from_utf8(out).unwrap());
    }
}
