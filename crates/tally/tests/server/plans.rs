// SPDX-License-Identifier: PostgreSQL
//! The plans of statements. The witness is the server's own EXPLAIN.

use crate::support;
use crate::support::{create_views, output, plain, segment, start, tally};
use postgres::Client;
use scratch::{Builder, Cluster};
use serde_json::Value;

fn server() -> Builder {
    plain()
        .setting("shared_preload_libraries", "pg_tally")
        .setting("autovacuum", "off")
        .setting("pg_tally.plan_threshold", "0")
}

/// Two tables with an index, analysed.
fn filled(builder: Builder) -> (Cluster, Client) {
    let cluster = start(builder);
    create_views(&cluster);
    let mut client = cluster.connect().unwrap();
    client
        .batch_execute(
            "create table orders (id int primary key, customer int, v int); \
             create index on orders (customer); \
             insert into orders select n, n % 1000, n from generate_series(1, 50000) n; \
             create table customers (id int primary key, name text); \
             insert into customers select n, 'c' || n from generate_series(1, 1000) n; \
             create table parts (id int, v int) partition by range (id); \
             create table parts_1 partition of parts for values from (0) to (1000); \
             create table parts_2 partition of parts for values from (1000) to (2000); \
             analyze; select tally.reset()",
        )
        .unwrap();
    (cluster, client)
}

/// Statements with every kind of node that clients commonly meet.
const QUERIES: &[&str] = &[
    "select * from orders where id = 7",
    "select * from orders where customer = 7",
    "select count(*) from orders",
    "select id from orders order by id desc limit 3",
    "select id from orders where id < 10 order by id",
    "select * from orders where v = 7 or id = 5",
    "select customer, count(*) from orders group by customer",
    "select distinct customer from orders where v > 10",
    "select * from orders join customers on customers.id = orders.customer where name = 'c7'",
    "select * from customers left join orders on orders.customer = customers.id where customers.id < 3",
    "select * from customers where id in (select customer from orders where v < 100)",
    "select * from customers where not exists (select 1 from orders where customer = customers.id)",
    "select * from customers where id = (select max(customer) from orders)",
    "select id, (select count(*) from orders where customer = customers.id) from customers where id < 3",
    "select id from customers union all select id from orders",
    "select id from customers except select customer from orders",
    "select id from customers intersect all select customer from orders",
    "select sum(v) over (order by id) from orders limit 10",
    "select * from parts where v = 1",
    "select * from orders where id = 7 for update",
    "select customer, v from orders order by customer, v limit 10",
    "with recursive r(n) as (select 1 union all select n + 1 from r where n < 10) select count(*) from r",
    "insert into customers values (5000, 'new')",
    "update orders set v = v + 1 where id = 9",
    "delete from orders where customer = 999",
    "select * from orders where ctid = '(0,1)'",
    "set enable_hashjoin = off; set enable_nestloop = off; \
     select count(*) from orders join customers on customers.id = orders.customer",
    "set parallel_setup_cost = 0; set parallel_tuple_cost = 0; set min_parallel_table_scan_size = 0; \
     select count(*) from orders",
];

/// The nodes of EXPLAIN's text, without estimates; for nodes that do not scan a table, without the object that
/// they scan.
fn nodes_of_explain(client: &mut Client, query: &str) -> Vec<String> {
    let rows = client.query(&format!("explain {query}"), &[]).unwrap();
    let lines = rows.iter().map(|row| row.get::<_, String>(0));
    let nodes = lines.enumerate().filter(|(n, line)| *n == 0 || line.contains("->  "));
    let names = nodes.map(|(_, line)| {
        let line = line.rsplit("->  ").next().unwrap().to_owned();
        line.split("  (cost=").next().unwrap().trim().to_owned()
    });
    names.map(without_alias).collect()
}

/// "CTE Scan" for "CTE Scan on r": the plan that we store does not name objects that are not relations.
fn without_alias(node: String) -> String {
    let named = ["CTE Scan", "WorkTable Scan", "Function Scan", "Subquery Scan", "Values Scan"];
    // A partition has an alias as well: "Seq Scan on parts_1 parts".
    let words: Vec<&str> = node.split(' ').collect();
    match named.iter().find(|kind| node.starts_with(**kind)) {
        Some(kind) => (*kind).to_owned(),
        None => match words.iter().position(|word| *word == "on") {
            Some(at) if words.len() > at + 2 => words[..at + 2].join(" "),
            _ => node,
        },
    }
}

fn nodes_of_ours(plan: &str) -> Vec<String> {
    plan.lines().map(|line| line.split("  (cost=").next().unwrap().trim().to_owned()).collect()
}

