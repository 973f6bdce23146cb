// SPDX-License-Identifier: PostgreSQL
//! Information from the kernel about clocks: its clock sources, and the rate of the processor's counter.

use std::path::Path;

use rustix::fs::{open, Mode, OFlags};
use rustix::io::{read, Errno};
use serde::Serialize;

/// The kernel's clocks. Values that the kernel does not report are empty or `None`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct System {
    /// The clock source in use.
    pub clock_source: Option<String>,
    /// The available clock sources.
    pub available: Vec<String>,
    /// Number of online processors.
    pub online: Option<u32>,
    /// Whether this is a virtual machine.
    pub virtual_machine: bool,
    /// Whether the counter has a constant rate (constant_tsc) in all power states (nonstop_tsc).
    pub steady_counter: bool,
    /// The counter's rate.
    pub counter: Option<Nominal>,
    /// Why the kernel rejected the counter as a clock source, in its own words.
    pub given_up: Option<String>,
}

/// A rate, and its source.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Nominal {
    /// Ticks per second.
    pub hz: f64,
    /// The maximum rounding error.
    pub rounding_hz: f64,
    /// The source of the value.
    pub source: &'static str,
}

impl System {
    /// Reads the kernel's files below this root: `/`, except in tests.
    pub fn read(root: &Path) -> Self {
        let text = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
        let sources = "sys/devices/system/clocksource/clocksource0";
        let source = text(&format!("{sources}/current_clocksource")).trim().to_string();
        let cpuinfo = text("proc/cpuinfo");
        let flags = field(&cpuinfo, "flags").unwrap_or_default();
        let has = |flag: &str| flags.split_ascii_whitespace().any(|word| word == flag);
        let log = kernel_log(root);
        Self {
            clock_source: Some(source).filter(|name| !name.is_empty()),
            available: text(&format!("{sources}/available_clocksource"))
                .split_ascii_whitespace()
                .map(String::from)
                .collect(),
            online: listed(text("sys/devices/system/cpu/online").trim()),
            virtual_machine: has("hypervisor"),
            steady_counter: has("constant_tsc") && has("nonstop_tsc"),
            counter: from_log(&log).or_else(|| from_bogomips(&cpuinfo)),
            given_up: given_up(&log),
        }
    }
}

/// The value of this field's first line in /proc/cpuinfo.
fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// The number of processors in a list such as "0-3,8".
fn listed(list: &str) -> Option<u32> {
    list.split(',')
        .map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            last.checked_sub(first)?.checked_add(1)
        })
        .sum()
}

/// The kernel's log; empty without the privilege to read it.
fn kernel_log(root: &Path) -> String {
    let path = root.join("dev/kmsg");
    let Ok(file) = open(&path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
    else {
        return String::new();
    };
    let (mut log, mut record) = (Vec::new(), [0; 8192]);
    loop {
        // Each call returns one record.
        match read(&file, &mut record) {
            Ok(0) => break,
            Ok(length) => log.extend_from_slice(&record[..length]),
            // Records were overwritten before they were read.
            Err(Errno::PIPE | Errno::INTR) => {}
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&log).into_owned()
}

/// The kernel's last calibration, at boot or refined later.
fn from_log(log: &str) -> Option<Nominal> {
    let rate = |line: &str| {
        let words = line.split_once("tsc: ")?.1;
        let number = words
            .strip_prefix("Refined TSC clocksource calibration: ")
            .or_else(|| words.strip_prefix("Detected "))?;
        let (mhz, rest) = number.split_once(' ')?;
        rest.starts_with("MHz").then(|| mhz.parse::<f64>().ok())?
    };
    let mhz = log.lines().filter_map(rate).next_back()?;
    Some(Nominal { hz: mhz * 1e6, rounding_hz: 500.0, source: "the kernel's log" })
}

/// If the kernel knows the counter's rate, it derives BogoMIPS from it: twice the rate, with two decimals.
fn from_bogomips(cpuinfo: &str) -> Option<Nominal> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    let twice: f64 = field(cpuinfo, "bogomips")?.parse().ok()?;
    let nominal = Nominal { hz: twice / 2.0 * 1e6, rounding_hz: 2_500.0, source: "BogoMIPS" };
    (twice > 0.0).then_some(nominal)
}

fn given_up(log: &str) -> Option<String> {
    log.lines().filter(|line| line.contains("Marking") && line.contains("unstable")).find_map(
        |line| {
            let text = line.split_once(';').map_or(line, |(_, text)| text);
            text.contains("tsc").then(|| text.trim().to_string())
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "6,17,63,-;tsc: Detected 2596.134 MHz processor\n\
        6,300,900,-;tsc: Refined TSC clocksource calibration: 2596.098 MHz\n";

    #[test]
    fn the_rate_is_that_of_the_last_calibration() {
        assert_eq!(from_log(LOG).map(|n| n.hz), Some(2_596.098e6));
        assert_eq!(from_log(&LOG[..50]).map(|n| n.hz), Some(2_596.134e6));
        assert_eq!(
            from_log("tsc: Detected a MHz processor\ntsc: Fast TSC calibration failed\n"),
            None
        );
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn without_the_log_it_is_half_of_bogomips() {
        let nominal = from_bogomips("processor : 0\nbogomips\t: 5192.26\n").unwrap();
        assert!((nominal.hz - 2_596.13e6).abs() < 1.0);
        assert_eq!(from_bogomips("bogomips : 0.00\n"), None);
    }

    #[test]
    fn a_rejected_counter_has_the_kernels_reason() {
        let line = "4,500,1,-;clocksource: timekeeping watchdog on CPU1: Marking clocksource \
                    'tsc' as unstable because the skew is too large:\n";
        assert!(given_up(line).unwrap().starts_with("clocksource: timekeeping watchdog on CPU1"));
        assert_eq!(given_up(LOG), None);
    }

    #[test]
    fn processors_in_lists_are_counted() {
        for (list, count) in
            [("0-1", Some(2)), ("0", Some(1)), ("0-3,8,10-11", Some(7)), ("", None)]
        {
            assert_eq!(listed(list), count, "{list}");
        }
        assert_eq!(listed("3-1"), None);
    }

    #[test]
    fn a_machine_without_these_files_is_no_error() {
        let system = System::read(Path::new("/no/such/root"));
        assert_eq!(system.clock_source, None);
        assert_eq!(system.counter, None);
        assert!(!system.virtual_machine && system.available.is_empty());
    }
}
