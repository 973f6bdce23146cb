// SPDX-License-Identifier: PostgreSQL
//! Views of a server that does not load pg_tally, made of samples: what they show is there, what samples do not show is not,
//! and every figure says that it is an estimate.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Mutex;

use live::follower::{Figures, FollowOptions, Follower, Step};
use live::target::SegmentSource;
use postgres::{Client, NoTls};
use pq::Conninfo;
use scratch::{Cluster, StopMode};
use serde_json::Value;
use view::known::{is_among, COUNTED, COUNTED_IF_SET, EXECUTED, INTERVAL, STATEMENT};

use crate::support::fleet::{ask, engines, upload};
use crate::support::row_lock::session;
use crate::support::serving::Serving;
use crate::support::{
    complaint, eventually, has_module, output, plain, shared, start, tally, while_working,
};

/// A session that holds an advisory lock, and one that waits for it until it is dropped.
struct Queue {
    _holder: Client,
    holder: i32,
    waiter: i32,
    admin: Client,
    waits: Option<std::thread::JoinHandle<()>>,
}

impl Queue {
    fn start(cluster: &Cluster) -> Queue {
        let (mut holding, holder) = session(cluster, "holder");
        holding.batch_execute("begin; select pg_advisory_lock(7)").unwrap();
        let (mut waiting, waiter) = session(cluster, "waiter");
        let waits = std::thread::spawn(move || {
            // Ends by an error when the test ends.
            let _ = waiting.batch_execute("select pg_advisory_lock(7)");
        });
        let mut admin = cluster.connect().unwrap();
        eventually("the session waits", || {
            let waits = "select wait_event_type = 'Lock' from pg_stat_activity where pid = $1";
            let row = admin.query_one(waits, &[&waiter]).unwrap();
            row.get::<_, Option<bool>>(0) == Some(true)
        });
        Queue { _holder: holding, holder, waiter, admin, waits: Some(waits) }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let _ = self.admin.execute("select pg_terminate_backend($1)", &[&self.waiter]);
        if let Some(waits) = self.waits.take() {
            let _ = waits.join();
        }
    }
}

fn json(arguments: &[&str], target: &str) -> Value {
    serde_json::from_str(&output(tally().args(arguments).arg(target))).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

/// The account of this activity.
fn account<'j>(interval: &'j Value, activity: &str) -> &'j Value {
    let ledger = interval["ledger"].as_array().unwrap();
    let found = ledger.iter().find(|account| account["activity"] == activity);
    found.unwrap_or_else(|| panic!("no {activity} in {ledger:?}"))
}

#[test]
fn a_session_that_waits_for_a_lock_is_shown_with_its_blocker() {
    let cluster = start(plain());
    let queue = Queue::start(&cluster);
    let forest = json(&["blocking", "--json"], &cluster.connection_string());
    let root = &forest["roots"][0];
    assert_eq!(root["pid"], queue.holder, "{forest}");
    assert_eq!(root["application"], "holder", "{forest}");
    assert_eq!(root["state"], "idle in transaction", "{forest}");
    let waiter = &root["blocks"][0];
    assert_eq!(waiter["pid"], queue.waiter, "{forest}");
    assert_eq!(waiter["wait"]["lock_type"], "advisory", "{forest}");
    assert_eq!(waiter["wait"]["mode"], "ExclusiveLock", "{forest}");
    assert_eq!(waiter["wait"]["lock"], "advisory lock 7", "{forest}");
    assert_eq!(waiter["query"], "select pg_advisory_lock(?)", "{forest}");
    assert!(number(&waiter["statement_seconds"]) > 0.0, "{forest}");
}