#[test]
fn the_nodes_of_a_plan_are_those_of_explain() {
    let (_cluster, mut client) = filled(server());
    let mut seen = std::collections::BTreeSet::new();
    for query in QUERIES {
        let (settings, query) = query.rsplit_once("; ").unwrap_or(("", query));
        client.batch_execute(&format!("begin; {settings}")).unwrap();
        let expected = nodes_of_explain(&mut client, query);
        client.batch_execute("select tally.reset()").unwrap();
        client.batch_execute(query).unwrap();
        client.batch_execute("rollback").unwrap();
        // Only statements of clients count here, and none of our own.
        let sql = "select plan, noted from tally.plans join tally.statements using (queryid) \
                   where query not like '%tally.%' and query not like 'begin%'";
        let rows = client.query(sql, &[]).unwrap();
        assert_eq!(rows.len(), 1, "{query}");
        let plan: String = rows[0].get(0);
        assert_eq!(nodes_of_ours(&plan), expected, "{query}\n{plan}");
        assert_eq!(rows[0].get::<_, i64>(1), 1, "{query}");
        seen.extend(expected.iter().map(|node| node.split(" on ").next().unwrap().to_owned()));
        assert!(plan.contains("  (cost="), "{plan}");
    }
    println!("{} kinds of nodes: {seen:?}", seen.len());
    assert!(seen.len() >= 25, "{seen:?}");
}

/// The columns of conditions, which the plan's text has in place of the conditions.
const COLUMNS: &[(&str, &[&str])] = &[
    ("select * from facts where a = 1 and b > 2 and b <= 9", &["[filter: b >, b <=, a =]"]),
    ("select * from facts where 5 <= a and text like 'secret%'", &["[filter: a >=, ...]"]),
    ("select * from facts where text = 'secret' and a in (1, 2)", &["[filter: text =, a = any]"]),
    ("select * from facts where \"Odd, \"\"name]\" = 1", &["[filter: \"Odd, \"\"name]\" =]"]),
    ("select * from facts where a is null or b = 1", &["[filter]"]),
    ("select * from facts where a is null", &["[filter: a is null]"]),
    ("select * from facts where at > now() - interval '1 day'", &["[filter: at >]"]),
    ("select * from facts where at > clock_timestamp()", &["[filter]"]),
    ("select * from facts where a + 1 = 2 and not flag", &["[filter: flag =, ...]"]),
    ("select * from facts where text ~ 'secret' and a <> 1", &["[filter]"]),
    ("select * from facts where a = b", &["[filter]"]),
    (
        "select * from facts f join small s on f.a = s.id where s.name = 'x'",
        &["[join: facts.a = small.id]", "[filter: name =]"],
    ),
    ("select a from facts order by b desc, a limit 3", &["[sort: facts.b nulls first, facts.a]"]),
    ("select a from facts order by a + 1 limit 3", &["[sort]"]),
    ("select id, (select count(*) from facts where a = small.id) from small", &["[filter: a =]"]),
    ("update facts set b = 1 where a = 5", &["[filter: a =]"]),
];

#[test]
fn a_plan_names_the_columns_of_conditions_and_no_constants() {
    let settings =
        server().setting("max_parallel_workers_per_gather", "0").setting("enable_nestloop", "off");
    let (_cluster, mut client) = filled(settings);
    client
        .batch_execute(
            "create table facts (a int, b int8, text text, \"Odd, \"\"name]\" int, at timestamptz, flag bool); \
             insert into facts select n, n, n, n, now(), n > 5 from generate_series(1, 2000) n; \
             create table small (id int, name varchar(10)); insert into small values (1, 'x'); analyze",
        )
        .unwrap();
    for (query, expected) in COLUMNS {
        client.batch_execute("begin; select tally.reset()").unwrap();
        client.batch_execute(query).unwrap();
        client.batch_execute("rollback").unwrap();
        let sql = "select plan from tally.plans join tally.statements using (queryid) \
                   where query not like '%tally.%' and query not like 'begin%'";
        let plan: String = client.query_one(sql, &[]).unwrap().get(0);
        assert!(!plan.contains("secret"), "{plan}");
        let mut expected: Vec<String> = expected.iter().map(|list| in_order(list)).collect();
        let mut lists: Vec<String> =
            plan.lines().flat_map(|line| line.split(" [").skip(1)).map(in_order).collect();
        lists.retain(|list| !list.starts_with("table of "));
        expected.sort();
        lists.sort();
        assert_eq!(lists, expected, "{query}\n{plan}");
    }
}

