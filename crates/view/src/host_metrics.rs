// SPDX-License-Identifier: PostgreSQL
//! What the kernel counts of the whole machine.

/// The machine over an interval, from /proc/stat: all processes, not only the server's.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostMetrics {
    /// Processors at work, on average.
    pub busy: f64,
    /// Processors idle while something waited for storage, on average.
    pub iowait: f64,
    /// Processes that ran or were ready to, on average; `None`: not known.
    pub runnable: Option<f64>,
}