#[test]
fn a_state_that_all_samples_see_takes_the_whole_interval_and_what_samples_do_not_show_is_null() {
    let cluster = start(plain());
    let queue = Queue::start(&cluster);
    let interval = json(&["top", "--once", "--json"], &cluster.connection_string());
    assert_eq!(interval["exact"], false);
    let sampling = &interval["sampling"];
    assert!(number(&sampling["samples"]) > 0.0, "{sampling}");
    assert!(number(&sampling["read_seconds"]) > 0.0, "{sampling}");
    let lock = account(&interval, "Lock:advisory");
    let length = number(&interval["interval_seconds"]);
    assert!((number(&lock["seconds"]) - length).abs() < 1e-6, "{lock} in {length} s");
    assert_eq!(lock["half_width_seconds"], 0.0, "{lock}");
    assert_eq!(lock["phase"], "active", "{lock}");
    for absent in
        ["count", "mean_seconds", "min_seconds", "max_seconds", "p50_seconds", "p99_seconds"]
    {
        assert!(lock[absent].is_null(), "{absent} in {lock}");
    }
    let sessions = interval["sessions"].as_array().unwrap();
    let of = |pid: i32| sessions.iter().find(|session| session["pid"] == pid).unwrap();
    assert_eq!(of(queue.waiter)["state"], "active");
    assert_eq!(of(queue.holder)["state"], "idle in transaction");
    // Of each session, the accounts add up to its life: time is conserved.
    for session in sessions {
        let accounts = session["accounts"].as_array().unwrap();
        let sum: f64 = accounts.iter().map(|account| number(&account["seconds"])).sum();
        assert!((sum - number(&session["lived_seconds"])).abs() < 1e-6, "{session}");
    }
    let text = output(
        tally()
            .args(["top", "--once", "--view", "waits", "--filter", "advisory"])
            .arg(cluster.connection_string()),
    );
    assert!(text.contains("! sampled "), "{text}");
    assert!(text.contains("install pg_tally for exact figures"), "{text}");
    let line = text.lines().find(|line| line.contains("Lock:advisory")).unwrap();
    assert!(line.contains('~') && line.contains('±'), "{line}");
}

/// The paths of all numbers, as crates/view/src/known.rs has them.
fn numbers(json: &Value, path: &str, found: &mut BTreeSet<String>) {
    match json {
        Value::Number(_) => {
            found.insert(path.to_string());
        }
        Value::Array(items) => items.iter().for_each(|item| numbers(item, path, found)),
        Value::Object(fields) => {
            for (name, field) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                numbers(field, &path, found);
            }
        }
        _ => {}
    }
}

