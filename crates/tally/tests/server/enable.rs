// SPDX-License-Identifier: PostgreSQL
//! `tally enable` and `tally disable` on live servers.

use segment::{Level, LevelSwitch};

use super::extension::installed;
use crate::support::installation::Installation;
use crate::support::{
    complaint, eventually, major, output, plain, segment, shared, start, strace, tally,
};

fn lists(cluster: &scratch::Cluster) -> (String, String) {
    let show = |name: &str| cluster.psql(&format!("show {name}")).unwrap();
    (show("session_preload_libraries"), show("shared_preload_libraries"))
}

#[test]
fn new_sessions_are_instrumented_without_a_restart_and_nothing_stays_behind() {
    let cluster = start(plain());
    let before = std::fs::read_to_string(cluster.data_dir().join("postgresql.auto.conf")).unwrap();
    let target = cluster.connection_string();
    let text = output(tally().args(["enable", &target]));
    assert!(text.contains("every new session"), "{text}");
    assert!(text.contains("not covered  checkpointer"), "{text}");
    eventually("a new session makes the segment", || {
        cluster.psql("select 1").unwrap();
        segment(&cluster).exists()
    });
    assert!(output(tally().args(["enable", &target])).contains("it was already"));
    // Before PostgreSQL 16, a session defines settings that the files have without sorting its table of settings.
    let files = std::fs::read_to_string(cluster.data_dir().join("postgresql.auto.conf")).unwrap();
    for line in ["pg_tally.level = 'waits'", "pg_tally.functions = ''"] {
        assert_eq!(files.contains(line), major() < 16, "{line}: {files}");
    }

    output(tally().args(["functions", "--set", "XLogFlush", &target]));
    output(tally().args(["enable", "--level", "locks", &target]));
    let mut session = cluster.connect().unwrap();
    assert!(segment(&cluster).exists());
    let set = segment::Segment::open(&segment(&cluster)).unwrap().level().unwrap();
    assert_eq!(set, segment::Level::Locks);
    let text = output(tally().args(["disable", &target]));
    assert!(text.contains("no longer names pg_tally"), "{text}");
    assert!(text.contains("1 session keeps the library"), "{text}");
    let level = segment::Segment::open(&segment(&cluster)).unwrap().level().unwrap();
    assert_eq!(level, segment::Level::Off);
    session.batch_execute("select 1").unwrap();
    drop(session);
    eventually("the last session removes the segment", || !segment(&cluster).exists());
    assert!(output(tally().args(["disable", &target])).contains("nothing to do"));
    let after = std::fs::read_to_string(cluster.data_dir().join("postgresql.auto.conf")).unwrap();
    let settings =
        |text: &str| text.lines().filter(|line| !line.starts_with('#')).collect::<String>();
    assert_eq!(settings(&before), settings(&after));
}

#[test]
fn other_preloaded_libraries_are_kept() {
    // Every server has these; builds without contrib have no auto_explain.
    let cluster =
        start(plain().setting("session_preload_libraries", "plpgsql, \"$libdir/pgoutput\""));
    let target = cluster.data_dir().to_str().unwrap().to_string();
    let connection = cluster.connection_string();
    output(tally().args(["enable", &connection]));
    eventually("the reload", || lists(&cluster).0.contains("pg_tally"));
    assert_eq!(lists(&cluster).0, "plpgsql, \"$libdir/pgoutput\", pg_tally");
    output(tally().args(["disable", &connection]));
    eventually("the reload", || !lists(&cluster).0.contains("pg_tally"));
    assert_eq!(lists(&cluster).0, "plpgsql, \"$libdir/pgoutput\"");
    // The data directory works as a target too, but needs the user's name.
    output(tally().env("PGUSER", "postgres").args(["disable", &target]));
}

#[test]
fn all_processes_are_covered_after_a_restart() {
    let mut cluster = start(plain());
    let target = cluster.connection_string();
    let text = output(tally().args(["enable", "--mode", "shared", &target]));
    assert!(text.contains("restart the server"), "{text}");
    cluster.restart().unwrap();
    let text = output(tally().args(["enable", "--mode", "shared", &target]));
    assert!(text.contains("all processes") && text.contains("it was already"), "{text}");
    let kinds: Vec<String> = segment::Segment::open(&segment(&cluster))
        .unwrap()
        .claims()
        .unwrap()
        .into_iter()
        .map(|claim| claim.kind)
        .collect();
    assert!(kinds.iter().any(|kind| kind == "checkpointer"), "{kinds:?}");
    let text = output(tally().args(["disable", &target]));
    assert!(
        text.contains("measuring is off") && text.contains("until the server restarts"),
        "{text}"
    );
    cluster.restart().unwrap();
    assert!(!segment(&cluster).exists());
}

#[test]
fn measuring_ends_although_nobody_reads_the_output() {
    let cluster = shared();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("tally"));
    command.args(["disable", &cluster.connection_string()]).stdout(writer);
    assert!(command.status().unwrap().success());
    let level = segment::Segment::open(&segment(&cluster)).unwrap().level().unwrap();
    assert_eq!(level, Level::Off);
}

#[test]
fn a_library_named_in_postgresql_conf_is_left_for_the_user_to_remove() {
    let cluster = shared();
    let text = output(tally().args(["disable", &cluster.connection_string()]));
    assert!(text.contains("postgresql.conf, line"), "{text}");
}

