// SPDX-License-Identifier: PostgreSQL
//! Mounts of every kind that can be created here, in a separate mount namespace, which is viewed from outside like
//! that of a container.

mod support;

use std::time::{Duration, Instant};

use device::{
    Backing, DeviceKind, Devices, FileSystem, Interval, Location, LocationKind, NoDevice, Problem,
    Reading, System,
};
use support::Namespace;

fn resolve(namespace: &Namespace) -> Devices {
    Devices::resolve(&System::live(), &namespace.path("data"), Some(namespace.pid()))
}

fn tablespace(devices: &Devices, oid: u32) -> &Location {
    devices.location(&LocationKind::Tablespace { oid }).expect("a tablespace")
}

fn file_system<'a>(devices: &'a Devices, location: &Location) -> &'a FileSystem {
    &devices.file_systems[location.file_system.expect("a file system")]
}

/// Since Linux 6.8.
fn mounts_have_unique_numbers() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a release");
    let mut numbers = release.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(8))
}

const DATA: &str = "mkdir -p data/pg_wal data/pg_tblspc data/base";

#[test]
fn memory_bind_mounts_overlays_and_loop_devices_differ() {
    let Some(mut namespace) = Namespace::new() else { return };
    namespace.run(DATA);
    let script = r#"
        feed=$(printf 'line\nfeed x')
        mkdir -p "$feed" origin/deep bound lower upper work merged disk stack top hidden/deep
        mount -t tmpfs -o size=3m none "$feed" && ln -s "$PWD/$feed" data/pg_tblspc/1
        mount --bind origin/deep bound && ln -s "$PWD/bound" data/pg_tblspc/2
        ln -s "$PWD/merged" data/pg_tblspc/3
        mount -t overlay overlay -o "lowerdir=$PWD/lower,upperdir=$PWD/upper,workdir=$PWD/work" merged && echo overlay
        truncate -s 32M image && mkfs.ext4 -q -O ^has_journal image
        ln -s "$PWD/disk" data/pg_tblspc/4
        mount -o loop image disk && echo loop
        mount -t tmpfs -o size=1m none stack && mount --bind "$PWD/origin" stack
        ln -s "$PWD/stack" data/pg_tblspc/5
        mount -t tmpfs -o size=1m none hidden/deep && mount -t tmpfs -o size=2m none hidden && mkdir hidden/deep
        ln -s "$PWD/hidden/deep" data/pg_tblspc/6
        mkdir data/base/5 && mount -t tmpfs -o size=4m none data/base/5"#;
    let made = namespace.run(script);
    let devices = resolve(&namespace);
    assert_eq!(devices.notes, Vec::<String>::new());
    for location in &devices.locations {
        assert_eq!(location.problem, None, "{location:?}");
        // The reference is stat(1) of the same location from inside.
        let of = format!("stat -L -c %Hd:%Ld '{}'", location.path.display());
        let number = file_system(&devices, location).number.to_string();
        assert_eq!(namespace.run(&of), [number], "{location:?}");
    }

    let memory = file_system(&devices, tablespace(&devices, 1));
    assert_eq!(memory.mount_point, namespace.path("line\nfeed x"));
    assert!(matches!(memory.backing, Backing::None { reason: NoDevice::Memory, .. }));

    let bound = file_system(&devices, tablespace(&devices, 2));
    let home = file_system(&devices, devices.location(&LocationKind::Data).expect("a location"));
    assert_eq!(bound.number, home.number);
    assert_eq!(bound.backing, home.backing);
    assert!(bound.root.ends_with("origin/deep"), "{bound:?}");
    assert_ne!(bound.mount_id, home.mount_id);

    if made.iter().any(|line| line == "overlay") {
        let location = tablespace(&devices, 3);
        let overlay = file_system(&devices, location);
        let Backing::FileSystem { file_system, path } = &overlay.backing else {
            panic!("{overlay:?}");
        };
        assert_eq!(*path, namespace.path("upper"));
        assert_eq!(devices.file_systems[*file_system].number, home.number);
        assert!(!devices.file_systems[*file_system].outside);
        let names =
            |location| devices.under(location).iter().map(|d| d.name.clone()).collect::<Vec<_>>();
        assert_eq!(names(location), names(&devices.locations[0]));
    } else {
        println!("not tested: overlay on the file system of {}", namespace.dir().display());
    }

    if made.iter().any(|line| line == "loop") {
        let device = devices.under(tablespace(&devices, 4))[0];
        assert_eq!(device.kind, DeviceKind::Loop);
        assert_eq!(device.backing_file, Some(namespace.path("image")));
        assert_eq!(device.size_bytes, Some(32 << 20));
        let under = &devices.file_systems[device.backing_file_system.expect("a file system")];
        assert_eq!(under.number, home.number);
    } else {
        println!("not tested: loop devices cannot be made here");
    }

    let stacked = file_system(&devices, tablespace(&devices, 5));
    assert_eq!(stacked.number, home.number, "{stacked:?}");
    let hidden = file_system(&devices, tablespace(&devices, 6));
    assert_eq!(hidden.mount_point, namespace.path("hidden"));
    let below = LocationKind::Below { name: "base/5".into() };
    let below = devices.location(&below).expect("what is mounted in base");
    assert!(file_system(&devices, below).super_options.contains("size=4096k"));

    // The space is that of the server's mount, not of our mount at the same path.
    let reading = Reading::take(&devices);
    let space = |oid| {
        let id = file_system(&devices, tablespace(&devices, oid)).mount_id;
        reading.spaces[&id].clone()
    };
    assert_eq!(space(1).expect("space").total_bytes, 3 << 20);
    assert_eq!(space(6).expect("space").total_bytes, 2 << 20);
}

