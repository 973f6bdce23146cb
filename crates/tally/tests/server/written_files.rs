// SPDX-License-Identifier: PostgreSQL
//! Files that the command writes contain texts of statements: who may read them, and where root writes them.

use std::os::unix::fs::{chown, MetadataExt};
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use scratch::Cluster;

use crate::support::{complaint, output, plain, start, tally};

const NOBODY: u32 = 65_534;

/// The verbs that write files, each with the path that it writes; a report needs the recording that is made
/// first.
fn verbs(folder: &Path) -> Vec<(Vec<String>, PathBuf)> {
    let at = |name: &str| folder.join(name);
    let words = |line: &str| line.split(' ').map(str::to_string).collect::<Vec<_>>();
    let to =
        |line: &str, name: &str| (words(&format!("{line} -o {}", at(name).display())), at(name));
    vec![
        to("record --interval 100ms --duration 1s", "recording"),
        to("trace --database postgres --seconds 100ms", "trace.json"),
        to("trace --database postgres --seconds 100ms", "trace.txt"),
        to("profile --seconds 100ms", "profile.json"),
        to("profile --seconds 100ms", "profile.json.gz"),
    ]
}

/// The modes of directories and of files below a path.
fn modes(path: &Path, found: &mut Vec<(PathBuf, bool, u32)>) {
    let meta = path.symlink_metadata().unwrap();
    found.push((path.to_path_buf(), meta.is_dir(), meta.mode() & 0o777));
    if meta.is_dir() {
        std::fs::read_dir(path).unwrap().for_each(|entry| modes(&entry.unwrap().path(), found));
    }
}

/// The command with this umask.
fn masked(umask: &str, arguments: &[String]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", "umask \"$1\"; shift; exec \"$@\"", "sh", umask]);
    command.arg(assert_cmd::cargo::cargo_bin("tally")).args(arguments);
    command
}

fn write_all(cluster: &Cluster, umask: &str) -> Vec<(PathBuf, bool, u32)> {
    let folder = tempfile::tempdir().unwrap();
    let mut found = Vec::new();
    for (arguments, path) in verbs(folder.path()) {
        output(masked(umask, &arguments).arg(cluster.data_dir()));
        modes(&path, &mut found);
    }
    let (recording, report) = (folder.path().join("recording"), folder.path().join("it.html"));
    let arguments = ["report", "-o", report.to_str().unwrap()].map(str::to_string);
    output(masked(umask, &arguments).arg(&recording));
    modes(&report, &mut found);
    assert!(
        found
            .iter()
            .filter(|(path, is_folder, _)| !is_folder && path.starts_with(&recording))
            .count()
            > 3
    );
    found
}

#[test]
fn only_its_owner_reads_what_the_command_writes_whatever_the_umask_is() {
    let cluster = start(plain().setting("shared_preload_libraries", "pg_tally"));
    for umask in ["000", "022"] {
        for (path, is_folder, mode) in write_all(&cluster, umask) {
            let wanted = if is_folder { 0o700 } else { 0o600 };
            assert_eq!(mode, wanted, "umask {umask}, {}: {mode:o}", path.display());
        }
    }
}

#[test]
fn the_group_reads_a_recording_where_it_may_read_the_data_directory() {
    let cluster = start(plain().setting("shared_preload_libraries", "pg_tally").group_access(true));
    for (path, is_folder, mode) in write_all(&cluster, "077") {
        let recorded = path.components().any(|part| part.as_os_str() == "recording");
        let wanted = match (recorded, is_folder) {
            (true, true) => 0o750,
            (true, false) => 0o640,
            (false, _) => 0o600,
        };
        assert_eq!(mode, wanted, "{}: {mode:o}", path.display());
    }
}

#[test]
fn root_writes_nothing_where_another_user_can_lead_it_elsewhere() {
    if !rustix::process::geteuid().is_root() {
        println!("not tested: it needs root");
        return;
    }
    let cluster = start(plain().setting("shared_preload_libraries", "pg_tally"));
    let folder = tempfile::tempdir().unwrap();
    let theirs = folder.path().join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    chown(&theirs, Some(NOBODY), None).unwrap();
    for (arguments, _) in verbs(&theirs) {
        let error = complaint(tally().args(&arguments).arg(cluster.data_dir()), 1);
        assert!(error.contains("refusing to write under"), "{arguments:?}: {error}");
    }
    assert_eq!(std::fs::read_dir(&theirs).unwrap().count(), 0);
    // An administrator who became root through sudo may write to their own directory.
    for (arguments, path) in verbs(&theirs) {
        let mut command = tally();
        output(
            command.env("SUDO_UID", NOBODY.to_string()).args(&arguments).arg(cluster.data_dir()),
        );
        assert!(path.exists(), "{arguments:?}");
    }
}
