// SPDX-License-Identifier: PostgreSQL
//! The tables of a study's results.

use super::answer::{Answer, Comparison, Verdict};
use super::cell::Cell;
use super::file::{Better, Read, Rows, Show, Table};
use super::fit_table;
use super::numbers::{figures, with_half_width};
use super::plan::{Plan, Point};
use super::shown::{Field, Shown, Tone};

/// All tables of a study.
pub fn of(plan: &Plan, cells: &[Cell], answer: &Answer) -> Vec<Shown> {
    let maker = Maker { plan, answer, points: points_of(plan, cells) };
    plan.study
        .tables
        .iter()
        .map(|table| match &table.read {
            Some(read) => maker.across(table, read),
            None => maker.down(table),
        })
        .chain(fit_table::of(plan, answer))
        .collect()
}

fn points_of(plan: &Plan, cells: &[Cell]) -> Vec<Point> {
    let has = |point: &&Point| cells.iter().any(|cell| cell.point == **point);
    plan.points.iter().filter(has).copied().collect()
}

struct Maker<'a> {
    plan: &'a Plan,
    answer: &'a Answer,
    points: Vec<Point>,
}

impl Maker<'_> {
    fn axis(&self) -> &'static str {
        match self.plan.study.workload.rates {
            Some(_) => "rate",
            None => "clients",
        }
    }

    /// The table's arms that have cells: name and title.
    fn arms(&self, table: &Table) -> Vec<(&str, &str)> {
        let has = |name: &str| self.answer.figures.iter().any(|figure| figure.arm == name);
        let wanted = |name: &String| table.arms.as_ref().is_none_or(|arms| arms.contains(name));
        let arms = self.answer.arms.iter().filter(|arm| wanted(&arm.name) && has(&arm.name));
        arms.map(|arm| (arm.name.as_str(), arm.title.as_str())).collect()
    }

    /// A table with rows for arms and points, and a column for each read.
    fn down(&self, table: &Table) -> Shown {
        let (arms, many) = (self.arms(table), self.points.len() > 1);
        let by_arm = table.rows != Rows::Clients || arms.len() > 1;
        let by_point = table.rows == Rows::Clients || many;
        let mut headings = Vec::new();
        if by_arm {
            headings.push("arm".to_string());
        }
        if by_point {
            headings.push(self.axis().to_string());
        }
        let names = headings.len();
        let reads: Vec<&Read> =
            table.reads.iter().filter_map(|name| self.plan.study.read(name)).collect();
        headings.extend(reads.iter().map(|read| read.heading()));
        let mut rows = Vec::new();
        let mut row = |arm: &(&str, &str), point: &Point| {
            let mut fields = Vec::new();
            if by_arm {
                fields.push(Field::name(arm.1));
            }
            if by_point {
                fields.push(Field::name(&point.label()));
            }
            fields.extend(reads.iter().map(|read| self.value(arm.0, point, read)));
            rows.push(fields);
        };
        match table.rows {
            Rows::Clients => {
                self.points.iter().for_each(|point| arms.iter().for_each(|arm| row(arm, point)));
            }
            _ => arms.iter().for_each(|arm| self.points.iter().for_each(|point| row(arm, point))),
        }
        Shown { title: self.title(table, &reads), headings, names, rows }
    }

    /// A table of one read: a row for each arm, a column for each point.
    fn across(&self, table: &Table, name: &str) -> Shown {
        let read = self.plan.study.read(name);
        let mut headings = vec![match self.points.len() {
            1 => "arm".to_string(),
            _ => format!("arm \\ {}", self.axis()),
        }];
        let single = self.points.len() == 1;
        let heading = |point: &Point| match (single, table.show) {
            (true, Show::Change) => "change".to_string(),
            (true, Show::Percent) => "% of base".to_string(),
            (true, Show::Value) => read.map_or(String::new(), Read::heading),
            _ => point.label(),
        };
        headings.extend(self.points.iter().map(heading));
        let base = &self.answer.base;
        let rows = self
            .arms(table)
            .into_iter()
            .filter(|(arm, _)| table.show != Show::Change || arm != base)
            .map(|(arm, title)| {
                let mut fields = vec![Field::name(title)];
                fields.extend(self.points.iter().map(|point| match (table.show, read) {
                    (_, None) => Field::none(),
                    (Show::Value, Some(read)) => self.value(arm, point, read),
                    (Show::Percent, Some(read)) => self.percent(arm, point, read),
                    (Show::Change, Some(read)) => self.change(arm, point, read),
                }));
                fields
            })
            .collect();
        let reads: Vec<&Read> = read.into_iter().collect();
        Shown { title: self.title(table, &reads), headings, names: 1, rows }
    }

    fn title(&self, table: &Table, reads: &[&Read]) -> String {
        let names = || reads.iter().map(|read| read.title()).collect::<Vec<_>>().join(", ");
        table.title.clone().unwrap_or_else(names)
    }

    fn value(&self, arm: &str, point: &Point, read: &Read) -> Field {
        let Some(figure) = self.answer.figure(arm, point, &read.name) else { return Field::none() };
        // An interval wider than the figure itself is not shown.
        let text = match figure.half_width.filter(|half| *half < figure.mean.abs()) {
            Some(half) => with_half_width(figure.mean, read.digits, half),
            None => figures(figure.mean, read.digits),
        };
        Field { text, exact: figure.mean.to_string(), tone: Tone::Plain }
    }

    fn percent(&self, arm: &str, point: &Point, read: &Read) -> Field {
        let at = |arm: &str| self.answer.figure(arm, point, &read.name).map(|figure| figure.mean);
        // From pairs of cells if there are enough.
        let paired = self.answer.comparison(arm, point, &read.name);
        let share = match (paired, at(arm), at(&self.answer.base)) {
            (Some(paired), ..) => 100.0 + paired.percent,
            (_, Some(own), Some(base)) if base != 0.0 => 100.0 * own / base,
            _ => return Field::none(),
        };
        let mut text = format!("{share:.1}");
        if let Some(paired) = paired {
            text += &format!(" ±{:.1}", paired.half_width);
        }
        Field { text, exact: share.to_string(), tone: Tone::Plain }
    }

    fn change(&self, arm: &str, point: &Point, read: &Read) -> Field {
        let Some(found) = self.answer.comparison(arm, point, &read.name) else {
            return Field::none();
        };
        Field {
            text: change(found),
            exact: found.percent.to_string(),
            tone: tone(found, read.better),
        }
    }
}

/// The change and its verdict: "+1.23 % ±0.40 inconclusive".
pub fn change(found: &Comparison) -> String {
    let verdict = match found.verdict {
        Verdict::Resolved => "",
        Verdict::Inconclusive => " inconclusive",
        Verdict::Placebo => " (A/A)",
    };
    format!("{:+.2} % ±{:.2}{verdict}", found.percent, found.half_width)
}

fn tone(found: &Comparison, better: Option<Better>) -> Tone {
    match (found.verdict, better, found.percent > 0.0) {
        (Verdict::Resolved, Some(Better::More), true) => Tone::Good,
        (Verdict::Resolved, Some(Better::Less), false) => Tone::Good,
        (Verdict::Resolved, Some(_), _) => Tone::Bad,
        (Verdict::Resolved, None, _) => Tone::Plain,
        _ => Tone::Faint,
    }
}
