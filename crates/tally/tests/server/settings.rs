// SPDX-License-Identifier: PostgreSQL
//! If only some sessions are instrumented, the configuration's settings apply, and other sessions stay
//! uninstrumented.

use crate::support;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use crate::support::{plain, programs, segment, sessions, shared, start};
use postgres::{Client, NoTls};
use scratch::{Binaries, Cluster};
use segment::ProbeState;
use segment::{set_level, Level, Segment};

/// Creates a role without any privilege.
fn alice(cluster: &Cluster) {
    cluster.psql("create role alice login").unwrap();
}

/// A session of that role with these connection options.
fn session(cluster: &Cluster, user: &str, options: &str) -> Client {
    cluster.config().user(user).options(options).connect(NoTls).unwrap()
}

/// Inodes and paths of the segments that a process has mapped, from /proc.
fn mapped(pid: i32) -> Vec<(u64, String)> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mut found: Vec<_> = maps
        .lines()
        .filter(|line| line.contains("/pg_tally.") && !line.contains("/pg_tally.so"))
        .map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            (fields[4].parse().unwrap(), fields[5..].join(" "))
        })
        .collect();
    found.dedup();
    found
}

fn inode(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().ino()
}

fn live(path: &Path) -> Vec<i32> {
    let snapshot = Segment::open(path).unwrap().snapshot(Default::default()).unwrap();
    snapshot.books.iter().map(|book| book.pid).collect()
}

#[test]
fn no_client_determines_the_segments_settings() {
    let cluster = sessions();
    alice(&cluster);
    let path = segment(&cluster);
    let mut resident = cluster.connect().unwrap();
    let resident_pid = support::pid_of(&mut resident);
    let before = std::fs::metadata(&path).unwrap();
    let elsewhere = cluster.dir().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    cluster.os_user().chown(&elsewhere).unwrap();
    for setting in [
        "max_events=16",
        "max_relations=1000000",
        "max_statements=0",
        "max_slots=1",
        "leave_out=fsync",
        "level=locks",
        &format!("directory={}", elsewhere.display()),
    ] {
        for user in ["alice", "postgres"] {
            let mut client = session(&cluster, user, &format!("-c pg_tally.{setting}"));
            let own = support::pid_of(&mut client);
            for pid in [own, resident_pid] {
                let name = path.display().to_string();
                assert_eq!(mapped(pid), [(before.ino(), name)], "{user}, {setting}");
            }
            assert!(live(&path).contains(&own), "{user}, {setting}");
        }
    }
    let after = std::fs::metadata(&path).unwrap();
    assert_eq!((after.ino(), after.len()), (before.ino(), before.len()));
    assert_eq!(std::fs::read_dir(&elsewhere).unwrap().count(), 0);
    let now = Segment::open(&path).unwrap();
    assert_eq!(now.level().unwrap(), Level::Waits);
    let fsync = now.probes().unwrap().into_iter().find(|probe| probe.name == "import fsync");
    assert_eq!(fsync.unwrap().state, ProbeState::Installed);
}

#[test]
fn the_first_session_makes_the_segment_as_configured_whatever_its_client_sets() {
    for how in ["file", "alter system", "alter role", "alter database", "command line"] {
        let mut builder = plain().setting("session_preload_libraries", "pg_tally");
        let folder = tempfile::tempdir().unwrap();
        match how {
            "file" => builder = builder.setting("pg_tally.max_events", "48"),
            "command line" => builder = builder.binaries(with_argument(folder.path())),
            _ => {}
        }
        let cluster = start(builder);
        alice(&cluster);
        let mut superuser = cluster.connect().unwrap();
        for sql in match how {
            // The server refuses a setting that it does not know.
            "alter system" => &[
                "set pg_tally.max_events = 1",
                "alter system set pg_tally.max_events = 48",
                "select pg_reload_conf()",
            ][..],
            "alter role" => &["alter role alice set pg_tally.max_events = 48"],
            "alter database" => &["alter database postgres set pg_tally.max_events = 48"],
            _ => &[],
        } {
            superuser.batch_execute(sql).unwrap();
        }
        drop(superuser);
        let path = segment(&cluster);
        support::eventually("the configuration is read", || {
            if path.exists() {
                std::fs::remove_file(&path).unwrap();
            }
            let mut client = session(&cluster, "alice", "-c pg_tally.max_events=16");
            assert_eq!(mapped(support::pid_of(&mut client))[0].0, inode(&path));
            Segment::open(&path).unwrap().event_capacity() == 48
        });
    }
}

