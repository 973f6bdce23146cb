// SPDX-License-Identifier: PostgreSQL
//! `tally doctor` names the culprit of planted problems first, and is silent about healthy servers: in recordings
//! of real servers (made by `doctor_planted`), and live if the test itself holds the problem.

use crate::support;
use std::time::Instant;

use super::doctor_planted::{server, Findings, HEALTHY, PROBLEMS};
use crate::support::fixtures::{self, Fixture};
use crate::support::recorder::Recorder;
use crate::support::{complaint, eventually, output, segment, start, tally};
use postgres::Client;
use recording::{Range, Recording};
use rustix::process::Signal;
use scratch::Cluster;
use serde_json::Value;

/// The diagnoses of a fixture, and the first thing that a person reads.
fn examine_fixture(name: &str) -> (Findings, String) {
    let fixture = Fixture::open(name);
    let diagnoses = fixture.interval()["diagnoses"].clone();
    let report = fixture.report()["findings"].clone();
    let text = report.as_array().unwrap().iter().map(|finding| {
        let details = finding["details"].as_array().into_iter().flatten();
        let remedy = &finding["remedy"];
        let remedy = remedy["text"].as_str().map(|text| {
            let sure = remedy["confidence"].as_str().unwrap();
            [format!("What to do: {text}"), format!("The cause is {sure}.")]
        });
        let details = details.map(|line| line.as_str().unwrap().to_string());
        let details = remedy.into_iter().flatten().chain(details);
        let details = details.map(|line| format!("    {line}\n"));
        format!("{}\n{}", finding["text"].as_str().unwrap(), details.collect::<String>())
    });
    let text = text.collect();
    (Findings { diagnoses, report }, text)
}

