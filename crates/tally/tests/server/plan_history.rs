// SPDX-License-Identifier: PostgreSQL
//! The plans of statements in recordings and reports. The witnesses are the clients' own actions and the server's
//! EXPLAIN.

use crate::support;
use std::path::Path;
use std::time::Instant;

use crate::support::recorder::Recorder;
use crate::support::{output, tally};
use recording::{Range, RecordedPlan, Recording};
use rustix::process::Signal;
use scratch::Cluster;
use serde_json::Value;

const QUERY: &str = "select * from orders where customer = 4711";

fn server() -> Cluster {
    let cluster = support::start(
        support::plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("autovacuum", "off")
            .setting("max_parallel_workers_per_gather", "0")
            .setting("pg_tally.plan_threshold", "0"),
    );
    cluster
        .psql(
            "create table orders (id int, customer int, filler text); \
             insert into orders select n, n % 50000, repeat('x', 100) from generate_series(1, 300000) n; \
             create index on orders (customer); analyze orders",
        )
        .unwrap();
    cluster
}

/// The plans of the statement in a range: the one by the index, the one without.
fn plans(directory: &Path, range: Range) -> [Option<RecordedPlan>; 2] {
    let recording = Recording::open(directory, None).unwrap();
    let texts = recording.statement_texts(Range::ALL).unwrap();
    let is_ours = |plan: &RecordedPlan| {
        let key = (plan.text.queryid, plan.text.database_id, plan.text.user_id, plan.text.toplevel);
        texts.get(&key).is_some_and(|text| text.text.starts_with("select * from orders"))
    };
    let all: Vec<RecordedPlan> =
        recording.plans(range).unwrap().into_iter().filter(is_ours).collect();
    assert!(all.len() <= 2, "{all:#?}");
    let with = |nodes: &str| all.iter().find(|plan| plan.text.text.starts_with(nodes)).cloned();
    [with("Index Scan using orders_customer_idx on orders"), with("Seq Scan on orders")]
}

#[test]
fn a_recording_has_the_executions_of_each_plan_and_a_report_names_the_change() {
    let cluster = server();
    let mut client = cluster.connect().unwrap();
    // Returns how long the client has waited, with the possible error of the clock's rate.
    let mut run = |times: u32| {
        let began = Instant::now();
        (0..times).for_each(|_| drop(client.query(QUERY, &[]).unwrap()));
        began.elapsed().mul_f64(1.001)
    };
    run(5);
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    let recorder = Recorder::start(&cluster, &directory, &["--detail", "1s"]);
    recorder.wait_for(2);
    run(20);
    recorder.wait_for(2);
    let plan_of = |explain: String| explain.lines().next().unwrap_or_default().to_owned();
    let by_index = plan_of(cluster.psql(&format!("explain (costs off) {QUERY}")).unwrap());
    cluster.psql("drop index orders_customer_idx").unwrap();
    let recording = Recording::open(&directory, None).unwrap();
    let flip_us = recording.range().to_us;
    let took = run(60);
    recorder.wait_for(2);
    recorder.end(Signal::TERM);

    let [index, scan] = plans(&directory, Range::ALL).map(Option::unwrap);
    assert!(index.text.text.starts_with(&by_index), "{by_index}: {index:?}");
    assert_eq!((index.sums.noted, index.sums.rows, index.text.noted_before), (20, 120, 5));
    assert_eq!((scan.sums.noted, scan.sums.rows, scan.text.noted_before), (60, 360, 0));
    let (all, max) = (scan.sums.exec_ns, scan.sums.exec_max_ns);
    assert!(
        all > max && max * 60 >= all && u128::from(all) <= took.as_nanos(),
        "{all} {max} {took:?}"
    );
    assert!(index.text.first_us < scan.text.first_us && index.sums.last_us < scan.sums.last_us);

    // A part that starts after the change still knows what was usual before.
    let [index, scan] = plans(&directory, Range { from_us: flip_us, ..Range::ALL });
    assert_eq!(index.map(|plan| plan.sums.noted), Some(25));
    assert_eq!(scan.map(|plan| plan.sums.noted), Some(60));
    let [index, scan] = plans(&directory, Range { to_us: flip_us, ..Range::ALL });
    assert_eq!(index.map(|plan| plan.sums.noted), Some(20));
    assert_eq!(scan, None);
    the_report_names_the_change(&directory);
}

fn the_report_names_the_change(directory: &Path) {
    let report = |more: &[&str]| -> Value {
        let mut command = tally();
        command.args(["report", "--json"]).arg(directory).args(more);
        serde_json::from_str(&output(&mut command)).unwrap()
    };
    let whole = report(&[]);
    let first = whole["findings"][0].to_string();
    for words in [
        "A statement's plan changed",
        "from orders where customer",
        "Before: Index Scan using orders_customer_idx on orders",
        "Now: Seq Scan on orders [filter: customer =]",
    ] {
        assert!(first.contains(words), "{words}: {first}");
    }
    let tables = whole["tables"].as_array().unwrap();
    let statements = tables.iter().find(|table| table["id"] == "statements").unwrap();
    let details = statements["details"].as_array().unwrap();
    let of_query = |details: &&Value| {
        details["text"].as_str().is_some_and(|text| text.starts_with("select * from orders"))
    };
    // The recorder's own queries are one row.
    let texts: Vec<&str> = details.iter().filter_map(|detail| detail["text"].as_str()).collect();
    assert!(texts.iter().any(|text| text.starts_with("tally's own: ")), "{texts:?}");
    assert!(!texts.iter().any(|text| text.contains("pg_settings")), "{texts:?}");
    let plans = &details.iter().find(of_query).unwrap()["plans"];
    assert!(plans[0][0].as_str().unwrap().contains("60 executions noted: mean"), "{plans:#}");
    assert!(plans[0][1].as_str().unwrap().starts_with("Seq Scan on orders"), "{plans:#}");
    assert!(plans[1][0].as_str().unwrap().contains("20 executions noted: mean"), "{plans:#}");
    assert!(plans[1][1].as_str().unwrap().contains("orders_customer_idx"), "{plans:#}");
}
