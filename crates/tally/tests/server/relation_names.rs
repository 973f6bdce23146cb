// SPDX-License-Identifier: PostgreSQL
//! Names of relations in `tally top` and in recordings, read from the server if the user may connect.

use crate::support;
use std::time::Duration;

use crate::support::recorder::Recorder;
use crate::support::{output, tally};
use recording::{Range, Recording};
use rustix::process::Signal;
use serde_json::Value;

#[test]
fn relations_have_names_if_the_user_may_connect() {
    let small = support::plain().setting("shared_preload_libraries", "pg_tally");
    let cluster = support::start(small.setting("shared_buffers", "1MB"));
    cluster.pgbench_init(2).unwrap();
    let load = cluster.pgbench().clients(2).duration(Duration::from_secs(3600));
    let mut load = load.spawn().unwrap();
    let top = |user: &str, options: &[&str]| {
        let mut command = tally();
        command.env("PGUSER", user).args(["top", "--view", "io", "--interval", "0.3"]);
        output(command.args(options).arg(cluster.data_dir()))
    };
    let last = |user: &str| -> Value {
        let text = top(user, &["--count", "3", "--json"]);
        let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        last["io"].clone()
    };
    let mut named = Vec::new();
    support::eventually("relations are read", || {
        named = last("postgres")["relation_names"].as_array().unwrap().clone();
        named
            .iter()
            .any(|relation| relation["name"].as_str().unwrap().starts_with("pgbench_accounts"))
    });
    let mut client = cluster.connect().unwrap();
    let of_pgbench =
        named.iter().filter(|relation| relation["name"].as_str().unwrap().starts_with("pgbench_"));
    for row in of_pgbench {
        let (name, node) = (row["name"].as_str().unwrap(), row["relfilenode"].as_u64().unwrap());
        let row = client.query_one("select pg_relation_filenode($1::text::regclass)", &[&name]);
        assert_eq!(u64::from(row.unwrap().get::<_, u32>(0)), node, "{name}");
    }
    support::eventually("the pane has a name", || {
        let text = top("postgres", &["--count", "3"]);
        if text.contains("/pgbench_accounts") {
            Ok(())
        } else {
            Err(text)
        }
    });
    // A user who may not connect sees numbers.
    support::eventually("the pane has numbers", || {
        let stranger = last("nobody_of_that_name");
        assert_eq!(stranger["relation_names"], serde_json::json!([]));
        !stranger["relations"].as_array().unwrap().is_empty()
    });
    assert!(load.running(), "the load has ended");
    load.kill();
}

#[test]
fn recordings_have_names_if_the_user_may_connect() {
    let small = support::plain().setting("shared_preload_libraries", "pg_tally");
    let cluster = support::start(small.setting("shared_buffers", "1MB"));
    cluster.pgbench_init(2).unwrap();
    let mut load =
        cluster.pgbench().clients(2).duration(Duration::from_secs(3600)).spawn().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [named, numbered] = ["named", "numbered"].map(|name| folder.path().join(name));
    let pace = ["--interval", "100ms", "--detail", "200ms"];
    let stranger = "nobody_of_that_name";
    let recorder = Recorder::start(&cluster, &named, &pace);
    let refused =
        Recorder::start_as(support::segment(&cluster).as_os_str(), stranger, &numbered, &pace);
    let relations = |directory: &std::path::Path| {
        let all = Recording::open(directory, None).and_then(|all| all.relations(Range::ALL));
        all.ok().flatten().unwrap_or_default()
    };
    let accounts = |name: &String| name == "pgbench_accounts";
    support::eventually("a name is recorded", || relations(&named).names.values().any(accounts));
    support::eventually("relations are recorded", || !relations(&numbered).rows.is_empty());
    recorder.end(Signal::INT);
    refused.end(Signal::INT);
    assert!(relations(&numbered).names.is_empty());
    let shown = |directory: &std::path::Path, arguments: &[&str]| {
        output(tally().args(arguments).arg(directory))
    };
    for arguments in [&["report", "--text"][..], &["top", "--once", "--view", "io", "--replay"]] {
        assert!(shown(&named, arguments).contains("postgres/pgbench_accounts"), "{arguments:?}");
        assert!(!shown(&numbered, arguments).contains("/pgbench_accounts"), "{arguments:?}");
    }
    assert!(load.running(), "the load has ended");
    load.kill();
}
