// SPDX-License-Identifier: PostgreSQL
//! Little memory, few rights, foreign files in the way: the server works all the same, and everything that is not
//! counted is reported.

use crate::support;
use std::fs;
use std::os::unix::fs::{chown, FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use postgres::Client;
use scratch::{Builder, Cluster, Load};
use segment::directory::StatKind;
use segment::{Level, Overflows, Segment, Snapshot};

fn shared() -> Builder {
    support::plain().setting("shared_preload_libraries", "pg_tally")
}

fn open(cluster: &Cluster) -> Segment {
    Segment::open(&support::segment(cluster)).unwrap()
}

fn snapshot(cluster: &Cluster) -> Snapshot {
    open(cluster).snapshot(None).unwrap()
}

fn overflows(cluster: &Cluster) -> Overflows {
    open(cluster).overflows().unwrap()
}

/// Total ticks of the accounts that the filter selects, in all sessions, ended ones included.
fn ticks(snapshot: &Snapshot, wanted: impl Fn(&str) -> bool) -> u64 {
    let heads = snapshot.books.iter().chain(&snapshot.groups).flat_map(|book| &book.heads);
    heads
        .filter(|head| {
            let stat = snapshot.directory.get(head.stat);
            stat.is_some_and(|stat| stat.kind == StatKind::Account && wanted(&stat.name))
        })
        .map(|head| head.total)
        .sum()
}

/// Every session's accounts add up to its lifetime.
fn assert_conserved(snapshot: &Snapshot) {
    assert!(!snapshot.books.is_empty());
    assert_each_conserved(snapshot);
}

/// The same, even if no session has a slot.
fn assert_each_conserved(snapshot: &Snapshot) {
    for book in &snapshot.books {
        assert_eq!(book.accounted(&snapshot.directory), book.now - book.born, "{book:?}");
    }
}

fn work(cluster: &Cluster) {
    let load = cluster.pgbench().load(Load::TpcB).clients(4).transactions(50);
    assert_eq!(load.run().unwrap().transactions, 200);
}

/// How often the server's log contains a text.
fn times_logged(cluster: &Cluster, what: &str) -> usize {
    cluster.log().matches(what).count()
}

/// A tmpfs of a given size, unmounted on drop.
struct Tmpfs(PathBuf);

impl Tmpfs {
    /// None if mounting is not permitted.
    fn mount(size: &str) -> Option<Self> {
        let folder = tempfile::Builder::new().prefix("tally.").tempdir().unwrap().keep();
        let options = format!("size={size},mode=0777");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tally-test"])
            .arg(&folder)
            .output()
            .is_ok_and(|output| output.status.success());
        if !mounted {
            println!("not tested: only root may mount a tmpfs");
            let _ = fs::remove_dir(&folder);
        }
        mounted.then_some(Self(folder))
    }

    fn start(&self) -> Cluster {
        self.start_with(shared())
    }

    fn start_with(&self, builder: Builder) -> Cluster {
        support::start(builder.setting("pg_tally.directory", self.0.to_str().unwrap()))
    }

    fn segments(&self) -> Vec<PathBuf> {
        fs::read_dir(&self.0).unwrap().flatten().map(|entry| entry.path()).collect()
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_file_system_too_small_for_a_segment_leaves_the_server_uninstrumented() {
    let Some(tmpfs) = Tmpfs::mount("32k") else { return };
    let cluster = tmpfs.start();
    cluster.pgbench_init(1).unwrap();
    work(&cluster);
    assert_eq!(times_logged(&cluster, "pg_tally is not active"), 1, "{}", cluster.log());
    assert!(cluster.log().contains("No space left on device"), "{}", cluster.log());
    assert!(cluster.log().contains("pg_tally.directory"), "no remedy: {}", cluster.log());
    assert_eq!(tmpfs.segments(), Vec::<PathBuf>::new());
}

#[test]
fn a_full_file_system_loses_statistics_but_the_server_works() {
    let Some(tmpfs) = Tmpfs::mount("2m") else { return };
    let cluster = tmpfs.start();
    cluster.pgbench_init(1).unwrap();
    let mut clients: Vec<Client> = (0..40).map(|_| cluster.connect().unwrap()).collect();
    for client in &mut clients {
        client.batch_execute("create temp table t (n int); insert into t values (1)").unwrap();
    }
    work(&cluster);
    let segments = tmpfs.segments();
    assert_eq!(segments.len(), 1, "{segments:?} {}", cluster.log());
    let mut segment = Segment::open(&segments[0]).unwrap();
    let overflows = segment.overflows().unwrap();
    assert!(overflows.memory > 0, "{overflows:?}");
    // Which of books, statements and relations got the memory depends on the order in which they asked for it.
    assert_each_conserved(&segment.snapshot(None).unwrap());
}

#[test]
fn sessions_beyond_the_slots_run_uninstrumented_and_are_counted() {
    let cluster = support::start(shared().setting("pg_tally.max_slots", "10"));
    let mut clients: Vec<Client> = (0..15).map(|_| cluster.connect().unwrap()).collect();
    for (n, client) in clients.iter_mut().enumerate() {
        let row = client.query_one("select $1::int", &[&(n as i32)]).unwrap();
        assert_eq!(row.get::<_, i32>(0), n as i32);
    }
    assert_eq!(open(&cluster).population().unwrap(), 10);
    let refused = overflows(&cluster).slots;
    assert!(refused >= 5, "{refused}");
    assert_conserved(&snapshot(&cluster));
    drop(clients);
    support::eventually("slots are free again", || open(&cluster).population().unwrap() < 10);
    let mut client = cluster.connect().unwrap();
    let pid = support::pid_of(&mut client);
    assert!(snapshot(&cluster).books.iter().any(|book| book.pid == pid), "no slot for a new one");
}

#[test]
fn names_beyond_the_directory_share_an_account_and_time_stays_conserved() {
    let cluster = support::start(shared().setting("pg_tally.max_names", "64"));
    cluster.pgbench_init(1).unwrap();
    work(&cluster);
    // Each kind of statement in both protocols, for many names.
    let mut client = cluster.connect().unwrap();
    for n in 0..20 {
        client.query("select $1::int", &[&n]).unwrap();
        client.batch_execute("begin; select pg_sleep(0.001)").unwrap();
        client.batch_execute("vacuum").unwrap_err();
        client.batch_execute("rollback; checkpoint; create table t (n int); drop table t").unwrap();
    }
    let overflows = overflows(&cluster);
    assert!(overflows.directory > 0, "{overflows:?}");
    let snapshot = snapshot(&cluster);
    assert!(ticks(&snapshot, |name| name == "other::overflow") > 0);
    assert_conserved(&snapshot);
}

#[test]
fn statistics_beyond_a_book_share_an_account_and_time_stays_conserved() {
    let cluster = support::start(shared().setting("pg_tally.max_statistics", "16"));
    cluster.pgbench_init(1).unwrap();
    work(&cluster);
    let mut client = cluster.connect().unwrap();
    for n in 0..20 {
        client.query("select $1::int", &[&n]).unwrap();
        client.batch_execute("begin; select pg_sleep(0.001); rollback; checkpoint").unwrap();
    }
    let overflows = overflows(&cluster);
    assert!(overflows.statistics > 0, "{overflows:?}");
    let snapshot = snapshot(&cluster);
    assert!(ticks(&snapshot, |name| name == "other::overflow") > 0);
    assert_conserved(&snapshot);
}

/// Commits, WAL, locks, files, functions and commands, and a wait in each.
const EVERYTHING: &str =
    "insert into t values (1); begin; update t set n = n + 1 where n = 0; commit; \
                          select pg_sleep(0.001); select count(*) from t";

/// An entry that is not free is looked up once, not for each use. The server counts failed lookups.
fn assert_looked_up_once(setting: (&str, &str), failed_lookups: fn(&Cluster) -> u64) {
    let cluster = support::start(shared().settings([
        setting,
        ("pg_tally.functions", "hash_search,heap_insert,XLogInsert"),
        ("pg_tally.level", "locks"),
        // No other process needs a new entry.
        ("autovacuum", "off"),
        ("checkpoint_timeout", "1h"),
        ("bgwriter_lru_maxpages", "0"),
    ]));
    let mut client = cluster.connect().unwrap();
    client.batch_execute("create table t (n int)").unwrap();
    for _ in 0..100 {
        client.batch_execute(EVERYTHING).unwrap();
        client.query("select $1::int", &[&1]).unwrap();
    }
    let before = failed_lookups(&cluster);
    for _ in 0..300 {
        client.batch_execute(EVERYTHING).unwrap();
        client.query("select $1::int", &[&1]).unwrap();
    }
    let after = failed_lookups(&cluster);
    println!("{setting:?}: {before} failed, then {}", after - before);
    assert!(before > 0, "{setting:?}");
    // A few of 1,200 statements need an entry for the first time.
    assert!(after - before < 30, "{setting:?}: looked for again and again");
    let mut top = support::tally();
    top.args(["top", "--once", "--json", "--no-witness", "--interval", "0.2"]);
    let interval = support::output(top.arg(support::segment(&cluster)));
    let interval: serde_json::Value = serde_json::from_str(&interval).unwrap();
    assert_eq!(interval["exact"], false, "though nothing was looked for: it is not all there");
    let snapshot = snapshot(&cluster);
    assert!(ticks(&snapshot, |name| name == "other::overflow") > 0);
    assert_conserved(&snapshot);
}

#[test]
fn a_name_without_a_directory_entry_is_looked_up_once() {
    assert_looked_up_once(("pg_tally.max_names", "64"), |cluster| overflows(cluster).directory);
}

#[test]
fn a_statistic_without_a_book_entry_is_looked_up_once() {
    assert_looked_up_once(("pg_tally.max_statistics", "16"), |cluster| {
        overflows(cluster).statistics
    });
}

/// A function needs two statistics, and a book may have space for only one more.
#[test]
fn a_function_whose_two_statistics_do_not_both_fit_is_not_timed() {
    for most in ["60", "61"] {
        let cluster = support::start(shared().setting("pg_tally.max_statistics", most));
        let mut client = cluster.connect().unwrap();
        client.batch_execute("create table t (n int)").unwrap();
        client
            .batch_execute("set pg_tally.functions = 'heap*,hash*,XLog*,Exec*,LockAcq*'")
            .unwrap();
        for _ in 0..20 {
            client.batch_execute("insert into t values (1); select count(*) from t").unwrap();
        }
        assert!(overflows(&cluster).statistics > 0, "{most} were enough");
        assert_conserved(&snapshot(&cluster));
    }
}

#[test]
fn a_change_of_level_retries_what_found_no_memory() {
    let Some(tmpfs) = Tmpfs::mount("8m") else { return };
    // Only the statistics of sessions need memory. No process of the server itself is instrumented, because each may need
    // a statistic at any time, and would be refused memory then.
    let cluster = tmpfs.start_with(support::plain().settings([
        ("session_preload_libraries", "pg_tally"),
        ("pg_tally.max_statements", "0"),
        ("pg_tally.max_relations", "0"),
    ]));
    let mut client = cluster.connect().unwrap();
    client.batch_execute("create table t (n int)").unwrap();
    let path = tmpfs.segments().remove(0);
    let memory = || Segment::open(&path).unwrap().overflows().unwrap().memory;
    let looks = || -> u64 {
        let snapshot = Segment::open(&path).unwrap().snapshot(None).unwrap();
        let heads = snapshot.books.iter().flat_map(|book| &book.heads);
        let is_of_wal = |stat: u32| {
            snapshot.directory.get(stat).is_some_and(|stat| stat.name == "wal::records")
        };
        heads.filter(|head| is_of_wal(head.stat)).map(|head| head.count).sum()
    };
    // A session that has its slot, but not yet the statistics that it will need later.
    let mut session = cluster.connect().unwrap();
    session.batch_execute("select 1").unwrap();
    let before = looks();
    let space = || rustix::fs::statvfs(&tmpfs.0).unwrap().f_bavail;
    let free = space();
    let ballast = tmpfs.0.join("ballast");
    let mut file = fs::File::create(&ballast).unwrap();
    while std::io::Write::write_all(&mut file, &[0; 4096]).is_ok() {}
    // However many statistics it has used so far, these need more than the memory that it has left.
    session.batch_execute("set pg_tally.functions = 'Exec*'; select 1").unwrap();
    let mut insert = |times: usize| {
        for _ in 0..times {
            session.batch_execute("insert into t values (1)").unwrap();
        }
        session.batch_execute("select 1").unwrap();
    };
    insert(20);
    let refused = memory();
    assert!(refused > 0, "there was memory");
    // A busy machine brings waits that the session has not had before, each of them once.
    let again = |when: &str| {
        let (again, looks) = (memory() - refused, looks() - before);
        assert!(again < 20 && looks == 0, "{when}: {again} and {looks} times");
    };
    insert(20);
    again("once");
    fs::remove_file(&ballast).unwrap();
    drop(file);
    // Until they execute a program, processes that other threads fork have the file open, too.
    support::eventually("the file system has space again", || space() > free / 2);
    insert(20);
    again("not before the level changes");
    segment::set_level(&path, Level::Locks).unwrap();
    insert(20);
    assert!(looks() >= before + 20, "{} of 20", looks() - before);
}

#[test]
fn two_servers_on_one_machine_keep_two_segments() {
    let (one, other) = (support::start(shared()), support::start(shared()));
    for cluster in [&one, &other] {
        let header = open(cluster).header().clone();
        assert_eq!(Path::new(&header.host), cluster.data_dir());
        assert_eq!(header.server_pid, cluster.postmaster_pid().unwrap());
    }
    let pids = |cluster: &Cluster| -> Vec<i32> {
        snapshot(cluster).books.iter().map(|book| book.pid).collect()
    };
    let mut client = one.connect().unwrap();
    let pid = support::pid_of(&mut client);
    assert!(pids(&one).contains(&pid));
    assert!(!pids(&other).contains(&pid));
}

#[test]
fn a_segment_is_as_open_as_the_data_directory() {
    let mode = |cluster: &Cluster| {
        let meta = fs::metadata(support::segment(cluster)).unwrap();
        let data = fs::metadata(cluster.data_dir()).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (data.uid(), data.gid()));
        meta.permissions().mode() & 0o7777
    };
    assert_eq!(mode(&support::start(shared())), 0o600);
    assert_eq!(mode(&support::start(shared().group_access(true))), 0o640);
}

#[test]
fn an_unprivileged_role_sees_of_others_what_pg_stat_activity_shows() {
    let cluster = support::shared();
    support::create_views(&cluster);
    cluster.psql("create role plain login; create role reader login").unwrap();
    cluster.psql("grant pg_read_all_stats to reader").unwrap();
    let mut other = cluster.connect().unwrap();
    other.batch_execute("set application_name = 'secret plans'; select 1").unwrap();
    let pid = support::pid_of(&mut other);
    let sees = |role: &str| -> (Option<String>, Option<String>) {
        let mut client = cluster.config().user(role).connect(postgres::NoTls).unwrap();
        let row = client
            .query_one("select application_name, phase from tally.sessions where pid = $1", &[&pid])
            .unwrap();
        (row.get(0), row.get(1))
    };
    assert_eq!(sees("plain"), (None, None));
    assert_eq!(sees("reader"), (Some("secret plans".into()), Some("idle".into())));

    let mut client = cluster.config().user("plain").connect(postgres::NoTls).unwrap();
    let own = "select phase from tally.sessions where pid = pg_backend_pid()";
    assert!(client.query_one(own, &[]).unwrap().get::<_, Option<String>>(0).is_some());
    client.batch_execute("select * from tally.ledger, tally.status limit 1").unwrap();
    for forbidden in [
        "select tally.reset()",
        "set pg_tally.level = off",
        "alter system set pg_tally.level = off",
    ] {
        client.batch_execute(forbidden).expect_err(forbidden);
    }
}

#[test]
fn with_the_level_off_only_the_time_off_is_counted() {
    let cluster = support::start(shared().setting("pg_tally.level", "off"));
    cluster.pgbench_init(1).unwrap();
    work(&cluster);
    assert_eq!(open(&cluster).level().unwrap(), Level::Off);
    let snapshot = snapshot(&cluster);
    assert_eq!(ticks(&snapshot, |name| name != "off::uninstrumented"), 0);
    assert!(ticks(&snapshot, |name| name == "off::uninstrumented") > 0);
    for book in snapshot.books.iter().chain(&snapshot.groups) {
        for head in &book.heads {
            let name = &snapshot.directory.get(head.stat).unwrap().name;
            assert!(name == "off::uninstrumented" || head.count == 0, "{name}: {}", head.count);
        }
    }
    assert_conserved(&snapshot);
}

#[test]
fn a_change_of_level_takes_effect_in_existing_sessions() {
    let cluster = support::shared();
    let mut client = cluster.connect().unwrap();
    let pid = support::pid_of(&mut client);
    let mut step = |setting: &str| {
        cluster.append_config(&format!("pg_tally.level = {setting}\n")).unwrap();
        cluster.reload().unwrap();
        let level: Level = setting.parse().unwrap();
        support::eventually("the level is set", || open(&cluster).level().unwrap() == level);
        // A wait is recorded before the next command completes.
        let mut sleep = |seconds: f64| {
            client.batch_execute(&format!("select pg_sleep({seconds})")).unwrap();
            client.batch_execute("select 1").unwrap();
        };
        sleep(0.0);
        let before = snapshot(&cluster);
        sleep(0.01);
        let after = snapshot(&cluster);
        let slept = |snapshot: &Snapshot| {
            let book = snapshot.books.iter().find(|book| book.pid == pid).unwrap();
            let heads = book.heads.iter().filter(|head| {
                let stat = snapshot.directory.get(head.stat);
                stat.is_some_and(|stat| stat.name.ends_with("::wait::Timeout:PgSleep"))
            });
            heads.map(|head| head.count).sum::<u64>()
        };
        assert_conserved(&after);
        slept(&after) - slept(&before)
    };
    assert_eq!(step("off"), 0);
    assert_eq!(step("waits"), 1);
    assert_eq!(step("off"), 0);
}

#[test]
fn load_instruments_an_existing_session() {
    let cluster = support::start(support::plain());
    let mut client = cluster.connect().unwrap();
    client.batch_execute("select 1").unwrap();
    assert!(!support::segment(&cluster).exists());
    client.batch_execute("load 'pg_tally'").unwrap();
    client.batch_execute("select pg_sleep(0.05)").unwrap();
    client.batch_execute("select 1").unwrap();
    let pid = support::pid_of(&mut client);
    let snapshot = snapshot(&cluster);
    let pids: Vec<i32> = snapshot.books.iter().map(|book| book.pid).collect();
    assert_eq!(pids, [pid]);
    assert!(ticks(&snapshot, |name| name.ends_with("::wait::Timeout:PgSleep")) > 0);
    assert_conserved(&snapshot);
    // A second LOAD changes nothing.
    client.batch_execute("load 'pg_tally'; select 1").unwrap();
}

#[test]
fn session_preload_instruments_new_sessions_only() {
    let cluster = support::start(support::plain());
    let mut old = cluster.connect().unwrap();
    cluster.append_config("session_preload_libraries = 'pg_tally'\n").unwrap();
    cluster.reload().unwrap();
    let mut new = None;
    support::eventually("a new session is instrumented", || {
        let mut client = cluster.connect().unwrap();
        let pid = support::pid_of(&mut client);
        new = Some(client);
        support::segment(&cluster).exists()
            && snapshot(&cluster).books.iter().any(|book| book.pid == pid)
    });
    old.batch_execute("select pg_sleep(0.01)").unwrap();
    let old_pid = support::pid_of(&mut old);
    let snapshot = snapshot(&cluster);
    assert!(snapshot.books.iter().all(|book| book.pid != old_pid));
    assert_conserved(&snapshot);
}

/// A server that is not started yet, and the path of its future segment.
fn before_start() -> (Cluster, PathBuf) {
    let mut cluster = shared().create().unwrap();
    let path = support::segment(&cluster);
    cluster.also_remove(&path);
    (cluster, path)
}

/// Writes a file at the segment's path, owned by the server's user. Zeros become holes, because a segment is
/// larger than a container's /dev/shm.
fn put(cluster: &Cluster, path: &Path, content: &[u8]) {
    let file = fs::File::create(path).unwrap();
    file.set_len(content.len() as u64).unwrap();
    for (page, bytes) in content.chunks(4096).enumerate() {
        if bytes.iter().any(|&byte| byte != 0) {
            file.write_all_at(bytes, page as u64 * 4096).unwrap();
        }
    }
    let data = fs::metadata(cluster.data_dir()).unwrap();
    chown(path, Some(data.uid()), Some(data.gid())).unwrap();
}

#[test]
fn a_damaged_segment_is_replaced_when_the_server_starts() {
    // An intact segment to damage.
    let (mut cluster, path) = before_start();
    cluster.start().unwrap();
    let whole = fs::read(&path).unwrap();
    cluster.stop(scratch::StopMode::Fast).unwrap();
    let mut other_version = whole.clone();
    other_version[12] = 99;
    let mut swapped = whole.clone();
    swapped[8..12].reverse();
    let noise: Vec<u8> =
        (0..100_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for (what, content) in [
        ("empty", &[][..]),
        ("zeroed", &vec![0; whole.len()][..]),
        ("cut short", &whole[..5000]),
        ("of another version", &other_version),
        ("byte-swapped", &swapped),
        ("noise", &noise),
    ] {
        put(&cluster, &path, content);
        cluster.start().unwrap_or_else(|error| panic!("{what}: {error}"));
        cluster.psql("select 1").unwrap();
        let mut segment = Segment::open(&path).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_conserved(&segment.snapshot(None).unwrap());
        cluster.stop(scratch::StopMode::Fast).unwrap();
    }
}

#[test]
fn a_segment_of_another_user_leaves_the_server_uninstrumented() {
    let (mut cluster, path) = before_start();
    fs::write(&path, "not yours").unwrap();
    if fs::metadata(&path).unwrap().uid() == fs::metadata(cluster.data_dir()).unwrap().uid() {
        println!("not tested: it takes root to own a file that the server does not own");
        return;
    }
    cluster.start().unwrap();
    cluster.psql("select 1").unwrap();
    assert_eq!(times_logged(&cluster, "pg_tally is not active"), 1, "{}", cluster.log());
    assert_eq!(fs::read_to_string(&path).unwrap(), "not yours");
}

#[test]
fn a_server_that_stops_removes_its_segment() {
    let mut cluster = support::shared();
    let path = support::segment(&cluster);
    assert!(path.exists());
    cluster.stop(scratch::StopMode::Fast).unwrap();
    assert!(!path.exists());
}
