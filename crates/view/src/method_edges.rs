// SPDX-License-Identifier: PostgreSQL
//! Who calls whom among the methods of a client.

use crate::choose;
use std::collections::HashMap;
use std::sync::Arc;

use segment::functions::{EdgeRow, FunctionRow};

use crate::glob::matches;
use crate::methods::method;
use crate::table::field::{Field, Picked};
use crate::table::{Row, Table, Unit};

/// Stands for a caller that is not a timed method.
const APPLICATION: &str = "(application)";

/// The calls of a method by another method, or from outside of timed methods.
#[derive(Debug, Clone, PartialEq)]
pub struct CallsBetween {
    /// The calling method; `None` if it is not a timed method.
    pub caller: Option<Arc<str>>,
    /// The called method.
    pub callee: Arc<str>,
    /// Completed calls.
    pub calls: u64,
    /// Their inclusive time. A recursive call is counted, but its time is not added again.
    pub seconds: f64,
    /// This time as a share of the method in question; `None` if none of its calls has completed.
    pub share: Option<f64>,
}

/// The methods that a table is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EdgeSide {
    /// Called methods: who calls them.
    Callees,
    /// Calling methods: whom they call.
    Callers,
}

/// The calls of methods that match a glob, by their callers, most time first. They add up to those of the method.
pub fn callers(functions: &[FunctionRow], edges: &[EdgeRow], glob: &str) -> Vec<CallsBetween> {
    let mut rest: HashMap<Arc<str>, (u64, f64)> = HashMap::new();
    for row in functions {
        rest.insert(method(row).into(), (row.calls, row.inclusive.seconds));
    }
    let mut rows = between(functions, edges, glob, EdgeSide::Callees);
    for edge in edges {
        if let Some((calls, seconds)) = rest.get_mut(&edge.callee) {
            *calls = calls.saturating_sub(edge.timing.count);
            *seconds = (*seconds - edge.timing.seconds).max(0.0);
        }
    }
    let totals = totals(functions);
    rows.extend(rest.into_iter().filter(|(name, (calls, _))| *calls > 0 && fits(glob, name)).map(
        |(callee, (calls, seconds))| {
            let share = share(&totals, &callee, seconds);
            CallsBetween { caller: None, callee, calls, seconds, share }
        },
    ));
    sorted(rows)
}

/// The calls that the methods matching a glob make, most time first.
pub fn callees(functions: &[FunctionRow], edges: &[EdgeRow], glob: &str) -> Vec<CallsBetween> {
    sorted(between(functions, edges, glob, EdgeSide::Callers))
}

fn between(
    functions: &[FunctionRow],
    edges: &[EdgeRow],
    glob: &str,
    of: EdgeSide,
) -> Vec<CallsBetween> {
    let totals = totals(functions);
    let subject = |edge: &'_ EdgeRow| match of {
        EdgeSide::Callees => Arc::clone(&edge.callee),
        EdgeSide::Callers => Arc::clone(&edge.caller),
    };
    edges
        .iter()
        .filter(|edge| fits(glob, &subject(edge)))
        .map(|edge| CallsBetween {
            caller: Some(Arc::clone(&edge.caller)),
            callee: Arc::clone(&edge.callee),
            calls: edge.timing.count,
            seconds: edge.timing.seconds,
            share: share(&totals, &subject(edge), edge.timing.seconds),
        })
        .collect()
}

fn totals(functions: &[FunctionRow]) -> HashMap<String, f64> {
    functions.iter().map(|row| (method(row), row.inclusive.seconds)).collect()
}

fn share(totals: &HashMap<String, f64>, method: &str, seconds: f64) -> Option<f64> {
    totals.get(method).filter(|total| **total > 0.0).map(|total| seconds / total)
}

fn sorted(mut rows: Vec<CallsBetween>) -> Vec<CallsBetween> {
    rows.sort_by(|a, b| {
        (b.seconds.total_cmp(&a.seconds))
            .then_with(|| b.calls.cmp(&a.calls))
            .then_with(|| (&a.callee, &a.caller).cmp(&(&b.callee, &b.caller)))
    });
    rows
}

/// Whether a glob matches a method: `jdbc::PgResultSet.getString(int)`, also without its package or without its
/// parameters. Or as the agent's option `methods` has it: `org.postgresql.jdbc.PgResultSet#getString`.
pub fn fits(glob: &str, method: &str) -> bool {
    let (package, short) = method.split_once("::").unwrap_or(("", method));
    let plain = short.split_once('(').map_or(short, |(name, _)| name);
    if [method, short, plain].iter().any(|name| matches(glob, name)) {
        return true;
    }
    let Some((class, _)) = plain.rsplit_once('.').filter(|_| glob.contains('#')) else {
        return false;
    };
    let parts = |name: &str| format!("{class}#{}", &name[class.len() + 1..]);
    [parts(plain), parts(short)].iter().any(|name| {
        matches(glob, name) || matches(glob, &format!("{}.{name}", package_of(package)))
    })
}

