// SPDX-License-Identifier: PostgreSQL
//! Passwords and similar secrets in statements are stored nowhere: each kind of statement is executed with a word
//! that is found nowhere afterwards, neither in what a role sees, nor in what the command prints and writes, nor
//! in the bytes of the segment and of the saved statements.

use std::path::Path;
use std::process::Stdio;

use postgres::Client;
use rustix::process::{kill_process, Pid, Signal};
use scratch::{Cluster, StopMode};

use crate::support;
use crate::support::otlp::Scripted;
use crate::support::owned::Owned;
use crate::support::recorder::Recorder;
use crate::support::serving::Serving;
use crate::support::{eventually, output, segment, tally};

/// The placeholder for the possible secret in each statement.
const SECRET: &str = "hunterzwei";

/// Each is executed by itself, may fail, and contains the secret in its text. In braces: the part that is kept.
const STATEMENTS: &[(&str, &str)] = &[
    // Roles.
    ("create role r password '!'", "create role r password $1"),
    ("create user u encrypted password '!' valid until '2099-01-01'", "create user u encrypted password $1 valid until $2"),
    ("create group g password '!'", "create group g password $1"),
    ("alter role r password E'a\\'!'", "alter role r password $1"),
    ("alter user r with password $$!$$", "alter user r with password $1"),
    ("alter role r password U&'\\0041!'", "alter role r password $1"),
    ("alter role r password 'a'\n'!' connection limit 5", "alter role r password $1 connection limit 5"),
    ("alter role r password 'a\\'\n'!'", "alter role r password $1"),
    ("alter role r connection limit 6 -- password was !", "alter role r connection limit 6 /* ... */"),
    ("alter role r /* ! */ connection limit 7", "alter role r /* ... */ connection limit 7"),
    // Foreign data.
    ("create foreign data wrapper w options (key '!')", "create foreign data wrapper w options (key $1)"),
    ("alter foreign data wrapper w options (set key '!')", "alter foreign data wrapper w options (set key $1)"),
    ("create server s foreign data wrapper w options (password '!')", "create server s foreign data wrapper w options (password $1)"),
    ("alter server s options (set password '!')", "alter server s options (set password $1)"),
    ("create user mapping for current_user server s options (user 'a', password '!')", "create user mapping for current_user server s options (user $1, password $2)"),
    ("alter user mapping for current_user server s options (set password '!')", "alter user mapping for current_user server s options (set password $1)"),
    ("create foreign table ft (a int options (token '!')) server s options (token '!')", "create foreign table ft (a int options (token $1)) server s options (token $2)"),
    ("alter foreign table ft options (set token '!')", "alter foreign table ft options (set token $1)"),
    ("import foreign schema x from server s into public options (token '!')", "import foreign schema x from server s into public options (token $1)"),
    // Replication.
    ("create subscription sub connection 'host=/nowhere password=!' publication p with (connect = false)", "create subscription sub connection $1 publication p with (connect = false)"),
    ("alter subscription sub connection 'host=/nowhere password=!'", "alter subscription sub connection $1"),
    // Programs and files.
    ("copy (select 1) to program 'cat >/dev/null; : !'", "copy (select 1) to program $1"),
    ("copy (select '!') to '/dev/null'", "copy (select $1) to $2"),
    ("copy r from program 'echo !'", "copy r from program $1"),
    // Settings.
    ("set app.password = !", "set app.password = $1"),
    ("set app.token = '!'", "set app.token = $1"),
    ("set session \"request.jwt.claims\" to '!'", "set session \"request.jwt.claims\" to $1"),
    ("set local app.key to a, '!'", "set local app.key to $1, $2"),
    ("set passwrod = !", "set passwrod = $1"),
    ("alter system set primary_conninfo = 'password=!'", "alter system set primary_conninfo = $1"),
    ("alter system set archive_command = 'a !'", "alter system set archive_command = $1"),
    ("alter system set app.secret to '!'", "alter system set app.secret to $1"),
    ("alter role r set app.password = !", "alter role r set app.password = $1"),
    ("alter role all in database postgres set app.secret to '!'", "alter role all in database postgres set app.secret to $1"),
    ("alter database postgres set app.key to '!' -- !", "alter database postgres set app.key to $1 /* ... */"),
    // Functions and their bodies.
    ("create function f() returns void language plpgsql as $f$ begin perform set_config('app.a', '!', false); alter role r password '!'; set app.b = !; end $f$", "create function f() returns void language plpgsql as $f$ begin perform set_config($1, $2, false); alter role r password $3; set app.b = $4; end $f$"),
    ("select f()", "select f()"),
    ("create function g(a text default '!') returns void language sql set app.c = ! as $$ alter role r password '!' $$", "create function g(a text default $1) returns void language sql set app.c = $2 as $$ alter role r password $3 $$"),
    ("alter function g(text) set app.c = !", "alter function g(text) set app.c = $1"),
    ("select g()", "select g()"),
    ("create function h() returns text language plpgsql as 'begin return ''!''; end'", "create function h() returns text language plpgsql as $1"),
    ("do $$ begin execute 'alter role r password ''!'''; end $$", "do $$ begin execute $1; end $$"),
    ("do language plnone $$ ! $$", "do language plnone $1"),
    ("create procedure p(a text) language plpgsql as $$ begin end $$", "create procedure p(a text) language plpgsql as $$ begin end $$"),
    ("call p('!')", "call p($1)"),
    // Queries within utility statements.
    ("create view v as select '!'::text as a", "create view v as select $1::text as a"),
    ("create materialized view m as select '!'::text as a", "create materialized view m as select $1::text as a"),
    ("create table ta as select '!'::text as a", "create table ta as select $1::text as a"),
    ("create table tb (a text default '!' check (a <> '!'))", "create table tb (a text default $1 check (a <> $2))"),
    ("alter table tb alter a set default '!'", "alter table tb alter a set default $1"),
    ("create index on tb ((a || '!'))", "create index on tb ((a || $1))"),
    ("create policy q on tb using (a = '!')", "create policy q on tb using (a = $1)"),
    ("create rule ru as on insert to tb do also notify n, '!'", "create rule ru as on insert to tb do also notify n, $1"),
    ("explain select '!'", "explain select $1"),
    ("explain analyze select '!'::text, 1", "explain analyze select $1::text, "),
    ("declare c cursor with hold for select '!'", "declare c cursor with hold for select $1"),
    ("prepare p2 (text) as select $1, '!'", "prepare p2 (text) as select $1, $2"),
    ("explain execute p2('!')", "explain execute p2($1)"),
    ("create table tc as execute p2('!')", "create table tc as execute p2($1)"),
    // Texts.
    ("security label for a on role r is '!'", "security label for a on role r is $1"),
    ("comment on table tb is '!'", "comment on table tb is $1"),
    ("notify n, '!'", "notify n, $1"),
    // Several statements.
    ("select 1 as several; alter role r password '!'; explain select 2; create table td as select 3", "alter role r password $1"),
    ("set standard_conforming_strings = off; alter role r password 'a\\'!'; select 4 as escaped", "alter role r password $1"),
    ("set standard_conforming_strings = on", "set standard_conforming_strings = "),
    // Queries.
    ("select set_config('app.d', '!', false)", "select set_config($1, $2, $3)"),
    ("select '!' as a where 'password=!' = $$!$$", "select $1 as a where $2 = $3"),
    // Text that the server does not understand is not a statement.
    ("alter role r passwort '!'", ""),
];

