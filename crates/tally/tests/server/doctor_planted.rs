// SPDX-License-Identifier: PostgreSQL
//! Plants problems on real servers, and loads that are not problems. `tally doctor` and a report on the same
//! seconds name the problem first, and are silent about the others. With PGTALLY_FIXTURES=write, the recording
//! becomes a fixture, which the tests of `doctor` read.

use std::os::unix::fs::{symlink, MetadataExt};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::support::fixtures::{self, interval, report};
use crate::support::recorder::Recorder;
use crate::support::slow_disk::{rerun_in_mount_namespace, Behaviour, SlowDisk};
use crate::support::verify::{Claim, Trial};
use crate::support::{self, eventually, output, plain, segment, start, tally, Load};
use postgres::{Client, NoTls};
use rustix::process::Signal;
use scratch::{Builder, Cluster};
use serde_json::Value;

/// A problem, and what the report must say first.
pub struct Problem {
    /// The name of its fixture.
    pub name: &'static str,
    /// The rule that finds it.
    pub rule: &'static str,
    /// Words of its sentence, its evidence and its advice.
    pub words: &'static [&'static str],
}

const fn problem(
    name: &'static str,
    rule: &'static str,
    words: &'static [&'static str],
) -> Problem {
    Problem { name, rule, words }
}

pub const MISSING_INDEX: Problem = problem(
    "missing-index",
    "missing-index",
    &["from orders where customer", "index", " rows of table orders and filters", "likely"],
);
pub const FORCED_CHECKPOINTS: Problem =
    problem("forced-checkpoints", "checkpoints", &["because the WAL reaches max_wal_size"]);
pub const ROW_BY_ROW: Problem =
    problem("row-by-row", "many-small-statements", &["shop", "name from items where id"]);
pub const SORT_ON_DISK: Problem =
    problem("sort-on-disk", "temporary-files", &["work_mem", "order by filler"]);
pub const SLOW_WAL_DEVICE: Problem =
    problem("slow-wal-device", "commits", &["sync of the WAL", "pg_wal"]);
pub const CONNECTION_STORM: Problem = problem(
    "connection-storm",
    "connections",
    &["connections/s are opened", "application shop", "pool"],
);
pub const SLOW_READER: Problem = problem("slow-reader", "slow-clients", &["slow reader"]);
pub const HOT_ROW: Problem = problem("hot-row", "locks", &["update counter set n"]);
pub const FORGOTTEN_TRANSACTION: Problem = problem(
    "forgotten-transaction",
    "locks",
    &[
        "3 sessions wait for session ",
        " (forgetful",
        "idle in transaction for",
        "counter",
        "update counter set n = $1",
    ],
);
pub const READERS_BEHIND_DDL: Problem = problem(
    "readers-behind-ddl",
    "locks",
    &[
        "alter table orders",
        " (migration",
        " waits for session ",
        " (report",
        "; 2 sessions queue behind it",
        "lock_timeout",
    ],
);
pub const LOST_INDEX: Problem = problem(
    "lost-index",
    "plan-change",
    &[
        "from orders where customer",
        "Before: Index Scan using orders_customer_idx on orders",
        "Now: Parallel Seq Scan on orders [filter",
        "tally statements --id",
    ],
);
pub const CONTENDED_LIGHTWEIGHT_LOCK: Problem = problem(
    "contended-lightweight-lock",
    "lightweight-locks",
    &["lightweight lock pg_stat_statements", "pg_stat_statements(false)"],
);
pub const HELD_SNAPSHOT: Problem = problem(
    "held-snapshot",
    "vacuum-behind",
    &[
        "vacuum could not remove",
        "dead rows in table t",
        "(application report, user postgres, database postgres)",
        "idle in transaction",
    ],
);

