// SPDX-License-Identifier: PostgreSQL
//! How long a recording keeps its details.

use std::time::Duration;

/// When rows become coarser, and when they are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionPolicy {
    /// The age at which details are merged into details of one minute.
    pub details: Duration,
    /// The age at which intervals are merged into intervals of ten seconds.
    pub tens: Duration,
    /// The age at which intervals are merged into intervals of one minute.
    pub sixties: Duration,
    /// The age at which rows are removed; `None`: never.
    pub retention: Option<Duration>,
}

impl Default for RetentionPolicy {
    fn default() -> RetentionPolicy {
        let hours = |n: u64| Duration::from_secs(n * 3600);
        RetentionPolicy {
            details: hours(1),
            tens: hours(24),
            sixties: hours(7 * 24),
            retention: None,
        }
    }
}