fn with_secret(text: &str) -> String {
    text.replace('!', SECRET)
}

/// Executes all of them; those that fail have been analysed before.
fn execute_all(client: &mut Client) {
    for (text, _) in STATEMENTS {
        let _ = client.batch_execute(&with_secret(text));
    }
    let _ = client.batch_execute("alter subscription sub disable");
    let _ = client.batch_execute("alter subscription sub set (slot_name = none)");
    for sql in [
        "drop subscription if exists sub",
        "drop function if exists f, g(text), h",
        "drop procedure if exists p",
        "drop materialized view if exists m",
        "drop view if exists v",
        "drop table if exists ta, tb, tc, td",
        "drop foreign data wrapper if exists w cascade",
        "alter system reset all",
        "alter role all in database postgres reset all",
        "alter database postgres reset all",
        "drop role if exists r, u, g",
        "deallocate all",
        "close all",
    ] {
        let _ = client.batch_execute(sql);
    }
}

/// A statement that returns after it was forgotten, when the server does not know the positions of its constants.
fn execute_forgotten(client: &mut Client) {
    let forgotten = with_secret("select '!' as forgotten, 4711");
    let prepared = client.prepare(&forgotten).unwrap();
    let utility = client.prepare(&with_secret("alter role postgres password '!'")).unwrap();
    client.batch_execute("select tally.reset()").unwrap();
    client.execute(&utility, &[]).unwrap();
    client.query(&prepared, &[]).unwrap();
}

