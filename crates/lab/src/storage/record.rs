// SPDX-License-Identifier: PostgreSQL
//! Records the background as a recording for `tally top --replay`, `report` and `diff`. Reading and writing threads
//! appear as two kinds of processes; a thread is either in an operation or waiting for the next one to be due.

use std::path::Path;
use std::sync::Arc;

use device::{Devices, Reading, System};
use error::Error;
use live::device_rows::DeviceRows;
use live::machine;
use recording::{About, Batch, MarkRow, RetentionPolicy, RowBuilder, ServerRow, Writer};
use segment::delta::{Change, Extreme, Total};
use segment::directory::{Stat, StatKind};
use segment::frame::{Frame, FrameStat, ServerInfo};
use segment::interval::ClockInfo;
use segment::{Histogram, Level};

use crate::storage::engine::{Responses, Work};

/// Records one cell.
pub struct Recorder {
    writer: Result<Writer, Error>,
    rows: RowBuilder,
    devices: Arc<Devices>,
    device_rows: DeviceRows,
    server: ServerInfo,
    stats: Stats,
    first: bool,
}

/// The statistics of one kind of thread.
struct Stats {
    read: Arc<Stat>,
    write: Arc<Stat>,
    idle: Arc<Stat>,
}

impl Recorder {
    /// Opens a recording of a cell in a run's directory; `place` is the directory of the background's files.
    pub fn open(folder: &Path, arm: &str, block: usize, place: &Path) -> Recorder {
        let directory = folder.join("recordings").join(format!("{arm}-{block}"));
        let about = About {
            format: recording::FORMAT,
            made_by: concat!("pgtally ", env!("CARGO_PKG_VERSION")).to_string(),
            host: machine::host(),
            server: "fio".into(),
            data_directory: format!("storage study, arm {arm}, block {block}"),
            interval_ns: 1_000_000_000,
            detail_ns: 60_000_000_000,
            begun_us: now_us(),
        };
        // Replace an earlier, incomplete attempt, like its log.
        let removed = match std::fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::Failed(format!("{}: {error}", directory.display())))
            }
            _ => Ok(()),
        };
        let server = ServerInfo {
            name: about.server.clone(),
            host: about.data_directory.clone(),
            segment: String::new(),
            pid: None,
            port: None,
            producer: about.made_by.clone(),
            created: about.begun_us as f64 * 1e-6,
        };
        let writer =
            removed.and_then(|()| Ok(Writer::open(&directory, about, RetentionPolicy::default())?));
        let account =
            |name: &str| Arc::new(Stat::new(name.into(), StatKind::Account, "ticks".into()));
        Recorder {
            writer,
            rows: RowBuilder::new(),
            devices: Arc::new(Devices::resolve(&System::live(), place, None)),
            device_rows: DeviceRows::default(),
            server,
            stats: Stats {
                read: account("operation::wait::IO:Read"),
                write: account("operation::wait::IO:Write"),
                idle: account("idle::wait::Client:Schedule"),
            },
            first: true,
        }
    }

    /// Adds work of the background by `threads` of each direction. An error is kept for the end.
    pub fn add(&mut self, work: &Work, threads: (usize, usize)) {
        let Ok(writer) = &mut self.writer else { return };
        let number = writer.next_frame();
        let frame = frame(work, threads, &self.stats, &self.server);
        let mut batch = self.rows.frame(&frame, number, 1);
        let reading = Reading::of_devices(&self.devices);
        self.device_rows.add((Arc::clone(&self.devices), reading), &mut batch);
        if std::mem::take(&mut self.first) {
            batch.append(self.begin());
        }
        // Histograms have the same interval, because a detail is as long as fio's reports.
        batch.histograms = self.rows.histograms(number);
        batch.stamp(number, recording::time_us(frame.realtime_ns));
        let Ok(writer) = &mut self.writer else { return };
        if let Err(error) = writer.push(batch) {
            self.writer = Err(error.into());
        }
    }

    /// Marks an event in the recording: a victim, a limit.
    pub fn mark(&mut self, kind: &str, text: &str) {
        let Ok(writer) = &mut self.writer else { return };
        let mut batch = Batch::default();
        batch.marks.push(MarkRow { kind: kind.into(), text: text.into(), ..MarkRow::default() });
        batch.stamp(writer.next_frame(), now_us());
        if let Err(error) = writer.push(batch) {
            self.writer = Err(error.into());
        }
    }

    fn begin(&self) -> Batch {
        let mut batch = Batch { settings: machine::settings(), ..Batch::default() };
        batch.servers.push(ServerRow {
            server: 1,
            name: self.server.name.as_str().into(),
            data_directory: self.server.host.as_str().into(),
            producer: self.server.producer.as_str().into(),
            created_us: (self.server.created * 1e6) as i64,
            clock: "monotonic".into(),
            ..ServerRow::default()
        });
        batch
    }

    /// Ends the recording.
    pub fn close(self) -> Result<(), Error> {
        self.writer?.close()?;
        Ok(())
    }
}

