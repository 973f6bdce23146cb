// SPDX-License-Identifier: PostgreSQL
//! The machine: its CPU time as the kernel counts it, and its settings.

use std::fs::read_to_string;

use recording::{FrameRow, SettingRow};

use view::HostMetrics;

/// Readings at both ends of an interval may be a little earlier or later than the ends, by less than this share.
const SAME: f64 = 0.05;

/// The kernel's counters of all processors, in clock ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Processors {
    /// When they were read, CLOCK_MONOTONIC in ns.
    at_ns: u64,
    user: u64,
    system: u64,
    idle: u64,
    iowait: u64,
    steal: u64,
    runnable: u64,
}

impl Processors {
    /// Now; `None` if the kernel does not report them.
    pub fn now() -> Option<Processors> {
        let read = Processors::parse(&read_to_string("/proc/stat").ok()?)?;
        Some(Processors { at_ns: segment::clock::monotonic_ns(), ..read })
    }

    pub(crate) fn parse(text: &str) -> Option<Processors> {
        let all = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let numbers: Vec<u64> =
            all.split_ascii_whitespace().map_while(|number| number.parse().ok()).collect();
        // Guest time, which follows, is part of user time.
        let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = numbers[..] else {
            return None;
        };
        let runnable = text.lines().find_map(|line| line.strip_prefix("procs_running "));
        Some(Processors {
            at_ns: 0,
            user: user + nice,
            system: system + irq + softirq,
            idle,
            iowait,
            steal,
            runnable: runnable.and_then(|n| n.trim().parse().ok()).unwrap_or(0),
        })
    }

    /// Time that the hypervisor gave to others, ticks.
    pub fn stolen(&self) -> u64 {
        self.steal
    }

    /// Busy time of all processors, ticks.
    pub fn busy(&self) -> u64 {
        self.user + self.system
    }

    /// All time, ticks.
    pub fn total(&self) -> u64 {
        self.busy() + self.idle + self.iowait + self.steal
    }

    /// Fill an interval's row with the differences from an earlier reading. If that reading was not at the beginning of
    /// the interval (the server's start, which was noticed later), the differences are assumed to be spread evenly.
    pub fn fill(&self, before: &Processors, row: &mut FrameRow) {
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        let ratio = row.interval_ns as f64 / self.ns_since(before);
        let spread = !(1.0 - SAME..=1.0 + SAME).contains(&ratio) && ratio.is_finite();
        let ns = |now: u64, then: u64| {
            let ns = now.saturating_sub(then).saturating_mul(tick_ns);
            if spread {
                (ns as f64 * ratio) as u64
            } else {
                ns
            }
        };
        row.host_user_ns = ns(self.user, before.user);
        row.host_system_ns = ns(self.system, before.system);
        row.host_idle_ns = ns(self.idle, before.idle);
        row.host_iowait_ns = ns(self.iowait, before.iowait);
        row.host_steal_ns = ns(self.steal, before.steal);
        row.host_runnable = self.runnable;
    }

    fn ns_since(&self, before: &Processors) -> f64 {
        self.at_ns.saturating_sub(before.at_ns) as f64
    }

    /// The differences as averages over the time between the two readings.
    pub fn used(&self, before: &Processors) -> HostMetrics {
        let length = self.ns_since(before).max(1.0);
        let mut row = FrameRow { interval_ns: length as u64, ..FrameRow::default() };
        self.fill(before, &mut row);
        let mean = |ns: u64| ns as f64 / length;
        HostMetrics {
            busy: mean(row.host_user_ns.saturating_add(row.host_system_ns)),
            iowait: mean(row.host_iowait_ns),
            runnable: Some(self.runnable as f64),
        }
    }
}

/// The machine's name.
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The values of this key in /proc/cpuinfo, one per processor.
pub(crate) fn cpuinfo<'t>(text: &'t str, key: &'t str) -> impl Iterator<Item = &'t str> {
    let pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.filter(move |(name, _)| name.trim() == key).map(|(_, value)| value.trim())
}

