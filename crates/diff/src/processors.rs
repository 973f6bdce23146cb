// SPDX-License-Identifier: PostgreSQL
//! The use of a machine's CPUs while a side was recorded.

use recording::{FrameRow, KernelRow};
use serde::Serialize;

/// The CPUs of the machine while a side was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Processors {
    /// Number of CPUs.
    pub all: f64,
    /// Mean number of CPUs used by processes other than the server's sessions.
    pub others: f64,
    /// Share of the sessions' CPU demand that was spent waiting for a CPU.
    pub waiting_share: f64,
    /// Mean number of CPUs used by the server's sessions.
    pub sessions: f64,
}

impl Processors {
    /// From the kernel's counters; `None` if they were not recorded.
    pub fn from_rows(heads: &[FrameRow], kernel: &[KernelRow]) -> Option<Processors> {
        let sum = |figure: fn(&KernelRow) -> u64| kernel.iter().map(figure).sum::<u64>() as f64;
        let (on_cpu, queued) = (sum(|row| row.on_cpu_ns), sum(|row| row.run_queue_ns));
        let (known, length) = (sum(|row| row.interval_ns), heads.iter().map(|row| row.interval_ns));
        let length = length.sum::<u64>() as f64;
        let busy: u64 = heads.iter().map(|row| row.host_user_ns + row.host_system_ns).sum();
        if busy == 0 || on_cpu == 0.0 || known == 0.0 || length == 0.0 {
            return None;
        }
        Some(Processors {
            all: heads.last()?.cores as f64,
            others: (busy as f64 / length - on_cpu / known).max(0.0),
            waiting_share: queued / (on_cpu + queued),
            sessions: on_cpu / known,
        })
    }
}
