// SPDX-License-Identifier: PostgreSQL
//! Computes figures and verdicts from cells. All output is made from the answer. Its JSON is
//! results.json, described in docs/reference-json.md.

use serde::Serialize;

use super::cell::{Cell, Values};
use super::file::{Design, Fit, FitKind, ReadSource};
use super::material::ValueInputs;
use super::plan::{LoadPoint, StudyPlan};
use super::usl;
use crate::engine::experiment::{ArmRow, StudyHeading};
use crate::engine::journal::RunRecord;
use stats::{holm, Estimate};

/// Significance level of the tests, over all arms and points.
const ALPHA: f64 = 0.05;
/// Probability with which the smallest detectable effect is detected.
const POWER: f64 = 0.8;

/// The answer to a study.
#[derive(Debug, Clone, Serialize)]
pub struct StudyResults {
    /// What the study is about.
    #[serde(flatten)]
    pub heading: StudyHeading,
    /// How its arms take turns.
    pub design: Design,
    /// How and where it ran.
    #[serde(flatten)]
    pub run: RunRecord,
    /// The arms, including those left out.
    pub arms: Vec<ArmRow>,
    /// The loads at which the arms were measured.
    pub points: Vec<LoadPoint>,
    /// Name of the arm with which the others are compared.
    pub base: String,
    /// The reads of each cell.
    pub reads: Vec<ReadRow>,
    /// Number of cells measured.
    pub cells: usize,
    /// Number of cells in the plan.
    pub cells_planned: usize,
    /// Number of cells that other work disturbed even when repeated.
    pub disturbed: usize,
    /// Means of the reads, by arm and point.
    pub figures: Vec<Figure>,
    /// The arms compared with the base.
    pub comparisons: Vec<ArmComparison>,
    /// Fitted curves.
    pub fits: Vec<Fitted>,
}

/// A read of each cell.
#[derive(Debug, Clone, Serialize)]
pub struct ReadRow {
    /// Name of the read.
    pub name: String,
    /// Its title in output.
    pub title: String,
    /// Its unit.
    pub unit: String,
}

/// A read of one arm at one point, over all blocks.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// Name of the arm.
    pub arm: String,
    /// The load.
    pub point: LoadPoint,
    /// Name of the read.
    pub read: String,
    /// Number of cells that have a value.
    pub cells: usize,
    /// Mean, in the read's unit; trimmed if there are enough cells.
    pub mean: f64,
    /// Half the width of the mean's 95 % interval; `None` for fewer than three cells.
    pub half_width: Option<f64>,
}

/// Verdict on a change. Output lists comparisons in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ArmVerdict {
    /// The tests agree that there is an effect.
    Resolved,
    /// Chance could explain the change.
    Inconclusive,
    /// The change of the A/A control.
    Placebo,
}

/// An arm compared with the base at one point.
#[derive(Debug, Clone, Serialize)]
pub struct ArmComparison {
    /// Name of the arm.
    pub arm: String,
    /// The load.
    pub point: LoadPoint,
    /// Name of the read.
    pub read: String,
    /// Number of blocks in which both have a value.
    pub blocks: usize,
    /// The change, %.
    pub percent: f64,
    /// Half the width of the change's 95 % interval, percentage points.
    pub half_width: f64,
    /// Probability by Student's t.
    pub t_p: f64,
    /// The same, adjusted by Holm's method.
    pub holm_p: f64,
    /// Probability by Wilcoxon's signed ranks.
    pub rank_p: f64,
    /// Half-width of the A/A control's change, percentage points.
    pub again_half_width: Option<f64>,
    /// Change of the A/A control, %.
    pub again_percent: Option<f64>,
    /// The smallest effect that the tests detect with a probability of 80 %, in percent.
    pub detectable: f64,
    /// Whether the change is an effect.
    pub verdict: ArmVerdict,
}

/// A curve fitted to one read of an arm.
#[derive(Debug, Clone, Serialize)]
pub struct Fitted {
    /// Kind of curve: "usl".
    pub kind: &'static str,
    /// Name of the arm.
    pub arm: String,
    /// Name of the read.
    pub read: String,
    /// The curve.
    #[serde(flatten)]
    pub fit: usl::Fit,
}