#[test]
fn a_number_that_samples_do_not_tell_is_null_wherever_json_has_it() {
    let counted = has_module("pg_stat_statements");
    let mut builder = plain();
    if counted {
        builder = builder.setting("shared_preload_libraries", "pg_stat_statements");
    }
    let cluster = start(builder);
    let queue = Queue::start(&cluster);
    let target = cluster.connection_string();
    // What is not of the samples: statements, which follow, what the catalogs say, and who blocks whom.
    let others = [
        "statements.*",
        "blocking.*",
        "io.*",
        "uncovered_processes",
        "diagnosed_seconds",
        "diagnoses.*",
        "limits.*",
    ];
    let interval = json(&["top", "--once", "--json"], &target);
    let mut found = BTreeSet::new();
    numbers(&interval, "", &mut found);
    let is_known = |path: &String| is_among(path, INTERVAL) || is_among(path, &others);
    let unknown: Vec<&String> = found.iter().filter(|path| !is_known(path)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    for known in ["busy_half_width_seconds", "sessions.busy_half_width_seconds"] {
        assert!(found.contains(known), "{known} in {found:?}");
    }
    for absent in ["commands_handled", "own_commands", "locks_seconds", "functions_probed"] {
        assert!(interval[absent].is_null(), "{absent} is {}", interval[absent]);
    }
    for absent in ["commits", "checkpoints"] {
        let mut found = BTreeSet::new();
        numbers(&interval[absent], "", &mut found);
        assert!(interval[absent].is_object() && found.is_empty(), "{absent}: {found:?}");
    }
    assert!(interval["sessions"][0]["commands"].is_null(), "{}", interval["sessions"][0]);

    let rows = |counts: bool| {
        let all = json(&["statements", "--interval", "1s", "--json"], &target);
        let (mut found, mut of_table) = (BTreeSet::new(), BTreeSet::new());
        numbers(&all["rows"], "", &mut found);
        numbers(&all, "", &mut of_table);
        let known = [STATEMENT, if counts { EXECUTED } else { &[] }].concat();
        let known = if counts { [&known[..], COUNTED, COUNTED_IF_SET].concat() } else { known };
        let unknown: Vec<&String> = found.iter().filter(|path| !is_among(path, &known)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        let of_rows = ["rows.*", "table.*", "current.*"];
        let of_table = of_table.iter().filter(|path| !is_among(path, &of_rows));
        let all_known =
            ["time", "interval_seconds", "sample_seconds", "seconds", "half_width_seconds"];
        assert!(of_table.clone().all(|path| is_among(path, &all_known)), "{all}");
        (all, found)
    };
    let (all, found) = rows(false);
    assert!(found.contains("activities.half_width_seconds"), "{all}");
    assert!(found.contains("split.lock_half_width_seconds"), "{all}");
    let row = &all["rows"][0];
    assert!(row["calls"].is_null() && row["errors"].is_null(), "{row}");
    assert!(row["blocks"]["shared_hit"].is_null() && row["jit"]["functions"].is_null(), "{row}");
    assert!(row["failed"].is_object(), "{row}");
    if !counted {
        return;
    }
    // Known in another connection's first reading only after the extension is there.
    let mut client = cluster.connect().unwrap();
    client.batch_execute("create extension pg_stat_statements; create table t (a int)").unwrap();
    let client = Mutex::new(client);
    let call = |stop: &AtomicBool| {
        let mut client = client.lock().unwrap();
        while !stop.load(Ordering::Relaxed) {
            client.batch_execute("insert into t values (1)").unwrap();
        }
    };
    let (all, found) = while_working(&[&call], || rows(true));
    for known in ["calls", "rows", "blocks.shared_hit", "wal.bytes", "execution.count"] {
        assert!(found.contains(known), "{known} in {all}");
    }
    let is = |row: &&Value| row["query"].as_str().is_some_and(|query| query.contains("insert"));
    let row = all["rows"].as_array().unwrap().iter().find(is).unwrap_or_else(|| panic!("{all}"));
    assert!(row["errors"].is_null() && row["workers"].is_null(), "{row}");
    drop(queue);
}

#[test]
fn a_figure_of_a_table_from_samples_has_its_sign_or_is_absent() {
    let cluster = start(plain());
    let _queue = Queue::start(&cluster);
    let target = cluster.connection_string();
    let text = output(tally().args(["top", "--once", "--view", "sessions", &target]));
    assert!(text.contains("active on average ~") && text.contains(" ± "), "{text}");
    let heading = text.lines().find(|line| line.contains("CMD/S")).unwrap();
    let column = |name: &str| {
        let end = heading.find(name).unwrap() + name.len();
        move |line: &str| line[..end].split_whitespace().last().unwrap().to_string()
    };
    let line = text.lines().find(|line| line.contains("Lock:advisory")).unwrap();
    assert_eq!(column("CMD/S")(line), "-", "{text}");
    assert!(column("%BUSY")(line).starts_with('~'), "{text}");
    let statements = output(tally().args(["statements", "--interval", "1s", &target]));
    let heading = statements.lines().find(|line| line.contains("%TIME")).unwrap();
    let line = statements.lines().find(|line| line.contains("pg_advisory_lock")).unwrap();
    let ends = |name: &str| heading.find(name).unwrap() + name.len();
    for name in ["%TIME", "%LOCK"] {
        let cell: String = line.chars().take(ends(name)).collect();
        let cell = cell.split_whitespace().last().unwrap().to_string();
        assert!(cell.starts_with('~'), "{name}: {cell} in {statements}");
    }
}

#[test]
fn with_track_activities_off_a_session_that_waits_for_its_client_is_idle() {
    let cluster = start(plain().setting("track_activities", "off"));
    let (_idle, pid) = session(&cluster, "quiet");
    let interval = json(&["top", "--once", "--json"], &cluster.connection_string());
    let sessions = interval["sessions"].as_array().unwrap();
    let quiet = sessions.iter().find(|session| session["pid"] == pid).unwrap();
    assert_eq!((&quiet["state"], &quiet["phase"]), (&"idle".into(), &"idle".into()), "{quiet}");
    assert_eq!(quiet["busy_seconds"], 0.0, "{quiet}");
}

#[test]
fn a_view_that_samples_cannot_fill_says_so_instead_of_claiming_that_nothing_happened() {
    let cluster = start(plain());
    let target = cluster.connection_string();
    let text = output(tally().args(["top", "--once", &target]));
    for false_here in ["level waits", "clock ", "no operation ended", "no commit wrote", "Commands"]
    {
        assert!(!text.contains(false_here), "{false_here}: {text}");
    }
    assert!(
        text.contains("Files, commits, checkpoints, devices\n  not known from samples"),
        "{text}"
    );
    for view in ["commands", "lwlocks", "locks", "functions", "io"] {
        let text = output(tally().args(["top", "--once", "--view", view, &target]));
        assert!(text.contains("not known from samples: this needs pg_tally"), "{view}: {text}");
        assert!(!text.contains("tally level locks"), "{view}: {text}");
    }
}

#[test]
fn statements_have_sampled_time_and_the_counters_of_pg_stat_statements() {
    let counted = has_module("pg_stat_statements");
    let mut builder = plain();
    if counted {
        builder = builder.setting("shared_preload_libraries", "pg_stat_statements");
    }
    let cluster = start(builder);
    let mut client = cluster.connect().unwrap();
    if counted {
        client.batch_execute("create extension pg_stat_statements").unwrap();
    }
    let queue = Queue::start(&cluster);
    let target = cluster.connection_string();
    let all = json(&["statements", "--interval", "1s", "--json"], &target);
    let rows = all["rows"].as_array().unwrap();
    let is = |row: &&Value| {
        row["query"].as_str().is_some_and(|query| query.contains("pg_advisory_lock"))
    };
    let waiting = rows.iter().find(is).unwrap_or_else(|| panic!("{all}"));
    let length = number(&all["interval_seconds"]);
    assert!((number(&waiting["seconds"]) - length).abs() < 1e-6, "{waiting} in {length}");
    assert!(number(&waiting["half_width_seconds"]) > 0.0, "{waiting}");
    assert!(!waiting["query"].as_str().unwrap().contains('7'), "{waiting}");
    let activity = &waiting["activities"][0];
    assert_eq!(activity["activity"], "Lock:advisory", "{waiting}");
    drop(queue);
    if counted {
        // What has been called before is not of the interval; what is called during it is counted exactly.
        let client = Mutex::new(client);
        let calls = AtomicU64::new(0);
        let call = |stop: &AtomicBool| {
            let mut client = client.lock().unwrap();
            while !stop.load(Ordering::Relaxed) {
                client.batch_execute("select 1 as counted").unwrap();
                calls.fetch_add(1, Ordering::Relaxed);
            }
        };
        let all = while_working(&[&call], || {
            json(&["statements", "--interval", "1s", "--json"], &target)
        });
        let mut found = all["rows"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| row["query"].as_str().is_some_and(|query| query.contains("counted")));
        let row = found.next().unwrap_or_else(|| panic!("{all}"));
        assert!(found.next().is_none(), "{all}");
        let seen = row["calls"].as_u64().unwrap();
        assert!(0 < seen && seen <= calls.into_inner(), "{row}");
    }
}

/// Records a server for two seconds.
fn record(recording: &Path, target: &str, more: &[&str]) {
    let mut command = tally();
    command.args(["record", "--for", "2s", "-o"]).arg(recording).args(more).arg(target);
    output(&mut command);
}

#[test]
fn a_recording_of_samples_says_so() {
    let cluster = start(plain());
    let _queue = Queue::start(&cluster);
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("recording");
    record(&recording, &cluster.connection_string(), &[]);
    let interval: Value = serde_json::from_str(&output(
        tally().args(["top", "--once", "--json", "--replay"]).arg(&recording),
    ))
    .unwrap();
    assert!(number(&interval["sampling"]["samples"]) > 0.0, "{}", interval["sampling"]);
    let lock = account(&interval, "Lock:advisory");
    assert!(lock["count"].is_null() && lock["half_width_seconds"] == 0.0, "{lock}");
    let text = output(tally().arg("report").arg(&recording));
    assert!(text.contains("! Sampled ") && text.contains("for session "), "{text}");
}

#[test]
fn a_recording_of_samples_is_marked_for_those_who_query_it() {
    let cluster = start(plain());
    let _queue = Queue::start(&cluster);
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    record(&directory, &cluster.connection_string(), &[]);
    let recording = recording::Recording::open(&directory, None).unwrap();
    let frames = recording.frame_rows(recording.range()).unwrap();
    assert!(!frames.is_empty());
    for frame in frames {
        assert_eq!((&*frame.source, frame.exact), ("sampled", false));
    }
    let Some(engines) = engines() else { return };
    let root = folder.path().join("root");
    upload(&directory, &root, "one");
    for engine in &engines {
        let [host] = &ask(engine, &root, "hosts", &[])[..] else { panic!("one host") };
        assert_eq!(number(&host["exact_share"]), 0.0, "{host:?}");
        let load = ask(engine, &root, "load", &[]);
        let lock = load.iter().find(|row| row["activity"] == "Lock:advisory").unwrap();
        // One session waits all the time.
        assert!((number(&lock["sessions"]) - 1.0).abs() < 1e-6, "{lock:?}");
        assert!(lock["per_second"].is_null() && lock["source"] == "sampled", "{lock:?}");
        assert!(host["handled"].is_null(), "{host:?}");
        let waits = ask(engine, &root, "waits", &[]);
        let lock = waits.iter().find(|row| row["activity"] == "Lock:advisory").unwrap();
        assert!(lock["waits"].is_null() && lock["source"] == "sampled", "{lock:?}");
        assert!(ask(engine, &root, "p99", &[]).is_empty());
        // Nobody counted it, but samples saw it all the time.
        let statements = ask(engine, &root, "statements", &[]);
        let is_of_queue =
            |text: &Value| text.as_str().is_some_and(|text| text.contains("pg_advisory_lock"));
        let waiting = statements.iter().find(|row| is_of_queue(&row["statement"])).unwrap();
        let whole = number(&load[0]["seconds"]) / number(&load[0]["sessions"]);
        assert!(
            (number(&waiting["seconds"]) / whole - 1.0).abs() < 0.01,
            "{waiting:?} of {whole} s"
        );
        assert!(waiting["calls"].is_null() && waiting["source"] == "sampled", "{waiting:?}");
        std::process::Command::new("sh")
            .arg("-c")
            .arg(format!("rm -rf /tmp/smp; cp -r {} /tmp/smp", folder.path().display()))
            .status()
            .unwrap();
    }
}

#[test]
fn half_widths_of_recorded_statements_follow_from_the_samples_that_were_taken() {
    let cluster = start(plain());
    let _queue = Queue::start(&cluster);
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    // Far fewer than 100 per second.
    record(&directory, &cluster.connection_string(), &["--samples", "100", "--budget", "0.01%"]);
    let recording = recording::Recording::open(&directory, None).unwrap();
    let range = recording.range();
    let interval = segment::interval::Interval::from_frame(&recording.sum(range).unwrap());
    let sampling = interval.sampling.unwrap();
    assert!(sampling.per_second < 50.0, "{sampling:?}");
    let statements = recording.statements(range).unwrap().unwrap();
    let distance = statements.sample_seconds().unwrap();
    assert!((distance * sampling.per_second - 1.0).abs() < 1e-9, "{distance} {sampling:?}");
}

#[test]
fn a_recording_of_samples_is_compared_with_one_that_was_measured() {
    let cluster = shared();
    let _queue = Queue::start(&cluster);
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str| folder.path().join(name);
    record(&of("sampled"), &cluster.connection_string(), &["--samples", "50"]);
    record(&of("exact"), &cluster.connection_string(), &[]);
    let diff = |a: &str, b: &str| -> Value {
        let mut command = tally();
        command.args(["diff", "--json"]).arg(of(a)).arg(of(b));
        serde_json::from_str(&output(&mut command)).unwrap()
    };
    let compared = diff("sampled", "exact");
    assert_eq!(
        (&compared["a"]["source"], &compared["b"]["source"]),
        (&"sampled".into(), &"exact".into())
    );
    assert_eq!(compared["per"], "second");
    assert!(compared["left_out"].to_string().contains("A was made from samples"), "{compared}");
    // One row, although only the ledger has the phases of a command.
    let accounts = compared["accounts"].as_array().unwrap();
    let mut locks = accounts.iter().filter(|row| row["activity"] == "Lock:advisory");
    let lock = locks.next().unwrap();
    assert!(locks.next().is_none(), "{compared}");
    for side in ["a_seconds", "b_seconds"] {
        assert!((number(&lock[side]) - 1.0).abs() < 0.01, "{lock}");
    }
    // Two of samples can be compared, too.
    record(&of("again"), &cluster.connection_string(), &["--samples", "50"]);
    let compared = diff("sampled", "again");
    assert_eq!(compared["per"], "second");
}

#[test]
fn a_role_sees_what_postgresql_shows_it() {
    let cluster = start(plain());
    let queue = Queue::start(&cluster);
    cluster.psql("create role watcher login in role pg_monitor; create role nobody login").unwrap();
    let of =
        |role: &str| cluster.connection_string().replace("user=postgres", &format!("user={role}"));
    // Without those that come and go.
    let passing = [segment::own::PROCESS, "autovacuum worker"];
    let pids = |interval: &Value| -> BTreeSet<i64> {
        let sessions = interval["sessions"].as_array().unwrap().iter();
        let lasting =
            sessions.filter(|session| !passing.contains(&session["kind"].as_str().unwrap()));
        lasting.map(|session| session["pid"].as_i64().unwrap()).collect()
    };
    let shown = |role: &str| -> BTreeSet<i64> {
        let mut client = cluster.config().user(role).connect(NoTls).unwrap();
        let sessions = "select pid::int8 from pg_stat_activity where query is distinct from '<insufficient privilege>' \
                        and pid <> pg_backend_pid() and backend_type <> 'autovacuum worker' \
                        and application_name <> 'tally'";
        client.query(sessions, &[]).unwrap().iter().map(|row| row.get(0)).collect()
    };
    let watched = json(&["top", "--once", "--json"], &of("watcher"));
    assert!(pids(&watched).contains(&i64::from(queue.waiter)), "{}", watched["sessions"]);
    assert_eq!(pids(&watched), shown("watcher"));
    let own = cluster.config().user("nobody").connect(NoTls).unwrap();
    let hidden = json(&["top", "--once", "--json"], &of("nobody"));
    let sessions = hidden["sessions"].as_array().unwrap();
    assert!(sessions.iter().all(|session| session["user"] == "nobody"), "{sessions:?}");
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    assert_eq!(pids(&hidden), shown("nobody"));
    let host = hidden["server"]["host"].as_str().unwrap();
    assert!(host.contains("only sessions and statements of your own roles"), "{host}");
    drop(own);
}

#[test]
fn a_server_with_pg_tally_is_sampled_only_if_the_user_asks_for_it() {
    let cluster = shared();
    let target = cluster.connection_string();
    let measured = json(&["top", "--once", "--json"], &target);
    assert!(
        measured["sampling"].is_null() && measured["exact"] == true,
        "{}",
        measured["sampling"]
    );
    let sampled = json(&["top", "--once", "--json", "--samples", "50"], &target);
    assert!(number(&sampled["sampling"]["samples"]) > 0.0, "{}", sampled["sampling"]);
    for wrong in ["0", "101", "many"] {
        let error = complaint(tally().args(["top", "--once", "--samples", wrong]).arg(&target), 2);
        assert!(error.contains("between 1 and 100"), "{error}");
    }
    let error =
        complaint(tally().args(["top", "--once", "--samples", "10"]).arg(cluster.data_dir()), 2);
    assert!(error.contains("--samples requires a connection"), "{error}");
}

#[test]
fn doctor_says_that_its_figures_are_samples() {
    let cluster = start(plain());
    let _queue = Queue::start(&cluster);
    let text = output(tally().args(["doctor", "--for", "1s"]).arg(cluster.connection_string()));
    assert!(text.contains("sampled "), "{text}");
    assert!(text.contains("holder"), "{text}");
}

#[test]
fn a_server_that_is_gone_is_named_and_one_that_comes_back_is_sampled_again() {
    let mut cluster = start(plain());
    let target = cluster.connection_string();
    let source = SegmentSource::Samples(Conninfo::parse(&target).unwrap(), "100".parse().unwrap());
    let wanted = FollowOptions { figures: Figures::Intervals, ..FollowOptions::default() };
    let mut follower = Follower::open(source, wanted).unwrap();
    assert!(matches!(follower.step(true).pop(), Some(Step::Interval(_))));
    cluster.stop(StopMode::Immediate).unwrap();
    let mut said = String::new();
    eventually("the server is found to be gone", || {
        for step in follower.step(true) {
            said.push_str(&match step {
                Step::Ended(why) => format!("ended: {why}\n"),
                Step::Absent(why) => format!("absent: {why}\n"),
                _ => String::new(),
            });
        }
        said.contains("absent: ")
    });
    assert!(said.contains("ended: could not read the segment"), "{said}");
    assert!(said.contains("cannot connect to the server"), "{said}");
    let error = complaint(tally().args(["top", "--once"]).arg(&target), 1);
    assert!(error.contains("cannot connect to the server"), "{error}");
    cluster.start().unwrap();
    eventually("it is sampled again", || {
        matches!(follower.step(true).pop(), Some(Step::Interval(_)))
    });
}

#[test]
fn serve_shows_samples_as_estimates_and_samples_the_server_once() {
    let cluster = start(plain());
    let _queue = Queue::start(&cluster);
    let serving = Serving::start_command(
        std::process::Command::new(assert_cmd::cargo::cargo_bin("tally")),
        &cluster.connection_string(),
        "127.0.0.1:0",
        &["--no-token", "--samples", "20"],
    );
    let mut observer = cluster.connect().unwrap();
    let mut metrics = String::new();
    eventually("samples are counted", || {
        metrics = serving.metrics();
        metrics.contains("pgtally_samples_total")
    });
    let waits = metrics.lines().find(|line| line.contains("activity=\"Lock:advisory\""));
    assert!(waits.is_some_and(|line| line.starts_with("pgtally_time_seconds_total")), "{metrics}");
    // What samples do not show is missing.
    for absent in ["pgtally_wait_seconds", "pgtally_commits_total", "pgtally_events_total"] {
        assert!(!metrics.contains(absent), "{metrics}");
    }
    assert!(metrics.contains("samples/s\""), "{metrics}");
    // The readers of intervals and of totals share one session.
    let ours = "select count(*) from pg_stat_activity where application_name = 'tally' and query like '%tally_sample%'";
    let row = observer.query_one(ours, &[]).unwrap();
    assert_eq!(row.get::<_, i64>(0), 1);
}

#[test]
fn a_budget_makes_samples_fewer() {
    let cluster = start(plain());
    let target = cluster.connection_string();
    // Whatever a sample costs here, the smallest budget permits no more than one per second.
    let arguments =
        ["top", "--once", "--json", "--interval", "3s", "--samples", "100", "--budget", "0.01%"];
    let interval = json(&arguments, &target);
    let sampling = &interval["sampling"];
    assert!(number(&sampling["cost_share"]) > 0.0, "{sampling}");
    assert!(number(&sampling["per_second"]) < 50.0, "{sampling}");
    let error = complaint(tally().args(["top", "--once", "--budget", "0.5"]).arg(&target), 2);
    assert!(error.contains("must be a percentage of one CPU"), "{error}");
}

#[test]
fn a_password_comes_from_a_command_for_each_connection() {
    let cluster = start(plain());
    cluster.psql("create role watcher login password 'short-lived' in role pg_monitor").unwrap();
    let hba = cluster.data_dir().join("pg_hba.conf");
    let rules = std::fs::read_to_string(&hba).unwrap();
    std::fs::write(&hba, format!("local all watcher scram-sha-256\n{rules}")).unwrap();
    cluster.psql("select pg_reload_conf()").unwrap();
    let target = cluster.connection_string().replace("user=postgres", "user=watcher");
    let mut command = tally();
    command.env("PGTALLY_PASSWORD_COMMAND", "echo short-lived");
    let interval: Value =
        serde_json::from_str(&output(command.args(["top", "--once", "--json"]).arg(&target)))
            .unwrap();
    assert!(number(&interval["sampling"]["samples"]) > 0.0);
    let error = complaint(
        tally()
            .env("PGTALLY_PASSWORD_COMMAND", "echo no token >&2; exit 1")
            .args(["top", "--once"])
            .arg(&target),
        1,
    );
    assert!(error.contains("PGTALLY_PASSWORD_COMMAND failed"), "{error}");
}

#[test]
fn a_recording_that_begins_with_samples_goes_on_exactly_when_the_server_has_pg_tally() {
    let mut cluster = start(plain());
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("recording");
    let mut recorder = std::process::Command::new(assert_cmd::cargo::cargo_bin("tally"))
        .args(["record", "-o"])
        .arg(&recording)
        .arg(cluster.connection_string())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let report = || -> Option<Value> {
        let made = tally().args(["report", "--json"]).arg(&recording).output().unwrap();
        serde_json::from_slice(&made.stdout).ok()
    };
    let exactness = |report: &Value| -> String { report["measured"].to_string() };
    eventually("samples are recorded", || {
        report().is_some_and(|report| exactness(&report).contains("samples/s of the server"))
    });
    cluster.stop(StopMode::Fast).unwrap();
    let settings = cluster.data_dir().join("postgresql.auto.conf");
    std::fs::write(&settings, "shared_preload_libraries = 'pg_tally'\n").unwrap();
    cluster.start().unwrap();
    let mut last = Value::Null;
    eventually("the rest is recorded exactly", || {
        last = report().unwrap_or_default();
        exactness(&last).contains("the rest is exact")
    });
    // SAFETY: it has not been waited for, so the PID is its own.
    unsafe { libc::kill(recorder.id() as i32, libc::SIGINT) };
    assert!(recorder.wait().unwrap().success());
    let last = report().unwrap();
    let marks = last["marks"].to_string();
    assert!(marks.contains("exact from here, with pg_tally"), "{marks}");
}

#[test]
fn a_later_recorder_that_reads_exactly_marks_the_seam() {
    let mut cluster = start(plain());
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("recording");
    record(&recording, &cluster.connection_string(), &[]);
    cluster.stop(StopMode::Fast).unwrap();
    let settings = cluster.data_dir().join("postgresql.auto.conf");
    std::fs::write(&settings, "shared_preload_libraries = 'pg_tally'\n").unwrap();
    cluster.start().unwrap();
    record(&recording, &cluster.connection_string(), &[]);
    let text = output(tally().args(["report", "--json"]).arg(&recording));
    let report: Value = serde_json::from_str(&text).unwrap();
    let marks = report["marks"].to_string();
    assert!(marks.contains("exact from here, with pg_tally"), "{marks}");
}
