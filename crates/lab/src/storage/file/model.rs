// SPDX-License-Identifier: PostgreSQL
//! The tables of a study file, and what a key that is not given is.

use crate::engine::file_systems::Array;
use crate::engine::time::Time;
use crate::storage::file::size::Size;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// A study of storage.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageStudy {
    /// Its name: letters, digits, hyphens.
    pub name: String,
    /// One line.
    pub title: String,
    /// What it answers.
    pub question: String,
    /// The original study, if it repeats one.
    pub source: Option<String>,
    /// How long the background runs in each cell, the warm-up not included.
    #[serde(rename = "for")]
    pub length: Time,
    /// How often each arm is measured.
    #[serde(default = "one")]
    pub repeats: usize,
    /// Determines the order of the arms and all random choices.
    #[serde(default = "seed")]
    pub seed: u64,
    /// Whether the first arm is measured a second time as A/A control.
    #[serde(default = "yes")]
    pub again: bool,
    /// Whether the page cache forgets the archive before each run of a victim, and the background's files
    /// before the background.
    #[serde(default = "yes")]
    pub cold: bool,
    /// The steady load.
    pub background: Option<Background>,
    /// A PostgreSQL server in the arm's directory, with its own load.
    pub server: Option<StorageServer>,
    /// Files outside of the arm's directory for victims to copy.
    pub archive: Option<Archive>,
    /// The commands that are timed.
    #[serde(default, rename = "victim")]
    pub victims: Vec<Victim>,
    /// What is compared.
    #[serde(rename = "arm")]
    pub arms: Vec<StorageArm>,
    /// What differs in the quick variant.
    #[serde(default)]
    pub quick: Quick,
}

/// The steady load, made by fio.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Background {
    /// Operations per second, of all threads together.
    pub rate: f64,
    /// Threads; each reads or writes, and goes through files in sequence or at random.
    pub threads: usize,
    /// Share of reads, 0 to 1.
    #[serde(default = "half")]
    pub reads: f64,
    /// Share of operations that go through a file in sequence, 0 to 1.
    #[serde(default = "half")]
    pub sequential: f64,
    /// Size of an operation.
    #[serde(default = "block")]
    pub block: Size,
    /// Whether operations bypass the page cache.
    #[serde(default)]
    pub direct: bool,
    /// Number of files.
    pub files: usize,
    /// Their sizes.
    pub sizes: Vec<Class>,
    /// Levels of directories below the arm's.
    #[serde(default = "one")]
    pub depth: usize,
    /// Directories in each directory.
    #[serde(default = "one")]
    pub width: usize,
    /// Operations that fell behind the schedule.
    #[serde(default)]
    pub owed: Owed,
    /// With `owed = "dropped"`: drop owed operations as soon as they are more than those of this time.
    #[serde(default = "ten_seconds")]
    pub owed_limit: Time,
    /// When measuring begins.
    #[serde(default)]
    pub warm_up: WarmUp,
    /// The longest warm-up; then measuring begins anyway.
    #[serde(default = "ten_minutes")]
    pub warm_up_max: Time,
}

/// What happens to operations that are behind the schedule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Owed {
    /// They are made up as fast as the storage allows.
    #[default]
    MadeUp,
    /// They are dropped, and counted.
    Dropped,
}

/// A size of files and the share of files that have it.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Class {
    /// Size of each file.
    pub size: Size,
    /// Share of the files, 0 to 1.
    pub share: f64,
}

/// When measuring begins.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WarmUp {
    /// After this time.
    After(Duration),
    /// When the rate is as wanted, and response times and dirty pages do not grow.
    Steady,
    /// When the page cache has no space, or dirty pages have reached the kernel's limit.
    CacheFull,
}

impl Default for WarmUp {
    fn default() -> Self {
        Self::After(Duration::from_secs(10))
    }
}

impl<'de> Deserialize<'de> for WarmUp {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match String::deserialize(from)?.as_str() {
            "steady" => Ok(Self::Steady),
            "cache-full" => Ok(Self::CacheFull),
            text => view::duration::parse(text).map(Self::After).map_err(|_| {
                serde::de::Error::custom(format!(
                    "\"{text}\" is not a warm-up; use \"steady\", \"cache-full\" or a time such as \"30s\""
                ))
            }),
        }
    }
}

