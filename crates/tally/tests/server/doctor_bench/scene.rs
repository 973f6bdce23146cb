// SPDX-License-Identifier: PostgreSQL
//! Where a problem is planted: a database and a role by themselves on a server that others use too, names drawn by lot, and
//! what has to end with it.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use postgres::{Client, Config, NoTls};
use scratch::Cluster;

use crate::support::eventually;
use crate::support::stopped::Stopped;
use crate::support::synthetic::Dice;

/// Words for tables, columns, applications and roles.
const TABLES: [&str; 10] = [
    "invoice", "shipment", "ticket", "booking", "device", "reading", "article", "member",
    "voucher", "posting",
];
const COLUMNS: [&str; 6] = ["customer", "region", "batch", "serial", "branch", "vendor"];
const APPLICATIONS: [&str; 7] =
    ["billing", "importer", "webshop", "nightly", "sync-agent", "reporter", "worker"];

/// A problem that is planted. Dropping it ends everything that belongs to it.
pub struct Scene<'c> {
    pub cluster: &'c Cluster,
    /// Whether it is the severe form of the problem.
    pub severe: bool,
    /// Length of the watch, seconds.
    pub seconds: u64,
    pub database: String,
    pub role: String,
    dice: Dice,
    /// Words that the first diagnosis must contain: names of objects, PIDs.
    pub truth: Vec<String>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    sessions: Vec<Client>,
    programs: Vec<Child>,
    processes: Vec<Stopped>,
    undo: Vec<String>,
}

