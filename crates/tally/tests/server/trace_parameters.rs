// SPDX-License-Identifier: PostgreSQL
//! `tally trace --parameters`: values of parameters are recorded only if the setting and the command both ask for them, and
//! recording them changes nothing for the traced session.

use std::process::{Command, Stdio};

use postgres::{Client, NoTls};
use rustix::process::{kill_process, Pid, Signal};
use scratch::Cluster;
use serde_json::Value;

use crate::support::{self, eventually, segment, sessions};
use crate::trace::{
    lines_about, owner_of_the_first_ring, server, session, wait_until_idle, Tracer,
};

/// A value that is found nowhere else.
const SECRET: &str = "hunterzwei";
const ON: &str = "set pg_tally.trace_parameters = on";

fn has_secret(bytes: &[u8]) -> bool {
    bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes())
}

/// What a trace left: its file, its messages, and the segment while it ran.
struct Traced {
    output: Vec<u8>,
    messages: String,
    segment: Vec<u8>,
}

/// Traces the session into a file while it executes a statement with the secret as a parameter.
fn traced(
    cluster: &Cluster,
    client: &mut Client,
    pid: i32,
    name: &str,
    arguments: &[&str],
) -> Traced {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join(name);
    let messages = folder.path().join("messages");
    let path = segment(cluster);
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("tally"));
    command.args(["trace", &pid.to_string(), "-o"]).arg(&output).args(arguments).arg(&path);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.stderr(std::fs::File::create(&messages).unwrap()).spawn().unwrap();
    eventually("the session is traced", || {
        client.batch_execute("select 1").unwrap();
        owner_of_the_first_ring(&path) == pid
    });
    let found: String = client.query_one("select $1::text", &[&SECRET]).unwrap().get(0);
    assert_eq!(found, SECRET);
    wait_until_idle(cluster);
    let segment = std::fs::read(&path).unwrap();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert!(child.wait().unwrap().success());
    Traced {
        output: std::fs::read(output).unwrap(),
        messages: std::fs::read_to_string(messages).unwrap(),
        segment,
    }
}

#[test]
fn values_are_recorded_only_if_the_setting_and_the_command_ask_for_them() {
    let cluster = server();
    let lines = &["t.jsonl"][..];
    let all = &["t.txt", "t.jsonl", "t.html", "t.otlp.json", "t.pftrace"][..];
    for (setting, arguments, names) in [
        ("off", &["--parameters"][..], lines),
        ("on", &[], lines),
        ("on", &["--nodes"], lines),
        ("on", &["--parameters"], all),
    ] {
        let asked = arguments.contains(&"--parameters");
        for name in names {
            let (mut client, pid) = session(&cluster);
            client.batch_execute(&format!("set pg_tally.trace_parameters = {setting}")).unwrap();
            let what = format!("{setting}, {arguments:?}, {name}");
            let traced = traced(&cluster, &mut client, pid, name, arguments);
            let expected = setting == "on" && asked;
            assert_eq!(has_secret(&traced.output), expected, "{what}");
            assert_eq!(has_secret(&traced.segment), expected, "the segment: {what}");
            let missed = traced.messages.contains("no parameters were recorded");
            assert_eq!(missed, setting == "off", "{what}: {}", traced.messages);
        }
    }
    // The memory of the ring is released with the trace.
    assert!(!has_secret(&std::fs::read(segment(&cluster)).unwrap()));
}

#[test]
fn readers_on_other_machines_do_not_get_rings() {
    let cluster = server();
    let (mut client, pid) = session(&cluster);
    support::create_views(&cluster);
    client.batch_execute(ON).unwrap();
    let arguments = [&pid.to_string(), "--json", "--parameters"];
    let tracer = Tracer::start(&cluster, &arguments).wait_for(&mut client);
    client.query("select $1::text", &[&SECRET]).unwrap();
    wait_until_idle(&cluster);
    assert!(has_secret(&std::fs::read(segment(&cluster)).unwrap()));
    let mut observer = cluster.connect().unwrap();
    let changed = observer.query("select changes from tally.segment_changes(0, 7)", &[]).unwrap();
    let image: Vec<u8> = changed.iter().flat_map(|row| row.get::<_, Vec<u8>>(0)).collect();
    assert!(!image.is_empty() && !has_secret(&image));
    let views: String = observer
        .query_one(
            "select string_agg(query_to_xml(format('select * from %I.%I', schemaname, viewname), true, false, '')::text, '')
             from pg_views where schemaname = 'tally'",
            &[],
        )
        .unwrap()
        .get(0);
    assert!(!has_secret(views.as_bytes()));
    drop(tracer.stop(&cluster));
}

