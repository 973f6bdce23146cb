// SPDX-License-Identifier: PostgreSQL
//! The Java agent in application servers: Flight Recorder or async-profiler in the same virtual machine, in either order,
//! and applications that are deployed again and again.

use crate::support;
use std::path::Path;
use std::process::Command;

use crate::support::java::{agent, all, async_profiler, java, row, Java, Running};
use crate::support::output;

const ROUNDS: u64 = 40;
const METHOD: &str = "org.postgresql.jdbc.PgStatement::executeQuery";

/// A tool of this Java's JDK.
fn tool(java: &Java, name: &str) -> assert_cmd::Command {
    let mut command = Command::new(java.program.with_file_name(name));
    // A tool must not have options that are meant for the program.
    command.env_remove("JAVA_TOOL_OPTIONS");
    assert_cmd::Command::from_std(command)
}

/// Since Java 25, Flight Recorder can time methods, for which it changes their code.
fn times_methods(java: &Java) -> bool {
    java.version() >= Some(25)
}

/// What Flight Recorder found.
fn recorded(java: &Java, file: &Path) -> String {
    let events = if times_methods(java) { "jdk.MethodTiming" } else { "jdk.InitialSystemProperty" };
    output(tool(java, "jfr").args(["print", "--events", events]).arg(file))
}

/// Checks that the first half of the program is counted exactly.
fn check_counts(program: &Running, name: &str) {
    let json = program.methods();
    for method in ["PgPreparedStatement.executeQuery()", "PgStatement.executeQuery(String)"] {
        assert_eq!(row(&json, method)["calls"], ROUNDS, "{name}: {json:#}");
    }
    assert_eq!(json["exact"], true, "{name}");
    let calls = program.calls();
    let calls = calls["calls"].as_array().unwrap();
    let failed = calls.iter().find(|call| call["text"] == "select 1/0").unwrap();
    assert_eq!(failed["failed"], ROUNDS, "{name}");
}

#[test]
fn async_profiler_and_our_agent_leave_each_other_their_figures() {
    let (_cluster, port) = support::on_loopback(support::plain());
    let url = format!("jdbc:postgresql://127.0.0.1:{port}/postgres?sslmode=disable");
    let rounds = ROUNDS.to_string();
    let program = ["org.pgtally.test.Halves", &url, "postgres", &rounds];
    let unpacked = tempfile::tempdir().unwrap();
    for java in all() {
        let Some(profiler) = async_profiler(unpacked.path()) else {
            return eprintln!("left out: async-profiler is not made for this processor");
        };
        for ours_first in [true, false] {
            let folder = tempfile::tempdir_in("/dev/shm").unwrap();
            let profile = unpacked.path().join("profile");
            let segment = folder.path().join("segment");
            let ours = format!(
                "-javaagent:{}=methods=driver-all,file={}",
                agent().display(),
                segment.display()
            );
            let theirs = format!(
                "-agentpath:{}=start,event=itimer,interval=1ms,collapsed,file={}",
                profiler.display(),
                profile.display()
            );
            let arguments = if ours_first { [&*ours, &*theirs] } else { [&*theirs, &*ours] };
            let mut program = java.spawn(&arguments, &program, folder);
            program.until("ready");
            program.go();
            program.until("half");
            let name = format!("Java {:?}, ours first: {ours_first}", java.version());
            check_counts(&program, &name);
            program.finish();
            let errors = program.end();
            assert!(!errors.contains("Error") && !errors.contains("pgtally:"), "{name}: {errors}");
            assert!(std::fs::metadata(&profile).unwrap().len() > 0, "{name}");
            std::fs::remove_file(&profile).unwrap();
        }
    }
}

#[test]
fn flight_recorder_and_our_agent_leave_each_other_their_figures() {
    let (_cluster, port) = support::on_loopback(support::plain());
    let url = format!("jdbc:postgresql://127.0.0.1:{port}/postgres?sslmode=disable");
    let rounds = ROUNDS.to_string();
    let program = ["org.pgtally.test.Halves", &url, "postgres", &rounds];
    for java in all() {
        for ours_first in [true, false] {
            let folder = tempfile::tempdir_in("/dev/shm").unwrap();
            let file = folder.path().join("flight.jfr");
            let timing = if times_methods(&java) {
                format!(",method-timing={METHOD}")
            } else {
                String::new()
            };
            let options =
                format!("methods=driver-all,file={}", folder.path().join("segment").display());
            let first = if ours_first {
                format!("-javaagent:{}={options}", agent().display())
            } else {
                format!("-XX:StartFlightRecording:filename={}{timing}", file.display())
            };
            let mut program = java.spawn(&[&first], &program, folder);
            program.until("ready");
            let pid = program.child.id().to_string();
            if ours_first {
                let mut start = tool(&java, "jcmd");
                start.args([&pid, "JFR.start", &format!("filename={}", file.display())]);
                if times_methods(&java) {
                    start.arg(format!("method-timing={METHOD}"));
                }
                output(&mut start);
            } else {
                java.attach(&program, &options);
            }
            program.go();
            program.until("half");
            let name = format!("Java {:?}, ours first: {ours_first}", java.version());
            check_counts(&program, &name);
            output(tool(&java, "jcmd").args([
                &pid,
                "JFR.dump",
                &format!("filename={}", file.display()),
            ]));
            let found = recorded(&java, &file);
            let expected =
                if times_methods(&java) { "PgStatement.executeQuery" } else { "java.vm.name" };
            assert!(found.contains(expected), "{name}: {found}");
            java.attach(&program, "off");
            assert!(!program.segment().exists());
            program.finish();
            let errors = program.end();
            assert!(!errors.contains("Error") && !errors.contains("pgtally:"), "{name}: {errors}");
        }
    }
}

#[test]
fn an_application_that_is_deployed_a_hundred_times_is_counted_and_collected() {
    let Some(java) = java() else { return };
    let (_cluster, port) = support::on_loopback(support::plain());
    let url = format!("jdbc:postgresql://127.0.0.1:{port}/postgres?sslmode=disable");
    // Threads of newer drivers keep their class loaders for half a minute.
    let java = Java { old_driver: true, ..java };
    // It is ready once all class loaders have been collected.
    let mut program = java.start("", &["org.pgtally.test.Redeployed", &url, "postgres", "100"]);
    let calls = program.calls();
    let all = calls["calls"].as_array().unwrap();
    let call = all.iter().find(|call| call["text"] == "select 1 as redeployed").unwrap();
    assert_eq!(call["execute"]["count"], 100, "{calls:#}");
    assert_eq!(calls["exact"], true);
    let connects = row(&program.methods(), "Driver.connect(String,Properties)")["calls"].clone();
    assert_eq!(connects, 100);
    program.finish();
    program.end();
}
