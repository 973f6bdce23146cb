// SPDX-License-Identifier: PostgreSQL
//! The charts: the points of a report as series.
//!
//! Rates in charts are per second of measured time, so that values times the axis' `seconds` add up to the
//! figures in the tables.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use recording::LogRow;
use segment::statements::WaitClass;
use view::units::others;
use view::HostMetrics;

use super::material::{Material, Moment};
use super::point::{Figures, Point};
use super::tables::server_log::{is_error, logged};
use view::document::{Axis, AxisName, Chart, ChartKind, Reference, Series, Unit};

/// Number of activities that have a series of their own.
const ACTIVITIES: usize = 12;
/// Number of kinds of errors that have a series of their own.
const ERRORS: usize = 6;
/// The part of a chart's height below which an activity cannot be seen, even where it is highest.
const VISIBLE: f64 = 0.005;
/// The classes from the bottom of a stack to its top, which is also the order of columns.
pub(crate) const ORDER: [WaitClass; 7] = [
    WaitClass::Cpu,
    WaitClass::Io,
    WaitClass::Lwlock,
    WaitClass::Lock,
    WaitClass::Client,
    WaitClass::Ipc,
    WaitClass::Other,
];

/// The charts whose times samples estimate.
const ESTIMATED: [&str; 2] = ["activity", "processors"];

/// The times of the points.
pub fn main_axis(points: &[Point]) -> Axis {
    Axis {
        time: points.iter().map(|p| p.start).collect(),
        seconds: points.iter().map(|p| p.seconds).collect(),
    }
}

/// The times of the individual intervals.
pub fn fine_axis(moments: &[Moment]) -> Axis {
    Axis {
        time: moments.iter().map(|m| m.start).collect(),
        seconds: moments.iter().map(|m| m.seconds).collect(),
    }
}

/// All charts that have something to show.
pub fn charts(material: &Material) -> Vec<Chart> {
    let points = &material.points;
    let cores = Reference { name: "cores", value: material.whole.cores as f64 };
    let mut charts = vec![
        activity(points, cores),
        processors(points, cores),
        throughput(&material.moments),
        read_and_handle(points),
        commits(points),
        commit_times(points),
        files(points),
        logged_errors(material),
    ];
    charts.extend(sessions(points));
    charts.retain(shows_something);
    if material.whole.sampling.is_some() {
        for chart in charts.iter_mut().filter(|chart| ESTIMATED.contains(&chart.id)) {
            let note = chart.note.take().map_or_else(String::new, |note| note + " ");
            chart.note = Some(note + "Estimates from samples.");
        }
    }
    charts
}

/// Whether any value is not zero.
pub(crate) fn shows_something(chart: &Chart) -> bool {
    chart.series.iter().any(|s| s.values.iter().flatten().any(|value| *value != 0.0))
}

/// A figure of each point.
pub(crate) fn values(
    points: &[Point],
    of: impl Fn(&Figures, f64) -> Option<f64>,
) -> Vec<Option<f64>> {
    let value = |point: &Point| of(point.figures.as_ref()?, point.seconds);
    points.iter().map(|point| value(point).filter(|v| v.is_finite())).collect()
}

pub(crate) fn line(name: &str, values: Vec<Option<f64>>) -> Series {
    Series { name: name.to_string(), class: None, shade: 0, side: None, values }
}

pub(crate) fn lines(
    id: &'static str,
    section: &'static str,
    title: &'static str,
    unit: Unit,
) -> Chart {
    Chart {
        id,
        section,
        title,
        note: None,
        kind: ChartKind::Lines,
        axis: AxisName::Main,
        unit,
        reference: None,
        series: Vec::new(),
    }
}

