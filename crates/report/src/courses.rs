// SPDX-License-Identifier: PostgreSQL
//! The charts of a comparison: both sides on one axis, each from its own start.

use view::document::{Axis, Chart, Reference, Series, Side, Unit};

use super::charts::{line, lines, shows_something, values};
use super::material::Latency;
use super::point::{Figures, Point};
use super::source::course::Course;

/// The section that shows them.
pub const SECTION: &str = "course";

/// The percentiles of command latency that are shown.
const PERCENTILES: [(&str, &str, f64); 3] = [
    ("latency_p50", "Latency of commands: median", 0.5),
    ("latency_p95", "Latency of commands: 95th percentile", 0.95),
    ("latency_p99", "Latency of commands: 99th percentile", 0.99),
];

/// The points of both sides, including those that only the longer side has.
pub fn axis(a: &Course, b: &Course) -> Axis {
    let number = a.points.len().max(b.points.len());
    let measured =
        |at: usize, course: &Course| course.points.get(at).is_some_and(|point| point.seconds > 0.0);
    let seconds = |at| if measured(at, a) || measured(at, b) { a.step } else { 0.0 };
    Axis {
        time: (0..number).map(|at| at as f64 * a.step).collect(),
        seconds: (0..number).map(seconds).collect(),
    }
}

/// The charts that have something to show; `commits` says whether transactions are counted as commits that wrote
/// WAL or as commands.
pub fn charts(a: &Course, b: &Course, commits: bool) -> Vec<Chart> {
    let mut charts = vec![load(a, b), rate(a, b, commits)];
    charts.extend(PERCENTILES.map(|percentile| latency(a, b, percentile)));
    charts.retain(shows_something);
    charts
}

/// A figure of both sides.
fn both(a: &Course, b: &Course, of: impl Fn(&Figures, f64) -> Option<f64>) -> Vec<Series> {
    let number = a.points.len().max(b.points.len());
    let side = |side: Side, points: &[Point]| {
        let mut values = values(points, |figures, seconds| of(figures, seconds));
        values.resize(number, None);
        Series { side: Some(side), ..line(name(side), values) }
    };
    vec![side(Side::A, &a.points), side(Side::B, &b.points)]
}

fn name(side: Side) -> &'static str {
    match side {
        Side::A => "A",
        Side::B => "B",
    }
}

/// Average number of active sessions and, if both sides have the same number, the cores.
fn load(a: &Course, b: &Course) -> Chart {
    let series = both(a, b, |figures, seconds| {
        Some(figures.activities.iter().map(|activity| activity.1).sum::<f64>() / seconds)
    });
    let cores = Reference { name: "cores", value: a.cores as f64 };
    Chart {
        note: Some("Average number of busy sessions, including waits.".to_string()),
        reference: (a.cores == b.cores).then_some(cores),
        series,
        ..lines("load", SECTION, "Load: average active sessions", Unit::Sessions)
    }
}

fn rate(a: &Course, b: &Course, commits: bool) -> Chart {
    let series = both(a, b, move |figures, seconds| {
        Some(if commits { figures.commits } else { figures.commands } as f64 / seconds)
    });
    let title = if commits { "Commits that wrote WAL" } else { "Commands" };
    Chart { series, ..lines("rate", SECTION, title, Unit::PerSecond) }
}

/// Latency of commands: a percentile of those that ended within one reading of the histograms.
fn latency(a: &Course, b: &Course, (id, title, q): (&'static str, &'static str, f64)) -> Chart {
    let number = a.points.len().max(b.points.len());
    let side = |side: Side, course: &Course| {
        let value = |at: usize| {
            let middle = (at as f64 + 0.5) * course.step;
            let holds = |latency: &&Latency| {
                latency.start <= middle && middle < latency.start + latency.seconds
            };
            let within = course.latency.iter().find(holds)?;
            Some(within.histogram.quantile(q, 0, u64::MAX)? as f64 * within.seconds_per_tick)
        };
        let values = (0..number).map(value).collect();
        Series { side: Some(side), ..line(name(side), values) }
    };
    let readings = [a, b].into_iter().flat_map(|course| &course.latency);
    let longest = readings.map(|latency| latency.seconds).fold(0.0, f64::max);
    Chart {
        note: Some(format!(
            "Time to handle client commands, each percentile over {}.",
            view::units::duration(longest)
        )),
        series: vec![side(Side::A, a), side(Side::B, b)],
        ..lines(id, SECTION, title, Unit::Seconds)
    }
}

