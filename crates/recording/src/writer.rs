// SPDX-License-Identifier: PostgreSQL
//! Writing a recording: into the journal, and once a minute from there into parts.

use crate::about::About;
use crate::batch::{Batch, Visit};
use crate::commit::Commit;
use crate::error::Error;
use crate::journal::{self, Journal};
use crate::part::{self, Care};
use crate::rows::FrameRow;
use crate::store::{Grade, Store, ABOUT};
use crate::table::{Column, Table};
use crate::upkeep;
use rustix::fs::{flock, FlockOperation};
use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// Details become those of a minute when they are so old,
    pub details: Duration,
    /// intervals become ten seconds long,
    pub tens: Duration,
    /// and a minute long.
    pub sixties: Duration,
    /// What is so old goes; `None`: nothing goes.
    pub retention: Option<Duration>,
}

impl Default for RetentionPolicy {
    fn default() -> RetentionPolicy {
        let hours = |n: u64| Duration::from_secs(n * 3600);
        RetentionPolicy {
            details: hours(1),
            tens: hours(24),
            sixties: hours(7 * 24),
            retention: None,
        }
    }
}

/// The last interval of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastFrame {
    /// Its number.
    pub frame: u64,
    /// When it ended, microseconds since 1970.
    pub time_us: i64,
    /// The server's run that it is of.
    pub server: u32,
}

/// Writes a recording.
#[derive(Debug)]
pub struct Writer {
    store: Store,
    about: About,
    policy: RetentionPolicy,
    journal: Journal,
    /// What is in the journal.
    pending: Batch,
    minute: i64,
    next_frame: u64,
    resumed: Option<LastFrame>,
    /// What upkeep takes for now, and CLOCK_MONOTONIC then.
    trusted: Option<(i64, u64)>,
    /// The day, and the statements whose texts it has.
    told: (i64, HashSet<(i64, u32, u32, bool)>),
    /// Held while files are exchanged.
    turn: Arc<Mutex<()>>,
    upkeep: Option<std::thread::JoinHandle<Result<(), Error>>>,
    /// Bytes in parts written by us.
    written: u64,
    /// Held as long as we write.
    _lock: File,
}

const MINUTE_US: i64 = 60_000_000;
const DAY_US: i64 = 24 * 60 * MINUTE_US;
/// A clock that is corrected moves by less.
const LEAP_US: i64 = 10 * MINUTE_US;

impl Writer {
    /// Begin a recording in a new or empty directory, or go on with one of the same server.
    /// What a killed recorder left in the journal becomes parts.
    pub fn open(directory: &Path, about: About, policy: RetentionPolicy) -> Result<Writer, Error> {
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
        let store = Store::new(directory, &about.host);
        let journals = store.journals();
        let is_new = !directory.join(ABOUT).exists();
        if is_new && std::fs::read_dir(directory).is_ok_and(|mut all| all.next().is_some()) {
            return Err(Error::NotEmpty { path: directory.to_path_buf() });
        }
        std::fs::create_dir_all(&journals).map_err(Error::io(&journals))?;
        let lock = lock(&journals, directory)?;
        about.write(directory)?;
        Commit::recover(&store)?;
        sweep(&store);
        adopt(&store)?;
        let resumed = last(&store);
        let next_frame = resumed.map_or(0, |last| last.frame) + 1;
        let (journal, minute) = begin_journal(&store, now_us())?;
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
            told: (0, HashSet::new()),
            turn: Arc::new(Mutex::new(())),
            upkeep: None,
            written: 0,
            _lock: lock,
        })
    }

    /// What the recording is of.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Where an earlier recorder ended, if this goes on with its recording.
    pub fn resumed(&self) -> Option<LastFrame> {
        self.resumed
    }

    /// The number of the interval that comes next.
    pub fn next_frame(&self) -> u64 {
        self.next_frame
    }

    /// Bytes that have been written: parts, and the journal as it stands.
    pub fn size(&self) -> u64 {
        self.written + self.journal.length()
    }

    /// Put a batch down. After a failure it is not there, and what was before is.
    pub fn push(&mut self, mut batch: Batch) -> Result<(), Error> {
        if let Some(row) = batch.frames.last() {
            let time_us = row.time_us;
            self.trust(row);
            if time_us.div_euclid(MINUTE_US) != self.minute {
                self.turn_minute(time_us)?;
            }
            let day = time_us.div_euclid(DAY_US);
            if self.told.0 != day {
                self.told = (day, HashSet::new());
            }
        }
        batch.statement_texts.retain(|row| !self.told.1.contains(&row.key()));
        self.journal.append(&batch)?;
        self.told.1.extend(batch.statement_texts.iter().map(|row| row.key()));
        if let Some(last) = batch.frames.iter().map(|row| row.frame).max() {
            self.next_frame = self.next_frame.max(last + 1);
        }
        self.pending.append(batch);
        Ok(())
    }

    /// The journal becomes parts, and another one begins.
    fn turn_minute(&mut self, time_us: i64) -> Result<(), Error> {
        let (journal, minute) = begin_journal(&self.store, time_us)?;
        let old = std::mem::replace(&mut self.journal, journal);
        self.minute = minute;
        let mut pending = std::mem::take(&mut self.pending);
        self.written += self.exchange(&mut pending, old.path())?;
        self.look_after(self.trusted.map_or(time_us, |(now, _)| now))
    }

    /// A time of day that leaps forward does not make old what was recorded just before: nothing
    /// is let go for that while this recorder runs.
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

    fn exchange(&self, pending: &mut Batch, journal: &Path) -> Result<u64, Error> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        to_parts(&self.store, pending, journal)
    }

    /// Merge what is old, and let go what is too old, beside the recording.
    fn look_after(&mut self, now_us: i64) -> Result<(), Error> {
        if let Some(upkeep) = self.upkeep.take() {
            if !upkeep.is_finished() {
                self.upkeep = Some(upkeep);
                return Ok(());
            }
            upkeep.join().unwrap_or_else(|e| std::panic::resume_unwind(e))?;
        }
        let (store, policy, turn) = (self.store.clone(), self.policy, self.turn.clone());
        let work = move || upkeep::look_after(&store, policy, now_us, &turn);
        let thread = std::thread::Builder::new().name("upkeep".to_string());
        self.upkeep = thread.spawn(work).ok();
        Ok(())
    }

    /// End it: the journal becomes parts, and parts of one hour become one.
    pub fn close(mut self) -> Result<u64, Error> {
        let mut pending = std::mem::take(&mut self.pending);
        let path = self.journal.path().to_path_buf();
        self.written += self.exchange(&mut pending, &path)?;
        if let Some(upkeep) = self.upkeep.take() {
            upkeep.join().unwrap_or_else(|e| std::panic::resume_unwind(e))?;
        }
        upkeep::merge_all(&self.store, &self.turn)?;
        Ok(self.written)
    }
}

