// SPDX-License-Identifier: PostgreSQL
//! The standard library and tempfile make their calls through this crate's functions.

use faulty::{arm, Call, Fault, FaultPlan, Unsynced};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Every operation of the recorder on files.
fn work(folder: &Path) -> std::io::Result<()> {
    fs::create_dir(folder.join("below"))?;
    let path = folder.join("below/one");
    let mut file = File::create(&path)?;
    file.write_all(b"12345678")?;
    file.set_len(6)?;
    file.sync_all()?;
    fs::rename(&path, folder.join("two"))?;
    let mut temporary = tempfile::Builder::new().tempfile_in(folder)?;
    temporary.write_all(b"abcd")?;
    temporary.persist(folder.join("three"))?;
    fs::remove_file(folder.join("three"))?;
    fs::remove_dir(folder.join("below"))
}

#[test]
fn every_call_is_counted_and_each_can_fail() {
    let folder = tempfile::tempdir().unwrap();
    let armed = arm(FaultPlan::COUNT);
    work(folder.path()).unwrap();
    let calls = armed.calls();
    drop(armed);
    assert_eq!(fs::read(folder.path().join("two")).unwrap(), b"123456");
    let mut names = Vec::new();
    for n in 1..=calls {
        let folder = tempfile::tempdir().unwrap();
        let armed = arm(FaultPlan::nth(Call::CHANGES, n, Fault::Fails(libc::EDQUOT)));
        let error = work(folder.path()).unwrap_err();
        names.push(armed.hit().unwrap());
        // tempfile adds the file's name and keeps the kind of error.
        assert_eq!(error.kind(), ErrorKind::QuotaExceeded, "call {n}");
    }
    let expected = [
        "mkdir",
        "open",
        "write",
        "ftruncate",
        "fsync",
        "rename",
        "open",
        "write",
        "rename",
        "unlink",
        "rmdir",
    ];
    assert_eq!(names, expected);
    let folder = tempfile::tempdir().unwrap();
    let armed = arm(FaultPlan::nth(Call::CHANGES, calls + 1, Fault::Fails(libc::EDQUOT)));
    work(folder.path()).unwrap();
    assert_eq!(armed.hit(), None);
}

#[test]
fn a_killed_process_changes_nothing_more_and_leaves_half_a_write() {
    let folder = tempfile::tempdir().unwrap();
    let armed = arm(FaultPlan::kill(3));
    work(folder.path()).unwrap_err();
    assert!(fs::remove_file(folder.path().join("below/one")).is_err());
    assert_eq!(fs::read(folder.path().join("below/one")).unwrap(), b"1234");
    drop(armed);
    fs::remove_file(folder.path().join("below/one")).unwrap();
}

#[test]
fn a_full_file_system_takes_what_fits() {
    let folder = tempfile::tempdir().unwrap();
    let armed = arm(FaultPlan::full_after(5));
    let error = work(folder.path()).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    assert!(File::create(folder.path().join("more")).is_err());
    fs::rename(folder.path().join("below/one"), folder.path().join("one")).unwrap();
    drop(armed);
    assert_eq!(fs::read(folder.path().join("one")).unwrap(), b"12345");
}

#[test]
fn other_threads_are_not_affected() {
    let folder = tempfile::tempdir().unwrap();
    let _armed = arm(FaultPlan::kill(1));
    std::thread::scope(|scope| scope.spawn(|| work(folder.path())).join().unwrap()).unwrap();
    assert!(work(folder.path()).is_err());
}

#[test]
fn a_machine_without_power_loses_what_is_not_synchronized() {
    let folder = tempfile::tempdir().unwrap();
    let unsynced = Unsynced::begin();
    let write = |name: &str, sync: bool| {
        let mut file = File::create(folder.path().join("new")).unwrap();
        file.write_all(b"one").unwrap();
        if sync {
            file.sync_all().unwrap();
        }
        fs::rename(folder.path().join("new"), folder.path().join(name)).unwrap();
        file
    };
    write("synchronized", true);
    write("not", false);
    write("kept", false);
    write("more", true).write_all(b" two").unwrap();
    unsynced.lose(folder.path(), |path| !path.ends_with("kept")).unwrap();
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let found = ["synchronized", "not", "kept", "more"].map(read);
    assert_eq!(found, ["one", "", "one", "one"]);
}
