// SPDX-License-Identifier: PostgreSQL
//! Missing indexes, planted on real servers: `tally doctor` names the table and the columns first, and its advice, executed as
//! printed, ends the problem. A recording says the same. Where no index is missing, none is advised.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::doctor_planted::server;
use crate::support::recorder::Recorder;
use crate::support::{self, command_of, doctor, eventually, output, start, tally, Load};

use rustix::process::Signal;
use scratch::Cluster;
use serde_json::Value;

/// 100,000 orders of 50,000 customers in 5 shops; the names of a schema and of a column need quotes.
const TABLES: &str = "
    create schema \"Shop\";
    create table \"Shop\".orders (id int primary key, customer int, shop int, \"createdAt\" int, filler text);
    insert into \"Shop\".orders select n, n % 50000, n % 5, n, repeat('x', 100) from generate_series(1, 100000) n;
    create table \"Shop\".kinds (id int primary key, name text);
    insert into \"Shop\".kinds select n, 'kind ' || n from generate_series(1, 50) n;
    analyze";

fn with_orders() -> Cluster {
    let cluster = start(server().setting("max_parallel_workers_per_gather", "0"));
    cluster.psql(TABLES).unwrap();
    cluster
}

/// A session that repeats a statement.
fn repeats<'c>(cluster: &'c Cluster, sql: &'c str) -> impl Fn(&AtomicBool) + Sync + 'c {
    move |stop| {
        let mut client = cluster.connect().unwrap();
        while !stop.load(Ordering::Relaxed) {
            client.simple_query(sql).unwrap();
        }
    }
}

/// The diagnoses of missing indexes.
fn of_indexes(answer: &Value) -> Vec<&Value> {
    let all = answer["diagnoses"].as_array().unwrap();
    all.iter().filter(|found| found["rule"] == "missing-index").collect()
}

/// While the load works, the first sentence has these words; the advice is this, and it ends the problem.
fn assert_ends(cluster: &Cluster, load: &[&Load], words: &[&str], advice: &str) {
    support::while_working(load, || {
        let mut answer = Value::Null;
        // Until the plan is noted and the catalog has answered, the index has no columns or no schema.
        eventually("the plan is noted, and its index missed", || {
            answer = doctor(cluster, 2);
            let first = &answer["diagnoses"][0];
            let text = first.to_string();
            first["rule"] == "missing-index" && words.iter().all(|word| text.contains(word))
        });
        let first = answer["diagnoses"][0].to_string();
        for word in words {
            assert!(first.contains(word), "{word}: {answer:#}");
        }
        let statement = command_of(&answer["diagnoses"][0], "CREATE INDEX").unwrap();
        assert_eq!(statement, advice);
        cluster.psql(&statement).unwrap();
        eventually("the problem has ended", || {
            answer = doctor(cluster, 2);
            of_indexes(&answer).is_empty()
        });
    });
}

#[test]
fn a_filter_by_equality_and_a_range() {
    let cluster = with_orders();
    let select = "select * from \"Shop\".orders where \"createdAt\" > 99950 and shop = 3";
    assert_ends(
        &cluster,
        &[&repeats(&cluster, select)],
        &[
            "An index on \\\"Shop\\\".orders (shop, \\\"createdAt\\\") is missing",
            "reads all 100k rows of table orders",
            "With this index, it would read about ",
            "In database postgres",
        ],
        "CREATE INDEX CONCURRENTLY ON \"Shop\".orders (shop, \"createdAt\")",
    );
}

#[test]
fn the_column_of_a_join() {
    let cluster = with_orders();
    cluster
        .psql(
            "create table customers (id int primary key, name text); \
             insert into customers select n, 'c' || n from generate_series(0, 999) n; analyze customers",
        )
        .unwrap();
    let select = "select o.id, c.name from customers c join \"Shop\".orders o on o.customer = c.id where c.id = 77";
    // A condition on both columns would be one on either table.
    let join = "select o.id, c.name from customers c join \"Shop\".orders o on o.customer = c.id where c.name = 'c77'";
    for (query, words) in
        [(select, "filters them by customer"), (join, "joins few of them by customer")]
    {
        assert_ends(
            &cluster,
            &[&repeats(&cluster, query)],
            &["An index on \\\"Shop\\\".orders (customer) is missing", words],
            "CREATE INDEX CONCURRENTLY ON \"Shop\".orders (customer)",
        );
        cluster.psql("drop index \"Shop\".orders_customer_idx").unwrap();
    }
}

