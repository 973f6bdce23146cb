// SPDX-License-Identifier: PostgreSQL
//! Copies part of one host's files from a bucket into a directory, as a recording.

use crate::bucket::Bucket;
use crate::error::Error;
use crate::layout::{arrived, grades, Object, Origin};
use files::Access;
use recording::{DataFile, TABLES};
use std::path::Path;

/// Rows that do not belong to an interval may be in a file that begins this much earlier or later; texts are written
/// once a day, and servers and settings only when they change.
const SLACK_US: i64 = 3_600_000_000;

/// The servers whose recordings a bucket has. Fails if there are none.
pub fn origins(bucket: &Bucket) -> Result<Vec<Origin>, Error> {
    let mut origins: Vec<Origin> = Vec::new();
    for object in bucket.list("recordings")? {
        let mut parts = object.key.trim_end_matches(".json").split('/').skip(1);
        let mut next = |before: &str| Some(parts.next()?.strip_prefix(before)?.to_string());
        if let (Some(cluster), Some(host)) = (next("cluster="), next("host=")) {
            origins.push(Origin { cluster, host });
        }
    }
    if origins.is_empty() {
        let reason = "no recording has been shipped there".into();
        return Err(Error::Nothing { url: bucket.url().to_string(), reason });
    }
    Ok(origins)
}

/// The origin that the cluster and host select.
fn origin(bucket: &Bucket, cluster: Option<&str>, host: Option<&str>) -> Result<Origin, Error> {
    let nothing = |reason: String| Error::Nothing { url: bucket.url().to_string(), reason };
    let origins = origins(bucket)?;
    let all = |of: &dyn Fn(&Origin) -> &String| {
        let mut names: Vec<&str> = origins.iter().map(|origin| of(origin).as_str()).collect();
        names.dedup();
        let more = if names.len() > 20 { ", …" } else { "" };
        names.truncate(20);
        names.join(", ") + more
    };
    let found: Vec<&Origin> =
        origins.iter().filter(|origin| origin.is_selected(cluster, host)).collect();
    match found[..] {
        [] => Err(nothing(format!(
            "no recording of this cluster and host; there are clusters {} and hosts {}",
            all(&|origin| &origin.cluster),
            all(&|origin| &origin.host)
        ))),
        [one] => Ok(one.clone()),
        _ => Err(nothing(format!(
            "contains recordings of several servers (clusters {}; hosts {}); select one with --cluster and --host",
            all(&|origin| &origin.cluster),
            all(&|origin| &origin.host)
        ))),
    }
}

/// The files of one server in a bucket.
#[derive(Debug)]
pub struct Shipped {
    bucket: Bucket,
    origin: Origin,
    end_us: i64,
}

/// Totals of copied files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copied {
    /// Number of files.
    pub files: u64,
    /// Their total size, bytes.
    pub bytes: u64,
}

impl Shipped {
    /// The only server, or the one that these names select.
    pub fn find(
        bucket: Bucket,
        cluster: Option<&str>,
        host: Option<&str>,
    ) -> Result<Shipped, Error> {
        let origin = origin(&bucket, cluster, host)?;
        let mut shipped = Shipped { bucket, origin, end_us: 0 };
        let files = shipped.valid("frames", &shipped.frames()?)?;
        shipped.end_us = files.iter().map(|(_, file)| file.end_us()).max().unwrap_or(0);
        Ok(shipped)
    }

    /// The host.
    pub fn host(&self) -> &str {
        &self.origin.host
    }

    /// A time at most an hour after the end of its last interval, microseconds since 1970.
    pub fn end_us(&self) -> i64 {
        self.end_us
    }

    fn objects(&self, table: &str) -> Result<Vec<Object>, Error> {
        let listed = self.bucket.list(&self.origin.folder(table))?;
        Ok(listed.iter().filter_map(|object| Object::parse(&object.key)).collect())
    }

    /// The objects of `frames` of the latest recording, because each recording numbers its own intervals and servers.
    fn frames(&self) -> Result<Vec<Object>, Error> {
        let mut frames = self.objects("frames")?;
        let latest = frames.iter().map(|object| object.generation).max();
        frames.retain(|object| Some(object.generation) == latest);
        Ok(frames)
    }

    /// The valid files of a table: objects, and the files to copy them to.
    fn valid(&self, table: &str, frames: &[Object]) -> Result<Vec<(Object, DataFile)>, Error> {
        let mut objects = self.objects(table)?;
        objects.retain(|object| {
            frames.first().is_some_and(|frame| frame.generation == object.generation)
        });
        let of_frames = grades(frames);
        let (all, early) = (grades(&objects), grades(arrived(&objects, &of_frames)));
        // Replaced files may have been removed since `frames` was listed.
        let best = |object: &Object| early.get(&object.hour()).or(all.get(&object.hour())).copied();
        let valid = objects.iter().filter(|object| best(object) == Some(object.grade));
        let file = |object: &Object| {
            let name = format!("{}-{}.parquet", object.time, object.grade.name());
            DataFile::from_path(&Path::new(&format!("date={}", object.date)).join(name))
        };
        Ok(valid.filter_map(|object| Some((object.clone(), file(object)?))).collect())
    }

    /// Copy the valid files between these times, microseconds since 1970, into an empty directory, which becomes
    /// a recording.
    pub fn copy(&self, from_us: i64, to_us: i64, into: &Path) -> Result<Copied, Error> {
        let mut copied = Copied::default();
        self.copy_object(&self.origin.about(), &into.join("recording.json"), &mut copied)?;
        let frames = self.frames()?;
        for table in TABLES {
            let folder = into.join(table).join(format!("host={}", self.origin.host));
            // A file that is removed meanwhile was merged; the next listing has the file that it was merged into.
            for _ in 0..3 {
                if self.copy_table(table, &frames, (from_us, to_us), &folder, &mut copied)? {
                    break;
                }
                let _ = std::fs::remove_dir_all(&folder);
            }
        }
        Ok(copied)
    }

    /// Returns false if a file was removed meanwhile.
    fn copy_table(
        &self,
        table: &str,
        frames: &[Object],
        (from_us, to_us): (i64, i64),
        folder: &Path,
        copied: &mut Copied,
    ) -> Result<bool, Error> {
        let slack = match table {
            "servers" | "settings" => i64::MAX,
            "statement_texts" | "plan_texts" => 24 * SLACK_US,
            _ => SLACK_US,
        };
        for (object, file) in self.valid(table, frames)? {
            let early = file.end_us() < from_us.saturating_sub(slack);
            let late = file.begin_us > to_us.saturating_add(slack);
            if !early
                && !late
                && !self.copy_object(&object.key(), &folder.join(file.path), copied)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns false if the object does not exist.
    fn copy_object(&self, key: &str, path: &Path, copied: &mut Copied) -> Result<bool, Error> {
        let Some((bytes, _)) = self.bucket.get(key)? else { return Ok(false) };
        let folder = path.parent().unwrap_or(Path::new("."));
        files::folder(folder, Access::Owner).map_err(Error::io(folder))?;
        files::write(path, &bytes, Access::Owner).map_err(Error::io(path))?;
        copied.files += 1;
        copied.bytes += bytes.len() as u64;
        Ok(true)
    }
}
