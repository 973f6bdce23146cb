// SPDX-License-Identifier: PostgreSQL
//! `tally status` and `tally ls` of live servers.

use crate::support;
use crate::support::json_reference::{assert_documented, fields, PAGE};
use crate::support::shared_server::Profile;
use crate::support::{output, plain, segment, sessions, shared, start, tally};
use scratch::StopMode;

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_server_with_the_extension_in_all_processes_is_covered_in_full() {
    let cluster = Profile::Preloaded.server();
    let path = segment(cluster);
    let status = json(&output(tally().args(["status", "--json"]).arg(&path)));
    assert_eq!(status["mode"], "shared");
    assert_eq!(status["running"], true);
    assert_eq!(status["level"], "waits");
    assert_eq!(status["server"]["pid"], cluster.postmaster_pid().unwrap());
    assert_eq!(status["server"]["host"], cluster.data_dir().to_str().unwrap());
    assert_eq!(status["processes"]["not_covered"], serde_json::json!([]));
    assert!(status["processes"]["covered"].as_u64().unwrap() >= 5, "{status}");
    assert!(status["probes"].as_array().unwrap().len() > 10, "{status}");
    assert_eq!(status["exact"], true);
    let text = output(tally().arg("status").arg(cluster.data_dir()));
    assert!(
        text.contains("through shared_preload_libraries") && text.contains("overflow"),
        "{text}"
    );
}

#[test]
fn a_server_with_the_extension_in_sessions_lists_what_is_not_covered() {
    let cluster = sessions();
    let session = cluster.connect().unwrap();
    let status = json(&output(tally().args(["status", "--json"]).arg(cluster.data_dir())));
    assert_eq!(status["mode"], "session");
    assert_eq!(status["processes"]["covered"], 1);
    let left = status["processes"]["not_covered"].to_string();
    if support::emulated() {
        println!("not tested: the titles of an emulated server's processes are the emulator's command line");
    } else {
        assert!(left.contains("checkpointer") && left.contains("walwriter"), "{left}");
    }
    assert!(status["processes"]["not_covered"].as_array().unwrap().len() >= 4, "{left}");
    drop(session);
}

#[test]
fn paused_statements_are_reported_and_resume_when_a_level_is_set() {
    let cluster = shared();
    let path = segment(&cluster);
    let status = || json(&output(tally().args(["status", "--json"]).arg(&path)));
    assert_eq!(status()["statements_paused"], false);
    // The state that a killed `tally cost` leaves.
    segment::Segment::open(&path).unwrap().level_switch().unwrap().pause_statements(true);
    assert_eq!(status()["statements_paused"], true);
    let text = output(tally().arg("status").arg(&path));
    assert!(
        text.contains("paused by `tally cost`") && text.contains("`tally level waits`"),
        "{text}"
    );
    output(tally().args(["level", "waits"]).arg(&path));
    assert_eq!(status()["statements_paused"], false);
}

#[test]
fn too_few_slots_are_reported_with_a_remedy() {
    let cluster = start(
        plain().setting("shared_preload_libraries", "pg_tally").setting("pg_tally.max_slots", "3"),
    );
    let text = output(tally().arg("status").arg(cluster.data_dir()));
    assert!(text.contains("raise pg_tally.max_slots"), "{text}");
    assert!(text.contains("not covered"), "{text}");
}

#[test]
fn segments_are_listed_with_their_servers() {
    let mut cluster = shared();
    let row = |text: &str| {
        let rows = json(text);
        let path = segment(&cluster).display().to_string();
        rows.as_array().unwrap().iter().find(|row| row["segment"] == path.as_str()).cloned()
    };
    let found = row(&output(tally().args(["ls", "--json"]))).unwrap();
    assert_eq!(found["running"], true);
    assert_eq!(found["port"], 5432);
    assert!(found["sessions"].as_u64().unwrap() >= 5, "{found}");
    assert!(found["resident_bytes"].as_u64().unwrap() < found["file_bytes"].as_u64().unwrap());
    let text = output(tally().arg("ls"));
    assert!(text.contains(cluster.data_dir().to_str().unwrap()), "{text}");
    cluster.stop(StopMode::Fast).unwrap();
    assert!(!segment(&cluster).exists());
}

#[test]
fn the_segment_of_a_killed_server_is_listed_as_ended() {
    let mut cluster = shared();
    cluster.kill9_postmaster().unwrap();
    let text = output(tally().arg("status").arg(segment(&cluster)));
    assert!(text.contains("the server has stopped"), "{text}");
    cluster.start().unwrap();
    let status = json(&output(tally().args(["status", "--json"]).arg(segment(&cluster))));
    assert_eq!(status["running"], true);
}

#[test]
fn a_segment_in_another_directory_is_found_through_the_servers_mappings() {
    let mut cluster = plain().setting("shared_preload_libraries", "pg_tally").create().unwrap();
    let folder = cluster.host().display().to_string();
    let directory = format!("pg_tally.directory = '{folder}'\npg_tally.directory_on_disk = on\n");
    cluster.append_config(&directory).unwrap();
    cluster.start().unwrap();
    assert!(!segment(&cluster).exists());
    for target in [cluster.data_dir().display().to_string(), cluster.connection_string()] {
        let status = json(&output(tally().args(["status", "--json", &target])));
        let found = status["server"]["segment"].as_str().unwrap();
        assert!(found.starts_with(&folder), "{found}");
    }
    let listed = output(tally().args(["ls", "--directory", &folder]));
    assert!(listed.contains(cluster.data_dir().to_str().unwrap()), "{listed}");
}

#[test]
fn every_field_of_the_json_is_documented() {
    let cluster = Profile::Sessions.server();
    let session = cluster.connect().unwrap();
    for args in [&["ls", "--json"][..], &["status", "--json"], &["top", "--once", "--json"]] {
        let mut command = tally();
        command.args(args);
        if args[0] != "ls" {
            command.arg(segment(cluster));
        }
        assert_documented(PAGE, fields([&json(&output(&mut command))]));
    }
    drop(session);
}
