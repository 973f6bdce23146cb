// SPDX-License-Identifier: PostgreSQL
//! The journal: rows that are not yet in Parquet files, one batch per line.
//!
//! A line consists of a CRC-32 of the rest, a space, and JSON. A killed recorder may leave an incomplete
//! last line, which is ignored, so an interval is read as a whole or not at all. Most rows are statistics
//! and histograms, which refer to series by numbers that earlier lines define.

use crate::batch::Batch;
use crate::error::Error;
use crate::series::{Series, SeriesText};
use crate::statistics::{HistogramRow, StatRow};
use files::Access;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of bytes to read; a journal has a few megabytes.
const LARGEST: u64 = 1 << 30;

/// A journal that is being written.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    length: u64,
    numbers: HashMap<Arc<Series>, u32>,
    line: Vec<u8>,
}

/// A line.
#[derive(Debug, Default, Serialize, Deserialize)]
struct JournalEntry<B> {
    /// New series, numbered after those of earlier lines.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    series: Vec<SeriesText>,
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    statistics: Vec<Statistics>,
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    histograms: Vec<Histogram>,
    batch: B,
}

/// The statistics of an interval: its number and end, then number, count, total, bytes and follows of
/// each series.
#[derive(Debug, Serialize, Deserialize)]
struct Statistics(u64, i64, Vec<(u32, u64, u64, u64, u64)>);

/// A histogram: interval, its end, series, minimum, maximum, buckets, counts.
#[derive(Debug, Serialize, Deserialize)]
struct Histogram(u64, i64, u32, Option<u64>, Option<u64>, Vec<u64>, Vec<u64>);

/// Length of the checksum and the space.
const PREFIX: usize = 9;

impl Journal {
    /// Create a journal; the file must not exist.
    pub fn begin(path: PathBuf, access: Access) -> Result<Journal, Error> {
        // Each line goes to the end of the file, even after an incomplete one has been cut off.
        let file = files::append_new(&path, access);
        let file = file.map_err(Error::io(&path))?;
        Ok(Journal { path, file, length: 0, numbers: HashMap::new(), line: Vec::new() })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its size, bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Append a batch; after a failure, no part of it is in the journal.
    pub fn append(&mut self, batch: &Batch) -> Result<(), Error> {
        let known = self.numbers.len();
        let line = self.line_of(batch);
        let mut bytes = std::mem::take(&mut self.line);
        bytes.clear();
        bytes.resize(PREFIX, b' ');
        let written = serde_json::to_writer(&mut bytes, &line).map_err(std::io::Error::from);
        let written = written.and_then(|()| {
            let checksum = format!("{:08x}", crc32fast::hash(&bytes[PREFIX..]));
            bytes[..PREFIX - 1].copy_from_slice(checksum.as_bytes());
            bytes.push(b'\n');
            self.file.write_all(&bytes)
        });
        match written {
            Ok(()) => self.length += bytes.len() as u64,
            Err(_) => {
                // Remove the incomplete line if possible; at the end of the file it is harmless.
                let _ = self.file.set_len(self.length);
                self.numbers.retain(|_, number| (*number as usize) < known);
            }
        }
        self.line = bytes;
        written.map_err(Error::io(&self.path))
    }

    fn line_of<'b>(&mut self, batch: &'b Batch) -> JournalEntry<&'b Batch> {
        let mut line = JournalEntry {
            series: Vec::new(),
            statistics: Vec::new(),
            histograms: Vec::new(),
            batch,
        };
        for row in &batch.statistics {
            let number = self.number(&row.series, &mut line.series);
            let of_frame = match line.statistics.last_mut() {
                Some(last) if last.0 == row.frame => last,
                _ => {
                    line.statistics.push(Statistics(row.frame, row.time_us, Vec::new()));
                    match line.statistics.last_mut() {
                        Some(last) => last,
                        None => continue,
                    }
                }
            };
            of_frame.2.push((number, row.count, row.total, row.amount, row.follows));
        }
        for row in &batch.histograms {
            let number = self.number(&row.series, &mut line.series);
            let (buckets, counts) = (row.buckets.clone(), row.counts.clone());
            let histogram =
                Histogram(row.frame, row.time_us, number, row.min, row.max, buckets, counts);
            line.histograms.push(histogram);
        }
        line
    }

    fn number(&mut self, series: &Arc<Series>, new: &mut Vec<SeriesText>) -> u32 {
        if let Some(number) = self.numbers.get(series) {
            return *number;
        }
        let number = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        self.numbers.insert(series.clone(), number);
        new.push(series.text());
        number
    }
}

/// The rows of a journal, and a problem if more than the last line is damaged.
pub(crate) fn read(path: &Path) -> Result<(Batch, Option<String>), Error> {
    let bytes = files::read(path, LARGEST).map_err(Error::io(path))?;
    let mut all = Batch::default();
    let mut series: Vec<Arc<Series>> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let end = rest.iter().position(|byte| *byte == b'\n');
        let Some(line) = end.and_then(|end| parse(&rest[..end])) else {
            let last = end.is_none_or(|end| at + end + 1 == bytes.len());
            let lost = bytes.len() - at;
            let problem = format!("{}: damaged; its last {lost} bytes are lost", path.display());
            return Ok((all, (!last).then_some(problem)));
        };
        series.extend(line.series.iter().map(|text| Arc::new(Series::of_text(text))));
        let known = |number: u32| series.get(number as usize).cloned();
        for Statistics(frame, time_us, rows) in line.statistics {
            let row = |(number, count, total, amount, follows)| {
                let series = known(number)?;
                Some(StatRow { frame, time_us, series, count, total, amount, follows })
            };
            all.statistics.extend(rows.into_iter().filter_map(row));
        }
        for Histogram(frame, time_us, number, min, max, buckets, counts) in line.histograms {
            if let Some(series) = known(number) {
                all.histograms.push(HistogramRow {
                    frame,
                    time_us,
                    series,
                    min,
                    max,
                    buckets,
                    counts,
                });
            }
        }
        all.append(line.batch);
        at += end.unwrap_or(0) + 1;
    }
    Ok((all, None))
}

fn parse(line: &[u8]) -> Option<JournalEntry<Batch>> {
    let (checksum, json) = line.split_at_checked(PREFIX)?;
    let checksum = std::str::from_utf8(checksum).ok()?.trim_end();
    if u32::from_str_radix(checksum, 16).ok()? != crc32fast::hash(json) {
        return None;
    }
    serde_json::from_slice(json).ok()
}
