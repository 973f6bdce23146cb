// SPDX-License-Identifier: PostgreSQL
//! Reading the rows of a table, from its files and from the journal, while the recorder may be
//! replacing files.
//!
//! At most an hour is in memory at a time. A file that cannot be read is reported by
//! [`Recording::problems`], and the rest is read.

use crate::batch::{Batch, Visit};
use crate::commit::Commit;
use crate::error::Error;
use crate::file;
use crate::journal;
use crate::range::Range;
use crate::recording::{Recording, SLACK_US};
use crate::table::{columns, Column, Columns, Table};
use std::fs::File;
use std::io::ErrorKind::NotFound;
use std::path::PathBuf;
use std::time::Duration;

/// Rows of an interval are at its time, except for the rounding in a file's name.
const STRICT_US: i64 = 2_000_000;
/// How many times to list the files again after the recorder has replaced some.
const TRIES: u32 = 10;

/// How far the time of a row may be from that of its file.
fn slack(table: &str) -> i64 {
    match table {
        "events" | "log" | "gaps" | "marks" | "runs" | "settings" | "servers"
        | "statement_texts" | "plan_texts" => SLACK_US,
        _ => STRICT_US,
    }
}

/// All rows of a table at one moment. The files are open, so they stay readable even if the recorder
/// replaces them.
struct View {
    files: Vec<(PathBuf, File)>,
    journal: Batch,
}

impl Recording {
    /// Open the files of a table that may have rows in a range.
    fn view(&self, table: &'static str, range: Range) -> Result<View, Error> {
        for _ in 0..TRIES {
            if let Some(view) = self.try_view(table, range)? {
                return Ok(view);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let path = self.store.directory.clone();
        Err(Error::File { path, reason: "its files keep changing".to_string() })
    }

    /// `None`: the recorder has replaced files meanwhile.
    fn try_view(&self, table: &'static str, range: Range) -> Result<Option<View>, Error> {
        let mut journal = Batch::default();
        // The journals are read first: rows that are moved to a file meanwhile then appear twice, which
        // the comparison below notices.
        let before = self.store.journal_files();
        let commit = Commit::unfinished(&self.store)?;
        for path in before.iter().filter(|path| !commit.removes(&self.store, path)) {
            match journal::read(path) {
                Ok((batch, problem)) => {
                    journal.append(batch);
                    problem.into_iter().for_each(|text| self.problem(text));
                }
                Err(Error::Io { source, .. }) if source.kind() == NotFound => return Ok(None),
                Err(error) => self.problem(error.to_string()),
            }
        }
        let mut files = Vec::new();
        let slack = slack(table);
        for (file, path) in commit.applied_to(&self.store, table, self.store.files(table)) {
            if !range.meets(file.begin_us - slack, file.end_us() + slack) {
                continue;
            }
            match files::open(&path) {
                Ok(file) => files.push((path, file)),
                Err(error) if error.kind() == NotFound => return Ok(None),
                Err(error) => self.problem(Error::io(&path)(error).to_string()),
            }
        }
        let same =
            self.store.journal_files() == before && Commit::unfinished(&self.store)? == commit;
        Ok(same.then_some(View { files, journal }))
    }

    fn left_out(&self, error: &Error) {
        self.problem(format!("{error}; skipping this file"));
    }

    /// Pass these columns of the files of a table in a range to `see`. Returns the rows in the
    /// journal.
    pub(crate) fn each_columns<T: Table>(
        &self,
        range: Range,
        wanted: &[Column],
        mut see: impl FnMut(&Columns),
    ) -> Result<Batch, Error> {
        let view = self.view(T::NAME, range)?;
        for (path, file) in view.files {
            if let Err(error) = file::read_columns(file, &path, wanted, &mut see) {
                self.left_out(&error);
            }
        }
        Ok(view.journal)
    }

    /// Pass the rows of a table in a range to `see`: the rows of each file together, then those of the
    /// journal.
    pub(crate) fn each_file<T: Table>(
        &self,
        range: Range,
        mut see: impl FnMut(Vec<T>),
    ) -> Result<(), Error> {
        let mut view = self.view(T::NAME, range)?;
        let within = |row: &T| range.contains(row.time_us());
        for (path, file) in view.files {
            match file::read::<T>(file, &path) {
                Ok(rows) => see(rows.into_iter().filter(within).collect()),
                Err(error) => self.left_out(&error),
            }
        }
        let mut rows = Rows(Vec::<T>::new());
        view.journal.each(&mut rows)?;
        see(rows.0.into_iter().filter(within).collect());
        Ok(())
    }

    /// Pass the rows of a table in a range to `see`, file by file.
    pub(crate) fn each_row<T: Table>(
        &self,
        range: Range,
        mut see: impl FnMut(T),
    ) -> Result<(), Error> {
        self.each_file(range, |rows: Vec<T>| rows.into_iter().for_each(&mut see))
    }

    /// The rows of a table in a range, in the order of their intervals, with these columns; the others may have their
    /// defaults.
    pub(crate) fn rows_with<T: Table>(
        &self,
        range: Range,
        names: &[&str],
    ) -> Result<Vec<T>, Error> {
        let within = |row: &T| range.contains(row.time_us());
        let mut rows: Vec<T> = Vec::new();
        let see = |columns: &Columns| rows.extend(T::load(columns).into_iter().filter(within));
        let mut journal = self.each_columns::<T>(range, &columns::<T>(names), see)?;
        let mut more = Rows(Vec::<T>::new());
        journal.each(&mut more)?;
        rows.extend(more.0.into_iter().filter(within));
        rows.sort_by_key(|row| (row.frame(), row.time_us()));
        Ok(rows)
    }

    /// The rows of a table in a range, in the order of their intervals.
    pub(crate) fn rows<T: Table>(&self, range: Range) -> Result<Vec<T>, Error> {
        let mut rows: Vec<T> = Vec::new();
        self.each_row(range, |row| rows.push(row))?;
        rows.sort_by_key(|row| (row.frame(), row.time_us()));
        rows.shrink_to_fit();
        Ok(rows)
    }
}

/// Takes the rows of one table out of a batch.
struct Rows<T>(Vec<T>);

impl<T: Table> Visit for Rows<T> {
    fn table<U: Table>(&mut self, rows: &mut Vec<U>) -> Result<(), Error> {
        if let Some(rows) = (rows as &mut dyn std::any::Any).downcast_mut::<Vec<T>>() {
            self.0.append(rows);
        }
        Ok(())
    }
}
