// SPDX-License-Identifier: PostgreSQL
//! Slow and failing file operations are reported with file, process and duration. The slow device is a FUSE file
//! system under the commit log; if mounting is not permitted, the tests print a message and pass.
//!
//! An operation takes at least as long as the device held its request, and at most as long as the statement that
//! caused it.

use crate::support;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use crate::support::slow_disk::{rerun_in_mount_namespace, Behaviour, Operation, SlowDisk};
use crate::support::{create_views, eventually};
use postgres::Client;
use scratch::Cluster;

const CLIENTS: usize = 8;
/// A valid path that a line of text cannot contain literally.
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

/// Longer than the threshold.
const DELAY: Duration = Duration::from_millis(400);

/// Whether a figure lies between the longest operation of the disk and the duration of the statement, as far as
/// its three decimals tell.
fn fits(found: f64, disk: &SlowDisk, operation: Operation, took: Duration) -> bool {
    let min = disk.longest(operation);
    assert!(min >= DELAY, "{operation:?}: only {min:?}");
    (min.as_secs_f64() - 0.001..=took.as_secs_f64() + 0.001).contains(&found)
}

#[test]
fn a_slow_read_is_reported_with_its_file_and_blocks_others_on_the_slru_lock() {
    if rerun_in_mount_namespace(
        "slow::a_slow_read_is_reported_with_its_file_and_blocks_others_on_the_slru_lock",
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

    disk.set(Behaviour { holds_reads: true, ..Behaviour::default() });
    let began = Instant::now();
    // 17 and later write this word otherwise.
    let reading = if support::major() >= 17 { "IO:SlruRead" } else { "IO:SLRURead" };
    // In 19 the reader may hold the table's page exclusively meanwhile, so that the others do not get as far.
    const WAITS: [&str; 2] = ["LWLock:XactBuffer", "Buffer:BufferShared"];
    let sql = format!(
        "select pid, activity like '%{reading}' from tally.sessions \
         where activity ~ '({}|{reading})$'",
        WAITS.join("|")
    );
    let mut waiting: Vec<(i32, bool)> = Vec::new();
    std::thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(|| client.batch_execute("select count(*) from t").unwrap());
        }
        // In any case, the reads continue afterwards.
        let _held = Held(&disk);
        eventually("one reads, and the others wait for it", || {
            let rows = observer.query(&sql, &[]).unwrap();
            waiting = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
            waiting.iter().filter(|(_, reads)| *reads).count() == 1 && waiting.len() > CLIENTS / 2
        });
        std::thread::sleep(DELAY);
    });
    let took = began.elapsed();
    println!("{waiting:?}; all done in {took:?}");
    let found = events(&mut observer, "slow");
    println!("{found:#?}");
    let (reader, _) = *waiting.iter().find(|(_, reads)| *reads).unwrap();
    let is_read = |(pid, text): &&(i32, String)| *pid == reader && text.starts_with("read: ");
    let (_, read) = found.iter().find(is_read).expect("a slow read");
    assert!(fits(seconds(read), &disk, Operation::Read, took), "{read}");
    assert!(read.contains("s, 8192 bytes: "), "{read}");
    assert!(read.ends_with("slow?disk ??/0000"), "{read}");
    for (pid, _) in waiting.iter().filter(|(_, reads)| !reads) {
        let waits = |(of, text): &&(i32, String)| {
            of == pid && WAITS.iter().any(|wait| text.starts_with(&format!("{wait}: ")))
        };
        let (_, wait) = found.iter().find(waits).unwrap_or_else(|| panic!("no wait of {pid}"));
        let bounds = DELAY.as_secs_f64() - 0.001..=took.as_secs_f64() + 0.001;
        assert!(bounds.contains(&seconds(wait)), "{wait}, of {took:?}");
    }
    let row = observer
        .query_one(
            "select sum(seconds), max(max_seconds) from tally.waits
             where wait_event in ('XactBuffer', 'BufferShared')",
            &[],
        )
        .unwrap();
    let (all, longest): (f64, f64) = (row.get(0), row.get(1));
    println!("{all} s, at most {longest} s");
    let min = DELAY.as_secs_f64() * (waiting.len() - 1) as f64;
    assert!(all >= min && longest <= took.as_secs_f64(), "{all} s, at most {longest} s");
}