fn server() -> Cluster {
    let settings = [
        ("shared_preload_libraries", "pg_tally"),
        ("pg_tally.statements", "all"),
        ("pg_tally.plan_threshold", "0"),
        ("pg_tally.slow_threshold", "0"),
        ("pg_tally.block_threshold", "1"),
        ("autovacuum", "off"),
    ];
    let cluster = support::start(support::plain().settings(settings));
    support::create_views(&cluster);
    cluster
}

fn assert_absent(what: &str, bytes: &[u8]) {
    let found = bytes.windows(SECRET.len()).position(|window| window == SECRET.as_bytes());
    if let Some(at) = found {
        let around = &bytes[at.saturating_sub(200)..(at + 100).min(bytes.len())];
        panic!("{what} has the secret: {}", String::from_utf8_lossy(around));
    }
}

/// Every file below a path.
fn assert_absent_below(what: &str, path: &Path) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            assert_absent_below(what, &entry.unwrap().path());
        }
    } else {
        let bytes = std::fs::read(path).unwrap();
        assert_absent(&format!("{what}, {}", path.display()), &bytes);
    }
}

/// What a superuser sees in each view.
fn views(client: &mut Client) -> String {
    let all =
        "select format('%I.%I', schemaname, viewname) from pg_views where schemaname = 'tally'";
    let mut seen = String::new();
    for row in client.query(all, &[]).unwrap() {
        let view: String = row.get(0);
        let sql = format!("select coalesce(string_agg(v::text, E'\\n'), '') from {view} v");
        seen += &client.query_one(&sql, &[]).unwrap().get::<_, String>(0);
    }
    seen
}

fn texts(client: &mut Client) -> Vec<String> {
    let sql = "select query from tally.statements where query is not null";
    client.query(sql, &[]).unwrap().iter().map(|row| row.get(0)).collect()
}

/// A program that writes to a file until it is interrupted.
struct Running(Owned);

impl Running {
    fn start(arguments: &[&str], cluster: &Cluster, to: &Path) -> Running {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("tally"));
        command.args(arguments).arg(segment(cluster)).stdin(Stdio::null()).stderr(Stdio::null());
        Running(Owned::new(command.stdout(std::fs::File::create(to).unwrap()).spawn().unwrap()))
    }

    fn interrupt(self) {
        kill_process(Pid::from_child(&self.0), Signal::INT).unwrap();
        self.0.wait();
    }
}

