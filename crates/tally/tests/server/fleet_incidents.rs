// SPDX-License-Identifier: PostgreSQL
//! Incidents on real servers, one on each of some hosts: the named queries put the planted one first, in every
//! engine. The witnesses are the servers' own views and logs. Tests read recordings that were made once, and the
//! output of the witnesses at that time; `make verify` plants the incidents anew, and includes Spark.

use crate::support;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use crate::support::eventually;
use crate::support::fixtures::{self, Fixture};
use crate::support::fleet::{number, programs, recent_us, spark, text, upload, Engine};
use crate::support::recorder::Recorder;
use crate::support::strace::Strace;
use crate::support::verify::{Claim, Trial};
use postgres::{Client, NoTls};
use rustix::process::Signal;
use scratch::{Cluster, Load, RunningPgbench};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

/// Three hosts without an incident; one with a crowd behind a lock, one with a single session behind a lock, one
/// with a checkpoint that writes much.
const HOSTS: [&str; 6] = ["plain-1", "plain-2", "plain-3", "crowded", "hindered", "flushed"];
const CROWDED: usize = 3;
const HINDERED: usize = 4;
const FLUSHED: usize = 5;
const WAITERS: usize = 3;
/// A waiter may look up its blocker up to 1.6 s later.
const HELD: Duration = Duration::from_secs(4);
const CROWD_HELD: Duration = Duration::from_secs(8);

/// A session for which others waited, according to the server's views.
#[derive(Serialize, Deserialize)]
struct Held {
    pid: i32,
    /// The sessions that waited for it.
    waiters: usize,
    /// The longest wait, seconds, just before and just after they gave up.
    longest: [f64; 2],
}

/// A checkpoint's times in the server's log, seconds.
#[derive(Debug, Serialize, Deserialize)]
struct Logged {
    buffers: f64,
    write: f64,
    sync: f64,
    total: f64,
}

/// What happened.
#[derive(Serialize, Deserialize)]
struct Witnessed {
    crowd: Held,
    single: Held,
    /// The only checkpoint of each host.
    checkpoints: Vec<Logged>,
}

/// The incident, and the recordings.
struct Incidents {
    _folder: TempDir,
    root: PathBuf,
    witnessed: Witnessed,
}

impl Incidents {
    fn new(recordings: [Fixture; HOSTS.len()], witnessed: Witnessed) -> Incidents {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("fleet");
        for (recording, host) in recordings.into_iter().zip(HOSTS) {
            upload(recording.with_files().path(), &root, host);
        }
        Incidents { _folder: folder, root, witnessed }
    }
}

fn fixture(host: &str) -> String {
    format!("incident-{host}")
}

/// The output of the witnesses when the fixtures were made.
fn witnessed() -> PathBuf {
    fixtures::folder().join("incidents.json")
}

fn server() -> Cluster {
    let cluster = support::start(support::flushing().settings([
        ("shared_preload_libraries", "pg_tally"),
        ("log_checkpoints", "on"),
        ("shared_buffers", "128MB"),
        ("autovacuum", "off"),
        ("checkpoint_timeout", "1h"),
        ("deadlock_timeout", "10min"),
    ]));
    cluster.psql("create table t (n int); create table orders (n int); checkpoint").unwrap();
    cluster
}

fn session(cluster: &Cluster, application: &str) -> Client {
    let mut config = cluster.config();
    config.application_name(application).connect(NoTls).unwrap()
}

fn load(cluster: &Cluster) -> RunningPgbench {
    let load = Load::Script("insert into t values (1);\n".into());
    cluster.pgbench().load(load).clients(1).rate(20.0).duration(CROWD_HELD * 2).spawn().unwrap()
}

/// A session holds a table's lock for a time, while others wait for it. They give up, and the session is
/// returned: while it is recorded, it is idle in its transaction.
fn hold(cluster: &Cluster, waiters: usize, time: Duration) -> (Held, Client) {
    let (mut holder, mut witness) = (session(cluster, "forgetful"), session(cluster, "witness"));
    let pid = support::pid_of(&mut holder);
    holder.batch_execute("begin; lock table orders").unwrap();
    let mut seen = || {
        let sql = "select count(*), min(pg_blocking_pids(pid))::int[], \
                   coalesce(extract(epoch from clock_timestamp() - min(waitstart)), 0)::float8 \
                   from pg_locks where not granted";
        let row = witness.query_one(sql, &[]).unwrap();
        let blockers: Option<Vec<i32>> = row.get(1);
        (row.get::<_, i64>(0) as usize, blockers.unwrap_or_default(), row.get::<_, f64>(2))
    };
    // A failed check ends the holder, and so the waits.
    std::thread::scope(move |scope| {
        for _ in 0..waiters {
            scope.spawn(move || session(cluster, "waiter").batch_execute("select * from orders"));
        }
        eventually("they wait", || seen().0 == waiters);
        std::thread::sleep(time);
        let watch = std::time::Instant::now();
        let (found, blockers, before) = seen();
        assert_eq!((found, blockers), (waiters, vec![pid]), "as the server sees it");
        cluster.psql("select pg_cancel_backend(pid) from pg_locks where not granted").unwrap();
        eventually("they give up", || seen().0 == 0);
        let longest = [before, before + watch.elapsed().as_secs_f64()];
        (Held { pid, waiters, longest }, holder)
    })
}

