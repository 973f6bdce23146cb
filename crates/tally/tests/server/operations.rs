// SPDX-License-Identifier: PostgreSQL
//! What administrators do to servers: base backups, promotions, dropped databases.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use recording::{Range, Recording};
use rustix::process::{kill_process, Pid, Signal};
use scratch::{Cluster, StopMode};

use crate::support::reachable::Reachable;
use crate::support::recorder::Recorder;
use crate::support::{create_views, eventually, memory, plain, segment, shared, start};

/// Takes a base backup that may start as a standby.
fn base_backup(cluster: &Cluster, data: &Path) {
    let mut command = cluster.os_user().command(&cluster.binaries().program("pg_basebackup"));
    command.args(["-U", cluster.user(), "-p", &cluster.port().to_string(), "-h"]);
    command.arg(cluster.host()).args(["-c", "fast", "-R", "-D"]).arg(data);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// A directory in which the server's user may make others.
fn folder(cluster: &Cluster) -> tempfile::TempDir {
    let folder = tempfile::tempdir_in(memory()).unwrap();
    cluster.os_user().chown(folder.path()).unwrap();
    folder
}

/// A standby on the same machine, with the settings of its primary.
struct Standby {
    child: Child,
    /// Removed with it.
    _folder: tempfile::TempDir,
    segment: PathBuf,
    config: postgres::Config,
}

impl Standby {
    fn start(primary: &Cluster) -> Standby {
        let folder = folder(primary);
        base_backup(primary, &folder.path().join("data"));
        let standby = Standby::run(primary, folder);
        eventually("the standby streams", || {
            let sql = "select count(*) from pg_stat_replication where state = 'streaming'";
            primary.psql(sql).is_ok_and(|found| found == "1")
        });
        standby
    }

    /// Starts a server on the data directory in this folder.
    fn run(primary: &Cluster, folder: tempfile::TempDir) -> Standby {
        let data = folder.path().join("data");
        let meta = std::fs::metadata(&data).unwrap();
        let segment = PathBuf::from(format!("/dev/shm/pg_tally.{:x}.{:x}", meta.dev(), meta.ino()));
        let mut command = primary.os_user().command(&primary.binaries().program("postgres"));
        command.arg("-D").arg(&data).arg("-k").arg(folder.path());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut config = postgres::Config::new();
        config.host_path(folder.path()).port(primary.port()).dbname("postgres");
        config.user(primary.user());
        Standby { child, _folder: folder, segment, config }
    }

    fn connect(&self) -> postgres::Client {
        self.config.connect(postgres::NoTls).unwrap()
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.child.id() as i32).unwrap();
        // A fast shutdown.
        let _ = kill_process(pid, Signal::INT);
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.segment);
    }
}

#[test]
fn a_base_backup_has_none_of_our_files() {
    let mut cluster = shared();
    cluster.psql("create table t as select generate_series(1, 1000)").unwrap();
    // A clean stop saves the statements in the data directory, and the next start takes them from there.
    cluster.stop(StopMode::Fast).unwrap();
    let saved = cluster.data_dir().join("pg_stat/pg_tally.statements");
    assert!(saved.exists());
    cluster.start().unwrap();
    let folder = folder(&cluster);
    let data = folder.path().join("data");
    base_backup(&cluster, &data);
    let mut folders = vec![data];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            assert!(!name.contains("tally"), "{}", path.display());
            files += 1;
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    assert!(files > 500, "{files}");
}

#[test]
fn a_server_restored_to_a_point_in_time_starts_anew() {
    let archive = tempfile::tempdir_in(memory()).unwrap();
    let copy = |from: &str, to: &str| {
        format!("cp {from} {to}").replace("ARCHIVE", archive.path().to_str().unwrap())
    };
    let cluster = start(
        plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("archive_mode", "on")
            .setting("archive_command", &copy("%p", "ARCHIVE/%f")),
    );
    cluster.os_user().chown(archive.path()).unwrap();
    create_views(&cluster);
    cluster.psql("create table before_the_backup as select 1 i").unwrap();
    let folder = folder(&cluster);
    let data = folder.path().join("data");
    base_backup(&cluster, &data);
    std::fs::rename(data.join("standby.signal"), data.join("recovery.signal")).unwrap();
    let settings = data.join("postgresql.auto.conf");
    let restore = format!(
        "restore_command = '{}'\nrecovery_target = 'immediate'\nrecovery_target_action = 'promote'\nprimary_conninfo = ''\n",
        copy("ARCHIVE/%f", "%p")
    );
    let text = std::fs::read_to_string(&settings).unwrap() + &restore;
    std::fs::write(&settings, text).unwrap();
    let restored = Standby::run(&cluster, folder);
    let mut client =
        eventually("it accepts connections", || restored.config.connect(postgres::NoTls).ok());
    eventually("it is restored", || {
        let sql = "select pg_is_in_recovery()";
        !client.query_one(sql, &[]).unwrap().get::<_, bool>(0)
    });
    // Beside the other server, with a segment and statistics of its own.
    assert!(restored.segment.exists());
    assert_ne!(restored.segment, segment(&cluster));
    client.batch_execute("insert into before_the_backup values (2)").unwrap();
    let sql = "select string_agg(query, ' ') from tally.statements where query like '%before_the_backup%'";
    let known: String = client.query_one(sql, &[]).unwrap().get(0);
    assert!(known.contains("insert into") && !known.contains("create table"), "{known}");
}

