// SPDX-License-Identifier: PostgreSQL
//! Which index is missing, by the plan of a statement and the catalog; and when there is none to advise.

use view::statements::StatementsTable;
use view::vacuum::{Condition, ConditionKind, Vacuum};

use super::edges::plan;
use super::rules::{case, full_scan, interval};
use super::{diagnose, Vacuum as Answer};
use crate::{Case, Confidence, Diagnosis, Rule};

/// Ten calls that read 10,000 blocks each, to return a row.
fn statements(text: &str) -> StatementsTable {
    let mut statements = full_scan(9.0);
    let row = &mut statements.rows[0];
    (row.query, row.database) = (Some(text.into()), "shop".into());
    row.counters.blocks.shared_read = 0;
    statements
}

const SELECT: &str = "select * from orders where customer = $1";
/// The table of the plan is as large as what the statement reads.
const ROWS: &str = "[table of 300000 rows, OID 7]";

fn scan(filter: &str) -> String {
    format!("Gather  (cost=1.00..2.00 rows=1 width=9)\n  Parallel Seq Scan on orders  (cost=0.00..1.00 rows=1 width=9) {filter} {ROWS}\n")
}

fn condition(kind: ConditionKind, name: &str, state: &str, count: i64, bytes: i64) -> Condition {
    let database = Some("shop".to_owned());
    Condition {
        kind,
        name: name.into(),
        database,
        state: state.into(),
        count,
        bytes,
        seconds: None,
    }
}

/// A table of 10,000 blocks and its columns.
fn catalog() -> Answer {
    let column =
        |name: &str, values| condition(ConditionKind::Column, name, "public.orders", values, 0);
    let table = condition(ConditionKind::Table, "public.orders", "", 7, 81_920_000);
    let conditions =
        vec![table, column("customer", 50_000), column("\"At\"", 300_000), column("state", 2)];
    Vacuum { conditions, ..Vacuum::default() }
}

fn with(kind: ConditionKind, name: &str, state: &str) -> Answer {
    let mut answer = catalog();
    answer.conditions.push(condition(kind, name, state, 0, 0));
    answer
}

fn found_of(statements: &StatementsTable, text: &str, catalog: Option<&Answer>) -> Vec<Diagnosis> {
    let interval = interval(&[("execute::cpu", 10, 10.0)]);
    let plans = [plan(statements, [1.0, 2.0], 1.0, text)];
    diagnose(&Case {
        statements: Some(statements),
        plans: &plans,
        vacuum: catalog,
        ..case(&interval)
    })
}

fn found(text: &str, catalog: Option<&Answer>) -> Option<Diagnosis> {
    let mut all = found_of(&statements(SELECT), text, catalog);
    assert!(all.len() < 2 && all.iter().all(|found| found.rule == Rule::MissingIndex), "{all:?}");
    all.pop()
}

#[test]
fn the_table_the_columns_and_the_gain_are_named() {
    let finding = found(&scan("[filter: customer =]"), Some(&catalog())).unwrap();
    let (begin, end) = (
        "An index on public.orders (customer) is missing: \"",
        ") reads 78.1 MB per call to return 1 row.",
    );
    assert!(finding.text.starts_with(begin) && finding.text.ends_with(end), "{}", finding.text);
    assert_eq!(finding.confidence, Confidence::Likely);
    assert_eq!(
        finding.evidence[1..],
        [
            "Its plan reads all 300k rows of table orders and filters them by customer.",
            "With this index, it would read about 4 blocks instead of 10k."
        ]
    );
    assert_eq!(
        finding.advice,
        "In database shop: CREATE INDEX CONCURRENTLY ON public.orders (customer)."
    );
}

/// A call reads 1,000 blocks of 60 rows each.
fn of_small_table(returned: u64) -> (StatementsTable, Answer) {
    let mut statements = statements(SELECT);
    let row = &mut statements.rows[0];
    (row.counters.blocks.shared_hit, row.counters.rows) = (10_000, 10 * returned);
    let mut answer = catalog();
    answer.conditions[0].bytes = 8192 * 1000;
    (statements, answer)
}

/// An index would read a block for each of these rows at most.
#[test]
fn a_table_that_is_read_for_a_dozen_rows_misses_an_index_and_for_a_hundred_does_not() {
    let found = |returned: u64| {
        let (statements, answer) = of_small_table(returned);
        found_of(&statements, &scan("[filter: customer =]"), Some(&answer))
    };
    let all = found(12);
    assert!(all[0].text.starts_with("An index on public.orders (customer) is missing"), "{all:?}");
    assert_eq!(all[0].evidence[2], "With this index, it would read about 15 blocks instead of 1k.");
    assert_eq!(found(98), []);
    // An update reads blocks of indexes and of its changed rows, too: more than the table has.
    let (mut statements, answer) = of_small_table(600);
    statements.rows[0].query = Some("update orders set n = n + 1 where customer <= $1".into());
    statements.rows[0].counters.blocks.shared_hit = 100_000;
    let text = "Update on orders  (cost=0.00..9.00 rows=0 width=0)\n  Seq Scan on orders  (cost=0.00..1.00 rows=600 width=9) \
                [filter: customer <=] [table of 300000 rows, OID 7]\n";
    assert_eq!(found_of(&statements, text, Some(&answer)), []);
    assert_eq!(found_of(&statements, text, None), []);
}

