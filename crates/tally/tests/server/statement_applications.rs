// SPDX-License-Identifier: PostgreSQL
//! Statements of different applications are different ones, with pg_tally.statements_application.

use std::collections::BTreeMap;

use postgres::Client;
use recording::{Range, Recording};
use scratch::{Cluster, StopMode};
use segment::{Statement, StatementsReading};
use serde_json::Value;

use crate::support::reachable::Reachable;
use crate::support::{create_views, eventually, output, plain, segment, start, tally};

fn server(settings: &[(&str, &str)]) -> Cluster {
    let cluster = start(
        plain().setting("shared_preload_libraries", "pg_tally").settings(settings.iter().copied()),
    );
    create_views(&cluster);
    let sql = "create function work() returns int language plpgsql as $$
               begin perform 1 + 2 + 3; return 1; end $$";
    cluster.connect().unwrap().batch_execute(sql).unwrap();
    cluster
}

fn name(client: &mut Client, application: &str) {
    client.batch_execute(&format!("set application_name = '{application}'")).unwrap();
}

/// A session of an application.
fn session(cluster: &Cluster, application: &str) -> Client {
    let mut client = cluster.connect().unwrap();
    name(&mut client, application);
    client
}

/// A session of that role and application.
fn session_of(cluster: &Cluster, role: &str, application: &str) -> Client {
    let mut config = cluster.config();
    config.user(role).application_name(application).connect(postgres::NoTls).unwrap()
}

/// "application calls" of the statements like this.
fn rows(client: &mut Client, query: &str) -> Vec<String> {
    let sql = "select coalesce(application, 'null') || ' ' || calls from tally.statements
               where query like $1 order by 1";
    client.query(sql, &[&query]).unwrap().iter().map(|row| row.get(0)).collect()
}

#[test]
fn statements_are_told_apart_by_application_only_where_that_is_asked_for() {
    let cluster = server(&[("pg_tally.statements", "all")]);
    let mut observer = session(&cluster, "observer");
    let mut both = [session(&cluster, "shop"), session(&cluster, "billing")];
    let work = |clients: &mut [Client; 2]| {
        for client in clients {
            client.batch_execute("select work()").unwrap();
        }
    };
    work(&mut both);
    assert_eq!(rows(&mut observer, "select work()"), ["null 2"]);
    assert_eq!(rows(&mut observer, "%+ $2%"), ["null 2"]);
    let set = |clients: &mut [Client; 2], value: &str| {
        for client in clients {
            let sql = format!("set pg_tally.statements_application = {value}");
            client.batch_execute(&sql).unwrap();
        }
    };
    set(&mut both, "on");
    work(&mut both);
    work(&mut both);
    let all = ["billing 2", "null 2", "shop 2"];
    assert_eq!(rows(&mut observer, "select work()"), all);
    assert_eq!(rows(&mut observer, "%+ $2%"), all, "nested ones, too");
    set(&mut both, "off");
    work(&mut both);
    assert_eq!(rows(&mut observer, "select work()"), ["billing 2", "null 4", "shop 2"]);
    let sql =
        "select count(*) from tally.statements where application is not null and datname is null";
    assert_eq!(observer.query_one(sql, &[]).unwrap().get::<_, i64>(0), 0);
}

