// SPDX-License-Identifier: PostgreSQL
//! A live server: its locations, and the reads and writes of its processes.

use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use device::{
    Backing, DeviceNumber, Devices, Interval, LocationKind, Problem, Reading, ServerIo, System,
};
use rustix::fs::{major, minor};
use rustix::thread::set_thread_res_uid;
use scratch::Cluster;

fn start() -> Cluster {
    Cluster::builder()
        .setting("autovacuum", "off")
        .setting("checkpoint_timeout", "1h")
        .start()
        .expect("a cluster")
}

fn resolve(cluster: &Cluster) -> Devices {
    let pid = cluster.postmaster_pid().expect("a server");
    Devices::resolve(&System::live(), cluster.data_dir(), Some(pid))
}

fn io(a: &Reading, b: &Reading) -> (ServerIo, f64) {
    let interval = Interval::between(a, b);
    let seconds = (b.processes_ns - a.processes_ns) as f64 * 1e-9;
    (interval.server.unwrap_or_else(|| panic!("{:?}", interval.server_problem)), seconds)
}

/// How long to wait for a process to start or end.
const PATIENCE: Duration = Duration::from_secs(120);

const MIB: f64 = (1 << 20) as f64;

#[test]
fn the_places_of_a_server_lie_where_stat_says() {
    let cluster = start();
    let devices = resolve(&cluster);
    for kind in [LocationKind::Data, LocationKind::Wal, LocationKind::Log] {
        let location = devices.location(&kind).unwrap_or_else(|| panic!("{kind:?}"));
        assert_eq!(location.problem, None);
        let file_system = &devices.file_systems[location.file_system.expect("a file system")];
        let meta = std::fs::metadata(&location.path).expect("a directory");
        if let Backing::Device { device } = file_system.backing {
            assert_eq!((device.major, device.minor), (major(meta.dev()), minor(meta.dev())));
            assert_eq!(devices.under(location)[0].number, device);
        }
        assert!(devices.under(location).is_empty() == devices.why_no_device(location).is_some());
    }
    // The space agrees with df.
    let df = Command::new("df")
        .args(["-B1", "--output=size,itotal"])
        .arg(cluster.data_dir())
        .output()
        .expect("df");
    let text = String::from_utf8(df.stdout).expect("text");
    let numbers: Vec<u64> = text
        .lines()
        .nth(1)
        .expect("a line")
        .split_whitespace()
        .map(|n| n.parse().unwrap_or(0))
        .collect();
    let id = devices.file_systems[devices.locations[0].file_system.expect("one")].mount_id;
    let space = Reading::take(&devices).spaces[&id].clone().expect("space");
    assert_eq!([space.total_bytes, space.inodes], numbers[..]);
    assert!(space.available_bytes <= space.free_bytes && space.free_bytes <= space.total_bytes);
}

/// Total busy time of a device, ms: the tenth figure of its line in /proc/diskstats.
fn busy_ms(device: DeviceNumber) -> f64 {
    let text = std::fs::read_to_string("/proc/diskstats").expect("figures of block devices");
    let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let is = |line: &[&str]| {
        line[..2] == [device.major.to_string().as_str(), device.minor.to_string().as_str()]
    };
    lines.find(|line| is(line)).expect("the device")[12].parse().expect("a number")
}

#[test]
fn the_device_counts_no_less_than_dd_writes_to_it() {
    let cluster = start();
    let devices = resolve(&cluster);
    let data = devices.location(&LocationKind::Data).expect("the data directory");
    let [device] = devices.under(data)[..] else {
        println!("not tested: {:?}", devices.why_no_device(data));
        return;
    };
    let before = busy_ms(device.number);
    let a = Reading::take(&devices);
    let begun = busy_ms(device.number);
    let dd = Command::new("dd")
        .args(["if=/dev/zero", "of=direct", "bs=64k", "count=256", "oflag=direct"])
        .current_dir(cluster.data_dir())
        .stderr(Stdio::null())
        .status();
    if !dd.expect("dd").success() {
        println!("not tested: this file system takes no O_DIRECT");
        return;
    }
    let ended = busy_ms(device.number);
    let interval = Interval::between(&a, &Reading::take(&devices));
    let after = busy_ms(device.number);
    let row = interval.devices.iter().find(|row| row.number == device.number).expect("a row");
    let figures = row.figures.expect("figures");
    let bytes = figures.written_bytes_per_second * interval.interval_seconds;
    let requests = figures.writes_per_second * interval.interval_seconds;
    println!("dd wrote 16 MiB in 256 requests; counted {:.2} MiB in {requests:.0}", bytes / MIB);
    // Other processes on the machine write too.
    assert!(bytes.round() >= 16.0 * MIB, "{bytes}");
    assert!(requests.round() >= 256.0, "{requests}");
    // The kernel counts ticks in which it found the device busy: few or none if the device is fast.
    let percent = |busy: f64| (busy / interval.interval_seconds / 10.0).min(100.0);
    let bounds = [percent(ended - begun), percent(after - before)];
    let found = figures.utilisation_percent;
    assert!(bounds[0] - 1e-6 <= found && found <= bounds[1] + 1e-6, "{found} {bounds:?}");
    assert!(interval.devices_written_bytes_per_second >= Some(figures.written_bytes_per_second));
}

