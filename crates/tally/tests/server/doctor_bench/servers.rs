// SPDX-License-Identifier: PostgreSQL
//! The servers of the bench, the loads beside a problem, and the loads without any.

use std::os::unix::fs::symlink;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use postgres::{Client, NoTls};
use rustix::process::{kill_process, Pid, Signal};
use scratch::{Builder, Cluster, Load, RunningPgbench};

use crate::support::slow_disk::{Behaviour, SlowDisk};
use crate::support::{eventually, flushing, plain, segment};

/// Settings of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// An ordinary small server, whose files are on a disk.
    Ordinary,
    /// The device of its WAL is slow.
    SlowWal,
    /// It has a small max_wal_size.
    SmallWal,
    /// It has a small table of pg_stat_statements.
    StatementTable,
    /// Its autovacuum sleeps most of the time.
    ThrottledVacuum,
    /// Its files are in memory.
    InMemory,
    /// Its transaction IDs are hundreds of millions old, and autovacuum has not come.
    Old,
    /// It has a log collector.
    LogCollector,
}

/// Scale of pgbench's tables.
const SCALE: u32 = 10;

/// A running server.
pub struct Server {
    pub cluster: Cluster,
    has_pgbench: bool,
    _disk: Option<SlowDisk>,
}

impl Server {
    /// The severe form differs for some. `None`: this machine cannot have such a server.
    pub fn start(profile: Profile, severe: bool) -> Option<Server> {
        let common = |builder: Builder| {
            builder
                .setting("wal_level", "logical")
                .setting("max_prepared_transactions", "10")
                .setting("wal_sender_timeout", "0")
        };
        let libraries = match super::samples() {
            Some(_) => "pg_stat_statements, pg_tally",
            None => "pg_tally",
        };
        let tally = |builder: Builder| builder.setting("shared_preload_libraries", libraries);
        let on_disk = || common(tally(flushing()));
        let builder = match profile {
            Profile::Ordinary => on_disk(),
            Profile::SlowWal => return Server::with_slow_wal(on_disk(), severe),
            Profile::SmallWal => {
                on_disk().setting("max_wal_size", "32MB").setting("min_wal_size", "32MB")
            }
            Profile::StatementTable => common(flushing())
                .setting("shared_preload_libraries", "pg_stat_statements, pg_tally")
                .setting("pg_stat_statements.max", "100"),
            Profile::ThrottledVacuum => on_disk()
                .setting("autovacuum_naptime", "1s")
                .setting("autovacuum_vacuum_cost_delay", "100ms")
                .setting("autovacuum_vacuum_cost_limit", if severe { "10" } else { "5" }),
            Profile::InMemory => common(tally(plain())).setting("wal_init_zero", "off"),
            Profile::Old => return Some(Server::old(on_disk(), severe)),
            Profile::LogCollector => on_disk().setting("logging_collector", "on"),
        };
        let mut cluster = builder.create().unwrap();
        cluster.also_remove(&segment(&cluster));
        cluster.start().unwrap();
        Some(Server { cluster, has_pgbench: false, _disk: None })
    }

    /// One file of its WAL, which lasts for long, is on a slow device.
    fn with_slow_wal(builder: Builder, severe: bool) -> Option<Server> {
        const FIRST: &str = "000000010000000000000001";
        let mut cluster = builder.directory(std::env::temp_dir()).create().unwrap();
        cluster.also_remove(&segment(&cluster));
        let wal = cluster.data_dir().join("pg_wal").join(FIRST);
        let (files, place) = (cluster.dir().join("files"), cluster.dir().join("slow"));
        std::fs::create_dir(&files).unwrap();
        std::fs::create_dir(&place).unwrap();
        cluster.os_user().chown(&files).unwrap();
        std::fs::rename(&wal, files.join(FIRST)).unwrap();
        let disk = SlowDisk::mount(&place, &files)?;
        symlink(place.join(FIRST), &wal).unwrap();
        cluster.start().unwrap();
        let sync = Duration::from_millis(if severe { 40 } else { 12 });
        disk.set(Behaviour { sync, ..Behaviour::default() });
        // pgbench's tables would take more than this file.
        Some(Server { cluster, has_pgbench: true, _disk: Some(disk) })
    }