/// Of names of any length, the list ends with a whole item, and nothing else is in the line.
#[test]
fn a_list_of_columns_that_is_too_long_is_cut_behind_an_item() {
    let settings = server().setting("max_parallel_workers_per_gather", "0");
    let (_cluster, mut client) = filled(settings);
    for length in 5..=24 {
        let names: Vec<String> =
            (0..600 / length).map(|n| format!("c{n:0>0$}", length - 1)).collect();
        let columns = names.iter().map(|name| format!("{name} int")).collect::<Vec<_>>().join(", ");
        let filter =
            names.iter().map(|name| format!("{name} = 1")).collect::<Vec<_>>().join(" and ");
        let query = format!("select * from wide where {filter}");
        client.batch_execute(&format!("create table wide ({columns})")).unwrap();
        client.batch_execute("begin; select tally.reset()").unwrap();
        client.batch_execute(&query).unwrap();
        client.batch_execute("rollback").unwrap();
        let sql = "select plan from tally.plans join tally.statements using (queryid) where query like '%from wide%'";
        let plan: String = client.query_one(sql, &[]).unwrap().get(0);
        let (_, list) = plan.split_once(" [filter: ").unwrap();
        let (list, _) = list.split_once(", ...]").unwrap_or_else(|| panic!("{length}: {plan:?}"));
        let items: Vec<&str> = list.split(", ").collect();
        assert!(items.len() > 5, "{plan:?}");
        for item in items {
            let name = item.strip_suffix(" =").unwrap_or_else(|| panic!("{length}: {plan:?}"));
            assert!(names.iter().any(|known| known == name), "{length}: {plan:?}");
        }
        client.batch_execute("drop table wide").unwrap();
    }
}

/// A name may contain anything.
#[test]
fn a_name_begins_no_line_of_a_plan() {
    let (_cluster, mut client) = filled(server());
    let name = "a\n  ->  Seq Scan on victim  (cost=) [filter: b =] [table of nan rows, OID 1]";
    let name = &name[..60];
    client.batch_execute(&format!("create table \"{name}\" (n int)")).unwrap();
    client.batch_execute("begin; select tally.reset()").unwrap();
    client.batch_execute(&format!("select * from \"{name}\"")).unwrap();
    client.batch_execute("rollback").unwrap();
    let sql = "select plan from tally.plans join tally.statements using (queryid) where query like '%victim%'";
    let plan: String = client.query_one(sql, &[]).unwrap().get(0);
    assert_eq!(plan.trim_end().lines().count(), 1, "{plan:?}");
}

/// The items of "[filter: b =, a >]" by name: the planner decides in which order it checks conditions.
fn in_order(list: &str) -> String {
    let list = list.trim_start_matches('[').trim_end_matches(']');
    let Some((kind, items)) = list.split_once(": ") else { return list.to_owned() };
    let mut items: Vec<&str> = items.split(", ").collect();
    if kind == "filter" {
        items.sort_unstable();
    }
    format!("{kind}: {}", items.join(", "))
}

#[test]
fn partitions_of_a_table_do_not_make_other_plans() {
    let (_cluster, mut client) = filled(server());
    client.batch_execute("create index on parts (v); insert into parts select n, n from generate_series(0, 1999) n; analyze parts; select tally.reset()").unwrap();
    // One partition, another one, both, and those that remain once the parameter is known.
    for query in [
        "select sum(v) from parts where id between 1 and 5 and v = 3",
        "select sum(v) from parts where id between 1500 and 1600 and v = 1550",
        "select sum(v) from parts where id between 900 and 1100 and v = 950",
    ] {
        client.batch_execute(query).unwrap();
    }
    let like = "select noted, plan from tally.plans join tally.statements using (queryid) where query like $1";
    let plans = client.query(like, &[&"select sum(v) from parts%"]).unwrap();
    assert_eq!(plans.len(), 1, "{plans:?}");
    assert_eq!(plans[0].get::<_, i64>(0), 3);

    client.batch_execute("set plan_cache_mode = force_generic_plan; prepare p (int) as select v from parts where id = $1 and v = 7").unwrap();
    for id in [7, 1500, 7, 7] {
        client.batch_execute(&format!("execute p ({id})")).unwrap();
    }
    let plans = client.query(like, &[&"%select v from parts%"]).unwrap();
    assert_eq!(plans.len(), 1, "{plans:?}");
    assert_eq!(plans[0].get::<_, i64>(0), 4);
    // Another way to read them is another plan.
    client.batch_execute("set enable_indexscan = off; set enable_bitmapscan = off; execute p (7); deallocate p; \
                          prepare p (int) as select v from parts where id = $1 and v = 7; execute p (7)").unwrap();
    assert_eq!(client.query(like, &[&"%select v from parts%"]).unwrap().len(), 2);
}