/// The package that an abbreviation stands for (client/java, MethodName).
fn package_of(group: &str) -> String {
    let (first, rest) = group.split_at(group.find('.').unwrap_or(group.len()));
    match first {
        "jdbc" if rest.is_empty() => "org.postgresql.jdbc".to_string(),
        "jdbc" => format!("org.postgresql{rest}"),
        "hikari" => format!("com.zaxxer.hikari{rest}"),
        _ => group.to_string(),
    }
}

type F = Field<CallsBetween>;

const FIELDS: &[F] = &[
    F::new("calls", "Count", Unit::Count, |row, _| row.calls.into()),
    F::new("seconds", "Elapsed", Unit::Seconds, |row, _| row.seconds.into()),
    F::new("of_callee", "%Callee", Unit::Share, |row, _| row.share.into())
        .help("share of the called method's time"),
    F::new("of_caller", "%Caller", Unit::Share, |row, _| row.share.into())
        .help("share of the calling method's time"),
    F::new("caller", "Caller", Unit::Text, |row, _| caller(row).into()),
    F::new("callee", "Callee", Unit::Text, |row, _| (&row.callee).into()),
];

fn caller(row: &CallsBetween) -> &str {
    row.caller.as_deref().unwrap_or(APPLICATION)
}

/// The first `top` of these rows.
pub fn table(rows: &[CallsBetween], of: EdgeSide, top: usize) -> Table {
    let figures = Picked::of_pane(match of {
        EdgeSide::Callees => choose!(FIELDS, "calls, seconds, of_callee, caller, callee"),
        EdgeSide::Callers => choose!(FIELDS, "calls, seconds, of_caller, caller, callee"),
    });
    let lines = rows
        .iter()
        .take(top)
        .map(|row| Row::new(format!("{} {}", caller(row), row.callee), figures.cells(row, 0.0)));
    let lines = lines.collect();
    Table::from_rows(figures.columns.clone(), lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use segment::functions::FunctionTotals;
    use segment::interval::Timing;

    fn function(name: &str, calls: u64, seconds: u64) -> FunctionRow {
        let mut totals = FunctionTotals::default();
        totals.inclusive.change.count = calls;
        totals.inclusive.change.total = seconds;
        FunctionRow::from_totals([name, "p"], totals, 1.0)
    }

    fn edge(caller: &str, callee: &str, count: u64, seconds: f64) -> EdgeRow {
        let timing = Timing { count, seconds, ..Timing::default() };
        EdgeRow { caller: caller.into(), callee: callee.into(), timing }
    }

    #[test]
    fn callers_of_a_method_add_up_to_its_calls() {
        let functions = [function("A.a()", 3, 10), function("B.b(int)", 7, 8)];
        let edges = [edge("p::A.a()", "p::B.b(int)", 4, 6.0)];
        let rows = callers(&functions, &edges, "B.b");
        let found: Vec<_> = rows.iter().map(|row| (caller(row), row.calls, row.share)).collect();
        assert_eq!(found, [("p::A.a()", 4, Some(0.75)), (APPLICATION, 3, Some(0.25))]);
        assert_eq!(callers(&functions, &edges, "*").len(), 3);
    }

    #[test]
    fn callees_have_shares_of_their_caller() {
        let functions = [function("A.a()", 3, 10)];
        let edges = [edge("p::A.a()", "p::B.b(int)", 4, 6.0), edge("p::C.c()", "p::D.d()", 1, 1.0)];
        let rows = callees(&functions, &edges, "*");
        assert_eq!(rows[0].share, Some(0.6));
        assert_eq!(rows[1].share, None, "none of its calls has ended");
        assert!(callees(&functions, &edges, "B*").is_empty());
    }

    #[test]
    fn a_method_is_named_with_and_without_package_and_parameters() {
        for glob in ["p.q::A.a(int)", "A.a(int)", "A.a", "A.*", "*a(*"] {
            assert!(fits(glob, "p.q::A.a(int)"), "{glob}");
        }
        assert!(!fits("a", "p.q::A.a(int)"));
        for glob in ["p.q.A#a", "A#a", "p.q.A#a(int)", "p.*#*", "*A#a"] {
            assert!(fits(glob, "p.q::A.a(int)"), "{glob}");
        }
        assert!(!fits("p.q.A#b", "p.q::A.a(int)") && !fits("q.A#a", "p.q::A.a(int)"));
        assert!(fits("A.a(#12ab)", "p.q::A.a(#12ab)"), "a hash of parameters");
        for (glob, method) in [
            ("org.postgresql.jdbc.PgResultSet#next", "jdbc::PgResultSet.next()"),
            (
                "org.postgresql.core.v3.QueryExecutorImpl#*",
                "jdbc.core.v3::QueryExecutorImpl.execute(int)",
            ),
            (
                "com.zaxxer.hikari.HikariDataSource#getConnection",
                "hikari::HikariDataSource.getConnection()",
            ),
        ] {
            assert!(fits(glob, method), "{glob}");
        }
    }
}
