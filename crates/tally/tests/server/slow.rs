// SPDX-License-Identifier: PostgreSQL
//! Slow and failing file operations are reported with file, process and duration. The slow device is a
//! FUSE file system under the commit log; where mounting is not permitted, the tests print that and pass.

use crate::support;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use crate::support::slow_disk::{rerun_in_mount_namespace, Behaviour, SlowDisk};
use crate::support::{create_views, eventually};
use postgres::Client;
use scratch::Cluster;

const CLIENTS: usize = 8;
/// A valid path that a line of text cannot contain as it is.
const PLACE: &str = "slow\ndisk \u{e9}";

/// A server whose commit log is on a slow disk, with rows without hint bits. Few buffers, so that only
/// four pages of the commit log are cached.
fn server() -> Option<(Cluster, SlowDisk)> {
    let builder = support::flushing().settings([
        ("shared_preload_libraries", "pg_tally"),
        ("pg_tally.slow_threshold", "300ms"),
        ("shared_buffers", "1MB"),
        ("checkpoint_timeout", "1h"),
        ("autovacuum", "off"),
    ]);
    let mut cluster = builder.create().unwrap();
    let segment = support::segment(&cluster);
    cluster.also_remove(&segment);
    let log = cluster.data_dir().join("pg_xact");
    let place = cluster.dir().join(PLACE);
    std::fs::create_dir(&place).unwrap();
    let disk = SlowDisk::mount(&place, &log)?;
    std::fs::remove_dir_all(&log).unwrap();
    symlink(&place, &log).unwrap();
    cluster.start().unwrap();
    create_views(&cluster);
    Some((cluster, disk))
}

/// Process and text of the events of one kind.
fn events(client: &mut Client, kind: &str) -> Vec<(i32, String)> {
    let sql = "select pid, text from tally.events where kind = $1 order by number";
    let rows = client.query(sql, &[&kind]).unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// The seconds in `sync: 1.503 s, ...`.
fn seconds(text: &str) -> f64 {
    text.split(": ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap().parse().unwrap()
}

fn within_a_tenth(found: f64, expected: f64) -> bool {
    (found - expected).abs() <= expected / 10.0
}

#[test]
fn a_slow_read_is_reported_with_its_file_and_blocks_others_on_the_slru_lock() {
    if rerun_in_mount_namespace(
        "a_slow_read_is_reported_with_its_file_and_blocks_others_on_the_slru_lock",
    ) {
        return;
    }
    let Some((mut cluster, disk)) = server() else { return };
    // More transactions than two pages of the log hold (32,768 each), each with a row. The first page is
    // read for catalog rows, the last one at server start.
    cluster
        .psql(
            "create table t (n int); \
             do $$ begin for n in 1..70000 loop \
             begin insert into t values (n); exception when others then null; end; \
             end loop; end $$",
        )
        .unwrap();
    cluster.restart().unwrap();
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| cluster.connect().unwrap()).collect();
    let mut observer = cluster.connect().unwrap();
    observer.batch_execute("select * from tally.sessions, tally.events, tally.waits").unwrap();

    let delay = 1.2;
    disk.set(Behaviour { read: Duration::from_secs_f64(delay), ..Behaviour::default() });
    let began = Instant::now();
    // 17 and later write this word otherwise.
    let reading = if support::major() >= 17 { "IO:SlruRead" } else { "IO:SLRURead" };
    // In 19 the reader may hold the table's page exclusively meanwhile, so that the others do not get as far.
    const WAITS: [&str; 2] = ["LWLock:XactBuffer", "Buffer:BufferShared"];
    let seen = std::thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(|| client.batch_execute("select count(*) from t").unwrap());
        }
        std::thread::sleep(Duration::from_millis(700));
        let sql = format!(
            "select count(*) filter (where activity ~ '({})$'), \
                    count(*) filter (where activity like '%{reading}') from tally.sessions",
            WAITS.join("|")
        );
        observer.query_one(&sql, &[]).map(|row| (row.get::<_, i64>(0), row.get::<_, i64>(1)))
    });
    let seen = seen.unwrap();
    println!("{seen:?} wait while the read goes on; all done in {:?}", began.elapsed());
    disk.set(Behaviour::default());
    let found = events(&mut observer, "slow");
    println!("{found:#?}");
    let reads: Vec<_> = found.iter().filter(|(_, text)| text.starts_with("read: ")).collect();
    let [(reader, read)] = reads[..] else { panic!("{} slow reads", reads.len()) };
    assert!(within_a_tenth(seconds(read), delay), "{read}");
    assert!(read.contains("s, 8192 bytes: "), "{read}");
    assert!(read.ends_with("slow?disk ??/0000"), "{read}");
    let waiters = found
        .iter()
        .filter(|(_, text)| WAITS.iter().any(|it| text.starts_with(&format!("{it}: "))));
    let waiters: Vec<_> = waiters.filter(|(pid, _)| pid != reader).collect();
    assert!(waiters.len() >= CLIENTS / 2, "{} waited for it", waiters.len());
    assert!(waiters.iter().all(|(_, text)| seconds(text) < delay * 1.1), "{waiters:?}");
    assert_eq!(seen.1, 1, "one reads");
    assert!(seen.0 >= CLIENTS as i64 / 2, "the others wait for it");
    let row = observer
        .query_one(
            "select sum(seconds), max(max_seconds) from tally.waits
             where wait_event in ('XactBuffer', 'BufferShared')",
            &[],
        )
        .unwrap();
    let (all, longest): (f64, f64) = (row.get(0), row.get(1));
    println!("{all} s, at most {longest} s");
    let minimum = delay * 0.5 * (CLIENTS / 2) as f64;
    assert!(all >= minimum && longest <= delay * 1.1, "{all} s, at most {longest} s");
}

