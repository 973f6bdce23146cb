// SPDX-License-Identifier: PostgreSQL
//! Writes a recording: rows go into the journal, and once a minute from there into Parquet files.

use crate::about::About;
use crate::batch::{Batch, Visit, TABLES};
use crate::commit::Commit;
use crate::details;
use crate::error::Error;
use crate::file::{self, Effort};
use crate::files::Files;
use crate::journal::{self, Journal};
use crate::plan_rows::PlanKey;
use crate::rows::{FrameRow, TextKey};
use crate::store::{self, Compaction, Store, ABOUT, UNFINISHED};
use crate::table::{columns, Table};
use crate::upkeep::{self, RetentionPolicy};
use files::Access;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The last interval of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastFrame {
    /// Its number.
    pub frame: u64,
    /// When it ended, microseconds since 1970.
    pub time_us: i64,
    /// The run of the server: a row of `servers`.
    pub server: u32,
}

/// The writer of a recording.
#[derive(Debug)]
pub struct Writer {
    store: Store,
    about: About,
    policy: RetentionPolicy,
    journal: Journal,
    /// The rows in the journal.
    pending: Batch,
    minute: i64,
    next_frame: u64,
    resumed: Option<LastFrame>,
    /// The time of day that upkeep relies on, and CLOCK_MONOTONIC at that time.
    trusted: Option<(i64, u64)>,
    /// The day, and the texts written on that day.
    texts_of_day: (i64, WrittenTexts),
    /// Locked while files are replaced.
    replacing: Arc<Mutex<()>>,
    upkeep: Option<std::thread::JoinHandle<Result<(), Error>>>,
    /// Whether upkeep runs in a separate thread.
    pub threaded: bool,
    /// Bytes that this writer has written to Parquet files.
    written: u64,
    /// Locked while this writer exists.
    _lock: files::Lock,
}

/// The statements and plans whose texts were written.
#[derive(Debug, Default)]
struct WrittenTexts {
    statements: HashSet<TextKey>,
    plans: HashSet<PlanKey>,
}

const MINUTE_US: i64 = 60_000_000;
const DAY_US: i64 = 24 * 60 * MINUTE_US;
/// A larger change of the time of day is a leap, not a correction.
const LEAP_US: i64 = 10 * MINUTE_US;

impl Writer {
    /// Like [`Writer::open_for`] with the access that the recording was begun with; only the owner may read a new one.
    pub fn open(directory: &Path, about: About, policy: RetentionPolicy) -> Result<Writer, Error> {
        let access = Store::new(directory, &about.host).access;
        Writer::open_for(directory, access, about, policy)
    }

    /// Start a recording in a new or empty directory, or continue one of the same server. It begins
    /// or continues at `about.begun_us`. Rows that a killed recorder left in the journal are moved to
    /// Parquet files.
    ///
    /// `access` says whether only the owner or also the group may read the recording.
    pub fn open_for(
        directory: &Path,
        access: Access,
        about: About,
        policy: RetentionPolicy,
    ) -> Result<Writer, Error> {
        let now_us = about.begun_us;
        let about = match About::read(directory) {
            Ok(found) => {
                if (&found.host, &found.data_directory) != (&about.host, &about.data_directory) {
                    let name = |a: &About| format!("{} on {}", a.data_directory, a.host);
                    return Err(Error::OtherServer {
                        path: directory.to_path_buf(),
                        found: name(&found),
                        wanted: name(&about),
                    });
                }
                About { begun_us: found.begun_us, ..about }
            }
            Err(Error::NotARecording { .. }) => about,
            Err(error) => return Err(error),
        };
        let mut store = Store::new(directory, &about.host);
        let journals = store.journals();
        let is_new = !directory.join(ABOUT).exists();
        // A recorder that was killed before it began may have left these.
        let foreign = |entry: std::fs::DirEntry| {
            let name = entry.file_name();
            let of_recorder = name == store::SHIP || name == store::JOURNAL;
            !of_recorder && !name.to_string_lossy().ends_with(UNFINISHED)
        };
        if is_new && std::fs::read_dir(directory).is_ok_and(|all| all.flatten().any(foreign)) {
            return Err(Error::NotEmpty { path: directory.to_path_buf() });
        }
        files::folder(&journals, access).map_err(Error::io(&journals))?;
        let lock = lock(&journals, directory, access)?;
        // Earlier versions created it with the permissions that the umask allowed.
        files::set_access(&journals, access).map_err(Error::io(&journals))?;
        store.access = access;
        about.write(directory, access)?;
        Commit::recover(&store)?;
        remove_unfinished(&store);
        move_journals(&store)?;
        let resumed = last(&store);
        let next_frame = resumed.map_or(0, |last| last.frame) + 1;
        let (journal, minute) = begin_journal(&store, now_us)?;
        Ok(Writer {
            store,
            about,
            policy,
            journal,
            pending: Batch::default(),
            minute,
            next_frame,
            resumed,
            trusted: None,
            texts_of_day: (0, WrittenTexts::default()),
            replacing: Arc::new(Mutex::new(())),
            upkeep: None,
            threaded: true,
            written: 0,
            _lock: lock,
        })
    }

