// SPDX-License-Identifier: PostgreSQL
//! `tally fleet`: DuckDB, ClickHouse (chdb) and Spark return the same results as the reader of recordings.
//!
//! The recordings are fixtures. `make verify` makes them anew, runs more random queries (PGTALLY_FLEET_QUESTIONS
//! sets their number), and includes Spark.

use crate::support;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::doctor_planted::{FORGOTTEN_TRANSACTION, PROBLEMS};
use crate::support::fixtures::{self, Fixture};
use crate::support::fleet::{
    ask, engines, fleet, number, programs, recent_us, session, spark, text, upload_as, Engine,
    Fleet, Row, HOSTS, RECORDINGS,
};
use crate::support::json_reference::{assert_documented, PAGE};
use crate::support::synthetic::{Dice, FakeServer};
use crate::support::verify::{Claim, Trial};
use crate::support::{complaint, output, tally};
use recording::{comparable_fingerprint, Range, Recording, Series};
use scratch::Load;
use segment::directory::{Stat, StatKind};
use segment::layout::{bucket, bucket_low};
use segment::wait_names::canonical;
use segment::Histogram;
use serde_json::{json, Value};

fn time(us: i64) -> String {
    jiff::Timestamp::from_microsecond(us).unwrap().to_string()
}

/// Figures by their subject.
type Figures = BTreeMap<String, [f64; 2]>;

/// Seconds, and events per second, of each activity that is not idle.
fn load(recording: &Recording, range: Range) -> Figures {
    let sum = recording.sum(range).unwrap();
    let seconds = sum.clock.seconds(sum.ticks);
    let mut figures = Figures::new();
    for statistic in &sum.statistics {
        if statistic.stat.kind == StatKind::Account && !segment::interval::is_idle(&statistic.stat)
        {
            let figure =
                figures.entry(canonical(statistic.stat.activity()).to_string()).or_default();
            figure[0] += sum.clock.seconds(statistic.total.change.total);
            figure[1] += statistic.total.change.count as f64 / seconds;
        }
    }
    figures
}

/// By fingerprint: calls, seconds, and the histogram with its clock.
fn statements(recording: &Recording, range: Range) -> BTreeMap<String, (u64, f64, Histogram, f64)> {
    let mut sums = BTreeMap::new();
    let Some(whole) = recording.statements(range).unwrap() else { return sums };
    for statement in whole
        .statements()
        .iter()
        .filter(|statement| statement.key.toplevel && statement.calls() > 0)
    {
        let Some(text) = &statement.text else { continue };
        if text.shown.starts_with("/* tally */") {
            continue;
        }
        let sum: &mut (u64, f64, Histogram, f64) = sums
            .entry(comparable_fingerprint(&text.shown))
            .or_insert_with(|| (0, 0.0, Histogram::new(), 0.0));
        sum.0 += statement.calls();
        sum.1 += statement.exec().seconds;
        sum.2.merge(statement.histogram());
        sum.3 = whole.clock().ticks_per_second();
    }
    sums
}

/// The waits of a host: number, seconds, and the histogram with its clock. Histograms cover whole detail
/// intervals, so they may contain a wait that ended before the range, as a query result may.
fn waits(recording: &Recording, range: Range) -> BTreeMap<String, (u64, f64, Histogram, f64)> {
    let sum = recording.sum(range).unwrap();
    let is_wait = |stat: &Stat| {
        stat.kind == StatKind::Account
            && stat.name.contains("::wait::")
            && !segment::interval::is_idle(stat)
    };
    let rate = sum.clock.ticks_per_second;
    let mut waits = BTreeMap::new();
    for statistic in sum.statistics.iter().filter(|statistic| is_wait(&statistic.stat)) {
        let wait: &mut (u64, f64, Histogram, f64) = waits
            .entry(canonical(statistic.stat.activity()).to_string())
            .or_insert_with(|| (0, 0.0, Histogram::new(), rate));
        wait.0 += statistic.total.change.count;
        wait.1 += sum.clock.seconds(statistic.total.change.total);
    }
    for (activity, wait) in &mut waits {
        let wanted = |series: &Series| {
            is_wait(&series.stat) && canonical(series.stat.activity()) == activity
        };
        for latency in recording.sum_and_latencies(range, wanted).unwrap().1 {
            wait.2.merge(&latency.histogram);
        }
    }
    waits
}

