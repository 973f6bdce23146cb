// SPDX-License-Identifier: PostgreSQL
//! A test bench of diagnoses that cannot be learnt by heart: problems of all kinds, mild and severe, are planted on servers with
//! other loads beside them, under names drawn by lot. `tally doctor` and a report on the same seconds must name the object, and
//! say nothing else; and nothing at all of healthy servers.
//!
//! ```text
//! kinds.rs      the kinds of problems      servers.rs   servers, loads beside a problem, loads without any
//! scene.rs      where one is planted       cases.rs     the generator: which cases a seed makes
//! score.rs      outcomes and their score
//! ```
//!
//! Half of a seed's cases are held out: rules are written by looking at the others. With PGTALLY_BENCH=DIRECTORY, outcomes are
//! kept there, and a run goes on where it stopped; PGTALLY_BENCH_HALF=development runs that half, PGTALLY_BENCH_KINDS=a,b these
//! kinds; after PGTALLY_BENCH_SECONDS no further case begins; PGTALLY_BENCH_LANES (2) cases are examined at the same time. With
//! PGTALLY_FIXTURES=write, a mild case of each kind becomes a recording that the tests of `doctor` read. With
//! PGTALLY_BENCH_SAMPLES=10, the server is sampled so many times a second, as if it had pg_stat_statements and no pg_tally.

mod cases;
mod kinds;
mod scene;
mod score;
mod servers;

use std::collections::VecDeque;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use cases::{cases, fixture_cases, Case};
use rustix::process::Signal;
use scene::Scene;
use score::{table, Outcomes, Score};
use scratch::Cluster;
use serde_json::{json, Value};
use servers::{Healthy, Profile, Server, HEALTHY};

use crate::support::fixtures::{self, report};
use crate::support::recorder::Recorder;
use crate::support::slow_disk::rerun_in_mount_namespace;
use crate::support::verify::{Claim, Trial};
use crate::support::{command_of, doctor, doctor_of};

/// How many cases are examined at the same time, and as many wait until their problems are old enough.
fn lanes() -> usize {
    variable("PGTALLY_BENCH_LANES").map_or(2, |lanes| lanes.parse().unwrap())
}

/// What is said of a server.
struct Findings {
    /// The problems that `tally doctor` names.
    problems: Vec<Value>,
    limits: Vec<Value>,
    /// The findings of a report on the same time.
    report: Vec<Value>,
}

