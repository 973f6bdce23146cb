// SPDX-License-Identifier: PostgreSQL
//! Bad input gives exit status 2 for an invalid command line, 1 for a failure. Errors name the object and the
//! remedy.

use std::io::Write;

use crate::support::shared_server::Profile;
use crate::support::{complaint, output, plain, tally};

#[test]
fn a_wrong_command_line_ends_with_2() {
    for args in [
        &["no-such-verb"][..],
        &[],
        &["top", "--no-such-option"],
        &["top", "--interval", "0"],
        &["top", "--interval", "2weeks"],
        &["top", "--view", "nothing"],
        &["top", "--count", "0"],
        &["cost", "--minutes", "-1"],
        &["cost", "--workload", "no-such-file.sql"],
        &["cost", "--level", "everything"],
        &["level", "everything"],
        &["functions", "--list"],
        &["demo", "--clients", "0"],
        &["demo", "--for", "0"],
        &["enable", "--mode", "none"],
        &["status", "one", "two"],
        &["completions", "no-such-shell"],
        &["--color", "sometimes", "ls"],
    ] {
        complaint(tally().args(args), 2);
    }
}

#[test]
fn an_unknown_target_ends_with_2_and_names_the_valid_forms() {
    for verb in ["top", "status", "enable", "disable"] {
        let error = complaint(tally().args([verb, "/no/such/thing"]), 2);
        assert!(error.contains("/no/such/thing") && error.contains("connection string"), "{error}");
    }
}

#[test]
fn a_file_that_is_not_a_segment_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pg_tally.1.2");
    for content in [&b""[..], b"TALLY", b"nothing of the kind", &[0; 8192]] {
        std::fs::File::create(&file).unwrap().write_all(content).unwrap();
        for verb in ["top", "status"] {
            let error = complaint(tally().arg(verb).arg(&file), 1);
            assert!(error.contains("pg_tally.1.2"), "{error}");
        }
    }
}

#[test]
fn a_directory_that_is_not_a_data_directory_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = complaint(tally().arg("top").arg(folder.path()), 1);
    assert!(error.contains("not a data directory"), "{error}");
}

#[test]
fn the_data_directory_of_a_stopped_server_is_an_error_that_says_so() {
    let cluster = plain().create().unwrap();
    let error = complaint(tally().arg("top").arg(cluster.data_dir()), 1);
    assert!(error.contains("no server runs there"), "{error}");
    let error = complaint(tally().arg("enable").arg(cluster.data_dir()), 1);
    assert!(error.contains("no server runs there"), "{error}");
}

#[test]
fn without_the_extension_the_error_suggests_tally_enable() {
    let cluster = Profile::Plain.server();
    let error = complaint(tally().args(["top"]).arg(cluster.data_dir()), 1);
    assert!(error.contains("tally enable"), "{error}");
}

#[test]
fn the_error_names_a_server_that_does_not_answer() {
    let error = complaint(tally().args(["top", "host=/nonexistent port=5999 user=me"]), 1);
    assert!(error.contains("/nonexistent/.s.PGSQL.5999"), "{error}");
    let error = complaint(tally().args(["top", "host=/tmp surprise=1"]), 2);
    assert!(error.contains("not a connection string"), "{error}");
}

#[test]
fn the_error_names_the_missing_permission() {
    let database = Profile::Preloaded.database();
    let user = format!("user={}", database.role("poor", ""));
    let target = database.connection_string().replace(&format!("user={}", database.name), &user);
    let result = tally().args(["top", "--once", &target]).output().unwrap();
    // Permission on the file depends on the operating system's user: root and the server's user have it.
    if !result.status.success() {
        let error = String::from_utf8(result.stderr).unwrap();
        assert!(error.contains("permission") || error.contains("GRANT"), "{error}");
    }
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let shell = |pipe: &str| {
        let tally = assert_cmd::cargo::cargo_bin("tally");
        let script =
            format!("{{ {} {pipe}; echo \"status $?\" >&2; }} | head -c 1", tally.display());
        let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(shell("completions bash"), "status 0\n");
    assert_eq!(shell("man"), "status 0\n");
}

#[test]
fn help_and_version_succeed() {
    assert!(output(tally().arg("--help")).contains("Exit status"));
    assert!(output(tally().arg("--version")).starts_with("tally "));
    for verb in ["demo", "enable", "disable", "status", "ls", "top", "cost", "level", "functions"] {
        assert!(output(tally().args([verb, "--help"])).contains("Usage: tally"));
    }
}

#[test]
fn every_verb_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    output(tally().arg("man").arg(folder.path()));
    for page in ["tally.1", "tally-top.1", "tally-enable.1"] {
        assert!(folder.path().join(page).exists(), "{page}");
    }
}
