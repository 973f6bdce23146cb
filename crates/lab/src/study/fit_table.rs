// SPDX-License-Identifier: PostgreSQL
//! The table of fitted curves: their figures with 95 % intervals.

use super::answer::{Fitted, StudyResults};
use super::plan::StudyPlan;
use super::usl::Within;
use crate::engine::numbers::{figures, none, rounded};
use view::table::{Cell, Table, Tone};

const DIGITS: usize = 3;

/// A table with a row for each curve; `None` without any.
pub fn make_fit_table(plan: &StudyPlan, answer: &StudyResults) -> Option<Table> {
    let headings = ["curve", "single client", "sigma", "kappa", "knee, clients", "scatter, %"];
    let mut table = Table::with_headings(&headings, 1..headings.len());
    table.title =
        "Universal Scalability Law: X(n) = lambda n / (1 + sigma (n - 1) + kappa n (n - 1))".into();
    answer.fits.iter().for_each(|found| table.push(Tone::Plain, row(plan, found)));
    (!table.rows.is_empty()).then_some(table)
}

fn row(plan: &StudyPlan, found: &Fitted) -> Vec<Cell> {
    let arm = plan.arms.iter().find(|arm| arm.name == found.arm);
    let read = plan.study.read(&found.read);
    let name = format!(
        "{}, {}",
        read.map_or(found.read.as_str(), |read| read.title()),
        arm.map_or(found.arm.as_str(), |arm| arm.title())
    );
    let fit = &found.fit;
    let knee = match (&fit.knee, fit.knee_beyond) {
        (Some(knee), _) => within(knee),
        (None, Some(bound)) => rounded(format!("none (beyond {})", figures(bound, DIGITS)), None),
        (None, None) => none(),
    };
    vec![
        name.into(),
        rounded(figures(fit.lambda, 4), Some(fit.lambda)),
        within(&fit.sigma),
        within(&fit.kappa),
        knee,
        rounded(figures(100.0 * fit.scatter, DIGITS), Some(100.0 * fit.scatter)),
    ]
}

fn within(figure: &Within) -> Cell {
    let high = figure.high.map_or("no upper bound".into(), |high| figures(high, DIGITS));
    let (value, low) = (figures(figure.value, DIGITS), figures(figure.low, DIGITS));
    rounded(format!("{value} ({low} .. {high})"), Some(figure.value))
}