    /// The description of the recording.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// The last interval of an earlier recorder, if this continues its recording.
    pub fn resumed(&self) -> Option<LastFrame> {
        self.resumed
    }

    /// The number of the next interval.
    pub fn next_frame(&self) -> u64 {
        self.next_frame
    }

    /// Number the intervals from this number on, or from a higher one.
    pub fn number_from(&mut self, first: u64) {
        self.next_frame = self.next_frame.max(first);
    }

    /// The finished files.
    pub fn files(&self) -> Files {
        Files::new(self.store.clone(), self.replacing.clone())
    }

    /// Bytes written: Parquet files, and the current journal.
    pub fn size(&self) -> u64 {
        self.written + self.journal.length()
    }

    /// Write a batch. After a failure, no part of it is written, and all earlier batches are intact.
    pub fn push(&mut self, mut batch: Batch) -> Result<(), Error> {
        details::mark(&mut batch, |_| true);
        if let Some(row) = batch.frames.last() {
            let time_us = row.time_us;
            self.trust(row);
            if time_us.div_euclid(MINUTE_US) != self.minute {
                self.next_minute(time_us)?;
            }
            let day = time_us.div_euclid(DAY_US);
            if self.texts_of_day.0 != day {
                self.texts_of_day = (day, WrittenTexts::default());
            }
        }
        let texts = &mut self.texts_of_day.1;
        batch.statement_texts.retain(|row| !texts.statements.contains(&row.key()));
        batch.plan_texts.retain(|row| !texts.plans.contains(&row.key()));
        self.journal.append(&batch)?;
        texts.statements.extend(batch.statement_texts.iter().map(|row| row.key()));
        texts.plans.extend(batch.plan_texts.iter().map(|row| row.key()));
        if let Some(last) = batch.frames.iter().map(|row| row.frame).max() {
            self.next_frame = self.next_frame.max(last + 1);
        }
        self.pending.append(batch);
        Ok(())
    }

    /// Move the journal to Parquet files and begin a new one.
    fn next_minute(&mut self, time_us: i64) -> Result<(), Error> {
        let (journal, minute) = begin_journal(&self.store, time_us)?;
        let old = std::mem::replace(&mut self.journal, journal);
        self.minute = minute;
        let mut pending = std::mem::take(&mut self.pending);
        self.written += self.move_pending(&mut pending, old.path())?;
        self.start_upkeep(self.trusted.map_or(time_us, |(now, _)| now))
    }

