// SPDX-License-Identifier: PostgreSQL
//! `tally diff`: on recordings of which all is known, and of a server with little memory and one
//! with much.

mod support;

use std::path::{Path, PathBuf};
use std::time::Duration;

use recording::FrameRow;
use scratch::{Cluster, Load};
use serde_json::Value;
use support::synthetic::{FakeServer, Sum, MIDNIGHT};
use support::{complaint, output, tally};
use tempfile::TempDir;

struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn make(&self, name: &str, seconds: u64, made: &FakeServer) -> Sum {
        made.write(&self.path(name), seconds, |_, _| {})
    }

    fn make_with(
        &self,
        name: &str,
        seconds: u64,
        made: &FakeServer,
        each: impl Fn(u64, &mut FrameRow),
    ) {
        made.write(&self.path(name), seconds, each);
    }

    fn diff(&self, a: &str, b: &str) -> assert_cmd::Command {
        let mut command = tally();
        command.current_dir(self.0.path()).args(["diff", a, b]);
        command
    }

    fn json(&self, a: &str, b: &str, options: &[&str]) -> Value {
        let text = output(self.diff(a, b).arg("--json").args(options));
        serde_json::from_str(&text).unwrap()
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn rows<'v>(diff: &'v Value, table: &str) -> &'v Vec<Value> {
    diff[table].as_array().unwrap()
}

/// Rows that are called changed, of all tables, and the total.
fn changed(diff: &Value) -> Vec<&Value> {
    let tables = ["totals", "accounts", "processes", "locks", "files", "functions", "statements"];
    let all = tables.iter().flat_map(|table| rows(diff, table));
    all.filter(|row| !["noise", "unknown"].contains(&row["verdict"].as_str().unwrap())).collect()
}

fn findings(diff: &Value) -> String {
    let texts = rows(diff, "findings").iter().map(|finding| finding["text"].as_str().unwrap());
    texts.collect::<Vec<_>>().join("\n")
}

fn assert_adds_up(diff: &Value) {
    let parts: f64 = rows(diff, "accounts").iter().map(|row| number(&row["change_seconds"])).sum();
    let total = number(&diff["totals"][0]["change_seconds"]);
    assert!((parts - total).abs() < 1e-12 + total.abs() * 1e-9, "{parts} is not {total}");
}

#[test]
fn what_has_changed_is_found_and_the_parts_add_up_to_what_was_put_in() {
    let folder = Folder::new();
    let slow = FakeServer::default();
    let fast = slow.clone().seed(2).account("execute::wait::IO:DataFileRead", 40_000.0);
    let (a, b) = (folder.make("a", 120, &slow), folder.make("b", 120, &fast));
    let diff = folder.json("a", "b", &[]);
    assert_adds_up(&diff);
    let total = &diff["totals"][0];
    let each = |sum: Sum| sum.ns as f64 * 1e-9 / sum.commits as f64;
    assert!((number(&total["a_seconds"]) / each(a) - 1.0).abs() < 1e-9);
    assert!((number(&total["b_seconds"]) / each(b) - 1.0).abs() < 1e-9);
    assert_eq!(diff["per"], "commit");
    assert_eq!(total["verdict"], "less");
    let first = &diff["accounts"][0];
    assert_eq!(first["activity"], "IO:DataFileRead");
    assert_eq!(first["verdict"], "less");
    let off = (number(&first["change_seconds"]) + 40e-6).abs();
    assert!(off < 1.5 * number(&first["half_width_seconds"]), "{first}");
    let said = findings(&diff);
    assert!(said.contains("less per commit than A"), "{said}");
    assert!(said.contains("Most of it: IO:DataFileRead in execute takes"), "{said}");
}

#[test]
fn nothing_is_above_the_noise_where_nothing_has_changed() {
    let folder = Folder::new();
    let mut alarms = 0;
    for seed in 0..12 {
        let name = |side| format!("{side}{seed}");
        folder.make(&name("a"), 60, &FakeServer::default().seed(100 + seed));
        folder.make(&name("b"), 60, &FakeServer::default().seed(900 + seed));
        let diff = folder.json(&name("a"), &name("b"), &[]);
        assert_adds_up(&diff);
        alarms += usize::from(!changed(&diff).is_empty());
    }
    assert_eq!(alarms, 0, "of 12 comparisons of the same");
}