#[test]
fn what_a_session_reads_and_writes_is_counted_after_it_has_ended_too() {
    let cluster = start();
    let file = cluster.data_dir().join("sixteen");
    std::fs::write(&file, vec![7u8; 16 << 20]).expect("a file");
    cluster.os_user().chown(&file).expect("its owner");
    let read = "select length(pg_read_binary_file('sixteen'))";
    let devices = resolve(&cluster);
    let mut stays = cluster.connect().expect("a session");
    let pid = |client: &mut postgres::Client| -> i32 {
        client.query_one("select pg_backend_pid()", &[]).expect("a pid").get(0)
    };
    let stays_pid = pid(&mut stays);

    let a = Reading::take(&devices);
    stays.query(read, &[]).expect("a result");
    let mut goes = cluster.connect().expect("a session");
    goes.query(read, &[]).expect("a result");
    goes.query(read, &[]).expect("a result");
    let dead_process = format!("/proc/{}", pid(&mut goes));
    drop(goes);
    let until = Instant::now() + PATIENCE;
    while std::path::Path::new(&dead_process).exists() {
        assert!(Instant::now() < until);
        std::thread::sleep(Duration::from_millis(5));
    }
    let b = Reading::take(&devices);
    let (server, seconds) = io(&a, &b);
    let total = server.figures.read_bytes_per_second * seconds;
    println!("48 MiB read; counted {:.3} MiB", total / MIB);
    assert!((48.0 * MIB..50.0 * MIB).contains(&total), "{total}");
    assert_eq!(server.refused, 0);
    assert!(server.processes_count > 2);
    let row = server.processes.iter().find(|row| row.pid == stays_pid as u32).expect("a row");
    let own = row.figures.read_bytes_per_second * seconds;
    assert!((16.0 * MIB..17.0 * MIB).contains(&own), "{own}");
    // Reads from the page cache do not reach a device.
    assert!(server.figures.device_read_bytes_per_second * seconds < MIB);
    assert!(server.figures.from_page_cache_percent.expect("a share") > 90.0);

    // They are not counted again when nothing happens.
    let (quiet, seconds) = io(&b, &Reading::take(&devices));
    assert!(quiet.figures.read_bytes_per_second * seconds < MIB, "{quiet:?}");

    // Written: 4,000 pages of a table, and at least as much WAL as the size of its rows.
    let b = Reading::take(&devices);
    stays
        .batch_execute(
            "create table t (x text); alter table t alter x set storage plain; \
             insert into t select repeat('x', 7000) from generate_series(1, 4000); checkpoint",
        )
        .expect("a table");
    let (server, seconds) = io(&b, &Reading::take(&devices));
    let written = server.figures.written_bytes_per_second * seconds;
    let dirtied = server.figures.device_written_bytes_per_second * seconds;
    println!("31 MiB of pages: {:.1} MiB written, {:.1} dirtied", written / MIB, dirtied / MIB);
    let min = 4000.0 * (8192.0 + 7000.0);
    assert!((min..min * 3.0).contains(&written), "{written}");
    assert!((min..min * 3.0).contains(&dirtied), "{dirtied}");
    assert!(server.figures.writes_per_second * seconds >= 4000.0, "{:?}", server.figures);
}