/// A PostgreSQL server under test and its load.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageServer {
    /// Scale of pgbench's tables.
    pub scale: u32,
    /// Clients of pgbench's TPC-B-like load.
    pub clients: u32,
    /// Transactions per second, open loop; as many as possible without.
    pub rate: Option<f64>,
    /// Settings.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
}

/// Files for victims to copy.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Archive {
    /// Their size in total; the last file may exceed it.
    pub size: Size,
    /// Their sizes; those of the background's files without.
    pub sizes: Option<Vec<Class>>,
}

/// A command that is timed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Victim {
    /// Its name.
    pub name: String,
    /// The command; docs/storage-studies.md lists the words in braces.
    pub command: Vec<String>,
    /// A command before each run that is not timed, such as removing what the last run left.
    pub setup: Option<Vec<String>>,
    /// When it starts, since measuring began.
    pub at: Option<Vec<Time>>,
    /// It starts each time this has passed.
    pub every: Option<Time>,
    /// It is ended after this time.
    #[serde(default = "one_hour")]
    pub limit: Time,
}

/// Where the files are.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageArm {
    /// Its name.
    pub name: String,
    /// Its title in output.
    pub title: Option<String>,
    /// An existing directory; a new one is made in it. `--directory` or the temporary directory without.
    pub directory: Option<PathBuf>,
    /// A file system made for it on a loop device: ext4, xfs, btrfs.
    pub file_system: Option<String>,
    /// Its size.
    pub size: Option<Size>,
    /// Options of its mount.
    pub mount: Option<String>,
    /// The array of devices that it is on; one device without.
    pub raid: Option<Array>,
    /// The I/O scheduler of its device.
    pub scheduler: Option<String>,
    /// Limits of its device.
    #[serde(default)]
    pub limits: Vec<Limit>,
    /// Another share of reads than the study's.
    pub reads: Option<f64>,
    /// Another rate than the study's.
    pub rate: Option<f64>,
}

impl StorageArm {
    /// The title, or the name.
    pub fn title(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.name)
    }
}

/// A limit of an arm's device. Without `at` and `after` it holds from the beginning.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Set at this time since measuring began.
    pub at: Option<Time>,
    /// Set when the device has been written this much since measuring began.
    pub after: Option<Size>,
    /// Bytes per second.
    pub write_bytes: Option<Size>,
    /// Bytes per second.
    pub read_bytes: Option<Size>,
    /// Operations per second.
    pub write_operations: Option<u64>,
    /// Operations per second.
    pub read_operations: Option<u64>,
}

/// What differs in the quick variant.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quick {
    /// Length of each cell.
    #[serde(rename = "for")]
    pub length: Option<Time>,
    /// How often each arm is measured.
    pub repeats: Option<usize>,
    /// Operations per second.
    pub rate: Option<f64>,
    /// Threads of the background.
    pub threads: Option<usize>,
    /// Number of files.
    pub files: Option<usize>,
    /// Size of the archive.
    pub archive: Option<Size>,
    /// When measuring begins.
    pub warm_up: Option<WarmUp>,
    /// When all victims start.
    pub at: Option<Vec<Time>>,
    /// Period of all victims.
    pub every: Option<Time>,
    /// When those limits are set that have an `at`.
    pub limits: Option<Time>,
    /// Scale of pgbench's tables.
    pub scale: Option<u32>,
}

pub(super) fn one() -> usize {
    1
}

pub(super) fn seed() -> u64 {
    1
}

pub(super) fn yes() -> bool {
    true
}

pub(super) fn half() -> f64 {
    0.5
}

pub(super) fn block() -> Size {
    Size(8192)
}

pub(super) fn ten_seconds() -> Time {
    Time(Duration::from_secs(10))
}

pub(super) fn ten_minutes() -> Time {
    Time(Duration::from_secs(600))
}

pub(super) fn one_hour() -> Time {
    Time(Duration::from_secs(3600))
}
