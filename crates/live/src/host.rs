// SPDX-License-Identifier: PostgreSQL

//! The machine of a measurement, and disturbances during the measurement.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::machine::{self, Processors};

/// Ticks of /proc/stat in a second (USER_HZ, part of the kernel's interface).
pub const TICKS: f64 = 100.0;

/// The machine, and its disturbances.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Host {
    /// The processor's model name.
    pub processor: String,
    /// Processors that this process may use.
    pub processors: usize,
    /// The kernel's release.
    pub kernel: String,
    /// The kernel's clock source.
    pub clock_source: String,
    /// The clock of the segment.
    pub segment_clock: String,
    /// Share of all processor time that the hypervisor gave to others, %; none if unknown.
    pub steal_percent: Option<f64>,
    /// Share of the run in which some process waited for a processor (PSI), %.
    pub pressure_percent: Option<f64>,
}

/// Readings from the beginning of a run.
pub struct Watch {
    began: Instant,
    processors: Option<Processors>,
    stalled_us: Option<u64>,
}

/// Disturbances between two instants; `None` where the kernel does not report them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Disturbance {
    /// Share of all processor time that the hypervisor gave to others, %.
    pub steal_percent: Option<f64>,
    /// Share of the time in which some process waited for a processor (PSI), %.
    pub pressure_percent: Option<f64>,
    /// Busy time of all processors, summed.
    pub busy_seconds: Option<f64>,
    /// The processors' mean frequency now, MHz.
    pub mhz: Option<f64>,
}

impl Watch {
    /// Start to watch now.
    pub fn start() -> Self {
        Self {
            began: Instant::now(),
            processors: Processors::now(),
            stalled_us: stalled_us(&text("/proc/pressure/cpu")),
        }
    }

    /// What has happened since the start.
    pub fn disturbance(&self) -> Disturbance {
        let processors = self.processors.zip(Processors::now());
        let steal = || {
            let (before, now) = processors?;
            let all = now.total().checked_sub(before.total()).filter(|ticks| *ticks > 0)?;
            Some(100.0 * now.stolen().checked_sub(before.stolen())? as f64 / all as f64)
        };
        let pressure = || {
            let stalled = stalled_us(&text("/proc/pressure/cpu"))?.checked_sub(self.stalled_us?)?;
            let micros = self.began.elapsed().as_secs_f64() * 1e6;
            Some((100.0 * stalled as f64 / micros).min(100.0))
        };
        let busy = || {
            let (before, now) = processors?;
            Some(now.busy().checked_sub(before.busy())? as f64 / TICKS)
        };
        Disturbance {
            steal_percent: steal(),
            pressure_percent: pressure(),
            busy_seconds: busy(),
            mhz: mhz(&text("/proc/cpuinfo")),
        }
    }

    /// The machine, and its disturbances since the start.
    pub fn host(&self, segment_clock: &str) -> Host {
        let disturbance = self.disturbance();
        Host {
            processor: processor(&text("/proc/cpuinfo")),
            processors: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: text("/proc/sys/kernel/osrelease").trim().into(),
            clock_source: text("/sys/devices/system/clocksource/clocksource0/current_clocksource")
                .trim()
                .into(),
            segment_clock: segment_clock.into(),
            steal_percent: disturbance.steal_percent,
            pressure_percent: disturbance.pressure_percent,
        }
    }
}

/// The text of the file; empty if the file does not exist.
fn text(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Mean of the lines "cpu MHz" of /proc/cpuinfo.
fn mhz(cpuinfo: &str) -> Option<f64> {
    let all: Vec<f64> =
        machine::cpuinfo(cpuinfo, "cpu MHz").filter_map(|mhz| mhz.parse().ok()).collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

/// Microseconds of the line "some" of /proc/pressure/cpu.
fn stalled_us(pressure: &str) -> Option<u64> {
    let some = pressure.lines().find(|line| line.starts_with("some "))?;
    some.rsplit_once("total=")?.1.trim().parse().ok()
}

fn processor(cpuinfo: &str) -> String {
    machine::cpuinfo(cpuinfo, "model name").next().unwrap_or(std::env::consts::ARCH).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_and_pressure_are_read_as_the_kernel_writes_them() {
        let stat = "cpu  10 20 30 40 50 60 70 80 5 5\ncpu0 1 2 3\n";
        let processors = Processors::parse(stat).unwrap();
        assert_eq!((processors.stolen(), processors.total()), (80, 360));
        assert_eq!(processors.busy(), 360 - 80 - 40 - 50);
        assert_eq!(mhz("cpu MHz\t\t: 2000.5\nx\ncpu MHz\t\t: 3000.5\n"), Some(2500.5));
        let pressure = "some avg10=1.53 avg60=1.87 avg300=1.73 total=1088168194\nfull avg10=0.00\n";
        assert_eq!(stalled_us(pressure), Some(1_088_168_194));
    }

    #[test]
    fn what_the_kernel_does_not_tell_is_unknown_and_no_error() {
        assert_eq!(Processors::parse(""), None);
        assert_eq!(Processors::parse("cpu  1 2 3"), None);
        assert_eq!(stalled_us(""), None);
        assert_eq!(processor(""), std::env::consts::ARCH);
    }
}
