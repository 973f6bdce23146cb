// SPDX-License-Identifier: PostgreSQL
//! The figures of the charts for one stretch of time. They are taken from its interval, so that they are the same
//! figures as everywhere else.

use std::sync::Arc;

use segment::calls::SampledNumber;
use segment::interval::{Interval, Timing};
use segment::stat_names;
use view::HostMetrics;

use crate::sums::PointSums;

/// The wait event of sessions that wait for their clients.
const CLIENT_READ: &str = "Client:ClientRead";

/// One point of the charts.
#[derive(Debug, Clone, Default)]
pub struct Point {
    /// When it starts, seconds since 1970.
    pub start: f64,
    /// How much of it was measured, seconds; 0 in a gap.
    pub seconds: f64,
    /// The figures; `None` in a gap.
    pub figures: Option<Figures>,
}

/// Events of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct EventSum {
    /// Their number.
    pub count: u64,
    /// Their total time.
    pub seconds: f64,
}

impl EventSum {
    fn from_timing(timing: &Timing) -> EventSum {
        EventSum { count: timing.count, seconds: timing.seconds }
    }

    /// Their mean time; `None` without events.
    pub fn mean_seconds(&self) -> Option<f64> {
        (self.count > 0).then(|| self.seconds / self.count as f64)
    }
}

/// A figure that is a sum over statistics.
#[derive(Debug)]
pub enum FigureMut<'f> {
    /// Events or bytes.
    Whole(&'f mut u64),
    /// Time.
    Seconds(&'f mut f64),
    /// Time that is only known if there was some.
    SecondsIfAny(&'f mut Option<f64>),
}

impl FigureMut<'_> {
    /// The figure without its fraction.
    pub fn whole(self) -> u64 {
        match self {
            FigureMut::Whole(number) => *number,
            FigureMut::Seconds(seconds) => *seconds as u64,
            FigureMut::SecondsIfAny(seconds) => seconds.unwrap_or(0.0) as u64,
        }
    }

    /// Sets the figure to one of these.
    pub fn set(self, number: u64, seconds: f64) {
        match self {
            FigureMut::Whole(figure) => *figure = number,
            FigureMut::Seconds(figure) => *figure = seconds,
            FigureMut::SecondsIfAny(figure) => *figure = (seconds > 0.0).then_some(seconds),
        }
    }
}

/// The figures of a stretch of time.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Seconds by activity, without idle ones, most time first.
    pub activities: Vec<(Arc<str>, f64)>,
    /// Commands of clients that were handled.
    pub commands: u64,
    /// Time to handle them.
    pub handle_seconds: f64,
    /// Time to wait for them. The wait for a command is counted when it ends.
    pub read_seconds: f64,
    /// Time in which sessions waited for their clients to send something, including waits that have
    /// not ended.
    pub client_read_seconds: f64,
    /// A Java client's pauses for garbage collection, each counted as a whole when it ended. `None` if only
    /// its accounts are known, because its agent is older than that counter.
    pub collection_stop_seconds: Option<f64>,
    /// A Java client's open connections.
    pub open_connections: Option<SampledNumber>,
    /// The open connections that a Java client's pools have handed out.
    pub borrowed_connections: Option<SampledNumber>,
    /// Commits that wrote WAL.
    pub commits: u64,
    /// Commits whose backend flushed the WAL itself.
    pub leader: EventSum,
    /// Syncs of the WAL in commits.
    pub sync: EventSum,
    /// Syncs of the WAL.
    pub flushes: u64,
    /// Bytes read from files.
    pub read_bytes: u64,
    /// Bytes written to files, excluding WAL.
    pub written_bytes: u64,
    /// Bytes of WAL written.
    pub wal_bytes: u64,
    /// The kernel's own view.
    pub host: Option<HostMetrics>,
    /// Client sessions by state.
    pub sessions: Vec<(String, f64)>,
    /// The sums of the rows of tables; empty if no page shows them.
    pub sums: PointSums,
}

