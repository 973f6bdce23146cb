// SPDX-License-Identifier: PostgreSQL
//! If slots, memory or the file system run out, the server is not affected, status names the right remedy, and
//! processes without a slot get one once there is space again.

use crate::support;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::slow_disk::rerun_in_mount_namespace;
use scratch::{Cluster, Load};

/// PIDs of the sessions that have a slot, according to the view.
fn seen(client: &mut postgres::Client) -> Vec<i32> {
    let rows = client.query("select pid from tally.sessions", &[]).unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

fn status(cluster: &Cluster) -> (serde_json::Value, String) {
    let json = support::output(support::tally().args(["status", "--json"]).arg(cluster.data_dir()));
    let text = support::output(support::tally().arg("status").arg(cluster.data_dir()));
    (serde_json::from_str(&json).unwrap(), text)
}

fn lines(cluster: &Cluster, text: &str) -> usize {
    cluster.log().lines().filter(|line| line.contains(text)).count()
}

#[test]
fn sessions_without_a_slot_cost_little_and_get_the_next_free_one() {
    const SLOTS: u32 = 9;
    let builder = support::plain()
        .setting("shared_preload_libraries", "pg_tally")
        .setting("autovacuum", "off")
        .setting("pg_tally.max_slots", &SLOTS.to_string());
    // From 18 on, I/O workers would take slots.
    let cluster = support::start(match support::major() {
        15..=17 => builder,
        _ => builder.setting("io_method", "sync"),
    });
    support::create_views(&cluster);
    let mut first: Vec<_> = (0..SLOTS).map(|_| cluster.connect().unwrap()).collect();
    let mut late: Vec<_> = (0..3).map(|_| cluster.connect().unwrap()).collect();
    let late_pids: Vec<i32> = late.iter_mut().map(support::pid_of).collect();
    let now_seen = seen(&mut first[0]);
    assert_eq!(now_seen.len(), SLOTS as usize, "{now_seen:?}");
    assert!(late_pids.iter().all(|pid| !now_seen.contains(pid)));

    // None of these gets a slot. The search for dead owners runs once a second, not for each connection.
    let postmaster = i32::try_from(cluster.postmaster_pid().unwrap()).unwrap();
    let began = std::time::Instant::now();
    let trace = support::strace::Strace::start("kill", &[postmaster]);
    for _ in 0..60 {
        drop(cluster.connect().unwrap());
    }
    if let Some(calls) = trace.map(support::strace::Strace::stop) {
        let searches = calls.iter().filter(|call| call.number(1) == Some(0)).count() as u64;
        let max = u64::from(SLOTS) * (2 + began.elapsed().as_secs());
        assert!(searches <= max, "{searches} owners checked in {:?}", began.elapsed());
    }
    assert_eq!(
        lines(&cluster, "pg_tally could not instrument process"),
        1,
        "{}",
        cluster.log_tail(20)
    );
    assert_eq!(lines(&cluster, "Increase pg_tally.max_slots (currently 9)"), 1);
    let (json, text) = status(&cluster);
    assert_eq!(json["mode"], "shared");
    assert_eq!(json["exact"], false, "{json}");
    assert!(json["overflow"]["slots"].as_u64().unwrap() > 3, "{json}");
    assert_eq!(json["overflow"]["memory"], 0);
    assert!(text.contains("raise pg_tally.max_slots"), "{text}");
    assert!(!text.contains("free space on"), "{text}");

    // Sessions without a slot take over those of ended sessions at their next statement: after it has been
    // answered, when they wait for another one.
    first.truncate(1);
    let segment = segment::Segment::open(&support::segment(&cluster)).unwrap();
    // Four sessions with a slot have ended.
    support::eventually("slots are released", || segment.population().unwrap() + 4 <= SLOTS);
    for client in &mut late {
        client.simple_query("select 1").unwrap();
    }
    support::eventually("the sessions have a slot", || {
        let now_seen = seen(&mut first[0]);
        late_pids.iter().all(|pid| now_seen.contains(pid))
    });
    support::eventually("the figures are exact again", || status(&cluster).0["exact"] == true);
}

fn available(folder: &Path) -> (u64, u64) {
    let fs = rustix::fs::statvfs(folder).unwrap();
    (fs.f_bavail * fs.f_frsize, fs.f_blocks * fs.f_frsize)
}

/// Starts a server whose segment is on a file system of this size, in this process's mount namespace.
fn start_on_small_file_system(cluster: &mut Cluster, size: &str) -> PathBuf {
    let folder = cluster.dir().join("small");
    std::fs::create_dir(&folder).unwrap();
    let owner = std::fs::metadata(cluster.data_dir()).unwrap();
    let options = format!("size={size},uid={},mode=0700", owner.uid());
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", &options, "small"])
        .arg(&folder)
        .output()
        .unwrap();
    assert!(mount.status.success(), "{mount:?}");
    cluster.append_config(&format!("pg_tally.directory = '{}'\n", folder.display())).unwrap();
    cluster.start().unwrap();
    folder
}

/// The size of a container's /dev/shm. The rest is for parallel queries.
#[test]
fn the_segment_holds_a_quarter_of_a_small_file_system() {
    const MB: u64 = 1 << 20;
    if rerun_in_mount_namespace("attack_limits::the_segment_holds_a_quarter_of_a_small_file_system")
    {
        return;
    }
    let cluster = support::plain().setting("shared_preload_libraries", "pg_tally").create();
    let mut cluster = cluster.unwrap();
    let folder = start_on_small_file_system(&mut cluster, "64m");
    support::create_views(&cluster);
    assert_eq!(lines(&cluster, "pg_tally uses at most 16 MB for segment"), 1);
    let held = || {
        let (left, all) = available(&folder);
        all - left
    };
    let mut clients: Vec<_> = (0..80).map(|_| cluster.connect().unwrap()).collect();
    let level = support::tally().args(["level", "locks"]).arg(cluster.data_dir()).output().unwrap();
    assert!(level.status.success(), "{level:?}");
    for (n, client) in clients.iter_mut().enumerate() {
        for statement in 0..30 {
            client
                .batch_execute(&format!("select count(*) as c{n}_{statement} from pg_class"))
                .unwrap();
        }
        assert!(held() <= 16 * MB, "{} bytes", held());
    }
    let most = held();
    assert!(most > 8 * MB, "{most} bytes: memory was not short");
    let limit =
        clients[0].query_one("select value from tally.status where name = 'memory limit'", &[]);
    assert_eq!(limit.unwrap().get::<_, String>(0), "16 MB, a quarter of the file system");
    let (json, text) = status(&cluster);
    assert_eq!(json["segment"]["limit_bytes"], 16 * MB);
    assert!(text.contains("at most 16.0 MiB, a quarter of its file system)"), "{text}");
    // Once they have ended, their books are not kept.
    drop(clients);
    support::eventually("memory of ended sessions is given back", || held() + 2 * MB < most);
    let _ = Command::new("umount").arg("-l").arg(&folder).status();
    drop(cluster);
}

/// As in a container: the server's dynamic shared memory and the segment are on the same 64 MB.
#[test]
fn a_small_dev_shm_leaves_parallel_queries_their_memory() {
    const MB: u64 = 1 << 20;
    const SESSIONS: usize = 200;
    const ROWS: i64 = 250_000;
    if rerun_in_mount_namespace(
        "attack_limits::a_small_dev_shm_leaves_parallel_queries_their_memory",
    ) {
        return;
    }
    let options = ["-t", "tmpfs", "-o", "size=64m,mode=1777", "shm", "/dev/shm"];
    let mount = Command::new("mount").args(options).output().unwrap();
    assert!(mount.status.success(), "{mount:?}");
    let cluster = support::start(
        support::plain()
            .directory(std::env::temp_dir())
            .setting("shared_preload_libraries", "pg_tally")
            .setting("max_connections", "220")
            .setting("pg_tally.max_statements", "6000")
            .setting("autovacuum", "off"),
    );
    let mut client = cluster.connect().unwrap();
    for table in ["a", "b"] {
        let rows = format!("select i as id, i % 1000 as v from generate_series(1, {ROWS}) i");
        client.batch_execute(&format!("create table {table} as {rows}; analyze {table}")).unwrap();
    }
    client.batch_execute("create index on a (id); create index on a (v)").unwrap();

    let mut sessions: Vec<_> = (0..SESSIONS).map(|_| cluster.connect().unwrap()).collect();
    for (n, session) in sessions.iter_mut().enumerate() {
        for statement in 0..30 {
            session.batch_execute(&format!("select 1 as c{n}_{statement}")).unwrap();
        }
    }
    let held = std::fs::metadata(support::segment(&cluster)).unwrap().blocks() * 512;
    assert!(held > 8 * MB && held <= 16 * MB, "the segment holds {held} bytes");
    let found =
        support::output(support::tally().args(["doctor", "--json"]).arg(cluster.data_dir()));
    assert!(found.contains("\"small-file-system\""), "{found}");

    client
        .batch_execute(
            "set max_parallel_workers_per_gather = 2; set parallel_setup_cost = 0; set parallel_tuple_cost = 0;
             set min_parallel_table_scan_size = 0; set min_parallel_index_scan_size = 0; set work_mem = '16MB';
             set enable_mergejoin = off; set enable_nestloop = off; set max_parallel_maintenance_workers = 2",
        )
        .unwrap();
    let join = "select count(*) from a join b using (id)";
    let plan = client.query(&format!("explain {join}"), &[]).unwrap();
    let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
    assert!(plan.iter().any(|line| line.contains("Parallel Hash")), "{plan:#?}");
    assert_eq!(client.query_one(join, &[]).unwrap().get::<_, i64>(0), ROWS);
    client.batch_execute("delete from a where id % 3 = 0").unwrap();
    client.batch_execute("vacuum (parallel 2) a").unwrap();
    drop(sessions);
}

#[test]
fn the_last_quarter_of_memory_is_left_to_the_server() {
    if rerun_in_mount_namespace("attack_limits::the_last_quarter_of_memory_is_left_to_the_server") {
        return;
    }
    let cluster = support::plain()
        .setting("shared_preload_libraries", "pg_tally")
        .setting("pg_tally.max_statements", "100")
        .setting("pg_tally.max_relations", "100")
        .create();
    let mut cluster = cluster.unwrap();
    let folder = start_on_small_file_system(&mut cluster, "5m");
    cluster.pgbench_init(1).unwrap();
    support::create_views(&cluster);
    // Books grow until the file system has no more space for them.
    let mut clients: Vec<_> = (0..60).map(|_| cluster.connect().unwrap()).collect();
    let level = support::tally().args(["level", "locks"]).arg(cluster.data_dir()).output().unwrap();
    assert!(level.status.success(), "{level:?}");
    for client in &mut clients {
        client.batch_execute("begin; select count(*) from pgbench_accounts; commit").unwrap();
    }
    let (left, all) = available(&folder);
    assert!(left >= all / 4, "{left} of {all} bytes are left");
    assert!(left < all / 2, "{left} of {all} bytes are left: memory was not short");
    let count = seen(&mut clients[0]).len();
    assert!(count < 60, "{count} processes found memory");
    assert_eq!(
        lines(&cluster, "pg_tally could not instrument process"),
        1,
        "{}",
        cluster.log_tail(20)
    );
    assert_eq!(lines(&cluster, "no memory for a slot"), 1);
    let (json, text) = status(&cluster);
    assert_eq!(json["exact"], false, "{json}");
    assert_eq!(json["overflow"]["slots"], 0, "{json}");
    assert!(text.contains("free space on the segment's file system"), "{text}");
    assert!(!text.contains("raise pg_tally.max_slots"), "{text}");
    let result = cluster.pgbench().load(Load::TpcB).clients(4).transactions(50).run().unwrap();
    assert_eq!(result.failed, 0);
    drop(clients);
    // The cluster removes its directory.
    let _ = Command::new("umount").arg("-l").arg(&folder).status();
    drop(cluster);
}

#[test]
fn a_directory_on_disk_is_refused_unless_the_setting_allows_it() {
    // The cluster's directory may be in memory; /var/tmp is usually on disk.
    let made = Command::new("mktemp").args(["-d", "/var/tmp/tally.XXXXXX"]).output().unwrap();
    let folder = String::from_utf8(made.stdout).unwrap().trim().to_string();
    let kind = Command::new("stat").args(["-f", "-c", "%T", &folder]).output().unwrap();
    if String::from_utf8(kind.stdout).unwrap().trim() == "tmpfs" {
        println!("not tested: {folder} is in memory");
        std::fs::remove_dir(&folder).unwrap();
        return;
    }
    let mut cluster =
        support::plain().setting("shared_preload_libraries", "pg_tally").create().unwrap();
    cluster.os_user().chown(Path::new(&folder)).unwrap();
    cluster.append_config(&format!("pg_tally.directory = '{folder}'\n")).unwrap();
    cluster.start().unwrap();
    support::create_views(&cluster);
    let value = |cluster: &Cluster, name: &str| {
        let sql = format!("select value from tally.status where name = '{name}'");
        cluster.psql(&sql).unwrap().trim().to_string()
    };
    assert_eq!(value(&cluster, "active"), "no");
    assert!(value(&cluster, "reason").contains("medium"), "{}", value(&cluster, "reason"));
    assert_eq!(lines(&cluster, "pg_tally.directory_on_disk = on"), 1, "{}", cluster.log());
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    // No LOAD helps here.
    let complaint = cluster.psql("select * from tally.ledger").unwrap_err().to_string();
    assert!(complaint.contains("on tmpfs") && complaint.contains("Then restart"), "{complaint}");
    assert!(!complaint.contains("LOAD"), "{complaint}");
    cluster.append_config("pg_tally.directory_on_disk = on\n").unwrap();
    cluster.restart().unwrap();
    assert_eq!(value(&cluster, "active"), "yes");
    cluster.stop(scratch::StopMode::Fast).unwrap();
    std::fs::remove_dir(&folder).unwrap();
}