/// Average number of active sessions, by activity.
fn activity(points: &[Point], cores: Reference) -> Chart {
    // Its time, and its height where it is highest.
    let mut sums: HashMap<&Arc<str>, (f64, f64)> = HashMap::new();
    let mut highest = 0.0;
    for point in points.iter().filter(|point| point.seconds > 0.0) {
        let activities = point.figures.iter().flat_map(|figures| &figures.activities);
        let mut height = 0.0;
        for (activity, seconds) in activities {
            let own = seconds / point.seconds;
            let (sum, peak) = sums.entry(activity).or_default();
            (*sum, *peak) = (*sum + seconds, peak.max(own));
            height += own;
        }
        highest = f64::max(highest, height);
    }
    let mut names: Vec<(&Arc<str>, (f64, f64))> = sums.into_iter().collect();
    names.sort_by(|a, b| b.1 .0.total_cmp(&a.1 .0).then_with(|| a.0.cmp(b.0)));
    let (mut names, mut rest): (Vec<_>, Vec<_>) =
        names.into_iter().partition(|(_, (_, peak))| *peak >= VISIBLE * highest);
    rest.extend(names.drain(names.len().min(ACTIVITIES)..));
    let rank = |name: &str| ORDER.iter().position(|class| *class == WaitClass::of_name(name));
    names.sort_by(|a, b| rank(a.0).cmp(&rank(b.0)).then_with(|| b.1 .0.total_cmp(&a.1 .0)));
    let places: HashMap<&str, usize> =
        names.iter().enumerate().map(|(at, (name, _))| (&***name, at)).collect();
    let mut series: Vec<Series> = Vec::new();
    for (name, _) in &names {
        let class = WaitClass::of_name(name).name();
        let shade = series.iter().filter(|s| s.class == Some(class)).count();
        let values = vec![None; points.len()];
        series.push(Series { class: Some(class), shade, ..line(name, values) });
    }
    if !rest.is_empty() {
        let name = others(rest.len());
        let shade = series.iter().filter(|s| s.class == Some("other")).count();
        let values = vec![None; points.len()];
        series.push(Series { class: Some("other"), shade, ..line(&name, values) });
    }
    for (at, point) in points.iter().enumerate() {
        let Some(figures) = point.figures.as_ref().filter(|_| point.seconds > 0.0) else {
            continue;
        };
        for one in &mut series {
            one.values[at] = Some(0.0);
        }
        let last = series.len().saturating_sub(1);
        for (activity, seconds) in &figures.activities {
            let place = places.get(&**activity).copied().unwrap_or(last);
            if let Some(Some(value)) = series.get_mut(place).and_then(|s| s.values.get_mut(at)) {
                *value += seconds / point.seconds;
            }
        }
    }
    Chart {
        kind: ChartKind::Stack,
        note: Some(
            "Average number of busy sessions by activity. CPU demand above the line of cores \
             cannot be met."
                .to_string(),
        ),
        reference: Some(cores),
        series,
        ..lines("activity", "activity", "Average active sessions by activity", Unit::Sessions)
    }
}

/// CPUs: demand of the sessions, and the kernel's figures for the machine.
fn processors(points: &[Point], cores: Reference) -> Chart {
    let host =
        |of: fn(&HostMetrics) -> Option<f64>| values(points, move |f, _| of(f.host.as_ref()?));
    let cpu = values(points, |f, seconds| {
        let of = |activity: &str| -> Option<f64> {
            let those = f.activities.iter().filter(|a| *a.0 == *activity).map(|a| a.1);
            those.reduce(|a, b| a + b)
        };
        // What samples could not tell apart is no line.
        let is_known = of(segment::sampling::UNKNOWN).is_none() || of("cpu").is_some();
        is_known.then(|| of("cpu").unwrap_or(0.0) / seconds)
    });
    let mut series =
        vec![Series { class: Some("cpu"), ..line("sessions: on CPU or in the run queue", cpu) }];
    for (name, values) in [
        ("machine: busy CPUs", host(|h| Some(h.busy))),
        ("machine: processes running or ready to run", host(|h| h.runnable)),
        ("machine: idle, waiting for storage", host(|h| Some(h.iowait))),
    ] {
        if values.iter().any(Option::is_some) {
            series.push(line(name, values));
        }
    }
    Chart {
        note: Some(
            "The cpu time of sessions includes the run queue. The machine's figures come from the \
             kernel and include all processes."
                .to_string(),
        ),
        reference: Some(cores),
        series,
        ..lines("processors", "processors", "CPU demand and use", Unit::Sessions)
    }
}

/// Commands and commits per second, for each interval.
fn throughput(moments: &[Moment]) -> Chart {
    let rate = |of: fn(&Moment) -> Option<u64>| -> Vec<Option<f64>> {
        let value = |m: &Moment| Some(of(m)? as f64 / m.seconds);
        moments.iter().map(|m| value(m).filter(|_| m.seconds > 0.0)).collect()
    };
    let mut series = vec![line("commands", rate(|m| Some(m.commands)))];
    let commits = rate(|m| m.commits);
    if commits.iter().any(Option::is_some) {
        series.push(line("commits that wrote WAL", commits));
    }
    Chart {
        axis: AxisName::Fine,
        series,
        ..lines("throughput", "throughput", "Throughput", Unit::PerSecond)
    }
}

