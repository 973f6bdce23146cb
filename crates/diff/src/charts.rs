// SPDX-License-Identifier: PostgreSQL
//! The charts of a comparison's page: both sides over time, each from its own start, and the mean times of the
//! statements that changed the most.

use report::courses;
use report::source::course::{course, step};
use view::document::{Axes, Bar, Document, Fact, PairOfBars, Pairs, Section, Unit};
use view::units::{count, duration, two};

use super::comparison::{Compared, Comparison, ComparisonRow, DiffUnit, Subject, Total};
use super::side::ComparedSide;
use error::Error;

/// Maximum number of statements whose mean times are drawn.
const STATEMENTS: usize = 8;

/// Adds the charts to the page, after the total time.
pub fn add(
    document: &mut Document,
    comparison: &Comparison,
    sides: [&ComparedSide; 2],
) -> Result<(), Error> {
    let step = step(sides.map(|side| (side.range, &side.heads[..])));
    let read = |side: &ComparedSide| course(&side.recording, side.range, &side.heads, step);
    let (a, b) = (read(sides[0])?, read(sides[1])?);
    document.elapsed = true;
    document.axes = Axes { main: courses::axis(&a, &b), ..Axes::default() };
    document.charts = courses::charts(&a, &b, comparison.per == DiffUnit::Commit);
    if !document.charts.is_empty() {
        let section = Section {
            id: courses::SECTION,
            title: "Over time",
            note: Some("Both sides, each from its own start.".to_string()),
            charts: document.charts.iter().map(|chart| chart.id).collect(),
            ..Section::default()
        };
        let totals = document.sections.iter().position(|section| section.id == "totals");
        document.sections.insert(totals.map_or(0, |at| at + 1), section);
        document.lead = Some(courses::SECTION);
        // The recordings and how they were compared stand at the end; the sentence and the charts are what is looked at first.
        document.load = load(comparison);
    }
    let means = means(&comparison.rows.statements);
    let statements = document.sections.iter_mut().find(|section| section.id == "statements");
    if let Some(section) = statements.filter(|_| !means.rows.is_empty()) {
        section.pairs = vec![means.id];
        document.pairs = vec![means];
    }
    Ok(())
}

/// Each side in a few figures.
fn load(comparison: &Comparison) -> Vec<Fact> {
    let Some(total) = comparison.rows.totals.first() else { return Vec::new() };
    let side = |name, seconds, per_second, compared: &Compared| Fact {
        name,
        text: match total.per {
            DiffUnit::Second => format!(
                "{} sessions on average, in {}",
                two(seconds),
                duration(compared.compared_seconds)
            ),
            per => format!(
                "{} per {}, {} {}s/s, in {}",
                duration(seconds),
                per.name(),
                count(per_second),
                per.name(),
                duration(compared.compared_seconds)
            ),
        },
    };
    let Total { change, a_per_second, b_per_second, .. } = *total;
    vec![
        side("A", change.a_seconds, a_per_second, &comparison.a),
        side("B", change.b_seconds, b_per_second, &comparison.b),
    ]
}

/// The mean times of the statements that changed the most.
fn means(rows: &[ComparisonRow]) -> Pairs {
    let bar = |value: Option<f64>, half_width| Some(Bar { value: value?, half_width });
    let pair = |row: &ComparisonRow| {
        let Subject::Statement { query, .. } = &row.what else { return None };
        let a = bar(row.a_mean_seconds, row.a_mean_half_width_seconds);
        let b = bar(row.b_mean_seconds, row.b_mean_half_width_seconds);
        let name = view::statements::one_line(query);
        (a.is_some() || b.is_some()).then_some(PairOfBars { name, a, b })
    };
    Pairs {
        id: "statement_means",
        title: "Mean time of a call, for the statements that changed the most",
        note: Some(
            "The line at the end of a bar is the 95 % confidence interval of the mean, three times as wide as for \
             independent executions because consecutive executions resemble each other. Each statement has \
             its own axis."
                .to_string(),
        ),
        unit: Unit::Seconds,
        rows: rows.iter().filter_map(pair).take(STATEMENTS).collect(),
    }
}