/// The server's programs; `postgres` is a script that adds a setting to the command line.
fn with_argument(folder: &Path) -> Binaries {
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let real = Binaries::find().unwrap();
    for entry in std::fs::read_dir(real.dir()).unwrap().flatten() {
        let to = folder.join(entry.file_name());
        if entry.file_name() == "postgres" {
            let text = format!(
                "#!/bin/sh\nexec {} \"$@\" -c pg_tally.max_events=48\n",
                entry.path().display()
            );
            programs::write(&to, text.as_bytes());
        } else {
            std::os::unix::fs::symlink(entry.path(), to).unwrap();
        }
    }
    Binaries::at(folder).unwrap()
}

#[test]
fn superuser_settings_follow_the_servers_rules() {
    let cluster = start(plain().settings([
        ("session_preload_libraries", "pg_tally"),
        ("pg_tally.statements", "all"),
        ("pg_tally.functions", "XLogFlush"),
    ]));
    alice(&cluster);
    support::create_views(&cluster);
    let options = "-c pg_tally.statements=none -c pg_tally.functions=";
    let mut client = session(&cluster, "alice", options);
    assert_eq!(support::status_of(&mut client, "statements"), "all");
    let functions = client.query_one("show pg_tally.functions", &[]).unwrap();
    assert_eq!(functions.get::<_, String>(0), "XLogFlush");
    let mut client = session(&cluster, "postgres", options);
    assert_eq!(support::status_of(&mut client, "statements"), "none");
    let functions = client.query_one("show pg_tally.functions", &[]).unwrap();
    assert_eq!(functions.get::<_, String>(0), "");
}

#[test]
fn new_capacities_apply_after_a_restart_and_no_session_loses_the_segment() {
    let mut cluster = sessions();
    let path = segment(&cluster);
    let mut old = cluster.connect().unwrap();
    let (old_pid, first) = (support::pid_of(&mut old), inode(&path));
    cluster.append_config("pg_tally.max_events = 16\npg_tally.max_statements = 0\n").unwrap();
    cluster.reload().unwrap();
    support::eventually("the server has read its files", || {
        cluster.psql("show pg_tally.max_events").unwrap() == "16"
    });
    let mut new = cluster.connect().unwrap();
    new.batch_execute("select 1; create table t (n int); select count(*) from t").unwrap();
    assert_eq!(inode(&path), first);
    assert_eq!((mapped(old_pid)[0].0, mapped(support::pid_of(&mut new))[0].0), (first, first));
    // The last session that used the setting may be about to end.
    support::eventually("only these two are there", || live(&path).len() == 2);
    drop((old, new));
    cluster.restart().unwrap();
    let mut new = cluster.connect().unwrap();
    assert_eq!(mapped(support::pid_of(&mut new))[0].0, inode(&path));
    assert_eq!(Segment::open(&path).unwrap().event_capacity(), 16);
}

