// SPDX-License-Identifier: PostgreSQL
//! Reads a recording, while it is being written or later.

use crate::about::About;
use crate::error::Error;
use crate::range::{format_utc, Range};
use crate::rows::{
    DeviceRow, EventRow, FrameRow, GapRow, KernelRow, MarkRow, RunRow, ServerIoRow, ServerRow,
    SessionsRow, SettingRow,
};
use crate::server_log::{LogFileRow, LogRow};
use crate::store::Store;
use crate::table::columns;
use crate::vacuum::{ConditionRow, DeadRowsRow, SnapshotRow};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Rows that do not belong to an interval may come with one that ends up to this much later.
pub(crate) const SLACK_US: i64 = 600_000_000;

/// A recording.
#[derive(Debug)]
pub struct Recording {
    pub(crate) store: Store,
    about: About,
    hosts: Vec<String>,
    range: Range,
    problems: Mutex<Vec<String>>,
}

impl Recording {
    /// Open the recording in a directory; `host` selects one of several machines.
    pub fn open(directory: &Path, host: Option<&str>) -> Result<Recording, Error> {
        let about = About::read(directory)?;
        let hosts = Store::hosts(directory);
        let path = || directory.to_path_buf();
        let host = match host {
            Some(host) => host.to_string(),
            None if hosts.len() > 1 => return Err(Error::SeveralHosts { path: path(), hosts }),
            None => hosts.first().cloned().unwrap_or_else(|| about.host.clone()),
        };
        if hosts.is_empty() {
            return Err(Error::Empty { path: path() });
        }
        let store = Store::new(directory, &host);
        if !hosts.contains(&store.host) {
            return Err(Error::NoSuchHost { path: path(), host, hosts });
        }
        let mut recording =
            Recording { store, about, hosts, range: Range::ALL, problems: Mutex::default() };
        recording.range = recording.whole()?;
        Ok(recording)
    }

    /// The contents of recording.json.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// The machines that have recorded into the directory.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// The machine that this recording is of.
    pub fn host(&self) -> &str {
        &self.store.host
    }

    /// From the start of the first interval to the end of the last one, as of when the recording was opened.
    pub fn range(&self) -> Range {
        self.range
    }

    /// The recorded part of a range, whose bounds are microseconds since 1970. Fails if that part is empty.
    pub fn clip(&self, from_us: Option<i64>, to_us: Option<i64>) -> Result<Range, Error> {
        let Range { from_us: begin, to_us: end } = self.range;
        let (from, to) = (from_us.unwrap_or(begin), to_us.unwrap_or(end));
        if from >= to && from_us.is_some() && to_us.is_some() {
            return Err(Error::Backwards { from: format_utc(from), to: format_utc(to) });
        }
        if from >= end || to <= begin {
            return Err(Error::EmptyRange {
                from: format_utc(from),
                to: format_utc(to),
                begin: format_utc(begin),
                end: format_utc(end),
            });
        }
        Ok(Range { from_us: from.max(begin), to_us: to.min(end) })
    }

    /// The tables with many dead rows in a range, and the snapshots that kept vacuum from removing these rows.
    pub fn vacuum(&self, range: Range) -> Result<(Vec<DeadRowsRow>, Vec<SnapshotRow>), Error> {
        Ok((self.rows(range)?, self.rows(range)?))
    }

    /// The other conditions of the server in a range.
    pub fn conditions(&self, range: Range) -> Result<Vec<ConditionRow>, Error> {
        self.rows(range)
    }

    /// Its directory.
    pub fn directory(&self) -> &Path {
        &self.store.directory
    }

    /// Descriptions of the problems so far: files that could not be read.
    pub fn problems(&self) -> Vec<String> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn problem(&self, text: String) {
        let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        if !problems.contains(&text) {
            problems.push(text);
        }
    }

    fn whole(&self) -> Result<Range, Error> {
        let wanted = columns::<FrameRow>(&["time", "interval_ns"]);
        let mut range: Option<Range> = None;
        let mut see = |time_us: i64, interval_ns: u64| {
            let from_us = time_us - i64::try_from(interval_ns / 1000).unwrap_or(0);
            let known = range.unwrap_or(Range { from_us, to_us: time_us });
            range = Some(Range {
                from_us: known.from_us.min(from_us),
                to_us: known.to_us.max(time_us),
            });
        };
        let journal = self.each_columns::<FrameRow>(Range::ALL, &wanted, |columns| {
            for (time, length) in columns.longs("time").iter().zip(columns.longs("interval_ns")) {
                see(*time, u64::try_from(*length).unwrap_or(0));
            }
        })?;
        journal.frames.iter().for_each(|row| see(row.time_us, row.interval_ns));
        range.ok_or_else(|| Error::Empty { path: self.store.directory.clone() })
    }

