// SPDX-License-Identifier: PostgreSQL
//! The figures of an interval, computed from two readings.

use serde::Serialize;

use crate::block::SECTOR_BYTES;
use crate::diskstats::{DiskCounters, Requests};
use crate::group_io::{GroupCounters, IoCounters, ProcessCounters};
use crate::number::DeviceNumber;
use crate::problem::Problem;
use crate::reading::Reading;
use crate::space::Space;

/// The activity of devices, file systems and the server's processes in an interval.
#[derive(Debug, Clone, Serialize)]
pub struct Interval {
    /// When it ended, seconds since 1970.
    pub time: f64,
    /// Its length, seconds.
    pub interval_seconds: f64,
    /// All block devices, in order of their numbers.
    pub devices: Vec<DeviceRow>,
    /// All mounts, in order of their numbers.
    pub file_systems: Vec<SpaceRow>,
    /// The server's processes.
    pub server: Option<ServerIo>,
    /// Why there are no figures for the processes.
    pub server_problem: Option<Problem>,
    /// Bytes per second that all processes read from the devices under the server's file systems, without the
    /// devices that these consist of. `None` if there is no device, or a device has no figures.
    pub devices_read_bytes_per_second: Option<f64>,
    /// The same for writes.
    pub devices_written_bytes_per_second: Option<f64>,
}

/// One block device.
#[derive(Debug, Clone, Serialize)]
pub struct DeviceRow {
    /// Its number.
    pub number: DeviceNumber,
    /// Its figures.
    pub figures: Option<DeviceFigures>,
    /// Why there are none.
    pub problem: Option<Problem>,
}

/// The figures of a block device. Requests count when they complete, with all of their time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct DeviceFigures {
    /// Completed reads.
    pub reads_per_second: f64,
    /// Bytes read.
    pub read_bytes_per_second: f64,
    /// Reads merged with others.
    pub reads_merged_per_second: f64,
    /// Average time of a read, in the queue and in the device.
    pub read_ms: Option<f64>,
    /// Completed writes.
    pub writes_per_second: f64,
    /// Bytes written.
    pub written_bytes_per_second: f64,
    /// Writes merged with others.
    pub writes_merged_per_second: f64,
    /// Average time of a write.
    pub write_ms: Option<f64>,
    /// Discards; `None` if the kernel does not count them.
    pub discards_per_second: Option<f64>,
    /// Bytes discarded.
    pub discarded_bytes_per_second: Option<f64>,
    /// Average time of a discard.
    pub discard_ms: Option<f64>,
    /// Flushes of the device's cache; `None` if the kernel does not count them.
    pub flushes_per_second: Option<f64>,
    /// Average time of a flush.
    pub flush_ms: Option<f64>,
    /// Mean number of requests, waiting or in progress.
    pub queue_length: f64,
    /// Share of the time with any request in progress, 0 to 100. A device that handles many requests at a
    /// time is not saturated at 100.
    pub utilisation_percent: f64,
    /// Requests in progress at the interval's end.
    pub in_flight: u64,
}

/// One mount.
#[derive(Debug, Clone, Serialize)]
pub struct SpaceRow {
    /// The kernel's number of the mount.
    pub mount_id: u64,
    /// Its space at the interval's end.
    pub space: Option<Space>,
    /// How fast it fills; negative if it empties.
    pub growth_bytes_per_second: Option<f64>,
    /// Why its space is unknown.
    pub problem: Option<Problem>,
}

/// The server's processes.
#[derive(Debug, Clone, Serialize)]
pub struct ServerIo {
    /// All processes together, including those that ended in the interval.
    #[serde(flatten)]
    pub figures: IoFigures,
    /// Processes at the interval's end.
    pub processes_count: usize,
    /// Number of processes that could not be read, so that the sums are too small.
    pub refused: usize,
    /// Processes with any reads or writes, most bytes first.
    pub processes: Vec<ProcessRow>,
}

/// Reads and writes of a process, or of all processes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct IoFigures {
    /// Read calls.
    pub reads_per_second: f64,
    /// Bytes that read calls returned, from the page cache or a device.
    pub read_bytes_per_second: f64,
    /// Write calls.
    pub writes_per_second: f64,
    /// Bytes passed to write calls.
    pub written_bytes_per_second: f64,
    /// Bytes that the kernel read from devices, including read-ahead.
    pub device_read_bytes_per_second: f64,
    /// Bytes of pages made dirty, to be written to devices later.
    pub device_written_bytes_per_second: f64,
    /// Bytes among those that were dropped before they were written.
    pub cancelled_bytes_per_second: f64,
    /// Share of the bytes read that came from the page cache, 0 to 100. A lower bound, because the
    /// kernel reads ahead.
    pub from_page_cache_percent: Option<f64>,
}

