// SPDX-License-Identifier: PostgreSQL
//! Recordings of two hosts in the layout of a fleet, and engines that query them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use fleet_sql::Query;
use serde_json::Value;
use tempfile::TempDir;

use super::fixtures::{self, Fixture};
use super::json_reference::{assert_documented, PAGE};
use super::spark::Spark;
use super::{output, python, tally};

/// A row of a result: its cells by the keys of their columns.
pub type Row = BTreeMap<String, Value>;

/// Engines that `tally fleet ask` runs, in the form that `--engine` takes; `None` if they cannot be installed.
pub fn engines() -> Option<[PathBuf; 2]> {
    let Some(python) = python::with_requirements_of("fleet") else {
        eprintln!("skipped: DuckDB and chdb cannot be installed (no PyPI?)");
        return None;
    };
    Some([python.with_file_name("duckdb"), python])
}

/// Recordings of a server, and their location as those of two hosts.
pub struct Fleet {
    _folder: TempDir,
    /// As recorded.
    pub recordings: [Fixture; 2],
    /// Location of their files.
    pub root: PathBuf,
}

pub const HOSTS: [&str; 2] = ["one", "two"];

/// Copies the files of a recording to the location to which a recorder uploads them.
pub fn upload(recording: &Path, root: &Path, host: &str) {
    upload_as(recording, root, ("test", host));
}

/// The same for a host of this cluster.
pub fn upload_as(recording: &Path, root: &Path, (cluster, host): (&str, &str)) {
    let about = root.join(format!("v1/recordings/cluster={cluster}"));
    std::fs::create_dir_all(&about).unwrap();
    std::fs::copy(recording.join("recording.json"), about.join(format!("host={host}.json")))
        .unwrap();
    for table in std::fs::read_dir(recording).unwrap().map(|entry| entry.unwrap().path()) {
        let name = table.file_name().unwrap().to_str().unwrap().to_string();
        if name == "journal" || !table.is_dir() {
            continue;
        }
        let to = root.join(format!("v1/{name}/cluster={cluster}/host={host}"));
        for from in std::fs::read_dir(&table).unwrap().map(|entry| entry.unwrap().path()) {
            for day in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
                let to = to.join(day.file_name().unwrap());
                std::fs::create_dir_all(&to).unwrap();
                for file in std::fs::read_dir(&day).unwrap().map(|entry| entry.unwrap().path()) {
                    std::fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
                }
            }
        }
    }
}

/// Every file of the first host is there a second time, as the hour that replaced it.
pub fn roll_up(root: &Path) {
    for table in std::fs::read_dir(root.join("v1")).unwrap().map(|entry| entry.unwrap().path()) {
        let host = table.join("cluster=test/host=one");
        for day in std::fs::read_dir(host).into_iter().flatten().map(|entry| entry.unwrap().path())
        {
            for file in std::fs::read_dir(&day).unwrap().map(|entry| entry.unwrap().path()) {
                let (time, _) =
                    file.file_name().unwrap().to_str().unwrap().split_once('-').unwrap();
                std::fs::copy(&file, day.join(format!("{time}-hour.parquet"))).unwrap();
            }
        }
    }
}

/// A time within the last hour, which queries cover by default, microseconds since 1970: a recording of some
/// seconds from then on is in one minute and one hour, and has ended.
pub fn recent_us() -> i64 {
    let now = jiff::Timestamp::now().as_second();
    let hour = now / 3600 * 3600;
    let begin = if now - hour >= 900 { hour + 60 } else { hour - 1800 };
    begin * 1_000_000
}

/// The fixtures of the hosts, and pgbench's clients in each.
pub const RECORDINGS: [(&str, u32); 2] = [("pgbench-2-clients", 2), ("pgbench-4-clients", 4)];

/// Two recordings of pgbench, of the last two hours.
pub fn fleet() -> &'static Fleet {
    static FLEET: OnceLock<Fleet> = OnceLock::new();
    FLEET.get_or_init(|| {
        Fleet::new(RECORDINGS.map(|(name, _)| Fixture::begun_at(name, recent_us())))
    })
}

