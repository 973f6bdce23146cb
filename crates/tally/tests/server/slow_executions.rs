// SPDX-License-Identifier: PostgreSQL
//! `tally record --parameters`: the slowest executions of statements with their parameters, in recordings and reports. Values
//! are recorded only if the setting and the command both ask for them, and recording them changes nothing for the sessions.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use postgres::{Client, NoTls};
use recording::{Range, Recording, SlowExecutionRow};
use rustix::process::Signal;
use scratch::Cluster;
use segment::layout::header;
use serde_json::Value;

use crate::support::recorder::Recorder;
use crate::support::serving::Serving;
use crate::support::top::Top;
use crate::support::{self, complaint, eventually, output, segment, tally};

/// A value that is found nowhere else.
const SECRET: &str = "hunterzwei";
const ON: &str = "set pg_tally.trace_parameters = on";
const OFTEN: [&str; 4] = ["--interval", "100ms", "--detail", "200ms"];

/// A server that takes every execution for a slow one.
fn server(more: &[(&str, &str)]) -> Cluster {
    let builder = support::plain()
        .setting("shared_preload_libraries", "pg_tally")
        .setting("autovacuum", "off")
        .setting("pg_tally.plan_threshold", "0");
    support::start(builder.settings(more.iter().copied()))
}

fn has_secret(bytes: &[u8]) -> bool {
    bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes())
}

fn secret_below(path: &Path) -> bool {
    match path.is_dir() {
        true => std::fs::read_dir(path).unwrap().any(|entry| secret_below(&entry.unwrap().path())),
        false => has_secret(&std::fs::read(path).unwrap()),
    }
}

/// A recorder that has asked the sessions. When it ends, it records all that was done until then.
fn start(cluster: &Cluster, directory: &Path, more: &[&str]) -> Recorder {
    let recorder = Recorder::start(cluster, directory, &[&OFTEN[..], more].concat());
    recorder.wait_for(2);
    recorder
}

/// Records what `work` does.
fn recorded(cluster: &Cluster, directory: &Path, more: &[&str], work: impl FnOnce()) {
    let recorder = start(cluster, directory, more);
    work();
    recorder.end(Signal::TERM);
}

fn slow_executions(directory: &Path) -> Vec<SlowExecutionRow> {
    Recording::open(directory, None).unwrap().slow_executions(Range::ALL).unwrap()
}

/// The parameters of all slow executions whose statement's text begins with this, sorted.
fn parameters(directory: &Path, begin: &str) -> Vec<String> {
    let texts = Recording::open(directory, None).unwrap().statement_texts(Range::ALL).unwrap();
    let is_of = |row: &SlowExecutionRow| {
        let key = (row.queryid, row.database_id, row.user_id, row.toplevel);
        texts.get(&key).is_some_and(|text| text.text.starts_with(begin))
    };
    let mut rows = slow_executions(directory);
    rows.retain(is_of);
    let mut found: Vec<String> = rows.iter().map(|row| row.parameters.to_string()).collect();
    found.sort();
    found
}

/// The details of the statement in the report whose text begins with this.
fn details(directory: &Path, begin: &str) -> Value {
    let report: Value =
        serde_json::from_str(&output(tally().args(["report", "--json"]).arg(directory))).unwrap();
    let tables = report["tables"].as_array().unwrap();
    let statements = tables.iter().find(|table| table["id"] == "statements").unwrap();
    let details = statements["details"].as_array().unwrap().iter();
    let is_of =
        |detail: &&Value| detail["text"].as_str().is_some_and(|text| text.starts_with(begin));
    details.clone().find(is_of).unwrap_or_else(|| panic!("no {begin} in {statements:#}")).clone()
}