/// With pg_tally.statements = top, a function's statements are not counted, but their plans are noted.
#[test]
fn a_function_that_reads_a_whole_table_is_named_with_its_table() {
    let (mut statements, answer) = of_small_table(1);
    let row = &mut statements.rows[0];
    row.query = Some("select total($1)".into());
    row.execution.mean_seconds = Some(0.020);
    let interval = interval(&[("execute::cpu", 10, 10.0)]);
    let own = plan(&statements, [1.0, 2.0], 0.020, "Result  (cost=0.00..0.26 rows=1 width=8)\n");
    let inner = |filter: &str, mean: f64, ago: f64| {
        let node = "Seq Scan on orders  (cost=0.00..2000.00 rows=12 width=0)";
        let text =
            format!("Aggregate  (cost=9.00..9.00 rows=1 width=8)\n  {node} {filter} {ROWS}\n");
        let mut inner = plan(&statements, [1.0, interval.time - ago], mean, &text);
        (inner.key.toplevel, inner.key.id) = (false, 77);
        inner
    };
    let found = |inner: view::statements::PlanRow| {
        diagnose(&Case {
            statements: Some(&statements),
            plans: &[own.clone(), inner],
            vacuum: Some(&answer),
            ..case(&interval)
        })
    };
    let all = found(inner("[filter: customer =]", 0.019, 0.1));
    assert!(
        all[0].text.starts_with("An index on public.orders (customer) is missing: \""),
        "{all:?}"
    );
    assert!(all[0].text.contains("\"select total($1)\" (query ID "), "{all:?}");
    let last = all[0].evidence.last().unwrap();
    assert!(last.starts_with("This plan is that of a statement within it"), "{last}");
    assert_eq!(
        all[0].advice,
        "In database shop: CREATE INDEX CONCURRENTLY ON public.orders (customer)."
    );
    // All rows are needed; a small part of the time; long ago.
    assert_eq!(found(inner("", 0.019, 0.1)), []);
    assert_eq!(found(inner("[filter: customer =]", 0.001, 0.1)), []);
    assert_eq!(found(inner("[filter: customer =]", 0.019, 60.0)), []);
}

#[test]
fn names_are_quoted_and_a_range_is_last() {
    let finding = found(&scan("[filter: \"At\" >, state =]"), Some(&catalog())).unwrap();
    assert!(finding.advice.ends_with("ON public.orders (state, \"At\")."), "{}", finding.advice);
    // Without a connection, the schema is not known.
    let finding = found(&scan("[filter: \"At\" >, user =]"), None).unwrap();
    assert_eq!(
        finding.advice,
        "In database shop, unless there is such an index (the catalog was not read): CREATE INDEX CONCURRENTLY ON orders (\"user\", \"At\")."
    );
}

#[test]
fn what_hypopg_says_replaces_our_estimate() {
    let mut answer = catalog();
    let state = "public.orders (customer)";
    answer.conditions.push(condition(ConditionKind::HypotheticalIndex, "", state, 9048, 8));
    let finding = found(&scan("[filter: customer =]"), Some(&answer)).unwrap();
    let text = "With this index, the planner expects a cost of 8 instead of 9.05k: 1.13k times less (HypoPG).";
    assert_eq!(finding.evidence[2], text);
}

#[test]
fn an_index_that_exists_is_not_advised() {
    let valid = with(ConditionKind::Index, "public.i", "public.orders (customer, state)");
    let finding = found(&scan("[filter: customer =]"), Some(&valid)).unwrap();
    assert!(
        finding.text.starts_with("Index public.i on public.orders (customer) is not used: "),
        "{}",
        finding.text
    );
    assert!(!finding.advice.contains("CREATE INDEX"), "{}", finding.advice);
    assert_eq!(finding.confidence, Confidence::Possible);
    let invalid = with(ConditionKind::Index, "public.i", "public.orders (customer), invalid");
    let finding = found(&scan("[filter: customer =]"), Some(&invalid)).unwrap();
    assert!(
        finding.text.starts_with("Index public.i on public.orders (customer) is invalid: "),
        "{}",
        finding.text
    );
    assert!(finding.advice.ends_with("REINDEX INDEX CONCURRENTLY public.i."), "{}", finding.advice);
}

