// SPDX-License-Identifier: PostgreSQL
//! A reading of all counters.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rustix::time::{clock_gettime, ClockId, Timespec};

use crate::block::sequence;
use crate::devices::Devices;
use crate::diskstats::DiskCounters;
use crate::group_io::GroupCounters;
use crate::number::DeviceNumber;
use crate::problem::Problem;
use crate::root::Root;
use crate::space::Space;
use crate::space_query::Question;

/// The counters of a server's devices, file systems and processes.
#[derive(Debug, Clone)]
pub struct Reading {
    /// When it was taken, seconds since 1970.
    pub time: f64,
    /// When the devices were read, nanoseconds of the monotonic clock.
    pub devices_ns: u64,
    /// When the processes were read, nanoseconds of the monotonic clock.
    pub processes_ns: u64,
    /// Counters by device, in order of their numbers.
    pub devices: BTreeMap<DeviceNumber, Result<DiskCounters, Problem>>,
    /// Space by the number of the mount.
    pub spaces: HashMap<u64, Result<Space, Problem>>,
    /// The counters of the server's processes.
    pub server: Result<GroupCounters, Problem>,
    /// The devices directly under the server's file systems.
    pub(crate) tops: Vec<DeviceNumber>,
}

impl Reading {
    /// Reads all counters. This takes about 30 microseconds per process of the server, and waits at most 0.2 s
    /// for network file systems.
    pub fn take(devices: &Devices) -> Reading {
        let time = nanoseconds(ClockId::Realtime) as f64 * 1e-9;
        let devices_ns = nanoseconds(ClockId::Monotonic);
        let disks = disks(devices);
        let processes_ns = nanoseconds(ClockId::Monotonic);
        let server = match devices.server {
            Some(server) => {
                let hz = rustix::param::clock_ticks_per_second().max(1);
                let ticks = nanoseconds(ClockId::Boottime) / (1_000_000_000 / hz).max(1);
                GroupCounters::take(&devices.system, server.pid, server.started, ticks)
            }
            None => Err(Problem::NoPid),
        };
        Reading {
            time,
            devices_ns,
            processes_ns,
            devices: disks,
            spaces: spaces(devices),
            server,
            tops: devices.tops(),
        }
    }

    /// Reads only the counters of the devices, which are in one file.
    pub fn of_devices(devices: &Devices) -> Reading {
        let devices_ns = nanoseconds(ClockId::Monotonic);
        Reading {
            time: nanoseconds(ClockId::Realtime) as f64 * 1e-9,
            devices_ns,
            processes_ns: devices_ns,
            devices: disks(devices),
            spaces: HashMap::new(),
            server: Err(Problem::NoPid),
            tops: devices.tops(),
        }
    }
}

fn disks(devices: &Devices) -> BTreeMap<DeviceNumber, Result<DiskCounters, Problem>> {
    let mut disks = BTreeMap::new();
    if devices.devices.is_empty() {
        return disks;
    }
    let table = std::fs::read_to_string(devices.system.proc.root().join("diskstats"));
    let table = table.map_err(Problem::from);
    let mut listed: HashMap<DeviceNumber, DiskCounters> = match &table {
        Ok(text) => text.lines().filter_map(DiskCounters::parse).collect(),
        Err(_) => HashMap::new(),
    };
    for device in &devices.devices {
        let counters = match (&table, listed.remove(&device.number)) {
            (Err(problem), _) => Err(problem.clone()),
            (Ok(_), None) => Err(Problem::NotListed),
            (Ok(_), Some(_)) if !device.counted => Err(Problem::NotCounted),
            (Ok(_), Some(mut counters)) => {
                counters.sequence = sequence(&devices.system, device.number);
                Ok(counters)
            }
        };
        disks.insert(device.number, counters);
    }
    disks
}

/// Queries the space of every file system of the server.
fn spaces(devices: &Devices) -> HashMap<u64, Result<Space, Problem>> {
    let own = Arc::new(Root::own(&devices.system));
    let servers = match devices.server.filter(|server| server.in_sight) {
        Some(server) => Root::of_process(&devices.system, server.pid).map(Arc::new),
        None => Ok(own.clone()),
    };
    let mut answers = HashMap::new();
    let mut slow = Vec::new();
    for (at, file_system) in devices.file_systems.iter().enumerate() {
        let mount_id = file_system.mount_id;
        let root = if file_system.outside { Ok(&own) } else { servers.as_ref() };
        let question = root.map(|root| Question {
            mount_id,
            unique_mount_id: file_system.unique_mount_id,
            root: root.clone(),
            path: file_system.path.clone(),
        });
        match question {
            Ok(question) if devices.bottom(at).may_hang() || file_system.may_hang() => {
                slow.push(question)
            }
            Ok(question) => drop(answers.insert(mount_id, question.ask())),
            Err(problem) => drop(answers.insert(mount_id, Err(problem.clone()))),
        }
    }
    answers.extend(devices.pending.ask(slow));
    answers
}

fn nanoseconds(clock: ClockId) -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    // None of these clocks is negative.
    (tv_sec as u64).saturating_mul(1_000_000_000).saturating_add(tv_nsec as u64)
}
