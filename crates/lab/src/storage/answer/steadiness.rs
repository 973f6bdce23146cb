// SPDX-License-Identifier: PostgreSQL
//! When the background lost its steadiness, how far it fell, and what happened just before.
//!
//! Only periods without a victim count: a victim disturbs the background while it runs, which is not a loss of
//! steadiness.

use serde::Serialize;

use stats::change_point;

use super::course::{CellCourse, CoursePoint};

/// A rate that falls by less than this is steady, percent.
const FALL: f64 = 5.0;
/// Response times that grow by less than this factor are steady.
const GROWTH: f64 = 3.0;
/// Time for the background to catch up after a victim, seconds.
pub const RECOVERY: f64 = 2.0;
/// Longest time from a cause to the change, seconds.
const CAUSE: f64 = 5.0;

/// A loss of steadiness.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Loss {
    /// When, seconds since measuring began.
    pub at: f64,
    /// The change began at most this much earlier, seconds: the length of the period, and of victims before it.
    pub uncertain: f64,
    /// What changed first and most: "rate" or "response".
    pub of: &'static str,
    /// Operations per second before.
    pub rate_before: f64,
    /// Operations per second after.
    pub rate_after: f64,
    /// Change of the rate, percent.
    pub rate_percent: f64,
    /// Half the width of its 95 % interval, percentage points; `None` if the rate did not change.
    pub rate_half_width: Option<f64>,
    /// Mean response time before, seconds.
    pub response_before: f64,
    /// Mean response time after, seconds.
    pub response_after: f64,
    /// What happened just before it.
    pub cause: Option<String>,
}

/// The loss of steadiness of a cell, if there was one.
pub fn loss(course: &CellCourse) -> Option<Loss> {
    let quiet: Vec<&CoursePoint> =
        course.measured().filter(|point| !course.is_busy(point, RECOVERY)).collect();
    let rates: Vec<f64> = quiet.iter().map(|point| point.rate).collect();
    // The longest response in a stalled period is not known yet; it lasts at least as long as the period.
    let response = |point: &&CoursePoint| point.response.unwrap_or(point.to - point.from).max(1e-6);
    let responses: Vec<f64> = quiet.iter().map(|point| response(point).ln()).collect();
    let rate =
        change_point(&rates).filter(|change| change.after < change.before * (1.0 - FALL / 100.0));
    let slower =
        change_point(&responses).filter(|change| change.after - change.before > GROWTH.ln());
    let (at, of) = match (&rate, &slower) {
        // Responses grow immediately; the rate falls once all threads are busy.
        (Some(rate), Some(slower)) if slower.at <= rate.at => (slower.at, "response"),
        (Some(rate), _) => (rate.at, "rate"),
        (None, Some(slower)) => (slower.at, "response"),
        (None, None) => return None,
    };
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len().max(1) as f64;
    let (before, after) = rates.split_at(at);
    let (rate_before, rate_after) = (mean(before), mean(after));
    let percent = |value: f64| 100.0 * value / rate_before;
    let moment = quiet[at];
    let previous = quiet[at - 1];
    let cause = course
        .limits
        .iter()
        .rev()
        .find(|(time, _)| *time <= moment.to && *time >= previous.from - CAUSE)
        .map(|(time, text)| format!("a limit was set on the device ({text}) at {time:.1} s"))
        .or_else(|| {
            (moment.dirty >= 0.9 && previous.dirty < moment.dirty)
                .then(|| "dirty pages had reached the kernel's limit".to_string())
        });
    Some(Loss {
        at: moment.from,
        uncertain: moment.to - previous.to,
        of,
        rate_before,
        rate_after,
        rate_percent: percent(rate_after) - 100.0,
        rate_half_width: rate.map(|change| percent(change.half_width)),
        response_before: mean(&responses[..at]).exp(),
        response_after: mean(&responses[at..]).exp(),
        cause,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::answer::course::VictimRun;
    use crate::storage::victim::VictimOutcome;

    fn course(rate: impl Fn(f64) -> f64, response: impl Fn(f64) -> f64) -> CellCourse {
        let point = |second: usize| {
            let from = second as f64;
            let wobble = 1.0 + 0.01 * ((second * 37 % 11) as f64 - 5.0) / 5.0;
            CoursePoint {
                from,
                to: from + 1.0,
                rate: rate(from) * wobble,
                wanted: Some(100.0),
                response: Some(response(from) * wobble),
                ..CoursePoint::default()
            }
        };
        CellCourse { points: (0..80).map(point).collect(), ..CellCourse::default() }
    }

    fn with_victim(mut course: CellCourse, began: f64, seconds: f64) -> CellCourse {
        let ran = VictimOutcome { seconds, ..VictimOutcome::default() };
        course.runs.push(VictimRun { name: "copy".into(), at: Some(began), began, ran });
        course
    }

    #[test]
    fn a_fall_is_found_with_its_size_and_cause() {
        let mut fallen = course(
            |t| if t < 40.0 { 100.0 } else { 60.0 },
            |t| if t < 39.0 { 0.001 } else { 0.02 },
        );
        fallen.limits.push((38.7, "write 3 MB/s".into()));
        let found = loss(&fallen).unwrap();
        assert!((found.at - 39.0).abs() <= 1.0, "{found:?}");
        assert!((found.rate_percent + 40.0).abs() < 2.0, "{found:?}");
        assert!(found.response_after > 10.0 * found.response_before);
        assert!(found.cause.unwrap().contains("write 3 MB/s"));
        fallen.limits = vec![(20.0, "long before".into())];
        assert_eq!(loss(&fallen).unwrap().cause, None);
        // Dirty pages reach the limit in that second.
        for point in &mut fallen.points {
            point.dirty = if point.from < found.at { 0.5 } else { 0.95 };
        }
        assert!(loss(&fallen).unwrap().cause.unwrap().contains("dirty pages"));
    }

    #[test]
    fn slower_responses_at_the_same_rate_are_a_loss() {
        let found = loss(&course(|_| 100.0, |t| if t < 30.0 { 0.001 } else { 0.006 })).unwrap();
        assert_eq!((found.of, found.rate_half_width), ("response", None));
        assert!((found.at - 30.0).abs() <= 1.0);
        assert_eq!(found.cause, None);
    }

    #[test]
    fn steady_cells_have_none_and_victims_are_no_loss() {
        assert_eq!(loss(&course(|_| 100.0, |_| 0.001)), None);
        let during = |t: f64| (45.0..80.0).contains(&t);
        let disturbed = course(
            |t| if during(t) { 20.0 } else { 100.0 },
            |t| if during(t) { 1.0 } else { 0.001 },
        );
        assert!(loss(&disturbed).is_some());
        assert_eq!(loss(&with_victim(disturbed, 45.0, 35.0)), None);
        assert_eq!(loss(&CellCourse::default()), None);
    }
}