fn now_us() -> i64 {
    (crate::storage::engine::now() * 1e6) as i64
}

/// One interval; ticks are nanoseconds.
fn frame(work: &Work, threads: (usize, usize), stats: &Stats, server: &ServerInfo) -> Frame {
    let ticks = (work.seconds() * 1e9).max(0.0) as u64;
    let clock = ClockInfo { kind: "monotonic", ticks_per_second: 1e9 };
    let mut statistics = Vec::new();
    for (process, stat, threads, all, bytes) in [
        ("reader", &stats.read, threads.0, &work.read_durations, work.read_bytes),
        ("writer", &stats.write, threads.1, &work.write_durations, work.written_bytes),
    ] {
        let lived = ticks * threads as u64;
        let mut total = total(all, bytes);
        // An operation counts in the interval in which it ends, and may have begun in an earlier one.
        total.change.total = total.change.total.min(lived);
        let idle = lived - total.change.total;
        if lived == 0 {
            continue;
        }
        let mut rest = Total::default();
        rest.change.total = idle;
        rest.change.count = total.change.count;
        for (stat, total) in [(stat, total), (&stats.idle, rest)] {
            statistics.push(FrameStat { process: process.into(), stat: Arc::clone(stat), total });
        }
    }
    Frame {
        realtime_ns: (work.to * 1e9) as u64,
        monotonic_ns: segment::clock::monotonic_ns(),
        ticks,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        wall: ticks * (threads.0 + threads.1) as u64,
        statistics,
        ..Frame::empty(clock, Level::Waits, server.clone())
    }
}

fn total(responses: &Responses, bytes: u64) -> Total {
    let mut histogram = Histogram::new();
    let mut change = Change { amount: bytes, ..Change::default() };
    for (ns, count) in responses.iter() {
        histogram.add(ns, count);
        change.count += count;
        change.total += ns * count;
    }
    let of = |ns: Option<u64>| ns.map_or(Extreme::None, Extreme::Of);
    change.min = of(responses.iter().next().map(|response| response.0));
    change.max = of(responses.iter().last().map(|response| response.0));
    Total { change, histogram }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threads_time_is_in_operations_or_idle_and_no_more_than_it_lived() {
        let account =
            |name: &str| Arc::new(Stat::new(name.into(), StatKind::Account, "ticks".into()));
        let stats = Stats { read: account("r"), write: account("w"), idle: account("i") };
        let mut work = Work { from: 1.0, to: 3.0, read_bytes: 7, ..Work::default() };
        work.read_durations.add(0.5, 3);
        work.write_durations.add(9.0, 1);
        let frame = frame(&work, (2, 1), &stats, &ServerInfo::default());
        let times: Vec<_> = frame
            .statistics
            .iter()
            .map(|statistic| (&*statistic.stat.name, statistic.total.change.total))
            .collect();
        // Two readers lived four seconds, a writer two.
        let second = 1_000_000_000;
        assert_eq!(
            times,
            [("r", 3 * second / 2), ("i", 5 * second / 2), ("w", 2 * second), ("i", 0)]
        );
        assert_eq!((frame.wall, frame.statistics[0].total.change.amount), (6 * second, 7));
    }
}
