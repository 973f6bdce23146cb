// SPDX-License-Identifier: PostgreSQL
//! The kernel's figures for the whole machine.

/// The machine during an interval, from /proc/stat: all processes, not only the server's.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostMetrics {
    /// Average number of busy CPUs.
    pub busy: f64,
    /// Average number of CPUs that were idle while some process waited for storage.
    pub iowait: f64,
    /// Average number of processes running or ready to run; `None` if unknown.
    pub runnable: Option<f64>,
}
