// SPDX-License-Identifier: PostgreSQL
//! The charts of a study's report.

use maud::Markup;

use super::answer::StudyResults;
use super::cell::Cell;
use super::file::{Chart, ChartKind, Read, Show};
use super::plan::{LoadPoint, StudyPlan};
use crate::engine::page::Drawn;
use crate::engine::svg::{bars, lines, Bar, ChartFrame, ChartLine, Spot};

/// All charts of a study.
pub fn draw_charts(plan: &StudyPlan, cells: &[Cell], answer: &StudyResults) -> Vec<Drawn> {
    let painter = Painter { plan, cells, answer };
    plan.study.charts.iter().filter_map(|chart| painter.draw(chart)).collect()
}

struct Painter<'a> {
    plan: &'a StudyPlan,
    cells: &'a [Cell],
    answer: &'a StudyResults,
}

impl Painter<'_> {
    fn draw(&self, chart: &Chart) -> Option<Drawn> {
        let reads: Vec<&Read> =
            chart.reads.iter().filter_map(|name| self.plan.study.read(name)).collect();
        let title = chart.title.clone().unwrap_or_else(|| {
            reads.iter().map(|read| read.heading()).collect::<Vec<_>>().join("; ")
        });
        let frame = ChartFrame { title: &title, unit: &chart.unit(&reads).ok()? };
        let (svg, caption) = match chart.kind {
            ChartKind::Lines => self.over_points(frame, chart, &reads)?,
            ChartKind::Bars => self.bars(frame, chart, &reads)?,
            ChartKind::Stack => self.stack(frame, chart, &reads)?,
            ChartKind::Series => self.series(frame, chart, &reads)?,
        };
        Some(Drawn { title, svg, caption })
    }

    /// The value shown in the chart, and its half-width.
    fn figure(
        &self,
        chart: &Chart,
        arm: &str,
        point: &LoadPoint,
        read: &str,
    ) -> Option<(f64, f64)> {
        let (value, half) = match chart.show {
            Show::Value => {
                let figure = self.answer.figure(arm, point, read)?;
                (figure.mean, figure.half_width)
            }
            _ => self.answer.percent(arm, point, read)?,
        };
        Some((value, half.unwrap_or(0.0)))
    }

    fn over_points(
        &self,
        frame: ChartFrame<'_>,
        chart: &Chart,
        reads: &[&Read],
    ) -> Option<(Markup, String)> {
        let arms = self.answer.shown_arms(&chart.arms);
        let mut all = Vec::new();
        for (number, read) in reads.iter().enumerate() {
            for (arm, arm_title, colour) in &arms {
                let spots: Vec<Spot> = self
                    .plan
                    .points
                    .iter()
                    .filter_map(|point| {
                        let (y, half) = self.figure(chart, arm, point, &read.name)?;
                        Some(Spot { x: point.axis_value(), y, half })
                    })
                    .collect();
                let name = match (reads.len(), arms.len()) {
                    (1, _) => arm_title.to_string(),
                    (_, 1) => read.title().to_string(),
                    _ => format!("{arm_title}: {}", read.title()),
                };
                let colour = if arms.len() > 1 { *colour } else { number };
                all.push(ChartLine { name, spots, smooth: false, colour });
                all.extend(self.curve(arm, &read.name, colour + 1));
            }
        }
        let ticks: Vec<f64> = self.plan.points.iter().map(LoadPoint::axis_value).collect();
        let axis = if self.plan.study.workload.rates.is_some() { "rate, 1/s" } else { "clients" };
        all.iter().any(|line| !line.spots.is_empty()).then(|| {
            (lines(frame, &all, &ticks, axis, &[]), "95 % confidence intervals of the mean".into())
        })
    }

    /// The curve fitted to an arm's read, if there is one.
    fn curve(&self, arm: &str, read: &str, colour: usize) -> Option<ChartLine> {
        let found = self.answer.fits.iter().find(|fit| fit.arm == arm && fit.read == read)?;
        let most = self.plan.points.iter().map(LoadPoint::axis_value).fold(1.0, f64::max);
        let spots = (0..=100)
            .map(|at| 1.0 + (most - 1.0) * f64::from(at) / 100.0)
            .map(|x| Spot { x, y: found.fit.throughput(x), half: 0.0 })
            .collect();
        let knee = found.fit.knee.as_ref().map_or(String::new(), |knee| {
            let high = knee.high.map_or("no upper bound".into(), |high| format!("{high:.0}"));
            format!(", knee at {:.0} ({:.0} .. {high})", knee.value, knee.low)
        });
        Some(ChartLine { name: format!("fitted{knee}"), spots, smooth: true, colour })
    }

    /// The point that bars show: the one the chart names, or the last.
    fn point(&self, chart: &Chart) -> Option<&LoadPoint> {
        let wanted =
            |point: &&LoadPoint| chart.clients.is_none_or(|value| point.axis_value() == value);
        self.plan.points.iter().rev().find(wanted)
    }

    fn caption(&self, point: &LoadPoint) -> String {
        match self.plan.points.len() {
            1 => String::new(),
            _ => format!("at {} clients", point.label()),
        }
    }

    fn bars(
        &self,
        frame: ChartFrame<'_>,
        chart: &Chart,
        reads: &[&Read],
    ) -> Option<(Markup, String)> {
        let (read, point) = (reads.first()?, self.point(chart)?);
        let all: Vec<Bar> = self
            .answer
            .shown_arms(&chart.arms)
            .into_iter()
            .filter_map(|(arm, name, _)| {
                let (value, half) = self.figure(chart, arm, point, &read.name)?;
                Some(Bar { name: name.into(), parts: vec![(0, value)], half })
            })
            .collect();
        let caption = self.caption(point) + " (95 % confidence intervals of the mean)";
        (!all.is_empty()).then(|| (bars(frame, &all, &[]), caption))
    }

    fn stack(
        &self,
        frame: ChartFrame<'_>,
        chart: &Chart,
        reads: &[&Read],
    ) -> Option<(Markup, String)> {
        let point = self.point(chart)?;
        let all: Vec<Bar> = self
            .answer
            .shown_arms(&chart.arms)
            .into_iter()
            .map(|(arm, name, _)| {
                let part = |(at, read): (usize, &&Read)| {
                    Some((at, self.figure(chart, arm, point, &read.name)?.0))
                };
                let parts = reads.iter().enumerate().filter_map(part).collect();
                Bar { name: name.into(), parts, half: 0.0 }
            })
            .collect();
        let names: Vec<String> = reads.iter().map(|read| read.title().to_string()).collect();
        (!all.is_empty()).then(|| (bars(frame, &all, &names), self.caption(point)))
    }

    /// Figures over time in the last cell of each arm.
    fn series(
        &self,
        frame: ChartFrame<'_>,
        chart: &Chart,
        reads: &[&Read],
    ) -> Option<(Markup, String)> {
        let point = self.point(chart)?;
        let arms = self.answer.shown_arms(&chart.arms);
        let (mut all, mut dashes, mut end) = (Vec::new(), Vec::new(), 0.0f64);
        for (arm, arm_title, colour) in &arms {
            let of =
                |cell: &&Cell| cell.arm == *arm && cell.point == *point && cell.series.is_some();
            let Some(cell) = self.cells.iter().filter(of).max_by_key(|cell| cell.block) else {
                continue;
            };
            let Some(series) = &cell.series else { continue };
            for (number, read) in reads.iter().enumerate() {
                let Some(values) = series.values.get(&read.name) else { continue };
                let spots: Vec<Spot> = series
                    .times
                    .iter()
                    .zip(values)
                    .filter_map(|(x, y)| Some(Spot { x: *x, y: (*y)?, half: 0.0 }))
                    .collect();
                end = series.times.iter().copied().fold(end, f64::max);
                let name = match reads.len() {
                    1 => arm_title.to_string(),
                    _ => format!("{arm_title}: {}", read.title()),
                };
                let colour = if arms.len() > 1 { *colour + number } else { number };
                all.push(ChartLine { name, spots, smooth: true, colour });
            }
            let wanted = cell.marks.iter().filter(|mark| chart.marks.contains(&mark.kind));
            dashes.extend(wanted.map(|mark| (mark.time, format!("{arm_title}: {}", mark.text))));
        }
        let step = ((end / 8.0).ceil()).max(1.0);
        let ticks: Vec<f64> =
            (0..=8).map(|at| f64::from(at) * step).filter(|t| *t <= end).collect();
        dashes.retain(|(time, _)| (0.0..=end).contains(time));
        let mut caption = format!("last cell of each arm {}", self.caption(point));
        if !dashes.is_empty() {
            let kinds = chart.marks.join(" or ");
            caption =
                format!("{}; dashed lines: {kinds} events (hover for details)", caption.trim_end());
        }
        (!all.is_empty()).then(|| (lines(frame, &all, &ticks, "time, s", &dashes), caption))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::experiment::Experiment;
    use crate::engine::journal::{RunHead, RunRecord};
    use crate::study::answer::complete;
    use crate::study::cell::{CellSeries, Machine, Proof};
    use crate::study::file::Study;
    use live::host::Watch;

    fn kept() -> RunRecord {
        RunRecord {
            head: RunHead::new(false, "15".into()),
            host: Watch::start().host("tsc"),
            left_out: Vec::new(),
            failed: Vec::new(),
        }
    }

    /// A cell in which every read has figures.
    fn cell(plan: &StudyPlan, arm: &str, point: LoadPoint, block: usize) -> Cell {
        let reads = || plan.study.reads.iter().map(|read| read.name.clone());
        Cell {
            arm: arm.into(),
            point,
            block,
            began: 0.0,
            seconds: 3.0,
            values: reads().map(|name| (name, Some(1.0 + block as f64))).collect(),
            series: Some(CellSeries {
                times: vec![1.0, 2.0, 3.0],
                values: reads().map(|name| (name, vec![Some(1.0); 3])).collect(),
            }),
            machine: Machine::default(),
            proof: Proof::default(),
            marks: Vec::new(),
            listings: Vec::new(),
        }
    }

    #[test]
    fn every_axis_of_the_built_in_studies_has_a_unit() {
        for (name, text) in crate::study::kind::ServerStudies::BUILT_IN {
            let plan = StudyPlan::new(Study::parse(text).unwrap(), false, &[]).unwrap();
            let mut cells = Vec::new();
            for arm in &plan.arms {
                for point in &plan.points {
                    cells.extend((0..2).map(|block| cell(&plan, &arm.name, *point, block)));
                }
            }
            let cells = complete(&plan, cells);
            let drawn = draw_charts(&plan, &cells, &StudyResults::compute(&plan, &cells, &kept()));
            assert_eq!(drawn.len(), plan.study.charts.len(), "{name}");
            for (chart, Drawn { title, svg, .. }) in plan.study.charts.iter().zip(&drawn) {
                let after = |class: &str| {
                    let (_, rest) = svg.0.split_once(&format!("<text class=\"{class}\""))?;
                    Some(rest.split_once('>')?.1.split('<').next()?.trim().to_string())
                };
                let unit = after("unit").unwrap_or_default();
                assert!(!unit.is_empty(), "{name}: {title}: the vertical axis");
                let along = after("name").unwrap_or_default();
                let by_arm = matches!(chart.kind, ChartKind::Bars | ChartKind::Stack);
                assert!(by_arm != ["clients", "rate, 1/s", "time, s"].contains(&&*along), "{name}");
            }
        }
    }

    #[test]
    fn an_axis_without_a_unit_or_with_two_is_refused() {
        let study = |reads: &str, chart: &str| {
            Study::parse(&format!(
                "name = \"a\"\ntitle = \"A\"\nquestion = \"?\"\n[[arm]]\nname = \"base\"\n\
                 [[arm]]\nname = \"one\"\n[workload]\nbuiltin = \"select-only\"\n{reads}\n\
                 [[chart]]\nkind = \"bars\"\nreads = {chart}\n"
            ))
        };
        let reads = "[[read]]\nname = \"tps\"\nof = \"throughput\"\n[[read]]\nname = \"twice\"\n\
                     value = \"2 * tps\"\n[[read]]\nname = \"cpu\"\nof = \"cpu\"\n";
        let unit = |chart| study(reads, chart).map(|_| ()).unwrap_err();
        assert!(study(reads, "[\"tps\"]").is_ok());
        assert!(unit("[\"twice\"]").contains("\"twice\" has no unit"));
        assert!(unit("[\"tps\", \"cpu\"]").contains("must have the same unit, not 1/s and µs"));
        let plain = reads.replace("value = \"2 * tps\"", "value = \"2 * tps\"\nunit = \"1\"");
        let study = study(&plain, "[\"twice\"]").unwrap();
        let reads: Vec<&Read> = study.read("twice").into_iter().collect();
        assert_eq!(study.charts[0].unit(&reads).unwrap(), "twice");
    }

    #[test]
    fn bars_are_of_the_last_point_a_series_of_the_last_cell_and_wide_intervals_are_left_out() {
        let text = "name = \"a\"\ntitle = \"A\"\nquestion = \"?\"\n[measure]\nevery = 1\nagain = false\n\
                    [[arm]]\nname = \"base\"\n[[arm]]\nname = \"one\"\n[workload]\nbuiltin = \"select-only\"\n\
                    clients = [1, 8]\n[[read]]\nname = \"tps\"\nof = \"throughput\"\nseries = true\n[[chart]]\n\
                    kind = \"bars\"\nreads = [\"tps\"]\n[[chart]]\nkind = \"series\"\nreads = [\"tps\"]\n\
                    [[table]]\nreads = [\"tps\"]\n";
        let plan = StudyPlan::new(Study::parse(text).unwrap(), false, &[]).unwrap();
        let made = |blocks: &[usize]| -> Vec<Cell> {
            let all = plan
                .points
                .iter()
                .flat_map(|point| blocks.iter().map(move |block| (point, *block)));
            all.map(|(point, block)| {
                let mut cell = cell(&plan, "base", *point, block);
                // Means of 4 with a half-width of 7.4, and of 14 with one of 2.5.
                let value =
                    if point.clients == 1 { [1.0, 4.0, 7.0] } else { [13.0, 14.0, 15.0] }[block];
                cell.values.insert("tps".into(), Some(value));
                let series = vec![Some(value); 3];
                cell.series.as_mut().unwrap().values.insert("tps".into(), series);
                cell
            })
            .collect()
        };
        let drawn = |cells: &[Cell]| {
            draw_charts(&plan, cells, &StudyResults::compute(&plan, cells, &kept()))
        };
        let (all, last) = (made(&[0, 1, 2]), made(&[2]));
        assert!(drawn(&all)[0].caption.starts_with("at 8 clients"), "{}", drawn(&all)[0].caption);
        assert_eq!(drawn(&all)[1].svg.0, drawn(&last)[1].svg.0);
        let table = &crate::study::tables::make_tables(
            &plan,
            &all,
            &StudyResults::compute(&plan, &all, &kept()),
        )[0];
        let shown: Vec<bool> = table.to_string().lines().map(|line| line.contains('±')).collect();
        assert_eq!(shown[shown.len() - 2..], [false, true], "{}", table);
    }
}