    /// If the time of day leaps forward, rows do not become old by that: as long as this recorder runs,
    /// nothing is removed because of it.
    fn trust(&mut self, row: &FrameRow) {
        let FrameRow { time_us, monotonic_ns, .. } = *row;
        let now = match self.trusted {
            Some((then, ns)) => {
                let ran = i64::try_from(monotonic_ns.saturating_sub(ns) / 1000).unwrap_or(0);
                let expected = then.saturating_add(ran);
                if time_us > expected.saturating_add(LEAP_US) {
                    expected
                } else {
                    time_us
                }
            }
            None => time_us,
        };
        self.trusted = Some((now, monotonic_ns));
    }

    fn move_pending(&self, pending: &mut Batch, journal: &Path) -> Result<u64, Error> {
        let _lock = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        write_files(&self.store, pending, journal)
    }

    /// Start merging old files and removing files beyond the retention.
    fn start_upkeep(&mut self, now_us: i64) -> Result<(), Error> {
        if !self.threaded {
            return upkeep::run(&self.store, self.policy, now_us, &self.replacing);
        }
        if let Some(upkeep) = self.upkeep.take() {
            if !upkeep.is_finished() {
                self.upkeep = Some(upkeep);
                return Ok(());
            }
            upkeep.join().unwrap_or_else(|e| std::panic::resume_unwind(e))?;
        }
        let (store, policy, replacing) = (self.store.clone(), self.policy, self.replacing.clone());
        let work = move || upkeep::run(&store, policy, now_us, &replacing);
        let thread = std::thread::Builder::new().name("upkeep".to_string());
        self.upkeep = thread.spawn(work).ok();
        Ok(())
    }

    /// End the recording: move the journal to Parquet files, and merge the files of each hour.
    /// Returns the bytes written.
    pub fn close(mut self) -> Result<u64, Error> {
        self.finish()?;
        upkeep::merge_all(&self.store, &self.replacing)?;
        Ok(self.written)
    }

    /// End a recording that will be continued: move the journal to Parquet files, and merge only
    /// files of hours that were merged before. Returns the bytes written.
    pub fn pause(mut self) -> Result<u64, Error> {
        self.finish()?;
        upkeep::merge_late(&self.store, &self.replacing)?;
        Ok(self.written)
    }

    fn finish(&mut self) -> Result<(), Error> {
        let mut pending = std::mem::take(&mut self.pending);
        let path = self.journal.path().to_path_buf();
        self.written += self.move_pending(&mut pending, &path)?;
        self.settle()
    }

    /// Wait for upkeep in progress.
    fn settle(&mut self) -> Result<(), Error> {
        match self.upkeep.take() {
            Some(upkeep) => upkeep.join().unwrap_or_else(|e| std::panic::resume_unwind(e)),
            None => Ok(()),
        }
    }
}

impl Drop for Writer {
    /// The lock must not be released before the thread has ended.
    fn drop(&mut self) {
        if let Some(upkeep) = self.upkeep.take() {
            // The result cannot be reported here.
            let _ = upkeep.join();
        }
    }
}

fn lock(journals: &Path, directory: &Path, access: Access) -> Result<files::Lock, Error> {
    let path = journals.join("lock");
    let file = files::create(&path, access).map_err(Error::io(&path))?;
    let lock = files::Lock::take(file).map_err(Error::io(&path))?;
    lock.ok_or_else(|| Error::Locked { path: directory.to_path_buf() })
}

/// Remove the files that a killed recorder was writing.
fn remove_unfinished(store: &Store) {
    store::remove_unfinished(&store.directory);
    store::remove_unfinished(&store.journals());
    for table in TABLES {
        let days = std::fs::read_dir(store.table(table)).into_iter().flatten().flatten();
        days.for_each(|day| store::remove_unfinished(&day.path()));
    }
}

/// Move rows that a killed recorder left in its journal to Parquet files.
fn move_journals(store: &Store) -> Result<(), Error> {
    for path in store.journal_files() {
        let (mut batch, _) = journal::read(&path)?;
        write_files(store, &mut batch, &path)?;
    }
    Ok(())
}