/// One process of the server.
#[derive(Debug, Clone, Serialize)]
pub struct ProcessRow {
    /// Its PID.
    pub pid: u32,
    /// Its reads and writes; the postmaster's include those of processes that have ended.
    #[serde(flatten)]
    pub figures: IoFigures,
}

impl Interval {
    /// The interval from `a` to `b`, which is later.
    pub fn between(a: &Reading, b: &Reading) -> Interval {
        let seconds = elapsed(a.devices_ns, b.devices_ns);
        let devices: Vec<DeviceRow> = b
            .devices
            .keys()
            .map(|&number| {
                let (figures, problem) = match device(a, b, number) {
                    Ok(step) => (Some(DeviceFigures::from_counters(&step, seconds)), None),
                    Err(problem) => (None, Some(problem)),
                };
                DeviceRow { number, figures, problem }
            })
            .collect();
        let tops = |of: fn(&DeviceFigures) -> f64| {
            let figures = |top| devices.iter().find(|row| row.number == top)?.figures.as_ref();
            let sum = b.tops.iter().map(|&top| figures(top).map(of)).sum::<Option<f64>>();
            sum.filter(|_| !b.tops.is_empty())
        };
        let (server, server_problem) = match (&a.server, &b.server) {
            (Ok(before), Ok(after)) => {
                match server(before, after, elapsed(a.processes_ns, b.processes_ns)) {
                    Ok(server) => (Some(server), None),
                    Err(problem) => (None, Some(problem)),
                }
            }
            (Ok(_), Err(problem)) | (Err(problem), _) => (None, Some(problem.clone())),
        };
        Interval {
            time: b.time,
            interval_seconds: seconds,
            file_systems: spaces(a, b, seconds),
            server,
            server_problem,
            devices_read_bytes_per_second: tops(|f| f.read_bytes_per_second),
            devices_written_bytes_per_second: tops(|f| f.written_bytes_per_second),
            devices,
        }
    }
}

/// Elapsed time, never 0, so that the rates between two simultaneous readings are 0 rather than NaN.
fn elapsed(from_ns: u64, to_ns: u64) -> f64 {
    to_ns.saturating_sub(from_ns).max(1) as f64 * 1e-9
}

fn device(a: &Reading, b: &Reading, number: DeviceNumber) -> Result<DiskCounters, Problem> {
    match (a.devices.get(&number), b.devices.get(&number)) {
        (Some(Ok(before)), Some(Ok(after))) => after.since(before).ok_or(Problem::BeganAgain),
        (_, Some(Err(problem))) => Err(problem.clone()),
        _ => Err(Problem::OneEnd),
    }
}

impl DeviceFigures {
    fn from_counters(step: &DiskCounters, seconds: f64) -> DeviceFigures {
        let rate = |count: u64| count as f64 / seconds;
        let bytes = |sectors: u64| rate(sectors.saturating_mul(SECTOR_BYTES));
        let average = |ms: u64, count: u64| (count > 0).then(|| ms as f64 / count as f64);
        let average_of = |r: Option<Requests>| r.and_then(|r| average(r.ms, r.count));
        let part = |ms: u64| ms as f64 * 1e-3 / seconds;
        DeviceFigures {
            reads_per_second: rate(step.reads),
            read_bytes_per_second: bytes(step.sectors_read),
            reads_merged_per_second: rate(step.reads_merged),
            read_ms: average(step.read_ms, step.reads),
            writes_per_second: rate(step.writes),
            written_bytes_per_second: bytes(step.sectors_written),
            writes_merged_per_second: rate(step.writes_merged),
            write_ms: average(step.write_ms, step.writes),
            discards_per_second: step.discards.map(|d| rate(d.count)),
            discarded_bytes_per_second: step.discards.map(|d| bytes(d.sectors)),
            discard_ms: average_of(step.discards),
            flushes_per_second: step.flushes.map(|f| rate(f.count)),
            flush_ms: average_of(step.flushes),
            queue_length: part(step.queue_ms),
            // The kernel counts in clock ticks, so the sum may exceed the interval.
            utilisation_percent: (part(step.busy_ms) * 100.0).min(100.0),
            in_flight: step.in_flight,
        }
    }
}

