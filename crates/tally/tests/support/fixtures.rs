// SPDX-License-Identifier: PostgreSQL
//! Recordings of real servers, made once, which tests read in milliseconds.
//!
//! `tests/recordings/NAME.gz` has the description of the recording in its first line, followed by its journal.
//! `script/fixtures` makes the recordings: it runs the tests that plant problems on real servers with
//! PGTALLY_FIXTURES=write. Names of the machine and of the server's directory are replaced, so that a recording
//! contains only what was measured.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use flate2::{Compression, Crc};
use recording::{About, RetentionPolicy, Writer};
use rustix::process::Signal;
use scratch::{Cluster, Pgbench};
use serde_json::Value;
use tempfile::TempDir;

use super::recorder::Recorder;
use super::{output, tally};

/// The machine of all of them.
pub const HOST: &str = "machine";
/// The directory of all of their servers.
const DIRECTORY: &str = "/server";

/// Directory of the recordings and of their expected results.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings")
}

fn packed(name: &str) -> PathBuf {
    folder().join(format!("{name}.gz"))
}

/// Names of all recordings.
pub fn names() -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name());
    let name = |file: std::ffi::OsString| Some(file.to_str()?.strip_suffix(".gz")?.to_string());
    entries.filter_map(name).collect()
}

/// Compares the expected results of a recording with the file next to it; INSTA_UPDATE=always writes the file.
pub fn assert_text(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(folder());
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// A recording, which is removed when the value is dropped.
pub struct Fixture {
    folder: TempDir,
}

impl Fixture {
    pub fn open(name: &str) -> Fixture {
        Fixture::unpack(name, |_| 0)
    }

    /// As if it had started at this time, microseconds since 1970.
    pub fn begun_at(name: &str, begin_us: i64) -> Fixture {
        Fixture::unpack(name, |about| begin_us - about.begun_us)
    }

    /// A copy of another recording.
    pub fn copied(recording: &Path) -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let mut copy = std::process::Command::new("cp");
        let from = recording.join(".");
        assert!(copy.arg("-r").arg(from).arg(folder.path()).status().unwrap().success());
        Fixture { folder }
    }

    fn unpack(name: &str, by: impl Fn(&About) -> i64) -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let file = File::open(packed(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut lines = BufReader::new(GzDecoder::new(file)).lines().map(Result::unwrap);
        let mut about: About = serde_json::from_str(&lines.next().unwrap()).unwrap();
        let by = by(&about);
        about.begun_us += by;
        let text = serde_json::to_string(&about).unwrap();
        std::fs::write(folder.path().join("recording.json"), text).unwrap();
        let journals = folder.path().join(format!("journal/host={HOST}"));
        std::fs::create_dir_all(&journals).unwrap();
        let mut journal = File::create(journals.join("20000101T000000.log")).unwrap();
        for line in lines {
            match by {
                0 => writeln!(journal, "{line}").unwrap(),
                _ => writeln!(journal, "{}", with_checksum(&moved(&line[PREFIX..], by))).unwrap(),
            }
        }
        Fixture { folder }
    }

    /// With these conditions at the end of its last interval: `kind` and the columns that matter.
    pub fn with_conditions(self, conditions: &[Value]) -> Fixture {
        let empty = serde_json::json!({"name": "", "state": "", "count": 0, "bytes": 0});
        self.with_rows("conditions", &empty, conditions)
    }

    /// With these settings of the server read at the end of its last interval, as if they had changed then.
    pub fn with_settings(self, settings: &[(&str, &str)]) -> Fixture {
        let empty = serde_json::json!({"group": "server", "unit": "", "source": "sql"});
        let row = |(name, value): &(&str, &str)| serde_json::json!({"name": name, "value": value});
        self.with_rows("settings", &empty, &settings.iter().map(row).collect::<Vec<_>>())
    }

    /// With these rows of a table at the end of its last interval, whose other columns are those of `empty`.
    fn with_rows(self, table: &str, empty: &Value, rows: &[Value]) -> Fixture {
        let journal = self.path().join(format!("journal/host={HOST}/20000101T000000.log"));
        let text = std::fs::read_to_string(&journal).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let records = lines.iter().map(|line| serde_json::from_str(&line[PREFIX..]).unwrap());
        let records: Vec<Value> = records.collect();
        let at = records.iter().rposition(|record| record["batch"]["frames"].is_array()).unwrap();
        let mut record = records[at].clone();
        let frame = record["batch"]["frames"][0].clone();
        let row = |columns: &Value| {
            let mut row = empty.clone();
            row["frame"] = frame["frame"].clone();
            row["time_us"] = frame["time_us"].clone();
            for (column, value) in columns.as_object().unwrap() {
                row[column] = value.clone();
            }
            row
        };
        record["batch"][table] = rows.iter().map(row).collect();
        lines[at] = with_checksum(&record.to_string());
        std::fs::write(journal, lines.join("\n") + "\n").unwrap();
        self
    }

    /// With the rows in Parquet files, as when the recorder has ended.
    pub fn with_files(self) -> Fixture {
        let about = About::read(self.path()).unwrap();
        Writer::open(self.path(), about, RetentionPolicy::default()).unwrap().close().unwrap();
        self
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Its `tally report --json`.
    pub fn report(&self) -> Value {
        report(self.path())
    }

    /// The whole of it as one interval of `tally top --json`.
    pub fn interval(&self) -> Value {
        interval(self.path())
    }
}

/// `tally report --json` of a recording.
pub fn report(recording: &Path) -> Value {
    let mut report = tally();
    report.env("TZ", "UTC").args(["report", "--json"]).arg(recording);
    serde_json::from_str(&output(&mut report)).unwrap()
}

/// The whole of a recording as one interval of `tally top --json`.
pub fn interval(recording: &Path) -> Value {
    let mut top = tally();
    top.env("TZ", "UTC").args(["top", "--once", "--json", "--replay"]).arg(recording);
    serde_json::from_str(&output(&mut top)).unwrap()
}

/// Whether to make the recordings anew.
pub fn are_written() -> bool {
    std::env::var_os("PGTALLY_FIXTURES").is_some_and(|value| value == "write")
}

/// When recordings are written, waits until a recording of some seconds can have all of its rows in one journal,
/// because each minute has its own.
pub fn wait_for_a_minute_with(seconds: u64) {
    let now = jiff::Timestamp::now().as_second().rem_euclid(60) as u64;
    if are_written() && now + seconds > 59 {
        std::thread::sleep(Duration::from_secs(60 - now));
    }
}

/// Records this many intervals of a server under a load, as the fixture of this name; an interval and a detail
/// interval take this many milliseconds.
pub fn record(
    name: &str,
    cluster: &Cluster,
    intervals: u64,
    [interval, detail]: [u64; 2],
    load: Pgbench,
) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let seconds = intervals * interval / 1000;
    wait_for_a_minute_with(seconds + 5);
    // However long the recorder takes, the load lasts longer.
    let mut load = load.duration(Duration::from_secs(600)).spawn().unwrap();
    let [interval, detail] = [interval, detail].map(|length| format!("{length}ms"));
    let more = ["--interval", &interval, "--detail", &detail];
    let recorder = Recorder::start(cluster, folder.path(), &more);
    recorder.wait_for(intervals);
    recorder.end(Signal::KILL);
    assert!(load.running(), "{}", load.so_far());
    load.kill();
    if are_written() {
        write(name, folder.path(), cluster);
    }
    Fixture { folder }
}

/// The journals of a recording.
fn journals(recording: &Path, about: &About) -> Vec<PathBuf> {
    let journals = recording.join(format!("journal/host={}", about.host));
    let logs = |entry: std::io::Result<std::fs::DirEntry>| {
        Some(entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "log"))
    };
    std::fs::read_dir(journals).unwrap().filter_map(logs).collect()
}