/// Adds the values that need several cells: differences from the base, and values computed from those.
pub fn complete(plan: &StudyPlan, mut cells: Vec<Cell>) -> Vec<Cell> {
    let base = &plan.arms[plan.base].name;
    let bases: Vec<Cell> = cells.iter().filter(|cell| cell.arm == *base).cloned().collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for cell in &mut cells {
        let Some(arm) = plan.arms.iter().find(|arm| arm.name == cell.arm) else { continue };
        let point = cell.point;
        let given = ValueInputs { arm, point: &point, seconds: cell.seconds, cores };
        let same = |b: &&Cell| b.block == cell.block && b.point == cell.point;
        let other: Option<&Values> = bases.iter().find(same).map(|b| &b.values);
        let mut differs = Vec::new();
        for read in &plan.study.reads {
            let value = match read.source() {
                Ok(ReadSource::OverBase(of)) => {
                    let at = |values: &Values| values.get(of).copied().flatten();
                    at(&cell.values).zip(other.and_then(at)).map(|(own, base)| own - base)
                }
                Ok(ReadSource::Value(text))
                    if differs.iter().any(|name: &String| text.contains(name.as_str())) =>
                {
                    given.compute(text, &cell.values)
                }
                _ => continue,
            };
            differs.push(read.name.clone());
            cell.values.insert(read.name.clone(), value);
        }
    }
    cells
}

/// The values of an arm's read at a point, with their blocks, in order of the blocks.
fn values(cells: &[Cell], arm: &str, point: &LoadPoint, read: &str) -> Vec<(usize, f64)> {
    let mut all: Vec<(usize, f64)> = cells
        .iter()
        .filter(|cell| cell.arm == arm && cell.point == *point)
        .filter_map(|cell| Some((cell.block, cell.values.get(read).copied().flatten()?)))
        .collect();
    all.sort_by_key(|(block, _)| *block);
    all
}

/// Log ratios of an arm's values to the base's, block by block.
fn ratios(plan: &StudyPlan, cells: &[Cell], arm: usize, point: &LoadPoint, read: &str) -> Vec<f64> {
    let base = values(cells, &plan.arms[plan.base].name, point, read);
    values(cells, &plan.arms[arm].name, point, read)
        .into_iter()
        .filter_map(|(block, value)| {
            let (_, base) = base.iter().find(|(other, _)| *other == block)?;
            (value > 0.0 && *base > 0.0).then(|| (value / base).ln())
        })
        .collect()
}

/// The half-width of a log ratio in percentage points, at its mean.
fn points_of(estimate: &Estimate) -> f64 {
    100.0 * estimate.mean.exp() * estimate.half_width
}

/// The widest half-width of the first compared read, percentage points; `None` until all comparisons
/// have one.
pub fn widest(plan: &StudyPlan, cells: &[Cell]) -> Option<f64> {
    let read = plan.study.compare.as_ref()?.reads.first()?;
    let mut widest = 0.0f64;
    for arm in (0..plan.arms.len()).filter(|arm| *arm != plan.base) {
        for point in &plan.points {
            let all = ratios(plan, cells, arm, point, read);
            // Arms that were left out and points not yet measured have no ratios.
            if !all.is_empty() {
                widest = widest.max(points_of(&Estimate::of_repeats(&all)?));
            }
        }
    }
    (widest > 0.0).then_some(widest)
}

impl StudyResults {
    /// Computes the answer from cells passed through [`complete`].
    pub fn compute(plan: &StudyPlan, cells: &[Cell], kept: &RunRecord) -> Self {
        let study = &plan.study;
        let arms = plan.arms.iter().enumerate().map(|(number, arm)| {
            ArmRow::new(&arm.name, arm.title(), plan.again() == Some(number), kept)
        });
        let reads = study.reads.iter().map(|read| ReadRow {
            name: read.name.clone(),
            title: read.title().into(),
            unit: read.unit.clone(),
        });
        Self {
            heading: study.heading(),
            design: study.measure.design,
            run: kept.clone(),
            arms: arms.collect(),
            points: plan.points.clone(),
            base: plan.arms[plan.base].name.clone(),
            reads: reads.collect(),
            cells: cells.len(),
            cells_planned: plan.cells(),
            disturbed: cells.iter().filter(|cell| cell.machine.disturbed.is_some()).count(),
            figures: figures(plan, cells),
            comparisons: comparisons(plan, cells),
            fits: study.fits.iter().flat_map(|fit| fitted(plan, cells, fit)).collect(),
        }
    }

    /// A figure, if any cell has a value.
    pub fn figure(&self, arm: &str, point: &LoadPoint, read: &str) -> Option<&Figure> {
        self.figures.iter().find(|f| f.arm == arm && f.point == *point && f.read == read)
    }

    /// A comparison, if it was made.
    pub fn comparison(&self, arm: &str, point: &LoadPoint, read: &str) -> Option<&ArmComparison> {
        self.comparisons.iter().find(|c| c.arm == arm && c.point == *point && c.read == read)
    }

    /// An arm's value in percent of the base's, with its half-width if the value comes from pairs of cells.
    pub fn percent(&self, arm: &str, point: &LoadPoint, read: &str) -> Option<(f64, Option<f64>)> {
        if let Some(paired) = self.comparison(arm, point, read) {
            return Some((100.0 + paired.percent, Some(paired.half_width)));
        }
        let mean = |arm: &str| self.figure(arm, point, read).map(|figure| figure.mean);
        let base = mean(&self.base).filter(|base| *base != 0.0)?;
        Some((100.0 * mean(arm)? / base, None))
    }