/// A session's application may change at any time. A message counts for the one that the session had when it arrived.
#[test]
fn a_session_that_changes_its_application_goes_on_as_the_other_one() {
    let cluster = server(&[("pg_tally.statements_application", "on")]);
    let mut observer = cluster.connect().unwrap();
    let mut client = session(&cluster, "shop");
    for application in ["billing", "shop", "billing", "shop"] {
        name(&mut client, application);
        client.batch_execute("select work()").unwrap();
        client.query("select work(), 1", &[]).unwrap();
    }
    client.batch_execute("set application_name = 'other'; select 'one message'").unwrap();
    client.batch_execute("select 'one message'").unwrap();
    client.batch_execute("begin; set local application_name = 'local'").unwrap();
    client.batch_execute("select 'local'").unwrap();
    client.batch_execute("rollback").unwrap();
    client.batch_execute("select 'local'").unwrap();
    client.batch_execute("set application_name = ''").unwrap();
    client.batch_execute("select 'no name'").unwrap();
    assert_eq!(rows(&mut observer, "select work()"), ["billing 2", "shop 2"]);
    assert_eq!(rows(&mut observer, "select work(), $1"), ["billing 2", "shop 2"]);
    // Constants are no difference of statements.
    assert_eq!(rows(&mut observer, "select $1"), ["local 1", "null 1", "other 2", "shop 1"]);
    // The time that is of no statement has its application as well.
    assert!(client.batch_execute("no statement").is_err());
    name(&mut client, "last");
    assert!(client.batch_execute("no statement").is_err());
    drop(client);
    let sql = "select count(*) from tally.statement_activities where queryid = 0 and application = 'last'";
    eventually("its time is there", || observer.query_one(sql, &[]).unwrap().get::<_, i64>(0) > 0);
}

#[test]
fn applications_are_kept_over_a_restart_and_are_the_same_in_every_output() {
    let mut cluster =
        server(&[("pg_tally.statements_application", "on"), ("pg_tally.plan_threshold", "0")]);
    let work = |cluster: &Cluster, times: usize| {
        for application in ["shop", "a \"quoted\" name, 100 %", "billing::eu"] {
            let mut client = session(cluster, application);
            for _ in 0..times {
                client.batch_execute("select count(*) from pg_class").unwrap();
            }
        }
    };
    let expected = |times: usize| {
        ["a \"quoted\" name, 100 %", "billing::eu", "shop"].map(|name| format!("{name} {times}"))
    };
    work(&cluster, 1);
    let query = "select count(*) from pg_class";
    for times in 1..3 {
        let mut observer = session(&cluster, "observer");
        assert_eq!(rows(&mut observer, query), expected(times));
        let sql = "select string_agg(application, ';' order by application collate \"C\")
                   from tally.plans where plan like '%pg_class%'
                   and queryid in (select queryid from tally.statements where query = $1)";
        let plans: String = observer.query_one(sql, &[&query]).unwrap().get(0);
        assert_eq!(plans, "a \"quoted\" name, 100 %;billing::eu;shop");
        let connection = cluster.connection_string();
        for target in [segment(&cluster).to_str().unwrap(), &connection] {
            let text = output(tally().args(["statements", "--json"]).arg(target));
            let json: Value = serde_json::from_str(&text).unwrap();
            let all = json["rows"].as_array().unwrap().iter();
            let own = all.filter(|row| row["query"] == query);
            let mut found: Vec<String> = own
                .map(|row| format!("{} {}", row["application"].as_str().unwrap(), row["calls"]))
                .collect();
            found.sort();
            assert_eq!(found, expected(times), "{target}");
            let of_one = ["statements", "--application", "billing::eu"];
            let text = output(tally().args(of_one).arg(target));
            assert!(text.contains("APPLICATION") && !text.contains("shop"), "{text}");
        }
        drop(observer);
        cluster.stop(StopMode::Fast).unwrap();
        cluster.start().unwrap();
        work(&cluster, 1);
    }
}

/// As in pg_stat_statements, everybody sees the figures. The application is shown as the text is.
#[test]
fn a_role_sees_the_applications_of_the_statements_that_it_sees() {
    let server = Reachable::start(&[("pg_tally.statements_application", "on")]);
    let mut other = session(&server.cluster, "secret");
    other.batch_execute("select 1 + 1").unwrap();
    let mut poor = session_of(&server.cluster, "poor", "mine");
    poor.batch_execute("select 1 + 1").unwrap();
    let sql = "select string_agg(distinct application, ',') from tally.statements";
    assert_eq!(poor.query_one(sql, &[]).unwrap().get::<_, &str>(0), "mine");
    let sql = "select string_agg(distinct application, ',') from tally.statement_activities";
    assert_eq!(poor.query_one(sql, &[]).unwrap().get::<_, &str>(0), "mine");
    // From elsewhere.
    let seen = |role: &str| {
        let text = output(tally().args(["statements", "--json"]).arg(server.full_string(role)));
        let json: Value = serde_json::from_str(&text).unwrap();
        let rows = json["rows"].as_array().unwrap();
        ["secret", "mine"].map(|name| rows.iter().any(|row| row["application"] == name))
    };
    assert_eq!([seen("poor"), seen("watcher")], [[false, true], [true, true]]);
}

