// SPDX-License-Identifier: PostgreSQL
//! `tally record` into a bucket, from real servers: the bucket receives what was recorded, even from a recorder
//! that is killed. The network is down for 3 s, or PGTALLY_OUTAGE seconds.

use crate::object_store as server;
use crate::support;
use crate::support::json_reference::{assert_documented, PAGE};
use crate::support::owned::Owned;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{eventually, output, segment, shared, tally};
use recording::{Range, Recording};
use rustix::process::{kill_process, Pid, Signal};
use scratch::Cluster;
use serde_json::Value;

/// A recorder that ships into a directory.
struct Running {
    child: Owned,
    spool: PathBuf,
}

fn url(folder: &Path) -> String {
    format!("file://{}", folder.join("bucket").display())
}

impl Running {
    fn start(cluster: &Cluster, folder: &Path, spool: &str, more: &[&str]) -> Running {
        Running::to(&url(folder), cluster, folder.join(spool), more, &[])
    }

    fn to(
        url: &str,
        cluster: &Cluster,
        spool: PathBuf,
        more: &[&str],
        environment: &[(&str, String)],
    ) -> Running {
        let child = Command::new(assert_cmd::cargo::cargo_bin("tally"))
            .args(["record", "--interval", "100ms", "--detail", "500ms", "-o", url])
            .arg("--spool")
            .arg(&spool)
            .args(more)
            .arg(segment(cluster))
            .env("AWS_SECRET_ACCESS_KEY", "SECRET")
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Running { child: Owned::new(child), spool }
    }

    fn frames(&self) -> u64 {
        let rows = Recording::open(&self.spool, None)
            .and_then(|recording| recording.frame_rows(Range::ALL))
            .unwrap_or_default();
        rows.last().map_or(0, |row| row.frame)
    }

    fn wait_for_frames(&self, more: u64) {
        let wanted = self.frames() + more;
        eventually("more intervals are recorded", || self.frames() >= wanted);
    }

    fn end(self, signal: Signal) -> (bool, String) {
        kill_process(Pid::from_raw(self.child.id() as i32).unwrap(), signal).unwrap();
        let output = self.child.wait();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    }
}

/// The intervals of a recording by number, and their sum.
fn contents(directory: &Path) -> (Vec<u64>, Vec<(String, u64, u64)>) {
    let recording = Recording::open(directory, None).unwrap();
    let frames = recording.frame_rows(Range::ALL).unwrap();
    let sum = recording.sum(Range::ALL).unwrap();
    assert_eq!(recording.problems(), Vec::<String>::new());
    let of = |statistic: &segment::frame::FrameStat| {
        let change = &statistic.total.change;
        (format!("{} {}", statistic.process, statistic.stat.name), change.count, change.total)
    };
    let mut statistics: Vec<_> = sum.statistics.iter().map(of).collect();
    statistics.sort();
    (frames.iter().map(|row| row.frame).collect(), statistics)
}

/// The same for the contents of the bucket.
fn shipped(folder: &Path) -> (Vec<u64>, Vec<(String, u64, u64)>) {
    let copy = tempfile::tempdir().unwrap();
    let bucket = ship::Bucket::open(&url(folder)).unwrap();
    let shipped = ship::Shipped::find(bucket, None, None).unwrap();
    shipped.copy(i64::MIN, i64::MAX, copy.path()).unwrap();
    contents(copy.path())
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let below = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    entries.flat_map(|entry| below(entry.path())).collect()
}