/// Lets held reads go on.
struct Held<'d>(&'d SlowDisk);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.set(Behaviour::default());
    }
}

#[test]
fn a_slow_sync_is_reported_with_its_file_and_writes_unless_the_threshold_is_minus_one() {
    if rerun_in_mount_namespace(
        "slow::a_slow_sync_is_reported_with_its_file_and_writes_unless_the_threshold_is_minus_one",
    ) {
        return;
    }
    let Some((mut cluster, disk)) = server() else { return };
    let mut client = cluster.connect().unwrap();
    for sql in ["create table t (n int)", "checkpoint", "insert into t values (1)"] {
        client.batch_execute(sql).unwrap();
    }
    let slow = Behaviour { sync: DELAY, ..Behaviour::default() };
    disk.set(slow);
    let began = Instant::now();
    client.batch_execute("checkpoint").unwrap();
    let took = began.elapsed();
    let found = events(&mut client, "slow");
    println!("{found:#?}");
    let is_sync = |(_, text): &&(i32, String)| {
        text.starts_with("sync: ") && text.ends_with("slow?disk ??/0000")
    };
    let sync = found.iter().find(is_sync).expect("a slow sync");
    assert!(fits(seconds(&sync.1), &disk, Operation::Sync, took), "{}", sync.1);
    assert!(sync.1.contains("s, after 1 write of 8192 bytes: "), "{}", sync.1);
    let kind = "select kind from tally.sessions where pid = $1";
    assert_eq!(client.query_one(kind, &[&sync.0]).unwrap().get::<_, &str>(0), "checkpointer");
    let row = client
        .query_one(
            "select longest_sync_seconds, longest_sync_file, sync_seconds from tally.checkpoints \
             order by number desc limit 1",
            &[],
        )
        .unwrap();
    let (longest, all): (f64, f64) = (row.get(0), row.get(2));
    assert!(fits(longest, &disk, Operation::Sync, took) && longest <= all, "{row:?}");
    assert!(row.get::<_, &str>(1).ends_with("/0000"), "{row:?}");

    disk.set(Behaviour::default());
    cluster.append_config("pg_tally.slow_threshold = -1\n").unwrap();
    // A restart: no view shows whether the checkpointer has read its new settings.
    cluster.restart().unwrap();
    let mut client = cluster.connect().unwrap();
    client.batch_execute("insert into t values (2)").unwrap();
    disk.set(slow);
    let began = Instant::now();
    client.batch_execute("checkpoint").unwrap();
    assert!(began.elapsed() >= DELAY, "it was slow");
    assert_eq!(events(&mut client, "slow"), [], "but that was not asked for");
}

#[test]
fn a_full_disk_and_a_failing_sync_are_reported_and_the_server_behaves_as_without_the_extension() {
    if rerun_in_mount_namespace(
        "slow::a_full_disk_and_a_failing_sync_are_reported_and_the_server_behaves_as_without_the_extension",
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

    client.batch_execute("insert into t values (2)").unwrap();
    disk.set(Behaviour { sync: DELAY, sync_fails: true, ..Behaviour::default() });
    let began = Instant::now();
    client.batch_execute("checkpoint").unwrap_err();
    disk.set(Behaviour::default());
    eventually("the server is back", || cluster.connect().is_ok());
    let took = began.elapsed();
    assert!(cluster.log().contains("PANIC:  could not fsync file"), "{}", cluster.log_tail(30));
    let mut client = cluster.connect().unwrap();
    let found = [events(&mut client, "warning"), events(&mut client, "slow")].concat();
    println!("{found:#?}");
    let of = |start: &str| {
        let fits = |(_, text): &&(i32, String)| {
            text.starts_with(start) && text.ends_with("slow?disk ??/0000")
        };
        found.iter().find(fits).unwrap_or_else(|| panic!("{start} is not reported"))
    };
    let (failure, slow) = (of("sync failed: Input/output error: "), of("sync: "));
    assert!(fits(seconds(&slow.1), &disk, Operation::Sync, took), "{}", slow.1);
    assert!(slow.1.contains("s, failed: "), "{}", slow.1);
    assert_eq!(slow.0, failure.0);
    assert_eq!(failed(&mut client, "sync"), 1);
    // Crash recovery has restored what was in the WAL.
    let rows: i64 = client.query_one("select count(*) from t", &[]).unwrap().get(0);
    assert_eq!(rows, 2);
}
