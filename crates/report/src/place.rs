// SPDX-License-Identifier: PostgreSQL
//! A recording that a command reads: a directory, or a copy of the requested time range from a bucket.

use std::path::{Path, PathBuf};

use crate::Edge;
use error::Error;
use recording::Recording;
use ship::{Bucket, Shipped};
use tempfile::TempDir;

const HOUR_US: i64 = 3_600_000_000;

/// The directory of a recording. A copy is removed when this is dropped.
#[derive(Debug)]
pub enum RecordingPlace {
    /// The user's directory.
    Directory(PathBuf),
    /// A copy of the recording at this URL.
    Copy(TempDir, String),
}

impl RecordingPlace {
    /// Opens a directory as it is; from a bucket, copies the server of this cluster and host from `from` to `to`.
    pub fn open(
        place: &Path,
        (cluster, host): (Option<&str>, Option<&str>),
        (from, to): (Option<Edge>, Option<Edge>),
    ) -> Result<RecordingPlace, Error> {
        let Some(url) = place.to_str().filter(|text| ship::is_url(text)) else {
            if cluster.is_some() {
                let text = "--cluster requires the URL of a bucket (s3://BUCKET/PREFIX)";
                return Err(Error::Usage(text.into()));
            }
            return Ok(RecordingPlace::Directory(place.to_path_buf()));
        };
        let bucket = Bucket::open(url)?;
        let shipped = Shipped::find(bucket, cluster, host)?;
        let end = shipped.end_us() as f64 * 1e-6;
        let us = |edge: Edge| (edge.resolve(end) * 1e6).round() as i64;
        // A time relative to the end may be up to an hour earlier, because the end is that of a file.
        let from = from.map_or(i64::MIN, |edge| us(edge).saturating_sub(HOUR_US));
        let to = to.map_or(i64::MAX, us);
        let folder =
            files::temporary_folder(&std::env::temp_dir(), "pgtally.", files::Access::Owner)?;
        shipped.copy(from, to, folder.path())?;
        Ok(RecordingPlace::Copy(folder, url.to_string()))
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        match self {
            RecordingPlace::Directory(directory) => directory,
            RecordingPlace::Copy(folder, _) => folder.path(),
        }
    }

    /// The URL, if it is a copy. A copy is of one host.
    pub fn url(&self) -> Option<&str> {
        match self {
            RecordingPlace::Directory(_) => None,
            RecordingPlace::Copy(_, url) => Some(url),
        }
    }

    /// The name by which the user specified it.
    pub fn name(&self) -> String {
        self.url().map_or_else(|| self.directory().display().to_string(), str::to_string)
    }

    /// Opens it; `host` selects one of several machines.
    pub fn recording(&self, host: Option<&str>) -> Result<Recording, Error> {
        Ok(Recording::open(self.directory(), host.filter(|_| self.url().is_none()))?)
    }

    /// Whether both are the same recording.
    pub fn is(&self, other: &RecordingPlace) -> bool {
        match (self, other) {
            (RecordingPlace::Directory(a), RecordingPlace::Directory(b)) => {
                let (a, b) = (a.canonicalize().ok(), b.canonicalize().ok());
                a.is_some() && a == b
            }
            (RecordingPlace::Copy(_, a), RecordingPlace::Copy(_, b)) => a == b,
            _ => false,
        }
    }
}
