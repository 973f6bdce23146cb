// SPDX-License-Identifier: PostgreSQL
//! CPU time and dispatches of processes, as the kernel counts them: totals from
//! /proc/PID/task/*/schedstat, user and kernel time from /proc/PID/stat.

use std::collections::HashMap;
use std::ops::AddAssign;

use live::host::TICKS;
use process::{Proc, Schedstat, Stat};

/// CPU use of a set of processes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// CPU time, seconds.
    pub cpu: f64,
    /// CPU time in user mode, counted in ticks, seconds.
    pub user: f64,
    /// CPU time in the kernel, counted in ticks, seconds.
    pub kernel: f64,
    /// How often the scheduler dispatched them.
    pub dispatches: f64,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.cpu += other.cpu;
        self.user += other.user;
        self.kernel += other.kernel;
        self.dispatches += other.dispatches;
    }
}

impl Usage {
    fn since(&self, earlier: &Self) -> Self {
        Self {
            cpu: (self.cpu - earlier.cpu).max(0.0),
            user: (self.user - earlier.user).max(0.0),
            kernel: (self.kernel - earlier.kernel).max(0.0),
            dispatches: (self.dispatches - earlier.dispatches).max(0.0),
        }
    }

    /// Share of ticks in user mode; `None` without ticks.
    pub fn user_share(&self) -> Option<f64> {
        let all = self.user + self.kernel;
        (all > 0.0).then(|| self.user / all)
    }

    /// Reads the use of a process since its start; `None` if it has ended.
    fn read(pid: u32) -> Option<Self> {
        let proc = Proc::default();
        let stat = proc.stat(pid)?;
        let mut usage = Self {
            user: stat.user_ticks as f64 / TICKS,
            kernel: stat.system_ticks as f64 / TICKS,
            ..Self::default()
        };
        let threads = std::fs::read_dir(proc.path(pid, "task")).ok()?.flatten();
        for thread in threads.filter_map(|task| Schedstat::read(&task.path().join("schedstat"))) {
            usage.cpu += thread.on_cpu_ns as f64 * 1e-9;
            usage.dispatches += thread.dispatches as f64;
        }
        Some(usage)
    }
}

/// All processes at one time.
#[derive(Debug, Clone, Default)]
pub struct Census(HashMap<u32, Entry>);

#[derive(Debug, Clone, Copy)]
struct Entry {
    parent: u32,
    is_kernel: bool,
    /// CPU time of the process and its reaped children, seconds.
    worked: f64,
}

/// A kernel thread, in the flags of /proc/PID/stat (PF_KTHREAD of the kernel's sched.h).
const KERNEL_THREAD: u64 = 0x0020_0000;

impl Census {
    /// Reads all processes.
    pub fn take() -> Self {
        let proc = Proc::default();
        let known = |pid| Some((pid, proc.stat(pid)?.into()));
        Self(proc.pids().filter_map(known).collect())
    }

    /// A process and all its descendants.
    pub fn family(&self, pid: u32) -> Vec<u32> {
        let mut all = vec![pid];
        let mut at = 0;
        while let Some(parent) = all.get(at).copied() {
            let children = self.0.iter().filter(|(_, entry)| entry.parent == parent);
            all.extend(children.map(|(child, _)| *child).filter(|child| *child != parent));
            at += 1;
        }
        all
    }

    /// CPU time since an earlier census, seconds, of processes that are neither kernel threads nor
    /// descendants of this process.
    pub fn foreign_since(&self, earlier: &Self) -> f64 {
        let ours = self.family(std::process::id());
        self.0
            .iter()
            .filter(|(pid, entry)| !entry.is_kernel && !ours.contains(pid))
            .map(|(pid, now)| match earlier.0.get(pid) {
                Some(then) => (now.worked - then.worked).max(0.0),
                None => now.worked,
            })
            .sum()
    }
}

impl From<Stat> for Entry {
    fn from(stat: Stat) -> Self {
        let ticks = stat.user_ticks + stat.system_ticks + stat.children_ticks;
        Self {
            parent: stat.parent,
            is_kernel: stat.flags & KERNEL_THREAD != 0,
            worked: ticks as f64 / TICKS,
        }
    }
}

/// Measures the CPU use of processes since the first call of [`ProcessMeter::look`]. A process that ends counts up
/// to the last call; one that starts later counts from its start.
#[derive(Debug, Default)]
pub struct ProcessMeter {
    first: HashMap<u32, Usage>,
    last: HashMap<u32, Usage>,
    begun: bool,
}

impl ProcessMeter {
    /// Measures these processes.
    pub fn look(&mut self, pids: &[u32]) {
        for pid in pids {
            let Some(usage) = Usage::read(*pid) else { continue };
            if !self.begun {
                self.first.insert(*pid, usage);
            }
            self.last.insert(*pid, usage);
        }
        self.begun = true;
    }

    /// Their CPU use between the first and the last call of [`ProcessMeter::look`].
    pub fn used(&self) -> Usage {
        let mut sum = Usage::default();
        for (pid, last) in &self.last {
            sum += last.since(&self.first.get(pid).copied().unwrap_or_default());
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn only_work_after_the_first_measurement_counts() {
        let own = [std::process::id()];
        let mut meter = ProcessMeter::default();
        meter.look(&own);
        assert_eq!(meter.used(), Usage::default());
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(100) {
            std::hint::black_box(0);
        }
        meter.look(&own);
        let used = meter.used();
        // A busy machine may give us only little of that time.
        assert!(used.cpu > 0.001 && used.cpu < 60.0, "{used:?}");
    }

    #[test]
    fn a_family_is_the_process_and_its_children() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let family = Census::take().family(std::process::id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(family[0], std::process::id());
        assert!(family.contains(&child.id()));
    }

    #[test]
    fn a_process_counts_from_the_first_measurement_or_its_start() {
        let used = |n: f64| Usage { cpu: n, user: 2.0 * n, kernel: 3.0 * n, dispatches: 4.0 * n };
        let first = HashMap::from([(1, used(10.0)), (3, used(5.0))]);
        let last = HashMap::from([(1, used(15.0)), (2, used(7.0)), (3, used(5.0))]);
        assert_eq!(ProcessMeter { first, last, begun: true }.used(), used(12.0));
    }

    #[test]
    fn foreign_work_is_that_of_others_in_between() {
        let entry = |parent, is_kernel, worked| Entry { parent, is_kernel, worked };
        let own = std::process::id();
        let (child, other) = (own + 1, own + 2);
        let earlier = Census([(1, entry(0, false, 5.0)), (own, entry(1, false, 1.0))].into());
        let now = Census(HashMap::from([
            (1, entry(0, false, 8.0)),
            (2, entry(0, true, 100.0)),
            (own, entry(1, false, 50.0)),
            (child, entry(own, false, 20.0)),
            (other, entry(1, false, 2.0)),
        ]));
        assert_eq!(now.foreign_since(&earlier), 3.0 + 2.0);
    }
}