#[test]
fn sessions_that_come_and_go_all_the_time_add_up() {
    let cluster = start();
    let file = cluster.data_dir().join("one");
    std::fs::write(&file, vec![7u8; 1 << 20]).expect("a file");
    cluster.os_user().chown(&file).expect("its owner");
    let devices = resolve(&cluster);
    let a = Reading::take(&devices);
    const SESSIONS: usize = 60;
    let mut sum = 0.0;
    let (mut readings, mut restless) = (0, 0);
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            for _ in 0..SESSIONS {
                let mut client = cluster.connect().expect("a session");
                client.query("select length(pg_read_binary_file('one'))", &[]).expect("a result");
            }
        });
        let mut last = a.clone();
        while !worker.is_finished() {
            let next = Reading::take(&devices);
            let interval = Interval::between(&last, &next);
            readings += 1;
            match interval.server {
                Some(server) => {
                    let seconds = (next.processes_ns - last.processes_ns) as f64 * 1e-9;
                    sum += server.figures.read_bytes_per_second * seconds;
                    last = next;
                }
                None => {
                    assert_eq!(interval.server_problem, Some(Problem::Restless));
                    restless += 1;
                }
            }
        }
        let sessions = || {
            let processes = cluster.processes();
            processes.iter().filter(|process| process.title.contains("[local]")).count()
        };
        let until = Instant::now() + PATIENCE;
        while sessions() > 0 {
            assert!(Instant::now() < until, "sessions do not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        let (server, seconds) = io(&last, &Reading::take(&devices));
        sum += server.figures.read_bytes_per_second * seconds;
    });
    let mib = sum / MIB;
    println!("{SESSIONS} sessions of 1 MiB: {mib:.2} MiB in {readings} readings, {restless} of which went back");
    // Connecting reads some files of its own.
    assert!(mib >= SESSIONS as f64 && mib < SESSIONS as f64 * 1.5, "{mib}");
}

#[test]
fn a_server_that_started_again_is_another_one() {
    let mut cluster = start();
    let devices = resolve(&cluster);
    let a = Reading::take(&devices);
    cluster.restart().expect("a server");
    let b = Reading::take(&devices);
    assert_eq!(b.server, Err(Problem::Ended));
    assert_eq!(Interval::between(&a, &b).server_problem, Some(Problem::Ended));
    let devices = resolve(&cluster);
    let c = Reading::take(&devices);
    assert_eq!(Interval::between(&a, &c).server_problem, Some(Problem::BeganAgain));
}

#[test]
fn a_server_under_another_root_is_found_by_the_kernels_number_of_its_mount() {
    let dir = tempfile::tempdir().expect("a directory");
    // Its table of mounts omits its own mount, which is not below its root.
    let script = "for f in /bin/sleep $(ldd /bin/sleep | grep -o '/[^ ]*'); do \
                  mkdir -p .$(dirname $f) && cp -L $f .$f; done; \
                  mkdir -p data/pg_tblspc target pg_wal; ln -s /pg_wal data/pg_wal; \
                  ln -s /target data/pg_tblspc/1; exec chroot . /bin/sleep 600";
    let mut jail = Command::new("sh")
        .args(["-c", script])
        .current_dir(dir.path())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell");
    let root = format!("/proc/{}/root", jail.id());
    let there = dir.path().canonicalize().expect("a path");
    let until = Instant::now() + PATIENCE;
    while std::fs::read_link(&root).ok().is_none_or(|root| root != there) {
        if Instant::now() > until || jail.try_wait().expect("a child").is_some() {
            println!("not tested: this user may not chroot");
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let devices = Devices::resolve(&System::live(), "/data".as_ref(), Some(jail.id()));
    let space = Reading::take(&devices);
    jail.kill().and_then(|()| jail.wait()).expect("its end");
    let here = std::fs::metadata(&there).expect("a directory").dev();
    for location in &devices.locations {
        let file_system = location.file_system.map(|at| &devices.file_systems[at]);
        let number = file_system.unwrap_or_else(|| panic!("{location:?}")).number;
        assert_eq!((number.major, number.minor), (major(here), minor(here)));
    }
    let wal = devices.location(&LocationKind::Wal).expect("the WAL");
    assert_eq!(wal.real_path.as_deref(), Some("/pg_wal".as_ref()));
    assert!(space.spaces.values().all(Result::is_ok), "{:?}", space.spaces);
}

#[test]
fn a_reader_without_permission_gets_problems() {
    if !rustix::process::geteuid().is_root() {
        println!("not tested: only root can change the user");
        return;
    }
    let cluster = start();
    let devices = std::thread::scope(|scope| {
        // Only this thread becomes nobody.
        let other = scope.spawn(|| {
            let nobody = rustix::process::Uid::from_raw(65534);
            set_thread_res_uid(nobody, nobody, nobody).expect("another user");
            let devices = resolve(&cluster);
            (Reading::take(&devices), devices)
        });
        let (reading, devices) = other.join().expect("a thread");
        assert_eq!(reading.server, Err(Problem::Permission));
        assert!(reading.spaces.values().all(Result::is_ok), "{:?}", reading.spaces);
        devices
    });
    assert_eq!(devices.location(&LocationKind::Data).expect("a location").problem, None);
    assert_eq!(
        devices.location(&LocationKind::Wal).expect("a location").problem,
        Some(Problem::Permission)
    );
    assert!(devices.notes.iter().any(|note| note.contains("tablespaces")), "{:?}", devices.notes);
    assert_eq!(devices.notes.len(), 1, "{:?}", devices.notes);
}