impl<'c> Scene<'c> {
    pub fn new(cluster: &'c Cluster, seed: u64, severe: bool, seconds: u64) -> Scene<'c> {
        let mut scene = Scene {
            cluster,
            severe,
            seconds,
            database: String::new(),
            role: String::new(),
            dice: Dice(seed),
            truth: Vec::new(),
            stop: Arc::default(),
            threads: Vec::new(),
            sessions: Vec::new(),
            programs: Vec::new(),
            processes: Vec::new(),
            undo: Vec::new(),
        };
        // The first numbers of neighbouring seeds are alike.
        for _ in 0..8 {
            scene.dice.throw();
        }
        let number = scene.number(100, 999);
        scene.role = format!("{}_{number}", scene.application().replace('-', "_"));
        scene.database = format!("shop_{number}");
        scene.admin(&format!("create role {}", scene.role));
        scene.admin(&format!("alter role {} login", scene.role));
        scene.admin(&format!("create database {} owner {}", scene.database, scene.role));
        scene
    }

    /// The mild or the severe value.
    pub fn by<T>(&self, mild: T, severe: T) -> T {
        if self.severe {
            severe
        } else {
            mild
        }
    }

    pub fn number(&mut self, from: u64, to: u64) -> u64 {
        from + (self.dice.throw() * (to - from + 1) as f64) as u64
    }

    fn one_of(&mut self, words: &[&str]) -> String {
        words[self.number(0, words.len() as u64 - 1) as usize].to_owned()
    }

    /// The name of a table; it belongs to the truth.
    pub fn table(&mut self) -> String {
        let name = format!("{}_{}", self.one_of(&TABLES), self.number(10, 99));
        self.must_name(&name);
        name
    }

    pub fn column(&mut self) -> String {
        self.one_of(&COLUMNS)
    }

    pub fn application(&mut self) -> String {
        self.one_of(&APPLICATIONS)
    }

    /// The first diagnosis must contain this.
    pub fn must_name(&mut self, word: impl ToString) {
        self.truth.push(word.to_string());
    }

    /// As superuser, in database postgres. Waits for no standby.
    pub fn admin(&self, sql: &str) -> String {
        self.cluster.psql(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    pub fn config(&self, application: &str) -> Config {
        let mut config = self.cluster.config();
        config.user(&self.role).dbname(&self.database).application_name(application);
        config
    }

    /// As the owner of the database.
    pub fn sql(&self, sql: &str) {
        let mut client = self.config("setup").connect(NoTls).unwrap();
        client.batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    /// As superuser, in the problem's own database.
    pub fn superuser(&self) -> Client {
        self.cluster.config().dbname(&self.database).connect(NoTls).unwrap()
    }

    /// Waits until this SQL in the problem's database is true.
    pub fn until(&self, sql: &str) {
        let mut client = self.superuser();
        eventually(sql, || client.query_one(sql, &[]).is_ok_and(|row| row.get::<_, bool>(0)));
    }

    /// A session and its PID.
    pub fn session(&self, application: &str) -> (Client, i32) {
        let mut client = self.config(application).connect(NoTls).unwrap();
        let pid = client.query_one("select pg_backend_pid()", &[]).unwrap().get(0);
        (client, pid)
    }

    /// Keeps a session, with what it holds, until the end.
    pub fn keep(&mut self, session: Client) {
        self.sessions.push(session);
    }

    /// A session that repeats this until the end, or until somebody ends it.
    pub fn again(&mut self, application: &str, mut step: impl FnMut(&mut Client) + Send + 'static) {
        let (config, stop) = (self.config(application), self.stop.clone());
        self.thread(move || {
            let Ok(mut client) = config.connect(NoTls) else { return };
            while !stop.load(Ordering::Relaxed) && !client.is_closed() {
                step(&mut client);
            }
        });
    }

    /// A session that does this once; its application and its PID, when it has begun.
    pub fn once(&mut self, application: &str, sql: &str) -> i32 {
        let (mut client, pid) = self.session(application);
        let sql = sql.to_owned();
        self.thread(move || {
            // It may be cancelled.
            let _ = client.batch_execute(&sql);
        });
        pid
    }

    /// A thread that ends when it is asked to.
    pub fn thread(&mut self, work: impl FnOnce() + Send + 'static) {
        self.threads.push(std::thread::spawn(work));
    }

    pub fn stop(&self) -> Arc<AtomicBool> {
        self.stop.clone()
    }

    /// A program of the server's installation.
    pub fn program(&mut self, name: &str, arguments: &[&str]) -> i32 {
        let mut command: Command =
            self.cluster.os_user().command(&self.cluster.binaries().program(name));
        command.args(["-U", self.cluster.user(), "-p", &self.cluster.port().to_string(), "-h"]);
        command.arg(self.cluster.host()).args(arguments).current_dir(self.cluster.dir());
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let child = child.unwrap();
        let pid = child.id() as i32;
        self.programs.push(child);
        pid
    }

    /// Stops a process until the end.
    pub fn freeze(&mut self, pid: i32) {
        self.processes.push(Stopped::new(pid));
    }

    /// SQL that the superuser executes at the end.
    pub fn at_the_end(&mut self, sql: &str) {
        self.undo.push(sql.to_owned());
    }

    /// Reads rows more slowly than the server sends them.
    pub fn reads_slowly(&mut self, application: &str, sql: &str) {
        let sql = format!("copy ({sql}) to stdout");
        let stop = self.stop();
        self.again(application, move |client| {
            let Ok(mut rows) = client.copy_out(&sql) else { return };
            let mut buffer = [0; 1000];
            while !stop.load(Ordering::Relaxed) && rows.read_exact(&mut buffer).is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
    }
}

impl Drop for Scene<'_> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.processes.clear();
        for program in &mut self.programs {
            let _ = program.kill();
            let _ = program.wait();
        }
        // A case that failed must not keep the next one from being examined.
        for sql in std::mem::take(&mut self.undo) {
            let _ = self.cluster.psql(&sql);
        }
        self.sessions.clear();
        let end = format!(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '{}' and pid <> pg_backend_pid()",
            self.database
        );
        let _ = self.cluster.psql(&end);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        let _ =
            self.cluster.psql(&format!("drop database if exists {} with (force)", self.database));
        let _ = self.cluster.psql(&format!("drop role if exists {}", self.role));
    }
}