#[test]
fn values_are_recorded_only_if_the_setting_and_the_command_ask_for_them() {
    let cluster = server(&[]);
    let path = segment(&cluster);
    let folder = tempfile::tempdir().unwrap();
    for (setting, more) in [("off", &["--parameters"][..]), ("on", &[]), ("on", &["--parameters"])]
    {
        let expected = setting == "on" && more == ["--parameters"];
        let what = format!("{setting}, {more:?}");
        let directory = folder.path().join(what.replace(|c: char| !c.is_alphanumeric(), "_"));
        let mut client = cluster.connect().unwrap();
        client.batch_execute(&format!("set pg_tally.trace_parameters = {setting}")).unwrap();
        recorded(&cluster, &directory, more, || {
            let found: String = client.query_one("select $1::text", &[&SECRET]).unwrap().get(0);
            assert_eq!(found, SECRET);
            assert_eq!(has_secret(&std::fs::read(&path).unwrap()), expected, "segment: {what}");
        });
        let found = parameters(&directory, "select $1::text");
        let shown = format!("$1 = '{SECRET}'");
        assert_eq!(found, if expected { vec![shown] } else { Vec::new() }, "{what}");
        assert_eq!(slow_executions(&directory).is_empty(), !expected, "{what}");
        if !expected {
            assert!(!secret_below(&directory), "{what}");
        }
        let detail = details(&directory, "select $1::text").to_string();
        assert_eq!(detail.contains(SECRET), expected, "{what}: {detail}");
        let page = folder.path().join("page.html");
        output(tally().arg("report").arg(&directory).arg("-o").arg(&page));
        assert_eq!(has_secret(&std::fs::read(&page).unwrap()), expected, "page: {what}");
        // The memory of the ring is released with the recorder.
        assert!(!has_secret(&std::fs::read(&path).unwrap()), "afterwards: {what}");
    }
}

#[test]
fn a_report_has_the_slowest_executions_of_a_statement_with_their_times() {
    let cluster = server(&[]);
    let mut client = cluster.connect().unwrap();
    client.batch_execute(ON).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    let hostile = "</script><script>alert('42')</script>";
    let now = || std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    let begun = now();
    recorded(&cluster, &directory, &["--parameters"], || {
        let slow =
            client.prepare("select pg_sleep($1::float8 / 1000), $2::text as hostile").unwrap();
        for ms in [10.0, 40.0, 1.0, 100.0, 3.0] {
            client.query(&slow, &[&ms, &hostile]).unwrap();
        }
    });
    let detail = details(&directory, "select pg_sleep");
    let slow = detail["slow_executions"].as_array().unwrap();
    assert_eq!(slow.len(), 3, "{detail:#}");
    let time = |at: usize| slow[at][1].as_f64().unwrap();
    assert!(time(0) >= time(1) && time(1) >= time(2), "{slow:#?}");
    for execution in slow {
        let [ended, seconds] = [0, 1].map(|at| execution[at].as_f64().unwrap());
        let text = execution[2].as_str().unwrap();
        let (ms, rest) = text.strip_prefix("$1 = '").unwrap().split_once('\'').unwrap();
        assert!(seconds * 1000.0 >= ms.parse::<f64>().unwrap(), "{execution}");
        assert_eq!(rest, format!(", $2 = '{}'", hostile.replace('\'', "''")));
        assert!((begun..=now()).contains(&ended), "{execution}, begun at {begun}");
    }
    let page = folder.path().join("page.html");
    output(tally().arg("report").arg(&directory).arg("-o").arg(&page));
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("alert(''42'')") && !page.contains("<script>alert"));
}

#[test]
fn each_kind_of_value_is_shown_whole_cut_or_not_at_all() {
    let cluster = server(&[]);
    cluster
        .psql(
            "create type colour as enum ('red'); create domain small as int; create type pair as (a text, b text);
             create domain colours as colour[];
             create type own;
             create function own_in(cstring) returns own language internal strict immutable as 'textin';
             create function own_out(own) returns cstring language internal strict immutable as 'textout';
             create type own (input = own_in, output = own_out, like = text)",
        )
        .unwrap();
    let mut client = cluster.connect().unwrap();
    client
        .batch_execute(
            "set pg_tally.trace_parameters = on; set time zone 'UTC';
             prepare simple (text, int, text, timestamptz, int[], jsonb, small) as select 1 as simple, $1, $2, $3, $4, $5, $6, $7;
             prepare long (text, text, bytea) as select 2 as long, length($1), length($2), length($3);
             prepare digits (numeric[], numeric, text) as select 5 as digits, cardinality($1), length($2::text), $3;
             prepare users (colour, pair, pair[], colours, own) as select 3 as users, $1, $2, $3, $4, $5",
        )
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    recorded(&cluster, &directory, &["--parameters"], || {
        client
            .batch_execute(
                "execute simple ('it''s', 42, null, '2026-01-02 03:04:05', '{1,2}', '{\"a\": 1}', 7);
                 execute long (repeat('ä', 1000), repeat('x', 50000000), decode(repeat('ab', 5000), 'hex'));
                 execute digits (array_fill(1e131071, array[300]), 1, 'x');
                 execute users ('red', row('hunterzwei', 'b'), array[row('hunterzwei', 'b')::pair], '{red}', 'hunterzwei')",
            )
            .unwrap();
        let many: Vec<String> = (1..=40).map(|n| format!("${n}::int")).collect();
        let values: Vec<i32> = (1..=40).collect();
        let values: Vec<&(dyn postgres::types::ToSql + Sync)> =
            values.iter().map(|value| value as _).collect();
        client.query(&format!("select 4 as many, {}", many.join(", ")), &values).unwrap();
    });
    let [simple, long, users] = ["prepare simple", "prepare long", "prepare users"]
        .map(|begin| parameters(&directory, begin));
    assert_eq!(
        simple,
        ["$1 = 'it''s', $2 = '42', $3 = NULL, $4 = '2026-01-02 03:04:05+00', $5 = '{1,2}', $6 = '{\"a\": 1}', $7 = '7'"]
    );
    let [umlauts, letters] = ["ä".repeat(120), "x".repeat(240)];
    assert_eq!(
        long,
        [format!("$1 = '{umlauts}...' (2000 bytes), $2 = '{letters}...' (50000000 bytes), $3 = (not shown: 5000 bytes)")]
    );
    // What takes long is done once.
    let digits = parameters(&directory, "prepare digits");
    let begun = format!("$1 = '{{1{}...' (", "0".repeat(238));
    assert!(digits.len() == 1 && digits[0].starts_with(&begun), "{digits:?}");
    assert!(digits[0].ends_with(" bytes), $2 = (not shown: 4 bytes), $3 = 'x'"), "{digits:?}");
    let unshown: Vec<String> =
        (1..=5).map(|n| format!("${n} = (not shown: user-defined type)")).collect();
    assert_eq!(users, [unshown.join(", ")]);
    let many = parameters(&directory, "select $41 as many");
    assert!(many.len() == 1 && many[0].ends_with("$32 = '32', and 8 more"), "{many:?}");
    assert!(!secret_below(&directory));
}