#[test]
fn a_foreign_key_is_named_by_the_statement_that_it_executes() {
    let key = with(
        ConditionKind::ForeignKey,
        "orders_fk",
        "public.orders (customer) references public.customers",
    );
    for text in [
        "SELECT $2 FROM ONLY \"public\".\"orders\" x WHERE $1 OPERATOR(pg_catalog.=) \"customer\" FOR KEY SHARE OF x",
        "DELETE FROM ONLY \"public\".\"orders\" WHERE $1 OPERATOR(pg_catalog.=) \"customer\"",
        "UPDATE ONLY \"public\".\"orders\" SET \"customer\" = $2 WHERE $1 OPERATOR(pg_catalog.=) \"customer\"",
    ] {
        let mut inner = statements(text);
        inner.rows[0].toplevel = false;
        inner.rows[0].execution.seconds = 9.0;
        let all = found_of(&inner, &scan("[filter: customer =]"), Some(&key));
        let finding = all.first().unwrap_or_else(|| panic!("{text}"));
        assert!(finding.text.starts_with("Foreign key orders_fk has no index on public.orders (customer): "), "{}", finding.text);
        assert!(finding.evidence.iter().any(|line| line.contains("refers to public.customers")), "{:?}", finding.evidence);
        assert!(finding.advice.contains("CREATE INDEX CONCURRENTLY ON public.orders (customer)."), "{}", finding.advice);

        // Its caller, of which no plan was noted, reads as much.
        let mut caller = statements("DELETE FROM customers WHERE id = $1").rows.remove(0);
        caller.key.id += 1;
        inner.rows.push(caller);
        let all = found_of(&inner, &scan("[filter: customer =]"), Some(&key));
        assert_eq!(all.len(), 1, "{all:?}");
    }
}

#[test]
fn a_statement_that_deletes_rows_names_the_foreign_key_that_reads_another_table() {
    let references = "public.orders (customer) references public.customers";
    let mut answer = with(ConditionKind::ForeignKey, "orders_fk", references);
    answer.conditions.push(condition(ConditionKind::Table, "public.customers", "", 9, 8192));
    let delete = statements("delete from customers where id = $1");
    let plan =
        "Delete on customers  (cost=0.00..8.00 rows=0 width=0) [table of 100 rows, OID 9]\n  \
                Index Scan using customers_pkey on customers  (cost=0.00..8.00 rows=1 width=6)\n";
    let all = found_of(&delete, plan, Some(&answer));
    let finding = all.first().unwrap();
    assert!(
        finding
            .text
            .starts_with("Foreign key orders_fk has no index on public.orders (customer): "),
        "{}",
        finding.text
    );
    assert!(
        finding.evidence[1].starts_with("For each row of public.customers that it deletes"),
        "{:?}",
        finding.evidence
    );
    assert_eq!(
        finding.advice,
        "In database shop: CREATE INDEX CONCURRENTLY ON public.orders (customer)."
    );
    // The table that refers to it does not explain what is read.
    let mut small = answer.clone();
    small.conditions[0].bytes = 8192 * 100;
    assert_eq!(found_of(&delete, plan, Some(&small)), []);
    answer.conditions.push(condition(
        ConditionKind::Index,
        "public.i",
        "public.orders (customer)",
        0,
        0,
    ));
    assert_eq!(found_of(&delete, plan, Some(&answer)), []);
}

#[test]
fn the_advice_for_a_partition_and_for_a_standby_says_where() {
    let mut answer = catalog();
    answer.conditions[0].state = "partition of public.all_orders, standby".into();
    let finding = found(&scan("[filter: customer =]"), Some(&answer)).unwrap();
    assert!(
        finding
            .advice
            .starts_with("In database shop of the primary: CREATE INDEX CONCURRENTLY ON "),
        "{}",
        finding.advice
    );
    assert!(finding.advice.contains("partition of public.all_orders"), "{}", finding.advice);
}

#[test]
fn what_no_index_would_make_faster_has_none() {
    let none = |text: &str| found(text, Some(&catalog()));
    let node = |name: &str, rows: u64, tags: &str| {
        format!("{name}  (cost=0.00..1.00 rows={rows} width=9){tags}\n")
    };
    let aggregate = |tags: &str| {
        node("Aggregate", 1, "")
            + "  "
            + &node("Seq Scan on orders", 150_000, &format!("{tags} {ROWS}"))
    };
    assert_eq!(none(&aggregate(" [filter: state =]")), None, "half of the table");
    assert_eq!(none(&aggregate("")), None, "the whole table");
    // The primary key is used thousands of times; the filter is on a small table.
    let small = node("Nested Loop", 5000, " [join: ...]")
        + "  "
        + &node("Seq Scan on kinds", 1, " [filter: name =] [table of 50 rows, OID 8]")
        + "  "
        + &node("Index Scan using orders_pkey on orders", 5000, "");
    assert_eq!(none(&small), None);
    assert_eq!(
        none(&node("Index Scan using orders_pkey on orders", 5000, " [filter: state =]")),
        None
    );
    for utility in [
        "vacuum orders",
        "create table copy as select * from orders where customer = 5",
        "copy orders to stdout",
    ] {
        assert_eq!(
            found_of(&statements(utility), &scan("[filter: customer =]"), Some(&catalog())),
            [],
            "{utility}"
        );
    }
    // A condition on an expression.
    let finding = found(&scan("[filter]"), Some(&catalog())).unwrap();
    assert!(
        finding.text.starts_with("An index on table orders may be missing: "),
        "{}",
        finding.text
    );
}