/// Quantiles are the middles of the same buckets, or of the outermost buckets an extreme; of nothing there are none.
fn has_quantiles(row: &Row, histogram: &Histogram, rate: f64) -> bool {
    let quantiles = [("p50_seconds", 0.5), ("p95_seconds", 0.95), ("p99_seconds", 0.99)];
    quantiles.into_iter().all(|(key, q)| match histogram.quantile(q, 0, u64::MAX) {
        None => row[key].is_null(),
        Some(middle) => {
            let (found, own) = (number(row, key), middle as f64 / rate);
            let here = Some(bucket(middle));
            let is_outermost = here == histogram.lowest() || here == histogram.highest();
            let ends = [bucket_low(bucket(middle)), bucket_low(bucket(middle) + 1)];
            let [low, end] = ends.map(|ticks| ticks as f64 / rate);
            close(found, own, 1e-3)
                || is_outermost && found >= low * (1.0 - 1e-3) - 1e-8 && found <= end * (1.0 + 1e-3)
        }
    })
}

fn close(a: f64, b: f64, within: f64) -> bool {
    (a - b).abs() <= within * a.abs().max(b.abs()) + 1e-8
}

#[test]
fn engines_answer_as_the_reader_of_recordings() {
    let Some(engines) = programs() else { return };
    compare(engines, fleet(), 8, 1);
}

#[test]
#[ignore = "verify: engines answer random questions about new recordings as the reader does"]
fn verify_engines_answer_as_the_reader_of_new_recordings() {
    let questions: usize =
        std::env::var("PGTALLY_FLEET_QUESTIONS").map_or(60, |number| number.parse().unwrap());
    let cluster = support::shared();
    cluster.pgbench_init(1).unwrap();
    let made = Fleet::new(RECORDINGS.map(|(name, clients)| {
        let load = cluster.pgbench().clients(clients);
        fixtures::record(name, &cluster, 25, [200, 1000], load)
    }));
    let text = "DuckDB, chdb and Spark answer random questions as the reader of recordings does";
    Claim { text, alarm: 0.0, n: 1, m: 1 }.check(|seed| {
        println!("random numbers from {seed}");
        for engines in [programs(), spark()].into_iter().flatten() {
            compare(engines, &made, questions, seed);
        }
        let result = format!("{questions} questions to each");
        Trial { holds: true, result, half_width: "-".into() }
    });
}