/// The queries of a function may refer to memory of the statement that calls it, which no longer exists when they end.
#[test]
fn statements_within_others_have_no_parameters() {
    let cluster = server(&[("pg_tally.statements", "all")]);
    let mut client = cluster.connect().unwrap();
    client
        .batch_execute(
            "set pg_tally.trace_parameters = on;
             create table words as select n, repeat('word', 20) || n as word from generate_series(1, 1000) n;
             create function inner_sql(a text) returns setof text language sql volatile as
                 'select a || n::text as inner_sql from generate_series(1, 1000) n';
             create function inner_plpgsql(a text) returns bigint language plpgsql as
                 'declare n bigint; begin
                      execute ''select count(*) as inner_plpgsql from words where word > $1'' into n using a; return n;
                  end'",
        )
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    recorded(&cluster, &directory, &["--parameters"], || {
        // LIMIT ends the function's query together with the caller's, whose tables are closed by then.
        let sql = "select 1 as outer_sql, inner_sql(word || $1::text) from words limit 1";
        client.query(sql, &[&"a"]).unwrap();
        client.query("select 1 as outer_plpgsql, inner_plpgsql($1)", &[&"b"]).unwrap();
        client
            .batch_execute(
                "begin; declare c cursor for select 1 as of_cursor, inner_sql(word) from words; fetch c; commit",
            )
            .unwrap();
        // The caller is not counted, and the function's query is.
        client
            .batch_execute(
                "set pg_tally.statements = none;
                 select set_config('pg_tally.statements', 'all', false), inner_sql(word) from words limit 1",
            )
            .unwrap();
    });
    assert_eq!(parameters(&directory, "select $2 as outer_sql"), ["$1 = 'a'"]);
    assert_eq!(parameters(&directory, "select $2 as outer_plpgsql"), ["$1 = 'b'"]);
    let rows = slow_executions(&directory);
    assert!(rows.len() == 2 && rows.iter().all(|row| row.toplevel), "{rows:#?}");
    assert!(!cluster.log().contains("terminated by signal"));
}

