// SPDX-License-Identifier: PostgreSQL
//! Where the files of a recording lie.
//!
//! `<table>/host=<host>/date=<YYYY-MM-DD>/<HHMMSS>-<grade>.parquet`, times UTC;
//! `journal/host=<host>/<YYYYMMDDTHHMMSS>.log` beside them.

use crate::error::Error;
use std::path::{Path, PathBuf};

/// The file that says that a directory is a recording.
pub(crate) const ABOUT: &str = "recording.json";
/// What a file is called while it is being written.
pub(crate) const UNFINISHED: &str = ".new";

/// How far a part has come: from what the journal held, to what is kept for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grade {
    /// A minute, or less.
    Minute,
    /// An hour or a part of it, otherwise as it was.
    Merged,
    /// An hour, with details of a minute.
    Hour,
    /// Intervals of ten seconds.
    Tens,
    /// Intervals of a minute.
    Sixties,
}

impl Grade {
    const ALL: [Grade; 5] =
        [Grade::Minute, Grade::Merged, Grade::Hour, Grade::Tens, Grade::Sixties];

    fn name(self) -> &'static str {
        match self {
            Grade::Minute => "minute",
            Grade::Merged => "merged",
            Grade::Hour => "hour",
            Grade::Tens => "10s",
            Grade::Sixties => "60s",
        }
    }
}

/// A part, as its name tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    /// Where it is, or will be when a commit is through.
    pub path: PathBuf,
    /// "2026-03-01".
    pub date: String,
    /// "173000".
    pub time: String,
    /// When its first interval ended, at most a second before; microseconds since 1970.
    pub begin_us: i64,
    /// How far it has come.
    pub grade: Grade,
}

impl Part {
    fn of(path: &Path) -> Option<Part> {
        let date = path.parent()?.file_name()?.to_str()?.strip_prefix("date=")?;
        let (time, grade) =
            path.file_name()?.to_str()?.strip_suffix(".parquet")?.split_once('-')?;
        let grade = Grade::ALL.into_iter().find(|known| known.name() == grade)?;
        let stamp = jiff::civil::DateTime::strptime("%Y-%m-%dT%H%M%S", format!("{date}T{time}"));
        let stamp = stamp.ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
        Some(Part {
            path: path.to_path_buf(),
            date: date.to_string(),
            time: time.to_string(),
            begin_us: stamp.as_microsecond(),
            grade,
        })
    }

    /// Until when its intervals reach at most.
    pub fn end_us(&self) -> i64 {
        let second = 1_000_000;
        let length = match self.grade {
            Grade::Minute => 61 * second,
            _ => 3601 * second,
        };
        self.begin_us + length
    }

    /// "2026-03-01", "17".
    pub fn hour(&self) -> (String, String) {
        (self.date.clone(), self.time[..2].to_string())
    }
}

/// The files of one host in a recording.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub directory: PathBuf,
    pub host: String,
}

/// A host's name as a part of a path.
fn escaped(host: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name: String = host.chars().map(|c| if plain(c) { c } else { '_' }).collect();
    if name.trim_matches('.').is_empty() {
        "unknown".to_string()
    } else {
        name
    }
}

impl Store {
    pub fn new(directory: &Path, host: &str) -> Store {
        Store { directory: directory.to_path_buf(), host: escaped(host) }
    }

    /// The hosts that have recorded into a directory.
    pub fn hosts(directory: &Path) -> Vec<String> {
        let mut hosts: Vec<String> = ["frames", "journal"]
            .iter()
            .flat_map(|table| list(&directory.join(table)))
            .filter_map(|path| Some(path.file_name()?.to_str()?.strip_prefix("host=")?.to_string()))
            .collect();
        hosts.sort();
        hosts.dedup();
        hosts
    }

    fn host_part(&self) -> String {
        format!("host={}", self.host)
    }

    /// Where the journals are.
    pub fn journals(&self) -> PathBuf {
        self.directory.join("journal").join(self.host_part())
    }

    /// The journals that are there, oldest first.
    pub fn journal_files(&self) -> Vec<PathBuf> {
        let mut files = list(&self.journals());
        files.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
        files.sort();
        files
    }

    /// The folder of a table.
    pub fn table(&self, table: &str) -> PathBuf {
        self.directory.join(table).join(self.host_part())
    }

    /// A part of a table by date, time and grade.
    pub fn part(&self, table: &str, date: &str, time: &str, grade: Grade) -> PathBuf {
        self.table(table)
            .join(format!("date={date}"))
            .join(format!("{time}-{}.parquet", grade.name()))
    }

    /// The finished parts of a table, oldest first.
    pub fn parts(&self, table: &str) -> Vec<Part> {
        let days = list(&self.table(table));
        let mut parts: Vec<Part> =
            days.iter().flat_map(|day| list(day)).filter_map(|path| Part::of(&path)).collect();
        sort(&mut parts);
        parts
    }

    /// A path within the directory, as commits name it.
    pub fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.directory).unwrap_or(path).to_string_lossy().into_owned()
    }

    /// And back.
    pub fn absolute(&self, path: &str) -> PathBuf {
        self.directory.join(path)
    }
}

impl Part {
    /// The part that a file of this name would be.
    pub fn named(path: &Path) -> Option<Part> {
        Part::of(path)
    }
}

/// Oldest first.
pub(crate) fn sort(parts: &mut [Part]) {
    parts.sort_by(|a, b| (a.begin_us, a.grade, &a.path).cmp(&(b.begin_us, b.grade, &b.path)));
}

/// What is in a folder; nothing where there is none.
fn list(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Write a file aside and put it in its place.
pub(crate) fn replace(path: &Path, text: &[u8]) -> Result<(), Error> {
    let mut aside = path.as_os_str().to_owned();
    aside.push(UNFINISHED);
    let aside = PathBuf::from(aside);
    let written = std::fs::write(&aside, text).and_then(|()| std::fs::rename(&aside, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&aside);
    }
    written.map_err(Error::io(path))
}
