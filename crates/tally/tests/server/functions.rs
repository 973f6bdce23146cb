// SPDX-License-Identifier: PostgreSQL
//! `tally functions`: lists, times and shows server functions.

use crate::support;

use crate::maker::{Maker, Shape, Slot, Who, ACCOUNT, TIMER};
use crate::support::json_reference::{assert_documented, PAGE};
use crate::support::paused::between_readings;
use crate::support::{complaint, eventually, output, tally};
use segment::clock::monotonic_ns;
use serde_json::Value;
use tempfile::TempDir;

fn made() -> (TempDir, Maker, Slot) {
    let folder = tempfile::tempdir().unwrap();
    let shape = Shape { slots: 4, groups: 2, stats_per_book: 32 };
    let mut maker = Maker::new(&folder.path().join("pg_tally.1.2"), shape);
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let slot = maker.claim(0, 1, Who::client(), cpu, monotonic_ns());
    (folder, maker, slot)
}

const CALLS: &[(&str, &[u64])] = &[
    ("function::XLogFlush::inclusive::execute", &[4_000_000, 8_000_000]),
    ("function::XLogFlush::exclusive::execute", &[1_000_000, 2_000_000]),
    ("function::XLogFlush::inclusive::sync", &[30_000_000]),
    ("function::XLogFlush::exclusive::sync", &[30_000_000]),
    ("function::issue_xlog_fsync::inclusive::execute", &[9_000_000]),
    ("function::issue_xlog_fsync::exclusive::execute", &[9_000_000]),
    ("function::heap_insert::counted::execute", &[0, 0, 0]),
    ("edge::XLogFlush::issue_xlog_fsync", &[9_000_000]),
];

/// The output of the command for an interval in which these calls happen.
fn seen(maker: &mut Maker, slot: &mut Slot, args: &[&str], calls: &[(&str, &[u64])]) -> String {
    let path = maker.path.clone();
    between_readings(args, &path, || {
        for (name, values) in calls {
            let stat = maker.stat(name, TIMER);
            values.iter().for_each(|&value| slot.record(stat, value));
        }
        maker.write(slot);
    })
}

/// The lines, with runs of blanks reduced to one blank.
fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn functions_are_listed_by_total_time() {
    let (_folder, mut maker, mut slot) = made();
    let text = seen(&mut maker, &mut slot, &["functions"], CALLS);
    let table = lines(&text);
    assert!(table[0].starts_with("NAME PHASE COUNT TOTAL AVERAGE MAX EXCLUSIVE"), "{text}");
    assert!(table[1].starts_with("XLogFlush 2 phases 3 42 ms 14 ms 30 ms 33 ms"), "{text}");
    assert!(table[2].starts_with("sync 1 30 ms 30 ms"), "{text}");
    assert!(table[4].starts_with("issue_xlog_fsync execute 1 9 ms"), "{text}");
    let hot = table.last().unwrap();
    assert!(hot.starts_with("heap_insert execute 3 0") && hot.ends_with(" 3"), "{text}");
    // The pane of top shows the same table.
    let top = seen(&mut maker, &mut slot, &["top", "--once", "--view", "functions"], CALLS);
    assert!(lines(&top).iter().any(|line| *line == table[1]), "{top}");
}

#[test]
fn the_tree_and_json_show_callers() {
    let (_folder, mut maker, mut slot) = made();
    let text = seen(&mut maker, &mut slot, &["functions", "--tree"], CALLS);
    let names: Vec<&str> = text.lines().map(|l| l.split("  ").next().unwrap_or("")).collect();
    assert_eq!(names[1], "XLogFlush", "{text}");
    assert!(text.lines().nth(2).unwrap().starts_with("  issue_xlog_fsync"), "{text}");
    let text = seen(&mut maker, &mut slot, &["functions", "--json"], CALLS);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["functions"][0]["name"], "XLogFlush");
    assert_eq!(json["functions"][0]["phase"], "sync");
    assert_eq!(json["edges"][0]["callee"], "issue_xlog_fsync");
    assert_documented(PAGE, json.as_object().unwrap().keys());
}

