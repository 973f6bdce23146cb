// SPDX-License-Identifier: PostgreSQL
//! The commands that a statement's page shows for its plan: a server accepts them, for statements of all kinds.

use std::process::Command;

use scratch::Cluster;
use serde_json::Value;

use crate::support::{output, plain, start, tally};

/// Statements, and a word of the reason if there are no commands.
const STATEMENTS: &[(&str, Option<&str>)] = &[
    ("select * from t where i = 42 and s = 'a'", None),
    ("select s from t where s like 'a%' or s ilike '%b' or s similar to 'c|d'", None),
    ("select i from t where i in (1, 2, 3) and s in ('a', 'b') order by i limit 10 offset 5", None),
    ("select i from t where at > now() - interval '1 day'", None),
    ("select at + interval '2' hour + interval(3) '1.5 s' from t where at >= date '2026-01-01'", None),
    ("select timestamp with time zone '2026-01-01 00:00+00' at time zone 'UTC'", None),
    ("select double precision '1.5', numeric(10, 2) '1.5', pg_catalog.int4 '7', point '(1,2)'", None),
    ("select date_trunc('hour', at), count(*) from t group by date_trunc('hour', at) order by date_trunc('hour', at)", None),
    ("select i + 1, sum(i) over (partition by i % 10 order by i rows 3 preceding) from t", None),
    ("select count(1), count(*), count(distinct s) from t having count(*) > 5", None),
    ("select case when i > 5 then 'big' else 'small' end, coalesce(s, 'none'), nullif(s, '') from t", None),
    ("select j -> 'a', j ->> 'b', j ? 'c', j @> '{\"a\": 1}' from t", None),
    ("select * from t where i between 1 and 10 and s is distinct from 'a' fetch first 3 rows only", None),
    ("select substring(s from 1 for 3), trim(both ' ' from s), position('a' in s), overlay(s placing 'x' from 2) from t", None),
    ("select * from t where i = any(array[1, 2]) and exists (select 1 from t x where x.i = t.i)", None),
    ("insert into t (i, s, at) values (1, 'a', now()), (2, 'b', null) on conflict do nothing returning i", None),
    ("update t set s = 'x', i = i + 1 where i = 5 returning s", None),
    ("delete from t where i > 100 and s <> 'keep' /* why */ -- and more", None),
    ("with a as (select i from t where i < 10) select count(*) from a where i <> 3 union all select 4", None),
    ("merge into t using (values (1::int, 'm')) as m (i, s) on t.i = m.i when matched then update set s = 'm' when not matched then insert values (m.i, m.s)", None),
    ("select 'a' || 'b', E'c\\'d', $$e$$, U&'\\0041', b'101', x'ff', -5, 1.5e3", None),
    ("select extract(year from at) from t", Some("extract")),
    ("select U&'!0041' uescape '!'", Some("UESCAPE")),
    ("vacuum t", Some("EXPLAIN")),
    ("create table u as select 1 as a", Some("EXPLAIN")),
];

fn psql(cluster: &Cluster, commands: &str) -> Result<String, String> {
    let program = cluster.binaries().program("psql");
    let done = Command::new(program)
        .args(["-X", "-v", "ON_ERROR_STOP=1", "-d", &cluster.connection_string(), "-c"])
        .arg(commands)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match done.status.success() {
        true => Ok(text(&done.stdout)),
        false => Err(text(&done.stderr)),
    }
}

/// The rows of the table, with their versions.
fn content(client: &mut postgres::Client) -> String {
    let rows = "select string_agg(concat(xmin, ctid, t), ' ' order by i) from t";
    client.query_one(rows, &[]).unwrap().get(0)
}

#[test]
fn the_server_accepts_the_commands_or_they_are_said_to_be_missing() {
    let cluster = start(plain().setting("shared_preload_libraries", "pg_tally"));
    let mut client = cluster.connect().unwrap();
    client
        .batch_execute("create table t (i int primary key, s text, at timestamptz, j jsonb)")
        .unwrap();
    for (statement, _) in STATEMENTS {
        client.batch_execute(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    client.query("select i from t where s = $1 and i > $2 and i < 99", &[&"a", &5i32]).unwrap();
    let all: Value = serde_json::from_str(&output(
        tally().args(["statements", "--json"]).arg(cluster.connection_string()),
    ))
    .unwrap();
    let rows: Vec<&Value> = all["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["own"] == false && row["query"].is_string())
        .collect();
    let before = content(&mut client);
    let (mut commands, mut reasons) = (0, Vec::new());
    for row in &rows {
        let query = row["query"].as_str().unwrap();
        let one: Value = serde_json::from_str(&output(
            tally()
                .args(["statements", "--json", "--id", row["queryid"].as_str().unwrap()])
                .arg(cluster.connection_string()),
        ))
        .unwrap();
        match (one["example"]["commands"].as_str(), one["example"]["unavailable"].as_str()) {
            (Some(text), None) => {
                let plan =
                    psql(&cluster, text).unwrap_or_else(|error| panic!("{query}\n{text}\n{error}"));
                assert!(plan.contains("QUERY PLAN"), "{query}\n{text}\n{plan}");
                commands += 1;
            }
            (None, Some(reason)) => reasons.push(reason.to_string()),
            other => panic!("{query}: {other:?}"),
        }
    }
    let without = STATEMENTS.iter().filter_map(|(_, word)| *word);
    for word in without {
        assert!(reasons.iter().any(|reason| reason.contains(word)), "{word}: {reasons:?}");
    }
    let expected = STATEMENTS.iter().filter(|(_, word)| word.is_none()).count() + 1;
    assert_eq!(commands, expected, "{rows:?}");
    assert_eq!(content(&mut client), before, "nothing was executed");
}