fn now_us() -> i64 {
    i64::try_from(segment::clock::realtime_ns() / 1000).unwrap_or(i64::MAX)
}

fn lock(journals: &Path, directory: &Path) -> Result<File, Error> {
    let path = journals.join("lock");
    let file = File::create(&path).map_err(Error::io(&path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::Locked { path: directory.to_path_buf() }),
        Err(errno) => Err(Error::io(&path)(errno.into())),
    }
}

/// What was being written when a recorder was killed.
fn sweep(store: &Store) {
    for table in crate::batch::TABLES {
        let days = std::fs::read_dir(store.table(table)).into_iter().flatten().flatten();
        for file in days.flat_map(|day| std::fs::read_dir(day.path()).into_iter().flatten()) {
            let Ok(file) = file else { continue };
            if file.file_name().to_string_lossy().ends_with(crate::store::UNFINISHED) {
                // Nobody needs it; if it stays it does no harm.
                let _ = std::fs::remove_file(file.path());
            }
        }
    }
}

/// What a killed recorder left in its journal.
fn adopt(store: &Store) -> Result<(), Error> {
    for path in store.journal_files() {
        let (mut batch, _) = journal::read(&path)?;
        to_parts(store, &mut batch, &path)?;
    }
    Ok(())
}

/// A new journal, and the minute that it is of.
fn begin_journal(store: &Store, time_us: i64) -> Result<(Journal, i64), Error> {
    let stamp = jiff::Timestamp::from_microsecond(time_us).unwrap_or_default();
    let name = stamp.strftime("%Y%m%dT%H%M%S").to_string();
    let mut path = store.journals().join(format!("{name}.log"));
    // One that is there already is of the same second, or of before the clock was set back.
    let mut number = 1;
    while path.exists() {
        path = store.journals().join(format!("{name}-{number}.log"));
        number += 1;
    }
    Ok((Journal::begin(path)?, time_us.div_euclid(MINUTE_US)))
}

/// The interval of the highest number.
fn last(store: &Store) -> Option<LastFrame> {
    let names = ["frame", "time", "server"];
    let wanted: Vec<Column> =
        FrameRow::columns().into_iter().filter(|column| names.contains(&column.name)).collect();
    let mut last: Option<LastFrame> = None;
    for part in store.parts(FrameRow::NAME) {
        let Ok(file) = File::open(&part.path) else { continue };
        // One that cannot be read is told of by who reads the recording.
        let _ = part::read_columns(file, &part.path, &wanted, |columns| {
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

/// Make parts of a batch and let its journal go. Returns the bytes written.
fn to_parts(store: &Store, batch: &mut Batch, journal: &Path) -> Result<u64, Error> {
    let mut stage = Stage { store, commit: Commit::default(), begin: begin_of(batch), bytes: 0 };
    if let Err(error) = batch.each(&mut stage) {
        stage.commit.give_up(store);
        return Err(error);
    }
    stage.commit.remove(store, journal);
    stage.commit.carry_out(store, false)?;
    Ok(stage.bytes)
}

/// When the first interval ended; of a batch without one, when the first thing happened.
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
    // It does not fail.
    let _ = batch.each(&mut first);
    first.0.unwrap_or_else(now_us)
}

/// Writes the rows of each table aside.
struct Stage<'s> {
    store: &'s Store,
    commit: Commit,
    begin: i64,
    bytes: u64,
}

impl Visit for Stage<'_> {
    fn table<T: Table>(&mut self, rows: &mut Vec<T>) -> Result<(), Error> {
        if rows.is_empty() {
            return Ok(());
        }
        T::sort(rows);
        let path = free_place(self.store, T::NAME, self.begin);
        let aside = self.commit.stage(self.store, &path)?;
        part::write(&aside, rows, Care::Little)?;
        self.bytes += std::fs::metadata(&aside).map_or(0, |m| m.len());
        Ok(())
    }
}

/// A name that no part has yet; after the clock was set back some have.
fn free_place(store: &Store, table: &str, begin_us: i64) -> PathBuf {
    let mut begin = begin_us;
    loop {
        let stamp = jiff::Timestamp::from_microsecond(begin).unwrap_or_default();
        let (date, time) = (stamp.strftime("%Y-%m-%d"), stamp.strftime("%H%M%S"));
        let path = store.part(table, &date.to_string(), &time.to_string(), Grade::Minute);
        if !path.exists() {
            return path;
        }
        begin += 1_000_000;
    }
}
