// SPDX-License-Identifier: PostgreSQL
//! Records the server's log: the messages that a DBA looks for and, in the same batch, the position up to
//! which the log was read, so that after a kill the next recorder continues after the last recorded message.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use error::Error;
use recording::{Batch, LogFileRow, LogRow, Range, Recording, SettingRow};
use server_log::{Kind, LogEntry, LogFollower, LogFormat, LogPlace, Position};

/// Most messages of an interval that are recorded; the others are counted.
const MOST: usize = 1000;
/// Most bytes of a text, and of a plan.
const MOST_OF_A_TEXT: usize = 8 << 10;
const MOST_OF_A_PLAN: usize = 64 << 10;
/// Errors may be logged up to this long before the interval that they belong to, as rows of events (recording::Recording).
const SLACK_US: i64 = 600_000_000;

/// Where `--log` looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogOption {
    /// What the server's collector writes in this format.
    Format(LogFormat),
    /// A file.
    File(PathBuf),
}

impl std::str::FromStr for LogOption {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("expected csvlog, jsonlog, stderr or a file".into());
        }
        Ok(LogFormat::of_name(text).map_or_else(|| Self::File(text.into()), Self::Format))
    }
}

/// The log of the server that is recorded.
#[derive(Debug)]
pub struct RecordedLog {
    follower: LogFollower,
    /// How far it was read before.
    position: Option<Position>,
}

impl RecordedLog {
    /// The log of the server with this data directory; one that was recorded before in `directory` continues there.
    pub fn new(
        option: &LogOption,
        data: &Path,
        directory: Option<&Path>,
    ) -> Result<RecordedLog, Error> {
        let owner = std::fs::metadata(data).map(|meta| meta.uid()).ok();
        let place = match option {
            LogOption::Format(format) => {
                if owner.is_none() {
                    return Err(Error::Failed(format!(
                        "--log {}: the data directory {} is not on this machine or may not be read; name the log's file",
                        format.name(),
                        data.display()
                    )));
                }
                LogPlace::Collector(data.to_path_buf(), Some(*format))
            }
            LogOption::File(path) => LogPlace::File(std::path::absolute(path)?),
        };
        let us = rustix::process::geteuid();
        let mut owners: Vec<u32> = owner.into_iter().collect();
        if !us.is_root() {
            owners.push(us.as_raw());
        }
        // Root reads root's own file only where nobody else could have put another one of root's.
        if let (true, LogPlace::File(path)) = (us.is_root(), &place) {
            owners.extend(files::check(path).is_ok().then_some(0));
        }
        let mut follower = LogFollower::new(place, owners);
        let position = directory.map(position_in).transpose()?.flatten();
        if let Some(position) = &position {
            follower.resume(position.clone());
        }
        Ok(RecordedLog { follower, position })
    }

    /// Learns from settings of the server how to read its log.
    pub fn learn(&mut self, settings: &[SettingRow]) {
        for row in settings.iter().filter(|row| &*row.group == "server") {
            match &*row.name {
                "log_timezone" => self.follower.set_zone(&row.value),
                "log_line_prefix" => self.follower.set_prefix(&row.value),
                _ => {}
            }
        }
    }

    /// Adds what has been logged since the last call. Returns what the user should know.
    pub fn add(&mut self, batch: &mut Batch, now_us: i64, last: bool) -> Vec<String> {
        let reading = self.follower.read(last);
        let messages = reading.entries.len();
        let told = reading.entries.iter().map(|entry| (entry, entry.kind()));
        let mut rows: Vec<LogRow> = told
            .filter(|(_, kind)| *kind != Kind::Other)
            .map(|(entry, kind)| row(entry, kind, now_us))
            .collect();
        let left_out = rows.len().saturating_sub(MOST);
        rows.truncate(MOST);
        batch.log.append(&mut rows);
        if let Some(position) = reading.position {
            let has_moved = self.position.as_ref() != Some(&position);
            if has_moved || messages > 0 || reading.unknown > 0 {
                batch.log_files.push(LogFileRow {
                    file: position.file.as_str().into(),
                    inode: position.inode,
                    offset: position.offset,
                    messages: messages as u64,
                    left_out: left_out as u64,
                    unknown: reading.unknown,
                    ..LogFileRow::default()
                });
                self.position = Some(position);
            }
        }
        reading.notes
    }
}

/// How far the log was read, according to the recording in `directory`.
fn position_in(directory: &Path) -> Result<Option<Position>, Error> {
    let recording = Recording::open(directory, None)?;
    let rows = recording.log_files(Range::ALL)?;
    Ok(rows.last().map(|row| Position {
        file: row.file.to_string(),
        inode: row.inode,
        offset: row.offset,
    }))
}

/// The first bytes of a text.
fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

fn row(entry: &LogEntry, kind: Kind, now_us: i64) -> LogRow {
    let some = |text: &str| (!text.is_empty()).then(|| cut(text, MOST_OF_A_TEXT).into());
    let most = if kind == Kind::Plan { MOST_OF_A_PLAN } else { MOST_OF_A_TEXT };
    let query = (!entry.query.is_empty())
        .then(|| recording::without_constants(cut(&entry.query, MOST_OF_A_TEXT)).into());
    // Rows of a time range are looked up by this time.
    let near = entry.time_us.filter(|time| (now_us - SLACK_US / 2..=now_us).contains(time));
    LogRow {
        time_us: near.unwrap_or(0),
        logged_us: entry.time_us,
        kind: kind.name().into(),
        pid: entry.pid,
        process: some(&entry.process),
        database: some(&entry.database),
        user: some(&entry.user),
        application: some(&entry.application),
        severity: entry.severity.as_str().into(),
        sqlstate: entry.sqlstate.as_str().into(),
        message: cut(&entry.message, most).into(),
        detail: some(&entry.detail),
        context: some(&entry.context),
        query,
        queryid: (entry.queryid != 0).then_some(entry.queryid),
        duration_ns: entry.duration_us().map(|us| us.saturating_mul(1000)),
        ..LogRow::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_becomes_a_row_without_the_constants_of_its_statement() {
        let entry = LogEntry {
            time_us: Some(5_000_000_000),
            pid: 42,
            severity: "ERROR".into(),
            message: "é".repeat(10_000),
            query: "insert into t values ('secret')".into(),
            ..LogEntry::default()
        };
        let found = row(&entry, Kind::Error, 5_000_000_000);
        assert_eq!((found.time_us, found.message.len()), (5_000_000_000, MOST_OF_A_TEXT));
        assert_eq!(found.query.as_deref(), Some("insert into t values (?)"));
        assert_eq!((found.queryid, found.database), (None, None));
        // Read hours later, it belongs to the interval in which it was read.
        let late = row(&entry, Kind::Error, 9_000_000_000);
        assert_eq!((late.time_us, late.logged_us), (0, Some(5_000_000_000)));
    }

    #[test]
    fn formats_have_names_and_everything_else_is_a_file() {
        assert_eq!("csvlog".parse(), Ok(LogOption::Format(LogFormat::Csv)));
        assert_eq!("/var/log/a.log".parse(), Ok(LogOption::File("/var/log/a.log".into())));
        assert!("".parse::<LogOption>().is_err());
    }
}
