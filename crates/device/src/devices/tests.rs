// SPDX-License-Identifier: PostgreSQL
//! Real files whose mount no table lists, with invented tables and devices.

use std::os::unix::fs::MetadataExt;

use rustix::fs::{major, minor};

use super::*;

/// A data directory, and invented /proc and /sys that do not list its mount.
struct Jail {
    dir: tempfile::TempDir,
    system: System,
    number: DeviceNumber,
    mount_id: Option<u64>,
}

impl Jail {
    fn new() -> Jail {
        let dir = tempfile::tempdir().expect("a directory");
        let system = System {
            proc: process::Proc::at(dir.path().join("proc")),
            sys: dir.path().join("sys"),
            own: true,
        };
        let device = std::fs::metadata(dir.path()).expect("a directory").dev();
        let found = Root::own(&system).find(dir.path()).expect("a directory");
        let number = DeviceNumber { major: major(device), minor: minor(device) };
        let jail = Jail { system, number, mount_id: found.mount_id, dir };
        std::fs::create_dir_all(jail.dir.path().join("data/pg_tblspc")).expect("a directory");
        // The mounts in a chroot: /proc and the like, but not its own mount.
        let proc = format!("{} 80 0:4 / /proc rw - proc proc rw\n", jail.other_mount());
        jail.file("proc/self/mountinfo", &proc);
        jail
    }

    /// The number of a mount that is not the directory's.
    fn other_mount(&self) -> u64 {
        self.mount_id.unwrap_or(0) + 1
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    }

    /// The file system of the data directory.
    fn file_system(&self) -> FileSystem {
        let devices = Devices::resolve(&self.system, &self.dir.path().join("data"), None);
        assert_eq!(devices.notes, Vec::<String>::new());
        assert_eq!(devices.locations[0].problem, None);
        devices.file_systems[devices.locations[0].file_system.expect("a file system")].clone()
    }
}

#[test]
fn a_file_on_an_unlisted_mount_has_the_device_that_stat_reports() {
    let jail = Jail::new();
    let found = jail.file_system();
    assert_eq!((found.number, found.listed), (jail.number, false));
    assert_eq!(jail.mount_id.unwrap_or(found.mount_id), found.mount_id);
    // This /sys lists no device.
    assert!(matches!(found.backing, Backing::None { .. }), "{found:?}");
    if jail.number.is_anonymous() {
        return;
    }
    let number = jail.number;
    jail.file(&format!("sys/dev/block/{number}/dev"), &format!("{number}\n"));
    let found = jail.file_system();
    assert_eq!(found.backing, Backing::Device { device: number });
    assert_eq!(found.source, Path::new("/dev").join(number.to_string()));
}

#[test]
fn an_unlisted_mount_has_type_and_source_of_another_mount_of_its_device() {
    let jail = Jail::new();
    let number = jail.number;
    let other = jail.other_mount();
    let line = format!("{other} 80 {number} /srv /srv rw - xfs /dev/mapper/vg-pg rw\n");
    jail.file("proc/self/mountinfo", &line);
    let found = jail.file_system();
    assert_eq!((found.kind.as_str(), found.listed), ("xfs", false));
    assert_eq!(found.source, Path::new("/dev/mapper/vg-pg"));
    assert_eq!(found.number, number);
}

#[test]
fn process_1_may_list_the_mount() {
    let jail = Jail::new();
    let Some(id) = jail.mount_id else {
        println!("not tested: this kernel does not number mounts");
        return;
    };
    let number = jail.number;
    let line = format!("{id} 1 {number} /jails/1 /srv/jails/1 rw - f2fs /dev/sdx rw\n");
    jail.file("proc/1/mountinfo", &line);
    let found = jail.file_system();
    assert_eq!((found.kind.as_str(), found.listed, found.mount_id), ("f2fs", true, id));
    assert_eq!(found.mount_point, Path::new("/srv/jails/1"));
}