impl Figures {
    /// The figures of an interval.
    pub fn from_interval(interval: &Interval) -> Figures {
        let activities = interval
            .activities_where(|account| !account.idle)
            .into_iter()
            .map(|row| (row.activity, row.timing.seconds))
            .collect();
        let sum = |of: fn(&segment::interval::CommandRow) -> f64| -> f64 {
            interval.commands.iter().map(of).sum()
        };
        let moved = |wanted: fn(&str, &str) -> bool| -> u64 {
            let rows = interval.files.iter().filter(|row| wanted(&row.file, &row.operation));
            rows.fold(0, |sum, row| sum.saturating_add(row.bytes))
        };
        let statistic = |name: &str| interval.statistics.iter().find(|row| row.name == name);
        Figures {
            activities,
            commands: interval.commands_handled,
            handle_seconds: sum(|c| c.handle.seconds),
            read_seconds: sum(|c| c.read.seconds),
            client_read_seconds: interval
                .ledger
                .iter()
                .filter(|account| &*account.activity == CLIENT_READ)
                .map(|account| account.timing.seconds)
                .sum(),
            collection_stop_seconds: statistic(stat_names::COLLECTION_STOP).map(|row| row.total),
            open_connections: statistic(stat_names::CONNECTIONS_OPEN)
                .and_then(SampledNumber::from_row),
            borrowed_connections: statistic(stat_names::CONNECTIONS_BORROWED)
                .and_then(SampledNumber::from_row),
            commits: interval.commits.count,
            leader: EventSum::from_timing(&interval.commits.leader),
            sync: EventSum::from_timing(&interval.commits.sync),
            flushes: interval.commits.flushes,
            read_bytes: moved(|_, operation| operation == "read"),
            written_bytes: moved(|file, operation| file != "wal" && is_write(operation)),
            wal_bytes: moved(|file, operation| file == "wal" && is_write(operation)),
            host: None,
            sessions: Vec::new(),
            sums: PointSums::default(),
        }
    }

    /// All figures that are sums over statistics, besides the activities and the tables.
    pub fn numbers(&mut self) -> [FigureMut<'_>; 14] {
        use FigureMut::{Seconds, SecondsIfAny, Whole};
        let Figures {
            activities: _,
            commands,
            handle_seconds,
            read_seconds,
            client_read_seconds,
            collection_stop_seconds,
            open_connections: _,
            borrowed_connections: _,
            commits,
            leader,
            sync,
            flushes,
            read_bytes,
            written_bytes,
            wal_bytes,
            host: _,
            sessions: _,
            sums: _,
        } = self;
        [
            Whole(commands),
            Seconds(handle_seconds),
            Seconds(read_seconds),
            Seconds(client_read_seconds),
            SecondsIfAny(collection_stop_seconds),
            Whole(commits),
            Whole(&mut leader.count),
            Seconds(&mut leader.seconds),
            Whole(&mut sync.count),
            Seconds(&mut sync.seconds),
            Whole(flushes),
            Whole(read_bytes),
            Whole(written_bytes),
            Whole(wal_bytes),
        ]
    }
}

fn is_write(operation: &str) -> bool {
    matches!(operation, "write" | "extend")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_operations_that_move_them_and_wal_is_apart() {
        let mut interval = crate::sample::material().whole;
        let one = interval.files[0].clone();
        let row = |file: &str, operation: &str, bytes: u64| {
            let mut row = one.clone();
            (row.file, row.operation, row.bytes) = (file.into(), operation.into(), bytes);
            row
        };
        interval.files = vec![
            row("main", "read", 1),
            row("wal", "read", 2),
            row("main", "write", 4),
            row("temporary", "extend", 8),
            row("wal", "write", 16),
            row("wal", "extend", 32),
            row("main", "prefetch", 64),
            row("wal", "sync", 128),
            row("main", "writeback", 256),
        ];
        let figures = Figures::from_interval(&interval);
        assert_eq!((figures.read_bytes, figures.written_bytes, figures.wal_bytes), (3, 12, 48));
        interval.files.push(row("main", "read", u64::MAX));
        assert_eq!(Figures::from_interval(&interval).read_bytes, u64::MAX);
    }

    #[test]
    fn figures_are_those_of_the_interval() {
        let mut interval = crate::sample::material().whole;
        let mut read = 0.0;
        for row in &mut interval.ledger {
            row.idle = &*row.activity != "cpu";
            if &*row.activity == "Client:ClientRead" {
                row.timing.seconds = 0.5;
                read += 0.5;
            }
        }
        for (at, row) in interval.commands.iter_mut().enumerate() {
            row.handle.seconds = 1.0 + at as f64;
            row.read.seconds = 0.25;
        }
        let kinds = interval.commands.len() as f64;
        interval.commands_handled = 11;
        interval.commits.count = 12;
        interval.commits.flushes = 13;
        let figures = Figures::from_interval(&interval);
        let names: Vec<&str> = figures.activities.iter().map(|activity| &*activity.0).collect();
        assert_eq!(names, ["cpu"], "what is idle is left out");
        assert_eq!(figures.handle_seconds, kinds * (kinds + 1.0) / 2.0);
        assert_eq!(figures.read_seconds, kinds * 0.25);
        assert!(read > 0.0);
        assert_eq!((figures.client_read_seconds, figures.collection_stop_seconds), (read, None));
        assert_eq!((figures.commands, figures.commits, figures.flushes), (11, 12, 13));
    }
}