fn spaces(a: &Reading, b: &Reading, seconds: f64) -> Vec<SpaceRow> {
    let used = |space: &Space| space.total_bytes.saturating_sub(space.free_bytes) as f64;
    let mut rows: Vec<SpaceRow> = b
        .spaces
        .iter()
        .map(|(&mount_id, answer)| {
            let space = answer.as_ref().ok().copied();
            let before = a.spaces.get(&mount_id).and_then(|answer| answer.as_ref().ok());
            let growth = space.zip(before).map(|(now, then)| (used(&now) - used(then)) / seconds);
            SpaceRow {
                mount_id,
                space,
                growth_bytes_per_second: growth,
                problem: answer.as_ref().err().cloned(),
            }
        })
        .collect();
    rows.sort_unstable_by_key(|row| row.mount_id);
    rows
}

fn server(a: &GroupCounters, b: &GroupCounters, seconds: f64) -> Result<ServerIo, Problem> {
    if a.started != b.started {
        return Err(Problem::BeganAgain);
    }
    let total = b.total.since(a.total).ok_or(Problem::Restless)?;
    let mut processes: Vec<(u32, IoCounters)> = b
        .processes
        .iter()
        .filter_map(|(&pid, now)| Some((pid, one(a, pid, now)?)))
        .filter(|(_, step)| !step.is_zero())
        .collect();
    processes.sort_by_key(|(_, step)| {
        std::cmp::Reverse(step.read_bytes.saturating_add(step.written_bytes))
    });
    Ok(ServerIo {
        figures: IoFigures::from_counters(total, seconds),
        processes_count: b.processes.len(),
        refused: b.refused,
        processes: processes
            .into_iter()
            .map(|(pid, step)| ProcessRow { pid, figures: IoFigures::from_counters(step, seconds) })
            .collect(),
    })
}

/// The counts of one process; `None` if it existed before and was not read.
fn one(a: &GroupCounters, pid: u32, now: &ProcessCounters) -> Option<IoCounters> {
    match a.processes.get(&pid).filter(|before| before.started == now.started) {
        Some(before) => now.io.since(before.io),
        // It may have started in the tick in which the others were read.
        None => (now.started >= a.taken).then_some(now.io),
    }
}

