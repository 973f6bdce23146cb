// SPDX-License-Identifier: PostgreSQL
//! Code shared by the tests: scratch servers with the built extension, installed or not, and the command.
#![allow(dead_code)] // each test program uses a part of it

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

pub mod clickhouse;
pub mod documented;
pub mod documents;
pub mod file_kinds;
pub mod fixtures;
pub mod fleet;
pub mod gate;
pub mod installation;
pub mod java;
pub mod json_reference;
pub mod lazy;
pub mod otlp;
pub mod owned;
pub mod paused;
pub mod ports;
pub mod programs;
pub mod pty;
pub mod python;
pub mod reachable;
pub mod readings;
pub mod recorder;
pub mod recordings;
pub mod rest;
pub mod row_lock;
pub mod serving;
pub mod shared_server;
pub mod slow_disk;
pub mod spark;
pub mod stepping;
pub mod stopped;
pub mod storage;
pub mod strace;
pub mod synthetic;
pub mod terminal;
pub mod tmux;
pub mod top;
pub mod verify;
pub mod witness;
pub mod workload;

use assert_cmd::Command;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::retry_on_intr;
use scratch::{Builder, Cluster};

/// The extension's library from the build, or the one in PGTALLY_LIBRARY.
pub fn library() -> PathBuf {
    let path = std::env::var_os("PGTALLY_LIBRARY").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pg_tally/pg_tally.so"),
        PathBuf::from,
    );
    assert!(path.exists(), "{} is not built; run make", path.display());
    path
}

/// The directory for the files of servers: in memory if there is space, because copying a thousand files takes a
/// busy disk a second. A container's /dev/shm often has 64 MB, or does not allow libraries in it to be mapped.
pub fn memory() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let fits = rustix::fs::statvfs(memory).is_ok_and(|found| {
        let noexec = found.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC);
        !noexec && found.f_bavail.saturating_mul(found.f_frsize) >= 2 << 30
    });
    if fits {
        memory.into()
    } else {
        std::env::temp_dir()
    }
}

/// A server that can load the extension but does not. Its files are in memory.
pub fn plain() -> Builder {
    impatient(Cluster::builder().directory(memory()).library(library()))
}

/// A session of a failed test must not wait for a lock forever, and the test with it.
fn impatient(builder: Builder) -> Builder {
    builder.setting("lock_timeout", "5min")
}

/// The same, but it flushes commits, and its files are on a disk.
pub fn flushing() -> Builder {
    impatient(Cluster::builder().fsync(true).library(library()))
}

/// A server that also listens on 127.0.0.1, and its port there, one that was free; its socket keeps its name.
pub fn on_loopback(builder: Builder) -> (Cluster, u16) {
    let free = ports::free_port();
    let mut cluster = builder
        .setting("listen_addresses", "127.0.0.1")
        .setting("port", &free.to_string())
        .create()
        .unwrap();
    let socket = |port| cluster.host().join(format!(".s.PGSQL.{port}"));
    std::os::unix::fs::symlink(socket(free), socket(cluster.port())).unwrap();
    cluster.start().unwrap();
    (cluster, free)
}

/// Whether the server has this contrib module; some builds have none.
pub fn has_module(name: &str) -> bool {
    let folder = scratch::Binaries::find().unwrap().config("--pkglibdir").unwrap();
    Path::new(&folder).join(format!("{name}.so")).exists()
}

/// The work of a thread until it has to stop.
pub type Load<'a> = dyn Fn(&AtomicBool) + Sync + 'a;

/// Runs `what` while these threads work; they stop in any case.
pub fn while_working<T>(load: &[&Load], what: impl FnOnce() -> T) -> T {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for work in load {
            scope.spawn(|| work(&stop));
        }
        let _stop = Stop(&stop);
        what()
    })
}