/// A new journal, and its minute.
fn begin_journal(store: &Store, time_us: i64) -> Result<(Journal, i64), Error> {
    let stamp = jiff::Timestamp::from_microsecond(time_us).unwrap_or_default();
    let name = stamp.strftime("%Y%m%dT%H%M%S").to_string();
    let mut path = store.journals().join(format!("{name}.log"));
    // There may be a journal of the same second, or from before the clock was set back.
    let mut number = 1;
    while path.exists() {
        path = store.journals().join(format!("{name}-{number}.log"));
        number += 1;
    }
    Ok((Journal::begin(path, store.access)?, time_us.div_euclid(MINUTE_US)))
}

/// The interval with the highest number.
fn last(store: &Store) -> Option<LastFrame> {
    let wanted = columns::<FrameRow>(&["frame", "time", "server"]);
    let mut last: Option<LastFrame> = None;
    for part in store.files(FrameRow::NAME) {
        let Ok(file) = files::open(&part.path) else { continue };
        // A file that cannot be read is reported when the recording is read.
        let _ = file::read_columns(file, &part.path, &wanted, |columns| {
            for row in FrameRow::load(columns) {
                if last.is_none_or(|last| last.frame < row.frame) {
                    let FrameRow { frame, time_us, server, .. } = row;
                    last = Some(LastFrame { frame, time_us, server });
                }
            }
        });
    }
    last
}

/// Write a batch to Parquet files and remove its journal. Returns the bytes written.
fn write_files(store: &Store, batch: &mut Batch, journal: &Path) -> Result<u64, Error> {
    Commit::recover(store)?;
    let mut stage =
        MinuteFiles { store, commit: Commit::default(), begin: begin_of(batch), bytes: 0 };
    if let Err(error) = batch.each(&mut stage) {
        stage.commit.abandon(store);
        return Err(error);
    }
    stage.commit.remove(store, journal);
    stage.commit.execute(store, false)?;
    Ok(stage.bytes)
}

/// The end of the first interval; in a batch without intervals, the time of the first row, if any.
fn begin_of(batch: &mut Batch) -> i64 {
    struct First(Option<i64>);
    impl Visit for First {
        fn table<T: Table>(&mut self, rows: &mut Vec<T>) -> Result<(), Error> {
            let first = rows.iter().map(|row| row.time_us()).min();
            self.0 = first.map(|first| self.0.map_or(first, |known| known.min(first))).or(self.0);
            Ok(())
        }
    }
    if let Some(first) = batch.frames.iter().map(|row| row.time_us).min() {
        return first;
    }
    let mut first = First(None);
    // This visit never fails.
    let _ = batch.each(&mut first);
    first.0.unwrap_or_default()
}

/// Writes the rows of each table to a file that the commit puts in place.
struct MinuteFiles<'s> {
    store: &'s Store,
    commit: Commit,
    begin: i64,
    bytes: u64,
}

impl Visit for MinuteFiles<'_> {
    fn table<T: Table>(&mut self, rows: &mut Vec<T>) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        T::sort(rows);
        let path = free_path(self.store, T::NAME, self.begin);
        let aside = self.commit.stage(self.store, &path)?;
        file::write(&aside, rows, Effort::Fast, self.store.access)?;
        self.bytes += std::fs::metadata(&aside).map_or(0, |m| m.len());
        Ok(())
    }
}

/// An unused path; if the clock was set back, some are taken.
fn free_path(store: &Store, table: &str, begin_us: i64) -> PathBuf {
    let mut begin = begin_us;
    loop {
        let stamp = jiff::Timestamp::from_microsecond(begin).unwrap_or_default();
        let (date, time) = (stamp.strftime("%Y-%m-%d"), stamp.strftime("%H%M%S"));
        let path = store.path(table, &date.to_string(), &time.to_string(), Compaction::Minute);
        if !path.exists() {
            return path;
        }
        begin += 1_000_000;
    }
}
