// SPDX-License-Identifier: PostgreSQL
//! Studies of servers as a kind of experiment.

use std::path::Path;

use serde::Serialize;

use super::answer::{self, StudyResults};
use super::cell::Cell;
use super::file::{Design, Study};
use super::plan::{LoadPoint, StudyPlan};
use super::run::StudyRunArgs;
use super::{charts, page, run, tables, text};
use crate::engine::experiment::{
    self, About, Computed, Experiment, RunTarget, StudyFile, StudyHeading,
};
use crate::engine::journal;
use error::Error;

/// A built-in study: the name of its directory, and its file.
macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../studies/", $name, "/study.toml")))),*]
    };
}

/// Studies of servers.
#[derive(Debug)]
pub enum ServerStudies {}

/// The contents of a study.
#[derive(Debug, Serialize)]
pub struct StudyContents {
    /// How its arms take turns.
    pub design: Design,
    /// Titles of the arms.
    pub arms: Vec<String>,
    /// Labels of the points.
    pub points: Vec<String>,
    /// Names of the reads.
    pub reads: Vec<String>,
}

/// How much a study measures.
#[derive(Debug, Serialize)]
pub struct StudySize {
    /// Number of blocks; each contains every arm.
    pub blocks: usize,
    /// Number of cells: arms times points times blocks.
    pub cells: usize,
    /// Estimated duration, seconds.
    pub expected_seconds: f64,
}

impl Experiment for ServerStudies {
    const KIND: &'static str = "study";
    const BUILT_IN: &'static [(&'static str, &'static str)] = built_in![
        "track-activities",
        "lwlock-partial-full",
        "users-sweep",
        "overhead-matrix",
        "io-timing-clock",
        "checkpoint",
        "commit-delay",
        "file-systems",
        "slow-fsync",
    ];
    const SHOWS: &'static str = "Show a study's question, arms and approximate duration";
    const REPORTS: &'static str = "Rebuild the tables and the page from the cells in a directory";
    type RunArgs = StudyRunArgs;
    type Study = Study;
    type Contents = StudyContents;
    type Size = StudySize;
    type Results = StudyResults;

    fn parse(text: &str) -> Result<Study, String> {
        Study::parse(text)
    }

    fn heading(study: &Study) -> StudyHeading {
        study.heading()
    }

    fn describe(study: &Study) -> Result<About<StudyContents, StudySize>, Error> {
        let proper = StudyPlan::new(study.clone(), false, &[])?;
        let quick = StudyPlan::new(study.clone(), true, &[])?;
        let size = |plan: &StudyPlan| StudySize {
            blocks: plan.study.measure.repeats,
            cells: plan.cells(),
            expected_seconds: plan.expected_seconds(),
        };
        Ok(About {
            heading: study.heading(),
            contents: StudyContents {
                design: study.measure.design,
                arms: proper.arms.iter().map(|arm| arm.title().into()).collect(),
                points: proper.points.iter().map(LoadPoint::label).collect(),
                reads: study.reads.iter().map(|read| read.name.clone()).collect(),
            },
            quick: size(&quick),
            proper: size(&proper),
        })
    }

    fn contents(contents: &StudyContents) -> Vec<(&'static str, String)> {
        vec![
            ("arms", contents.arms.join(", ")),
            ("points", contents.points.join(", ")),
            ("reads", contents.reads.join(", ")),
        ]
    }

    fn size(size: &StudySize) -> (String, f64) {
        (format!("{} cells in {} blocks", size.cells, size.blocks), size.expected_seconds)
    }

    fn target(args: &StudyRunArgs) -> RunTarget<'_> {
        RunTarget { study: &args.study, output: args.output.as_deref(), json: args.json }
    }

    fn run(args: &StudyRunArgs, file: StudyFile, folder: &Path) -> Result<(), Error> {
        run::run(args, file, folder)
    }

    fn has_results(folder: &Path) -> bool {
        journal::read::<Cell>(folder).is_ok_and(|(_, cells, _)| !cells.is_empty())
    }

    fn compute(folder: &Path) -> Result<Computed<StudyResults>, Error> {
        let (text, cells, kept) = journal::read(folder)?;
        let file = folder.join("study.toml").display().to_string();
        let study = experiment::parse::<ServerStudies>(&file, &text)?;
        let plan = StudyPlan::new(study, kept.head.quick, &kept.head.directories)?;
        let cells = answer::complete(&plan, cells);
        let results = StudyResults::compute(&plan, &cells, &kept);
        let tables = tables::make_tables(&plan, &cells, &results);
        let charts = charts::draw_charts(&plan, &cells, &results);
        let facts = text::facts(&results);
        let verdicts = text::verdicts(&results);
        Ok(Computed {
            heading: plan.study.heading(),
            page_findings: (!verdicts.is_empty()).then(|| page::findings(&verdicts)),
            page_rest: page::rest(&plan, &cells, &results, &facts),
            facts,
            findings: verdicts.into_iter().map(|(_, line)| line).collect(),
            tables,
            charts,
            results,
        })
    }
}
