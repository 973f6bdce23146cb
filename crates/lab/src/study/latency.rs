// SPDX-License-Identifier: PostgreSQL
//! Latencies of single transactions, from pgbench's logs. With a rate, pgbench measures from the
//! scheduled start: a stall then shows in every transaction that it delays.

use std::io::{BufRead, BufReader};
use std::path::Path;

use error::Error;

/// Latencies (ms, ascending) of the transactions that ended between two times (seconds since 1970).
/// Removes the logs.
pub fn take(prefix: &Path, from: f64, to: f64) -> Result<Vec<f64>, Error> {
    let (Some(folder), Some(name)) = (prefix.parent(), prefix.file_name()) else {
        return Ok(Vec::new());
    };
    let name = format!("{}.", name.to_string_lossy());
    let mut times = Vec::new();
    for entry in std::fs::read_dir(folder)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(&name) {
            // The server's user, who ran pgbench, may put a link or a pipe there.
            let file = files::open(&entry.path())?;
            for line in BufReader::new(file).lines() {
                times.extend(time(&line?, from, to));
            }
            std::fs::remove_file(entry.path())?;
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// The latency in one line: client, transaction number, latency in microseconds, script, and the time of
/// its end in seconds and microseconds. Failed and skipped transactions have a word instead of a
/// latency.
fn time(line: &str, from: f64, to: f64) -> Option<f64> {
    let mut fields = line.split_ascii_whitespace();
    let micros: f64 = fields.nth(2)?.parse().ok()?;
    let seconds: f64 = fields.nth(1)?.parse().ok()?;
    let rest: f64 = fields.next()?.parse().ok()?;
    let ended = seconds + 1e-6 * rest;
    (from < ended && ended <= to).then_some(micros / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_of_all_threads_are_read_and_removed() {
        let folder = std::env::temp_dir().join(format!("tally-latency.{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let log =
            "0 1 5000 0 100 500000\n0 2 1500 0 101 0\n0 3 skipped 0 101 5\n0 4 9000 0 110 0\n\
                   0 5 7000 0 100 0\n0 6 8000 0 105 0\n";
        std::fs::write(folder.join("log.77"), log).unwrap();
        std::fs::write(folder.join("log.77.1"), "1 1 250 0 100 900000 12\n").unwrap();
        std::fs::write(folder.join("other.77"), "1 1 1 0 100 900000\n").unwrap();
        let times = take(&folder.join("log"), 100.0, 105.0).unwrap();
        assert_eq!(times, [0.25, 1.5, 5.0, 8.0], "after 100 and until 105 s");
        assert!(!folder.join("log.77").exists() && folder.join("other.77").exists());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
