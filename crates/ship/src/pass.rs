// SPDX-License-Identifier: PostgreSQL
//! One pass through a recording: sends files that the bucket does not have, removes merged files from the bucket,
//! and keeps the spool within its limits.
//!
//! The order of operations keeps every moment consistent for readers that follow the rule of [`crate::layout`]:
//!
//! - Files of a minute are not sent once their hour has been merged in the spool. (There may be such files after the
//!   clock was set back; they are also merged within a minute.)
//! - `frames` is sent last, so that every row has its interval. The intervals of a coarser table are a subset of
//!   those of a finer one, so this also holds while an hour is being replaced.
//! - Merged files are removed from the bucket a grace period after their replacement has arrived, because readers
//!   may have listed them.

use crate::bucket::Bucket;
use crate::error::Error;
use crate::layout::{grades, Object, Origin};
use crate::owner::{self, Claimant};
use crate::sent::{Sent, Version};
use crate::spool::Spool;
use recording::{Compaction, DataFile, Files};
use std::collections::{BTreeMap, HashSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long readers may still use merged files.
pub(crate) const GRACE: Duration = Duration::from_secs(15 * 60);

/// Maximum size of a file to send, which readers must be able to read back, bytes.
const LARGEST: u64 = 1 << 30;

/// Sends one recording, pass by pass.
#[derive(Debug)]
pub struct Pass {
    bucket: Bucket,
    origin: Origin,
    who: Claimant,
    files: Files,
    sent: Sent,
    generation: Option<u32>,
    /// Maximum total size of unsent files in the spool, bytes.
    pub limit: u64,
    /// How long the spool keeps files that were sent; `None`: forever.
    pub keep: Option<Duration>,
    /// How long readers may still use merged files.
    pub grace: Duration,
    /// Maximum number of files to send before the owner and the limits are checked again.
    pub most: usize,
}

/// Default of [`Pass::most`]: a few seconds on an ordinary line.
const MOST: usize = 200;

/// The result of a pass.
#[derive(Debug, Default)]
pub struct Passed {
    /// Files sent.
    pub sent: u64,
    /// Their total size, bytes.
    pub bytes: u64,
    /// Objects removed from the bucket, because the files that they were merged into have arrived.
    pub removed: u64,
    /// Files that are not sent yet.
    pub left: u64,
    /// Whether some of these can be sent now.
    pub more: bool,
    /// Files that were removed from the spool without being sent.
    pub dropped: Option<Dropped>,
    /// Why the pass is incomplete.
    pub problem: Option<Error>,
}

/// Files that were removed from the spool without being sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// The earliest time that may be affected, microseconds since 1970.
    pub from_us: i64,
    /// The latest time that may be affected, microseconds since 1970.
    pub to_us: i64,
    /// Number of files.
    pub files: u64,
    /// Their total size, bytes.
    pub bytes: u64,
}

/// A file of the spool.
struct Entry {
    table: &'static str,
    file: DataFile,
    object: Object,
    key: String,
    version: Version,
    /// Whether the bucket has the file.
    sent: bool,
    /// Whether the hour has been merged, but this file has not.
    held: bool,
}

fn micros(length: Duration) -> i64 {
    i64::try_from(length.as_micros()).unwrap_or(i64::MAX)
}

fn listed(entries: &[&Entry]) -> Vec<(&'static str, DataFile)> {
    entries.iter().map(|entry| (entry.table, entry.file.clone())).collect()
}

impl Pass {
    /// A pass through these files. `generation`: our generation as the bucket's owner, if known.
    pub fn new(
        bucket: Bucket,
        origin: Origin,
        spool: &Spool,
        who: Claimant,
        files: Files,
        generation: Option<u32>,
    ) -> Result<Pass, Error> {
        let sent = Sent::open(&spool.sent(bucket.url(), &origin.cluster))?;
        let (limit, keep, grace, most) = (u64::MAX, None, GRACE, MOST);
        Ok(Pass { bucket, origin, who, files, sent, generation, limit, keep, grace, most })
    }