#[test]
fn without_functions_the_hint_names_the_command_that_sets_them() {
    let (_folder, mut maker, mut slot) = made();
    for args in
        [&["functions"][..], &["functions", "--tree"], &["top", "--once", "--view", "functions"]]
    {
        let text = seen(&mut maker, &mut slot, args, &[]);
        assert!(text.contains("tally functions --set"), "{text}");
    }
    maker.probe(70, 1, "function XLogFlush", "");
    let text = seen(&mut maker, &mut slot, &["functions"], &[]);
    assert!(text.contains("none of the 1 timed functions was called"), "{text}");
    for args in [&["--list", "x", "--tree"][..], &["--set", "x", "--list", "x"]] {
        complaint(tally().arg("functions").args(args), 2);
    }
}

#[test]
fn a_live_server_lists_its_functions_with_and_without_the_extension_created() {
    let cluster = support::sessions();
    let target = cluster.connection_string();
    let list = |glob: &str| -> Value {
        let text = output(tally().args(["functions", "--json", "--list", glob, &target]));
        serde_json::from_str(&text).unwrap()
    };
    let before = list("SimpleLru*");
    let all = before.as_array().unwrap();
    assert!(all
        .iter()
        .any(|function| function["name"] == "SimpleLruReadPage" && function["probeable"] == true));
    assert!(all.iter().all(|function| function["bytes"].as_i64().unwrap() > 0), "{before}");
    support::create_views(&cluster);
    assert_eq!(list("SimpleLru*"), before);
    let text = output(tally().args(["functions", "--list", "XLogFlush", &target]));
    assert!(lines(&text)[1].starts_with("XLogFlush postgres "), "{text}");
    let text = complaint(tally().args(["functions", "--list", "no_such_function", &target]), 1);
    assert!(text.contains("no_such_function"), "{text}");
}

#[test]
fn functions_of_a_live_server_are_set_timed_and_cleared() {
    let cluster = support::shared();
    let target = cluster.connection_string();
    let mut client = cluster.connect().unwrap();
    client.batch_execute("create table t (n int)").unwrap();
    let text = output(tally().args(["functions", "--set", "XLogFlush, heap_ins*", &target]));
    assert!(text.contains("pg_tally.functions = 'XLogFlush, heap_ins*'"), "{text}");
    let path = support::segment(&cluster);
    let mut insert = || {
        for _ in 0..3 {
            client.batch_execute("insert into t values (1)").unwrap();
        }
    };
    eventually("an insert is timed", || {
        let text = between_readings(&["functions", "--json"], &path, &mut insert);
        let json: Value = serde_json::from_str(&text).unwrap();
        let calls = |name: &str| {
            let functions = json["functions"].as_array().unwrap();
            functions.iter().filter(|f| f["name"] == name).any(|f| {
                f["calls"].as_u64().unwrap() > 0
                    && f["inclusive"]["seconds"].as_f64() >= f["exclusive_seconds"].as_f64()
            })
        };
        calls("heap_insert") && calls("XLogFlush")
    });
    cluster.psql("alter system set pg_tally.function_edges = on").unwrap();
    cluster.psql("select pg_reload_conf()").unwrap();
    output(tally().args(["functions", "--set", "standard_ExecutorRun, heap_insert", &target]));
    eventually("the caller of heap_insert is shown", || {
        let text = between_readings(&["functions", "--tree"], &path, &mut insert);
        text.contains("\nstandard_ExecutorRun ") && text.contains("\n  heap_insert ")
    });
    let status = output(tally().args(["status", "--json", &target]));
    let status: Value = serde_json::from_str(&status).unwrap();
    let probes = status["probes"].as_array().unwrap();
    let probe = probes.iter().find(|probe| probe["name"] == "function heap_insert");
    assert_eq!(probe.map(|probe| &probe["installed"]), Some(&Value::Bool(true)), "{status}");
    let text = output(tally().args(["functions", "--set", "", &target]));
    assert!(text.contains("no functions are timed from now on"), "{text}");
    let files = std::fs::read_to_string(cluster.data_dir().join("postgresql.auto.conf")).unwrap();
    assert!(!files.contains("pg_tally.functions"), "{files}");
}

#[test]
fn only_a_superuser_sets_functions() {
    let cluster = support::shared();
    cluster.psql("create role poor login").unwrap();
    let target = cluster.connection_string().replace("user=postgres", "user=poor");
    let message = complaint(tally().args(["functions", "--set", "XLogFlush", &target]), 1);
    assert!(message.contains("role poor is not a superuser"), "{message}");
}
