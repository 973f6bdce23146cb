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

/// Processor time of a process and its threads, ns; of threads that have ended, none.
pub fn processor_ns(pid: u32) -> Result<u64, Box<dyn std::error::Error>> {
    let mut sum = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = std::fs::read_to_string(thread?.path().join("schedstat"))?;
        sum += text.split(' ').next().unwrap_or("").parse::<u64>()?;
    }
    Ok(sum)
}

/// The greatest resident memory of a process, as the kernel writes it.
pub fn most_memory(pid: u32) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| Some(line.strip_prefix("VmHWM:")?.trim().to_string()))
}