fn array(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

/// Whether each word is part of a finding.
fn has_words(finding: &Value, words: &[String]) -> bool {
    let text = finding.to_string().replace("\\\"", "\"");
    words.iter().all(|word| text.contains(word))
}

/// Whether the finding is a problem: a limit has no advice in a report.
fn has_advice(finding: &Value) -> bool {
    !finding["remedy"].is_null()
}

/// How many samples a second the doctor has instead of pg_tally, beside pg_stat_statements.
fn samples() -> Option<String> {
    variable("PGTALLY_BENCH_SAMPLES")
}

/// Watches the server, live and by a recording in this directory.
fn watch(cluster: &Cluster, seconds: u64, directory: &Path) -> Findings {
    fixtures::wait_for_a_minute_with(seconds + 5);
    let (recorder, answer) = match samples() {
        Some(rate) => {
            let mut client = cluster.connect().unwrap();
            client.batch_execute("create extension if not exists pg_stat_statements").unwrap();
            let target = cluster.connection_string();
            let samples = ["--samples", &*rate];
            let more = [&["--detail", "1s"], &samples[..]].concat();
            let user = cluster.user();
            let recorder = Recorder::start_as(target.as_ref(), user, directory, &more);
            (recorder, doctor_of(target.as_ref(), seconds, &samples))
        }
        None => {
            (Recorder::start(cluster, directory, &["--detail", "1s"]), doctor(cluster, seconds))
        }
    };
    recorder.wait_for(1);
    recorder.end(Signal::KILL);
    Findings {
        problems: array(&answer["diagnoses"]),
        limits: array(&answer["limits"]),
        report: array(&report(directory)["findings"]),
    }
}

fn texts(findings: &[Value]) -> Vec<&str> {
    findings.iter().filter_map(|finding| finding["text"].as_str()).collect()
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Plants the problem of a case on this server and watches it.
fn examine(case: &Case, server: &mut Server) -> Value {
    server.prepare(case.background);
    let server = &*server;
    let cluster = &server.cluster;
    let mut scene = Scene::new(cluster, case.seed, case.severe, case.seconds);
    (case.kind.plant)(&mut scene);
    std::thread::sleep(Duration::from_secs(case.kind.ripens));
    let load = server.load(case.background);
    std::thread::sleep(Duration::from_secs(1));
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    let found = watch(cluster, case.seconds, &directory);
    if fixtures::are_written() {
        fixtures::write_planted(case.kind.name, &directory, cluster, &scene.truth);
    }
    let rule = |problem: &Value| problem["rule"].as_str().unwrap_or_default().to_owned();
    let is_of_kind = |problem: &Value| case.kind.rules.contains(&&*rule(problem));
    let is_right = |problem: &Value| is_of_kind(problem) && has_words(problem, &scene.truth);
    let is_consequence = |problem: &Value| {
        problem["consequence_of"].as_str().is_some_and(|of| case.kind.rules.contains(&of))
    };
    let is_wrong = |problem: &&Value| {
        !is_of_kind(problem)
            && !is_consequence(problem)
            && !case.kind.beside.contains(&&*rule(problem))
    };
    let wrong = found.problems.iter().filter(is_wrong);
    let first = found.problems.first().is_some_and(is_right);
    let said: Vec<String> = found
        .problems
        .iter()
        .chain(&found.limits)
        .map(|finding| {
            let details = array(&finding["evidence"]);
            let details = details.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ");
            format!(
                "{} ({}): {} | {details}",
                rule(finding),
                finding["seconds"],
                finding["text"].as_str().unwrap()
            )
        })
        .collect();
    let first_in_report =
        found.report.first().is_some_and(|finding| has_words(finding, &scene.truth));
    let cured = found
        .problems
        .iter()
        .find(|finding| is_right(finding))
        .filter(|_| !case.kind.cure.is_empty());
    let cured = cured.map(|finding| {
        follow(&scene, finding, case.kind.cure).is_ok_and(|()| has_ended(case, &scene))
    });
    drop(load);
    json!({
        "kind": case.kind.name,
        "background": format!("{:?}", case.background),
        "severe": case.severe,
        "seconds": case.seconds,
        "seed": case.seed,
        "held_out": case.held_out,
        "truth": scene.truth,
        "first": first,
        "named": found.problems.iter().any(is_right),
        "mechanism": found.problems.iter().any(is_of_kind),
        "wrong": wrong.map(rule).collect::<Vec<_>>(),
        "first_in_report": first_in_report,
        "report": texts(&found.report).into_iter().take(4).collect::<Vec<_>>(),
        "said": said,
        "cured": cured,
    })
}

/// Executes the commands of an advice that begin so, as a person would copy them.
fn follow(scene: &Scene, problem: &Value, commands: &[&str]) -> Result<(), String> {
    for begin in commands {
        let sql = command_of(problem, begin).ok_or_else(|| format!("{begin}: {problem}"))?;
        let mut client = scene.superuser();
        client.simple_query(&sql).map_err(|error| format!("{sql}: {error}"))?;
    }
    Ok(())
}

/// Whether the problem is named no more, now or a little later: what it has delayed must be done first.
fn has_ended(case: &Case, scene: &Scene) -> bool {
    let is_right = |finding: &Value| {
        let of_kind = finding["rule"].as_str().is_some_and(|rule| case.kind.rules.contains(&rule));
        of_kind && has_words(finding, &scene.truth)
    };
    (0..4).any(|_| !array(&doctor(scene.cluster, 3)["diagnoses"]).iter().any(is_right))
}

/// The server of a lane, kept from one case to the next.
#[derive(Default)]
struct Lane(Option<Server>);

impl Lane {
    fn examine(&mut self, case: &Case) -> Value {
        let ordinary = self.0.take().filter(|_| case.kind.profile == Profile::Ordinary);
        let Some(mut server) = ordinary.or_else(|| Server::start(case.kind.profile, case.severe))
        else {
            return json!({ "kind": case.kind.name, "error": "this machine cannot have such a server" });
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| examine(case, &mut server)));
        match outcome {
            Ok(outcome) => {
                if case.kind.profile == Profile::Ordinary {
                    self.0 = Some(server);
                }
                outcome
            }
            Err(error) => {
                let text = error.downcast_ref::<String>().cloned();
                let text =
                    text.or_else(|| error.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                json!({ "kind": case.kind.name, "seed": case.seed, "error": text })
            }
        }
    }
}

/// Runs the work of some lanes until all is done or it is time to end.
fn run<T: Send>(work: Vec<T>, lanes: usize, each: impl Fn(&mut Lane, T) + Sync) {
    let limit = variable("PGTALLY_BENCH_SECONDS").map(|limit| limit.parse().unwrap());
    let limit = limit.map(Duration::from_secs);
    let begin = Instant::now();
    let queue = Mutex::new(VecDeque::from(work));
    std::thread::scope(|scope| {
        for _ in 0..lanes {
            scope.spawn(|| {
                let mut lane = Lane::default();
                while limit.is_none_or(|limit| begin.elapsed() < limit) {
                    let Some(next) = queue.lock().unwrap().pop_front() else { break };
                    each(&mut lane, next);
                }
            });
        }
    });
}

/// The seed of the generator, and where outcomes are kept.
fn begin(of: &str) -> (u64, Outcomes, Option<tempfile::TempDir>) {
    let seed: u64 =
        variable("PGTALLY_SEED").map_or_else(rand::random, |seed| seed.parse().unwrap());
    let kept = variable("PGTALLY_BENCH").map(PathBuf::from);
    let (folder, temporary) = match kept {
        Some(folder) => (folder, None),
        None => {
            let folder = tempfile::tempdir().unwrap();
            (folder.path().to_path_buf(), Some(folder))
        }
    };
    std::fs::create_dir_all(&folder).unwrap();
    println!("seed {seed}, outcomes in {}", folder.display());
    let outcomes = Outcomes::open(&folder.join(format!("{of}-{seed}.jsonl")));
    (seed, outcomes, temporary)
}

fn claim(text: &str, result: String, holds: bool) {
    Claim { text, alarm: 0.05, n: 1, m: 1 }.check(|_| Trial {
        holds,
        result: result.clone(),
        half_width: "-".into(),
    });
}

#[test]
#[ignore = "verify: planted problems of all kinds are named first, with the right object"]
fn verify_planted_problems_are_named_first_with_the_right_object() {
    if rerun_in_mount_namespace(
        "doctor_bench::verify_planted_problems_are_named_first_with_the_right_object",
    ) {
        return;
    }
    let (seed, outcomes, _folder) = begin("planted");
    let half = variable("PGTALLY_BENCH_HALF").unwrap_or_default();
    let kinds = variable("PGTALLY_BENCH_KINDS");
    let is_wanted = |case: &Case| {
        let of_half = match &*half {
            "development" => !case.held_out,
            "held-out" => case.held_out,
            _ => true,
        };
        of_half
            && kinds.as_ref().is_none_or(|all| all.split(',').any(|kind| kind == case.kind.name))
    };
    let all = match fixtures::are_written() {
        true => fixture_cases(seed),
        false => cases(seed),
    };
    let all: Vec<Case> = all.into_iter().filter(is_wanted).collect();
    let open = all.iter().copied().filter(|case| !outcomes.has(&case.name()));
    let (ripening, others): (Vec<Case>, Vec<Case>) = open.partition(|case| case.kind.ripens > 0);
    let each = |lane: &mut Lane, case: Case| {
        let outcome = lane.examine(&case);
        outcomes.add(&case.name(), outcome);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| run(ripening, lanes(), each));
        run(others, lanes(), each);
    });
    let names: Vec<String> = all.iter().map(Case::name).collect();
    let found = outcomes.named(names.clone());
    println!("{}", table(&found));
    if found.len() < names.len() {
        println!("{} of {} cases are done", found.len(), names.len());
        return;
    }
    let score = Score::from_outcomes(&found);
    let of_all = |n: u32| format!("{n} of {}", score.cases);
    let part = |n: u32, wanted: f64| f64::from(n) >= wanted * f64::from(score.cases);
    claim(
        "planted problems have their mechanism named",
        of_all(score.mechanism),
        part(score.mechanism, 0.97),
    );
    claim(
        "planted problems are named first with the right object",
        of_all(score.first),
        part(score.first, 0.9),
    );
}