    /// Its next transaction ID is far from those of its tables; autovacuum begins to freeze them, a page in a second.
    fn old(builder: Builder, severe: bool) -> Server {
        const IN_A_FILE: u64 = 32 * 32768;
        let mut cluster = builder
            .setting("autovacuum_vacuum_cost_delay", "100ms")
            .setting("autovacuum_vacuum_cost_limit", "1")
            .create()
            .unwrap();
        cluster.also_remove(&segment(&cluster));
        let next: u64 = if severe { 1_700_000_000 } else { 650_000_000 };
        let run = |program: &std::path::Path, arguments: &[&str]| {
            let done = cluster.os_user().command(program).args(arguments).output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        };
        let data = cluster.data_dir();
        run(
            &cluster.binaries().program("pg_resetwal"),
            &["-x", &next.to_string(), "-D", data.to_str().unwrap()],
        );
        let states = data.join(format!("pg_xact/{:04X}", next / IN_A_FILE));
        run("truncate".as_ref(), &["-s", "262144", states.to_str().unwrap()]);
        cluster.start().unwrap();
        Server { cluster, has_pgbench: false, _disk: None }
    }

    /// Makes the tables of a load.
    pub fn prepare(&mut self, background: Background) {
        if background != Background::Idle {
            self.fill();
        }
    }

    /// Starts a load beside the problem, which has been prepared.
    pub fn load(&self, background: Background) -> Vec<RunningPgbench> {
        let runs: &[(Load, u32, Option<f64>)] = match background {
            Background::Idle => &[],
            Background::Read => &[(Load::Select, 2, Some(300.0))],
            Background::Write => &[(Load::TpcB, 4, Some(60.0))],
            Background::Mixed => &[(Load::Select, 2, Some(200.0)), (Load::TpcB, 2, Some(30.0))],
            Background::Saturated => &[(Load::TpcB, 8, None), (Load::Select, 2, None)],
        };
        if runs.is_empty() || self._disk.is_some() {
            return Vec::new();
        }
        runs.iter().map(|(load, clients, rate)| self.pgbench(load, *clients, *rate)).collect()
    }

    fn fill(&mut self) {
        if !self.has_pgbench {
            self.cluster.pgbench_init(SCALE).unwrap();
            self.has_pgbench = true;
        }
    }

    fn pgbench(&self, load: &Load, clients: u32, rate: Option<f64>) -> RunningPgbench {
        let run = self.cluster.pgbench().load(load.clone()).clients(clients).jobs(2);
        // Without -n, each run begins with a vacuum.
        let run = run.arg("-n").until_stopped();
        rate.map_or(run.clone(), |rate| run.rate(rate)).spawn().unwrap()
    }
}

/// What else the server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    Idle,
    Read,
    Write,
    Mixed,
    Saturated,
}

impl Background {
    pub const ALL: [Background; 5] = [
        Background::Idle,
        Background::Read,
        Background::Write,
        Background::Mixed,
        Background::Saturated,
    ];
}

/// A load of a healthy server. A new one is one entry of [`HEALTHY`].
pub struct Healthy {
    pub name: &'static str,
    start: fn(&mut Server) -> Work,
}

impl Healthy {
    pub fn start(&self, server: &mut Server) -> Work {
        (self.start)(server)
    }
}

/// What does the work. Dropping it ends it.
#[derive(Default)]
pub struct Work {
    pgbench: Vec<RunningPgbench>,
    sessions: Vec<Client>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    standby: Option<(Child, tempfile::TempDir)>,
}

impl Work {
    fn with_pgbench(pgbench: Vec<RunningPgbench>) -> Work {
        let mut work = Work::default();
        work.pgbench = pgbench;
        work
    }

    /// A session that repeats this.
    fn again(
        mut self,
        server: &Server,
        mut step: impl FnMut(&mut Client) + Send + 'static,
    ) -> Work {
        let (config, stop) = (server.cluster.config(), self.stop.clone());
        self.threads.push(std::thread::spawn(move || {
            let Ok(mut client) = config.connect(NoTls) else { return };
            while !stop.load(Ordering::Relaxed) && !client.is_closed() {
                step(&mut client);
            }
        }));
        self
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.pgbench.clear();
        self.sessions.clear();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        if let Some((mut standby, _)) = self.standby.take() {
            let _ = kill_process(Pid::from_raw(standby.id() as i32).unwrap(), Signal::INT);
            let _ = standby.wait();
        }
    }
}

fn tpc_b(server: &mut Server, clients: u32) -> Work {
    server.fill();
    Work::with_pgbench(vec![server.pgbench(&Load::TpcB, clients, None)])
}

fn background(server: &mut Server, background: Background) -> Work {
    server.prepare(background);
    Work::with_pgbench(server.load(background))
}

