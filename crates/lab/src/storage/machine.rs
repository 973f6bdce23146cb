// SPDX-License-Identifier: PostgreSQL
//! The machine's memory and pressure: how full the page cache is, and how long tasks wait for I/O.

use serde::{Deserialize, Serialize};

/// The page cache and its limits in the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// File contents in memory, bytes.
    pub cached: u64,
    /// Unused memory, bytes.
    pub free: u64,
    /// Total memory, bytes.
    pub total: u64,
    /// Written data that has not reached a device, bytes.
    pub dirty: u64,
    /// Dirty bytes at which the kernel makes writers wait.
    pub dirty_limit: u64,
    /// Time in which some task waited for I/O, microseconds since boot.
    pub io_stalled_us: u64,
}

impl Memory {
    /// The current state; zero for values that the kernel does not report.
    pub fn now() -> Memory {
        let text = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        Memory::parse(&text("/proc/meminfo"), &text("/proc/vmstat"), &text("/proc/pressure/io"))
    }

    fn parse(meminfo: &str, vmstat: &str, pressure: &str) -> Memory {
        let field = |text: &str, name: &str| {
            let value =
                |line: &str| line.strip_prefix(name)?.split_ascii_whitespace().next()?.parse().ok();
            text.lines().find_map(value).unwrap_or(0u64)
        };
        let kilobytes = |name: &str| field(meminfo, name) << 10;
        let pages = |name: &str| field(vmstat, name) * rustix::param::page_size() as u64;
        let stalled =
            pressure.lines().next().and_then(|line| line.rsplit_once("total=")?.1.parse().ok());
        Memory {
            cached: kilobytes("Cached:"),
            free: kilobytes("MemFree:"),
            total: kilobytes("MemTotal:"),
            dirty: pages("nr_dirty ") + pages("nr_writeback "),
            dirty_limit: pages("nr_dirty_threshold "),
            io_stalled_us: stalled.unwrap_or(0),
        }
    }

    /// Whether the page cache is full: less than 5 % of memory is free, or writers are about to wait.
    pub fn is_full(&self) -> bool {
        self.free * 20 < self.total
            || (self.dirty_limit > 0 && self.dirty * 10 >= self.dirty_limit * 9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_memory_is_read() {
        let memory = Memory::parse(
            "MemTotal:       1000 kB\nMemFree:         100 kB\nCached:  300 kB\n",
            "nr_dirty 10\nnr_writeback 5\nnr_dirty_threshold 100\n",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=123\nfull avg10=0.00 total=7\n",
        );
        let page = rustix::param::page_size() as u64;
        assert_eq!((memory.free, memory.dirty), (100 << 10, 15 * page));
        assert_eq!((memory.io_stalled_us, memory.is_full()), (123, false));
        assert!(Memory { dirty: 90 * page, ..memory }.is_full());
        assert!(Memory { free: 49 << 10, ..memory }.is_full());
        assert!(!Memory::parse("", "", "").is_full());
        assert!(Memory::now().total > 0);
    }
}
