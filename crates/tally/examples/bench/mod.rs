// SPDX-License-Identifier: PostgreSQL
//! Code shared by the examples that measure.
#![allow(dead_code)] // each example uses a part of it

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use scratch::Cluster;

/// The path of a cluster's segment, which is removed with the cluster in any case.
pub fn segment(cluster: &mut Cluster) -> std::io::Result<PathBuf> {
    let data = std::fs::metadata(cluster.data_dir())?;
    let path = PathBuf::from(format!("/dev/shm/pg_tally.{:x}.{:x}", data.dev(), data.ino()));
    cluster.also_remove(&path);
    Ok(path)
}

/// The `tally` program of the same build.
pub fn program() -> Result<PathBuf, Box<dyn std::error::Error>> {
    let own = std::env::current_exe()?;
    let folder = own.parent().and_then(Path::parent).ok_or("this program has no folder")?;
    let path = folder.join("tally");
    match path.is_file() {
        true => Ok(path),
        false => Err(format!("{} does not exist; build it first", path.display()).into()),
    }
}

/// Formats the median with its 95 % interval from order statistics.
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

/// Formats the mean of at least two values with the half-width of its 95 % interval.
pub fn mean(values: &[f64], unit: &str, decimals: usize) -> String {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = student(n - 1.0) * (variance / n).sqrt();
    format!("{mean:.decimals$} {unit} ± {half:.decimals$} (95 %, of {n})")
}

/// The 97.5 % quantile of Student's t, by the Cornish-Fisher expansion of the normal quantile; exact for up
/// to four degrees of freedom, where the expansion is inaccurate.
fn student(degrees: f64) -> f64 {
    const FEW: [f64; 4] = [12.706, 4.303, 3.182, 2.776];
    if let Some(exact) = FEW.get(degrees as usize - 1) {
        return *exact;
    }
    let z: f64 = 1.959_964;
    let first = (z.powi(3) + z) / (4.0 * degrees);
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * degrees.powi(2));
    z + first + second
}

/// CPU time of a process's threads, ns, excluding threads that have ended.
pub fn processor_ns(pid: u32) -> Result<u64, Box<dyn std::error::Error>> {
    let mut sum = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        match std::fs::read_to_string(thread?.path().join("schedstat")) {
            Ok(text) => sum += text.split(' ').next().unwrap_or("").parse::<u64>()?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(sum)
}

/// The maximum resident memory of a process, as the kernel prints it.
pub fn max_memory(pid: u32) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| Some(line.strip_prefix("VmHWM:")?.trim().to_string()))
}
