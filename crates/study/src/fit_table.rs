// SPDX-License-Identifier: PostgreSQL
//! The table of fitted curves: their figures with 95 % intervals.

use super::answer::{Answer, Fitted};
use super::numbers::figures;
use super::plan::Plan;
use super::shown::{Field, Shown};
use super::usl::Within;

const DIGITS: usize = 3;

/// A table with a row for each curve; `None` without any.
pub fn of(plan: &Plan, answer: &Answer) -> Option<Shown> {
    let headings = ["curve", "one client alone", "sigma", "kappa", "knee, clients", "scatter, %"];
    let rows: Vec<Vec<Field>> = answer.fits.iter().map(|found| row(plan, found)).collect();
    (!rows.is_empty()).then(|| Shown {
        title: "Universal Scalability Law: X(n) = lambda n / (1 + sigma (n - 1) + kappa n (n - 1))"
            .into(),
        headings: headings.map(String::from).to_vec(),
        names: 1,
        rows,
    })
}

fn row(plan: &Plan, found: &Fitted) -> Vec<Field> {
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
        (None, Some(bound)) => {
            Field::of(format!("none (beyond {})", figures(bound, DIGITS)), String::new())
        }
        (None, None) => Field::none(),
    };
    vec![
        Field::name(&name),
        Field::of(figures(fit.lambda, 4), fit.lambda.to_string()),
        within(&fit.sigma),
        within(&fit.kappa),
        knee,
        Field::of(figures(100.0 * fit.scatter, DIGITS), (100.0 * fit.scatter).to_string()),
    ]
}

fn within(figure: &Within) -> Field {
    let high = figure.high.map_or("no end".into(), |high| figures(high, DIGITS));
    let (value, low) = (figures(figure.value, DIGITS), figures(figure.low, DIGITS));
    Field::of(format!("{value} ({low} .. {high})"), figure.value.to_string())
}