#[cfg(test)]
mod tests {
    use segment::Histogram;

    use super::*;

    /// A side of `n` seconds with this many commits and active sessions in each second.
    fn course(n: usize, commits: u64, active: f64, ticks: u64) -> Course {
        let figures =
            Figures { commits, activities: vec![("cpu".into(), active)], ..Figures::default() };
        let point =
            |at: usize| Point { start: at as f64, seconds: 1.0, figures: Some(figures.clone()) };
        let mut histogram = Histogram::new();
        histogram.add(ticks, 5);
        let latency = vec![Latency { start: 0.0, seconds: 2.0, seconds_per_tick: 1e-9, histogram }];
        Course { step: 1.0, points: (0..n).map(point).collect(), latency, cores: 4 }
    }

    #[test]
    fn both_sides_are_in_one_chart_with_one_axis() {
        let (a, b) = (course(3, 10, 1.5, 1_000), course(5, 20, 0.5, 4_000_000));
        assert_eq!(axis(&a, &b).time, [0.0, 1.0, 2.0, 3.0, 4.0]);
        let charts = charts(&a, &b, true);
        let of = |id: &str| charts.iter().find(|chart| chart.id == id).unwrap();
        let values = |id: &str, at: usize| of(id).series[at].values.clone();
        assert_eq!(values("rate", 0), [Some(10.0), Some(10.0), Some(10.0), None, None]);
        assert_eq!(values("rate", 1), [Some(20.0); 5]);
        assert_eq!(values("load", 0)[..3], [Some(1.5); 3]);
        assert_eq!(of("load").reference.unwrap().value, 4.0);
        let ids: Vec<&str> = charts.iter().map(|chart| chart.id).collect();
        assert_eq!(ids, ["load", "rate", "latency_p50", "latency_p95", "latency_p99"]);
        let p99 = values("latency_p99", 1);
        assert!((p99[1].unwrap() / 4e-3 - 1.0).abs() < 0.07 && p99[2].is_none(), "{p99:?}");
    }

    #[test]
    fn nothing_is_drawn_where_there_is_nothing() {
        let mut idle = course(3, 0, 0.0, 1);
        idle.latency.clear();
        assert!(charts(&idle, &idle, true).is_empty());
        let other = Course { cores: 8, ..course(3, 1, 1.0, 1) };
        assert_eq!(charts(&course(3, 1, 1.0, 1), &other, true)[0].reference, None);
    }

    #[test]
    fn each_percentile_is_of_its_part_and_rates_are_of_what_is_counted() {
        let mut a = course(2, 10, 1.0, 1);
        let mut histogram = Histogram::new();
        // Of 100 commands, 60 take 8 ticks, 37 take 64, two take 512, and one takes 4096: each of these starts a
        // bucket.
        for (ticks, count) in [(8, 60), (64, 37), (512, 2), (4096, 1)] {
            histogram.add(ticks, count);
        }
        a.latency[0] = Latency { start: 0.0, seconds: 1.0, seconds_per_tick: 1.0, histogram };
        let charts = charts(&a, &a, false);
        let first = |id: &str| {
            charts.iter().find(|chart| chart.id == id).map(|chart| chart.series[0].values.clone())
        };
        // Within a sixteenth.
        for (id, low, high) in
            [("latency_p50", 8.0, 8.5), ("latency_p95", 64.0, 68.0), ("latency_p99", 512.0, 544.0)]
        {
            let values = first(id).unwrap();
            assert!(
                values[0].is_some_and(|value| (low..=high).contains(&value)),
                "{id} {values:?}"
            );
            assert_eq!(values[1], None, "the reading is over");
        }
        assert_eq!(first("rate"), None, "no command is recorded, only commits");
        let figures = a.points[1].figures.as_mut().unwrap();
        figures.commands = 6;
        a.points[1].seconds = 0.5;
        let rates = rate(&a, &a, false).series[0].values.clone();
        assert_eq!(rates, [Some(0.0), Some(12.0)]);
    }

    #[test]
    fn a_point_that_neither_side_measured_has_no_time() {
        let (mut a, mut b) = (course(3, 1, 1.0, 1), course(2, 1, 1.0, 1));
        (a.points[0].seconds, b.points[0].seconds, a.points[1].seconds) = (0.0, 0.0, 0.0);
        assert_eq!(axis(&a, &b).seconds, [0.0, 1.0, 1.0]);
    }
}
