// SPDX-License-Identifier: PostgreSQL
//! How a victim affects the background: rate and response time while it runs, compared with those of quiet periods of
//! the same cell.

use serde::Serialize;

use stats::Estimate;

use super::course::{CellCourse, CoursePoint, VictimRun};
use super::steadiness::{Loss, RECOVERY};

/// The effect of a victim on the background.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Impact {
    /// Name of the arm.
    pub arm: String,
    /// Name of the victim.
    pub victim: String,
    /// The affected figure of the background: "rate" or "response", the mean response time.
    pub of: &'static str,
    /// Number of runs.
    pub runs: usize,
    /// Change while the victim runs, percent: the geometric mean over runs.
    pub percent: f64,
    /// Half the width of its 95 % interval, percentage points; `null` for fewer than three runs.
    pub half_width: Option<f64>,
    /// Whether Student's t and signed ranks agree that it is not chance.
    pub resolved: bool,
}

/// A figure of points, averaged over their time.
type PointFigure = fn(&[&CoursePoint]) -> Option<f64>;

const FIGURES: [(&str, PointFigure); 2] = [("rate", rate), ("response", response)];

fn rate(points: &[&CoursePoint]) -> Option<f64> {
    let seconds: f64 = points.iter().map(|point| point.to - point.from).sum();
    let made: f64 = points.iter().map(|point| point.rate * (point.to - point.from)).sum();
    (seconds > 0.0 && made > 0.0).then(|| made / seconds)
}

/// Averaged over operations, not over time.
fn response(points: &[&CoursePoint]) -> Option<f64> {
    let weight = |point: &CoursePoint| point.rate * (point.to - point.from);
    let all =
        points.iter().filter_map(|point| Some((point.response? * weight(point), weight(point))));
    let (sum, made) = all.fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    (sum > 0.0 && made > 0.0).then(|| sum / made)
}

/// The log ratio of a figure while a victim ran to the figure in quiet periods. Only periods on the same side of a loss
/// of steadiness count.
fn log_ratio(
    course: &CellCourse,
    lost: Option<&Loss>,
    run: &VictimRun,
    of: PointFigure,
) -> Option<f64> {
    let ended = run.began + run.ran.seconds;
    let is_after = |at: f64| lost.is_some_and(|lost| at >= lost.at);
    let during: Vec<&CoursePoint> =
        course.measured().filter(|point| point.to > run.began && point.from < ended).collect();
    let quiet: Vec<&CoursePoint> = course
        .measured()
        .filter(|point| {
            !course.is_busy(point, RECOVERY) && is_after(point.from) == is_after(run.began)
        })
        .collect();
    let log = (of(&during)? / of(&quiet)?).ln();
    // Figures that do not vary can still differ by rounding.
    Some(if log.abs() < 1e-9 { 0.0 } else { log })
}

/// The effects of a victim on the background of an arm, over all its cells.
pub fn impacts(arm: &str, victim: &str, cells: &[(&CellCourse, Option<&Loss>)]) -> Vec<Impact> {
    let of_figure = |(name, of): (&'static str, PointFigure)| {
        let logs: Vec<f64> = cells
            .iter()
            .flat_map(|(course, lost)| {
                // Behind the schedule, response times grow all the time, and the mean depends on how many of the
                // operations are reads.
                let until = match name {
                    "response" => lost.map_or(f64::INFINITY, |lost| lost.at),
                    _ => f64::INFINITY,
                };
                let runs = course.runs.iter().filter(move |run| run.began < until);
                let runs = runs.filter(|run| run.at.is_some() && run.name == victim);
                runs.filter_map(|run| log_ratio(course, *lost, run, of))
            })
            .collect();
        let estimate = Estimate::of_repeats(&logs);
        let plain = logs.iter().sum::<f64>() / logs.len().max(1) as f64;
        let ratio = estimate.as_ref().map_or(plain, |estimate| estimate.mean).exp();
        (!logs.is_empty()).then(|| Impact {
            arm: arm.into(),
            victim: victim.into(),
            of: name,
            runs: logs.len(),
            percent: 100.0 * (ratio - 1.0),
            half_width: estimate.as_ref().map(|estimate| 100.0 * ratio * estimate.half_width),
            resolved: estimate.is_some_and(|estimate| estimate.above(0.0) || estimate.below(0.0)),
        })
    };
    FIGURES.into_iter().filter_map(of_figure).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::victim::VictimOutcome;

    #[test]
    fn a_victim_that_halves_the_rate_is_seen() {
        let starts = [10.0, 30.0, 50.0, 70.0, 90.0, 110.0, 130.0];
        let busy = |at: f64| starts.iter().any(|start| at >= *start && at < start + 5.0);
        let point = |second: i32| {
            let from = f64::from(second);
            let wobble = 1.0 + 0.01 * f64::from(second * 37 % 11 - 5);
            CoursePoint {
                from,
                to: from + 1.0,
                rate: wobble * if busy(from) { 50.0 } else { 100.0 },
                response: Some(0.001),
                ..CoursePoint::default()
            }
        };
        let run = |at: &f64| VictimRun {
            name: "copy".into(),
            at: Some(*at),
            began: *at,
            ran: VictimOutcome { seconds: 5.0, ..VictimOutcome::default() },
        };
        let course = CellCourse {
            points: (-5..150).map(point).collect(),
            runs: starts.iter().map(run).collect(),
            ..CellCourse::default()
        };
        let found = impacts("one", "copy", &[(&course, None)]);
        assert_eq!((found[0].of, found[0].runs, found[0].resolved), ("rate", 7, true));
        assert!((found[0].percent + 50.0).abs() < 2.0, "{found:?}");
        assert_eq!((found[1].of, found[1].resolved), ("response", false));
        assert_eq!(impacts("one", "other", &[(&course, None)]), []);
    }

    #[test]
    fn responses_are_by_operation_and_a_run_is_compared_with_its_side_of_a_loss() {
        let point = |from: f64, rate, response| CoursePoint {
            from,
            to: from + 1.0,
            rate,
            response: Some(response),
            ..CoursePoint::default()
        };
        let points = [point(0.0, 90.0, 0.001), point(1.0, 10.0, 0.011)];
        let mean = response(&points.iter().collect::<Vec<_>>()).unwrap();
        assert!((mean - 0.002).abs() < 1e-12, "{mean}");
        let rate = |at: f64| {
            if at < 20.0 {
                100.0
            } else if (30.0..32.0).contains(&at) {
                10.0
            } else {
                40.0
            }
        };
        let ran = VictimOutcome { seconds: 2.0, ..VictimOutcome::default() };
        let course = CellCourse {
            points: (0..40).map(f64::from).map(|at| point(at, rate(at), 0.001)).collect(),
            runs: vec![VictimRun { name: "copy".into(), at: Some(30.0), began: 30.0, ran }],
            ..CellCourse::default()
        };
        let lost = Loss {
            at: 20.0,
            uncertain: 1.0,
            of: "rate",
            rate_before: 100.0,
            rate_after: 40.0,
            rate_percent: -60.0,
            rate_half_width: None,
            response_before: 0.001,
            response_after: 0.001,
            cause: None,
        };
        let log = log_ratio(&course, Some(&lost), &course.runs[0], super::rate).unwrap();
        assert!((log.exp() - 0.25).abs() < 1e-9, "{log}");
    }
}