/// The output of this program when a test runs it under another root.
#[test]
#[ignore = "run by other tests, under another root"]
fn under_another_root() {
    let devices = Devices::resolve(&System::live(), "/data".as_ref(), Some(std::process::id()));
    let reading = Reading::take(&devices);
    for location in &devices.locations {
        let file_system = file_system(&devices, location);
        let space = reading.spaces[&file_system.mount_id].clone().expect("space").total_bytes;
        let names: Vec<&str> = devices.under(location).iter().map(|d| d.name.as_str()).collect();
        let problem = &location.problem;
        println!("seen {} {} {space} {names:?} {problem:?}", file_system.number, file_system.kind);
    }
    println!("notes {:?}", devices.notes);
}

#[test]
fn a_root_that_is_no_mount_point_has_the_device_of_its_mount() {
    let Some(mut namespace) = Namespace::new() else { return };
    let program = std::env::current_exe().expect("this program");
    let program = program.display();
    let made = namespace.run(&format!(
        "mkdir -p jail/proc jail/sys jail/tmp jail/data/pg_wal jail/data/pg_tblspc
        for f in '{program}' $(ldd '{program}' | grep -o '/[^ ]*'); do
            mkdir -p jail$(dirname $f) && cp -L $f jail$f; done
        mount --rbind /proc jail/proc && mount --rbind /sys jail/sys && echo made"
    ));
    assert_eq!(made, ["made"]);
    // The references are stat(1), and df(1) for the space.
    let number = namespace.run("stat -c %Hd:%Ld jail/data").concat();
    let kind = namespace.run("findmnt -n -o FSTYPE --target jail/data").concat();
    let space = namespace.run("df -B1 --output=size jail/data | tail -n 1").concat();
    let device = namespace.run(&format!("basename $(readlink /sys/dev/block/{number})")).concat();
    let names = if device.is_empty() { "[]".into() } else { format!("[{device:?}]") };
    let expected = format!("seen {number} {kind} {} {names} None", space.trim());
    // Separate standard error from ours, which may be a file and would be taken for the server's log.
    let inside =
        format!("chroot jail {program} --ignored --exact under_another_root --nocapture 2>&1");
    // First with the other processes visible, of which process 1 has all mounts; then, as in a
    // container, with none but itself.
    for command in [inside.clone(), format!("unshare --pid --fork --mount-proc=jail/proc {inside}")]
    {
        let lines = namespace.run(&command);
        let seen: Vec<&String> = lines.iter().filter(|line| line.starts_with("seen")).collect();
        assert_eq!(seen, [&expected, &expected], "{command}: {lines:#?}");
        assert!(lines.contains(&"notes []".to_string()), "{lines:#?}");
    }
}

#[test]
fn a_location_that_is_unmounted_or_mounted_over_later_is_a_problem() {
    let Some(mut namespace) = Namespace::new() else { return };
    namespace.run(DATA);
    let made = namespace.run(
        "mkdir one; ln -s $PWD/one data/pg_tblspc/1; mount -t tmpfs -o size=8m none one; echo made",
    );
    assert_eq!(made, ["made"]);
    let devices = resolve(&namespace);
    let id = file_system(&devices, tablespace(&devices, 1)).mount_id;
    let a = Reading::take(&devices);
    assert_eq!(a.spaces[&id].clone().expect("space").free_bytes, 8 << 20);
    namespace.run("head -c 1M /dev/zero > one/file");
    let b = Reading::take(&devices);
    let interval = Interval::between(&a, &b);
    let row = interval.file_systems.iter().find(|row| row.mount_id == id).expect("a row");
    let grew = row.growth_bytes_per_second.expect("growth") * interval.interval_seconds;
    assert!((grew - (1 << 20) as f64).abs() < 1.0, "{grew}");
    // Mounted at the same time as the first one, so it has a different number.
    namespace.run("mkdir two; mount -t tmpfs -o size=2m none two; umount one");
    assert_eq!(Reading::take(&devices).spaces[&id], Err(Problem::MountChanged));
    assert_eq!(namespace.run("mount --move two one && echo moved"), ["moved"]);
    assert_eq!(Reading::take(&devices).spaces[&id], Err(Problem::MountChanged));
    // A free number is reused.
    namespace.run("umount one; mount -t tmpfs -o size=2m none one");
    if mounts_have_unique_numbers() {
        assert_eq!(Reading::take(&devices).spaces[&id], Err(Problem::MountChanged));
    }
    let pid = namespace.pid();
    drop(namespace);
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    let after = Reading::take(&devices);
    assert_eq!(after.server, Err(Problem::Ended));
    assert!(after.spaces[&id].is_err());
}