    /// The bucket.
    pub fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// Do everything that can be done now. `now_us` returns the time of day, microseconds since 1970; a pass may take
    /// long, so it is called whenever an object has arrived.
    pub fn run(&mut self, now_us: &dyn Fn() -> i64) -> Passed {
        let mut passed = Passed::default();
        if let Err(error) = self.send(&mut passed, now_us) {
            passed.problem = Some(error);
        }
        match self.keep_limits(now_us()) {
            Ok((left, dropped)) => (passed.left, passed.dropped) = (left, dropped),
            Err(error) => passed.problem = passed.problem.or(Some(error)),
        }
        passed
    }

    fn send(&mut self, passed: &mut Passed, now_us: &dyn Fn() -> i64) -> Result<(), Error> {
        let claim = owner::check(&self.bucket, &self.origin, &self.who, now_us())?;
        let generation = claim.generation(&self.bucket, &self.origin)?;
        self.generation = Some(generation);
        self.send_about(passed, now_us)?;
        let entries = self.entries(generation);
        let mut due = entries.iter().filter(|entry| !entry.sent && !entry.held);
        for entry in due.by_ref().take(self.most) {
            self.send_file(&entry.key, &entry.file.path, passed, now_us)?;
        }
        if due.next().is_some() {
            passed.more = true;
            return Ok(());
        }
        self.remove_merged(generation, passed, now_us())
    }

    /// The files of the spool, in the order in which they are sent.
    fn entries(&self, generation: u32) -> Vec<Entry> {
        let listed = self.files.list();
        let objects = listed
            .iter()
            .map(|(table, file)| Object::name(table, file, &self.origin, generation))
            .collect::<Vec<_>>();
        let highest = grades(&objects);
        let mut entries: Vec<Entry> = Vec::new();
        for ((table, file), object) in listed.into_iter().zip(&objects) {
            // Removed or replaced meanwhile: the next pass finds the replacement.
            let Ok(metadata) = file.path.metadata() else { continue };
            let (key, version) = (object.key(), Version::from_metadata(&metadata));
            let sent = self.sent.get(&key).is_some_and(|arrived| arrived.version == version);
            let held = highest.get(&object.hour()).is_some_and(|grade| object.grade < *grade);
            entries.push(Entry { table, file, object: object.clone(), key, version, sent, held });
        }
        entries.sort_by(|a, b| {
            let order = |entry: &Entry| {
                (entry.file.begin_us, entry.file.compaction, entry.table == "frames")
            };
            order(a).cmp(&order(b))
        });
        entries
    }

    fn send_about(&mut self, passed: &mut Passed, now_us: &dyn Fn() -> i64) -> Result<(), Error> {
        let (key, path) = (self.origin.about(), self.files.about());
        let there = self.sent.get(&key).map(|arrived| arrived.version);
        match path.metadata() {
            Ok(metadata) if there != Some(Version::from_metadata(&metadata)) => {
                self.send_file(&key, &path, passed, now_us)
            }
            _ => Ok(()),
        }
    }

