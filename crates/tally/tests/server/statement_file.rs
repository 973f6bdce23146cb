// SPDX-License-Identifier: PostgreSQL
//! Statements survive a restart, and a damaged statement file does no harm.

use crate::support;
use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{create_views, eventually, plain, shared, start};
use scratch::{Cluster, StopMode};

fn file(cluster: &Cluster) -> PathBuf {
    cluster.data_dir().join("pg_stat/pg_tally.statements")
}

fn aside(cluster: &Cluster) -> PathBuf {
    cluster.data_dir().join("pg_stat/pg_tally.statements.damaged")
}

/// Writes the file, owned by the server's user.
fn write(cluster: &Cluster, bytes: &[u8]) {
    use std::os::unix::fs::MetadataExt;
    let owner = fs::metadata(cluster.data_dir()).unwrap();
    fs::write(file(cluster), bytes).unwrap();
    chown(file(cluster), Some(owner.uid()), Some(owner.gid())).unwrap();
}

/// All figures of the statements that the tests ran, without timestamps.
fn figures(cluster: &Cluster) -> Vec<String> {
    let sql = "select row(s.*)::text || coalesce((select string_agg(row(a.phase, a.activity, \
               a.count, round(a.seconds::numeric, 8))::text, ' ' order by a.phase, a.activity) \
               from tally.statement_activities a where a.queryid = s.queryid \
               and a.userid = s.userid and a.dbid = s.dbid and a.toplevel = s.toplevel), '') \
               from (select userid, dbid, toplevel, queryid, query, plans, calls, rows, \
                     round(total_exec_time::numeric, 5), round(min_exec_time::numeric, 5), \
                     round(max_exec_time::numeric, 5), round(stddev_exec_time::numeric, 4), \
                     round(p50_exec_time::numeric, 5), round(p99_exec_time::numeric, 5), \
                     round(total_plan_time::numeric, 5), shared_blks_hit, wal_bytes, first_seen, \
                     last_seen, query_bytes, round(ledger_time::numeric, 5) \
                     from tally.statements where query like '%kept%' and query not like '%userid%') s \
               order by 1";
    cluster.psql(sql).unwrap().lines().map(String::from).collect()
}

fn work(cluster: &Cluster) {
    let mut client = cluster.connect().unwrap();
    client.batch_execute("create table if not exists kept (a int)").unwrap();
    for i in 0..20 {
        client.batch_execute(&format!("insert into kept values ({i})")).unwrap();
        let columns = "1, ".repeat(i % 3);
        client.batch_execute(&format!("select {columns} pg_sleep(0.00{i}) as kept")).unwrap();
    }
}

/// The sessions have ended, also for the server, so their statements are complete.
fn flushed(cluster: &Cluster) {
    let sql = "select count(*) from tally.sessions where kind = 'client backend'";
    eventually("the sessions' statements are flushed", || cluster.psql(sql).unwrap() == "1");
}

fn restart(cluster: &mut Cluster) {
    cluster.stop(StopMode::Fast).unwrap();
    cluster.start().unwrap();
}

#[test]
fn statements_are_kept_over_a_restart() {
    let mut cluster = shared();
    create_views(&cluster);
    work(&cluster);
    flushed(&cluster);
    let before = figures(&cluster);
    assert_eq!(before.len(), 5, "{before:#?}");
    assert!(!file(&cluster).exists());
    cluster.stop(StopMode::Fast).unwrap();
    assert!(file(&cluster).exists());
    cluster.start().unwrap();
    assert!(!file(&cluster).exists(), "a crash must not bring back old figures");
    let after = figures(&cluster);
    assert_eq!(after.len(), before.len());
    assert!(after.iter().zip(&before).all(|(a, b)| alike(a, b)), "{after:#?}\nwas {before:#?}");
    work(&cluster);
    let sql = "select calls from tally.statements where query like 'insert into kept%'";
    assert_eq!(cluster.psql(sql).unwrap(), "40");
    restart(&mut cluster);
    restart(&mut cluster);
    assert_eq!(cluster.psql(sql).unwrap(), "40");
}

/// A server that could not remove its segment leaves the figures in the segment and in the file.
#[test]
fn statements_still_in_the_segment_are_not_added_from_the_file() {
    let mut cluster = shared();
    create_views(&cluster);
    work(&cluster);
    let sql = "select calls from tally.statements where query like 'insert into kept%'";
    flushed(&cluster);
    let (segment, copy) = (support::segment(&cluster), cluster.dir().join("segment"));
    let cp = |from: &Path, to: &Path| {
        let done = Command::new("cp").args(["-p", "--sparse=always"]).arg(from).arg(to).status();
        assert!(done.unwrap().success());
    };
    cp(&segment, &copy);
    cluster.stop(StopMode::Fast).unwrap();
    assert!(!segment.exists() && file(&cluster).exists());
    cp(&copy, &segment);
    cluster.start().unwrap();
    assert!(!file(&cluster).exists());
    assert_eq!(cluster.psql(sql).unwrap(), "20");
}