fn pause(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

/// All of them.
pub const HEALTHY: &[Healthy] = &[
    Healthy { name: "idle", start: |_| Work::default() },
    Healthy {
        name: "select-only",
        start: |server| {
            server.fill();
            let run = server.pgbench(&Load::Select, 2, None);
            Work::with_pgbench(vec![run])
        },
    },
    Healthy { name: "tpc-b, 2 clients", start: |server| tpc_b(server, 2) },
    Healthy { name: "tpc-b, 4 clients", start: |server| tpc_b(server, 4) },
    Healthy { name: "tpc-b, 8 clients", start: |server| tpc_b(server, 8) },
    Healthy { name: "mixed", start: |server| background(server, Background::Mixed) },
    Healthy { name: "saturated", start: |server| background(server, Background::Saturated) },
    Healthy { name: "bulk load", start: bulk_load },
    Healthy { name: "autovacuum at work", start: autovacuum },
    Healthy { name: "vacuum with cost delay", start: delayed_vacuum },
    Healthy { name: "dump", start: dump },
    Healthy { name: "create index", start: create_index },
    Healthy { name: "standby attached", start: standby },
    Healthy { name: "pooled sessions", start: pooled },
];

fn bulk_load(server: &mut Server) -> Work {
    let sql = "create table if not exists loaded (n int, filler text)";
    server.cluster.psql(sql).unwrap();
    let rows: String = (0..20_000).map(|n| format!("{n}\t{}\n", "x".repeat(60))).collect();
    Work::default().again(server, move |client| {
        use std::io::Write;
        let Ok(mut writer) = client.copy_in("copy loaded from stdin") else { return };
        let _ = writer.write_all(rows.as_bytes());
        let _ = writer.finish();
    })
}

fn autovacuum(server: &mut Server) -> Work {
    server
        .cluster
        .psql(
            "create table if not exists churned (id int primary key, v int, filler text);
             insert into churned select n, 0, repeat('x', 50) from generate_series(1, 20000) n on conflict do nothing;
             alter table churned set (autovacuum_vacuum_scale_factor = 0.05);",
        )
        .unwrap();
    for sql in ["alter system set autovacuum_naptime = '1s'", "select pg_reload_conf()"] {
        server.cluster.psql(sql).unwrap();
    }
    Work::default().again(server, |client| {
        let _ = client.simple_query("update churned set v = v + 1 where id <= 3000");
        pause(200);
    })
}

fn delayed_vacuum(server: &mut Server) -> Work {
    server.fill();
    Work::with_pgbench(vec![server.pgbench(&Load::TpcB, 2, Some(40.0))]).again(server, |client| {
        let _ = client.batch_execute("set vacuum_cost_delay = '20ms'");
        let _ = client.batch_execute("vacuum pgbench_accounts");
    })
}

fn dump(server: &mut Server) -> Work {
    server.fill();
    let cluster = &server.cluster;
    let mut command = cluster.os_user().command(&cluster.binaries().program("pg_dump"));
    command.args(["-U", cluster.user(), "-p", &cluster.port().to_string(), "-h"]);
    command.arg(cluster.host()).args(["-f", "/dev/null", "postgres"]);
    let mut work = Work::default();
    let stop = work.stop.clone();
    work.threads.push(std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            let _ = command.status();
        }
    }));
    work
}

fn create_index(server: &mut Server) -> Work {
    server.fill();
    Work::with_pgbench(vec![server.pgbench(&Load::Select, 2, Some(100.0))]).again(
        server,
        |client| {
            let _ = client.batch_execute(
                "create index concurrently made on pgbench_accounts (bid, abalance)",
            );
            let _ = client.batch_execute("drop index if exists made");
            pause(500);
        },
    )
}

fn standby(server: &mut Server) -> Work {
    let cluster = &server.cluster;
    let folder = tempfile::tempdir().unwrap();
    cluster.os_user().chown(folder.path()).unwrap();
    let data = folder.path().join("data");
    let mut command = cluster.os_user().command(&cluster.binaries().program("pg_basebackup"));
    command.args(["-U", cluster.user(), "-p", &cluster.port().to_string(), "-h"]);
    command.arg(cluster.host()).args(["-c", "fast", "-R", "-D"]).arg(&data);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let mut command = cluster.os_user().command(&cluster.binaries().program("postgres"));
    command.arg("-D").arg(&data).args(["-c", "shared_preload_libraries=", "-k"]).arg(folder.path());
    let (out, error) = (std::process::Stdio::null(), std::process::Stdio::null());
    let child = command.stdout(out).stderr(error).spawn().unwrap();
    let mut work = tpc_b(server, 2);
    work.standby = Some((child, folder));
    eventually("the standby streams", || {
        let sql = "select count(*) from pg_stat_replication where state = 'streaming'";
        server.cluster.psql(sql).is_ok_and(|found| found == "1")
    });
    work
}

fn pooled(server: &mut Server) -> Work {
    server.fill();
    let mut work = background(server, Background::Read);
    for _ in 0..30 {
        let mut client = server.cluster.connect().unwrap();
        client.batch_execute("select 1").unwrap();
        work.sessions.push(client);
    }
    // As a pool tests its connections.
    work.again(server, |client| {
        let _ = client.simple_query("select 1");
        pause(100);
    })
}
