// SPDX-License-Identifier: PostgreSQL

//! The machine that the figure was taken on, and what disturbed it meanwhile.

use std::time::Instant;

use serde::Serialize;

/// What a reader of the figure wants to know about the machine.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Host {
    /// As the processor calls itself.
    pub(crate) processor: String,
    /// Processors that this process may use.
    pub(crate) processors: usize,
    pub(crate) kernel: String,
    /// The kernel's clock source.
    pub(crate) clock_source: String,
    /// The clock of the segment.
    pub(crate) segment_clock: String,
    /// Share of all processor time that the hypervisor gave to others, %; none if unknown.
    pub(crate) steal_percent: Option<f64>,
    /// Share of the run in which some process waited for a processor (PSI), %.
    pub(crate) pressure_percent: Option<f64>,
}

/// Readings from the beginning of a run.
pub(crate) struct Watch {
    began: Instant,
    processor_time: Option<(u64, u64)>,
    stalled_us: Option<u64>,
}

impl Watch {
    pub(crate) fn start() -> Self {
        Self {
            began: Instant::now(),
            processor_time: processor_time(&text("/proc/stat")),
            stalled_us: stalled_us(&text("/proc/pressure/cpu")),
        }
    }

    /// The machine, and its disturbances since the start.
    pub(crate) fn host(&self, segment_clock: &str) -> Host {
        let steal = || {
            let (stolen, all) = processor_time(&text("/proc/stat"))?;
            let (stolen0, all0) = self.processor_time?;
            let all = all.checked_sub(all0).filter(|ticks| *ticks > 0)?;
            Some(100.0 * stolen.checked_sub(stolen0)? as f64 / all as f64)
        };
        let pressure = || {
            let stalled = stalled_us(&text("/proc/pressure/cpu"))?.checked_sub(self.stalled_us?)?;
            let micros = self.began.elapsed().as_secs_f64() * 1e6;
            Some((100.0 * stalled as f64 / micros).min(100.0))
        };
        Host {
            processor: processor(&text("/proc/cpuinfo")),
            processors: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: text("/proc/sys/kernel/osrelease").trim().into(),
            clock_source: text("/sys/devices/system/clocksource/clocksource0/current_clocksource")
                .trim()
                .into(),
            segment_clock: segment_clock.into(),
            steal_percent: steal(),
            pressure_percent: pressure(),
        }
    }
}

/// The file, or nothing where it does not exist.
fn text(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Stolen and all ticks of the line "cpu" of /proc/stat.
fn processor_time(stat: &str) -> Option<(u64, u64)> {
    let ticks: Vec<u64> = stat
        .lines()
        .next()?
        .strip_prefix("cpu ")?
        .split_ascii_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    // user nice system idle iowait irq softirq steal; guest time is part of user time
    Some((*ticks.get(7)?, ticks[..8].iter().sum()))
}

/// Microseconds of the line "some" of /proc/pressure/cpu.
fn stalled_us(pressure: &str) -> Option<u64> {
    let some = pressure.lines().find(|line| line.starts_with("some "))?;
    some.rsplit_once("total=")?.1.trim().parse().ok()
}

fn processor(cpuinfo: &str) -> String {
    cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or_else(|| std::env::consts::ARCH.into(), |(_, name)| name.trim().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_and_pressure_are_read_as_the_kernel_writes_them() {
        let stat = "cpu  10 20 30 40 50 60 70 80 5 5\ncpu0 1 2 3\n";
        assert_eq!(processor_time(stat), Some((80, 360)));
        let pressure = "some avg10=1.53 avg60=1.87 avg300=1.73 total=1088168194\nfull avg10=0.00\n";
        assert_eq!(stalled_us(pressure), Some(1_088_168_194));
    }

    #[test]
    fn what_the_kernel_does_not_tell_is_unknown_and_no_error() {
        assert_eq!(processor_time(""), None);
        assert_eq!(processor_time("cpu  1 2 3"), None);
        assert_eq!(stalled_us(""), None);
        assert_eq!(processor(""), std::env::consts::ARCH);
    }
}