/// The parameters of each execution of a trace, in order, as JSON.
fn parameters(lines: &[Value]) -> Vec<Value> {
    lines_about(lines, "parameters").into_iter().map(|line| line["parameters"].clone()).collect()
}

#[test]
fn each_kind_of_value_is_shown_whole_cut_or_not_at_all() {
    let cluster = server();
    cluster
        .psql(
            "create type colour as enum ('red'); create domain small as int; create type pair as (a text, b text);
             create domain pairs as pair[];
             create type own;
             create function own_in(cstring) returns own language internal strict immutable as 'textin';
             create function own_out(own) returns cstring language internal strict immutable as 'textout';
             create type own (input = own_in, output = own_out, like = text);
             create table parents (i int primary key); insert into parents values (4711);
             create table children (i int references parents)",
        )
        .unwrap();
    let (mut client, pid) = session(&cluster);
    client
        .batch_execute(
            "set pg_tally.trace_parameters = on; set bytea_output = hex;
             prepare simple (text, int, text, timestamptz, int[], jsonb) as select $1, $2, $3, $4, $5, $6;
             prepare long (text, text, bytea, bytea) as select length($1), length($2), length($3), length($4);
             prepare users (colour, small, pair, pair[], pairs, own, regclass) as select $1, $2, $3, $4, $5, $6, $7;
             set time zone 'UTC'",
        )
        .unwrap();
    let arguments = [&pid.to_string(), "--json", "--parameters"];
    let tracer = Tracer::start(&cluster, &arguments).wait_for(&mut client);
    client
        .batch_execute(
            "execute simple ('it''s', 42, null, '2026-01-02 03:04:05', '{1,2}', '{\"a\": 1}');
             execute long (repeat('ä', 1000), repeat('x', 50000000), decode(repeat('ab', 100), 'hex'),
                 decode(repeat('ab', 5000), 'hex'));
             execute users ('red', 7, row('hunterzwei', 'b'), array[row('hunterzwei', 'b')::pair],
                 array[row('hunterzwei', 'b')::pair]::pairs, 'hunterzwei', 'parents');
             insert into children values (4711)",
        )
        .unwrap();
    let many: Vec<String> = (1..=40).map(|n| format!("${n}::int")).collect();
    let values: Vec<i32> = (1..=40).collect();
    let values: Vec<&(dyn postgres::types::ToSql + Sync)> =
        values.iter().map(|value| value as _).collect();
    client.query(&format!("select {}", many.join(", ")), &values).unwrap();
    let lines = tracer.stop(&cluster);
    let found = parameters(&lines);
    assert_eq!(found.len(), 5, "{found:?}");
    let value = |number: u32, value: &str| serde_json::json!({"number": number, "value": value});
    assert_eq!(
        found[0],
        serde_json::json!([
            value(1, "it's"),
            value(2, "42"),
            {"number": 3, "value": null},
            value(4, "2026-01-02 03:04:05+00"),
            value(5, "{1,2}"),
            value(6, "{\"a\": 1}"),
        ])
    );
    let hex = format!("\\x{}", "ab".repeat(100));
    assert_eq!(
        found[1],
        serde_json::json!([
            {"number": 1, "value": "ä".repeat(120), "bytes": 2000},
            {"number": 2, "value": "x".repeat(240), "bytes": 50_000_000},
            value(3, &hex),
            {"number": 4, "bytes": 5000},
        ])
    );
    assert_eq!(
        found[2],
        serde_json::json!([
            value(1, "red"), value(2, "7"), {"number": 3}, {"number": 4}, {"number": 5}, {"number": 6},
            value(7, "parents"),
        ])
    );
    // The check of the foreign key, within the insert.
    assert_eq!(found[3], serde_json::json!([value(1, "4711")]));
    assert_eq!(lines_about(&lines, "parameters")[3]["depth"], 1);
    assert_eq!(found[4].as_array().unwrap().len(), 32);
    assert!(!has_secret(serde_json::to_string(&found).unwrap().as_bytes()));
    let sums = lines_about(&lines, "sums");
    assert_eq!((&sums[0]["records_lost"], &sums[0]["equals_ledger"]), (&0.into(), &true.into()));
}