/// All of them.
pub const PROBLEMS: [Problem; 13] = [
    MISSING_INDEX,
    FORCED_CHECKPOINTS,
    ROW_BY_ROW,
    SORT_ON_DISK,
    SLOW_WAL_DEVICE,
    CONNECTION_STORM,
    SLOW_READER,
    HOT_ROW,
    FORGOTTEN_TRANSACTION,
    READERS_BEHIND_DDL,
    LOST_INDEX,
    CONTENDED_LIGHTWEIGHT_LOCK,
    HELD_SNAPSHOT,
];

/// Loads of servers without a problem: the names of their fixtures.
pub const HEALTHY: [&str; 15] = [
    "idle",
    "one-client-that-selects",
    "clients-that-think",
    "short-transactions",
    "vacuum",
    "sleeping",
    "cursor",
    "notifications",
    "locks-for-a-short-time",
    "mixed-load",
    "monitoring",
    "autovacuum",
    "dump",
    "batch-by-itself",
    "restore",
];

/// The diagnoses of a load.
pub struct Findings {
    /// Diagnoses of an interval, as `tally doctor` and `tally top` have them.
    pub diagnoses: Value,
    /// Findings of `tally report`, from a recording of the same time.
    pub report: Value,
}

impl Findings {
    /// Whether the problem is named first in both. An interval of a recording does not contain the accounts of
    /// individual sessions, and so not all words; nor does it know about vacuum, about which the server is
    /// queried every few minutes.
    pub fn name_first(&self, problem: &Problem) -> Result<(), String> {
        let is_known = problem.rule != "vacuum-behind";
        if is_known && self.diagnoses[0]["rule"] != problem.rule {
            return Err(format!("{} is not the first: {:#}", problem.rule, self.diagnoses));
        }
        problem.is_explained_by_first(&self.report)
    }

    /// Whether both find no problem.
    pub fn name_nothing(&self) -> Result<(), String> {
        if self.diagnoses != serde_json::json!([]) {
            return Err(format!("{:#}", self.diagnoses));
        }
        if !self.report[0]["text"].as_str().is_some_and(|text| text.starts_with("Healthy")) {
            return Err(format!("{:#}", self.report));
        }
        Ok(())
    }
}

impl Problem {
    fn is_explained_by_first(&self, all: &Value) -> Result<(), String> {
        let text = all[0].to_string();
        match self.words.iter().find(|word| !text.contains(**word)) {
            Some(word) => Err(format!("{word} is not in the first: {all:#}")),
            None => Ok(()),
        }
    }
}

pub fn server() -> Builder {
    plain()
        .setting("shared_preload_libraries", "pg_tally")
        .setting("autovacuum", "off")
        .setting("checkpoint_timeout", "1h")
}

/// Examines the server for some seconds while the threads of `load` run, by `tally doctor` and from a recording.
/// If the result is what `expected` requires, the recording becomes the fixture of this name.
fn examine(
    cluster: &Cluster,
    name: &str,
    seconds: u64,
    load: &[&Load],
    live: impl Fn(&Value) -> Result<(), String>,
    expected: impl Fn(&Findings) -> Result<(), String>,
) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    fixtures::wait_for_a_minute_with(seconds + 8);
    let diagnoses = support::while_working(load, || {
        std::thread::sleep(Duration::from_secs(1));
        let recorder = Recorder::start(cluster, &directory, &["--detail", "1s"]);
        let mut doctor = tally();
        // With a connection, it also queries the server about vacuum.
        doctor.args(["doctor", "--json", "--for", &seconds.to_string()]).env("PGUSER", "postgres");
        let answer: Value = serde_json::from_str(&output(doctor.arg(segment(cluster)))).unwrap();
        recorder.wait_for(1);
        recorder.end(Signal::KILL);
        answer["diagnoses"].clone()
    });
    let findings = report(&directory)["findings"].clone();
    let replayed = interval(&directory)["diagnoses"].clone();
    live(&diagnoses)?;
    expected(&Findings { diagnoses, report: findings.clone() })?;
    expected(&Findings { diagnoses: replayed, report: findings })?;
    if fixtures::are_written() {
        fixtures::write(name, &directory, cluster);
    }
    Ok(())
}