#[test]
fn the_bucket_has_what_was_recorded_and_a_report_reads_it() {
    let cluster = shared();
    cluster.pgbench_init(1).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(&cluster, folder.path(), "spool", &["--cluster", "orders"]);
    running.wait_for_frames(3);
    cluster.psql("select count(*), pg_sleep(0.3) from pgbench_accounts").unwrap();
    running.wait_for_frames(10);
    // A second recorder on the machine, by mistake.
    let mut second = tally();
    second.args(["record", "--cluster", "orders", "-o", &url(folder.path()), "--spool"]);
    second.arg(folder.path().join("second")).arg(segment(&cluster));
    let refused = second.assert().failure().code(1);
    let text = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    assert!(text.contains("/spool on ") && text.contains("--take-over"), "{text}");
    let spool = running.spool.clone();
    let (success, messages) = running.end(Signal::INT);
    assert!(success && messages.contains("all shipped to file://"), "{messages}");
    let (frames, statistics) = shipped(folder.path());
    assert_eq!((frames, statistics), contents(&spool));
    for path in files(folder.path()) {
        let bytes = std::fs::read(&path).unwrap();
        assert!(!bytes.windows(6).any(|window| window == b"SECRET"), "{}", path.display());
    }
    // The report from the bucket has the figures of the spool's.
    let report = |place: &str| -> Value {
        let text = output(tally().args(["report", "--json", place]));
        serde_json::from_str(&text).unwrap()
    };
    let (there, here) = (report(&url(folder.path())), report(spool.to_str().unwrap()));
    assert_eq!(there["totals"], here["totals"]);
    assert_eq!(there["measured"]["recording"], url(folder.path()).as_str());
    // All of it was sent; nothing is sent again.
    let mut again = tally();
    again.args(["ship", "--json", "--cluster", "orders"]).arg(&spool).arg(url(folder.path()));
    let again: Value = serde_json::from_str(&output(&mut again)).unwrap();
    assert_eq!(
        (again["files"].as_u64(), again["files_left"].as_u64()),
        (Some(0), Some(0)),
        "{again}"
    );
    let mut upkeep = tally();
    upkeep.args(["upkeep", &url(folder.path()), "--keep", "1d", "--dry-run", "--json"]);
    let upkeep: Value = serde_json::from_str(&output(&mut upkeep)).unwrap();
    assert_eq!((&upkeep["merged_files"], &upkeep["old_files"]), (&0.into(), &0.into()));
    for object in [&again, &upkeep] {
        assert_documented(PAGE, object.as_object().unwrap().keys());
    }
}

/// The moments of a kill are those of crates/ship/tests/simulation.
#[test]
fn a_recorder_that_was_killed_while_it_shipped_goes_on_with_it() {
    let cluster = shared();
    let folder = tempfile::tempdir().unwrap();
    let running = Running::start(&cluster, folder.path(), "spool", &[]);
    running.wait_for_frames(2);
    eventually("recording.json has arrived", || {
        folder.path().join("bucket/v1/recordings/cluster=main").exists()
    });
    let seen = running.frames();
    running.end(Signal::KILL);
    let running = Running::start(&cluster, folder.path(), "spool", &[]);
    running.wait_for_frames(1);
    let spool = running.spool.clone();
    let (success, messages) = running.end(Signal::INT);
    assert!(success, "{messages}");
    let (frames, statistics) = shipped(folder.path());
    assert!(frames.len() as u64 > seen, "{frames:?}");
    assert_eq!((frames, statistics), contents(&spool));
}

#[test]
fn a_recorder_goes_on_without_the_bucket_and_ships_later() {
    let cluster = shared();
    let folder = tempfile::tempdir().unwrap();
    let bucket = folder.path().join("bucket");
    let running = Running::start(&cluster, folder.path(), "spool", &[]);
    running.wait_for_frames(2);
    // The network file system is no longer there; a file is in its place.
    std::fs::rename(&bucket, folder.path().join("away")).unwrap();
    std::fs::write(&bucket, "").unwrap();
    running.wait_for_frames(5);
    let spool = running.spool.clone();
    let (success, messages) = running.end(Signal::INT);
    assert!(success, "{messages}");
    assert!(
        messages.contains("shipping interrupted") && messages.contains("tally ship"),
        "{messages}"
    );
    std::fs::remove_file(&bucket).unwrap();
    std::fs::rename(folder.path().join("away"), &bucket).unwrap();
    let mut later = tally();
    later.arg("ship").arg(&spool).arg(url(folder.path())).assert().success();
    assert_eq!(shipped(folder.path()), contents(&spool));
}