#[test]
fn an_execution_that_fails_has_its_parameters_and_an_aborted_transaction_has_none() {
    let cluster = server();
    let (mut client, pid) = session(&cluster);
    client
        .batch_execute(
            "set pg_tally.trace_parameters = on; create table t as select 1 as i;
             create procedure p(a int) language plpgsql as 'begin execute ''select i / $1 from t'' using a; end';
             prepare divide (int) as select i / $1 from t; prepare add (int) as select i + $1 from t",
        )
        .unwrap();
    let arguments = [&pid.to_string(), "--json", "--parameters"];
    let tracer = Tracer::start(&cluster, &arguments).wait_for(&mut client);
    client.batch_execute("begin").unwrap();
    assert!(client.batch_execute("execute divide (0)").is_err());
    assert!(client.batch_execute("execute add (5)").is_err());
    client.batch_execute("rollback; execute add (6)").unwrap();
    assert!(client.execute("call p($1)", &[&0i32]).is_err());
    client.batch_execute("execute add (7)").unwrap();
    let lines = tracer.stop(&cluster);
    let found = parameters(&lines);
    let values: Vec<&str> = found.iter().filter_map(|all| all[0]["value"].as_str()).collect();
    // CALL, and the statement within it.
    assert_eq!(values, ["0", "6", "0", "0", "7"], "{found:?}");
    let steps = lines_about(&lines, "step");
    assert!(steps.iter().any(|step| step["name"] == "run" && step["failed"] == true));
    assert!(!cluster.log().contains("terminated by signal"));
}

#[test]
fn the_sums_have_the_parameters_of_the_slowest_executions() {
    let cluster = server();
    let (mut client, pid) = session(&cluster);
    client
        .batch_execute(
            "set pg_tally.trace_parameters = on; prepare pause (int, int) as select pg_sleep($1 / 1000.0), $2;
             execute pause (0, 0)",
        )
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("trace.txt");
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("tally"));
    command.args(["trace", &pid.to_string(), "--parameters", "-o"]).arg(&output);
    command.arg(segment(&cluster)).stdin(Stdio::null());
    let mut child = command.spawn().unwrap();
    eventually("the session is traced", || {
        client.batch_execute("select 1").unwrap();
        owner_of_the_first_ring(&segment(&cluster)) == pid
    });
    for (ms, n) in [(10, 1), (40, 2), (1, 3), (100, 4), (3, 5)] {
        client.batch_execute(&format!("execute pause ({ms}, {n})")).unwrap();
    }
    wait_until_idle(&cluster);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert!(child.wait().unwrap().success());
    let text = std::fs::read_to_string(&output).unwrap();
    let (messages, sums) = text.split_once("TOTAL ms").unwrap();
    for n in 1..=5 {
        assert!(messages.contains(&format!(", $2 = '{n}'")), "{text}");
    }
    let listed: Vec<(&str, &str)> =
        sums.lines().filter_map(|line| line.split_once("    $1 = ")).collect();
    let times: Vec<f64> = listed.iter().map(|(ms, _)| ms.trim().parse().unwrap()).collect();
    assert!(times.len() == 3 && times.is_sorted_by(|a, b| a >= b), "{text}");
}

#[test]
fn only_a_superuser_may_allow_it() {
    for cluster in [server(), sessions()] {
        cluster.psql("create role alice login").unwrap();
        let of_alice = |options: &str| {
            let mut config = cluster.config();
            config.user("alice").application_name("traced").options(options);
            config.connect(NoTls)
        };
        let is_shared = cluster.psql("show shared_preload_libraries").unwrap() == "pg_tally";
        let mut client = match is_shared {
            true => {
                assert!(of_alice("-c pg_tally.trace_parameters=on").is_err());
                let mut client = of_alice("").unwrap();
                assert!(client.batch_execute(ON).is_err());
                client
            }
            // The server does not know the setting, and its value from a client is ignored.
            false => of_alice("-c pg_tally.trace_parameters=on").unwrap(),
        };
        let pid = support::pid_of(&mut client);
        let found = traced(&cluster, &mut client, pid, "t.jsonl", &["--parameters"]);
        assert!(!has_secret(&found.output) && !has_secret(&found.segment), "{is_shared}");
        drop(client);
        cluster.psql("alter role alice set pg_tally.trace_parameters = on").unwrap();
        let mut client = of_alice("").unwrap();
        let pid = support::pid_of(&mut client);
        let found = traced(&cluster, &mut client, pid, "t.jsonl", &["--parameters"]);
        assert!(has_secret(&found.output), "{is_shared}");
    }
}
