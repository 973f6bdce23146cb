// SPDX-License-Identifier: PostgreSQL
//! Finds out which processes this user may sample, and explains why if there are none.

use std::io;

use error::Error;

use crate::cpu_sampler::CpuSampler;
use crate::event::Clock;

/// Samplers of all CPUs, and what they may sample.
#[derive(Debug)]
pub(crate) struct Allowed {
    pub samplers: Vec<CpuSampler>,
    /// Whether all processes are sampled, instead of only added ones.
    pub everything: bool,
    /// Whether the kernel is sampled too.
    pub kernel: bool,
}

/// Opens a sampler for each CPU with as much access as allowed: everything including the kernel; otherwise the server's
/// processes, with or without the kernel.
pub(crate) fn open(period_ns: u64, system: bool, stacks: bool) -> Result<Allowed, Error> {
    let cpus = online_cpus();
    let each = |everything: bool, kernel: bool| -> io::Result<Allowed> {
        let clock = Clock { period_ns, kernel, stacks };
        let one = |cpu: &u32| match everything {
            true => CpuSampler::of_everything(*cpu, clock),
            false => CpuSampler::of_processes(*cpu, clock),
        };
        Ok(Allowed {
            samplers: cpus.iter().map(one).collect::<io::Result<_>>()?,
            everything,
            kernel,
        })
    };
    let everything = each(true, true);
    match everything {
        Ok(allowed) => Ok(allowed),
        Err(error) if system => Err(refused(&error, "all processes on this machine")),
        Err(_) => {
            let kernel = paranoid().is_some_and(|level| level <= 1);
            each(false, kernel).map_err(|error| refused(&error, "the server's processes"))
        }
    }
}

/// An error that says why the kernel did not allow it, with the remedy.
pub(crate) fn refused(error: &io::Error, whom: &str) -> Error {
    let what = format!("could not sample {whom}: {error}");
    Error::Failed(match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => format!("{what}{}", remedy()),
        Some(libc::EMFILE) => format!("{what}; raise the limit of open files (ulimit -n)"),
        Some(libc::ENOSYS) => {
            format!("{what}; this kernel, or the container, has no perf_event_open")
        }
        Some(libc::ENOENT) => format!("{what}; this machine has no clock event to sample with"),
        _ => what,
    })
}

fn remedy() -> String {
    match paranoid() {
        Some(level) => format!(
            ". kernel.perf_event_paranoid is {level}: run tally as root or with CAP_PERFMON; or, for the \
             server's processes at 2 or lower, as the server's user; or lower it (sysctl \
             kernel.perf_event_paranoid=-1 for all processes and the kernel). In a container, seccomp may \
             also forbid it"
        ),
        None => "; run as root".into(),
    }
}

/// kernel.perf_event_paranoid.
fn paranoid() -> Option<i32> {
    let text = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?;
    text.trim().parse().ok()
}

/// The CPUs that are online.
fn online_cpus() -> Vec<u32> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let found = list(&text);
    match found.is_empty() {
        true => (0..std::thread::available_parallelism().map_or(1, usize::from) as u32).collect(),
        false => found,
    }
}

/// Parses "0-2,5" into numbers.
fn list(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    };
    text.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_cpus_is_parsed() {
        assert_eq!(list("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(list("0"), [0]);
        assert_eq!(list(""), [] as [u32; 0]);
    }

    #[test]
    fn a_refusal_names_the_setting_and_the_remedy() {
        let text = refused(&io::Error::from_raw_os_error(libc::EACCES), "them").to_string();
        assert!(
            text.contains("kernel.perf_event_paranoid is") && text.contains("as root"),
            "{text}"
        );
    }

    #[test]
    fn other_refusals_have_their_own_remedies() {
        for (errno, remedy) in [
            (libc::EMFILE, "ulimit -n"),
            (libc::ENOSYS, "no perf_event_open"),
            (libc::ENOENT, "no clock event to sample with"),
        ] {
            let text = refused(&io::Error::from_raw_os_error(errno), "them").to_string();
            assert!(text.starts_with("could not sample them: ") && text.contains(remedy), "{text}");
        }
    }
}