#[test]
fn reading_the_views_instruments_no_session() {
    let cluster = start(plain());
    alice(&cluster);
    support::create_views(&cluster);
    let path = segment(&cluster);
    for user in ["alice", "postgres"] {
        let mut client = session(&cluster, user, "");
        assert_eq!(support::status_of(&mut client, "active"), "no");
        assert!(support::status_of(&mut client, "reason").contains("no session of this server"));
        let error = client.query("select * from tally.ledger", &[]).unwrap_err();
        assert!(error.as_db_error().unwrap().message().contains("not active"), "{error:?}");
        assert!(mapped(support::pid_of(&mut client)).is_empty());
    }
    assert!(!path.exists());

    // With one session instrumented, others see it, and have no slot themselves.
    let mut loader = cluster.connect().unwrap();
    loader.batch_execute("load 'pg_tally'").unwrap();
    let loader_pid = support::pid_of(&mut loader);
    let mut looker = session(&cluster, "alice", "");
    let mut see = |loader: i32| {
        assert_eq!(support::status_of(&mut looker, "active"), "yes");
        let text = support::status_of(&mut looker, "this session");
        assert!(text.starts_with("not instrumented: neither session_preload"), "{text}");
        assert_eq!(support::status_of(&mut looker, "slots").split(' ').next(), Some("1"));
        let rows = looker.query("select pid from tally.sessions", &[]).unwrap();
        assert_eq!(rows.iter().map(|row| row.get(0)).collect::<Vec<i32>>(), [loader]);
        assert!(!looker.query("select * from tally.ledger", &[]).unwrap().is_empty());
        assert_eq!(live(&path), [loader]);
    };
    see(loader_pid);
    // The segment is replaced, and the same session sees the new one.
    drop(loader);
    support::eventually("the segment is removed", || !path.exists());
    let mut loader = cluster.connect().unwrap();
    loader.batch_execute("load 'pg_tally'").unwrap();
    see(support::pid_of(&mut loader));
    let mut reader = cluster.connect().unwrap();
    reader.batch_execute("select tally.reset()").unwrap();
    assert_eq!(support::status_of(&mut reader, "resets"), "1");
    assert_eq!(live(&path).len(), 1);

    // A session that has read the views may still load the library if it is permitted to.
    let error = looker.batch_execute("load 'pg_tally'").unwrap_err();
    assert!(error.as_db_error().unwrap().message().contains("not allowed"), "{error:?}");
    reader.batch_execute("load 'pg_tally'").unwrap();
    assert_eq!(support::status_of(&mut reader, "this session"), "instrumented");
    assert!(live(&path).contains(&support::pid_of(&mut reader)));
}

#[test]
fn a_reader_of_a_truncated_segment_reports_it_from_then_on() {
    let cluster = start(plain());
    support::create_views(&cluster);
    let path = segment(&cluster);
    let mut loader = cluster.connect().unwrap();
    loader.batch_execute("load 'pg_tally'").unwrap();
    let mut looker = cluster.connect().unwrap();
    let looker_pid = support::pid_of(&mut looker);
    assert_eq!(support::status_of(&mut looker, "active"), "yes");
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(4096).unwrap();
    // The first reading after the truncation shows nothing or fails.
    let _ = looker.query("select * from tally.sessions", &[]);
    assert_eq!(support::status_of(&mut looker, "active"), "no");
    assert!(support::status_of(&mut looker, "reason").contains("could not open the segment"));
    assert_eq!(support::pid_of(&mut looker), looker_pid);
}

/// Runs a count with parallel workers.
fn count_in_parallel(client: &mut Client) -> i64 {
    client
        .batch_execute(
            "set parallel_setup_cost = 0; set parallel_tuple_cost = 0; \
             set min_parallel_table_scan_size = 0; set max_parallel_workers_per_gather = 2",
        )
        .unwrap();
    let plan = client.query("explain (analyze) select count(*) from numbers", &[]).unwrap();
    let text: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
    let launched = text.iter().find_map(|line| line.trim().strip_prefix("Workers Launched: "));
    launched.unwrap_or("0").parse().unwrap()
}

#[test]
fn parallel_workers_follow_their_leader() {
    let cluster = start(plain());
    cluster.psql("create table numbers as select generate_series(1, 100000) n").unwrap();
    support::create_views(&cluster);
    let workers = "select count(*) from tally.totals(true) where kind = 'parallel worker'";
    let mut loader = cluster.connect().unwrap();
    loader.batch_execute("load 'pg_tally'").unwrap();
    let mut looker = cluster.connect().unwrap();
    assert!(support::status_of(&mut looker, "this session").starts_with("not instrumented"));
    assert!(count_in_parallel(&mut looker) > 0);
    assert_eq!(looker.query_one(workers, &[]).unwrap().get::<_, i64>(0), 0);
    assert!(count_in_parallel(&mut loader) > 0);
    assert!(looker.query_one(workers, &[]).unwrap().get::<_, i64>(0) > 0);
}