/// Runs random queries on engines, and compares the results with the reader of recordings.
fn compare(engines: &[Engine], fleet: &Fleet, questions: usize, seed: u64) {
    let mut dice = Dice(seed);
    let recordings = [0, 1].map(|at| Recording::open(fleet.recordings[at].path(), None).unwrap());
    let mut asked = 0;
    while asked < questions {
        let at = usize::from(dice.throw() < 0.5);
        let whole = recordings[at].range();
        let instant =
            |share: f64| whole.from_us + ((whole.to_us - whole.from_us) as f64 * share) as i64;
        let [a, b] = [dice.throw(), dice.throw()].map(|share| instant(share) / 1000 * 1000);
        let range = Range { from_us: a.min(b), to_us: a.max(b) };
        if recordings[at].frame_rows(range).unwrap().is_empty() {
            continue;
        }
        let (since, until) = (time(range.from_us), time(range.to_us));
        let more = ["--host", HOSTS[at], "--since", &since, "--until", &until];
        let query = ["load", "statements", "p99", "waits"][asked % 4];
        asked += 1;
        for engine in engines {
            let answer = engine.ask(&fleet.root, query, &more);
            let context = || format!("{} {query} {more:?}", engine.name());
            match query {
                "load" => {
                    let mut wanted = load(&recordings[at], range);
                    for row in &answer {
                        let [seconds, rate] = wanted
                            .remove(&text(row, "activity"))
                            .unwrap_or_else(|| panic!("{} {row:?}", context()));
                        assert!(
                            close(number(row, "seconds"), seconds, 1e-6),
                            "{} {row:?} {seconds}",
                            context()
                        );
                        assert!(
                            close(number(row, "per_second"), rate, 1e-6),
                            "{} {row:?} {rate}",
                            context()
                        );
                    }
                    wanted.retain(|_, figure| figure[0] > 1e-6 || figure[1] > 0.0);
                    assert!(wanted.is_empty(), "{} lacks {wanted:?}", context());
                }
                "statements" => {
                    let mut wanted = statements(&recordings[at], range);
                    for row in answer.iter().filter(|row| number(row, "calls") > 0.0) {
                        let key = text(row, "fingerprint");
                        let (calls, seconds, ..) =
                            wanted.remove(&key).unwrap_or_else(|| panic!("{} {row:?}", context()));
                        assert_eq!(number(row, "calls"), calls as f64, "{} {row:?}", context());
                        assert!(
                            close(number(row, "seconds"), seconds, 1e-6),
                            "{} {row:?} {seconds}",
                            context()
                        );
                    }
                    assert!(wanted.is_empty(), "{} lacks {wanted:?}", context());
                }
                "waits" => {
                    let mut wanted = waits(&recordings[at], range);
                    for row in &answer {
                        let (count, seconds, histogram, rate) = wanted
                            .remove(&text(row, "activity"))
                            .unwrap_or_else(|| panic!("{} {row:?}", context()));
                        assert_eq!(number(row, "waits"), count as f64, "{} {row:?}", context());
                        assert!(
                            close(number(row, "seconds"), seconds, 1e-6),
                            "{} {row:?} {seconds}",
                            context()
                        );
                        assert!(
                            has_quantiles(row, &histogram, rate),
                            "{} {row:?} {histogram:?}",
                            context()
                        );
                    }
                    wanted.retain(|_, wait| wait.0 > 0 || wait.1 > 1e-6);
                    assert!(wanted.is_empty(), "{} lacks {wanted:?}", context());
                }
                _ => {
                    let wanted = statements(&recordings[at], range);
                    assert_eq!(answer.len(), wanted.len(), "{}", context());
                    for row in &answer {
                        let (calls, _, histogram, rate) = &wanted[&text(row, "fingerprint")];
                        assert_eq!(number(row, "calls"), *calls as f64, "{} {row:?}", context());
                        assert!(
                            has_quantiles(row, histogram, *rate),
                            "{} {row:?} {histogram:?}",
                            context()
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn every_query_and_every_view_runs_in_both_engines() {
    let Some(engines) = engines() else { return };
    let fleet = fleet();
    for engine in &engines {
        let queries =
            ["hosts", "regressions", "outliers", "capacity", "blocking", "checkpoints", "health"];
        for query in queries {
            let answer = ask(engine, &fleet.root, query, &["--since", "-2d"]);
            match query {
                "hosts" | "capacity" => {
                    let hosts: Vec<String> = answer.iter().map(|row| text(row, "host")).collect();
                    assert_eq!(hosts.len(), 2, "{query} {hosts:?}");
                }
                "regressions" | "outliers" => {
                    assert!(answer.is_empty(), "{query} {answer:?}")
                }
                _ => {}
            }
        }
    }
    // The views count nothing twice, although every file of one host is there twice.
    let frames: usize = fleet
        .recordings
        .iter()
        .map(|recording| {
            let recording = Recording::open(recording.path(), None).unwrap();
            recording.frame_rows(Range::ALL).unwrap().len()
        })
        .sum();
    for (engine, name) in engines.iter().zip(["duckdb", "clickhouse"]) {
        let schema =
            output(tally().args(["fleet", "schema", "--engine", name, "--root"]).arg(&fleet.root));
        let views: Vec<&str> = schema
            .split("CREATE OR REPLACE VIEW ")
            .skip(1)
            .map(|text| text.split_once(' ').unwrap().0)
            .collect();
        assert!(views.contains(&"ledger") && views.contains(&"plans"), "{views:?}");
        let count = |view: &&str| format!("SELECT '{view}' AS view, count(*) AS n FROM {view}");
        let counts = views.iter().map(count).collect::<Vec<_>>().join(" UNION ALL ");
        let sql = format!("{schema}{counts};");
        let found = match name {
            "duckdb" => {
                let mut command = Command::new(engine);
                command.args(["-csv", "-c", &sql]);
                output(&mut assert_cmd::Command::from_std(command))
            }
            _ => session(engine, "", "CSV", &sql).concat(),
        };
        let wanted = format!("intervals,{frames}");
        assert!(found.replace('"', "").lines().any(|line| line == wanted), "{wanted}: {found}");
    }
}

/// A recording of statements that take nearly the same time whenever they are executed, because they sleep: a
/// regression of one is certain even if the machine was busy with something else for a while.
const STEADY: &str = "steady-statements";

#[test]
#[ignore = "verify: a regression that is planted in a new recording is named"]
fn verify_a_regression_in_a_new_recording() {
    let Some(programs) = programs() else { return };
    let others =
        ["1", "1, 2", "1, 2, 3"].map(|columns| format!("select pg_sleep(0.005), {columns};\n"));
    let script = others.concat() + "select max(1) from pg_sleep(0.01);\n";
    let cluster = support::shared();
    let load = cluster.pgbench().load(Load::Script(script)).clients(4);
    let recording = fixtures::record(STEADY, &cluster, 25, [200, 1000], load).with_files();
    let text = "a planted regression is named with its hosts, and equal windows name nothing";
    Claim { text, alarm: 0.01, n: 1, m: 1 }.check(|_| {
        for engines in [Some(programs), spark()].into_iter().flatten() {
            regressions_are_named(engines, &recording);
            sessions_are_of_the_recorded_time(engines, &recording);
        }
        Trial { holds: true, result: "named".into(), half_width: "-".into() }
    });
}

#[test]
fn servers_of_two_versions_have_one_row_and_hosts_of_one_name_differ_by_cluster() {
    let Some(engines) = programs() else { return };
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("fleet");
    let (of_15, of_17) = ("commit::wait::IO:WALSync", "commit::wait::IO:WalSync");
    for (cluster, sync, end, ns) in [("a", of_15, "END", 1e5), ("b", of_17, "COMMIT", 9e5)] {
        let server = FakeServer {
            accounts: vec![(sync, ns, 0.0)],
            statements: vec![(end, 11, 1.0)],
            from_us: recent_us(),
            ..FakeServer::default()
        };
        let made = folder.path().join(cluster);
        server.write(&made, 20, |_, _| {});
        upload_as(&made, &root, (cluster, "db1"));
    }
    for engine in engines {
        let name = engine.name();
        let found = engine.ask(&root, "statements", &[]);
        assert_eq!(found.len(), 1, "{name} {found:?}");
        assert_eq!(text(&found[0], "top_host"), "b/db1");
        assert_eq!(number(&found[0], "hosts"), 2.0);
        let found = engine.ask(&root, "load", &[]);
        let syncs: Vec<&Row> =
            found.iter().filter(|row| text(row, "activity").ends_with("Sync")).collect();
        assert_eq!(syncs.len(), 2, "{name} {found:?}");
        for row in syncs {
            assert_eq!(text(row, "activity"), "IO:WalSync", "{name}");
        }
        let worst = engine.ask(&fleet().root, "p99", &[]);
        assert!(!worst.is_empty());
        for row in worst {
            let host = text(&row, "worst_host");
            assert!(HOSTS.iter().any(|name| host == format!("test/{name}")), "{name} {host}");
        }
    }
}

/// Makes recordings of four hours of hosts, the last three of which have a statement that is slower in the second
/// half.
fn generate(recording: &Fixture, root: &Path, hosts: usize) {
    let [_, python] = engines().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fleet/generate.py");
    let run = Command::new(python)
        .arg(script)
        .args([recording.path(), root])
        .args(["--hosts", &hosts.to_string()])
        .args(["--hours", "4", "--slice", "2", "--slower", "3", "--from", "2"])
        .args(["--statement", "select max(%"])
        .output()
        .unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

#[test]
fn a_planted_regression_is_named_with_its_hosts_and_equal_windows_name_nothing() {
    let Some(engines) = programs() else { return };
    regressions_are_named(engines, &Fixture::open(STEADY).with_files());
}

fn regressions_are_named(engines: &[Engine], recording: &Fixture) {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made");
    generate(recording, &made, 12);
    for engine in engines {
        let regressions = |since: &str, until: &str| {
            let day = |time: &str| format!("2026-03-02T{time}:00Z");
            engine.ask(&made, "regressions", &["--since", &day(since), "--until", &day(until)])
        };
        let found = regressions("02:00", "04:00");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(text(&found[0], "statement"), "select max($1) from pg_sleep($2)");
        assert_eq!(
            text(&found[0], "slower_hosts"),
            "made/host-0009, made/host-0010, made/host-0011"
        );
        assert_eq!([number(&found[0], "hosts_slower"), number(&found[0], "hosts")], [3.0, 12.0]);
        assert!((3.0..5.5).contains(&number(&found[0], "factor")), "{found:?}");
        assert!(regressions("01:00", "02:00").is_empty());
        assert!(regressions("03:00", "04:00").is_empty());
    }
}

#[test]
fn the_sessions_of_a_regression_are_of_the_recorded_time() {
    let Some(engines) = programs() else { return };
    sessions_are_of_the_recorded_time(engines, &Fixture::open(STEADY).with_files());
}

/// A host whose recording has a gap: the additional time of its statements is divided by its recorded time, not
/// by the length of the window.
fn sessions_are_of_the_recorded_time(engines: &[Engine], recording: &Fixture) {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made");
    generate(recording, &made, 5);
    let gap = "host-0004";
    let tables = std::fs::read_dir(made.join("v1")).unwrap().map(|entry| entry.unwrap().path());
    let last_hour = |table: std::path::PathBuf| {
        table.join(format!("cluster=made/host={gap}/date=2026-03-02/030001-60s.parquet"))
    };
    let removed = tables.filter(|table| std::fs::remove_file(last_hour(table.clone())).is_ok());
    assert!(removed.count() > 3, "tables have lost their last hour");
    let day = |time: &str| format!("2026-03-02T{time}:00Z");
    for engine in engines {
        let sessions = |until: &str, more: &[&str]| {
            let against = format!("{}..{}", day("00:00"), day("02:00"));
            let (since, until) = (day("02:00"), day(until));
            let period = ["--since", &since, "--until", &until, "--against", &against];
            let found = engine.ask(&made, "regressions", &[&period[..], more].concat());
            assert_eq!(found.len(), 1, "{} {found:?}", engine.name());
            number(&found[0], "sessions")
        };
        let of = |host: &str, until: &str| sessions(until, &["--host", host]);
        let (whole, half) = (of(gap, "04:00"), of(gap, "03:00"));
        assert!(whole > 0.0 && close(whole, half, 1e-9), "{} {whole} {half}", engine.name());
        let each = ["host-0002", "host-0003", gap].map(|host| of(host, "04:00"));
        let all = sessions("04:00", &[]);
        assert!(close(all, each.iter().sum(), 1e-9), "{} {all} {each:?}", engine.name());
    }
}

/// The problems and limits that `tally report` states, each with the sentences that follow it.
fn sentences_of_report(recording: &Path) -> Vec<Vec<String>> {
    let report = fixtures::report(recording);
    let sentences = report["findings"].as_array().unwrap().iter().map(|finding| {
        let details = finding["details"].as_array().into_iter().flatten().map(string);
        let remedy = finding["remedy"].as_object().map(|remedy| {
            [
                format!("What to do: {}", string(&remedy["text"])),
                format!("The cause is {}.", string(&remedy["confidence"])),
            ]
        });
        let text = std::iter::once(string(&finding["text"]));
        text.chain(remedy.into_iter().flatten()).chain(details).collect()
    });
    let is_of_rule = |sentences: &Vec<String>| {
        let begins = |words: &str| sentences.iter().any(|sentence| sentence.starts_with(words));
        begins("What to do: ") || begins("Limit: ")
    };
    sentences.filter(is_of_rule).collect()
}

/// The same of a host in the output of `tally fleet doctor --json`.
fn sentences_of_host(host: &Value) -> Vec<Vec<String>> {
    let lists = ["diagnoses", "limits"].map(|key| host[key].as_array().unwrap());
    let sentences = lists.into_iter().flatten().map(|diagnosis| {
        let text = string(&diagnosis["text"]);
        let evidence = diagnosis["evidence"].as_array().unwrap().iter().map(string);
        if diagnosis["kind"] == "limit" {
            return std::iter::once(format!("Limit: {text}")).chain(evidence).collect();
        }
        let begin = match diagnosis["consequence_of"].is_null() {
            true => "",
            false => "As a consequence: ",
        };
        let advice = format!("What to do: {}", string(&diagnosis["advice"]));
        let sure = format!("The cause is {}.", string(&diagnosis["confidence"]));
        std::iter::once(format!("{begin}{text}")).chain([advice, sure]).chain(evidence).collect()
    });
    sentences.collect()
}

fn string(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Conditions that the server reported, and the rules that find them.
fn conditions() -> [(&'static str, Value); 5] {
    [
        (
            "replication-slot",
            json!({"kind": "slot", "name": "forgotten", "state": "physical, inactive", "bytes": 10_u64 << 30}),
        ),
        (
            "prepared-transaction",
            json!({"kind": "prepared", "name": "xa-left-4711", "state": "shop", "database": "shop", "age_ns": 7_200_000_000_000_u64}),
        ),
        ("wraparound", json!({"kind": "age", "database": "shop", "count": 1_900_000_000_u64})),
        ("deadlocks", json!({"kind": "deadlocks", "database": "shop", "count": 3})),
        (
            "catalog-bloat",
            json!({"kind": "catalog", "database": "shop", "name": "pg_catalog.pg_attribute", "count": 1000, "bytes": 1_u64 << 30}),
        ),
    ]
}

/// All hosts have the same name; only their clusters tell them apart.
#[test]
fn the_doctor_says_the_same_of_a_fleet_as_a_report_of_each_recording() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("bucket");
    let begin = recent_us();
    let planted = PROBLEMS.iter().map(|problem| problem.name).chain(["idle", "pgbench-4-clients"]);
    let mut recordings: BTreeMap<&str, Fixture> =
        planted.map(|name| (name, Fixture::begun_at(name, begin))).collect();
    let rows: Vec<Value> = conditions().into_iter().map(|(_, columns)| columns).collect();
    recordings.insert("conditions", Fixture::begun_at("idle", begin).with_conditions(&rows));
    let recordings: BTreeMap<&str, Fixture> =
        recordings.into_iter().map(|(name, fixture)| (name, fixture.with_files())).collect();
    for (cluster, recording) in &recordings {
        let url = format!("file://{}", root.display());
        let mut ship = tally();
        ship.args(["ship", "--cluster", cluster]).arg(recording.path()).arg(url).assert().success();
    }
    let doctor = |more: &[&str]| {
        let mut doctor = tally();
        doctor.env("TZ", "UTC").args(["fleet", "doctor", "--since", "-2h", "--root"]).arg(&root);
        output(doctor.args(more))
    };
    let answer: Value = serde_json::from_str(&doctor(&["--json"])).unwrap();
    let hosts = answer["hosts"].as_array().unwrap();
    assert_eq!(hosts.len(), recordings.len());
    let is_healthy = |host: &&Value| host["healthy"] == true;
    let healthy = hosts.iter().filter(is_healthy).count();
    let text = doctor(&[]);
    let begin = format!("Healthy hosts: {healthy} of {},", hosts.len());
    assert!(healthy > 0 && text.starts_with(&begin), "{text}");
    // In the text, a sentence may be divided between lines.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = words(&text);
    for host in hosts {
        let cluster = host["cluster"].as_str().unwrap();
        assert_eq!((&host["host"], &host["failure"]), (&json!(fixtures::HOST), &Value::Null));
        let wanted = sentences_of_report(recordings[cluster].path());
        assert_eq!(sentences_of_host(host), wanted, "{cluster}");
        assert_eq!(host["healthy"], host["diagnoses"] == json!([]), "{cluster}");
        let alone = words(&doctor(&["--cluster", cluster]));
        for sentences in &wanted {
            let named = format!("{cluster}/{}: {}", fixtures::HOST, words(&sentences[0]));
            assert!(text.contains(&named), "{named}: {text}");
            let is_limit = sentences[0].starts_with("Limit: ");
            let shown = if is_limit { &sentences[..1] } else { sentences };
            shown.iter().for_each(|sentence| {
                assert!(alone.contains(&words(sentence)), "{sentence}: {alone}")
            });
        }
    }
    let of = |cluster: &str| hosts.iter().find(|host| host["cluster"] == cluster).unwrap();
    let rules = |cluster: &str| -> Vec<&Value> {
        of(cluster)["diagnoses"]
            .as_array()
            .unwrap()
            .iter()
            .map(|diagnosis| &diagnosis["rule"])
            .collect()
    };
    for (rule, _) in conditions() {
        assert!(rules("conditions").contains(&&json!(rule)), "{rule}: {:#}", of("conditions"));
    }
    assert!(of("pgbench-4-clients")["limits"].as_array().is_some_and(|all| !all.is_empty()));
}

/// Conditions of one host that the query `health` judges: those at which a rule of the doctor begins, or just below.
fn at_the_limits(is_problem: bool) -> Vec<Value> {
    use view::health::*;
    let below = i64::from(!is_problem);
    let condition = |kind: &str, state: &str, count: i64, bytes: i64, seconds: i64| json!({"kind": kind, "name": kind, "state": state, "count": count, "bytes": bytes, "age_ns": seconds * 1_000_000_000});
    let disk = LITTLE_SPACE_BYTES - 1 + below;
    vec![
        json!({"kind": "asked", "name": "objects"}),
        condition("age", "", 5, OLD_TRANSACTIONS - below, 0),
        condition("slot", "physical, inactive", 0, INACTIVE_SLOT_BYTES - below, 0),
        condition("slot", "logical", 0, ACTIVE_SLOT_BYTES - below, 0),
        condition("archiver", "archives", 0, WAITING_WAL_BYTES - below, 9),
        condition("disk", "", disk, 100 * disk, 0),
        condition("prepared", "shop", 0, 0, OLD_PREPARED_SECONDS as i64 - below),
        condition("replica", "async, streaming", 7, 3 << 20, 2),
        condition("receiver", "streaming", 7, 1 << 20, 4),
        condition("bloat", "", 9 << 20, 5 << 20, 60),
        condition("bloat", "", 9 << 20, 1 << 20, 60),
    ]
}

#[test]
fn the_health_of_a_fleet_is_judged_by_the_rules_of_the_doctor() {
    let Some(engines) = programs() else { return };
    health_is_that_of_the_doctor(engines);
}

#[test]
#[ignore = "verify: the query health names what the doctor finds, in Spark, too"]
fn verify_the_health_of_a_fleet() {
    let text = "the query health names what the doctor finds in the same recordings";
    Claim { text, alarm: 0.0, n: 1, m: 1 }.check(|_| {
        [programs(), spark()].into_iter().flatten().for_each(health_is_that_of_the_doctor);
        Trial { holds: true, result: "named".into(), half_width: "-".into() }
    });
}

fn health_is_that_of_the_doctor(engines: &[Engine]) {
    const RULES: [&str; 5] =
        ["wraparound", "replication-slot", "archiver", "full-disk", "prepared-transaction"];
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("bucket");
    let begin = recent_us();
    let archiver = |state: &str| {
        vec![
            json!({"kind": "asked", "name": "server"}),
            json!({"kind": "archiver", "name": "00000001", "state": state}),
        ]
    };
    let lost = json!({"kind": "slot", "name": "gone", "state": "physical, lost"});
    let hosts: [(&str, Vec<Value>); 7] = [
        ("at-the-limits", at_the_limits(true)),
        ("below", at_the_limits(false)),
        ("fails", archiver("fails: 00000002")),
        ("failed-once", archiver("failed: 00000002")),
        ("no-command", archiver("not configured")),
        ("lost", vec![json!({"kind": "asked", "name": ""}), lost]),
        ("unknown", Vec::new()),
    ];
    for (cluster, conditions) in &hosts {
        let recording = Fixture::begun_at("idle", begin).with_conditions(conditions);
        let recording = match *cluster {
            "below" => recording.with_settings(&[("work_mem", "8192"), ("jit", "off")]),
            _ => recording,
        };
        let recording = recording.with_files();
        let mut ship = tally();
        ship.args(["ship", "--cluster", cluster]).arg(recording.path());
        ship.arg(format!("file://{}", root.display())).assert().success();
    }
    let mut doctor = tally();
    doctor.args(["fleet", "doctor", "--json", "--since", "-2h", "--root"]).arg(&root);
    let found: Value = serde_json::from_str(&output(&mut doctor)).unwrap();
    let rules = |cluster: &str| {
        let hosts = found["hosts"].as_array().unwrap();
        let host = hosts.iter().find(|host| host["cluster"] == cluster).unwrap();
        let mut rules: Vec<&str> = host["diagnoses"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|found| RULES.into_iter().find(|rule| found["rule"] == *rule))
            .collect();
        rules.sort_unstable();
        rules.dedup();
        rules.join(", ")
    };
    assert_eq!(rules("at-the-limits").split(", ").count(), RULES.len());
    assert_eq!(rules("below"), "");
    for engine in engines {
        let answer = engine.ask(&root, "health", &["--since", "-2h"]);
        let name = engine.name();
        assert_eq!(text(&answer[0], "cluster"), "at-the-limits", "{name}: the worst one first");
        let row = |cluster: &str| answer.iter().find(|row| text(row, "cluster") == cluster);
        for (cluster, conditions) in &hosts {
            let Some(row) = row(cluster) else {
                assert!(conditions.is_empty(), "{name}: {cluster}");
                continue;
            };
            assert_eq!(text(row, "problems"), rules(cluster), "{name}: {cluster}");
        }
        let below = row("below").unwrap();
        let figures =
            ["slot_bytes", "waiting_bytes", "behind_bytes", "behind_seconds", "bloat_bytes"];
        let wanted = [(4_u64 << 30) - 1, (4 << 30) - 1, 3 << 20, 4, 6 << 20];
        assert_eq!(figures.map(|key| number(below, key)), wanted.map(|n| n as f64), "{name}");
        let share = view::health::OLD_TRANSACTIONS as f64 / view::health::WRAPAROUND as f64;
        assert!(close(number(below, "used_share"), share, 1e-6), "{name}: {below:?}");
        assert_eq!(text(below, "archiver"), "archives", "{name}");
        assert_eq!(text(below, "changed_settings"), "jit, work_mem", "{name}");
        assert_eq!(
            text(&answer[0], "changed_settings"),
            "",
            "{name}: the recorder's start is no change"
        );
    }
}

#[test]
fn the_doctor_names_hosts_that_it_cannot_diagnose() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("bucket");
    for (cluster, name) in [("quiet", "idle"), ("blocked", FORGOTTEN_TRANSACTION.name)] {
        let recording = Fixture::begun_at(name, recent_us()).with_files();
        let url = format!("file://{}", root.display());
        let mut ship = tally();
        ship.args(["ship", "--cluster", cluster]).arg(recording.path()).arg(url).assert().success();
    }
    let doctor = |arguments: &[&str]| {
        let mut doctor = tally();
        doctor.args(["fleet", "doctor", "--root"]).arg(&root).args(arguments);
        doctor
    };
    let text = output(&mut doctor(&["--since", "-2h"]));
    assert!(text.starts_with("Healthy hosts: 1 of 2,"), "{text}");
    assert!(text.contains("locks: 1 of 2 hosts") && text.contains("  blocked/"), "{text}");
    assert!(text.contains("Evidence and what to do: add --cluster and --host"), "{text}");
    // Another time range, in which nothing was recorded; and a host that does not exist.
    let text = output(&mut doctor(&["--until", "2026-01-02", "--since", "2026-01-01"]));
    assert!(text.starts_with("Healthy hosts: 0 of 2,") && text.contains("not diagnosed"), "{text}");
    let error = complaint(&mut doctor(&["--host", "nobody"]), 1);
    assert!(error.contains("no recording of this cluster and host"), "{error}");
    // The keys are documented.
    let answer = output(&mut doctor(&["--since", "-2h", "--json"]));
    let answer: Value = serde_json::from_str(&answer).unwrap();
    for object in [&answer, &answer["hosts"][0]] {
        assert_documented(PAGE, object.as_object().unwrap().keys());
    }
}

#[test]
fn what_cannot_be_asked_is_refused_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], status: i32, words: &str| {
        let text =
            complaint(tally().current_dir(folder.path()).arg("fleet").args(arguments), status);
        assert!(text.contains(words), "{arguments:?}: {text}");
    };
    std::fs::create_dir_all(folder.path().join("fleet/v1/frames")).unwrap();
    refused(&["ask", "nothing", "--engine", "duckdb", "--root", "fleet"], 2, "regressions");
    refused(&["ask", "load", "--engine", "oracle", "--root", "fleet"], 2, "clickhouse");
    refused(&["ask", "load", "--engine", "duckdb", "--root", "."], 2, "v1");
    refused(&["ask", "load", "--engine", "duckdb"], 2, "--root");
    refused(&["ask", "load", "--engine", "spark", "--root", "fleet"], 2, "tally fleet sql");
    refused(&["ask", "load", "--engine", "/nowhere/duckdb", "--root", "fleet"], 1, "install");
    refused(
        &["ask", "load", "--engine", "duckdb", "--root", "fleet", "--host", "a'b"],
        2,
        "letters",
    );
    refused(
        &["ask", "load", "--engine", "duckdb", "--root", "fleet", "--since", "+1h"],
        2,
        "14:30",
    );
    refused(
        &["ask", "load", "--engine", "duckdb", "--root", "fleet", "--against", "-1h"],
        2,
        "FROM..TO",
    );
    refused(&["ask", "load", "--engine", "http://127.0.0.1:1", "--since", "-1h"], 1, "127.0.0.1:1");
    refused(&["sql", "load", "--engine", "duckdb", "--root", "s3://it's"], 2, "character");
}