/// The last checkpoint in the log.
fn logged(cluster: &Cluster) -> Logged {
    let log = cluster.log();
    let line = log.lines().rfind(|line| line.contains("checkpoint complete: ")).unwrap();
    let after = |name: &str| {
        let (_, rest) = line.split_once(name).unwrap_or_else(|| panic!("{name} in {line}"));
        let end = rest.find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap();
        rest[..end].parse().unwrap()
    };
    Logged {
        buffers: after("wrote "),
        write: after("write="),
        sync: after("sync="),
        total: after("total="),
    }
}

fn checkpointer(cluster: &Cluster) -> i32 {
    let processes = cluster.processes();
    processes.iter().find(|process| process.title.contains("checkpointer")).unwrap().pid as i32
}

fn incidents() -> &'static Incidents {
    static INCIDENTS: OnceLock<Incidents> = OnceLock::new();
    INCIDENTS.get_or_init(|| {
        let text = std::fs::read_to_string(witnessed()).unwrap();
        let recordings = HOSTS.map(|host| Fixture::begun_at(&fixture(host), recent_us()));
        Incidents::new(recordings, serde_json::from_str(&text).unwrap())
    })
}

/// Plants them on servers.
fn new_incidents() -> Incidents {
    let servers = HOSTS.map(|_| server());
    // Many buffers of many files.
    let fill = "do $$ begin for i in 1..150 loop \
                execute format('create table f%s as select generate_series(1, 10000) n', i); end loop; end $$";
    servers[FLUSHED].psql(fill).unwrap();
    let folder = tempfile::tempdir().unwrap();
    fixtures::wait_for_a_minute_with(25);
    let recorders: Vec<Recorder> = (HOSTS.iter().zip(&servers))
        .map(|(host, server)| {
            let more = ["--interval", "500ms", "--detail", "1s"];
            Recorder::start(server, &folder.path().join(host), &more)
        })
        .collect();
    recorders.iter().for_each(|recorder| recorder.wait_for(2));
    // The disk is shared with others, which may delay the files of any host.
    let checkpointer = checkpointer(&servers[FLUSHED]);
    let slow_disk = Strace::delay("fsync", Duration::from_millis(20), checkpointer);
    let loads: Vec<RunningPgbench> = servers.iter().map(load).collect();
    let ((crowd, _forgetful), (single, _other)) = std::thread::scope(|scope| {
        let crowd = scope.spawn(|| hold(&servers[CROWDED], WAITERS, CROWD_HELD));
        let hindered = scope.spawn(|| hold(&servers[HINDERED], 1, HELD));
        for server in &servers {
            server.psql("checkpoint").unwrap();
        }
        (crowd.join().unwrap(), hindered.join().unwrap())
    });
    drop(slow_disk);
    recorders.iter().for_each(|recorder| recorder.wait_for(2));
    for mut load in loads {
        load.kill();
    }
    recorders.into_iter().for_each(|recorder| recorder.end(Signal::KILL));
    let witnessed = Witnessed { crowd, single, checkpoints: servers.iter().map(logged).collect() };
    let recorded = |host: &str| folder.path().join(host);
    if fixtures::are_written() {
        for (host, server) in HOSTS.iter().zip(&servers) {
            fixtures::write(&fixture(host), &recorded(host), server);
        }
        let text = serde_json::to_string_pretty(&witnessed).unwrap();
        std::fs::write(self::witnessed(), text + "\n").unwrap();
    }
    Incidents::new(HOSTS.map(|host| Fixture::copied(&recorded(host))), witnessed)
}