#[test]
fn the_first_rows_of_an_order() {
    let cluster = with_orders();
    assert_ends(
        &cluster,
        &[&repeats(&cluster, "select * from \"Shop\".orders order by \"createdAt\" desc limit 5")],
        &["An index on \\\"Shop\\\".orders (\\\"createdAt\\\") is missing"],
        "CREATE INDEX CONCURRENTLY ON \"Shop\".orders (\"createdAt\")",
    );
}

#[test]
fn a_foreign_key_without_an_index() {
    misses_the_index_of_a_reference("top", &["delete from", "that it deletes", "reads all of "]);
}

#[test]
fn a_foreign_key_without_an_index_by_the_statement_that_it_executes() {
    misses_the_index_of_a_reference("all", &["FROM ONLY", "rows of table lines", "refers to"]);
}

#[test]
fn a_function_whose_statements_are_not_counted() {
    let cluster = with_orders();
    cluster
        .psql(
            "create function total(wanted int) returns bigint language plpgsql as \
             $$ begin return (select count(*) from \"Shop\".orders where customer = wanted); end $$",
        )
        .unwrap();
    assert_ends(
        &cluster,
        &[&repeats(&cluster, "select total(4711)")],
        &[
            "An index on \\\"Shop\\\".orders (customer) is missing",
            "\\\"select total($1)\\\" (query ID ",
            "ALTER SYSTEM SET pg_tally.statements = 'all'",
        ],
        "CREATE INDEX CONCURRENTLY ON \"Shop\".orders (customer)",
    );
}

/// The rows of another table are looked for when one is deleted; these statements are counted.
fn misses_the_index_of_a_reference(counted: &str, words: &[&str]) {
    let settings = server().setting("max_parallel_workers_per_gather", "0");
    let cluster = start(settings.setting("pg_tally.statements", counted));
    cluster.psql(TABLES).unwrap();
    cluster
        .psql(
            "create table lines (id int, order_id int constraint of_order references \"Shop\".orders, filler text); \
             insert into lines select n, n, repeat('x', 100) from generate_series(1, 80000) n; \
             analyze lines",
        )
        .unwrap();
    // An order without lines: the server looks for some.
    let delete = |stop: &AtomicBool| {
        let mut client = cluster.connect().unwrap();
        while !stop.load(Ordering::Relaxed) {
            client.batch_execute("begin").unwrap();
            client.simple_query("delete from \"Shop\".orders where id = 90000").unwrap();
            client.batch_execute("rollback").unwrap();
        }
    };
    let found = "Foreign key of_order has no index on public.lines (order_id)";
    assert_ends(
        &cluster,
        &[&delete],
        &[&[found, "\\\"Shop\\\".orders"], words].concat(),
        "CREATE INDEX CONCURRENTLY ON public.lines (order_id)",
    );
}

#[test]
fn an_index_that_exists_is_named_and_not_advised_again() {
    let cluster = with_orders();
    cluster.psql("create index by_customer on \"Shop\".orders (customer)").unwrap();
    let select = "set enable_indexscan = off; set enable_bitmapscan = off";
    let hindered = |stop: &AtomicBool| {
        let mut client = cluster.connect().unwrap();
        client.batch_execute(select).unwrap();
        while !stop.load(Ordering::Relaxed) {
            client.simple_query("select * from \"Shop\".orders where customer = 5").unwrap();
        }
    };
    support::while_working(&[&hindered], || {
        let first = |words: &str| {
            let mut answer = Value::Null;
            eventually("the plan is noted", || {
                answer = doctor(&cluster, 2);
                answer["diagnoses"][0].to_string().contains(words)
            });
            assert!(
                !answer["diagnoses"][0].to_string().contains("CREATE INDEX CONCURRENTLY ON"),
                "{answer:#}"
            );
            answer
        };
        first("Index \\\"Shop\\\".by_customer on \\\"Shop\\\".orders (customer) is not used");
        // As a CREATE INDEX CONCURRENTLY that failed leaves it.
        cluster.psql("update pg_index set indisvalid = false where indexrelid = '\"Shop\".by_customer'::regclass").unwrap();
        let answer =
            first("Index \\\"Shop\\\".by_customer on \\\"Shop\\\".orders (customer) is invalid");
        let reindex = command_of(&answer["diagnoses"][0], "REINDEX INDEX").unwrap();
        cluster.psql(&reindex).unwrap();
        first(" is not used: ");
    });
}