/// Whether both are the same. The clock's rate is measured anew, so times may differ slightly.
fn alike(a: &str, b: &str) -> bool {
    let parts = |line: &str| -> Vec<String> {
        line.split([',', '(', ')', ' ']).map(String::from).collect()
    };
    let same = |(a, b): (&String, &String)| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) if a.contains('.') => (x - y).abs() <= 1e-4 + 1e-3 * x.abs(),
        _ => a == b,
    };
    let (a, b) = (parts(a), parts(b));
    a.len() == b.len() && a.iter().zip(&b).all(same)
}

#[test]
fn statements_are_not_saved_unless_configured() {
    let mut cluster = start(
        plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.statements_save", "off"),
    );
    create_views(&cluster);
    work(&cluster);
    cluster.stop(StopMode::Fast).unwrap();
    assert!(!file(&cluster).exists());
    cluster.start().unwrap();
    assert_eq!(figures(&cluster), Vec::<String>::new());
}

#[test]
fn a_damaged_file_is_set_aside_and_the_server_starts() {
    let mut cluster = shared();
    create_views(&cluster);
    work(&cluster);
    cluster.stop(StopMode::Fast).unwrap();
    let good = fs::read(file(&cluster)).unwrap();
    let mut damaged = vec![Vec::new(), good[..good.len() / 2].to_vec(), good[..50].to_vec()];
    for at in [0, 9, 20, 40, 200, good.len() / 3, good.len() - 1] {
        let mut flipped = good.clone();
        flipped[at] ^= 0x10;
        damaged.push(flipped);
    }
    damaged.push([&good[..], b"more"].concat());
    for (i, bytes) in damaged.iter().enumerate() {
        write(&cluster, bytes);
        cluster.start().unwrap();
        assert_eq!(figures(&cluster), Vec::<String>::new(), "damage {i}");
        assert_eq!(fs::read(aside(&cluster)).unwrap(), *bytes, "damage {i}");
        let log = cluster.log();
        assert_eq!(log.matches("could not restore statements").count(), i + 1, "{log}");
        assert!(log.contains("It was renamed to \"pg_stat/pg_tally.statements.damaged\""), "{log}");
        cluster.stop(StopMode::Fast).unwrap();
    }
    write(&cluster, &good);
    cluster.start().unwrap();
    assert_eq!(figures(&cluster).len(), 5);
}

/// Bytes of the file's header, and of a statement's counts (format/counters.toml).
const HEADER: usize = 104;
const COUNTS: usize = 536;

/// CRC-32C, a bit at a time.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 }
        })
    })
}

fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let end = bytes.len() - 4;
    let crc = crc32c(&bytes[..end]);
    bytes[end..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Invalid lengths and numbers must be detected even if the checksum is right.
#[test]
fn a_file_with_a_good_checksum_and_bad_contents_is_set_aside() {
    let mut cluster = shared();
    create_views(&cluster);
    work(&cluster);
    cluster.stop(StopMode::Fast).unwrap();
    let good = fs::read(file(&cluster)).unwrap();
    assert_eq!(sealed(good.clone()), good, "the checksum is CRC-32C of all before it");
    let word = |at: usize| u32::from_le_bytes(good[at..at + 4].try_into().unwrap());
    let (names, first) = (word(12) as usize, HEADER + 96 * word(12) as usize);
    assert!(names > 1 && names < 1000, "{names}");
    // names, statements; accounts, first bucket, buckets, bytes of text; the first account's name
    for at in [12, 16, first + 24, first + 28, first + 32, first + 40, first + COUNTS + 104] {
        for value in [0xffff_ffffu32, 0x7fff_ffff, word(at) + 1000] {
            let mut bad = good.clone();
            bad[at..at + 4].copy_from_slice(&value.to_le_bytes());
            write(&cluster, &sealed(bad));
            cluster.start().unwrap();
            assert_eq!(figures(&cluster), Vec::<String>::new(), "{value} at {at}");
            assert!(aside(&cluster).exists(), "{value} at {at}");
            fs::remove_file(aside(&cluster)).unwrap();
            cluster.stop(StopMode::Fast).unwrap();
        }
    }
}

/// The same file as in version 3: with fewer counters, without the time since which they count, and without
/// extremes of their own.
fn as_version_3(file: &[u8]) -> Vec<u8> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let mut at = HEADER + 96 * word(12);
    let mut old = file[..at].to_vec();
    old[8] = 3;
    for _ in 0..word(16) {
        let (head, counts) = (at, at + 56);
        old.extend_from_slice(&file[head..counts]);
        for kept in [0..192, 200..280, 296..408] {
            old.extend_from_slice(&file[counts + kept.start..counts + kept.end]);
        }
        let more = 24 * word(head + 24) + 8 * word(head + 32) + word(head + 40);
        at = counts + COUNTS + 8 + 40;
        old.extend_from_slice(&file[at..at + more]);
        at += more;
    }
    assert_eq!(at, file.len() - 4, "all statements");
    old.extend_from_slice(&[0; 4]);
    sealed(old)
}

