// SPDX-License-Identifier: PostgreSQL
//! Names of the files of a recording.
//!
//! `<table>/host=<host>/date=<YYYY-MM-DD>/<HHMMSS>-<compaction>.parquet`, with times in UTC;
//! `journal/host=<host>/<YYYYMMDDTHHMMSS>.log` next to them, and `ship/` about shipped files.

use crate::error::Error;
use files::Access;
use std::path::{Path, PathBuf};

/// The file that marks a directory as a recording.
pub(crate) const ABOUT: &str = "recording.json";
/// The directory in which the crate `ship` notes the files that it has sent. It may exist before the recording begins.
pub const SHIP: &str = "ship";
/// The directory of the journals.
pub(crate) const JOURNAL: &str = "journal";
/// The end of a file's name while it is being written.
pub(crate) const UNFINISHED: &str = ".new";

/// How far a file has been compacted, from journal contents to long-term storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Compaction {
    /// A minute or less, as recorded.
    Minute,
    /// An hour or less, otherwise as recorded.
    Merged,
    /// An hour, with details of a minute.
    Hour,
    /// Intervals of ten seconds.
    TenSeconds,
    /// Intervals of a minute.
    Minutes,
}

/// The grades of files as in their names, from journal contents to long-term storage.
pub const GRADES: [&str; 5] = [
    Compaction::Minute.name(),
    Compaction::Merged.name(),
    Compaction::Hour.name(),
    Compaction::TenSeconds.name(),
    Compaction::Minutes.name(),
];

impl Compaction {
    /// The compaction of this name.
    pub fn of_name(name: &str) -> Option<Compaction> {
        Compaction::ALL.into_iter().find(|known| known.name() == name)
    }

    const ALL: [Compaction; 5] = [
        Compaction::Minute,
        Compaction::Merged,
        Compaction::Hour,
        Compaction::TenSeconds,
        Compaction::Minutes,
    ];

    /// The name of the grade in file names, such as "minute".
    pub const fn name(self) -> &'static str {
        match self {
            Compaction::Minute => "minute",
            Compaction::Merged => "merged",
            Compaction::Hour => "hour",
            Compaction::TenSeconds => "10s",
            Compaction::Minutes => "60s",
        }
    }
}

/// A Parquet file, as its name describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataFile {
    /// Its path, or the path that an unfinished commit gives it.
    pub path: PathBuf,
    /// "2026-03-01".
    pub date: String,
    /// "173000".
    pub time: String,
    /// The end of its first interval, rounded down to a second; microseconds since 1970.
    pub begin_us: i64,
    /// How far it has been compacted.
    pub compaction: Compaction,
}

impl DataFile {
    /// The data file of this path, by its name alone.
    pub fn from_path(path: &Path) -> Option<DataFile> {
        let date = path.parent()?.file_name()?.to_str()?.strip_prefix("date=")?;
        let (time, compaction) =
            path.file_name()?.to_str()?.strip_suffix(".parquet")?.split_once('-')?;
        let compaction = Compaction::of_name(compaction)?;
        let stamp = jiff::civil::DateTime::strptime("%Y-%m-%dT%H%M%S", format!("{date}T{time}"));
        let stamp = stamp.ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
        Some(DataFile {
            path: path.to_path_buf(),
            date: date.to_string(),
            time: time.to_string(),
            begin_us: stamp.as_microsecond(),
            compaction,
        })
    }

    /// The latest end of its intervals, microseconds since 1970.
    pub fn end_us(&self) -> i64 {
        let second = 1_000_000;
        let length = match self.compaction {
            Compaction::Minute => 61 * second,
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
    /// Who may read the files written there.
    pub access: Access,
}

/// A host's name as a component of a path.
pub fn file_name_of_host(host: &str) -> String {
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
        let directory = directory.to_path_buf();
        let mut store = Store { directory, host: file_name_of_host(host), access: Access::Owner };
        // As whoever started the recording set it.
        store.access = Access::like(&store.journals());
        store
    }

    /// The hosts that have recorded into a directory.
    pub fn hosts(directory: &Path) -> Vec<String> {
        let mut hosts: Vec<String> = ["frames", JOURNAL]
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

    /// The directory of the journals.
    pub fn journals(&self) -> PathBuf {
        self.directory.join(JOURNAL).join(self.host_part())
    }

    /// All journals, oldest first.
    pub fn journal_files(&self) -> Vec<PathBuf> {
        let mut files = list(&self.journals());
        files.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
        files.sort();
        files
    }

    /// The directory of a table.
    pub fn table(&self, table: &str) -> PathBuf {
        self.directory.join(table).join(self.host_part())
    }

    /// The path of a table's file by date, time and compaction.
    pub fn path(&self, table: &str, date: &str, time: &str, compaction: Compaction) -> PathBuf {
        self.table(table)
            .join(format!("date={date}"))
            .join(format!("{time}-{}.parquet", compaction.name()))
    }

    /// The finished files of a table, oldest first.
    pub fn files(&self, table: &str) -> Vec<DataFile> {
        let days = list(&self.table(table));
        let files = days.iter().flat_map(|day| list(day));
        let mut files: Vec<DataFile> =
            files.filter_map(|path| DataFile::from_path(&path)).collect();
        files.sort_by(|a, b| {
            (a.begin_us, a.compaction, &a.path).cmp(&(b.begin_us, b.compaction, &b.path))
        });
        files
    }

    /// A path relative to the recording, as in commits.
    pub fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.directory).unwrap_or(path).to_string_lossy().into_owned()
    }

    /// The absolute path for a relative one.
    pub fn absolute(&self, path: &str) -> PathBuf {
        self.directory.join(path)
    }
}

/// The entries of a directory; none if it does not exist.
fn list(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// Replace a file with a new one with this text: readers see either the old text or the new one. `durable`:
/// the file and its name are on disk on return.
pub(crate) fn replace(
    path: &Path,
    text: &[u8],
    access: Access,
    durable: bool,
) -> Result<(), Error> {
    files::replace(path, text, access, UNFINISHED, durable).map_err(Error::io(path))
}

/// Remove the files in a directory that a killed recorder was writing.
pub(crate) fn remove_unfinished(directory: &Path) {
    for path in list(directory) {
        if path.to_string_lossy().ends_with(UNFINISHED) {
            // A leftover file is harmless.
            let _ = std::fs::remove_file(path);
        }
    }
}
