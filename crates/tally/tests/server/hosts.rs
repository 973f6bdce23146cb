// SPDX-License-Identifier: PostgreSQL
//! Recordings of two machines that were copied into one directory.

use std::path::{Path, PathBuf};

use crate::support::synthetic::FakeServer;
use crate::support::{complaint, output, tally};
use serde_json::Value;
use tempfile::TempDir;

/// Copies the contents of a directory to another, which may contain files of the same names.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Recordings of two machines with different loads, and both in one directory.
fn machines() -> (TempDir, [PathBuf; 3]) {
    let folder = tempfile::tempdir().unwrap();
    let places = ["anna", "berta", "both"].map(|name| folder.path().join(name));
    let made = |host: &'static str, seed, ns| {
        let made = FakeServer { host, ..FakeServer::default() };
        made.seed(seed).account("execute::wait::IO:DataFileRead", ns)
    };
    made("anna", 1, 50_000.0).write(&places[0], 90, |_, _| {});
    made("berta", 2, 900_000.0).write(&places[1], 130, |_, _| {});
    copy(&places[0], &places[2]);
    copy(&places[1], &places[2]);
    (folder, places)
}

/// Three sections of a report.
fn report(directory: &Path, more: &[&str]) -> (Value, Value, Value) {
    let text = output(tally().arg("report").arg(directory).arg("--json").args(more));
    let report: Value = serde_json::from_str(&text).unwrap();
    let tables = report["tables"].as_array().unwrap();
    let ledger = tables.iter().find(|table| table["id"] == "ledger").unwrap();
    (report["totals"].clone(), ledger["rows"].clone(), report["measured"]["host"].clone())
}

#[test]
fn two_machines_are_refused_and_named() {
    let (_folder, [_, _, both]) = machines();
    let words = |word: &str| -> Vec<std::ffi::OsString> { vec![word.into(), both.clone().into()] };
    let replay = ["top".into(), "--replay".into(), both.clone().into(), "--once".into()];
    let diff = ["diff".into(), both.clone().into(), both.clone().into()];
    for args in [words("report"), replay.to_vec(), diff.to_vec()] {
        let message = complaint(tally().args(&args), 2);
        assert!(
            message.contains("(anna, berta)") && message.contains("--host"),
            "{args:?}: {message}"
        );
    }
    let message = complaint(tally().arg("report").arg(&both).args(["--host", "clara"]), 2);
    assert!(message.contains("clara") && message.contains("anna, berta"), "{message}");
}

#[test]
fn each_machine_is_reported_as_if_it_were_alone() {
    let (_folder, [anna, berta, both]) = machines();
    let (a, b) = (report(&anna, &[]), report(&berta, &[]));
    assert_ne!(a.0, b.0);
    assert_eq!(report(&both, &["--host", "anna"]), a);
    assert_eq!(report(&both, &["--host", "berta"]), b);
    let mut diff = tally();
    diff.arg("diff").arg(&both).arg(&both).args(["--host", "anna", "--host-b", "berta"]);
    let text = output(&mut diff);
    assert!(text.contains("IO:DataFileRead"), "{text}");
}
