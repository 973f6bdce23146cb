// SPDX-License-Identifier: PostgreSQL
//! The charts of an answer: the background over time, as a whole and in close-ups of each loss of steadiness.

use crate::engine::page::Drawn;
use crate::engine::svg::{lines, ChartFrame, ChartLine, Spot};

use super::answer::course::{CellCourse, CoursePoint};
use super::answer::StorageResults;

/// More points than this are averaged.
const POINTS: usize = 600;
/// A close-up shows this much on both sides, seconds; in a short cell, a quarter of the cell.
const CLOSE: f64 = 60.0;

/// A quantity over time.
struct Quantity {
    title: &'static str,
    unit: &'static str,
    of: fn(&CoursePoint) -> Option<f64>,
}

const RATE: Quantity =
    Quantity { title: "Operations per second", unit: "1/s", of: |point| Some(point.rate) };

const RESPONSE: Quantity = Quantity {
    title: "Mean response time from the scheduled start",
    unit: "ms",
    of: |point| point.response.map(|seconds| 1e3 * seconds),
};

const READS: Quantity = Quantity {
    title: "Reads, share of operations",
    unit: "%",
    of: |point| point.reads.map(|share| 100.0 * share),
};

const BYTES: Quantity = Quantity {
    title: "Bytes read and written",
    unit: "MB/s",
    of: |point| (point.bytes > 0.0).then_some(point.bytes / 1e6),
};

/// All charts, from the first block in which each arm has a cell.
pub fn draw_charts(answer: &StorageResults, courses: &[CellCourse]) -> Vec<Drawn> {
    let shown: Vec<(usize, &CellCourse)> = answer
        .arms
        .iter()
        .enumerate()
        .filter_map(|(colour, arm)| {
            Some((
                colour,
                courses
                    .iter()
                    .find(|course| course.arm == arm.name && !course.points.is_empty())?,
            ))
        })
        .collect();
    let mut drawn = Vec::new();
    for quantity in [RATE, RESPONSE, READS, BYTES] {
        drawn.extend(draw(answer, &shown, &quantity, None));
        if quantity.title != RATE.title {
            continue;
        }
        for (colour, course) in &shown {
            let cell = answer
                .cells
                .iter()
                .find(|cell| cell.arm == course.arm && cell.block == course.block);
            let Some(lost) = cell.and_then(|cell| cell.lost.as_ref()) else { continue };
            let around = CLOSE.min(answer.seconds / 4.0);
            let range = (lost.at - around, lost.at + around);
            drawn.extend(draw(answer, &[(*colour, course)], &quantity, Some(range)));
        }
    }
    drawn
}

fn draw(
    answer: &StorageResults,
    shown: &[(usize, &CellCourse)],
    quantity: &Quantity,
    range: Option<(f64, f64)>,
) -> Option<Drawn> {
    let within =
        |point: &&CoursePoint| range.is_none_or(|(from, to)| point.from >= from && point.to <= to);
    let line = |(colour, course): &(usize, &CellCourse)| {
        let points: Vec<&CoursePoint> = course.points.iter().filter(within).collect();
        ChartLine {
            name: answer.arm_title(&course.arm),
            spots: averaged(&points, quantity.of),
            smooth: true,
            colour: *colour,
        }
    };
    let all: Vec<ChartLine> = shown.iter().map(line).filter(|line| line.spots.len() > 1).collect();
    if all.is_empty() {
        return None;
    }
    let inside = |at: f64| range.is_none_or(|(from, to)| at >= from && at <= to);
    let mut marks: Vec<(f64, String)> = Vec::new();
    for (_, course) in shown {
        let title = answer.arm_title(&course.arm);
        for run in course.runs.iter().filter(|run| run.at.is_some()) {
            let text = format!("{title}: {} started, {:.1} s", run.name, run.ran.seconds);
            marks.push((run.began, text));
        }
        marks.extend(course.limits.iter().map(|(at, text)| (*at, format!("{title}: {text}"))));
    }
    marks.retain(|(at, _)| inside(*at));
    let xs = || all.iter().flat_map(|line| &line.spots).map(|spot| spot.x);
    let (low, high) = (xs().fold(f64::INFINITY, f64::min), xs().fold(f64::NEG_INFINITY, f64::max));
    let ticks = ticks(low, high);
    let title = match range {
        None => quantity.title.to_string(),
        Some((from, _)) => format!("{}, close-up from {:.0} s", quantity.title, from.max(0.0)),
    };
    let frame = ChartFrame { title: &title, unit: quantity.unit };
    let svg = lines(frame, &all, &ticks, "seconds since the measurement began", &marks);
    let caption =
        "Times before 0 are the warm-up. Vertical lines mark the start of a victim or of a limit."
            .into();
    Some(Drawn { title, svg, caption })
}

/// Converts points to spots; averages adjacent points if there are too many.
fn averaged(points: &[&CoursePoint], of: fn(&CoursePoint) -> Option<f64>) -> Vec<Spot> {
    let step = points.len().div_ceil(POINTS).max(1);
    points
        .chunks(step)
        .filter_map(|chunk| {
            let values: Vec<f64> = chunk.iter().filter_map(|point| of(point)).collect();
            let y = values.iter().sum::<f64>() / values.len().max(1) as f64;
            (!values.is_empty()).then(|| Spot { x: chunk[chunk.len() - 1].to, y, half: 0.0 })
        })
        .collect()
}

/// Round times between two times.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let steps = [1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0];
    let step = steps.into_iter().find(|step| (high - low) / step <= 10.0).unwrap_or(7200.0);
    let first = (low / step).ceil() as i64;
    (first..).map(|n| n as f64 * step).take_while(|at| *at <= high).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(ticks(-3.0, 42.0), [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0]);
        assert_eq!(ticks(0.0, 7200.0).len(), 5);
    }
}
