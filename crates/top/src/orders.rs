// SPDX-License-Identifier: PostgreSQL
//! Sort orders: those of each pane, and the one that a click on a column title selects.

use crate::View;
use view::Sort;

const MOST: [Sort; 5] = [Sort::Time, Sort::Count, Sort::Mean, Sort::Max, Sort::Name];
const STATEMENTS: [Sort; 13] = [
    Sort::Time,
    Sort::Count,
    Sort::Mean,
    Sort::P99,
    Sort::Max,
    Sort::Rows,
    Sort::Cpu,
    Sort::Io,
    Sort::Lock,
    Sort::Lwlock,
    Sort::Client,
    Sort::Ipc,
    Sort::Name,
];

/// The orders of a pane.
fn all(view: View) -> &'static [Sort] {
    match view {
        View::Statements => &STATEMENTS,
        _ => &MOST,
    }
}

/// The order this many positions after the current one.
pub fn next(view: View, sort: &Sort, by: isize) -> Sort {
    let all = all(view);
    let at = all.iter().position(|order| order == sort).unwrap_or(0);
    all[(at as isize + by).rem_euclid(all.len() as isize) as usize].clone()
}

/// The order that a column title selects.
pub fn of_heading(view: View, head: &str) -> Option<Sort> {
    let sort = match head {
        "%TIME" | "TIME" | "S/S" | "US/CMD" | "TOTAL" | "%BUSY" | "WAIT S/S" => Sort::Time,
        "COUNT" | "COUNT/S" | "HELD/S" | "CALLS" | "CALLS/S" | "HANDLE COUNT" | "CMD/S" => {
            Sort::Count
        }
        "MEAN" | "AVERAGE" | "WAIT MEAN" => Sort::Mean,
        "P99" => Sort::P99,
        "MAX" | "SINCE" | "WAIT MAX" => Sort::Max,
        "ROWS/CALL" => Sort::Rows,
        "%CPU" => Sort::Cpu,
        "%IO" => Sort::Io,
        "%LOCK" => Sort::Lock,
        "%LWLOCK" => Sort::Lwlock,
        "%CLIENT" => Sort::Client,
        "%IPC" => Sort::Ipc,
        "ACTIVITY" | "WAIT" | "COMMAND" | "KIND" | "LOCK" | "NAME" | "QUERY" => Sort::Name,
        _ => return None,
    };
    // Panes without this order sort by time.
    let has = match (view, &sort) {
        (View::Sessions, Sort::Mean | Sort::P99) => false,
        (View::Sessions, Sort::Cpu) | (_, Sort::P99) => true,
        (view, sort) => all(view).contains(sort),
    };
    has.then_some(sort)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_repeat_in_a_cycle() {
        assert_eq!(next(View::Ledger, &Sort::Time, -1), Sort::Name);
        assert_eq!(next(View::Ledger, &Sort::Name, 1), Sort::Time);
        assert_eq!(next(View::Statements, &Sort::Mean, 1), Sort::P99);
        assert_eq!(next(View::Ledger, &Sort::Activity("io".into()), 1), Sort::Count);
    }

    #[test]
    fn a_heading_selects_an_order_of_its_pane() {
        assert_eq!(of_heading(View::Ledger, "COUNT/S"), Some(Sort::Count));
        assert_eq!(of_heading(View::Ledger, "PHASE"), None);
        assert_eq!(of_heading(View::Ledger, "%CPU"), None);
        assert_eq!(of_heading(View::Sessions, "%CPU"), Some(Sort::Cpu));
        assert_eq!(of_heading(View::Statements, "%IO"), Some(Sort::Io));
        assert_eq!(of_heading(View::Statements, "HISTORY"), None);
        let of_commands = |head| of_heading(View::Commands, head);
        assert_eq!(of_commands("READ AVERAGE"), None);
        assert_eq!(of_commands("HANDLE COUNT"), Some(Sort::Count));
        assert_eq!(of_heading(View::Functions, "EXCLUSIVE AVERAGE"), None);
    }
}