#[test]
fn the_error_for_a_missing_library_says_how_to_install_it() {
    let cluster = scratch::Cluster::builder()
        .setting("dynamic_library_path", "/nonexistent")
        .start()
        .unwrap();
    let text = complaint(tally().args(["enable", &cluster.connection_string()]), 1);
    assert!(text.contains("make install PG_CONFIG="), "{text}");
}

#[test]
fn enable_needs_a_superuser() {
    let cluster = start(plain());
    cluster.psql("create role poor login").unwrap();
    let target = cluster.connection_string().replace("user=postgres", "user=poor");
    let text = complaint(tally().args(["enable", &target]), 1);
    assert!(text.contains("role poor is not a superuser"), "{text}");
}

/// What `enable` and `disable` change: the lines of ALTER SYSTEM, and the comment of the extension if it exists.
type Changes = (Vec<String>, Option<Option<String>>);

/// The state after the command's changes, once the server has ended its sessions, which may go on without it.
fn changes(cluster: &scratch::Cluster, admin: &mut postgres::Client) -> Changes {
    let others = "select count(*) from pg_stat_activity \
                  where backend_type = 'client backend' and pid <> pg_backend_pid()";
    eventually("the command's sessions end", || {
        admin.query_one(others, &[]).unwrap().get::<_, i64>(0) == 0
    });
    let text = std::fs::read_to_string(cluster.data_dir().join("postgresql.auto.conf")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#')).map(String::from).collect();
    let comment = "select obj_description(oid, 'pg_extension') from pg_extension \
                   where extname = 'pg_tally'";
    (lines, admin.query_opt(comment, &[]).unwrap().map(|row| row.get(0)))
}

/// The response to each message is lost in turn: before the loss the server has done everything, after it
/// nothing.
#[test]
fn a_command_that_loses_its_connection_at_any_step_is_completed_by_running_it_again() {
    let cluster = installed(Installation::shared(), "");
    let target = cluster.connection_string();
    // Connected before, so it is not instrumented and keeps no segment.
    let mut admin = cluster.connect().unwrap();
    let enable: &[&str] = &["enable", "--database", "postgres", &target];
    let disable: &[&str] = &["disable", &target];
    let without = changes(&cluster, &mut admin);
    output(tally().args(enable));
    let with = changes(&cluster, &mut admin);
    output(tally().args(disable));
    assert_eq!(changes(&cluster, &mut admin), without);
    // The list of libraries and, before PostgreSQL 16, two settings that sessions then define faster.
    let added = if major() < 16 { 3 } else { 1 };
    assert_eq!(with.0.len(), without.0.len() + added);

    let mut lost = 0;
    for n in 1.. {
        let mut untouched = true;
        for (command, done) in [(enable, &with), (disable, &without)] {
            let failed = strace::fail_nth("recvfrom", "ECONNRESET", n, None, command);
            let Some((printed, hit)) = failed else { return };
            let text = String::from_utf8_lossy(&printed.stderr);
            let failure = format!("{command:?}, {hit:?}: {text}");
            let now = changes(&cluster, &mut admin);
            if hit.is_some() {
                (untouched, lost) = (false, lost + 1);
                assert_eq!(printed.status.code(), Some(1), "{failure}");
                let again = format!("Run `tally {}` again", command[0]);
                let says_so =
                    text.contains("cannot connect to the server") || text.contains(&again);
                assert!(says_so, "{failure}");
                // Each line is written by itself.
                assert!(without.0.iter().all(|line| now.0.contains(line)), "{failure}: {now:?}");
                assert!(now.0.iter().all(|line| with.0.contains(line)), "{failure}: {now:?}");
                assert!([&with.1, &without.1].contains(&&now.1), "{failure}: {now:?}");
            } else {
                assert!(printed.status.success() && now == *done, "{failure}: {now:?}");
            }
            output(tally().args(command));
            assert_eq!(changes(&cluster, &mut admin), *done, "{failure}");
            assert!(command == enable || !segment(&cluster).exists(), "{failure}");
        }
        if untouched {
            break;
        }
    }
    assert!(lost > 20, "{lost}");
}

/// Each use of the segment fails in turn.
#[test]
fn a_command_that_cannot_use_the_segment_says_so_and_is_completed_by_running_it_again() {
    let mut cluster = installed(Installation::shared(), "");
    let target = cluster.connection_string();
    let enable: &[&str] = &["enable", "--mode", "shared", &target];
    let disable: &[&str] = &["disable", &target];
    output(tally().args(enable));
    cluster.restart().unwrap();
    let segment = segment(&cluster);
    let mut failures = 0;
    for (command, level) in [(disable, Level::Off), (enable, Level::Waits)] {
        // strace counts each kind of call by itself.
        for call in ["openat", "pread64", "mmap"] {
            for n in 1.. {
                let run = strace::fail_nth(call, "EIO", n, Some(&segment), command);
                let Some((printed, hit)) = run else { return };
                let text = String::from_utf8_lossy(&printed.stderr);
                let failure = format!("{command:?}, {hit:?}: {text}");
                let switch = LevelSwitch::open(&segment).unwrap();
                if hit.is_none() {
                    assert!(printed.status.success() && switch.level() == level, "{failure}");
                    break;
                }
                failures += 1;
                assert_eq!(printed.status.code(), Some(1), "{failure}");
                assert!(text.contains(&segment.display().to_string()), "{failure}");
                assert!(text.contains(&format!("Run `tally {}` again", command[0])), "{failure}");
                output(tally().args(command));
                assert_eq!(switch.level(), level, "{failure}");
                // As it was before.
                switch.set(if level == Level::Off { Level::Waits } else { Level::Off });
            }
        }
    }
    assert!(failures >= 6, "{failures}");
}
