// SPDX-License-Identifier: PostgreSQL
//! A scratch server with the extension in all its processes.

use std::path::Path;

use scratch::{Builder, Cluster};
use segment::SegmentPath;

use crate::library::Library;
use crate::target;
use error::Error;

/// Create the cluster with pg_tally and start it. Returns it and the path of its segment, which
/// is removed with the cluster.
pub fn start(builder: Builder) -> Result<(Cluster, SegmentPath), Error> {
    let (mut cluster, place) = create(builder, &[])?;
    cluster.start()?;
    check(&cluster, &place)?;
    Ok((cluster, place))
}

/// Create the cluster without starting it. `more_libraries` are loaded in addition to pg_tally.
pub fn create(
    builder: Builder,
    more_libraries: &[String],
) -> Result<(Cluster, SegmentPath), Error> {
    let binaries = scratch::Binaries::find()?;
    let library = Library::find(&binaries)?;
    let mut libraries = vec!["pg_tally"];
    libraries.extend(more_libraries.iter().map(String::as_str));
    let mut cluster = match library {
        Library::Built(file) => builder.library(file),
        Library::Installed(_) => builder,
    }
    .binaries(binaries)
    .setting("shared_preload_libraries", &libraries.join(", "))
    .create()?;
    let place = target::segment_path_in(Path::new(target::DEFAULT_FOLDER), cluster.data_dir())?;
    // A server that is killed cannot remove its segment itself.
    cluster.also_remove(place.path());
    Ok((cluster, place))
}

/// Fails unless the extension is active in the server.
pub fn check(cluster: &Cluster, segment: &SegmentPath) -> Result<(), Error> {
    if segment.is_owners() {
        return Ok(());
    }
    Err(Error::Failed(format!(
        "pg_tally is not active in the scratch server; the end of its log:\n{}",
        cluster.log_tail(10)
    )))
}
