// SPDX-License-Identifier: PostgreSQL
//! A walsender's stream is its own phase: it counts neither as a command nor as a statement, however long
//! it lasts, nor as client activity between checkpoints. Checked against the test's clock: no command takes longer than
//! its client waits for it, and the stream lasts much longer than all of them.

use crate::support;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{create_views, eventually};
use postgres::Client;
use rustix::process::{kill_process, Pid, Signal};
use scratch::Cluster;

/// The clock's rate was measured against another clock when the segment was created.
const RATE: f64 = 1e-3;

/// A session, and how long its commands may have taken: a command ends before its backend sleeps again.
struct Timed {
    client: Client,
    pid: u32,
    commands: u32,
    longest: f64,
    all: f64,
}

impl Timed {
    fn begin(&mut self) {
        (self.commands, self.longest, self.all) = (0, 0.0, 0.0);
    }

    fn time<T>(&mut self, command: impl FnOnce(&mut Client) -> T) -> T {
        let began = Instant::now();
        let result = command(&mut self.client);
        eventually("the session waits for its client", || {
            process::Proc::default().stat(self.pid).is_some_and(|stat| stat.state == b'S')
        });
        let took = began.elapsed().as_secs_f64() * (1.0 + RATE);
        self.commands += 1;
        self.longest = self.longest.max(took);
        self.all += took;
        result
    }

    fn execute(&mut self, sql: &str) {
        self.time(|client| client.batch_execute(sql).unwrap());
    }

    fn number(&mut self, sql: &str) -> f64 {
        self.time(|client| client.query_one(sql, &[]).unwrap().get(0))
    }
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
    let pid = support::pid_of(&mut client);
    let mut work = Timed { client, pid: pid as u32, commands: 0, longest: 0.0, all: 0.0 };
    work.execute("create table t (n int)");
    work.execute("select pg_create_logical_replication_slot('s', 'test_decoding')");
    let folder = tempfile::tempdir().unwrap();
    let received = folder.path().join("received");
    let kinds: [(&str, &[&str], &Path); 2] = [
        ("pg_receivewal", &["-D"], folder.path()),
        ("pg_recvlogical", &["-d", "postgres", "-S", "s", "--start", "-f"], &received),
    ];
    for (program, arguments, into) in kinds {
        work.begin();
        work.execute("checkpoint; select tally.reset()");
        work.execute("insert into t values (1); checkpoint");
        let began = Instant::now();
        let mut child = receiver(&cluster, program, arguments, into);
        let streams = "select count(*)::float8 from pg_stat_replication where state = 'streaming'";
        eventually("it streams", || work.number(streams) == 1.0);
        let streaming = Instant::now();
        for n in 0..5 {
            work.execute(&format!("insert into t values ({n})"));
        }
        // Long enough to show in the mean of all commands.
        while streaming.elapsed().as_secs_f64() < 0.3 + f64::from(work.commands) * work.longest {
            std::thread::sleep(Duration::from_millis(50));
        }
        let now = "select count(*)::float8 from tally.sessions \
                   where kind = 'walsender' and phase = 'replication'";
        assert_eq!(work.number(now), 1.0);
        let min = streaming.elapsed().as_secs_f64();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        assert!(child.wait().unwrap().success(), "{program}");
        let left = "select count(*)::float8 from tally.sessions where kind = 'walsender'";
        eventually("it has ended", || work.number(left) == 0.0);
        let max = began.elapsed().as_secs_f64();
        // The ledger has the stream in its own phase.
        let mut of_walsender = |phase: &str| {
            work.number(&format!(
                "select coalesce(sum(seconds), 0) from tally.ledger \
                 where kind = 'walsender' and phase {phase}"
            ))
        };
        let (stream, others) = (of_walsender("= 'replication'"), of_walsender("<> 'replication'"));
        println!("{program}: {stream} s of {min} to {max} s; {others} s else");
        let (min, max) = (min * (1.0 - RATE), max * (1.0 + RATE));
        assert!((min..=max).contains(&stream), "{program}: {stream} s");
        assert!(others <= max - stream, "{program}: {others} s else");
        // No command or statement includes it: none took longer than its client waited for it.
        let longest = "select max(max_seconds) from tally.commands where part = 'handle'";
        let (longest, most) = (work.number(longest), work.longest.max(others));
        assert!(longest <= most, "{program}: {longest} s of {most} s");
        let unnamed = "select coalesce(sum(seconds), 0) from tally.statement_activities \
                       where queryid = 0";
        let (unnamed, most) = (work.number(unnamed), work.all + others);
        assert!(unnamed <= most, "{program}: {unnamed} s of {most} s");
        // The next checkpoint event has the clients' commands only.
        work.execute("checkpoint");
        let mean = "select before_mean_handle_seconds from tally.checkpoints \
                    order by number desc limit 1";
        let (mean, most) = (work.number(mean), work.longest.max(others));
        assert!(mean <= most, "{program}: {mean} s each, of {most} s");
    }
}