#[test]
fn settings_come_first_and_places_are_not_named_among_them() {
    let folder = Folder::new();
    let with = |buffers, port| FakeServer {
        settings: vec![("shared_buffers", buffers), ("port", port), ("work_mem", "4096")],
        ..FakeServer::default()
    };
    folder.make("a", 30, &with("2048", "5432"));
    folder.make("b", 30, &with("65536", "5433").seed(2));
    let diff = folder.json("a", "b", &[]);
    let first = &diff["configuration"][0];
    assert_eq!((&first["name"], &first["a"]), (&"shared_buffers".into(), &"16 MB".into()));
    assert_eq!(first["b"], "512 MB");
    assert_eq!(diff["configuration"][1]["name"], "port");
    let said = findings(&diff);
    assert!(said.contains("Set up differently: shared_buffers (A 16 MB, B 512 MB)."), "{said}");
    let text = output(&mut folder.diff("a", "b"));
    let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
    assert!(place("\nSet up differently") < place("\nTotal time"));
    assert!(place("\nTotal time") < place("\nWhere it changed"));
}

#[test]
fn statements_are_known_by_their_texts() {
    let folder = Folder::new();
    let a = FakeServer::default();
    let mut b = FakeServer { seed: 2, ..FakeServer::default() };
    b.statements = vec![("select $1", 77, 0.3), ("delete from t", 78, 0.7)];
    folder.make("a", 120, &a);
    folder.make("b", 120, &b);
    let diff = folder.json("a", "b", &[]);
    let verdict = |query: &str| {
        let row = rows(&diff, "statements").iter().find(|row| row["query"] == query).unwrap();
        row["verdict"].as_str().unwrap().to_string()
    };
    assert_eq!(verdict("select $1"), "noise");
    assert_eq!(verdict("delete from t"), "new");
    assert_eq!(verdict("update t set x = $1"), "absent");
    assert!(findings(&diff).contains("Statements that ran in A only: 1; in B only: 1."));
}

#[test]
fn what_is_partial_is_left_out_and_said() {
    let folder = Folder::new();
    folder.make("a", 60, &FakeServer::default());
    let off = |second: u64, row: &mut FrameRow| {
        if second > 40 {
            (row.exact, row.uninstrumented_ns, row.level) = (false, 500_000_000, "off".into());
        }
    };
    folder.make_with("b", 60, &FakeServer::default().seed(2), off);
    let diff = folder.json("a", "b", &[]);
    assert!((number(&diff["b"]["compared_seconds"]) - 40.0).abs() < 1e-6);
    assert_eq!(diff["b"]["exact"], true);
    let said = findings(&diff);
    assert!(said.contains("20 s of B are left out, in which the level was off"), "{said}");
    folder.make_with("c", 60, &FakeServer::default().seed(3), |_, row| row.exact = false);
    let diff = folder.json("a", "c", &[]);
    assert_eq!(diff["b"]["exact"], false);
    assert!(findings(&diff).contains("B is not exact in any part"));
}

#[test]
fn locks_are_compared_only_where_both_looked_at_them() {
    let folder = Folder::new();
    let locks = |_: u64, row: &mut FrameRow| row.locks_ns = row.interval_ns;
    folder.make_with("a", 30, &FakeServer::default(), locks);
    folder.make_with("b", 30, &FakeServer::default().seed(2), locks);
    folder.make("c", 30, &FakeServer::default().seed(3));
    let diff = folder.json("a", "b", &[]);
    assert_eq!(diff["locks"][0]["lock"], "ProcArray");
    let diff = folder.json("a", "c", &[]);
    assert!(rows(&diff, "locks").is_empty());
    assert!(findings(&diff).contains("Locks are not compared"));
}