impl Fleet {
    /// Location of the files of these recordings, as those of two hosts.
    pub fn new(recordings: [Fixture; 2]) -> Fleet {
        let recordings = recordings.map(Fixture::with_files);
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("fleet");
        for (made, host) in recordings.iter().zip(HOSTS) {
            upload(made.path(), &root, host);
        }
        roll_up(&root);
        Fleet { _folder: folder, recordings, root }
    }
}

/// The program that runs queries.
pub enum Engine {
    /// One that `tally fleet ask` runs.
    Program(PathBuf),
    /// Spark, with the query of `tally fleet sql`.
    Spark(Spark),
}

/// The engines of [`engines`].
pub fn programs() -> Option<&'static [Engine]> {
    static PROGRAMS: OnceLock<Option<Vec<Engine>>> = OnceLock::new();
    let programs = || Some(engines()?.into_iter().map(Engine::Program).collect());
    PROGRAMS.get_or_init(programs).as_deref()
}

/// Spark alone: it is too slow for each change, so `make verify` runs it.
pub fn spark() -> Option<&'static [Engine]> {
    static SPARK: OnceLock<Option<Vec<Engine>>> = OnceLock::new();
    let start = || match fixtures::are_written() {
        true => None,
        false => Some(vec![Engine::Spark(Spark::start()?)]),
    };
    SPARK.get_or_init(start).as_deref()
}

impl Engine {
    pub fn name(&self) -> String {
        match self {
            Engine::Program(path) => path.display().to_string(),
            Engine::Spark(_) => "spark".into(),
        }
    }

    /// The rows of its result.
    pub fn ask(&self, root: &Path, query: &str, more: &[&str]) -> Vec<Row> {
        match self {
            Engine::Program(path) => ask(path, root, query, more),
            Engine::Spark(spark) => {
                let sql = output(
                    tally()
                        .args(["fleet", "sql", query, "--limit", "100000", "--engine", "spark"])
                        .arg("--root")
                        .arg(root)
                        .args(more),
                );
                let query = Query::of_name(query).unwrap();
                let table = fleet_sql::table(query, &spark.ask(&sql)).unwrap();
                rows_of(&serde_json::to_value(table).unwrap())
            }
        }
    }
}

/// The rows of a result of `tally fleet ask --json`.
pub fn rows(answer: &str) -> Vec<Row> {
    let answer: Value = serde_json::from_str(answer).unwrap();
    assert_documented(PAGE, answer.as_object().unwrap().keys());
    rows_of(&answer["table"])
}

/// The rows of a table.
fn rows_of(table: &Value) -> Vec<Row> {
    let columns: Vec<String> = table["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["key"].as_str().unwrap().to_string())
        .collect();
    let row = |row: &Value| {
        columns.iter().cloned().zip(row.as_array().unwrap().iter().cloned()).collect()
    };
    table["rows"].as_array().unwrap().iter().map(row).collect()
}

pub fn ask(engine: &Path, root: &Path, query: &str, more: &[&str]) -> Vec<Row> {
    rows(&output(
        tally()
            .args(["fleet", "ask", query, "--json", "--limit", "100000", "--engine"])
            .arg(engine)
            .arg("--root")
            .arg(root)
            .args(more),
    ))
}

/// Sums of figures that are not whole numbers may differ in their last digits.
pub fn same(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
        _ => a == b,
    }
}

pub fn text(row: &Row, key: &str) -> String {
    row[key].as_str().unwrap_or_else(|| panic!("{key} of {row:?}")).to_string()
}

pub fn number(row: &Row, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("{key} of {row:?}"))
}

/// The results of these statements in a session of chdb, which stores its tables in this directory; nowhere if
/// the name is empty.
pub fn session(python: &Path, folder: &str, format: &str, sql: &str) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fleet/session.py");
    let mut command = Command::new(python);
    command.arg(script).args([folder, format]);
    let all = output(assert_cmd::Command::from_std(command).write_stdin(sql));
    all.split("--\n").map(String::from).collect()
}