    fn send_file(
        &mut self,
        key: &str,
        path: &Path,
        passed: &mut Passed,
        now_us: &dyn Fn() -> i64,
    ) -> Result<(), Error> {
        let file = match files::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(Error::io(path)(error)),
        };
        let version = Version::from_metadata(&file.metadata().map_err(Error::io(path))?);
        let bytes = files::read_all(file, LARGEST).map_err(Error::io(path))?;
        self.bucket.put(key, bytes.into())?;
        self.sent.arrived(key, version, now_us())?;
        passed.sent += 1;
        passed.bytes += version.bytes;
        Ok(())
    }

    /// Objects that were sent and are no longer in the spool, by key.
    fn absent(&self, entries: &[Entry]) -> Vec<(String, Object)> {
        let listed: HashSet<&str> = entries.iter().map(|entry| entry.key.as_str()).collect();
        let mut keys = self.sent.keys();
        keys.retain(|key| !listed.contains(key.as_str()));
        keys.into_iter().filter_map(|key| Object::parse(&key).map(|object| (key, object))).collect()
    }

    /// Remove merged files from the bucket after their grace period.
    fn remove_merged(
        &mut self,
        generation: u32,
        passed: &mut Passed,
        now_us: i64,
    ) -> Result<(), Error> {
        let entries = self.entries(generation);
        let highest = grades(entries.iter().map(|entry| &entry.object));
        for (key, object) in self.absent(&entries) {
            let merged = highest.get(&object.hour()).is_some_and(|grade| object.grade < *grade);
            if !merged {
                // The spool no longer has anything of that hour.
                self.sent.forget(&key)?;
                continue;
            }
            // `frames` arrives last.
            let frames = object.hour_of("frames");
            let into = entries.iter().find(|entry| entry.object.hour() == frames && !entry.held);
            let arrived =
                into.filter(|entry| entry.sent).and_then(|entry| self.sent.get(&entry.key));
            let over = |at: i64| now_us.saturating_sub(at) >= micros(self.grace);
            if arrived.is_some_and(|arrived| over(arrived.at_us)) {
                self.bucket.delete(&key)?;
                self.sent.forget(&key)?;
                passed.removed += 1;
            }
        }
        Ok(())
    }

    /// Keep the spool within its limits. Returns the number of unsent files. The latest files stay, because the
    /// recording continues from them.
    fn keep_limits(&mut self, now_us: i64) -> Result<(u64, Option<Dropped>), Error> {
        self.remove_old(now_us)?;
        let dropped = self.drop_unsent()?;
        let entries = self.entries(self.generation.unwrap_or(1));
        Ok((entries.iter().filter(|entry| !entry.sent).count() as u64, dropped))
    }

    /// Remove old hours that have been merged and sent.
    fn remove_old(&mut self, now_us: i64) -> Result<(), Error> {
        let Some(keep) = self.keep else { return Ok(()) };
        let entries = self.entries(self.generation.unwrap_or(1));
        // Only the hour's file in the spool shows that they can be removed from the bucket.
        let absent = self.absent(&entries);
        let needed: HashSet<_> = absent.iter().map(|(_, object)| object.hour()).collect();
        let mut hours: BTreeMap<(String, String), Vec<&Entry>> = BTreeMap::new();
        for entry in &entries {
            hours.entry(entry.file.hour()).or_default().push(entry);
        }
        hours.pop_last();
        for files in hours.into_values() {
            let old = |entry: &&Entry| now_us.saturating_sub(entry.file.end_us()) >= micros(keep);
            // A minute that is not merged yet will only be merged together with the rest of its hour.
            let done = |entry: &&Entry| {
                let merged = entry.file.compaction != Compaction::Minute;
                entry.sent && merged && old(entry) && !needed.contains(&entry.object.hour())
            };
            if files.iter().all(done) {
                self.files.remove(&listed(&files))?;
            }
        }
        Ok(())
    }

    /// If the spool exceeds the limit, remove the oldest unsent minutes or merged hours.
    fn drop_unsent(&mut self) -> Result<Option<Dropped>, Error> {
        let entries = self.entries(self.generation.unwrap_or(1));
        let mut units: BTreeMap<(&str, &str), Vec<&Entry>> = BTreeMap::new();
        for entry in &entries {
            units.entry((&entry.file.date, &entry.file.time)).or_default().push(entry);
        }
        units.pop_last();
        let unsent = |entry: &&Entry| !entry.sent;
        let bytes_of = |files: &[&Entry]| files.iter().map(|file| file.version.bytes).sum::<u64>();
        let mut left = bytes_of(&entries.iter().filter(unsent).collect::<Vec<_>>());
        let mut dropped: Option<Dropped> = None;
        for mut files in units.into_values() {
            files.retain(|entry| !entry.sent);
            if left <= self.limit {
                break;
            }
            let Some(first) = files.first() else { continue };
            let (begin, end) = (first.file.begin_us, first.file.end_us());
            self.files.remove(&listed(&files))?;
            let bytes = bytes_of(&files);
            left -= bytes;
            let sum =
                dropped.get_or_insert(Dropped { from_us: begin, to_us: end, files: 0, bytes: 0 });
            (sum.from_us, sum.to_us) = (sum.from_us.min(begin), sum.to_us.max(end));
            sum.files += files.len() as u64;
            sum.bytes += bytes;
        }
        Ok(dropped)
    }

    /// The paths of the unsent files.
    pub fn unsent(&self) -> Vec<PathBuf> {
        let entries = self.entries(self.generation.unwrap_or(1));
        entries.into_iter().filter(|entry| !entry.sent).map(|entry| entry.file.path).collect()
    }
}