#[test]
fn what_explain_does_not_execute_is_not_noted() {
    let (_cluster, mut client) = filled(server().setting("pg_tally.statements", "all"));
    client.batch_execute("explain select * from orders where id = 7").unwrap();
    let found = "select plan from tally.plans where plan like '%orders%'";
    assert!(client.query(found, &[]).unwrap().is_empty());
    client.batch_execute("explain analyze select * from orders where id = 7").unwrap();
    assert_eq!(client.query(found, &[]).unwrap().len(), 1);
}

/// A join of this many tables, in this order.
fn join_of(tables: usize) -> String {
    let names = (2..=tables).map(|n| format!(" join joined_with_a_long_name_{n} using (id)"));
    format!("select count(*) from joined_with_a_long_name_1{}", names.collect::<String>())
}

/// The nodes of EXPLAIN's text, each with its depth.
fn tree_of_explain(client: &mut Client, query: &str) -> Vec<(usize, String)> {
    let rows = client.query(&format!("explain {query}"), &[]).unwrap();
    let lines = rows.iter().map(|row| row.get::<_, String>(0)).enumerate();
    let nodes = lines.filter_map(|(n, line)| {
        let depth = line.find("->  ").map(|at| 1 + (at - 2) / 6).or((n == 0).then_some(0))?;
        let node = line.trim_start_matches([' ', '-', '>']).split("  (cost=").next()?.to_owned();
        Some((depth, node))
    });
    nodes.collect()
}

/// A line is complete or absent: the stored text is the beginning of EXPLAIN's tree, and says that it is
/// truncated.
#[test]
fn a_plan_that_does_not_fit_is_cut_at_a_line() {
    let (cluster, mut client) = filled(server());
    let tables = (1..=39).map(|n| format!("create table joined_with_a_long_name_{n} (id int);"));
    client.batch_execute(&tables.collect::<String>()).unwrap();
    client.batch_execute("set join_collapse_limit = 1; set geqo = off; set enable_nestloop = off; set enable_mergejoin = off").unwrap();
    let mut cut = 0;
    for tables in [3, 12, 16, 20, 39] {
        let query = join_of(tables);
        let expected = tree_of_explain(&mut client, &query);
        client.batch_execute("select tally.reset()").unwrap();
        client.batch_execute(&query).unwrap();
        let sql = "select plan, queryid from tally.plans join tally.statements using (queryid) \
                   where query like 'select count(*) from joined_with%'";
        let row = client.query_one(sql, &[]).unwrap();
        let (plan, id): (String, i64) = (row.get(0), row.get(1));
        assert!(plan.chars().all(|c| c == '\n' || (' '..='~').contains(&c)), "{plan:?}");
        let (text, is_cut) = match plan.strip_suffix("...") {
            Some(text) => (text, true),
            None => (&*plan, false),
        };
        let ours: Vec<(usize, String)> = text
            .lines()
            .map(|line| {
                let node = line.trim_start();
                ((line.len() - node.len()) / 2, node.split("  (cost=").next().unwrap().to_owned())
            })
            .collect();
        assert!(
            text.ends_with('\n')
                && text.lines().all(|line| line.ends_with(')') || line.ends_with(']')),
            "{plan}"
        );
        assert_eq!(ours[..], expected[..ours.len()], "{tables} tables");
        assert_eq!(is_cut, ours.len() < expected.len(), "{tables} tables\n{plan}");
        cut += usize::from(is_cut);

        let id = id.to_string();
        let mut json = tally();
        json.args(["statements", "--json", "--id", &id]).arg(segment(&cluster));
        let json: Value = serde_json::from_str(&output(&mut json)).unwrap();
        assert_eq!(json["plans"][0]["cut"], is_cut, "{tables} tables");
        assert_eq!(json["plans"][0]["plan"], text);
        let page = output(tally().args(["statements", "--id", &id]).arg(segment(&cluster)));
        assert_eq!(page.contains("... truncated"), is_cut, "{page}");
    }
    assert!((2..5).contains(&cut), "{cut} are cut");
}