#[test]
fn executions_that_fail_are_not_recorded_and_portals_and_cached_plans_are() {
    let cluster = server(&[]);
    let mut client = cluster.connect().unwrap();
    client
        .batch_execute(
            "set pg_tally.trace_parameters = on; create table t as select n as i from generate_series(1, 100) n",
        )
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    recorded(&cluster, &directory, &["--parameters"], || {
        let divide = client.prepare("select 1 as divide, i / $1 from t").unwrap();
        assert!(client.query(&divide, &[&0i32]).is_err());
        client.query(&divide, &[&1i32]).unwrap();
        // A portal that is read in parts, and one that is left when the transaction ends.
        let mut transaction = client.transaction().unwrap();
        let whole = transaction.bind("select 1 as of_portal, i + $1 from t", &[&2i32]).unwrap();
        while !transaction.query_portal(&whole, 30).unwrap().is_empty() {}
        let left = transaction.bind("select 2 as of_portal, i + $1 from t", &[&3i32]).unwrap();
        transaction.query_portal(&left, 30).unwrap();
        transaction.commit().unwrap();
        let update = client.prepare("update t set i = i + $1 where i < $2").unwrap();
        client.execute(&update, &[&4i32, &5i32]).unwrap();
        let mut aborted = client.transaction().unwrap();
        aborted.execute(&update, &[&6i32, &7i32]).unwrap();
        assert!(aborted.batch_execute("select 1 / 0").is_err());
        assert!(aborted.execute(&update, &[&8i32, &9i32]).is_err());
        drop(aborted);
    });
    assert_eq!(parameters(&directory, "select $2 as divide"), ["$1 = '1'"]);
    assert_eq!(parameters(&directory, "select $2 as of_portal"), ["$1 = '2'", "$1 = '3'"]);
    assert_eq!(
        parameters(&directory, "update t set"),
        ["$1 = '4', $2 = '5'", "$1 = '6', $2 = '7'"]
    );
}

