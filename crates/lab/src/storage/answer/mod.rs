// SPDX-License-Identifier: PostgreSQL
//! Computes figures from the cells' logs. All output is made from the answer. Its JSON is results.json,
//! described in docs/reference-json.md.

pub mod course;
mod impact;
mod model;
mod sentences;
mod steadiness;
#[cfg(test)]
mod tests;
mod waits;

use std::path::Path;

use crate::engine::experiment::ArmRow;
use crate::engine::journal::RunRecord;
use error::Error;
use stats::Estimate;

use crate::storage::arms::{arms, MeasuredArm};
use crate::storage::file::StorageStudy;
use course::{CellCourse, VictimRun};
pub use impact::Impact;
pub use model::StorageResults;
pub use model::{CellRow, RunRow, Slowdown, VictimComparison};
pub use steadiness::Loss;
pub use waits::WaitRow;

impl StorageResults {
    /// Computes the results from the cells of a run; `folder` has the recordings of servers.
    pub fn compute(
        study: &StorageStudy,
        courses: &[CellCourse],
        kept: &RunRecord,
        folder: &Path,
    ) -> Result<Self, Error> {
        let measured = arms(study);
        let base = measured.first().map(|arm| arm.name.clone()).unwrap_or_default();
        let arm_rows: Vec<ArmRow> = measured
            .iter()
            .map(|arm| {
                let again = arm.name == crate::storage::file::AGAIN;
                ArmRow::new(&arm.name, &arm.title, again, kept)
            })
            .collect();
        let cells: Vec<CellRow> = courses.iter().map(cell).collect();
        let mut answer = Self {
            heading: study.heading(),
            run: kept.clone(),
            seconds: study.length.0.as_secs_f64(),
            cells_planned: measured.len() * study.repeats,
            arms: arm_rows,
            runs: courses
                .iter()
                .flat_map(|course| course.runs.iter().map(|run| row(course, run)))
                .collect(),
            slowdowns: slowdowns(study, &measured, courses, &cells),
            impacts: impacts(study, &measured, courses, &cells),
            waits: waits::waits(folder, courses)?,
            comparisons: comparisons(study, &measured, courses, &base),
            cells,
            sentences: Vec::new(),
        };
        answer.sentences = sentences::sentences(&answer);
        Ok(answer)
    }

    /// The title of an arm.
    pub fn arm_title(&self, name: &str) -> String {
        let arm = self.arms.iter().find(|arm| arm.name == name);
        arm.map_or(name, |arm| arm.title.as_str()).to_string()
    }
}

fn cell(course: &CellCourse) -> CellRow {
    let points: Vec<_> = course.measured().collect();
    let seconds: f64 = points.iter().map(|point| point.to - point.from).sum();
    let weighted = |of: &dyn Fn(&course::CoursePoint) -> f64| {
        let sum: f64 = points.iter().map(|point| of(point) * (point.to - point.from)).sum();
        if seconds > 0.0 {
            sum / seconds
        } else {
            0.0
        }
    };
    let made = weighted(&|point| point.rate);
    let operations = |of: &dyn Fn(&course::CoursePoint) -> Option<f64>| {
        let sum: f64 = points
            .iter()
            .filter_map(|point| Some(of(point)? * point.rate * (point.to - point.from)))
            .sum();
        (made > 0.0).then(|| sum / (made * seconds))
    };
    CellRow {
        arm: course.arm.clone(),
        block: course.block,
        incomplete: course.early.clone(),
        warm_up: course.warm_up.clone(),
        seconds,
        wanted_per_second: points
            .first()
            .and_then(|point| point.wanted)
            .map(|_| weighted(&|point| point.wanted.unwrap_or(0.0))),
        made_per_second: made,
        reads: points
            .iter()
            .any(|point| point.reads.is_some())
            .then(|| operations(&|point| point.reads))
            .flatten(),
        owed: points.last().map_or(0, |point| point.owed),
        dropped: course.dropped,
        bytes_per_second: weighted(&|point| point.bytes),
        response_mean: operations(&|point| point.response),
        io_stalled: course.stalled,
        lost: steadiness::loss(course),
    }
}

fn row(course: &CellCourse, run: &VictimRun) -> RunRow {
    let ran = &run.ran;
    let until = run.began + ran.seconds;
    let during: Vec<_> =
        course.points.iter().filter(|point| point.to > run.began && point.from < until).collect();
    let seconds: f64 = during.iter().map(|point| point.to - point.from).sum();
    let rate =
        during.iter().map(|point| point.rate * (point.to - point.from)).sum::<f64>() / seconds;
    RunRow {
        arm: course.arm.clone(),
        block: course.block,
        victim: run.name.clone(),
        at: run.at,
        began: run.at.map(|_| run.began),
        seconds: ran.seconds,
        cpu_seconds: ran.user_seconds + ran.system_seconds + ran.children_seconds,
        read_bytes: ran.read_bytes,
        written_bytes: ran.written_bytes,
        device_read_bytes: ran.device_read_bytes,
        device_written_bytes: ran.device_written_bytes,
        background_per_second: (run.at.is_some() && seconds > 0.0).then_some(rate),
        failure: ran.failure.clone(),
    }
}