#[test]
fn a_file_of_version_3_is_read() {
    let mut cluster = shared();
    create_views(&cluster);
    work(&cluster);
    let counts = |cluster: &Cluster| {
        let sql = "select concat_ws('|', query, plans, calls, rows, shared_blks_hit, wal_records, wal_bytes, first_seen, \
                   last_seen) from tally.statements where query like '%kept%' order by 1";
        cluster.psql(sql).unwrap()
    };
    let before = counts(&cluster);
    assert_eq!(before.lines().count(), 5, "{before}");
    cluster.stop(StopMode::Fast).unwrap();
    write(&cluster, &as_version_3(&fs::read(file(&cluster)).unwrap()));
    cluster.start().unwrap();
    assert_eq!(counts(&cluster), before);
    // Figures that the file did not contain: a statement counts since its first execution.
    let since =
        "select bool_and(stats_since = first_seen) from tally.statements where query like '%kept%'";
    assert_eq!(cluster.psql(since).unwrap(), "t");
}

/// Its query IDs, databases and users would belong to other objects here.
#[test]
fn a_file_of_another_cluster_or_major_version_is_set_aside() {
    let mut cluster = shared();
    create_views(&cluster);
    work(&cluster);
    cluster.stop(StopMode::Fast).unwrap();
    let good = fs::read(file(&cluster)).unwrap();
    for (at, whose) in
        [(80, "another database cluster"), (88, "another major version of PostgreSQL")]
    {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        write(&cluster, &sealed(bytes));
        cluster.start().unwrap();
        assert_eq!(figures(&cluster), Vec::<String>::new(), "{whose}");
        assert!(cluster.log().contains(&format!("written by {whose}")), "{}", cluster.log());
        fs::remove_file(aside(&cluster)).unwrap();
        cluster.stop(StopMode::Fast).unwrap();
    }
    write(&cluster, &good);
    cluster.start().unwrap();
    assert_eq!(figures(&cluster).len(), 5);
}

/// Times stay the same if the clock has another rate, as after a move to another machine, with or without another
/// boot.
#[test]
fn times_are_converted_from_the_clock_that_measured_them() {
    let mut cluster = shared();
    create_views(&cluster);
    work(&cluster);
    cluster.stop(StopMode::Fast).unwrap();
    let mut bytes = fs::read(file(&cluster)).unwrap();
    let times = "select concat_ws(' ', total_exec_time, max_exec_time, stddev_exec_time, \
                 p50_exec_time, total_plan_time, other_time, ledger_time) \
                 from tally.statements where query like 'select  pg_sleep%kept'";
    let read = |cluster: &Cluster| -> Vec<f64> {
        cluster.psql(times).unwrap().split(' ').map(|word| word.parse().unwrap()).collect()
    };
    cluster.start().unwrap();
    let before = read(&cluster);
    cluster.stop(StopMode::Fast).unwrap();
    // a tick was four times as long there
    let rate = f64::from_le_bytes(bytes[24..32].try_into().unwrap());
    bytes[24..32].copy_from_slice(&(rate * 4.0).to_le_bytes());
    write(&cluster, &sealed(bytes));
    cluster.start().unwrap();
    let after = read(&cluster);
    assert_eq!(before.len(), 7);
    for (i, (after, before)) in after.iter().zip(&before).enumerate() {
        // a quantile is as exact as its buckets
        let within = if i == 3 { 0.13 } else { 0.001 };
        assert!((after / before / 4.0 - 1.0).abs() < within, "{i}: {after} was {before}");
    }
}

#[test]
fn with_a_smaller_limit_the_most_used_statements_stay() {
    let mut cluster = shared();
    create_views(&cluster);
    let mut client = cluster.connect().unwrap();
    for i in 0..600 {
        for _ in 0..if i % 10 == 0 { 20 } else { 1 } {
            client.batch_execute(&format!("select {} as often", support::distinct(i))).unwrap();
        }
    }
    drop(client);
    cluster.stop(StopMode::Fast).unwrap();
    cluster.append_config("pg_tally.max_statements = 100\n").unwrap();
    cluster.start().unwrap();
    let counts = "select count(*) filter (where calls = 20), count(*) from tally.statements \
                  where query like '%often%' and query not like '%calls%'";
    let text = cluster.psql(counts).unwrap();
    let (often, all) = text.split_once('\t').unwrap();
    let (often, all): (u32, u32) = (often.parse().unwrap(), all.parse().unwrap());
    assert!(often >= 58, "{often} of 60 that were used most");
    assert!((100..=140).contains(&all), "{all}");
}