/// Reading and handling commands.
fn read_and_handle(points: &[Point]) -> Chart {
    let read = values(points, |f, seconds| Some(f.read_seconds / seconds));
    let handle = values(points, |f, seconds| Some(f.handle_seconds / seconds));
    Chart {
        note: Some(
            "Seconds per second, for all clients together: time to wait for the next command and to \
             handle it."
            .to_string(),
        ),
        series: vec![
            Series { class: Some("client"), ..line("reading commands", read) },
            Series { class: Some("cpu"), ..line("handling commands", handle) },
        ],
        ..lines("read_handle", "throughput", "Reading and handling commands", Unit::Sessions)
    }
}

/// Commits and flushes per second.
fn commits(points: &[Point]) -> Chart {
    let rate = |of: fn(&Figures) -> u64| values(points, move |f, s| Some(of(f) as f64 / s));
    Chart {
        series: vec![
            line("commits that wrote WAL", rate(|f| f.commits)),
            line("syncs of the WAL", rate(|f| f.flushes)),
        ],
        ..lines("commits", "commits", "Commits and flushes", Unit::PerSecond)
    }
}

/// Duration of commits.
fn commit_times(points: &[Point]) -> Chart {
    Chart {
        series: vec![
            line("commit that flushes (leader)", values(points, |f, _| f.leader.mean_seconds())),
            line("its WAL sync", values(points, |f, _| f.sync.mean_seconds())),
        ],
        ..lines("commit_times", "commits", "Mean time of commits", Unit::Seconds)
    }
}

/// Bytes read and written.
fn files(points: &[Point]) -> Chart {
    let rate = |of: fn(&Figures) -> u64| values(points, move |f, s| Some(of(f) as f64 / s));
    Chart {
        series: vec![
            line("read", rate(|f| f.read_bytes)),
            line("written", rate(|f| f.written_bytes)),
            line("WAL written", rate(|f| f.wal_bytes)),
        ],
        ..lines("bytes", "files", "Bytes read and written", Unit::BytesPerSecond)
    }
}

/// Errors in the server's log by SQLSTATE, or without one by severity.
fn logged_errors(material: &Material) -> Chart {
    let points = &material.points;
    let label = |row: &LogRow| match &*row.sqlstate {
        "" => row.severity.to_string(),
        sqlstate => sqlstate.to_string(),
    };
    let mut counts: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for row in material.log.iter().filter(|row| is_error(row)) {
        let at = points.partition_point(|point| point.start <= logged(row));
        // Those in gaps have no rate.
        if let Some(at) = at.checked_sub(1).filter(|at| points[*at].seconds > 0.0) {
            counts.entry(label(row)).or_insert_with(|| vec![0; points.len()])[at] += 1;
        }
    }
    let mut counts: Vec<(String, Vec<u64>)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.iter().sum::<u64>()));
    let rest = counts.split_off(counts.len().min(ERRORS));
    if !rest.is_empty() {
        let sum = |at| rest.iter().map(|(_, counts)| counts[at]).sum();
        counts.push((others(rest.len()), (0..points.len()).map(sum).collect()));
    }
    let series = counts.into_iter().map(|(name, counts)| {
        let rate = |(point, count): (&Point, u64)| {
            (point.seconds > 0.0).then(|| count as f64 / point.seconds)
        };
        line(&name, points.iter().zip(counts).map(rate).collect())
    });
    let series = series.collect();
    Chart {
        series,
        ..lines("log_errors", "log", "Errors in the server's log by SQLSTATE", Unit::PerSecond)
    }
}

/// Client sessions by state.
fn sessions(points: &[Point]) -> Option<Chart> {
    let first =
        points.iter().filter_map(|p| p.figures.as_ref()).find(|f| !f.sessions.is_empty())?;
    let series = first.sessions.iter().map(|(state, _)| {
        let of = |f: &Figures| f.sessions.iter().find(|s| s.0 == *state).map(|s| s.1);
        line(state, values(points, |f, _| of(f)))
    });
    let series = series.collect();
    Some(Chart { series, ..lines("sessions", "sessions", "Processes by state", Unit::Number) })
}