#[test]
fn parallel_workers_leave_the_level_unchanged() {
    let cluster = start(
        plain().settings([("session_preload_libraries", "pg_tally"), ("pg_tally.level", "locks")]),
    );
    cluster.psql("create table numbers as select generate_series(1, 100000) n").unwrap();
    let path = segment(&cluster);
    let mut client = cluster.connect().unwrap();
    assert_eq!(Segment::open(&path).unwrap().level().unwrap(), Level::Locks);
    // As `tally level off --for` with a long time does.
    set_level(&path, Level::Off).unwrap();
    assert!(count_in_parallel(&mut client) > 0);
    let mut another = cluster.connect().unwrap();
    another.batch_execute("select 1").unwrap();
    assert_eq!(Segment::open(&path).unwrap().level().unwrap(), Level::Off);
}

#[test]
fn a_change_of_the_configured_level_applies_once_however_late_a_session_reads_it() {
    for preload in ["session_preload_libraries", "shared_preload_libraries"] {
        let cluster = start(plain().setting(preload, "pg_tally"));
        let path = segment(&cluster);
        let level = || Segment::open(&path).unwrap().level().unwrap();
        // A session rereads the configuration at its next command.
        let mut idle = cluster.connect().unwrap();
        idle.batch_execute("select 1").unwrap();
        cluster.append_config("pg_tally.level = 'locks'\n").unwrap();
        cluster.reload().unwrap();
        support::eventually("the level is the configured one", || {
            cluster.psql("select 1").unwrap();
            level() == Level::Locks
        });
        set_level(&path, Level::Off).unwrap();
        idle.batch_execute("select 1").unwrap();
        let shown: String = idle.query_one("show pg_tally.level", &[]).unwrap().get(0);
        assert_eq!((shown.as_str(), level()), ("locks", Level::Off), "{preload}");
        cluster.append_config("pg_tally.level = 'waits'\n").unwrap();
        cluster.reload().unwrap();
        support::eventually("the next change applies", || {
            cluster.psql("select 1").unwrap();
            level() == Level::Waits
        });
    }
}

/// Whether the server computes the query IDs of this session's statements.
fn has_query_ids(client: &mut Client) -> bool {
    let plan = client.query("explain (verbose) select 1", &[]).unwrap();
    plan.iter().any(|row| row.get::<_, String>(0).starts_with("Query Identifier"))
}

#[test]
fn query_ids_are_computed_only_where_statements_are_wanted() {
    let preloaded = || plain().setting("shared_preload_libraries", "pg_tally");
    let cluster = start(preloaded().setting("pg_tally.statements", "none"));
    let mut client = cluster.connect().unwrap();
    assert!(!has_query_ids(&mut client), "the configuration wants no statements");
    client.batch_execute("set pg_tally.statements = top").unwrap();
    assert!(has_query_ids(&mut client), "this session wants them");
    cluster.psql("alter system set pg_tally.statements = 'all'").unwrap();
    cluster.psql("select pg_reload_conf()").unwrap();
    support::eventually("all sessions want them", || {
        has_query_ids(&mut cluster.connect().unwrap())
    });
    drop(cluster);

    let cluster = start(preloaded().setting("pg_tally.max_statements", "0"));
    assert!(!has_query_ids(&mut cluster.connect().unwrap()), "there is no table of statements");
    drop(cluster);
    let cluster = start(preloaded());
    assert!(has_query_ids(&mut cluster.connect().unwrap()), "statements are on by default");
}

