// SPDX-License-Identifier: PostgreSQL
//! Mounts, devices and counters of other machines: captured trees of /proc and /sys, recreated in a temporary
//! directory.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use device::{
    Backing, BlockDevice, DeviceKind, DeviceNumber, Devices, Interval, Location, LocationKind,
    NoDevice, Problem, Reading, System,
};

/// A machine: `proc`, `sys`, and `root` with its files.
struct Machine {
    dir: tempfile::TempDir,
    mounts: String,
}

impl Machine {
    fn new() -> Machine {
        let dir = tempfile::tempdir().expect("a directory");
        let machine = Machine { dir, mounts: String::new() };
        for folder in ["proc/self", "sys/dev/block", "root/data/pg_tblspc", "root/data/pg_wal"] {
            std::fs::create_dir_all(machine.path(folder)).expect("a folder");
        }
        machine
    }

    fn path(&self, path: &str) -> PathBuf {
        let dir = self.dir.path().canonicalize().expect("a path");
        dir.join(path)
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    fn folder(&self, path: &str) -> PathBuf {
        std::fs::create_dir_all(self.path(path)).expect("a folder");
        self.path(path)
    }

    /// Mounts something on a path of `root`; `""` is "/" of the machine itself.
    fn mount(&mut self, point: &str, number: &str, kind: &str, source: &str, options: &str) {
        let id = 100 + self.mounts.lines().count();
        let parent = if point.is_empty() { 1 } else { 100 };
        let point = match point {
            "" => "/".to_string(),
            point => self.folder(&format!("root/{point}")).to_string_lossy().replace('\n', "\\012"),
        };
        let line =
            format!("{id} {parent} {number} / {point} rw shared:1 - {kind} {source} {options}\n");
        self.mounts.push_str(&line);
        self.file("proc/self/mountinfo", &self.mounts);
    }

    /// Adds a block device; `at` is its location below sys/devices.
    fn device(&self, number: &str, at: &str) {
        self.file(&format!("sys/devices/{at}/dev"), &format!("{number}\n"));
        self.file(&format!("sys/devices/{at}/size"), "2048\n");
        let link = self.path(&format!("sys/dev/block/{number}"));
        symlink(format!("../../devices/{at}"), link).expect("a link");
    }

    fn made_of(&self, at: &str, parts: &[&str]) {
        let slaves = self.folder(&format!("sys/devices/{at}/slaves"));
        for part in parts {
            let name = Path::new(part).file_name().expect("a name");
            symlink(self.path(&format!("sys/devices/{part}")), slaves.join(name)).expect("a link");
        }
    }

    fn tablespace(&self, oid: u32, target: &Path) {
        let link = self.path(&format!("root/data/pg_tblspc/{oid}"));
        symlink(target, link).expect("a link");
    }

    fn system(&self) -> System {
        System::at(self.path("proc"), self.path("sys"))
    }

    fn resolve(&self) -> Devices {
        Devices::resolve(&self.system(), &self.path("root/data"), None)
    }
}

fn tablespace(devices: &Devices, oid: u32) -> &Location {
    devices.location(&LocationKind::Tablespace { oid }).expect("a tablespace")
}

fn names(devices: &[&BlockDevice]) -> Vec<String> {
    devices.iter().map(|device| device.name.clone()).collect()
}

fn number(text: &str) -> DeviceNumber {
    text.parse().expect("a number")
}

#[test]
fn a_volume_on_a_raid_of_partitions_is_followed_down_to_the_disks() {
    let mut machine = Machine::new();
    machine.mount("", "253:0", "ext4", "/dev/mapper/vg-data", "rw");
    machine.device("253:0", "virtual/block/dm-0");
    machine.file("sys/devices/virtual/block/dm-0/dm/name", "vg-data\n");
    machine.device("9:127", "virtual/block/md127");
    machine.file("sys/devices/virtual/block/md127/md/level", "raid1\n");
    machine.made_of("virtual/block/dm-0", &["virtual/block/md127"]);
    for (disk, part, at) in [("8:0", "8:1", "pci0/block/sda"), ("8:16", "8:17", "pci0/block/sdb")] {
        machine.device(disk, at);
        let partition =
            format!("{at}/{}1", Path::new(at).file_name().expect("a name").to_string_lossy());
        machine.device(part, &partition);
        machine.file(&format!("sys/devices/{partition}/partition"), "1\n");
        machine.file(&format!("sys/devices/{at}/queue/rotational"), "1\n");
        machine.file(&format!("sys/devices/{at}/queue/scheduler"), "none [mq-deadline] bfq\n");
        machine.file(&format!("sys/devices/{at}/queue/write_cache"), "write back\n");
        machine.file(&format!("sys/devices/{at}/device/model"), "ST4000NM  \n");
    }
    machine.made_of("virtual/block/md127", &["pci0/block/sda/sda1", "pci0/block/sdb/sdb1"]);

    let devices = machine.resolve();
    let data = devices.location(&LocationKind::Data).expect("the data directory");
    assert_eq!(names(&devices.under(data)), ["dm-0"]);
    let all: Vec<&str> = devices.devices.iter().map(|d| d.name.as_str()).collect();
    assert_eq!(all, ["dm-0", "md127", "sda1", "sda", "sdb1", "sdb"]);
    let at = |name: &str| devices.devices.iter().find(|d| d.name == name).expect("a device");
    assert_eq!(at("dm-0").kind, DeviceKind::DeviceMapper);
    assert_eq!(at("dm-0").label.as_deref(), Some("vg-data"));
    assert_eq!(at("dm-0").made_of, [number("9:127")]);
    assert_eq!(at("md127").kind, DeviceKind::Raid);
    assert_eq!(at("md127").label.as_deref(), Some("raid1"));
    assert_eq!(at("sda1").kind, DeviceKind::Partition);
    assert_eq!(at("sda1").part_of, Some(number("8:0")));
    assert_eq!(at("sda1").rotational, Some(true));
    assert_eq!(at("sdb1").scheduler.as_deref(), Some("mq-deadline"));
    assert_eq!(at("sdb").write_cache.as_deref(), Some("write back"));
    assert_eq!(at("sdb").model.as_deref(), Some("ST4000NM"));
    assert_eq!(at("sdb").size_bytes, Some(1 << 20));
}

#[test]
fn a_device_that_is_made_of_itself_ends() {
    let mut machine = Machine::new();
    machine.mount("", "253:0", "xfs", "/dev/dm-0", "rw");
    machine.device("253:0", "virtual/block/dm-0");
    machine.device("253:1", "virtual/block/dm-1");
    machine.made_of("virtual/block/dm-0", &["virtual/block/dm-1"]);
    machine.made_of("virtual/block/dm-1", &["virtual/block/dm-0"]);
    assert_eq!(machine.resolve().devices.len(), 2);
}

#[test]
fn a_missing_device_has_a_reason() {
    let mut machine = Machine::new();
    machine.mount("", "8:0", "ext4", "/dev/sda", "rw");
    let kinds = [
        (1, "0:50", "nfs4", "filer:/pg", NoDevice::Network, "filer:/pg"),
        (2, "0:51", "zfs", "tank/pg", NoDevice::Pool, "zpool status tank"),
        (3, "0:52", "tmpfs", "none", NoDevice::Memory, "memory"),
        (4, "0:53", "fuse.sshfs", "me@there:/", NoDevice::Program, "program"),
        (5, "0:54", "overlay", "overlay", NoDevice::Overlay, "upper directory"),
        (6, "0:55", "odd", "thing", NoDevice::Unknown, "odd from thing"),
        // /sys of this machine shows no such device.
        (7, "8:99", "ext4", "/dev/sdz", NoDevice::Hidden, "/dev/sdz"),
        (8, "0:56", "btrfs", "/dev/sdy", NoDevice::Hidden, "/dev/sdy"),
    ];
    for (oid, device, kind, source, ..) in kinds {
        machine.mount(&format!("ts{oid}"), device, kind, source, "rw,upperdir=/not/here");
        machine.tablespace(oid, &machine.path(&format!("root/ts{oid}")));
    }
    let devices = machine.resolve();
    for (oid, _, kind, _, reason, says) in kinds {
        let location = tablespace(&devices, oid);
        let file_system = &devices.file_systems[location.file_system.expect("a file system")];
        assert_eq!(file_system.kind, kind);
        match &file_system.backing {
            Backing::None { reason: found, text } => {
                assert_eq!(*found, reason, "{kind}");
                assert!(text.contains(says), "{text}");
            }
            other => panic!("{kind}: {other:?}"),
        }
        assert!(devices.under(location).is_empty());
        assert!(devices.why_no_device(location).expect("a reason").contains(says));
    }
}

#[test]
fn a_btrfs_of_two_devices_names_both() {
    let mut machine = Machine::new();
    machine.mount("", "0:40", "btrfs", "/dev/mapper/vg!x", "rw,subvol=/pg");
    machine.mounts = machine.mounts.replace("/dev/mapper/vg!x", "/dev/sdc");
    machine.file("proc/self/mountinfo", &machine.mounts);
    for (device, name) in [("8:32", "sdc"), ("8:48", "sdd"), ("8:64", "sde")] {
        machine.device(device, &format!("pci0/block/{name}"));
    }
    for (volume, members) in [("aa", &["sde"][..]), ("bb", &["sdc", "sdd"])] {
        let folder = machine.folder(&format!("sys/fs/btrfs/{volume}/devices"));
        for member in members {
            let target = machine.path(&format!("sys/devices/pci0/block/{member}"));
            symlink(target, folder.join(member)).expect("a link");
        }
    }
    machine.folder("sys/fs/btrfs/features");
    let devices = machine.resolve();
    let data = devices.location(&LocationKind::Data).expect("the data directory");
    assert_eq!(names(&devices.under(data)), ["sdc", "sdd"]);
    let Backing::Devices { text, .. } = &devices.file_systems[0].backing else {
        panic!("{:?}", devices.file_systems[0].backing);
    };
    assert!(text.contains("2 devices"), "{text}");
}

#[test]
fn an_overlay_leads_to_its_upper_directory_and_a_loop_device_to_its_file() {
    let mut machine = Machine::new();
    machine.mount("", "8:0", "ext4", "/dev/sda", "rw");
    machine.device("8:0", "pci0/block/sda");
    machine.mount("disk b", "7:3", "xfs", "/dev/loop3", "rw");
    machine.mounts = machine.mounts.replace("disk b", "disk\\040b");
    machine.device("7:3", "virtual/block/loop3");
    machine.file("root/images/b\n", "");
    let image = machine.path("root/images/b\n").to_string_lossy().into_owned();
    machine.file("sys/devices/virtual/block/loop3/loop/backing_file", &format!("{image}\n"));
    let upper = machine.folder("root/disk b/up,per");
    let upper = upper.to_string_lossy().replace(',', "\\054").replace(' ', "\\040");
    machine.mount(
        "merged",
        "0:44",
        "overlay",
        "overlay",
        &format!("rw,lowerdir=/a:/b,upperdir={upper},workdir=/w"),
    );
    machine.tablespace(1, &machine.path("root/merged"));
    let devices = machine.resolve();

    let location = tablespace(&devices, 1);
    assert_eq!(names(&devices.under(location)), ["loop3"]);
    let overlay = &devices.file_systems[location.file_system.expect("a file system")];
    let Backing::FileSystem { file_system, path } = &overlay.backing else {
        panic!("{:?}", overlay.backing);
    };
    assert_eq!(*path, machine.path("root/disk b/up,per"));
    assert_eq!(devices.file_systems[*file_system].kind, "xfs");
    let device = devices.under(location)[0];
    assert_eq!(device.kind, DeviceKind::Loop);
    assert_eq!(device.backing_file.as_deref(), Some(Path::new(&image)));
    let home = &devices.file_systems[device.backing_file_system.expect("its file system")];
    assert_eq!(home.backing, Backing::Device { device: number("8:0") });
}

#[test]
fn an_overlay_upon_itself_ends() {
    let mut machine = Machine::new();
    machine.mount("", "0:40", "overlay", "overlay", "rw,upperdir=/");
    let devices = machine.resolve();
    let data = devices.location(&LocationKind::Data).expect("the data directory");
    assert!(devices.under(data).is_empty());
    let interval = Interval::between(&Reading::take(&devices), &Reading::take(&devices));
    assert_eq!(interval.devices_read_bytes_per_second, None);
}

#[test]
fn places_that_are_odd_do_not_keep_the_others_from_being_found() {
    let mut machine = Machine::new();
    machine.mount("", "8:0", "ext4", "/dev/sda", "rw");
    machine.device("8:0", "pci0/block/sda");
    machine.mount("line\nfeed", "8:16", "xfs", "/dev/sdb", "ro");
    machine.device("8:16", "pci0/block/sdb");
    machine.tablespace(10, &machine.path("root/line\nfeed"));
    machine.tablespace(11, Path::new("/no/such/location"));
    machine.tablespace(12, &machine.path("root/data/pg_tblspc/12"));
    machine.folder("root/data/pg_tblspc/13");
    machine.file("root/data/pg_tblspc/notes", "");
    // pg_xact is a link to elsewhere, and something is mounted deep in base.
    machine.folder("root/line\nfeed/pg_xact");
    symlink(machine.path("root/line\nfeed/pg_xact"), machine.path("root/data/pg_xact"))
        .expect("a link");
    machine.mount("data/base/5", "8:16", "xfs", "/dev/sdb", "rw");
    machine.file("root/data/PG_VERSION", "15");

    let devices = machine.resolve();
    let feed = tablespace(&devices, 10);
    assert_eq!(names(&devices.under(feed)), ["sdb"]);
    assert!(devices.file_systems[feed.file_system.expect("a file system")].read_only);
    assert_eq!(
        tablespace(&devices, 11).problem,
        Some(Problem::Dangling("/no/such/location".into()))
    );
    assert!(matches!(tablespace(&devices, 12).problem, Some(Problem::System(_))));
    assert_eq!(names(&devices.under(tablespace(&devices, 13))), ["sda"]);
    let below: Vec<&LocationKind> = devices
        .locations
        .iter()
        .map(|location| &location.kind)
        .filter(|kind| matches!(kind, LocationKind::Below { .. }))
        .collect();
    assert_eq!(
        below,
        [
            &LocationKind::Below { name: "base/5".into() },
            &LocationKind::Below { name: "pg_xact".into() }
        ]
    );
    let json = serde_json::to_value(&devices).expect("JSON");
    assert_eq!(json["locations"][2]["kind"], "tablespace");
    assert_eq!(json["locations"][2]["oid"], 10);
    assert!(json["locations"][2]["real_path"].as_str().expect("a path").ends_with("/line\nfeed"));
    assert_eq!(json["devices"][0]["number"], "8:0");
    assert_eq!(json["file_systems"][0]["backing"]["is"], "device");
}

#[test]
fn a_name_that_is_no_text_is_replaced_in_json() {
    use std::os::unix::ffi::OsStrExt;
    let mut machine = Machine::new();
    machine.mount("", "8:0", "ext4", "/dev/sda", "rw");
    let odd = machine.path("root").join(std::ffi::OsStr::from_bytes(b"\xff\xfe"));
    std::fs::create_dir(&odd).expect("a folder");
    machine.tablespace(1, &odd);
    let devices = machine.resolve();
    assert_eq!(tablespace(&devices, 1).real_path.as_deref(), Some(odd.as_path()));
    assert!(serde_json::to_string(&devices).is_ok());
}

#[test]
fn the_log_is_where_the_server_says() {
    let mut machine = Machine::new();
    machine.mount("", "8:0", "ext4", "/dev/sda", "rw");
    let log = |machine: &Machine| {
        machine
            .resolve()
            .location(&LocationKind::Log)
            .and_then(|location| location.real_path.clone())
    };
    assert_eq!(log(&machine), None);
    machine.folder("root/data/log");
    assert_eq!(log(&machine), Some(machine.path("root/data/log")));
    let far = machine.folder("root/var/my logs");
    let text = format!("stderr {}/a.log\ncsvlog x/b.csv\n", far.display());
    machine.file("root/data/current_logfiles", &text);
    assert_eq!(log(&machine), Some(far));
    machine.folder("root/data/elsewhere");
    machine.file("root/data/current_logfiles", "stderr elsewhere/a.log\n");
    assert_eq!(log(&machine), Some(machine.path("root/data/elsewhere")));
}

#[test]
fn thousands_of_tablespaces_are_found() {
    let mut machine = Machine::new();
    machine.mount("", "8:0", "ext4", "/dev/sda", "rw");
    machine.device("8:0", "pci0/block/sda");
    let target = machine.folder("root/elsewhere");
    (1..=5000).for_each(|oid| machine.tablespace(oid, &target));
    let devices = machine.resolve();
    assert_eq!(devices.locations.len(), 5002);
    assert!(devices.locations.iter().all(|location| location.file_system == Some(0)));
}

#[test]
fn a_server_in_a_container_is_seen_with_its_own_mounts() {
    let machine = Machine::new();
    machine.file("proc/self/mountinfo", "1 0 8:0 / / rw - ext4 /dev/sda rw\n");
    machine.device("8:0", "pci0/block/sda");
    let upper = machine.folder("host/overlay2/1/diff");
    let theirs = format!("50 40 0:70 / / rw - overlay overlay rw,upperdir={}\n", upper.display());
    machine.file("proc/77/mountinfo", &theirs);
    let stat = "77 (postgres) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 500 0";
    machine.file("proc/77/stat", stat);
    symlink(machine.path("root"), machine.path("proc/77/root")).expect("a link");
    std::fs::remove_dir(machine.path("root/data/pg_wal")).expect("no folder");
    machine.folder("root/wal");
    symlink("/wal", machine.path("root/data/pg_wal")).expect("a link");
    let devices = Devices::resolve(&machine.system(), Path::new("/data"), Some(77));
    let wal = devices.location(&LocationKind::Wal).expect("the WAL");
    assert_eq!(wal.real_path.as_deref(), Some(Path::new("/wal")));
    assert_eq!(devices.file_systems[0].kind, "overlay");
    // The upper directory belongs to the host.
    assert!(devices.file_systems[1].outside);
    assert_eq!(names(&devices.under(wal)), ["sda"]);
    assert_eq!(devices.notes, Vec::<String>::new());
}

#[test]
fn unreadable_files_are_problems() {
    let machine = Machine::new();
    let devices = Devices::resolve(&machine.system(), &machine.path("root/data"), Some(77));
    assert!(devices.notes.iter().any(|note| note.contains("has exited")), "{:?}", devices.notes);
    assert!(devices.notes.iter().any(|note| note.contains("mountinfo")), "{:?}", devices.notes);
    assert_eq!(devices.locations[0].problem, Some(Problem::NoMount));
    let nowhere = Devices::resolve(&machine.system(), Path::new("/no/such"), None);
    assert_eq!(nowhere.locations[0].problem, Some(Problem::Missing));
    assert_eq!(nowhere.why_no_device(&nowhere.locations[0]), Some("does not exist".into()));
}

/// A machine with one disk, and the interval between two contents of its /proc/diskstats.
fn interval(first: &str, second: &str, prepare: impl FnOnce(&Machine)) -> Interval {
    let mut machine = Machine::new();
    machine.mount("", "8:0", "ext4", "/dev/sda", "rw");
    machine.device("8:0", "pci0/block/sda");
    prepare(&machine);
    let devices = machine.resolve();
    machine.file("proc/diskstats", first);
    let a = Reading::take(&devices);
    machine.file("proc/diskstats", second);
    let mut b = Reading::take(&devices);
    b.devices_ns = a.devices_ns + 2_000_000_000;
    Interval::between(&a, &b)
}

const BEFORE: &str = "   8 0 sda 100 10 800 4294967286 200 20 1600 300 1 1000 5000 5 0 80 2 9 18\n   8 16 sdb 1 1 1 1 1 1 1 1 1 1 1\n";

#[test]
fn figures_are_of_the_interval() {
    // 50 reads of 8 kB in 100 ms (whose counter wraps), 10 writes of 4 kB in 5 ms, 2 discards of 1 MB, 4 flushes
    // in 8 ms; busy half of the time, with 3 requests on average.
    let after = "   8 0 sda 150 30 1600 90 210 26 1680 305 7 2000 11000 7 0 4176 4 13 26\n";
    let interval = interval(BEFORE, after, |_| {});
    let row = &interval.devices[0];
    assert_eq!(row.problem, None);
    let figures = row.figures.expect("figures");
    assert_eq!((figures.reads_per_second, figures.read_bytes_per_second), (25.0, 204800.0));
    assert_eq!((figures.reads_merged_per_second, figures.read_ms), (10.0, Some(2.0)));
    assert_eq!((figures.writes_per_second, figures.written_bytes_per_second), (5.0, 20480.0));
    assert_eq!((figures.writes_merged_per_second, figures.write_ms), (3.0, Some(0.5)));
    assert_eq!(figures.discards_per_second, Some(1.0));
    assert_eq!(figures.discarded_bytes_per_second, Some(1048576.0));
    assert_eq!((figures.flushes_per_second, figures.flush_ms), (Some(2.0), Some(2.0)));
    assert_eq!((figures.utilisation_percent, figures.queue_length), (50.0, 3.0));
    assert_eq!((figures.in_flight, figures.discard_ms), (7, Some(1.0)));
    assert_eq!(interval.devices_read_bytes_per_second, Some(204800.0));
    assert_eq!(interval.server_problem, Some(Problem::NoPid));
    let json = serde_json::to_value(&interval).expect("JSON");
    assert_eq!(json["devices"][0]["figures"]["read_ms"], 2.0);
}

#[test]
fn a_removed_device_has_no_figures() {
    let removed = interval(BEFORE, "   8 16 sdb 1 1 1 1 1 1 1 1 1 1 1\n", |_| {});
    assert_eq!(removed.devices[0].problem, Some(Problem::NotListed));
    assert_eq!(removed.devices_read_bytes_per_second, None);
    let again = interval(BEFORE, "   8 0 sda 1 0 8 1 0 0 0 0 0 1 1 0 0 0 0 0 0\n", |_| {});
    assert_eq!(again.devices[0].problem, Some(Problem::BeganAgain));
    let came = interval("", BEFORE, |_| {});
    assert_eq!(came.devices[0].problem, Some(Problem::OneEnd));
    let off = |machine: &Machine| machine.file("sys/devices/pci0/block/sda/queue/iostats", "0\n");
    assert_eq!(interval(BEFORE, BEFORE, off).devices[0].problem, Some(Problem::NotCounted));
}
