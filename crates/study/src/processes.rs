// SPDX-License-Identifier: PostgreSQL
//! What processes have used, as the kernel counts it: time on a processor and how often they were put
//! on one from /proc/PID/task/*/schedstat, its halves from /proc/PID/stat.

use std::collections::HashMap;
use std::ops::AddAssign;

use live::host::TICKS;

/// What some processes have used.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Time on a processor, seconds.
    pub cpu: f64,
    /// Of that, by ticks, in user mode.
    pub user: f64,
    /// And in the kernel.
    pub kernel: f64,
    /// How often the kernel put them on a processor.
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

    /// The part in user mode of what the ticks found; none where they found nothing.
    pub fn user_share(&self) -> Option<f64> {
        let all = self.user + self.kernel;
        (all > 0.0).then(|| self.user / all)
    }

    /// Of one process since it began; none when it is gone.
    fn of(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().collect();
        // The state is the third field of the file and the first of these.
        let ticks = |at: usize| Some(fields.get(at)?.parse::<u64>().ok()? as f64 / TICKS);
        let mut usage = Self { user: ticks(11)?, kernel: ticks(12)?, ..Self::default() };
        for task in std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
            let text = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
            let mut numbers = text.split_ascii_whitespace().map(|n| n.parse::<u64>().unwrap_or(0));
            usage.cpu += numbers.next().unwrap_or(0) as f64 * 1e-9;
            usage.dispatches += numbers.nth(1).unwrap_or(0) as f64;
        }
        Some(usage)
    }
}

/// All processes, looked at once.
#[derive(Debug, Clone, Default)]
pub struct Census(HashMap<u32, Entry>);

#[derive(Debug, Clone, Copy)]
struct Entry {
    parent: u32,
    is_kernel: bool,
    /// Its own time and that of its children that have ended, seconds.
    worked: f64,
}

/// A kernel thread, in the flags of /proc/PID/stat (PF_KTHREAD of the kernel's sched.h).
const KERNEL_THREAD: u64 = 0x0020_0000;

impl Census {
    /// Look at all of them.
    pub fn take() -> Self {
        let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        Self(pids.filter_map(|pid| Some((pid, Entry::of(pid)?))).collect())
    }

    /// A process and all that descend from it.
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

    /// What processes that are neither the kernel's nor of our own family have worked since an
    /// earlier look, seconds.
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

impl Entry {
    fn of(pid: u32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let ticks: u64 = (11..15).filter_map(number).sum();
        Some(Self {
            parent: u32::try_from(number(1)?).ok()?,
            is_kernel: number(6)? & KERNEL_THREAD != 0,
            worked: ticks as f64 / TICKS,
        })
    }
}

/// What processes have used since a first look. One that ends in between counts up to the last look
/// at it, one that begins from its beginning.
#[derive(Debug, Default)]
pub struct Meter {
    first: HashMap<u32, Usage>,
    last: HashMap<u32, Usage>,
    begun: bool,
}

impl Meter {
    /// Look at these processes.
    pub fn look(&mut self, pids: &[u32]) {
        for pid in pids {
            let Some(usage) = Usage::of(*pid) else { continue };
            if !self.begun {
                self.first.insert(*pid, usage);
            }
            self.last.insert(*pid, usage);
        }
        self.begun = true;
    }

    /// What they have used from the first look to the last one.
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
    fn what_a_process_works_is_seen_and_what_it_did_before_is_not() {
        let own = [std::process::id()];
        let mut meter = Meter::default();
        meter.look(&own);
        assert_eq!(meter.used(), Usage::default());
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(100) {
            std::hint::black_box(0);
        }
        meter.look(&own);
        let used = meter.used();
        // A busy machine may have given us little of that time.
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
    fn our_own_work_is_not_foreign() {
        let after = Census::take();
        // Since nothing, all that strangers have ever worked.
        let nothing = Census::default();
        let own = after.0[&std::process::id()].worked;
        let all: f64 = after.0.values().filter(|entry| !entry.is_kernel).map(|e| e.worked).sum();
        assert!(after.foreign_since(&nothing) <= all - own + 1e-9);
    }
}