/// Settings of the machine: names, values, units.
pub fn settings() -> Vec<SettingRow> {
    let mut rows = Vec::new();
    let mut add = |name: &str, value: Option<String>, unit: &str, source: &str| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            rows.push(SettingRow {
                group: "machine".into(),
                name: name.into(),
                value: value.trim().into(),
                unit: unit.into(),
                source: source.into(),
                ..SettingRow::default()
            });
        }
    };
    let uname = rustix::system::uname();
    let text = |part: &std::ffi::CStr| Some(part.to_string_lossy().into_owned());
    add("host", text(uname.nodename()), "", "kernel");
    add("kernel", text(uname.release()), "", "kernel");
    add("architecture", text(uname.machine()), "", "kernel");
    let cpus = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = |key: &str| cpuinfo(&cpus, key).next().map(str::to_string);
    add("processor", cpu("model name"), "", "/proc/cpuinfo");
    let count = cpus.lines().filter(|line| line.starts_with("processor")).count();
    add("processors", (count > 0).then(|| count.to_string()), "", "/proc/cpuinfo");
    let virtualized = cpu("flags").map(|f| f.split(' ').any(|flag| flag == "hypervisor"));
    add("virtual", virtualized.map(|is| is.to_string()), "", "/proc/cpuinfo");
    let memory = read_to_string("/proc/meminfo").unwrap_or_default();
    for (name, key) in [("memory", "MemTotal"), ("huge pages", "HugePages_Total")] {
        let line = memory.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        let mut words = line.unwrap_or("").split_ascii_whitespace();
        let value = words.next().map(str::to_string);
        add(name, value, words.next().unwrap_or(""), "/proc/meminfo");
    }
    let files = [
        ("clock source", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        ("frequency governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        ("transparent huge pages", "/sys/kernel/mm/transparent_hugepage/enabled"),
        ("vm.dirty_ratio", "/proc/sys/vm/dirty_ratio"),
        ("vm.dirty_background_ratio", "/proc/sys/vm/dirty_background_ratio"),
        ("vm.swappiness", "/proc/sys/vm/swappiness"),
        ("boot", "/proc/sys/kernel/random/boot_id"),
    ];
    for (name, path) in files {
        add(name, read_to_string(path).ok(), "", path);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_the_difference_of_the_kernels_counters() {
        let text = |user: u64| {
            format!("cpu  {user} 1 30 400 50 6 7 8 0 0\ncpu0 1 1 1 1\nprocs_running 3\n")
        };
        let (before, now) =
            (Processors::parse(&text(100)).unwrap(), Processors::parse(&text(150)).unwrap());
        let mut row = FrameRow::default();
        now.fill(&before, &mut row);
        let hz = rustix::param::clock_ticks_per_second();
        assert_eq!(row.host_user_ns, 50 * (1_000_000_000 / hz));
        assert_eq!((row.host_system_ns, row.host_runnable), (0, 3));
        assert!(Processors::parse("nothing").is_none());

        // The recorder did not run for a minute before the interval of one second: one second per processor, not 61.
        let hz = rustix::param::clock_ticks_per_second();
        let now = Processors { at_ns: 61_000_000_000, user: before.user + 61 * hz, ..now };
        let mut row = FrameRow { interval_ns: 1_000_000_000, ..FrameRow::default() };
        now.fill(&before, &mut row);
        assert_eq!(row.host_user_ns, 1_000_000_000);
        assert!((now.used(&before).busy - 1.0).abs() < 1e-6);
        // Readings around an interval are not scaled.
        let mut row = FrameRow { interval_ns: 60_000_000_000, ..FrameRow::default() };
        now.fill(&before, &mut row);
        assert_eq!(row.host_user_ns, 61_000_000_000);
        assert!(Processors::now().is_some());
    }

    #[test]
    fn the_machine_has_its_settings() {
        let rows = settings();
        for name in ["host", "kernel", "processors", "memory"] {
            assert!(rows.iter().any(|row| &*row.name == name), "{name}");
        }
    }

    #[test]
    fn each_kind_of_processor_time_is_its_own() {
        let parse = |numbers: &str| {
            Processors::parse(&format!("cpu  {numbers} 0 0\nprocs_running 3\n")).unwrap()
        };
        let before = parse("100 1 30 400 50 6 7 8");
        // The counters grew by 10, 20, ... 80.
        let now = parse("110 21 60 440 100 66 77 88");
        assert_eq!((now.busy(), now.stolen(), now.total()), (334, 88, 962));
        let mut row = FrameRow::default();
        now.fill(&before, &mut row);
        let hz = rustix::param::clock_ticks_per_second();
        let ticks = |ns: u64| ns / (1_000_000_000 / hz);
        assert_eq!([row.host_user_ns, row.host_system_ns].map(ticks), [30, 160]);
        let rest = [row.host_idle_ns, row.host_iowait_ns, row.host_steal_ns];
        assert_eq!(rest.map(ticks), [40, 50, 80]);
        let used = Processors { at_ns: 2_000_000_000, ..now }.used(&before);
        let mean = |ticks: f64| ticks / hz as f64 / 2.0;
        assert!((used.busy - mean(190.0)).abs() < 1e-9, "{used:?}");
        assert!((used.iowait - mean(50.0)).abs() < 1e-9, "{used:?}");
        assert_eq!(used.runnable, Some(3.0));
        let text = "cpu MHz max : 1\ncpu MHz\t\t: 2 \nmodel: x\ncpu MHz: 3\n";
        assert_eq!(cpuinfo(text, "cpu MHz").collect::<Vec<_>>(), ["2", "3"]);
    }
}