#[test]
fn functions_are_compared_only_where_both_had_probes() {
    let folder = Folder::new();
    let with = |flush, seed| FakeServer {
        functions: vec![("XLogFlush", flush, 1_000), ("XLogWrite", 700, 700)],
        seed,
        ..FakeServer::default()
    };
    folder.make("a", 60, &with(3_000, 1));
    folder.make("b", 60, &with(5_000, 2));
    let diff = folder.json("a", "b", &[]);
    assert_adds_up(&diff);
    let mut told: Vec<(&str, &str, f64)> = rows(&diff, "functions")
        .iter()
        .map(|row| {
            let word = |key: &str| row[key].as_str().unwrap();
            assert_eq!((word("process"), number(&row["a_count"])), ("client backend", 1.0));
            (word("function"), word("part"), (number(&row["change_seconds"]) * 1e9).round())
        })
        .collect();
    told.sort_by_key(|row| (row.0, row.1));
    // What a function took alone is told where that is less.
    let flush = [("XLogFlush", "exclusive", 0.0), ("XLogFlush", "inclusive", 2_000.0)];
    assert_eq!(told, [flush[0], flush[1], ("XLogWrite", "inclusive", 0.0)]);
    assert_eq!(rows(&diff, "functions")[0]["verdict"], "more");
    let text = output(&mut folder.diff("a", "b"));
    assert!(text.contains("XLogFlush") && text.contains("Probed functions"), "{text}");
    output(folder.diff("a", "b").args(["-o", "diff.html"]));
    let page = std::fs::read_to_string(folder.path("diff.html")).unwrap();
    assert!(page.contains("id=\"table-functions\""));
    folder.make("none", 60, &FakeServer::default().seed(3));
    let diff = folder.json("a", "none", &[]);
    assert!(rows(&diff, "functions").is_empty());
    assert!(findings(&diff).contains("Functions are not compared"), "{}", findings(&diff));
}

#[test]
fn halves_of_one_recording_can_be_compared() {
    let folder = Folder::new();
    folder.make("a", 120, &FakeServer::default());
    let diff = folder.json("a@..-60", "a@-60..", &[]);
    assert!((number(&diff["a"]["compared_seconds"]) - 60.0).abs() < 1e-6);
    assert_eq!(number(&diff["b"]["from"]), MIDNIGHT as f64 * 1e-6 + 60.0);
    assert!(changed(&diff).is_empty());
    let diff = folder.json("a@..-40", "a@-60..", &[]);
    assert!(findings(&diff).contains("A and B have 20 s in common"));
}

#[test]
fn without_commits_it_counts_by_commands() {
    let folder = Folder::new();
    folder.make("a", 30, &FakeServer::default());
    folder.make("b", 30, &FakeServer::default().seed(2));
    let by_commit = folder.json("a", "b", &[]);
    let by_command = folder.json("a", "b", &["--per", "command"]);
    assert_eq!(by_command["per"], "command");
    let seconds = |diff: &Value| number(&diff["totals"][0]["a_seconds"]);
    assert!((seconds(&by_commit) / seconds(&by_command) - 7.0).abs() < 1e-9);
    assert_eq!(by_commit["totals"][1]["a_seconds"], by_command["totals"][0]["a_seconds"]);
    folder.make("idle", 30, &FakeServer { transactions: 0.0, ..FakeServer::default() });
    let said = complaint(&mut folder.diff("a", "idle"), 1);
    assert!(said.contains("no command of a client was recorded in B"), "{said}");
}

#[test]
fn a_short_recording_tells_no_noise() {
    let folder = Folder::new();
    folder.make("a", 5, &FakeServer::default());
    folder.make("b", 60, &FakeServer::default().seed(2));
    let diff = folder.json("a", "b", &[]);
    assert_eq!(diff["totals"][0]["verdict"], "unknown");
    assert!(changed(&diff).is_empty());
    assert!(findings(&diff).contains("a has only 5 intervals to estimate its noise from"));
}

#[test]
fn a_mistake_is_said_with_what_to_do() {
    let folder = Folder::new();
    folder.make("a", 30, &FakeServer::default());
    folder.make("b", 30, &FakeServer { host: "another", ..FakeServer::default() });
    let usage = |a, b, words: &str| {
        let said = complaint(&mut folder.diff(a, b), 2);
        assert!(said.contains(words), "{said}");
    };
    usage("a", "a", "DIR@FROM..TO");
    usage("a", "b@2020-01-01..2020-01-02", "nothing was recorded from 2020");
    usage("a", "b@-5..-10", "before it begins");
    usage("a", "b@yesterday..", "14:30");
    let said = complaint(&mut folder.diff("a", "none"), 1);
    assert!(said.contains("none: not a recording"), "{said}");
    let about = folder.path("b/recording.json");
    let newer = std::fs::read_to_string(&about).unwrap().replace("\"format\": 1", "\"format\": 99");
    std::fs::write(&about, newer).unwrap();
    assert!(complaint(&mut folder.diff("a", "b"), 1).contains("format 99"));
    let said = complaint(folder.diff("a", "a@-10..").args(["-o", "none/diff.html"]), 1);
    assert!(said.contains("none/diff.html"), "{said}");
}