    /// The arms of a table or chart that have cells: name, title and number.
    pub fn shown_arms(&self, wanted: &Option<Vec<String>>) -> Vec<(&str, &str, usize)> {
        let has = |name: &str| self.figures.iter().any(|figure| figure.arm == name);
        let wanted = |name: &String| wanted.as_ref().is_none_or(|arms| arms.contains(name));
        let arms = self.arms.iter().enumerate();
        arms.filter(|(_, arm)| wanted(&arm.name) && has(&arm.name))
            .map(|(at, arm)| (arm.name.as_str(), arm.title.as_str(), at))
            .collect()
    }
}

fn figures(plan: &StudyPlan, cells: &[Cell]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for arm in &plan.arms {
        for point in &plan.points {
            for read in &plan.study.reads {
                let all: Vec<f64> = values(cells, &arm.name, point, &read.name)
                    .into_iter()
                    .map(|(_, value)| value)
                    .collect();
                if all.is_empty() {
                    continue;
                }
                let estimate = Estimate::of_repeats(&all);
                let plain = all.iter().sum::<f64>() / all.len() as f64;
                figures.push(Figure {
                    arm: arm.name.clone(),
                    point: *point,
                    read: read.name.clone(),
                    cells: all.len(),
                    mean: estimate.as_ref().map_or(plain, |estimate| estimate.mean),
                    half_width: estimate.map(|estimate| estimate.half_width),
                });
            }
        }
    }
    figures
}

fn comparisons(plan: &StudyPlan, cells: &[Cell]) -> Vec<ArmComparison> {
    let Some(compare) = &plan.study.compare else { return Vec::new() };
    compare.reads.iter().flat_map(|read| comparisons_of(plan, cells, read)).collect()
}

fn comparisons_of(plan: &StudyPlan, cells: &[Cell], read: &str) -> Vec<ArmComparison> {
    let estimate = |arm: usize, point: &LoadPoint| {
        Estimate::of_repeats(&ratios(plan, cells, arm, point, read))
    };
    let mut found: Vec<(usize, LoadPoint, Estimate)> = Vec::new();
    for arm in (0..plan.arms.len()).filter(|arm| *arm != plan.base) {
        for point in &plan.points {
            found.extend(estimate(arm, point).map(|estimate| (arm, *point, estimate)));
        }
    }
    let is_again = |arm: usize| plan.again() == Some(arm);
    let tests: Vec<f64> =
        found.iter().filter(|(arm, ..)| !is_again(*arm)).map(|(.., e)| e.t_p()).collect();
    let mut raised = holm(&tests).into_iter();
    let strict = ALPHA / tests.len().max(1) as f64;
    found
        .iter()
        .map(|(arm, point, e)| {
            let again = found
                .iter()
                .find(|(other, at, _)| is_again(*other) && at == point)
                .map(|(.., estimate)| estimate);
            let t_p = e.t_p();
            let holm_p = if is_again(*arm) { t_p } else { raised.next().unwrap_or(1.0) };
            // The interval and the ranks place the change on the same side.
            let agree = e.above(0.0) || e.below(0.0);
            let beyond = again.is_none_or(|again| e.mean.abs() > again.half_width);
            ArmComparison {
                arm: plan.arms[*arm].name.clone(),
                point: *point,
                read: read.into(),
                blocks: e.values,
                percent: 100.0 * e.mean.exp_m1(),
                half_width: points_of(e),
                t_p,
                holm_p,
                rank_p: e.rank_p(0.0),
                again_half_width: again.map(points_of),
                again_percent: again.map(|again| 100.0 * again.mean.exp_m1()),
                detectable: 100.0 * e.detectable(strict, POWER).exp_m1(),
                verdict: match is_again(*arm) {
                    true => ArmVerdict::Placebo,
                    false if holm_p < ALPHA && agree && beyond => ArmVerdict::Resolved,
                    false => ArmVerdict::Inconclusive,
                },
            }
        })
        .collect()
}

fn fitted(plan: &StudyPlan, cells: &[Cell], fit: &Fit) -> Vec<Fitted> {
    let FitKind::Usl = fit.kind;
    let of = |arm: &str| {
        let points: Vec<usl::UslPoint> = cells
            .iter()
            .filter(|cell| cell.arm == arm)
            .filter_map(|cell| {
                Some(usl::UslPoint {
                    clients: cell.point.axis_value(),
                    throughput: cell.values.get(&fit.read).copied().flatten()?,
                })
            })
            .collect();
        let found = usl::Fit::fit_points(&points)?;
        Some(Fitted { kind: "usl", arm: arm.into(), read: fit.read.clone(), fit: found })
    };
    plan.arms.iter().filter_map(|arm| of(&arm.name)).collect()
}

#[cfg(test)]
mod tests;