#[test]
fn a_standby_is_recorded_over_its_promotion() {
    let primary = shared();
    let standby = Standby::start(&primary);
    // Two servers of one machine with the same settings: each has a segment of its own.
    assert!(standby.segment.exists());
    assert_ne!(standby.segment, segment(&primary));
    let output = tempfile::tempdir().unwrap();
    let directory = output.path().join("recording");
    let more = ["--interval", "100ms", "--detail", "500ms"];
    let recorder =
        Recorder::start_as(standby.segment.as_os_str(), primary.user(), &directory, &more);
    // At its beginning, the recorder asks from whom the server receives WAL.
    recorder.wait_for_condition("receiver");
    let before = recorder.frames();
    let mut client = standby.connect();
    let sql = "select pg_is_in_recovery()";
    assert!(client.query_one(sql, &[]).unwrap().get::<_, bool>(0));
    assert!(client.query_one("select pg_promote(true, 300)", &[]).unwrap().get::<_, bool>(0));
    client.batch_execute("create table made_after (i int)").unwrap();
    for _ in 0..50 {
        client.batch_execute("insert into made_after values (1)").unwrap();
    }
    drop(client);
    recorder.wait_for(15);
    recorder.end(Signal::INT);
    let recording = Recording::open(&directory, None).unwrap();
    let conditions = recording.conditions(Range::ALL).unwrap();
    let receiver = conditions.iter().find(|row| &*row.kind == "receiver").unwrap();
    assert_eq!((&*receiver.state, receiver.count > 0), ("streaming", true), "{receiver:?}");
    // One server, without an end or a gap: the promotion restarts nothing.
    assert_eq!(recording.servers().unwrap().len(), 1);
    let gaps = recording.gaps(Range::ALL).unwrap();
    assert!(gaps.is_empty(), "{gaps:?}");
    let rows = recording.frame_rows(Range::ALL).unwrap();
    assert!(rows.last().unwrap().frame > before);
    let statements = recording.statements(Range::ALL).unwrap().unwrap();
    let table = view::statements::StatementsTable::between(None, &std::sync::Arc::new(statements));
    let rows = serde_json::to_value(&table).unwrap()["rows"].as_array().unwrap().clone();
    let inserts = rows
        .iter()
        .find(|row| row["query"].as_str().is_some_and(|text| text.contains("into made_after")));
    assert_eq!(inserts.unwrap()["calls"], 50);
}

#[test]
fn a_remote_recorder_holds_up_no_drop_database() {
    let server = Reachable::start(&[]);
    server.cluster.psql("create database shop").unwrap();
    let output = tempfile::tempdir().unwrap();
    let directory = output.path().join("recording");
    // Nobody names a database, and there is none of the role's name.
    let target = server.full_string("watcher").replace(" dbname=postgres", "");
    let more = ["--interval", "100ms"];
    let recorder = Recorder::start_as(OsStr::new(&target), "nobody", &directory, &more);
    recorder.wait_for(2);
    let ours = "select string_agg(distinct datname, ' ') from pg_stat_activity \
                where application_name = 'tally' and usename = 'watcher'";
    // It queries the catalogs of other databases for moments; DROP DATABASE waits for these.
    eventually("only one session stays", || server.cluster.psql(ours).unwrap() == "postgres");
    let mut shop = server.cluster.config().dbname("shop").connect(postgres::NoTls).unwrap();
    shop.batch_execute("create table t as select generate_series(1, 1000) i").unwrap();
    recorder.wait_for(3);
    drop(shop);
    server.cluster.psql("drop database shop").unwrap();
    recorder.wait_for(2);
    recorder.end(Signal::INT);
}