/// Packs the files of a recorder that was killed. The recording is of this server.
pub fn write(name: &str, recording: &Path, cluster: &Cluster) {
    let about = About::read(recording).unwrap();
    let server = cluster.dir().to_str().unwrap();
    let replace = |text: &str| text.replace(server, DIRECTORY).replace(&about.host, HOST);
    let logs = journals(recording, &about);
    assert_eq!(logs.len(), 1, "{name} has one journal");
    assert!(!recording.join("frames").exists(), "{name} is in its journal alone");
    std::fs::create_dir_all(folder()).unwrap();
    let mut packed = GzEncoder::new(File::create(packed(name)).unwrap(), Compression::best());
    writeln!(packed, "{}", replace(&serde_json::to_string(&about).unwrap())).unwrap();
    for line in std::fs::read_to_string(&logs[0]).unwrap().lines() {
        writeln!(packed, "{}", with_checksum(&replace(&line[PREFIX..]))).unwrap();
    }
    packed.finish().unwrap();
}

/// Names of recordings that the bench of diagnoses made begin with this.
const PLANTED: &str = "planted-";

/// Packs the files of a recorder that was killed while a problem of this kind was planted, and the words that its first finding
/// must contain.
pub fn write_planted(kind: &str, recording: &Path, cluster: &Cluster, truth: &[String]) {
    let name = format!("{PLANTED}{kind}");
    write(&name, recording, cluster);
    let text = serde_json::to_string(truth).unwrap();
    std::fs::write(folder().join(format!("{name}.json")), text + "\n").unwrap();
}

/// The recordings that the bench made, and the words that the first finding of each must contain.
pub fn planted() -> Vec<(String, Vec<String>)> {
    let truth = |name: &str| {
        let text = std::fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let names = names().into_iter().filter(|name| name.starts_with(PLANTED));
    names.map(|name| (name.clone(), truth(&name))).collect()
}

/// Length of a line's checksum and the blank before its JSON.
const PREFIX: usize = 9;

/// A line of a journal.
fn with_checksum(json: &str) -> String {
    let mut checksum = Crc::new();
    checksum.update(json.as_bytes());
    format!("{:08x} {json}", checksum.sum())
}

/// The same line, this many microseconds later.
fn moved(json: &str, by: i64) -> String {
    let mut line: Value = serde_json::from_str(json).unwrap();
    move_times(&mut line, by);
    // Statistics and histograms are arrays: interval, time, ...
    for of in ["statistics", "histograms"] {
        for row in line.get_mut(of).and_then(Value::as_array_mut).into_iter().flatten() {
            row[1] = (row[1].as_i64().unwrap() + by).into();
        }
    }
    line.to_string()
}

/// Moves all times since 1970.
fn move_times(value: &mut Value, by: i64) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_i64().filter(|time| name.ends_with("_us") && *time > 0) {
                    Some(time) => *value = (time + by).into(),
                    None => move_times(value, by),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| move_times(value, by)),
        _ => {}
    }
}
