// SPDX-License-Identifier: PostgreSQL
//! fio's status report, one JSON document per second.

use std::collections::BTreeMap;
use std::io::BufRead;

use serde::Deserialize;

/// A report: the totals of each thread since its start.
#[derive(Debug, Clone, Deserialize)]
pub struct Document {
    /// When fio began to make it, milliseconds since 1970.
    timestamp_ms: u64,
    /// The threads, in the order of the job file.
    jobs: Vec<Job>,
    /// When it arrived, seconds since 1970. The totals are of that time: fio waits for each thread's next
    /// operation in between.
    #[serde(skip)]
    pub time: f64,
}

#[derive(Debug, Clone, Deserialize)]
struct Job {
    error: i64,
    job_runtime: u64,
    read: Direction,
    write: Direction,
}

#[derive(Debug, Clone, Deserialize)]
struct Direction {
    total_ios: u64,
    io_bytes: u64,
    lat_ns: Latency,
}

#[derive(Debug, Clone, Deserialize)]
struct Latency {
    #[serde(default)]
    bins: BTreeMap<u64, u64>,
}

/// The totals of a thread since its start.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Totals {
    /// Completed operations.
    pub operations: u64,
    /// Bytes read or written by them.
    pub bytes: u64,
    /// Their durations, by nanoseconds; fio's bins are 1.6 % wide.
    pub durations: BTreeMap<u64, u64>,
    /// When the thread started, seconds since 1970; `None` until it has.
    pub began: Option<f64>,
    /// The error number that ended the thread.
    pub error: Option<i64>,
}

impl Document {
    /// The totals of each thread. A thread only reads or only writes, so both can be added.
    pub fn threads(self) -> Vec<Totals> {
        let timestamp = self.timestamp_ms;
        let totals = |job: Job| {
            let mut durations = job.read.lat_ns.bins;
            for (ns, count) in job.write.lat_ns.bins {
                *durations.entry(ns).or_default() += count;
            }
            Totals {
                operations: job.read.total_ios + job.write.total_ios,
                bytes: job.read.io_bytes + job.write.io_bytes,
                durations,
                began: (job.job_runtime > 0)
                    .then(|| timestamp.saturating_sub(job.job_runtime) as f64 * 1e-3),
                error: (job.error != 0).then_some(job.error),
            }
        };
        self.jobs.into_iter().map(totals).collect()
    }
}

/// Reads documents until the end of fio's output; other lines are messages.
pub fn read(
    from: impl BufRead,
    now: impl Fn() -> f64,
    mut document: impl FnMut(Document),
    mut message: impl FnMut(&str),
) {
    let (mut text, mut time) = (String::new(), None);
    for line in from.lines() {
        let Ok(line) = line else { return };
        match (time, line.as_str()) {
            (None, "{") => time = Some(now()),
            (None, other) => {
                if !other.trim().is_empty() {
                    message(other.trim());
                }
                continue;
            }
            _ => {}
        }
        text.push_str(&line);
        if line == "}" {
            match serde_json::from_str::<Document>(&text) {
                Ok(found) => document(Document { time: time.unwrap_or_default(), ..found }),
                Err(error) => message(&format!("could not read fio's report: {error}")),
            }
            text.clear();
            time = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"fio: opendir added 16 files
{
  "timestamp_ms" : 5000,
  "jobs" : [
    { "error" : 0, "job_runtime" : 2000,
      "read" : { "total_ios" : 3, "io_bytes" : 24576, "lat_ns" : { "bins" : { "2384" : 1, "99000" : 2 } } },
      "write" : { "total_ios" : 0, "io_bytes" : 0, "lat_ns" : { "min" : 0 } } },
    { "error" : 28, "job_runtime" : 0,
      "read" : { "total_ios" : 0, "io_bytes" : 0, "lat_ns" : { } },
      "write" : { "total_ios" : 0, "io_bytes" : 0, "lat_ns" : { } } }
  ]
}

fio: terminating on signal 2
{
  "jobs" : 7
}
"#;

    #[test]
    fn reports_are_separated_from_messages() {
        let (mut documents, mut messages) = (Vec::new(), Vec::new());
        read(
            TEXT.as_bytes(),
            || 5.1,
            |document| documents.push(document),
            |line| messages.push(line.to_string()),
        );
        assert_eq!(messages.len(), 3);
        assert_eq!(messages[0], "fio: opendir added 16 files");
        assert!(messages[2].contains("could not read fio's report"), "{messages:?}");
        assert_eq!((documents.len(), documents[0].time), (1, 5.1));
        let threads = documents.remove(0).threads();
        assert_eq!((threads[0].operations, threads[0].bytes), (3, 24576));
        assert_eq!(threads[0].began, Some(3.0));
        assert_eq!(threads[0].durations, BTreeMap::from([(2384, 1), (99000, 2)]));
        assert_eq!((threads[1].began, threads[1].error), (None, Some(28)));
    }
}