/// The geometric mean of ratios, with its interval.
fn factor(logs: &[f64]) -> Option<(f64, Option<(f64, f64)>)> {
    if logs.is_empty() {
        return None;
    }
    Some(match Estimate::of_repeats(logs) {
        Some(estimate) => {
            let (low, high) =
                (estimate.mean - estimate.half_width, estimate.mean + estimate.half_width);
            (estimate.mean.exp(), Some((low.exp(), high.exp())))
        }
        None => ((logs.iter().sum::<f64>() / logs.len() as f64).exp(), None),
    })
}

fn slowdowns(
    study: &StorageStudy,
    arms: &[MeasuredArm],
    courses: &[CellCourse],
    cells: &[CellRow],
) -> Vec<Slowdown> {
    let mut found = Vec::new();
    for arm in arms {
        for victim in &study.victims {
            // The log ratio of each run, and whether it came after the loss of steadiness.
            let mut logs: Vec<(f64, Option<bool>)> = Vec::new();
            for (course, cell) in courses.iter().zip(cells).filter(|cell| cell.0.arm == arm.name) {
                let Some(base) = course.base(&victim.name) else { continue };
                for run in course.runs.iter().filter(|run| run.at.is_some()) {
                    if run.name == victim.name && run.ran.failure.is_none() {
                        let after = cell.lost.as_ref().map(|lost| run.began >= lost.at);
                        logs.push(((run.ran.seconds / base).ln(), after));
                    }
                }
            }
            for when in ["all", "before", "after"] {
                let wanted = |run: &&(f64, Option<bool>)| match when {
                    "all" => true,
                    "before" => run.1 == Some(false),
                    _ => run.1 == Some(true),
                };
                let logs: Vec<f64> = logs.iter().filter(wanted).map(|run| run.0).collect();
                let Some((factor, interval)) = factor(&logs) else { continue };
                let (arm, victim) = (arm.name.clone(), victim.name.clone());
                found.push(Slowdown { arm, victim, when, runs: logs.len(), factor, interval });
            }
        }
    }
    found
}

fn impacts(
    study: &StorageStudy,
    arms: &[MeasuredArm],
    courses: &[CellCourse],
    cells: &[CellRow],
) -> Vec<Impact> {
    let of_arm = |arm: &MeasuredArm| {
        let all = courses.iter().zip(cells).filter(|cell| cell.0.arm == arm.name);
        let all: Vec<_> = all.map(|(course, cell)| (course, cell.lost.as_ref())).collect();
        let of_victim = |name: &str| impact::impacts(&arm.name, name, &all);
        study.victims.iter().flat_map(|victim| of_victim(&victim.name)).collect::<Vec<_>>()
    };
    arms.iter().flat_map(of_arm).collect()
}

fn comparisons(
    study: &StorageStudy,
    arms: &[MeasuredArm],
    courses: &[CellCourse],
    base: &str,
) -> Vec<VictimComparison> {
    let seconds = |arm: &str, victim: &str, block: usize, at: f64| {
        let course = courses.iter().find(|course| course.arm == arm && course.block == block)?;
        let run = course.runs.iter().find(|run| run.name == victim && run.at == Some(at))?;
        run.ran.failure.is_none().then_some(run.ran.seconds)
    };
    let mut found = Vec::new();
    for arm in arms.iter().filter(|arm| arm.name != base) {
        for victim in &study.victims {
            let mut logs = Vec::new();
            for block in 0..study.repeats {
                for at in study.starts(victim) {
                    let own = seconds(&arm.name, &victim.name, block, at);
                    let of_base = seconds(base, &victim.name, block, at);
                    logs.extend(own.zip(of_base).map(|(own, base)| (own / base).ln()));
                }
            }
            let Some((ratio, _)) = factor(&logs) else { continue };
            let estimate = Estimate::of_repeats(&logs);
            found.push(VictimComparison {
                arm: arm.name.clone(),
                victim: victim.name.clone(),
                pairs: logs.len(),
                percent: 100.0 * (ratio - 1.0),
                half_width: estimate.as_ref().map(|estimate| 100.0 * ratio * estimate.half_width),
                resolved: estimate
                    .is_some_and(|estimate| estimate.above(0.0) || estimate.below(0.0)),
            });
        }
    }
    found
}
