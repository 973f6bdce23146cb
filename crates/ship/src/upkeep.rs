// SPDX-License-Identifier: PostgreSQL
//! Upkeep of a bucket, by its administrator: removes merged files, and days beyond the retention.
//!
//! This is safe while others write and read. Merged files are not valid; they stay for a grace period for readers
//! that have listed them. (Recorders remove them themselves, so those that are left come from recorders that were
//! killed or replaced.) A recorder never reads files that it has sent.

use crate::bucket::{Bucket, Listed};
use crate::error::Error;
use crate::layout::{grades, Object};
use crate::pass::GRACE;
use recording::TABLES;
use std::collections::HashMap;
use std::time::Duration;

/// Which files to remove.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Remove days that ended at least this long ago.
    pub keep: Option<Duration>,
    /// How long readers may still use merged files.
    pub grace: Duration,
    /// Only report; remove nothing.
    pub dry_run: bool,
}

impl Default for Rules {
    fn default() -> Rules {
        Rules { keep: None, grace: GRACE, dry_run: false }
    }
}

/// The files that were removed, or would be removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Removed {
    /// Files examined.
    pub files: u64,
    /// Their total size, bytes.
    pub bytes: u64,
    /// Files that were merged into others.
    pub merged_files: u64,
    /// Their total size, bytes.
    pub merged_bytes: u64,
    /// Files of days beyond the retention.
    pub old_files: u64,
    /// Their total size, bytes.
    pub old_bytes: u64,
}

/// The first day to keep: "2026-03-01".
fn first_day(now_us: i64, keep: Duration) -> Option<String> {
    let now = jiff::Timestamp::from_microsecond(now_us).ok()?;
    let begin = now.checked_sub(jiff::SignedDuration::try_from(keep).ok()?).ok()?;
    Some(begin.strftime("%Y-%m-%d").to_string())
}

fn list(bucket: &Bucket, table: &str) -> Result<Vec<(Object, Listed)>, Error> {
    let listed = bucket.list(table)?.into_iter();
    Ok(listed.filter_map(|listed| Some((Object::parse(&listed.key)?, listed))).collect())
}

/// Do the upkeep of a bucket that is due now, microseconds since 1970.
pub fn upkeep(bucket: &Bucket, rules: Rules, now_us: i64) -> Result<Removed, Error> {
    let first = rules.keep.and_then(|keep| first_day(now_us, keep));
    let mut removed = Removed::default();
    let frames = list(bucket, "frames")?;
    let of_frames = grades(frames.iter().map(|(object, _)| object));
    // When the valid files of an hour were complete: when `frames` was written, because it comes last.
    let mut since = HashMap::new();
    for (object, listed) in &frames {
        if of_frames.get(&object.hour()) == Some(&object.grade) {
            let at = since.entry(object.hour()).or_insert(listed.written_us);
            *at = listed.written_us.max(*at);
        }
    }
    for table in TABLES {
        let listed = list(bucket, table)?;
        let grace = i64::try_from(rules.grace.as_micros()).unwrap_or(i64::MAX);
        let before = now_us.saturating_sub(grace);
        let mut due: Vec<&(Object, Listed)> = Vec::new();
        for entry in &listed {
            let (object, listed) = entry;
            removed.files += 1;
            removed.bytes += listed.bytes;
            let hour = object.hour_of("frames");
            let merged = of_frames.get(&hour).is_some_and(|grade| object.grade < *grade)
                && since.get(&hour).is_some_and(|at| *at <= before);
            if first.as_ref().is_some_and(|first| object.date < *first) {
                removed.old_files += 1;
                removed.old_bytes += listed.bytes;
            } else if merged {
                removed.merged_files += 1;
                removed.merged_bytes += listed.bytes;
            } else {
                continue;
            }
            due.push(entry);
        }
        if !rules.dry_run {
            // Merged files are removed first, so that they never become valid again.
            due.sort_by_key(|(object, _)| object.grade);
            for (_, listed) in due {
                bucket.delete(&listed.key)?;
            }
        }
    }
    Ok(removed)
}
