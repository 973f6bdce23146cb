// SPDX-License-Identifier: PostgreSQL
//! The tables of a study's results.

use super::answer::{ArmComparison, ArmVerdict, StudyResults};
use super::file::{self, Better, Read, Rows, Show};
use super::fit_table;
use super::plan::{LoadPoint, StudyPlan};
use crate::engine::numbers::{figures, none, rounded, with_half_width};
use view::measured::{behind, Measured};
use view::table::{Cell, Table, Tone};

/// All tables of a study.
pub fn make_tables(
    plan: &StudyPlan,
    cells: &[super::cell::Cell],
    answer: &StudyResults,
) -> Vec<Table> {
    let maker = Maker { plan, answer, points: points_of(plan, cells) };
    plan.study
        .tables
        .iter()
        .map(|table| match &table.read {
            Some(read) => maker.across(table, read),
            None => maker.down(table),
        })
        .chain(fit_table::make_fit_table(plan, answer))
        .collect()
}

fn points_of(plan: &StudyPlan, cells: &[super::cell::Cell]) -> Vec<LoadPoint> {
    let has = |point: &&LoadPoint| cells.iter().any(|cell| cell.point == **point);
    plan.points.iter().filter(has).copied().collect()
}

struct Maker<'a> {
    plan: &'a StudyPlan,
    answer: &'a StudyResults,
    points: Vec<LoadPoint>,
}

impl Maker<'_> {
    fn axis(&self) -> &'static str {
        match self.plan.study.workload.rates {
            Some(_) => "rate",
            None => "clients",
        }
    }

    /// A table with rows for arms and points, and a column for each read.
    fn down(&self, given: &file::Table) -> Table {
        let (arms, many) = (self.answer.shown_arms(&given.arms), self.points.len() > 1);
        let by_arm = given.rows != Rows::Clients || arms.len() > 1;
        let by_point = given.rows == Rows::Clients || many;
        let reads: Vec<&Read> =
            given.reads.iter().filter_map(|name| self.plan.study.read(name)).collect();
        let names = by_arm.then_some("arm").into_iter().chain(by_point.then(|| self.axis()));
        let mut headings: Vec<String> = names.map(String::from).collect();
        let names = headings.len();
        headings.extend(reads.iter().map(|read| read.heading()));
        let mut table = self.table(given, &reads, &headings, names);
        let mut row = |(arm, title, _): &(&str, &str, usize), point: &LoadPoint| {
            let mut cells: Vec<Cell> = by_arm.then(|| (*title).into()).into_iter().collect();
            cells.extend(by_point.then(|| point.label().into()));
            cells.extend(reads.iter().map(|read| self.value(arm, point, read)));
            table.push(Tone::Plain, cells);
        };
        match given.rows {
            Rows::Clients => {
                self.points.iter().for_each(|point| arms.iter().for_each(|arm| row(arm, point)));
            }
            _ => arms.iter().for_each(|arm| self.points.iter().for_each(|point| row(arm, point))),
        }
        table
    }

    /// A table of one read: a row for each arm, a column for each point.
    fn across(&self, given: &file::Table, name: &str) -> Table {
        let read = self.plan.study.read(name);
        let single = self.points.len() == 1;
        let mut headings = vec![match single {
            true => "arm".to_string(),
            false => format!("arm \\ {}", self.axis()),
        }];
        let heading = |point: &LoadPoint| match (single, given.show) {
            (true, Show::Change) => "change".to_string(),
            (true, Show::Percent) => "% of base".to_string(),
            (true, Show::Value) => read.map_or(String::new(), Read::heading),
            _ => point.label(),
        };
        headings.extend(self.points.iter().map(heading));
        let reads: Vec<&Read> = read.into_iter().collect();
        let mut table = self.table(given, &reads, &headings, 1);
        let base = &self.answer.base;
        for (arm, title, _) in self.answer.shown_arms(&given.arms) {
            if given.show == Show::Change && arm == base {
                continue;
            }
            let mut cells = vec![title.into()];
            cells.extend(self.points.iter().map(|point| match (given.show, read) {
                (_, None) => none(),
                (Show::Value, Some(read)) => self.value(arm, point, read),
                (Show::Percent, Some(read)) => self.percent(arm, point, read),
                (Show::Change, Some(read)) => self.change(arm, point, read),
            }));
            table.push(Tone::Plain, cells);
        }
        table
    }

    /// A table without rows; its first `names` columns identify a row.
    fn table(
        &self,
        given: &file::Table,
        reads: &[&Read],
        headings: &[String],
        names: usize,
    ) -> Table {
        let all = || reads.iter().map(|read| read.title()).collect::<Vec<_>>().join(", ");
        let title = given.title.clone().unwrap_or_else(all).into();
        Table { title, ..Table::with_headings(headings, names..headings.len()) }
    }

    fn value(&self, arm: &str, point: &LoadPoint, read: &Read) -> Cell {
        let Some(figure) = self.answer.figure(arm, point, &read.name) else { return none() };
        // Omit an interval that is wider than the figure itself.
        let text = match figure.half_width.filter(|half| *half < figure.mean.abs()) {
            Some(half) => with_half_width(figure.mean, read.digits, half),
            None => figures(figure.mean, read.digits),
        };
        rounded(text, Some(figure.mean))
    }

    fn percent(&self, arm: &str, point: &LoadPoint, read: &Read) -> Cell {
        self.answer.percent(arm, point, &read.name).map_or_else(none, |(share, half)| {
            let half = half.map(|half| format!("{half:.1}"));
            rounded(behind(format!("{share:.1}"), half), Some(share))
        })
    }

    fn change(&self, arm: &str, point: &LoadPoint, read: &Read) -> Cell {
        self.answer.comparison(arm, point, &read.name).map_or_else(none, |found| Cell::Rounded {
            text: change(found).into(),
            exact: Some(found.percent),
            tone: tone(found, read.better),
        })
    }
}

/// The change and its verdict: "+1.23 % ± 0.40 inconclusive".
pub fn change(found: &ArmComparison) -> String {
    let verdict = match found.verdict {
        ArmVerdict::Resolved => "",
        ArmVerdict::Inconclusive => " inconclusive",
        ArmVerdict::Placebo => " (A/A)",
    };
    Measured::new(found.percent, found.half_width).change(2) + verdict
}

fn tone(found: &ArmComparison, better: Option<Better>) -> Tone {
    match (found.verdict, better, found.percent > 0.0) {
        (ArmVerdict::Resolved, Some(Better::More), true) => Tone::Good,
        (ArmVerdict::Resolved, Some(Better::Less), false) => Tone::Good,
        (ArmVerdict::Resolved, Some(_), _) => Tone::Bad,
        (ArmVerdict::Resolved, None, _) => Tone::Plain,
        _ => Tone::Faint,
    }
}