/// The diagnoses of these fixtures are right, and so are their texts.
fn examine_all<'a>(
    names: impl Iterator<Item = &'a str>,
    expected: impl Fn(&str, &Findings) -> Result<(), String>,
) {
    let all: Vec<_> = names.map(|name| (name, examine_fixture(name))).collect();
    let wrong = all.iter().filter_map(|(name, (found, _))| {
        let error = expected(name, found).err()?;
        Some(format!("{name}: {error}"))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    for (name, (_, text)) in &all {
        fixtures::assert_text(name, text);
    }
}

#[test]
fn planted_problems_are_named_first() {
    examine_all(PROBLEMS.iter().map(|problem| problem.name), |name, found| {
        let problem = PROBLEMS.iter().find(|problem| problem.name == name).unwrap();
        found.name_first(problem)
    });
}

/// A mild problem of each kind of the bench, by what is recorded of it.
#[test]
fn reports_name_planted_problems_first() {
    let all = fixtures::planted();
    let names = all.iter().map(|(name, _)| name.as_str());
    examine_all(names, |name, found| {
        let (_, truth) = all.iter().find(|(known, _)| known == name).unwrap();
        let first = &found.report[0];
        let text = first.to_string().replace("\\\"", "\"");
        let missing: Vec<&String> = truth.iter().filter(|word| !text.contains(*word)).collect();
        match missing.is_empty() && !first["remedy"].is_null() {
            true => Ok(()),
            false => Err(format!("{missing:?} are not in {first:#}")),
        }
    });
}

/// A replay names what the report of the same recording names, except for what is recorded only of several intervals together: who
/// starts sessions and who sends many statements, and how long each session waits for what.
#[test]
fn replays_name_planted_problems() {
    let not_named: Vec<String> = fixtures::planted()
        .into_iter()
        .filter_map(|(name, truth)| {
            let (fixture, mut replay) = (Fixture::open(&name), tally());
            replay.args(["top", "--json", "--replay"]).arg(fixture.path());
            let is_named = |line: &str| {
                let interval: Value = serde_json::from_str(line).unwrap();
                let mut all = interval["diagnoses"].as_array().unwrap().iter();
                all.any(|found| {
                    let text = found.to_string().replace("\\\"", "\"");
                    truth.iter().all(|word| text.contains(word))
                })
            };
            (!output(&mut replay).lines().any(is_named)).then_some(name)
        })
        .collect();
    let unknown =
        ["connection-storm", "row-by-row-autocommit", "slow-reader", "throttled-autovacuum"];
    assert_eq!(not_named, unknown.map(|name| format!("planted-{name}")));
}

/// Values of settings and dead rows are known at each moment of a replay, also in recordings of earlier versions.
#[test]
fn replays_know_the_settings_and_how_far_vacuum_is_behind() {
    let found = |name: &str, rule: &str| {
        let (fixture, mut replay) = (Fixture::open(name), tally());
        replay.args(["top", "--json", "--replay"]).arg(fixture.path());
        let replay = output(&mut replay);
        let steps = replay.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let of_rule = |step: Value| -> Option<Value> {
            step["diagnoses"].as_array()?.iter().find(|found| found["rule"] == rule).cloned()
        };
        (replay.lines().count(), steps.filter_map(of_rule).collect::<Vec<Value>>())
    };
    for name in ["forced-checkpoints", "planted-frequent-checkpoints"] {
        let (_, checkpoints) = found(name, "checkpoints");
        assert!(!checkpoints.is_empty(), "{name}");
        for diagnosis in checkpoints {
            let advice = diagnosis["advice"].as_str().unwrap();
            let begin = "Raise max_wal_size, which is 32MB now: ALTER SYSTEM SET max_wal_size = '";
            assert!(advice.starts_with(begin), "{name}: {advice}");
        }
    }
    for name in ["held-snapshot", "planted-held-snapshot"] {
        let (steps, vacuum) = found(name, "vacuum-behind");
        assert_eq!(vacuum.len(), steps, "{name}: {vacuum:#?}");
    }
}

#[test]
fn servers_that_are_idle_or_merely_busy_are_healthy() {
    examine_all(HEALTHY.into_iter(), |_, found| found.name_nothing());
}

/// The live output of the doctor, with a connection to the server.
fn examine_connected(cluster: &Cluster) -> Value {
    let mut doctor = tally();
    doctor.args(["doctor", "--json", "--for", "1"]).arg(segment(cluster)).env("PGUSER", "postgres");
    serde_json::from_str(&output(&mut doctor)).unwrap()
}

/// The first diagnosis is by this rule, and its text and evidence contain these words.
fn assert_first(answer: &Value, rule: &str, words: &[&str]) {
    let first = &answer["diagnoses"][0];
    assert_eq!(first["rule"], rule, "{answer:#}");
    for word in words {
        assert!(first.to_string().contains(word), "{word}: {answer:#}");
    }
    assert_eq!(answer["healthy"], false);
}

/// A session with this application name, and its PID.
fn session(cluster: &Cluster, application: &str) -> (Client, i32) {
    let mut client =
        cluster.config().application_name(application).connect(postgres::NoTls).unwrap();
    let pid = client.query_one("select pg_backend_pid()", &[]).unwrap().get(0);
    (client, pid)
}

/// Waits until this many sessions have looked up their blockers.
fn until_blocked(cluster: &Cluster, sessions: u64) {
    eventually("those that wait know for whom", || {
        let mut blocking = tally();
        blocking.args(["blocking", "--json"]).arg(segment(cluster)).env("PGUSER", "postgres");
        let forest: Value = serde_json::from_str(&output(&mut blocking)).unwrap();
        forest["blocked"] == sessions
    });
}

/// DDL waits for a reader, and others queue behind it; the test holds this for as long as the doctor watches.
#[test]
fn a_queue_for_a_lock_is_explained_live() {
    let cluster = start(server());
    cluster.psql("create table orders (n int); insert into orders values (0)").unwrap();
    let (mut root, pid) = session(&cluster, "report");
    root.batch_execute("begin; select n from orders").unwrap();
    let (mut ddl, ddl_pid) = session(&cluster, "migration");
    std::thread::scope(|scope| {
        // Dropped if a check fails, which ends the waits.
        let root = root;
        let alter = "alter table orders add column note text";
        scope.spawn(move || ddl.batch_execute(alter).unwrap());
        until_blocked(&cluster, 1);
        for _ in 0..2 {
            scope.spawn(|| cluster.psql("select n from orders").unwrap());
        }
        until_blocked(&cluster, 3);
        let waits = format!(" waits for session {pid} (report");
        let middle = format!("\\\"{alter}\\\" by session {ddl_pid} (migration");
        let others = "; 2 sessions queue behind it";
        let words = [&waits, &middle, others, "idle in transaction for", "lock_timeout"];
        assert_first(&examine_connected(&cluster), "locks", &words);
        drop(root);
    });
    eventually("nothing is wrong any more", || examine_connected(&cluster)["healthy"] == true);
}

#[test]
fn the_text_names_the_problem_the_evidence_and_what_to_do() {
    let cluster = start(server());
    let path = segment(&cluster);
    let begin = Instant::now();
    let text = output(tally().args(["doctor", "--for", "1"]).arg(&path));
    let (_, seconds) = text.split_once("watched for ").unwrap();
    let seconds: f64 = seconds.split(' ').next().unwrap().parse().unwrap();
    // It has two digits after the point.
    assert!((1.0..begin.elapsed().as_secs_f64() + 0.01).contains(&seconds), "{text}");
    assert!(text.contains("Healthy: nothing is wrong."), "{text}");
    tally().args(["level", "off"]).arg(&path).output().unwrap();
    let error = complaint(tally().args(["doctor", "--for", "1"]).arg(&path), 1);
    assert!(error.contains("nothing is measured at level off"), "{error}");
    let error = complaint(tally().args(["doctor", "--for", "never"]).arg(&path), 2);
    assert!(error.contains("--for"), "{error}");
}

/// Diagnoses that require a connection also appear in `tally top` and on the page of `tally serve`, but not
/// without one.
fn in_top_and_serve(cluster: &Cluster, words: &[&str]) {
    let top = |user: &str| -> Value {
        let mut top = tally();
        top.args(["top", "--once", "--json", "--interval", "2"]).arg(segment(cluster));
        serde_json::from_str(&output(top.env("PGUSER", user))).unwrap()
    };
    assert_first(&top("postgres"), "vacuum-behind", words);
    assert_eq!(top("nobody")["healthy"], true);
    let serving = support::serving::Serving::as_user(cluster, "postgres");
    eventually("the page has it", || {
        let report = serving.get("/report.json").unwrap_or_default();
        let report: Value = serde_json::from_str(&report).unwrap_or_default();
        let text = report["findings"][0]["text"].as_str().unwrap_or_default();
        words.iter().all(|word| text.contains(word))
    });
}

fn in_a_report(cluster: &Cluster, words: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    let recorder = Recorder::start(cluster, &directory, &[]);
    eventually("the server's answer is recorded", || {
        Recording::open(&directory, None)
            .and_then(|recording| recording.vacuum(Range::ALL))
            .is_ok_and(|(tables, _)| !tables.is_empty())
    });
    recorder.end(Signal::TERM);
    let report = output(tally().args(["report", "--json"]).arg(&directory));
    let report: Value = serde_json::from_str(&report).unwrap();
    let first = report["findings"][0].to_string();
    assert!(words.iter().all(|word| first.contains(word)), "{words:?}: {}", report["findings"]);
}

#[test]
fn who_keeps_vacuum_from_removing_rows_is_named() {
    let cluster = start(server());
    cluster
        .psql("create table t (id int, v int); insert into t select n, 0 from generate_series(1, 30000) n")
        .unwrap();
    let rule = |answer: &Value| answer["diagnoses"][0]["rule"].as_str().map(str::to_owned);
    assert_eq!(rule(&examine_connected(&cluster)), None);
    cluster.psql("update t set v = 1").unwrap();
    let mut examined = Value::Null;
    eventually("the server has counted the dead rows", || {
        examined = examine_connected(&cluster);
        rule(&examined).is_some()
    });
    assert_first(
        &examined,
        "vacuum-behind",
        &["Autovacuum is off", "table t of database postgres"],
    );

    // A report whose transaction was left open.
    let (mut report, pid) = session(&cluster, "report");
    report.batch_execute("begin isolation level repeatable read; select count(*) from t").unwrap();
    cluster.psql("update t set v = 2").unwrap();
    cluster.psql("vacuum t").unwrap();
    let of_session =
        format!("Session {pid} (application report, user postgres, database postgres)");
    let words =
        ["vacuum could not remove", "dead rows in table t", &of_session, "idle in transaction"];
    eventually("the server has counted what vacuum left", || {
        examined = examine_connected(&cluster);
        examined["diagnoses"][0]["text"].as_str().is_some_and(|text| text.contains(words[0]))
    });
    assert_first(&examined, "vacuum-behind", &words);
    in_top_and_serve(&cluster, &words);
    in_a_report(&cluster, &words);

    report.batch_execute("commit").unwrap();
    cluster.psql("vacuum t").unwrap();
    eventually("nothing is wrong any more", || {
        examined = examine_connected(&cluster);
        examined["healthy"] == true
    });
}