/// Clients choose these names: they fill neither the directory of names nor more than the table of statements.
#[test]
fn the_applications_are_bounded_and_the_others_are_counted_together() {
    let cluster = server(&[
        ("pg_tally.statements_application", "on"),
        // Each SET is another statement before PostgreSQL 18.
        ("pg_tally.statements_utility", "off"),
        ("pg_tally.max_names", "256"),
        ("pg_tally.max_statements", "100"),
    ]);
    let mut client = session(&cluster, "first");
    for n in 0..200 {
        // Longer than a name may be: cut by the server.
        name(&mut client, &format!("{n:03}{}", "x".repeat(100)));
        client.batch_execute("select work()").unwrap();
    }
    drop(client);
    let mut observer = cluster.connect().unwrap();
    let status = |client: &mut Client, name: &str| -> String {
        let sql = "select value from tally.status where name = $1";
        client.query_one(sql, &[&name]).unwrap().get(0)
    };
    assert_eq!(status(&mut observer, "applications of statements"), "64");
    let overflow: u64 = status(&mut observer, "applications overflow").parse().unwrap();
    assert!(overflow >= 200 - 64, "{overflow}");
    assert_eq!(status(&mut observer, "names overflow"), "0");
    let sql = "select count(*) <= 100, bool_or(application is null and query = 'select work()'),
               max(length(application)) from tally.statements";
    let row = observer.query_one(sql, &[]).unwrap();
    assert_eq!((row.get::<_, bool>(0), row.get::<_, bool>(1)), (true, true));
    assert_eq!(row.get::<_, i32>(2), 63);
}

#[test]
fn a_recording_has_the_applications_and_adds_them_up_where_they_are_not_asked_for() {
    let cluster = server(&[("pg_tally.statements_application", "on")]);
    let directory = cluster.dir().join("recording");
    let psql = |application: &str| {
        let psql = cluster.binaries().program("psql");
        let sql = "select count(*) from pg_class";
        format!(
            "PGAPPNAME={application} {} -X -q -h {} -p {} -U {} -d postgres -c '{sql}'",
            psql.display(),
            cluster.host().display(),
            cluster.port(),
            cluster.user()
        )
    };
    let words = format!("{0}; {0}; {1}", psql("shop"), psql("billing"));
    let recording = tally()
        .args(["record", "--interval", "100ms", "--detail", "500ms", "-o"])
        .arg(&directory)
        .arg(segment(&cluster))
        .args(["--", "sh", "-c", &words])
        .assert();
    recording.success();
    let recording = Recording::open(&directory, None).unwrap();
    let calls = |reading: StatementsReading| {
        let of_query = |statement: &&Statement| {
            statement
                .text
                .as_ref()
                .is_some_and(|text| &*text.shown == "select count(*) from pg_class")
        };
        let own = reading.statements().iter().filter(of_query);
        let own = own.map(|statement| (statement.key.application.name(), statement.calls()));
        own.collect::<BTreeMap<_, _>>()
    };
    let apart = recording.statements(Range::ALL).unwrap().unwrap();
    assert_eq!(calls(apart), BTreeMap::from([(Some("billing"), 1), (Some("shop"), 2)]));
    let together = recording.statements_of_all_applications(Range::ALL, 0, |_| None).unwrap();
    assert_eq!(calls(together.unwrap().0), BTreeMap::from([(None, 3)]));
    let report = output(tally().args(["report", "--json"]).arg(&directory));
    let report: Value = serde_json::from_str(&report).unwrap();
    let tables = report["tables"].as_array().unwrap();
    let table = tables.iter().find(|table| table["id"] == "statements").unwrap();
    let columns = table["columns"].as_array().unwrap();
    assert!(columns.iter().any(|column| column["key"] == "application"), "{columns:#?}");
}