#[test]
fn no_output_and_no_file_has_a_secret_of_any_statement() {
    let mut cluster = server();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut observer = cluster.connect().unwrap();
    let mut client = cluster.connect().unwrap();
    let pid = support::pid_of(&mut client);

    let receiver = Scripted::start("/v1/", &[]);
    let mut serving = std::process::Command::new(assert_cmd::cargo::cargo_bin("tally"));
    serving.env("OTEL_EXPORTER_OTLP_COMPRESSION", "none");
    let serving = Serving::start_command(
        serving,
        cluster.data_dir().to_str().unwrap(),
        "127.0.0.1:0",
        &["--no-token", "--otlp", &receiver.url(), "--otlp-interval", "1s", "--statements", "100"],
    );
    let recorder = Recorder::start(&cluster, &at("recording"), &["--interval", "100ms"]);
    let number = pid.to_string();
    let spans = Scripted::start("/v1/traces", &[]);
    let watchers = [
        Running::start(&["events", "--follow"], &cluster, &at("events.txt")),
        Running::start(&["top", "--json", "--interval", "0.2"], &cluster, &at("top.json")),
    ];

    let sure = "select 4712 as done";
    for level in ["waits", "locks"] {
        output(tally().args(["level", level]).arg(cluster.data_dir()));
        observer.batch_execute("select tally.reset()").unwrap();
        // The text of a statement can be read after its first execution.
        client.batch_execute(sure).unwrap();
        let trace = at(&format!("trace.{level}.json"));
        let written = || std::fs::read_to_string(&trace).unwrap();
        let arguments = ["trace", &number, "--json", "--nodes", "--otlp", &spans.url()];
        let tracer = Running::start(&arguments, &cluster, &trace);
        eventually("the session is traced", || {
            client.batch_execute("select 1").unwrap();
            written().contains("\"what\":\"trace\"")
        });
        execute_all(&mut client);
        let sql = format!("select coalesce(query, '') from tally.last_statement({pid})");
        let last: String = observer.query_one(&sql, &[]).unwrap().get(0);
        assert_absent("last_statement", last.as_bytes());
        eventually("all is read", || {
            client.batch_execute(sure).unwrap();
            written().contains("as done")
        });
        tracer.interrupt();
        assert!(written().contains("alter role r password $1"));
    }
    // Each was stored, without its secret.
    let kept = texts(&mut observer);
    let missing: Vec<_> = STATEMENTS
        .iter()
        .filter(|(_, shown)| !shown.is_empty() && !kept.iter().any(|text| text.starts_with(shown)))
        .map(|(text, shown)| format!("{text}\n   as {shown}"))
        .collect();
    assert!(missing.is_empty(), "{}\nkept:\n{}", missing.join("\n"), kept.join("\n"));

    // The blocking session's last statement contained a secret.
    client.batch_execute("create role r").unwrap();
    client.batch_execute("begin").unwrap();
    client.batch_execute(&with_secret("alter role r password '!'")).unwrap();
    let config = cluster.config();
    let waiting = std::thread::spawn(move || {
        let mut waiting = config.connect(postgres::NoTls).unwrap();
        // Fails once it has waited, because the role has changed.
        let _ = waiting.batch_execute(&with_secret("alter role r password '!!'"));
    });
    let blocked = "select count(*) > 0 from tally.blocking";
    eventually("it waits", || observer.query_one(blocked, &[]).unwrap().get::<_, bool>(0));
    let (data, live) = (cluster.data_dir().to_path_buf(), segment(&cluster));
    for arguments in [&["blocking"][..], &["blocking", "--json"]] {
        let seen = output(tally().args(arguments).arg(&data));
        assert!(seen.contains("alter role r password $1"), "{seen}");
        assert_absent("tally blocking", seen.as_bytes());
    }
    let sample = recorder.frames() + 3;
    eventually("it is recorded", || recorder.frames() >= sample);
    client.batch_execute("commit").unwrap();
    waiting.join().unwrap();

    assert_absent("the views", views(&mut observer).as_bytes());
    for arguments in [
        &["statements", "--limit", "1000"][..],
        &["statements", "--json"],
        &["top", "--once"],
        &["doctor"],
        &["doctor", "--json"],
        &["events"],
        &["events", "--json"],
        &["status"],
    ] {
        let seen = tally().args(arguments).arg(&data).output().unwrap();
        assert!(seen.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&seen.stderr));
        assert_absent(&format!("{arguments:?}"), &seen.stdout);
    }
    for path in ["/", "/report.json", "/metrics"] {
        assert_absent(path, serving.get(path).unwrap().as_bytes());
    }
    recorder.wait_for(2);
    recorder.end(Signal::INT);
    watchers.into_iter().for_each(Running::interrupt);
    for _ in 0..2 {
        assert_absent("metrics and logs by OTLP", &receiver.next().body);
    }
    serving.stop();
    let mut sent = Vec::new();
    while !String::from_utf8_lossy(&sent).contains("as done") {
        sent.extend(spans.next().body);
    }
    assert_absent("spans by OTLP", &sent);
    for (name, format) in
        [("report.html", None), ("report.txt", Some("--text")), ("report.json", Some("--json"))]
    {
        output(tally().arg("report").args(format).arg("-o").arg(at(name)).arg(at("recording")));
    }
    let recording = recording::Recording::open(&at("recording"), None).unwrap();
    let recorded = format!("{:?}", recording.statement_texts(recording::Range::ALL).unwrap());
    assert!(recorded.contains("alter role r password $1"));
    assert_absent("the recording's texts", recorded.as_bytes());
    assert_absent_below("what was written", folder.path());

    execute_forgotten(&mut client);
    let kept = texts(&mut observer);
    for text in ["select $1 as forgotten, $2", "alter role postgres password $1"] {
        assert!(kept.iter().any(|kept| kept == text), "{text} is not in\n{}", kept.join("\n"));
    }
    assert_absent("the segment", &std::fs::read(&live).unwrap());
    drop((client, observer));
    cluster.stop(StopMode::Fast).unwrap();
    let saved = data.join("pg_stat/pg_tally.statements");
    assert!(std::fs::metadata(&saved).unwrap().len() > 0);
    assert_absent("the saved statements", &std::fs::read(&saved).unwrap());
}