#[test]
fn where_no_index_is_missing_none_is_advised() {
    let cluster = with_orders();
    for sql in [
        // Utility statements.
        "vacuum \"Shop\".orders",
        "create temporary table copy as select * from \"Shop\".orders where customer = 5; drop table copy",
        // A small table, and the primary key of the large one.
        "select count(*) from \"Shop\".orders where id = any (array(select n from generate_series(1, 5000) n))",
        "select count(*) from \"Shop\".kinds k join \"Shop\".orders o on o.id between k.id * 100 and k.id * 100 + 99 where k.name <> 'kind 1'",
        // Most of a table, and all of it.
        "select count(*) from \"Shop\".orders where shop <> 3 and shop >= 1",
        "select sum(customer) from \"Shop\".orders",
    ] {
        let load = repeats(&cluster, sql);
        let answer = support::while_working(&[&load], || doctor(&cluster, 2));
        assert_eq!(of_indexes(&answer), Vec::<&Value>::new(), "{sql}");
    }
}

#[test]
fn a_report_says_what_the_doctor_says() {
    let cluster = with_orders();
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    let load = repeats(&cluster, "select * from \"Shop\".orders where customer = 5");
    let live = support::while_working(&[&load], || {
        let mut answer = Value::Null;
        eventually("the plan is noted", || {
            answer = doctor(&cluster, 2);
            answer["diagnoses"][0]["text"].to_string().contains("is missing")
        });
        // The recorder asks the catalog when it starts: now it knows of which tables.
        let recorder = Recorder::start(&cluster, &directory, &["--detail", "1s"]);
        recorder.wait_for_condition("table");
        recorder.wait_for(3);
        recorder.end(Signal::TERM);
        answer["diagnoses"][0].clone()
    });
    let report = output(tally().args(["report", "--json"]).arg(&directory));
    let report: Value = serde_json::from_str(&report).unwrap();
    let first = report["findings"][0].to_string();
    let words = "An index on \\\"Shop\\\".orders (customer) is missing";
    assert!(live.to_string().contains(words), "{live:#}");
    assert!(first.contains(words), "{}", report["findings"]);
    let advice = live["advice"].to_string();
    assert!(first.contains(advice.trim_matches('"')), "{advice}: {first}");
}

#[test]
fn hypopg_says_what_the_planner_expects_of_the_index() {
    if !support::has_module("hypopg") {
        println!("not tested: the server has no hypopg");
        return;
    }
    let cluster = with_orders();
    cluster.psql("create extension hypopg").unwrap();
    let load = repeats(&cluster, "select * from \"Shop\".orders where customer = 5 and shop = 0");
    support::while_working(&[&load], || {
        let evidence = |words: &str| {
            let mut answer = Value::Null;
            eventually("the plan is noted, and the planner asked", || {
                answer = doctor(&cluster, 2);
                answer["diagnoses"][0]["evidence"].to_string().contains(words)
            });
            answer["diagnoses"][0]["evidence"].to_string()
        };
        let tested = evidence("With this index, the planner expects a cost of ");
        assert!(tested.contains("times less (HypoPG)"), "{tested}");
        // It exists nowhere, and nothing was executed.
        let indexes =
            "select count(*) from pg_indexes where schemaname = 'Shop' and tablename = 'orders'";
        assert_eq!(cluster.psql(indexes).unwrap().trim(), "1");
        // Planning might execute somebody's function now, so nothing is planned.
        cluster
            .psql(
                "create function theirs(n int) returns int immutable language sql as 'select n'; \
                 create index on \"Shop\".orders (theirs(1))",
            )
            .unwrap();
        evidence("With this index, it would read about ");
    });
}