#[test]
fn only_a_superuser_may_allow_it_and_readers_elsewhere_see_nothing() {
    let cluster = server(&[]);
    support::create_views(&cluster);
    cluster.psql("create role alice login").unwrap();
    let of_alice = || -> Client {
        let mut config = cluster.config();
        config.user("alice").connect(NoTls).unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    recorded(&cluster, &directory, &["--parameters"], || {
        let mut client = of_alice();
        assert!(client.batch_execute(ON).is_err());
        client.query("select 1 as refused, 2, $1::text", &[&SECRET]).unwrap();
        cluster.psql("alter role alice set pg_tally.trace_parameters = on").unwrap();
        of_alice().query("select 1 as allowed, $1::text", &[&SECRET]).unwrap();
        assert!(has_secret(&std::fs::read(segment(&cluster)).unwrap()));
        let mut observer = cluster.connect().unwrap();
        let changed =
            observer.query("select changes from tally.segment_changes(0, 7)", &[]).unwrap();
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
    });
    assert_eq!(parameters(&directory, "select $2 as refused"), [""; 0]);
    assert_eq!(parameters(&directory, "select $2 as allowed"), [format!("$1 = '{SECRET}'")]);
}

#[test]
fn sessions_record_again_for_the_next_recorder_after_a_crash_and_after_a_restart() {
    let mut cluster = server(&[]);
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    let is_armed = |cluster: &Cluster| {
        let bytes = std::fs::read(segment(cluster)).unwrap_or_default();
        let at = header::TRACES_ARMED;
        bytes.get(at..at + 8).is_some_and(|word| word.iter().any(|byte| *byte != 0))
    };
    let execute = |cluster: &Cluster, n: i32| {
        let mut client = cluster.connect().unwrap();
        client.batch_execute(ON).unwrap();
        client.query("select 1 as again, $1::int", &[&n]).unwrap();
    };
    recorded(&cluster, &directory, &["--parameters"], || execute(&cluster, 1));
    // Nobody asks.
    assert!(!is_armed(&cluster));
    execute(&cluster, 2);
    let recorder = start(&cluster, &directory, &["--parameters"]);
    let mut client = cluster.connect().unwrap();
    let pid = support::pid_of(&mut client);
    cluster.kill9(u32::try_from(pid).unwrap()).unwrap();
    eventually("the server recovers", || cluster.connect().ok());
    recorder.wait_for(3);
    eventually("the recorder asks again", || is_armed(&cluster));
    execute(&cluster, 3);
    recorder.wait_for(3);
    cluster.restart().unwrap();
    eventually("the recorder asks the new server", || is_armed(&cluster));
    execute(&cluster, 4);
    recorder.end(Signal::TERM);
    assert_eq!(parameters(&directory, "select $2 as again"), ["$1 = '1'", "$1 = '3'", "$1 = '4'"]);
}

#[test]
fn a_live_page_has_parameters_only_if_it_was_told_to_show_them() {
    let cluster = server(&[]);
    let mut client = cluster.connect().unwrap();
    client.batch_execute(ON).unwrap();
    for more in [&[][..], &["--parameters"]] {
        let options = [&["--interval", "100ms"], more].concat();
        let serving = Serving::at(&cluster, "127.0.0.1:0", &options);
        let report = || serving.get("/report.json").unwrap_or_default();
        eventually("there are figures", || report().contains("\"statements\""));
        client.query("select 1 as served, $1::text", &[&SECRET]).unwrap();
        eventually("the statement is on the page", || report().contains(" as served"));
        if more.is_empty() {
            assert!(!report().contains(SECRET));
            assert!(!has_secret(&std::fs::read(segment(&cluster)).unwrap()));
        } else {
            eventually("its parameters are, too", || {
                report().contains(&format!("$1 = '{SECRET}'"))
            });
        }
        assert!(!serving.get("/metrics").unwrap().contains(SECRET));
    }
    let mut open = tally();
    open.args(["serve", "--listen", "127.0.0.1:0", "--no-token", "--parameters"]);
    let refusal = complaint(open.arg(cluster.data_dir()), 2);
    assert!(refusal.contains("every user of this machine could read"), "{refusal}");
}

#[test]
fn top_has_parameters_only_if_the_setting_and_the_command_ask_for_them() {
    let cluster = server(&[]);
    let path = segment(&cluster);
    for (setting, more) in [("off", &["--parameters"][..]), ("on", &[]), ("on", &["--parameters"])]
    {
        let expected = setting == "on" && more == ["--parameters"];
        let mut client = cluster.connect().unwrap();
        client.batch_execute(&format!("set pg_tally.trace_parameters = {setting}")).unwrap();
        let mut top = Top::start(&[&["--interval", "0.1"], more].concat(), &path);
        top.interval();
        client.query("select 1 as in_top, $1::text", &[&SECRET]).unwrap();
        let is_in = |row: &Value| row["query"].as_str().is_some_and(|text| text.contains("in_top"));
        let mut statements = |what: &str, holds: &dyn Fn(&Value) -> bool| {
            eventually(what, || {
                let statements = top.interval()["statements"].take();
                holds(&statements).then_some(statements)
            })
        };
        let found = statements("the statement", &|found| {
            found["rows"].as_array().unwrap().iter().any(is_in)
        });
        assert_eq!(has_secret(&std::fs::read(&path).unwrap()), expected, "{setting}, {more:?}");
        if expected {
            let of_it = format!("$1 = '{SECRET}'");
            let found = statements("its parameters", &|found| {
                let slow = found["slow_executions"].as_array();
                slow.is_some_and(|slow| slow.iter().any(|row| row["parameters"] == *of_it))
            });
            assert!(found["slow_executions"][0]["seconds"].as_f64().unwrap() > 0.0, "{found:#}");
        } else {
            assert!(found.get("slow_executions").is_none() && !found.to_string().contains(SECRET));
        }
        drop(top);
    }
}

#[test]
fn refusals_name_what_is_wrong() {
    let cluster = server(&[("pg_tally.max_traces", "0")]);
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    let refused = |more: &[&str], code: i32| {
        let mut command = tally();
        command.args(["record", "--parameters", "-o"]).arg(&directory).args(more);
        let error = complaint(command.arg(segment(&cluster)), code);
        assert!(std::fs::read_dir(&directory).map_or(0, Iterator::count) == 0, "{error}");
        error
    };
    assert!(refused(&[], 1).contains("pg_tally.max_traces"));
    for texts in ["hash", "omit"] {
        assert!(refused(&["--texts", texts], 2).contains("--texts"));
    }
    let top = |more: &[&str], code: i32| {
        let mut command = tally();
        complaint(command.args(["top", "--parameters"]).args(more), code)
    };
    let path = segment(&cluster);
    let path = path.to_str().unwrap();
    assert!(top(&["--json", "--once", path], 1).contains("pg_tally.max_traces"));
    assert!(top(&["--once", path], 2).contains("--json"));
    assert!(top(&["--replay", path], 2).contains("--replay"));
}

#[test]
fn whoever_may_not_write_the_segment_cannot_ask() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let cluster = server(&[]);
    let path = segment(&cluster);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let directory = folder.path().join("recording");
    let record = |more: &[&str]| {
        let arguments =
            [&["record", "--for", "1s", "-o", directory.to_str().unwrap()], more].concat();
        support::as_user(65_534, 65_534, &arguments, &path)
    };
    let refused = record(&["--parameters"]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        refused.status.code() == Some(1) && error.contains("no permission to trace"),
        "{error}"
    );
    assert!(std::fs::read_dir(&directory).map_or(0, Iterator::count) == 0, "{error}");
    let top = |more: &[&str]| {
        let arguments = [&["top", "--json", "--once", "--interval", "0.1"], more].concat();
        support::as_user(65_534, 65_534, &arguments, &path)
    };
    let refused = top(&["--parameters"]);
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        refused.status.code() == Some(1) && error.contains("no permission to trace"),
        "{error}"
    );
    assert!(refused.stdout.is_empty());
    assert!(top(&[]).status.success());
    // It may read.
    let read = record(&[]);
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
}
