// SPDX-License-Identifier: PostgreSQL
//! Memory of the segment.

use crate::case::Case;
use crate::diagnosis::{Confidence, Diagnosis, Kind, Rule};
use view::units::{bytes, duration, whole};

/// The segment finds no memory for sessions and statements, or soon will not: its file system is small, as a container's /dev/shm.
pub fn small_file_system(case: &Case<'_>) -> Vec<Diagnosis> {
    /// Part of its limit.
    const MUCH: f64 = 0.75;

    let refused = case.whole.overflow_in_interval.memory;
    let limited = case.whole.memory.filter(|memory| memory.is_limited());
    let nearly = limited.is_some_and(|memory| memory.held as f64 >= MUCH * memory.limit as f64);
    if refused == 0 && !nearly {
        return Vec::new();
    }
    let text = match refused {
        0 => "The file system of the segment is small: further sessions and statements may get no memory there.".to_owned(),
        n => format!(
            "The file system of the segment is too small: {} {} in {} there was no memory for a session or statement, whose \
             figures are missing.",
            whole(n),
            if n == 1 { "time" } else { "times" },
            duration(case.whole.interval_seconds)
        ),
    };
    let holds = limited.map(|memory| {
        format!(
            "The segment takes {} and may take {}: a quarter of its file system. The rest is left to the server, as for parallel queries.",
            bytes(memory.held as f64),
            bytes(memory.limit as f64)
        )
    });
    vec![Diagnosis {
        rule: Rule::SmallFileSystem,
        kind: Kind::Problem,
        text,
        seconds: 0.0,
        share: None,
        evidence: holds.into_iter().collect(),
        advice: "Give it a larger one: docker run --shm-size=1g, in Kubernetes a memory volume at /dev/shm, or \
                 pg_tally.directory on another tmpfs. A lower pg_tally.max_statements or pg_tally.max_slots takes less."
            .into(),
        confidence: if refused > 0 { Confidence::Certain } else { Confidence::Likely },
        section: "statements",
        consequence_of: None,
    }]
}