#[test]
#[ignore = "verify: incidents on new servers are named first by every engine"]
fn verify_incidents_on_new_servers() {
    let text = "a crowd behind a lock and a slow checkpoint are named first in a fleet of six";
    Claim { text, alarm: 0.05, n: 2, m: 3 }.check(|_| {
        let made = new_incidents();
        let named = |engines: &[Engine]| {
            outlier_is_first(engines, &made);
            blockers_are_named(engines, &made);
            checkpoints_are_those_of_the_log(engines, &made);
        };
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            [programs(), spark()].into_iter().flatten().for_each(named)
        }));
        let result = if found.is_ok() { "named" } else { "not named" };
        Trial { holds: found.is_ok(), result: result.into(), half_width: "-".into() }
    });
}

#[test]
fn the_host_whose_waits_differ_from_its_peers_is_the_first_outlier() {
    let Some(engines) = programs() else { return };
    outlier_is_first(engines, incidents());
}

fn outlier_is_first(engines: &[Engine], made: &Incidents) {
    for engine in engines {
        let found = engine.ask(&made.root, "outliers", &[]);
        let first = found.first().unwrap_or_else(|| panic!("{} names none", engine.name()));
        let named = [text(first, "host"), text(first, "figure")];
        assert_eq!(named, ["crowded", "share of heavyweight locks"], "{} {found:?}", engine.name());
        assert_eq!(number(first, "peers"), HOSTS.len() as f64);
        // The other host with a wait for a lock is the only other one that differs in that figure.
        let of_locks = found.iter().filter(|row| text(row, "figure") == named[1]);
        let hosts: Vec<String> = of_locks.map(|row| text(row, "host")).collect();
        assert_eq!(hosts, ["crowded", "hindered"], "{} {found:?}", engine.name());
    }
}

#[test]
fn the_session_that_most_others_waited_for_is_named_first() {
    let Some(engines) = programs() else { return };
    blockers_are_named(engines, incidents());
}

fn blockers_are_named(engines: &[Engine], made: &Incidents) {
    for engine in engines {
        let found = engine.ask(&made.root, "blocking", &[]);
        assert_eq!(found.len(), 2, "{} {found:?}", engine.name());
        for (row, host, held) in [
            (&found[0], "crowded", &made.witnessed.crowd),
            (&found[1], "hindered", &made.witnessed.single),
        ] {
            let context = format!("{} {row:?}", engine.name());
            assert_eq!(text(row, "host"), host, "{context}");
            assert_eq!(text(row, "blocker"), held.pid.to_string(), "{context}");
            assert_eq!(number(row, "blocked_sessions"), held.waiters as f64, "{context}");
            assert_eq!(text(row, "application"), "forgetful", "{context}");
            assert_eq!(text(row, "last_state"), "idle in transaction", "{context}");
            assert_eq!(text(row, "lock_name"), "relation orders", "{context}");
            let longest = number(row, "max_seconds");
            assert!(
                longest <= held.longest[1] && longest > 0.5 * held.longest[0],
                "{context} {:?}",
                held.longest
            );
            let waited = number(row, "waited_seconds");
            assert!(
                waited <= held.waiters as f64 * (held.longest[1] + 0.4),
                "{context} {:?}",
                held.longest
            );
        }
    }
}

#[test]
fn the_host_whose_checkpoint_takes_longest_to_sync_is_named_first() {
    let Some(engines) = programs() else { return };
    checkpoints_are_those_of_the_log(engines, incidents());
}

fn checkpoints_are_those_of_the_log(engines: &[Engine], made: &Incidents) {
    // The planted one is the same according to the servers' logs.
    let logged = |at: usize| &made.witnessed.checkpoints[at];
    let others = (0..HOSTS.len()).filter(|at| *at != FLUSHED).map(logged);
    assert!(
        others.clone().all(|other| other.buffers * 10.0 < logged(FLUSHED).buffers
            && other.sync < logged(FLUSHED).sync),
        "{:?}",
        made.witnessed.checkpoints
    );
    for engine in engines {
        let found = engine.ask(&made.root, "checkpoints", &[]);
        assert_eq!(found.len(), HOSTS.len(), "{} {found:?}", engine.name());
        assert_eq!(text(&found[0], "host"), "flushed", "{} {found:?}", engine.name());
        for row in &found {
            let at = HOSTS.iter().position(|host| *host == text(row, "host")).unwrap();
            assert_eq!(number(row, "checkpoints"), 1.0, "{} {row:?}", engine.name());
            for (key, seconds) in [
                ("mean_seconds", logged(at).total),
                ("write_seconds", logged(at).write),
                ("sync_seconds", logged(at).sync),
            ] {
                let is_close = (number(row, key) - seconds).abs() < 0.002 + 0.02 * seconds;
                assert!(is_close, "{} {key} {row:?} {:?}", engine.name(), logged(at));
            }
        }
    }
}