/// In two of three trials, the diagnoses are right.
fn claim(text: &str, mut trial: impl FnMut() -> Result<(), String>) {
    Claim { text, alarm: 0.05, n: 2, m: 3 }.check(|_| {
        let found = trial();
        Trial {
            holds: found.is_ok(),
            result: found.err().unwrap_or_else(|| "found".into()),
            half_width: "-".into(),
        }
    });
}

/// The problem is named first, live and in a report, while the threads of `load` run.
fn claim_is_first(problem: &Problem, mut trial: impl FnMut(&Problem) -> Result<(), String>) {
    claim(&format!("{} is named first", problem.name), || trial(problem));
}

/// Whether this holds while the threads of `load` run.
fn is_first(
    cluster: &Cluster,
    problem: &Problem,
    seconds: u64,
    load: &[&Load],
) -> Result<(), String> {
    let explained = |diagnoses: &Value| problem.is_explained_by_first(diagnoses);
    examine(cluster, problem.name, seconds, load, explained, |found| found.name_first(problem))
}

/// A session that repeats this.
fn again<'c>(
    cluster: &'c Cluster,
    step: impl Fn(&mut Client) + Sync + 'c,
) -> impl Fn(&AtomicBool) + Sync + 'c {
    move |stop| {
        let mut client = cluster.connect().unwrap();
        while !stop.load(Ordering::Relaxed) {
            step(&mut client);
        }
    }
}

/// A server with a table of 300,000 orders of 50,000 customers, without an index.
fn with_orders() -> Cluster {
    let cluster = start(server());
    cluster
        .psql(
            "create table orders (id int, customer int, filler text); \
             insert into orders select n, n % 50000, repeat('x', 100) from generate_series(1, 300000) n; \
             analyze orders",
        )
        .unwrap();
    cluster
}

#[test]
#[ignore = "verify: a planted problem is named first"]
fn verify_a_statement_without_an_index() {
    let cluster = with_orders();
    let slow = again(&cluster, |client| {
        client.query("select * from orders where customer = 4711", &[]).unwrap();
    });
    let fast = again(&cluster, |client| {
        client.simple_query("select 1").unwrap();
        std::thread::sleep(Duration::from_millis(5));
    });
    claim_is_first(&MISSING_INDEX, |problem| is_first(&cluster, problem, 4, &[&slow, &fast]));
}

#[test]
#[ignore = "verify: a planted problem is named first"]
fn verify_checkpoints_that_the_wal_forces() {
    let cluster = start(
        server()
            .setting("max_wal_size", "32MB")
            .setting("min_wal_size", "32MB")
            .setting("fsync", "on"),
    );
    cluster.psql("create table t (n int, filler text)").unwrap();
    let write = again(&cluster, |client| {
        client
            .simple_query(
                "insert into t select n, repeat('x', 500) from generate_series(1, 2000) n",
            )
            .unwrap();
    });
    claim_is_first(&FORCED_CHECKPOINTS, |problem| is_first(&cluster, problem, 8, &[&write]));
}

