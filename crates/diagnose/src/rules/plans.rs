// SPDX-License-Identifier: PostgreSQL
//! What a statement's plan says about how it reads its tables.

use view::statements::{PlanRow, StatementFigures};

/// What the plan of a statement that reads too much says.
pub(super) enum Reads {
    /// No plan was noted.
    Unknown,
    /// It filters this table of so many rows, which it reads as a whole.
    Filtered(String, f64),
    /// It reads whole tables because it needs all their rows.
    Whole,
    /// Something else.
    Other,
}

/// The plan that the statement used last.
pub(super) fn last<'p>(plans: &'p [PlanRow], row: &StatementFigures) -> Option<&'p PlanRow> {
    let of_row = plans.iter().filter(|plan| plan.key == row.key);
    of_row.max_by(|a, b| a.last_noted.total_cmp(&b.last_noted))
}

/// How a statement reads its tables, by its plan.
pub(super) fn reads(plan: Option<&PlanRow>) -> Reads {
    let Some(plan) = plan else { return Reads::Unknown };
    let nodes = plan.nodes();
    let scans = nodes.iter().filter(|node| node.contains("Scan"));
    let filtered =
        nodes.iter().filter(|node| node.contains("Seq Scan on ") && node.contains(" [filter"));
    let largest = filtered.filter_map(|node| {
        let (_, after) = node.split_once("Seq Scan on ")?;
        let (table, rest) = after.split_once(" [")?;
        let (_, size) = rest.split_once("[table of ")?;
        Some((table.to_string(), size.split(' ').next()?.parse::<f64>().ok()?))
    });
    match largest.max_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((table, size)) => Reads::Filtered(table, size),
        None if scans.clone().count() > 0
            && scans.clone().all(|node| node.contains("Seq Scan on ")) =>
        {
            Reads::Whole
        }
        None => Reads::Other,
    }
}
