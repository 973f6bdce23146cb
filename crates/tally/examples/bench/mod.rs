// SPDX-License-Identifier: PostgreSQL
//! What the measuring examples share.
#![allow(dead_code)] // each example uses a part of it

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use scratch::Cluster;

/// Where a cluster's segment is, or will be; it goes with the cluster, however that ends.
pub fn segment(cluster: &mut Cluster) -> std::io::Result<PathBuf> {
    let data = std::fs::metadata(cluster.data_dir())?;
    let path = PathBuf::from(format!("/dev/shm/pg_tally.{:x}.{:x}", data.dev(), data.ino()));
    cluster.also_remove(&path);
    Ok(path)
}

/// The command of the same build.
pub fn program() -> Result<PathBuf, Box<dyn std::error::Error>> {
    let own = std::env::current_exe()?;
    let folder = own.parent().and_then(Path::parent).ok_or("this program has no folder")?;
    let path = folder.join("tally");
    match path.is_file() {
        true => Ok(path),
        false => Err(format!("{} does not exist; build it first", path.display()).into()),
    }
}

/// The median with the 95 % interval from its order statistics, in words.
pub fn median(mut values: Vec<f64>, unit: &str, decimals: usize) -> String {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let reach = 0.98 * n.sqrt();
    let at = |rank: f64| values[(rank.max(0.0) as usize).min(values.len() - 1)];
    format!(
        "{:.decimals$} {unit} (95 %: {:.decimals$} .. {:.decimals$}) of {n}",
        at(n / 2.0),
        at(n / 2.0 - reach),
        at(n / 2.0 + reach)
    )
}