#[test]
fn slow_executions_are_noted_and_the_second_one_of_a_statement_that_is_repeated() {
    let (cluster, mut client) = filled(server().setting("pg_tally.plan_threshold", "1h"));
    let set = |threshold: &str| {
        cluster.append_config(&format!("pg_tally.plan_threshold = {threshold}\n")).unwrap();
        cluster.reload().unwrap();
        support::eventually("the setting holds", || {
            let shown = cluster.psql("show pg_tally.plan_threshold").unwrap();
            if shown.trim() == threshold {
                Ok(())
            } else {
                Err(shown)
            }
        });
    };
    for _ in 0..50 {
        client.batch_execute("select v from orders where id = 11").unwrap();
    }
    client.batch_execute("select v + 1 from orders where id = 11").unwrap();
    set("100ms");
    client.batch_execute("select pg_sleep(0.15), v from orders where id = 11").unwrap();
    let noted = |client: &mut Client| -> Vec<(String, i64)> {
        let sql = "select query, noted from tally.plans join tally.statements using (queryid) \
                   where query like '%from orders%' order by query";
        client.query(sql, &[]).unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
    };
    assert_eq!(
        noted(&mut client),
        [
            ("select pg_sleep($1), v from orders where id = $2".to_owned(), 1),
            ("select v from orders where id = $1".to_owned(), 1)
        ]
    );
    set("-1");
    client.batch_execute("select pg_sleep(0.15), v from orders where id = 11").unwrap();
    client.batch_execute("select pg_sleep(0.15), v, 1 from orders where id = 11").unwrap();
    assert_eq!(noted(&mut client).iter().map(|plan| plan.1).sum::<i64>(), 2);
}

#[test]
fn a_plan_that_changes_is_an_event_and_both_are_shown() {
    let (cluster, mut client) = filled(server());
    let query = "select sum(v) from orders where customer = 7";
    client.batch_execute(query).unwrap();
    client.batch_execute("drop index orders_customer_idx").unwrap();
    client.batch_execute(query).unwrap();
    client.batch_execute(query).unwrap();
    let plans = client
        .query("select p.queryid, planid, noted, plan from tally.plans p join tally.statements using (queryid) \
                where query like 'select sum(v)%' order by first_noted", &[])
        .unwrap();
    let noted: Vec<i64> = plans.iter().map(|row| row.get(2)).collect();
    assert_eq!(noted, [1, 2]);
    let (id, before, now): (i64, i64, i64) = (plans[0].get(0), plans[0].get(1), plans[1].get(1));
    let texts: Vec<String> = plans.iter().map(|row| row.get(3)).collect();
    assert!(texts[0].contains("orders_customer_idx") && !texts[1].contains("orders_customer_idx"));
    assert!(
        texts[1].contains("Seq Scan on orders")
            && texts[1].contains("[filter: customer =] [table of 50000 rows, OID ")
    );
    let event =
        format!("statement {id} has a different plan: {} instead of {}", now as u64, before as u64);
    let events = client.query("select text from tally.events", &[]).unwrap();
    let events: Vec<String> = events.iter().map(|row| row.get(0)).collect();
    assert!(events.contains(&event), "{event}: {events:?}");

    let page = output(tally().args(["statements", "--id", &id.to_string()]).arg(segment(&cluster)));
    for words in [format!("Plan {before}"), format!("Plan {now}"), "2 executions noted".into()] {
        assert!(page.contains(&words), "{words}: {page}");
    }
    assert!(page.find(&format!("Plan {now}")) < page.find(&format!("Plan {before}")), "{page}");
    let mut json = tally();
    json.args(["statements", "--json", "--id", &id.to_string()]).arg(segment(&cluster));
    let json: Value = serde_json::from_str(&output(&mut json)).unwrap();
    assert_eq!(
        (&json["plans"][0]["planid"], &json["plans"][0]["noted"]),
        (&now.to_string().into(), &2.into())
    );

    // Roles that may not see a statement's text may not see its plan either.
    cluster.psql("create role other login").unwrap();
    let mut other = cluster.config().user("other").connect(postgres::NoTls).unwrap();
    let seen = other
        .query("select queryid, planid, plan, noted from tally.plans where noted = 2", &[])
        .unwrap();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].get::<_, Option<i64>>(0), None);
    assert_eq!(seen[0].get::<_, Option<i64>>(1), None);
    assert_eq!(seen[0].get::<_, Option<String>>(2), None);
    client.batch_execute("select tally.reset()").unwrap();
    let left = client.query("select 1 from tally.plans where plan like '%orders%'", &[]).unwrap();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_server_that_keeps_no_plans_has_none() {
    let (_cluster, mut client) = filled(server().setting("pg_tally.max_plans", "0"));
    client.batch_execute("select count(*) from orders").unwrap();
    assert!(client.query("select * from tally.plans", &[]).unwrap().is_empty());
    let kept = client.query_one("select value from tally.status where name = 'plans kept'", &[]);
    assert_eq!(kept.unwrap().get::<_, String>(0), "0 of 0");
}