/// One session that executes this repeatedly.
pub fn again<'c>(cluster: &'c Cluster, sql: &'c str) -> impl Fn(&AtomicBool) + Sync + 'c {
    move |stop| {
        let mut client = cluster.connect().unwrap();
        while !stop.load(Ordering::Relaxed) {
            client.batch_execute(sql).unwrap();
        }
    }
}

/// Starts a server. Its segment is removed with it, however the test ends.
pub fn start(builder: Builder) -> Cluster {
    let mut cluster = builder.create().unwrap();
    let segment = segment(&cluster);
    cluster.also_remove(&segment);
    cluster.start().unwrap();
    cluster
}

/// A server with the extension in all of its processes.
pub fn shared() -> Cluster {
    start(plain().setting("shared_preload_libraries", "pg_tally"))
}

/// A server with the extension in every session.
pub fn sessions() -> Cluster {
    start(plain().setting("session_preload_libraries", "pg_tally"))
}

/// The process of a session.
pub fn pid_of(client: &mut postgres::Client) -> i32 {
    client.query_one("select pg_backend_pid()", &[]).unwrap().get(0)
}

/// A value in `tally.status`; empty if there is none.
pub fn status_of(client: &mut postgres::Client, name: &str) -> String {
    let sql = "select coalesce(max(value), '') from tally.status where name = $1";
    client.query_one(sql, &[&name]).unwrap().get(0)
}

/// The path of a cluster's segment.
pub fn segment(cluster: &Cluster) -> PathBuf {
    let meta = std::fs::metadata(cluster.data_dir()).unwrap();
    PathBuf::from(format!("/dev/shm/pg_tally.{:x}.{:x}", meta.dev(), meta.ino()))
}

/// Connection settings in the environment.
pub const CONNECTION: [&str; 7] =
    ["PGHOST", "PGHOSTADDR", "PGPORT", "PGUSER", "PGPASSWORD", "PGDATABASE", "PGSERVICE"];

/// The command, without connection settings from the environment. If it hangs, it is killed, which fails the
/// test.
pub fn tally() -> Command {
    let mut command = Command::cargo_bin("tally").unwrap();
    for name in CONNECTION {
        command.env_remove(name);
    }
    command.timeout(3 * PATIENCE);
    command
}

/// Standard output of a command, which must succeed.
pub fn output(command: &mut Command) -> String {
    let output = command.assert().success().get_output().stdout.clone();
    String::from_utf8(output).unwrap()
}

/// What `tally doctor` says of a server, with a connection to it, after so many seconds.
pub fn doctor(cluster: &Cluster, seconds: u64) -> serde_json::Value {
    doctor_of(segment(cluster).as_os_str(), seconds, &[])
}

/// The same for any target, with these options.
pub fn doctor_of(target: &OsStr, seconds: u64, more: &[&str]) -> serde_json::Value {
    let mut doctor = tally();
    doctor.args(["doctor", "--json", "--for", &seconds.to_string()]).args(more);
    serde_json::from_str(&output(doctor.env("PGUSER", "postgres").arg(target))).unwrap()
}

/// The SQL command in a diagnosis that begins so.
pub fn command_of(diagnosis: &serde_json::Value, begin: &str) -> Option<String> {
    let commands = diagnosis["commands"].as_array()?.iter().filter_map(|sql| sql.as_str());
    commands.map(str::to_owned).find(|sql| sql.starts_with(begin))
}

/// Standard error of a command, which must fail with this code and print nothing else.
pub fn complaint(command: &mut Command, code: i32) -> String {
    let output = command.assert().code(code).get_output().clone();
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

/// Runs the extension's SQL script, since CREATE EXTENSION would need an installation.
pub fn create_views(cluster: &Cluster) {
    create_views_in(&mut cluster.connect().unwrap());
}

/// The same in this session's database.
pub fn create_views_in(client: &mut postgres::Client) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pg_tally");
    let script = std::fs::read_dir(&folder)
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .find(|path| {
            // Scripts of updates have two versions in their names.
            let name = path.file_name().unwrap().to_string_lossy();
            name.ends_with(".sql") && name.matches("--").count() == 1
        })
        .unwrap();
    let sql: String = std::fs::read_to_string(script)
        .unwrap()
        .lines()
        .filter(|line| !line.starts_with('\\'))
        .map(|line| line.replace("MODULE_PATHNAME", "pg_tally") + "\n")
        .collect();
    client.batch_execute(&sql).unwrap();
}