/// Watches a healthy server.
fn window(server: &Server, load: &Healthy, seconds: u64) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let found = watch(&server.cluster, seconds, &folder.path().join("recording"));
    let in_report: Vec<&Value> =
        found.report.iter().filter(|finding| has_advice(finding)).collect();
    json!({
        "kind": load.name,
        "seconds": seconds,
        "problems": texts(&found.problems),
        "evidence": found.problems,
        "limits": texts(&found.limits),
        "in_report": in_report,
    })
}

#[test]
#[ignore = "verify: healthy servers under loads of all kinds have no problem"]
fn verify_healthy_servers_have_no_problem() {
    /// Windows of a load, and the length of each, seconds.
    const WINDOWS: u64 = 8;
    const SECONDS: u64 = 10;

    let (_, outcomes, _folder) = begin("healthy");
    let name = |load: &Healthy, window: u64| format!("{} {window}", load.name);
    let open = HEALTHY.iter().filter(|load| !outcomes.has(&name(load, WINDOWS - 1)));
    run(open.collect(), lanes(), |_, load: &Healthy| {
        let mut server = Server::start(Profile::Ordinary, false).unwrap();
        let _work = load.start(&mut server);
        std::thread::sleep(Duration::from_secs(1));
        for n in 0..WINDOWS {
            outcomes.add(&name(load, n), window(&server, load, SECONDS));
        }
    });
    let names: Vec<String> =
        HEALTHY.iter().flat_map(|load| (0..WINDOWS).map(move |n| name(load, n))).collect();
    let found = outcomes.named(names.clone());
    let count = |key: &str| found.iter().map(|outcome| array(&outcome[key]).len()).sum::<usize>();
    let (live, in_report) = (count("problems"), count("in_report"));
    for window in found
        .iter()
        .filter(|outcome| outcome["problems"] != json!([]) || outcome["in_report"] != json!([]))
    {
        println!("{}: {:#} {:#}", window["name"], window["evidence"], window["in_report"]);
    }
    if found.len() < names.len() {
        println!(
            "{} of {} windows are done, {live} and {in_report} false",
            found.len(),
            names.len()
        );
        return;
    }
    let hours = (found.len() as u64 * SECONDS) as f64 / 3600.0;
    claim(
        "healthy servers have no problem, live and in reports",
        format!(
            "{live} and {in_report} false in {} windows, {:.1} an hour",
            found.len(),
            (live + in_report) as f64 / hours
        ),
        live + in_report == 0,
    );
}