#[test]
fn what_was_recorded_while_the_network_was_away_arrives_when_it_is_back() {
    let ship = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../ship"));
    let Some(python) = support::python::with_requirements_in(ship, "s3") else {
        eprintln!("skipped: moto cannot be installed (no PyPI?)");
        return;
    };
    // It is longer than a request may take.
    let outage: u64 =
        std::env::var("PGTALLY_OUTAGE").map_or(3, |text| text.parse().expect("seconds"));
    let cluster = shared();
    let folder = tempfile::tempdir().unwrap();
    let s3 = server::s3(&python);
    let environment = [
        ("AWS_ACCESS_KEY_ID", "key".to_string()),
        ("AWS_REGION", "us-east-1".to_string()),
        ("AWS_ALLOW_HTTP", "true".to_string()),
        ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", s3.port)),
        ("AWS_TIMEOUT", "2 seconds".to_string()),
    ];
    let spool = folder.path().join("spool");
    let running = Running::to("s3://bucket/x", &cluster, spool.clone(), &[], &environment);
    running.wait_for_frames(2);
    // A server that is stopped accepts connections and does not answer.
    let send = |signal| kill_process(Pid::from_child(&s3.child), signal).unwrap();
    send(Signal::STOP);
    // It goes on recording, ten intervals each second.
    for _ in 0..outage {
        running.wait_for_frames(10);
    }
    send(Signal::CONT);
    running.wait_for_frames(2);
    let (success, _) = running.end(Signal::INT);
    assert!(success);
    let with = |args: &[&str]| {
        let mut command = tally();
        command.args(args).env("AWS_SECRET_ACCESS_KEY", "SECRET");
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        let text = output(&mut command);
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let spool = spool.to_str().unwrap();
    with(&["ship", "--json", spool, "s3://bucket/x"]);
    let (there, here) =
        (with(&["report", "--json", "s3://bucket/x"]), with(&["report", "--json", spool]));
    assert_eq!(there["totals"], here["totals"]);
    assert_eq!(there["measured"]["intervals"], here["measured"]["intervals"]);
    assert!(there["measured"]["intervals"].as_u64().unwrap() >= 10 * outage);
}

#[test]
fn bad_addresses_and_options_are_usage_errors_that_repeat_no_credential() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = shared();
    let server = segment(&cluster);
    let refused = |args: &[&str], text: &str| {
        let mut command = tally();
        command.args(args).current_dir(folder.path());
        // Other tests have servers, too.
        if args[0] == "record" {
            command.arg(&server);
        }
        let assert = command.assert().code(2);
        let error = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(error.contains(text) && !error.contains("SECRET"), "{args:?}: {error}");
    };
    refused(&["record", "-o", "s3://key:SECRET@bucket/x"], "must not contain credentials");
    refused(&["upkeep", "az://container/x?sig=SECRET"], "must not contain credentials");
    refused(&["record", "-o", "ftp://host/x"], "s3://BUCKET/PREFIX");
    refused(&["record", "-o", "s3://bucket/x", "--cluster", "a/b"], "--cluster");
    refused(&["record", "-o", "directory", "--take-over"], "--take-over requires a bucket URL");
    refused(&["record", "-o", "directory", "--spool", "x"], "--spool requires a bucket URL");
    refused(&["record", "-o", "s3://bucket/x", "--spool-limit", "2"], "kB, MB, GB or TB");
    let client = ["record", "-o", "file:///nowhere", "--client", "1", "--duty", "1s/2s"];
    refused(&client, "cannot be used with");
    refused(&["report", "directory", "--cluster", "x"], "--cluster requires the URL");
    assert!(!folder.path().join("directory").exists());
}