#[test]
#[ignore = "verify: a planted problem is named first"]
fn verify_a_client_that_asks_for_each_row_by_itself() {
    let cluster = start(server());
    cluster
        .psql("create table items (id int primary key, name text); insert into items select n, 'x' from generate_series(1, 1000) n; analyze items")
        .unwrap();
    let each = again(&cluster, |client| {
        client.batch_execute("set application_name = 'shop'; begin").unwrap();
        let statement = client.prepare("select name from items where id = $1").unwrap();
        for id in 1..=1000i32 {
            client.query_one(&statement, &[&id]).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        client.batch_execute("commit").unwrap();
    });
    claim_is_first(&ROW_BY_ROW, |problem| is_first(&cluster, problem, 5, &[&each]));
}

#[test]
#[ignore = "verify: a planted problem is named first"]
fn verify_a_sort_that_does_not_fit_into_work_mem() {
    let cluster = start(server().setting("work_mem", "64kB"));
    cluster
        .psql("create table t as select n, md5(n::text) filler from generate_series(1, 200000) n; analyze t")
        .unwrap();
    let sort = again(&cluster, |client| {
        client
            .simple_query("select count(*) from (select filler from t order by filler offset 1) s")
            .unwrap();
    });
    claim_is_first(&SORT_ON_DISK, |problem| is_first(&cluster, problem, 5, &[&sort]));
}

#[test]
#[ignore = "verify: a planted problem is named first"]
fn verify_a_slow_device_under_the_wal() {
    if rerun_in_mount_namespace("doctor_planted::verify_a_slow_device_under_the_wal") {
        return;
    }
    let mut cluster = server().fsync(true).directory(std::env::temp_dir()).create().unwrap();
    let path = segment(&cluster);
    cluster.also_remove(&path);
    // One file of the WAL lasts for the whole test.
    const FIRST: &str = "000000010000000000000001";
    let wal = cluster.data_dir().join("pg_wal").join(FIRST);
    let (files, place) = (cluster.dir().join("files"), cluster.dir().join("slow"));
    std::fs::create_dir(&files).unwrap();
    std::fs::create_dir(&place).unwrap();
    let owner = std::fs::metadata(&wal).unwrap();
    std::os::unix::fs::chown(&files, Some(owner.uid()), Some(owner.gid())).unwrap();
    std::fs::rename(&wal, files.join(FIRST)).unwrap();
    let Some(disk) = SlowDisk::mount(&place, &files) else { return };
    symlink(place.join(FIRST), &wal).unwrap();
    cluster.start().unwrap();
    cluster.psql("create table t (n int)").unwrap();
    disk.set(Behaviour { sync: Duration::from_millis(30), ..Behaviour::default() });
    let insert = again(&cluster, |client| {
        client.simple_query("insert into t values (1)").unwrap();
    });
    claim_is_first(&SLOW_WAL_DEVICE, |problem| is_first(&cluster, problem, 4, &[&insert, &insert]));
}

#[test]
#[ignore = "verify: a planted problem is named first"]
fn verify_clients_that_connect_for_each_statement() {
    let cluster = start(server());
    let mut shop = cluster.config();
    shop.application_name("shop");
    let storm = |stop: &AtomicBool| {
        while !stop.load(Ordering::Relaxed) {
            let mut client = shop.connect(NoTls).unwrap();
            client.simple_query("select 1").unwrap();
        }
    };
    claim_is_first(&CONNECTION_STORM, |problem| is_first(&cluster, problem, 4, &[&storm, &storm]));
}

#[test]
#[ignore = "verify: a planted problem is named first"]
fn verify_a_client_that_does_not_read() {
    let cluster = start(server());
    let slow = |stop: &AtomicBool| {
        use std::io::Read;
        let mut client = cluster.connect().unwrap();
        client.batch_execute("set application_name = 'slow reader'").unwrap();
        let mut rows = client
            .copy_out("copy (select repeat('x', 1000) from generate_series(1, 1000000)) to stdout")
            .unwrap();
        let mut buffer = [0; 1000];
        while !stop.load(Ordering::Relaxed) {
            rows.read_exact(&mut buffer).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    claim_is_first(&SLOW_READER, |problem| is_first(&cluster, problem, 4, &[&slow]));
}

#[test]
#[ignore = "verify: a planted problem is named first"]
fn verify_rows_that_everybody_updates() {
    let cluster = start(server());
    cluster.psql("create table counter (n int); insert into counter values (0)").unwrap();
    let bump = again(&cluster, |client| {
        client.batch_execute("begin; update counter set n = n + 1").unwrap();
        std::thread::sleep(Duration::from_millis(20));
        client.batch_execute("commit").unwrap();
    });
    claim_is_first(&HOT_ROW, |problem| {
        is_first(&cluster, problem, 4, &[&bump, &bump, &bump, &bump])
    });
}

/// Ends a session together with the load.
fn ends(session: Client) -> impl Fn(&AtomicBool) + Sync {
    let session = std::sync::Mutex::new(Some(session));
    move |stop: &AtomicBool| {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
        }
        drop(session.lock().unwrap().take());
    }
}

fn waits<'c>(cluster: &'c Cluster, sql: &'static str) -> impl Fn(&AtomicBool) + Sync + 'c {
    move |_| {
        let mut client = cluster.connect().unwrap();
        client.batch_execute(sql).unwrap();
    }
}

/// A session with this application name.
fn session(cluster: &Cluster, application: &str) -> Client {
    cluster.config().application_name(application).connect(postgres::NoTls).unwrap()
}

#[test]
#[ignore = "verify: a planted problem is named first"]
fn verify_a_session_that_everybody_waits_for() {
    let cluster = start(server());
    cluster.psql("create table counter (n int); insert into counter values (0)").unwrap();
    let wait = waits(&cluster, "update counter set n = n + 1");
    claim_is_first(&FORGOTTEN_TRANSACTION, |problem| {
        let mut root = session(&cluster, "forgetful");
        root.batch_execute("begin; update counter set n = 1").unwrap();
        is_first(&cluster, problem, 3, &[&wait, &wait, &wait, &ends(root)])
    });
}

#[test]
#[ignore = "verify: a planted problem is named first"]
fn verify_readers_that_queue_behind_ddl() {
    let cluster = start(server());
    cluster.psql("create table orders (n int); insert into orders values (0)").unwrap();
    let alter = |_: &AtomicBool| {
        let mut ddl = session(&cluster, "migration");
        ddl.batch_execute("alter table orders add column if not exists note text").unwrap();
    };
    let read = |_: &AtomicBool| {
        // They start later than the DDL.
        std::thread::sleep(Duration::from_millis(500));
        cluster.connect().unwrap().batch_execute("select n from orders").unwrap();
    };
    claim_is_first(&READERS_BEHIND_DDL, |problem| {
        let mut root = session(&cluster, "report");
        root.batch_execute("begin; select n from orders").unwrap();
        is_first(&cluster, problem, 3, &[&alter, &read, &read, &ends(root)])
    });
}

#[test]
#[ignore = "verify: no problem is found where there is none"]
fn verify_servers_that_are_idle_or_merely_busy() {
    let cluster = start(server());
    cluster.pgbench_init(5).unwrap();
    cluster.psql("vacuum analyze").unwrap();
    let idle = |_: &AtomicBool| ();
    let select = again(&cluster, |client| {
        client
            .query_one("select abalance from pgbench_accounts where aid = $1", &[&4711i32])
            .unwrap();
    });
    let thinking = again(&cluster, |client| {
        client
            .batch_execute(
                "begin; update pgbench_accounts set abalance = abalance + 1 where aid = 12; \
                 select abalance from pgbench_accounts where aid = 12; \
                 insert into pgbench_history values (1, 1, 12, 1, now()); commit",
            )
            .unwrap();
        std::thread::sleep(Duration::from_millis(20));
    });
    let load = again(&cluster, |client| {
        client
            .batch_execute(
                "create temporary table if not exists loaded (n int, filler text); \
                 insert into loaded select n, 'x' from generate_series(1, 100) n",
            )
            .unwrap();
        std::thread::sleep(Duration::from_millis(50));
    });
    let extended = again(&cluster, |client| {
        let mut transaction = client.transaction().unwrap();
        for id in 1..=5i32 {
            transaction
                .query_one("select bbalance from pgbench_branches where bid = $1", &[&id])
                .unwrap();
        }
        transaction.commit().unwrap();
        std::thread::sleep(Duration::from_millis(5));
    });
    let maintain = again(&cluster, |client| {
        client.batch_execute("vacuum analyze pgbench_tellers").unwrap();
        std::thread::sleep(Duration::from_millis(100));
    });
    let sleep = again(&cluster, |client| {
        client.simple_query("select pg_sleep(0.2)").unwrap();
    });
    let fetch = again(&cluster, |client| {
        let mut transaction = client.transaction().unwrap();
        transaction
            .batch_execute("declare c cursor for select * from pgbench_tellers order by tid")
            .unwrap();
        for _ in 0..10 {
            transaction.simple_query("fetch 5 from c").unwrap();
        }
        transaction.commit().unwrap();
        std::thread::sleep(Duration::from_millis(20));
    });
    let notify = again(&cluster, |client| {
        client.batch_execute("listen news; notify news, 'again'").unwrap();
        std::thread::sleep(Duration::from_millis(10));
    });
    let queue = again(&cluster, |client| {
        client.batch_execute("select pg_advisory_lock(1); select pg_advisory_unlock(1)").unwrap();
        std::thread::sleep(Duration::from_millis(5));
    });
    let loads: [(&str, &[&Load]); 10] = [
        ("idle", &[&idle]),
        ("one-client-that-selects", &[&select]),
        ("clients-that-think", &[&thinking, &load]),
        ("short-transactions", &[&extended]),
        ("vacuum", &[&maintain, &thinking]),
        ("sleeping", &[&sleep]),
        ("cursor", &[&fetch]),
        ("notifications", &[&notify, &notify]),
        ("locks-for-a-short-time", &[&queue, &queue]),
        ("mixed-load", &[&thinking, &load, &extended, &maintain, &sleep]),
    ];
    for (name, load) in loads {
        claim(&format!("{name} is healthy"), || {
            examine(&cluster, name, 3, load, |_| Ok(()), Findings::name_nothing)
        });
    }
}

/// Runs a client program of the PostgreSQL installation.
fn run(cluster: &Cluster, name: &str, args: &[&str]) {
    let mut command = cluster.os_user().command(&cluster.binaries().program(name));
    command.args(["-U", cluster.user(), "-p", &cluster.port().to_string(), "-h"]);
    let done = command.arg(cluster.host()).args(args).current_dir(cluster.dir()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Runs it repeatedly.
fn runs<'c>(
    cluster: &'c Cluster,
    name: &'static str,
    args: &'static [&str],
) -> impl Fn(&AtomicBool) + Sync + 'c {
    move |stop| {
        while !stop.load(Ordering::Relaxed) {
            run(cluster, name, args);
        }
    }
}

#[test]
#[ignore = "verify: no problem is found where there is none"]
fn verify_monitoring_autovacuum_dumps_and_batches() {
    let cluster = start(
        plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("autovacuum_naptime", "1s")
            .setting("checkpoint_timeout", "1h"),
    );
    cluster.pgbench_init(2).unwrap();
    cluster
        .psql(
            "create table t (id int primary key, v int, filler text); \
               insert into t select n, 0, repeat('x', 50) from generate_series(1, 20000) n",
        )
        .unwrap();
    cluster.psql("vacuum analyze t").unwrap();
    let dump: &[&str] = &["-d", "postgres", "-t", "t", "--clean", "-f", "dump.sql"];
    run(&cluster, "pg_dump", dump);
    // A monitoring program connects for each check.
    let monitor = |stop: &AtomicBool| {
        while !stop.load(Ordering::Relaxed) {
            let mut client = cluster.connect().unwrap();
            client
                .batch_execute(
                    "select count(*), max(now() - xact_start) from pg_stat_activity; \
                     select sum(n_dead_tup), sum(seq_scan) from pg_stat_user_tables; \
                     select sum(blks_hit), sum(blks_read) from pg_stat_database; \
                     select sum(pg_relation_size(oid)) from pg_class where relkind in ('r', 'i')",
                )
                .unwrap();
            drop(client);
            std::thread::sleep(Duration::from_secs(1));
        }
    };
    let churn = again(&cluster, |client| {
        client.batch_execute("update t set v = v + 1 where id <= 5000").unwrap();
        std::thread::sleep(Duration::from_millis(200));
    });
    let batch = again(&cluster, |client| {
        client.batch_execute("update t set v = v + 1").unwrap();
    });
    let whole: &[&str] = &["-d", "postgres", "-f", "/dev/null"];
    let dumps = runs(&cluster, "pg_dump", whole);
    let restore: &[&str] = &["-d", "postgres", "-q", "-1", "-f", "dump.sql"];
    let restores = runs(&cluster, "psql", restore);
    let loads: [(&str, &[&Load]); 5] = [
        ("monitoring", &[&monitor]),
        ("autovacuum", &[&churn, &monitor]),
        ("dump", &[&dumps]),
        ("batch-by-itself", &[&batch]),
        ("restore", &[&restores]),
    ];
    for (name, load) in loads {
        claim(&format!("{name} is healthy"), || {
            examine(&cluster, name, 2, load, |_| Ok(()), Findings::name_nothing)
        });
    }
}

#[test]
#[ignore = "verify: a planted problem is named first"]
fn verify_a_statement_whose_plan_has_changed() {
    let cluster = with_orders();
    let read = again(&cluster, |client| {
        client.query("select * from orders where customer = 4711", &[]).unwrap();
    });
    let drop_index = |_: &AtomicBool| {
        std::thread::sleep(Duration::from_millis(1500));
        cluster.psql("drop index orders_customer_idx").unwrap();
    };
    claim_is_first(&LOST_INDEX, |problem| {
        cluster.psql("create index on orders (customer)").unwrap();
        is_first(&cluster, problem, 4, &[&read, &drop_index])
    });
}

#[test]
#[ignore = "verify: a planted problem is named first"]
fn verify_a_lightweight_lock_that_sessions_queue_for() {
    if !support::has_module("pg_stat_statements") {
        println!("not tested: the server has no pg_stat_statements");
        return;
    }
    let cluster = start(
        server()
            .setting("shared_preload_libraries", "pg_stat_statements, pg_tally")
            .setting("pg_stat_statements.max", "100"),
    );
    cluster.psql("create extension pg_stat_statements").unwrap();
    // More statements than the table can hold: each is a new one, for which the lock is needed exclusively.
    let next = AtomicU64::new(0);
    let different = |client: &mut Client| {
        let n = next.fetch_add(1, Ordering::Relaxed);
        let columns = (0..7).map(|bit| if n >> bit & 1 == 0 { "1 + 1" } else { "1 - 1" });
        client.simple_query(&format!("select {}", columns.collect::<Vec<_>>().join(", "))).unwrap();
    };
    let writer = again(&cluster, different);
    // A monitoring program that polls all the time.
    let reader = again(&cluster, |client| {
        client.simple_query("select count(*) from pg_stat_statements").unwrap();
    });
    let loads: Vec<&Load> =
        vec![&writer, &writer, &writer, &writer, &writer, &writer, &reader, &reader, &reader];
    claim_is_first(&CONTENDED_LIGHTWEIGHT_LOCK, |problem| is_first(&cluster, problem, 4, &loads));
}

#[test]
#[ignore = "verify: a planted problem is named first"]
fn verify_a_session_that_keeps_vacuum_from_removing_rows() {
    let cluster = start(server());
    cluster
        .psql("create table t (id int, v int); insert into t select n, 0 from generate_series(1, 30000) n")
        .unwrap();
    claim_is_first(&HELD_SNAPSHOT, |problem| {
        let mut holder = session(&cluster, "report");
        holder
            .batch_execute("begin isolation level repeatable read; select count(*) from t")
            .unwrap();
        cluster.psql("update t set v = v + 1").unwrap();
        cluster.psql("vacuum t").unwrap();
        let dead =
            "select n_dead_tup >= 30000 and last_vacuum is not null from pg_stat_user_tables";
        eventually("the server has counted them", || cluster.psql(dead).unwrap().trim() == "t");
        is_first(&cluster, problem, 3, &[&ends(holder)])
    });
}
