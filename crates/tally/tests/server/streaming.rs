// SPDX-License-Identifier: PostgreSQL
//! A walsender's stream is its own phase: it counts neither as a command nor as a statement, however long
//! it lasts, nor as client activity between checkpoints. Checked against the test's clock.

use crate::support;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{create_views, eventually};
use postgres::Client;
use rustix::process::{kill_process, Pid, Signal};
use scratch::Cluster;

const STREAM: Duration = Duration::from_secs(3);

fn number(client: &mut Client, sql: &str) -> f64 {
    client.query_one(sql, &[]).unwrap().get(0)
}

/// Starts a program that receives from the server until it is interrupted.
fn receiver(cluster: &Cluster, program: &str, arguments: &[&str], into: &Path) -> Child {
    Command::new(cluster.binaries().program(program))
        .args(["--no-loop", "-h", &cluster.host().display().to_string()])
        .args(["-p", &cluster.port().to_string(), "-U", cluster.user()])
        .args(arguments)
        .arg(into)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_stream_is_neither_a_command_nor_a_statement_nor_client_activity() {
    if !support::has_module("test_decoding") {
        println!("not tested: this server has no test_decoding");
        return;
    }
    let cluster = support::start(support::plain().settings([
        ("shared_preload_libraries", "pg_tally"),
        ("wal_level", "logical"),
        ("autovacuum", "off"),
        ("checkpoint_timeout", "1h"),
    ]));
    create_views(&cluster);
    let mut client = cluster.connect().unwrap();
    client.batch_execute("create table t (n int)").unwrap();
    client
        .batch_execute("select pg_create_logical_replication_slot('s', 'test_decoding')")
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let received = folder.path().join("received");
    let kinds: [(&str, &[&str], &Path); 2] = [
        ("pg_receivewal", &["-D"], folder.path()),
        ("pg_recvlogical", &["-d", "postgres", "-S", "s", "--start", "-f"], &received),
    ];
    for (program, arguments, into) in kinds {
        client.batch_execute("checkpoint; select tally.reset()").unwrap();
        client.batch_execute("insert into t values (1); checkpoint").unwrap();
        let began = Instant::now();
        let mut child = receiver(&cluster, program, arguments, into);
        let streams = "select count(*) from pg_stat_replication where state = 'streaming'";
        eventually("it streams", || client.query_one(streams, &[]).unwrap().get::<_, i64>(0) == 1);
        let streaming = Instant::now();
        for n in 0..30 {
            client.batch_execute(&format!("insert into t values ({n})")).unwrap();
            std::thread::sleep(STREAM / 30);
        }
        let phase = "select phase from tally.sessions where kind = 'walsender'";
        assert_eq!(client.query_one(phase, &[]).unwrap().get::<_, &str>(0), "replication");
        let min = streaming.elapsed().as_secs_f64();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        assert!(child.wait().unwrap().success(), "{program}");
        eventually("it has ended", || {
            let sql = "select count(*) from pg_stat_activity where backend_type = 'walsender'";
            client.query_one(sql, &[]).unwrap().get::<_, i64>(0) == 0
        });
        let max = began.elapsed().as_secs_f64();
        // The ledger has the stream in its own phase.
        let stream = "select coalesce(sum(seconds), 0) from tally.ledger \
                      where kind = 'walsender' and phase = 'replication'";
        let stream = number(&mut client, stream);
        let others = "select coalesce(sum(seconds), 0) from tally.ledger \
                      where kind = 'walsender' and phase <> 'replication'";
        let others = number(&mut client, others);
        println!("{program}: {stream} s of {min} to {max} s; {others} s else");
        assert!((min..=max).contains(&stream), "{program}: {stream} s");
        assert!(others < max - min + 0.01, "{program}: {others} s");
        // No command or statement includes it.
        let longest = "select max(max_seconds) from tally.commands where part = 'handle'";
        assert!(number(&mut client, longest) < 2.0, "{program}");
        let unnamed = "select coalesce(sum(seconds), 0) from tally.statement_activities \
                       where queryid = 0";
        assert!(number(&mut client, unnamed) < 2.0, "{program}");
        // The next checkpoint event has the clients' commands only.
        client.batch_execute("checkpoint").unwrap();
        let mean = "select before_mean_handle_seconds from tally.checkpoints \
                    order by number desc limit 1";
        let mean = number(&mut client, mean);
        assert!(mean < 0.05, "{program}: {mean} s each");
    }
}