/// The major version of the servers that will be started.
pub fn major() -> u32 {
    let version = scratch::Binaries::find().unwrap().config("--version").unwrap();
    let digits = |c: char| !c.is_ascii_digit();
    version.split(digits).find(|part| !part.is_empty()).unwrap().parse().unwrap()
}

/// Whether the servers are built for another processor and run in an emulator (script/in-server). Then its
/// processes have a second thread, their command line is the emulator's, and the kernel does not see which of
/// their functions runs.
pub fn emulated() -> bool {
    std::env::var_os("PGTALLY_RUN").is_some()
}

/// The result of evaluating a condition that is waited for.
pub trait Outcome {
    /// The value once the condition holds.
    type Value;
    /// The value, or what is there instead.
    fn value(self) -> Result<Self::Value, String>;
}

impl Outcome for bool {
    type Value = ();
    fn value(self) -> Result<(), String> {
        self.then_some(()).ok_or_else(|| "false".into())
    }
}

impl<T> Outcome for Option<T> {
    type Value = T;
    fn value(self) -> Result<T, String> {
        self.ok_or_else(|| "nothing".into())
    }
}

impl<T, E: std::fmt::Debug> Outcome for Result<T, E> {
    type Value = T;
    fn value(self) -> Result<T, String> {
        self.map_err(|found| format!("{found:?}"))
    }
}

/// How long to wait for a condition. No figure depends on it, but a condition that never holds must fail at some
/// time.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until `holds` returns true, Some or Ok; returns the value. After [`PATIENCE`], panics with what was last
/// there instead.
pub fn eventually<O: Outcome>(what: &str, mut holds: impl FnMut() -> O) -> O::Value {
    let began = Instant::now();
    loop {
        match holds().value() {
            Ok(value) => return value,
            Err(found) if began.elapsed() > PATIENCE => {
                panic!("timeout while waiting until {what}; last seen: {found}")
            }
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// The next line of a program's output, with its line end; empty if the program has closed it. If a program
/// writes nothing for as long as a command may take, the test fails instead of waiting forever.
pub fn line_of<R: Read + AsFd>(output: &mut BufReader<R>) -> String {
    if output.buffer().is_empty() {
        let limit = Timespec { tv_sec: 3 * PATIENCE.as_secs() as i64, tv_nsec: 0 };
        let mut ready = [PollFd::new(output.get_ref(), PollFlags::IN)];
        let found = retry_on_intr(|| poll(&mut ready, Some(&limit))).unwrap();
        assert!(found > 0, "the program has written nothing for {} s", limit.tv_sec);
    }
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    line
}

/// Columns that distinguish a statement from those of all other numbers. Only the types of constants count,
/// because query IDs ignore their values.
pub fn distinct(number: usize) -> String {
    let column = |bit: usize| if number >> bit & 1 == 1 { "1" } else { "'x'" };
    (0..12).map(column).collect::<Vec<_>>().join(", ")
}

/// Runs a copy of the command that other users can reach, as this user, which requires root; the target comes
/// last.
pub fn as_user(uid: u32, gid: u32, arguments: &[&str], target: &Path) -> std::process::Output {
    let folder = tempfile::tempdir().unwrap();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    let program = folder.path().join("tally");
    programs::copy(assert_cmd::cargo::cargo_bin("tally"), &program);
    std::process::Command::new("setpriv")
        .args(["--reuid", &uid.to_string(), "--regid", &gid.to_string(), "--clear-groups"])
        .arg(program)
        .args(arguments)
        .arg(target)
        .output()
        .unwrap()
}