impl IoFigures {
    fn from_counters(step: IoCounters, seconds: f64) -> IoFigures {
        let rate = |count: u64| count as f64 / seconds;
        let cached = step.read_bytes.saturating_sub(step.device_read_bytes);
        IoFigures {
            reads_per_second: rate(step.reads),
            read_bytes_per_second: rate(step.read_bytes),
            writes_per_second: rate(step.writes),
            written_bytes_per_second: rate(step.written_bytes),
            device_read_bytes_per_second: rate(step.device_read_bytes),
            device_written_bytes_per_second: rate(step.device_written_bytes),
            cancelled_bytes_per_second: rate(step.cancelled_bytes),
            from_page_cache_percent: (step.read_bytes > 0)
                .then(|| cached as f64 / step.read_bytes as f64 * 100.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_device_are_its_counters_by_time() {
        let requests = |count, sectors, ms| Some(Requests { count, sectors, ms });
        let step = DiskCounters {
            reads: 10,
            reads_merged: 20,
            sectors_read: 30,
            read_ms: 45,
            writes: 50,
            writes_merged: 60,
            sectors_written: 70,
            write_ms: 100,
            in_flight: 7,
            busy_ms: 1500,
            queue_ms: 3000,
            discards: requests(4, 8, 6),
            flushes: requests(5, 0, 15),
            ..DiskCounters::default()
        };
        let expected = DeviceFigures {
            reads_per_second: 5.0,
            read_bytes_per_second: 30.0 * 512.0 / 2.0,
            reads_merged_per_second: 10.0,
            read_ms: Some(4.5),
            writes_per_second: 25.0,
            written_bytes_per_second: 70.0 * 512.0 / 2.0,
            writes_merged_per_second: 30.0,
            write_ms: Some(2.0),
            discards_per_second: Some(2.0),
            discarded_bytes_per_second: Some(8.0 * 512.0 / 2.0),
            discard_ms: Some(1.5),
            flushes_per_second: Some(2.5),
            flush_ms: Some(3.0),
            queue_length: 1.5,
            utilisation_percent: 75.0,
            in_flight: 7,
        };
        assert_eq!(DeviceFigures::from_counters(&step, 2.0), expected);
        let idle = DeviceFigures::from_counters(
            &DiskCounters { busy_ms: 2100, ..DiskCounters::default() },
            2.0,
        );
        assert_eq!((idle.read_ms, idle.write_ms, idle.flush_ms), (None, None, None));
        assert_eq!((idle.discards_per_second, idle.utilisation_percent), (None, 100.0));
    }

    #[test]
    fn figures_of_processes_are_their_counters_by_time() {
        let step = IoCounters {
            reads: 2,
            writes: 4,
            read_bytes: 1000,
            written_bytes: 600,
            device_read_bytes: 250,
            device_written_bytes: 500,
            cancelled_bytes: 100,
        };
        let figures = IoFigures::from_counters(step, 2.0);
        let expected = IoFigures {
            reads_per_second: 1.0,
            read_bytes_per_second: 500.0,
            writes_per_second: 2.0,
            written_bytes_per_second: 300.0,
            device_read_bytes_per_second: 125.0,
            device_written_bytes_per_second: 250.0,
            cancelled_bytes_per_second: 50.0,
            from_page_cache_percent: Some(75.0),
        };
        assert_eq!(figures, expected);
        let ahead = IoFigures::from_counters(IoCounters { device_read_bytes: 2000, ..step }, 2.0);
        assert_eq!(ahead.from_page_cache_percent, Some(0.0), "the kernel read ahead");
        let none = IoFigures::from_counters(IoCounters { read_bytes: 0, ..step }, 2.0);
        assert_eq!(none.from_page_cache_percent, None);
    }

    #[test]
    fn two_readings_at_once_have_rates_of_zero() {
        assert_eq!(elapsed(5, 5), 1e-9);
        assert_eq!(elapsed(5, 4), 1e-9);
        assert_eq!(elapsed(1, 2_000_000_001), 2.0);
    }

    #[test]
    fn a_process_counts_from_its_start_if_it_started_after_the_first_reading() {
        let counters = |reads| IoCounters { reads, ..IoCounters::default() };
        let process = |started, reads| ProcessCounters { started, io: counters(reads) };
        let a = GroupCounters {
            started: 1,
            taken: 50,
            total: counters(0),
            processes: [(7, process(10, 3))].into(),
            refused: 0,
        };
        // The same process, its pid's next owner, one that started in the tick of the reading, one that was not read then.
        assert_eq!(one(&a, 7, &process(10, 8)), Some(counters(5)));
        assert_eq!(one(&a, 7, &process(60, 8)), Some(counters(8)));
        assert_eq!(one(&a, 8, &process(50, 8)), Some(counters(8)));
        assert_eq!(one(&a, 8, &process(49, 8)), None);
    }

    #[test]
    fn devices_spaces_and_processes_each_have_their_own_time_and_a_new_server_begins_again() {
        let number = |minor| DeviceNumber { major: 8, minor };
        let reading = |ns: u64, processes_ns, n: u64, free_bytes| Reading {
            time: 0.0,
            devices_ns: ns,
            processes_ns,
            devices: [0, 1]
                .map(|minor| {
                    let reads = n * (u64::from(minor) + 1);
                    (
                        number(minor),
                        Ok(DiskCounters { reads, sectors_read: reads, ..DiskCounters::default() }),
                    )
                })
                .into(),
            spaces: [(
                7,
                Ok(Space {
                    total_bytes: 1000,
                    free_bytes,
                    available_bytes: free_bytes,
                    inodes: 0,
                    inodes_free: 0,
                    inodes_available: 0,
                }),
            )]
            .into(),
            server: Ok(GroupCounters {
                started: 1,
                taken: 50,
                total: IoCounters { reads: 2 * n, ..IoCounters::default() },
                processes: [(1, n), (2, 3 * n), (3, 2 * n)]
                    .map(|(pid, bytes)| {
                        let io = IoCounters { read_bytes: bytes, ..IoCounters::default() };
                        (pid, ProcessCounters { started: 1, io })
                    })
                    .into(),
                refused: 0,
            }),
            tops: vec![number(0), number(1)],
        };
        let (a, b) =
            (reading(0, 1_000_000_000, 0, 500), reading(2_000_000_000, 5_000_000_000, 40, 400));
        let found = Interval::between(&a, &b);
        let server = found.server.unwrap();
        assert_eq!(found.devices[1].figures.unwrap().reads_per_second, 40.0);
        assert_eq!(found.file_systems[0].growth_bytes_per_second, Some(50.0));
        assert_eq!(server.figures.reads_per_second, 20.0, "in four seconds");
        assert_eq!(server.processes.iter().map(|row| row.pid).collect::<Vec<_>>(), [2, 3, 1]);
        assert_eq!(found.devices_read_bytes_per_second, Some((20.0 + 40.0) * 512.0));
        let lost = Reading { tops: vec![number(0), number(9)], ..b.clone() };
        assert_eq!(Interval::between(&a, &lost).devices_read_bytes_per_second, None);
        let again = GroupCounters { started: 2, ..b.server.clone().unwrap() };
        let again = Interval::between(&a, &Reading { server: Ok(again), ..b });
        assert_eq!(again.server_problem, Some(Problem::BeganAgain));
    }
}