/// If sessions load the library themselves, no other session is there at the end.
#[test]
fn the_last_session_removes_the_segment_at_a_clean_stop() {
    let mut cluster = start(plain().setting("session_preload_libraries", "pg_tally"));
    let mut sessions: Vec<Client> = (0..3).map(|_| cluster.connect().unwrap()).collect();
    for session in &mut sessions {
        session.batch_execute("select 1").unwrap();
    }
    let ends = sessions.pop();
    drop(ends);
    support::eventually("a session has ended while others may come", || {
        let sql = "select count(*) from pg_stat_activity where backend_type = 'client backend'";
        sessions[0].query_one(sql, &[]).unwrap().get::<_, i64>(0) == 2
    });
    assert!(segment(&cluster).exists());
    cluster.stop(scratch::StopMode::Fast).unwrap();
    assert!(!segment(&cluster).exists());
}

/// A setting: type with unit, default, range and when it takes effect, in the words of docs/reference-settings.md.
type Documented = [String; 4];

/// The rows of the document's tables by name. Those of sizes have neither a type nor a column of when they take effect.
fn documented() -> std::collections::BTreeMap<String, Documented> {
    let cell = |cell: &str| cell.trim().trim_end_matches('†').trim().to_string();
    include_str!("../../../../docs/reference-settings.md")
        .lines()
        .filter(|line| line.starts_with("| `pg_tally."))
        .map(|line| {
            let cells: Vec<String> = line.split('|').skip(1).map(cell).collect();
            let (name, of) = (cells[0].trim_matches('`').to_string(), |n: usize| cells[n].clone());
            let row = match cells.len() {
                7 => [of(1), of(2), of(3), of(4)],
                5 => ["integer".to_string(), of(1), of(2), "restart".to_string()],
                columns => panic!("{columns} columns: {line}"),
            };
            (name, row)
        })
        .collect()
}

#[test]
fn the_reference_of_settings_agrees_with_the_server() {
    let cluster = shared();
    let mut admin = cluster.connect().unwrap();
    let mut documented = documented();
    let rows = admin
        .query(
            "select name, vartype, unit, boot_val, min_val, max_val, enumvals, context \
             from pg_settings where name like 'pg_tally.%'",
            &[],
        )
        .unwrap();
    assert!(!rows.is_empty());
    for row in &rows {
        let text = |n: usize| row.get::<_, Option<String>>(n).unwrap_or_default();
        let (name, kind, unit, default) = (text(0), text(1), text(2), text(3));
        let [what, value, range, effect] =
            documented.remove(&name).unwrap_or_else(|| panic!("{name} is not documented"));
        let expected = match (&*kind, &*unit) {
            ("bool", _) => "boolean",
            ("integer", "ms") => "integer, ms",
            ("integer", "B") => "integer, bytes",
            (kind, _) => kind,
        };
        assert_eq!(what, expected, "{name}: type");
        match &*kind {
            "integer" => {
                let (number, unit) = value.split_once(' ').unwrap_or((&value, ""));
                let factor = match unit {
                    "s" => 1000,
                    "kB" => 1024,
                    "" | "ms" => 1,
                    other => panic!("{name}: unit {other}"),
                };
                let number: i64 = number.parse().unwrap();
                assert_eq!((number * factor).to_string(), default, "{name}: default");
                let bounds: Vec<&str> =
                    range.split([',', ' ']).filter(|word| word.parse::<i64>().is_ok()).collect();
                assert_eq!(
                    (bounds.first(), bounds.last()),
                    (Some(&&*text(4)), Some(&&*text(5))),
                    "{name}: range"
                );
            }
            "enum" => {
                assert_eq!(value, format!("`{default}`"), "{name}: default");
                let values: Vec<String> = row.get(6);
                let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
                assert_eq!(range, values.join(", "), "{name}: values");
            }
            "string" if default.is_empty() => assert_eq!(value, "empty", "{name}: default"),
            "string" => assert_eq!(value, format!("`{default}`"), "{name}: default"),
            _ => assert_eq!(value, default, "{name}: default"),
        }
        let expected = match &*text(7) {
            "sighup" => "reload",
            "superuser" => "reload, SET",
            "postmaster" => "restart",
            other => panic!("{name}: context {other}"),
        };
        assert_eq!(effect, expected, "{name}: when it takes effect");
    }
    assert!(documented.is_empty(), "the server does not have {:?}", documented.keys());
}