#[test]
fn of_several_machines_one_is_named() {
    let folder = Folder::new();
    folder.make("a", 30, &FakeServer::default());
    folder.make("b", 30, &FakeServer { host: "another", seed: 2, ..FakeServer::default() });
    for table in ["frames", "statistics", "servers"] {
        let from = folder.path("b").join(table).join("host=another");
        std::fs::rename(from, folder.path("a").join(table).join("host=another")).unwrap();
    }
    let said = complaint(&mut folder.diff("a", "b"), 2);
    assert!(said.contains("--host"), "{said}");
    let diff = folder.json("a", "a", &["--host", "machine", "--host-b", "another"]);
    assert_eq!((&diff["a"]["host"], &diff["b"]["host"]), (&"machine".into(), &"another".into()));
}

#[test]
fn a_part_that_cannot_be_read_is_said_and_the_rest_is_compared() {
    let folder = Folder::new();
    folder.make("a", 60, &FakeServer::default());
    folder.make("b", 60, &FakeServer::default().seed(2));
    let texts = folder.path("b").join("settings");
    damage(&texts);
    let said = findings(&folder.json("a", "b", &[]));
    assert!(said.contains("it is left out"), "{said}");
    assert!(said.contains("The settings of B are not known"), "{said}");
}

fn damage(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => damage(&path),
            false => std::fs::write(path, "no Parquet").unwrap(),
        }
    }
}

#[test]
fn the_page_holds_all_of_it_and_runs_nothing_of_it() {
    let folder = Folder::new();
    let hostile = "select '</script><script>alert(1)</script>'";
    let made =
        |seed| FakeServer { statements: vec![(hostile, 5, 1.0)], seed, ..FakeServer::default() };
    folder.make("a", 60, &made(1));
    folder.make("b", 60, &made(2).account("commit::wait::IO:WALSync", 600_000.0));
    output(folder.diff("a", "b").args(["-o", "diff.html"]));
    let page = std::fs::read_to_string(folder.path("diff.html")).unwrap();
    assert!(page.contains("IO:WALSync") && page.contains("Below the noise"));
    assert!(page.contains("id=\"table-accounts\"") && page.contains("table-statements"));
    assert!(!page.contains("<script>alert"));
    let text = output(folder.diff("a", "b").arg("--text"));
    assert!(text.contains("below the noise") && !text.contains("Below the noise"), "{text}");
}

/// A server with so much memory, loaded with a table of 100 MB of which each row was read once.
fn server(buffers: &str) -> Cluster {
    let settings = [("shared_preload_libraries", "pg_tally"), ("shared_buffers", buffers)];
    let cluster = support::start(support::plain().settings(settings));
    cluster.pgbench_init(8).unwrap();
    // By the index: a scan of the table would not keep it.
    let read = "set enable_seqscan = off; select sum(abalance) from pgbench_accounts where aid > 0";
    cluster.psql(read).unwrap();
    cluster
}

/// Reads three hundred rows here and there: with little memory, most of them from files.
const READS: &str = "\\set r random(1, 800000)\n\
    select sum(a.abalance) from generate_series(1, 300) g, lateral (\
    select abalance from pgbench_accounts where aid = 1 + (g * 7919 + :r) % 800000) a;";

/// Record so many seconds of it under that load, forty intervals.
fn record(cluster: &Cluster, seconds: u64, to: &Path) {
    let load = cluster.pgbench().load(Load::Script(READS.to_string())).clients(2);
    let load = load.duration(Duration::from_secs(seconds + 2)).spawn().unwrap();
    let mut command = tally();
    command.arg("record").arg(support::segment(cluster)).arg("-o").arg(to);
    let interval = seconds * 1000 / 40;
    command.args(["--duration", &format!("{seconds}s"), "--interval", &format!("{interval}ms")]);
    command.args(["--detail", &format!("{}ms", 2 * interval)]);
    output(&mut command);
    load.wait().unwrap();
}