#[test]
fn a_slow_sync_is_reported_with_its_file_and_writes_unless_the_threshold_is_minus_one() {
    if rerun_in_mount_namespace(
        "a_slow_sync_is_reported_with_its_file_and_writes_unless_the_threshold_is_minus_one",
    ) {
        return;
    }
    let Some((cluster, disk)) = server() else { return };
    let mut client = cluster.connect().unwrap();
    for sql in ["create table t (n int)", "checkpoint", "insert into t values (1)"] {
        client.batch_execute(sql).unwrap();
    }
    let delay = 1.5;
    let slow = Behaviour { sync: Duration::from_secs_f64(delay), ..Behaviour::default() };
    disk.set(slow);
    client.batch_execute("checkpoint").unwrap();
    let found = events(&mut client, "slow");
    println!("{found:#?}");
    let sync = found.iter().find(|(_, text)| text.starts_with("sync: ")).expect("a slow sync");
    assert!(within_a_tenth(seconds(&sync.1), delay), "{}", sync.1);
    assert!(sync.1.contains("s, after 1 write of 8192 bytes: "), "{}", sync.1);
    assert!(sync.1.ends_with("slow?disk ??/0000"), "{}", sync.1);
    let kind = "select kind from tally.sessions where pid = $1";
    assert_eq!(client.query_one(kind, &[&sync.0]).unwrap().get::<_, &str>(0), "checkpointer");
    let row = client
        .query_one(
            "select longest_sync_seconds, longest_sync_file, sync_seconds from tally.checkpoints \
             order by number desc limit 1",
            &[],
        )
        .unwrap();
    assert!(within_a_tenth(row.get(0), delay) && row.get::<_, f64>(2) >= delay * 0.9, "{row:?}");
    assert!(row.get::<_, &str>(1).ends_with("/0000"), "{row:?}");

    client.batch_execute("alter system set pg_tally.slow_threshold = -1").unwrap();
    cluster.reload().unwrap();
    eventually("the setting is in effect", || {
        let row = client.query_one("show pg_tally.slow_threshold", &[]).unwrap();
        row.get::<_, &str>(0) == "-1"
    });
    std::thread::sleep(Duration::from_millis(500));
    let before = events(&mut client, "slow").len();
    let began = Instant::now();
    client.batch_execute("insert into t values (2)").unwrap();
    client.batch_execute("checkpoint").unwrap();
    assert!(began.elapsed().as_secs_f64() >= delay, "it was slow");
    assert_eq!(events(&mut client, "slow").len(), before, "but that was not asked for");
}

#[test]
fn a_full_disk_and_a_failing_sync_are_reported_and_the_server_behaves_as_without_the_extension() {
    if rerun_in_mount_namespace(
        "a_full_disk_and_a_failing_sync_are_reported_and_the_server_behaves_as_without_the_extension",
    ) {
        return;
    }
    let Some((cluster, disk)) = server() else { return };
    let mut client = cluster.connect().unwrap();
    for sql in ["create table t (n int)", "checkpoint", "insert into t values (1)"] {
        client.batch_execute(sql).unwrap();
    }
    let failed = |client: &mut Client, operation: &str| -> i64 {
        let sql = "select coalesce(sum(count), 0)::bigint from tally.files \
                   where file = 'slru Xact' and operation = $1 and failed";
        client.query_one(sql, &[&operation]).unwrap().get(0)
    };

    disk.set(Behaviour { full: true, ..Behaviour::default() });
    let error = client.batch_execute("checkpoint").unwrap_err();
    assert!(
        error.as_db_error().unwrap().message().contains("checkpoint request failed"),
        "{error}"
    );
    let found = events(&mut client, "warning");
    println!("{found:#?}");
    let full = "write failed: No space left on device: ";
    assert!(found.iter().any(|(_, text)| text.starts_with(full) && text.ends_with("/0000")));
    assert!(failed(&mut client, "write") >= 1);
    disk.set(Behaviour::default());
    client.batch_execute("checkpoint").unwrap();

    let delay = 1.0;
    client.batch_execute("insert into t values (2)").unwrap();
    disk.set(Behaviour {
        sync: Duration::from_secs_f64(delay),
        sync_fails: true,
        ..Behaviour::default()
    });
    client.batch_execute("checkpoint").unwrap_err();
    disk.set(Behaviour::default());
    eventually("the server is back", || cluster.connect().is_ok());
    assert!(cluster.log().contains("PANIC:  could not fsync file"), "{}", cluster.log_tail(30));
    let mut client = cluster.connect().unwrap();
    let found = [events(&mut client, "warning"), events(&mut client, "slow")].concat();
    println!("{found:#?}");
    let of = |start: &str| found.iter().find(|(_, text)| text.starts_with(start)).cloned();
    let failure = of("sync failed: Input/output error: ").expect("the failure is reported");
    assert!(failure.1.ends_with("slow?disk ??/0000"), "{}", failure.1);
    let slow = of("sync: 1.").expect("and so is how long it took");
    assert!(
        within_a_tenth(seconds(&slow.1), delay) && slow.1.contains("s, failed: "),
        "{}",
        slow.1
    );
    assert_eq!(slow.0, failure.0);
    assert_eq!(failed(&mut client, "sync"), 1);
    // Crash recovery has restored what was in the WAL.
    let rows: i64 = client.query_one("select count(*) from t", &[]).unwrap().get(0);
    assert_eq!(rows, 2);
}
