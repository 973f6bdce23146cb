// SPDX-License-Identifier: PostgreSQL
//! Bad input: 2 for a wrong command line, 1 for what fails; the thing and the remedy named.

mod support;

use std::io::Write;

use support::{complaint, output, shared, tally};

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
        &["demo", "--seconds", "0"],
        &["enable", "--mode", "none"],
        &["status", "one", "two"],
        &["completions", "no-such-shell"],
        &["--color", "sometimes", "ls"],
    ] {
        complaint(tally().args(args), 2);
    }
}

#[test]
fn a_target_that_is_nothing_ends_with_2_and_names_the_forms() {
    for verb in ["top", "status", "enable", "disable"] {
        let said = complaint(tally().args([verb, "/no/such/thing"]), 2);
        assert!(said.contains("/no/such/thing") && said.contains("connection string"), "{said}");
    }
}

#[test]
fn a_file_that_is_no_segment_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pg_tally.1.2");
    for content in [&b""[..], b"TALLY", b"nothing of the kind", &[0; 8192]] {
        std::fs::File::create(&file).unwrap().write_all(content).unwrap();
        for verb in ["top", "status"] {
            let said = complaint(tally().arg(verb).arg(&file), 1);
            assert!(said.contains("pg_tally.1.2"), "{said}");
        }
    }
}

#[test]
fn a_directory_that_is_no_data_directory_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let said = complaint(tally().arg("top").arg(folder.path()), 1);
    assert!(said.contains("not a data directory"), "{said}");
}

#[test]
fn a_dead_servers_data_directory_says_that_no_server_runs() {
    let cluster = scratch::Cluster::builder().create().unwrap();
    let said = complaint(tally().arg("top").arg(cluster.data_dir()), 1);
    assert!(said.contains("no server runs there"), "{said}");
    let said = complaint(tally().arg("enable").arg(cluster.data_dir()), 1);
    assert!(said.contains("no server runs there"), "{said}");
}

#[test]
fn a_server_without_the_extension_is_told_to_enable_it() {
    let cluster = scratch::Cluster::builder().start().unwrap();
    for target in [cluster.data_dir().display().to_string(), cluster.connection_string()] {
        let said = complaint(tally().args(["top", &target]), 1);
        assert!(said.contains("tally enable"), "{said}");
    }
}

#[test]
fn a_server_that_does_not_answer_is_named() {
    let said = complaint(tally().args(["top", "host=/nonexistent port=5999 user=me"]), 1);
    assert!(said.contains("/nonexistent/.s.PGSQL.5999") && said.contains("as me"), "{said}");
    let said = complaint(tally().args(["top", "host=/tmp surprise=1"]), 2);
    assert!(said.contains("not a connection string"), "{said}");
}

#[test]
fn a_role_without_rights_is_told_what_it_lacks() {
    let cluster = shared();
    cluster.psql("create role poor login").unwrap();
    let target = cluster.connection_string().replace("user=postgres", "user=poor");
    let result = tally().args(["top", "--once", &target]).output().unwrap();
    // Rights on the file are the operating system's matter: root and the server's user may.
    if !result.status.success() {
        let said = String::from_utf8(result.stderr).unwrap();
        assert!(said.contains("permission") || said.contains("GRANT"), "{said}");
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
fn help_and_version_are_no_failure() {
    assert!(output(tally().arg("--help")).contains("Exit status"));
    assert!(output(tally().arg("--version")).starts_with("tally "));
    for verb in ["demo", "enable", "disable", "status", "ls", "top", "cost", "level", "functions"] {
        assert!(output(tally().args([verb, "--help"])).contains("Usage: tally"));
    }
}

#[test]
fn a_page_is_written_for_every_verb() {
    let folder = tempfile::tempdir().unwrap();
    output(tally().arg("man").arg(folder.path()));
    for page in ["tally.1", "tally-top.1", "tally-enable.1"] {
        assert!(folder.path().join(page).exists(), "{page}");
    }
}