/// With little memory the tables are read again and again, from the kernel's cache; with much they
/// stay.
#[test]
fn memory_explains_the_difference_of_two_servers() {
    let folder = Folder::new();
    let servers = ["2MB", "256MB"].map(server);
    let reads = |diff: &Value| {
        let all = rows(diff, "accounts").iter();
        all.clone().find(|row| row["activity"] == "IO:DataFileRead").unwrap().clone()
    };
    let is_less = |row: &Value| ["less", "absent"].contains(&row["verdict"].as_str().unwrap());
    let pair = |pair: usize| {
        let names = ["little", "much"].map(|name| format!("{name}{pair}"));
        for (server, name) in servers.iter().zip(&names) {
            record(server, 10, &folder.path(name));
        }
        folder.json(&names[0], &names[1], &[])
    };
    // On a machine that is busy its noise may hide even this.
    let mut diff = pair(0);
    for again in 1..4 {
        if is_less(&reads(&diff)) {
            break;
        }
        diff = pair(again);
    }
    assert_eq!(diff["per"], "command");
    assert_eq!((&diff["a"]["exact"], &diff["b"]["exact"]), (&true.into(), &true.into()));
    let total = &diff["totals"][0];
    assert!(number(&total["change_seconds"]) < 0.0, "{total}");
    let parts: f64 = rows(&diff, "accounts").iter().map(|row| number(&row["change_seconds"])).sum();
    let whole = number(&total["change_seconds"]);
    assert!((parts / whole - 1.0).abs() < 0.01, "{parts} of {whole}");
    let read = reads(&diff);
    assert!(is_less(&read), "{read}");
    let waits = rows(&diff, "accounts").iter().find(|row| row["activity"] != "cpu").unwrap();
    assert_eq!(waits["activity"], "IO:DataFileRead", "{}", findings(&diff));
    assert!(findings(&diff).contains("IO:DataFileRead in "), "{}", findings(&diff));
    assert!(findings(&diff).contains("shared_buffers (A 2"), "{}", findings(&diff));
    let file = rows(&diff, "files").iter().find(|row| {
        row["file"] == "main" && row["operation"] == "read" && row["process"] == "client backend"
    });
    assert!(["less", "absent"].contains(&file.unwrap()["verdict"].as_str().unwrap()));
    assert_eq!(rows(&diff, "statements")[0]["toplevel"], true);
}

/// Not a test but a measurement (docs/results.md): how often halves of a recording, and runs of the
/// same server, are called different, and what explains the difference of two servers; the machine
/// should do nothing else.
#[test]
#[ignore = "takes four minutes"]
fn false_alarms_and_reasons_measured() {
    let folder = Folder::new();
    let servers = [server("16MB"), server("512MB")];
    const RUNS: usize = 5;
    const SECONDS: u64 = 20;
    let name = |server: usize, run: usize| format!("{}{run}", ["little", "much"][server]);
    for run in 0..RUNS {
        for (at, server) in servers.iter().enumerate() {
            record(server, SECONDS, &folder.path(&name(at, run)));
        }
    }
    let say = |what: &str, diffs: Vec<Value>| {
        let rows: usize = diffs
            .iter()
            .flat_map(|diff| {
                ["accounts", "processes", "files", "statements"].map(|t| rows(diff, t))
            })
            .map(Vec::len)
            .sum();
        let alarms: Vec<usize> = diffs.iter().map(|diff| changed(diff).len()).collect();
        let comparisons = alarms.iter().filter(|n| **n > 0).count();
        println!(
            "{what}: {comparisons} of {} comparisons, {} of {rows} rows; {alarms:?}",
            diffs.len(),
            alarms.iter().sum::<usize>()
        );
        for diff in &diffs {
            println!("    {}", findings(diff).replace('\n', "\n    "));
        }
    };
    let all = || (0..2).flat_map(|server| (0..RUNS).map(move |run| (server, run)));
    let halves = all().map(|(server, run)| {
        let name = name(server, run);
        let half = SECONDS / 2;
        folder.json(&format!("{name}@..-{half}"), &format!("{name}@-{half}.."), &[])
    });
    say("halves of a recording called different", halves.collect());
    let same = all().filter(|(_, run)| *run > 0);
    let same =
        same.map(|(server, run)| folder.json(&name(server, run - 1), &name(server, run), &[]));
    say("runs of the same server called different", same.collect());
    let other = (0..RUNS).map(|run| folder.json(&name(0, run), &name(1, run), &[]));
    say("runs of the two servers called different", other.collect());
}