    /// The intervals in a range.
    pub fn frame_rows(&self, range: Range) -> Result<Vec<FrameRow>, Error> {
        self.rows(range)
    }

    /// Numbers of sessions by kind and state at the ends of intervals.
    pub fn sessions(&self, range: Range) -> Result<Vec<SessionsRow>, Error> {
        self.rows(range)
    }

    /// Events of the server's processes.
    pub fn events(&self, range: Range) -> Result<Vec<EventRow>, Error> {
        let mut rows: Vec<EventRow> = self.rows(range)?;
        rows.sort_by_key(|row| (row.time_us, row.server, row.number));
        Ok(rows)
    }

    /// Messages of the server's log, in its order.
    pub fn log(&self, range: Range) -> Result<Vec<LogRow>, Error> {
        let mut rows: Vec<LogRow> = self.rows(range)?;
        rows.sort_by_key(|row| (row.time_us, row.frame));
        Ok(rows)
    }

    /// How far the server's log was read, interval by interval.
    pub fn log_files(&self, range: Range) -> Result<Vec<LogFileRow>, Error> {
        let mut rows: Vec<LogFileRow> = self.rows(range)?;
        rows.sort_by_key(|row| row.frame);
        Ok(rows)
    }

    /// The devices under the server, interval by interval.
    pub fn devices(&self, range: Range) -> Result<Vec<DeviceRow>, Error> {
        self.rows(range)
    }

    /// Reads and writes of the server's processes according to /proc/PID/io, by detail interval.
    pub fn server_io(&self, range: Range) -> Result<Vec<ServerIoRow>, Error> {
        self.rows(range)
    }

    /// The kernel's figures to compare with the ledger, by detail interval.
    pub fn kernel(&self, range: Range) -> Result<Vec<KernelRow>, Error> {
        self.rows(range)
    }

    /// The settings at the end of a range, by group and name.
    pub fn settings(&self, range: Range) -> Result<Vec<SettingRow>, Error> {
        let until = Range { from_us: i64::MIN, to_us: range.to_us };
        let mut last: BTreeMap<(Arc<str>, Arc<str>), SettingRow> = BTreeMap::new();
        for row in self.rows::<SettingRow>(until)? {
            last.insert((row.group.clone(), row.name.clone()), row);
        }
        Ok(last.into_values().collect())
    }

    /// The changes of the server's settings in a range, oldest first: what each was before, and its row. Values from
    /// configuration files have other units than the server's own, so they are compared with each other only.
    pub fn setting_changes(&self, range: Range) -> Result<Vec<(SettingRow, SettingRow)>, Error> {
        let until = Range { from_us: i64::MIN, to_us: range.to_us };
        let mut rows: Vec<SettingRow> = self.rows(until)?;
        rows.retain(|row| &*row.group == "server");
        rows.sort_by(|a, b| (a.time_us, a.frame, &a.name).cmp(&(b.time_us, b.frame, &b.name)));
        let mut last: BTreeMap<(Arc<str>, bool), SettingRow> = BTreeMap::new();
        let mut changes = Vec::new();
        for row in rows {
            let key = (row.name.clone(), row.source.starts_with("sql"));
            if let Some(before) = last.insert(key, row.clone()) {
                let is_other = (&before.value, &before.unit) != (&row.value, &row.unit);
                if is_other && range.contains(row.time_us) {
                    changes.push((before, row));
                }
            }
        }
        Ok(changes)
    }

    /// The periods without data in a range.
    pub fn gaps(&self, range: Range) -> Result<Vec<GapRow>, Error> {
        let to_us = range.to_us.saturating_add(SLACK_US);
        let mut gaps: Vec<GapRow> = self.rows(Range { to_us, ..range })?;
        gaps.retain(|gap| gap.from_us < range.to_us);
        Ok(gaps)
    }

    /// Changes of the recording or of what it records.
    pub fn marks(&self, range: Range) -> Result<Vec<MarkRow>, Error> {
        self.rows(range)
    }

    /// Output and exit status of recorded commands.
    pub fn runs(&self, range: Range) -> Result<Vec<RunRow>, Error> {
        self.rows(range)
    }

    /// The runs of the server, by number.
    pub fn servers(&self) -> Result<Vec<ServerRow>, Error> {
        let mut rows: Vec<ServerRow> = self.rows(Range::ALL)?;
        rows.sort_by_key(|row| (row.server, row.frame));
        rows.dedup_by_key(|row| row.server);
        Ok(rows)
    }
}