/// How long to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Threads of this process that query the space of a file system.
fn threads_that_ask() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("threads").flatten();
    let names = tasks.map(|task| std::fs::read_to_string(task.path().join("comm")));
    names.filter(|name| name.as_ref().is_ok_and(|name| name.trim() == "space")).count()
}

#[test]
fn a_file_system_that_does_not_answer_is_not_waited_for() {
    let Some(mut namespace) = Namespace::new() else { return };
    namespace.run(DATA);
    // A user-space file system without its program never responds.
    let made = namespace.run(
        "mkdir hung; exec 3<>/dev/fuse; ln -s $PWD/hung data/pg_tblspc/1
         mount -i -t fuse -o fd=3,rootmode=40000,user_id=0,group_id=0 none hung && echo made",
    );
    if made != ["made"] {
        println!("not tested: FUSE cannot be mounted here");
        return;
    }
    let devices = resolve(&namespace);
    let hung = file_system(&devices, tablespace(&devices, 1));
    assert!(matches!(hung.backing, Backing::None { reason: NoDevice::Program, .. }));
    // It never responds, so waiting for it would hang.
    let home = file_system(&devices, &devices.locations[0]).mount_id;
    let until = Instant::now() + PATIENCE;
    for _ in 0..3 {
        // On a busy machine, others may not respond immediately either.
        while Reading::take(&devices).spaces[&home].is_err() {
            assert!(Instant::now() < until, "no answer by the file system of the data directory");
        }
        assert_eq!(Reading::take(&devices).spaces[&hung.mount_id], Err(Problem::NoAnswer));
    }
    // It is queried once. Threads of other tests end soon.
    while threads_that_ask() != 1 {
        assert!(Instant::now() < until, "{} threads ask", threads_that_ask());
    }
    // Closing its device gives every caller an error.
    namespace.run("exec 3<&-");
    while Reading::take(&devices).spaces[&hung.mount_id] == Err(Problem::NoAnswer) {
        assert!(Instant::now() < until, "the answer is fetched when it comes");
    }
}

#[test]
fn a_device_counts_what_dd_writes_to_the_byte() {
    let Some(mut namespace) = Namespace::new() else { return };
    namespace.run(DATA);
    // A disk that nobody else uses. Its file is written first, so that what follows is data
    // and nothing else: no journal, no times, no new blocks.
    let made = namespace.run(
        "truncate -s 128M image && mkfs.ext4 -q -O ^has_journal image && mkdir disk &&
         mount -o loop,noatime image disk && dd if=/dev/zero of=disk/f bs=1M count=64 2>/dev/null &&
         sync -f disk && ln -s $PWD/disk data/pg_tblspc/1 && echo made",
    );
    if made != ["made"] {
        println!("not tested: loop devices cannot be made here");
        return;
    }
    let devices = resolve(&namespace);
    let disk = devices.under(tablespace(&devices, 1))[0].number;
    let mut figures = |command: &str| {
        let a = Reading::take(&devices);
        assert_eq!(namespace.run(&format!("{command} 2>/dev/null && echo done")), ["done"]);
        let interval = Interval::between(&a, &Reading::take(&devices));
        let row = interval.devices.iter().find(|row| row.number == disk).expect("a row");
        (row.figures.expect("figures"), interval.interval_seconds)
    };
    // 1,024 requests of 64 KiB, each completed before the next.
    let (wrote, seconds) =
        figures("dd if=/dev/zero of=disk/f bs=64k count=1024 oflag=direct conv=notrunc");
    let times = |rate: f64| (rate * seconds).round();
    let bytes = (64 << 20) as f64;
    let slack = (1 << 20) as f64;
    println!(
        "dd wrote {bytes} bytes in 1024 requests; counted {} in {}, of {:?} ms each, {} % busy",
        times(wrote.written_bytes_per_second),
        times(wrote.writes_per_second),
        wrote.write_ms,
        wrote.utilisation_percent,
    );
    // An inode or a bitmap may be written too.
    let near = |found: f64, exact: f64, more: f64| (exact..=exact + more).contains(&found);
    assert!(near(times(wrote.written_bytes_per_second), bytes, slack));
    assert!(near(times(wrote.writes_per_second), 1024.0, 64.0));
    assert!(times(wrote.read_bytes_per_second) <= slack);
    assert!((0.0..=100.0).contains(&wrote.utilisation_percent));
    // Queue length and request time measure the same; flushes are in the queue too.
    let by_requests = wrote.writes_per_second * wrote.write_ms.expect("a time") * 1e-3;
    assert!(wrote.queue_length > by_requests - 0.1, "{wrote:?}");

    let (read, seconds) = figures("dd if=disk/f of=/dev/null bs=32k count=2048 iflag=direct");
    let times = |rate: f64| (rate * seconds).round();
    assert!(near(times(read.read_bytes_per_second), bytes, slack), "{read:?}");
    assert!(near(times(read.reads_per_second), 2048.0, 64.0), "{read:?}");
}
