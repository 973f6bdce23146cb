// SPDX-License-Identifier: PostgreSQL
//! Storage studies as a kind of experiment.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::answer::course::CellCourse;
use super::answer::StorageResults;
use super::arms::{arms, variant, CompletedCell};
use super::file::StorageStudy;
use super::run::StorageRunArgs;
use super::{charts, log, page, run, tables};
use crate::engine::experiment::{About, Computed, Experiment, RunTarget, StudyFile, StudyHeading};
use crate::engine::journal;
use crate::engine::progress::length;
use error::Error;

/// Storage studies.
#[derive(Debug)]
pub enum StorageStudies {}

/// The contents of a study.
#[derive(Debug, Serialize)]
pub struct StorageContents {
    /// Titles of the arms, including the A/A control.
    pub arms: Vec<String>,
    /// Names of the victims.
    pub victims: Vec<String>,
}

/// How much a study measures.
#[derive(Debug, Serialize)]
pub struct StorageSize {
    /// Number of cells: arms times repeats.
    pub cells: usize,
    /// Length of each cell's measured part, seconds.
    pub cell_seconds: f64,
    /// Estimated duration, seconds.
    pub expected_seconds: f64,
}

impl Experiment for StorageStudies {
    const KIND: &'static str = "storage";
    const BUILT_IN: &'static [(&'static str, &'static str)] = &[
        ("storage-victim", include_str!("../../../../studies/storage/storage-victim.toml")),
        ("backup-hurts", include_str!("../../../../studies/storage/backup-hurts.toml")),
    ];
    const SHOWS: &'static str = "Show a study's question, arms, victims and approximate duration";
    const REPORTS: &'static str = "Rebuild the tables and the page from the logs in a directory";
    type RunArgs = StorageRunArgs;
    type Study = StorageStudy;
    type Contents = StorageContents;
    type Size = StorageSize;
    type Results = StorageResults;

    fn parse(text: &str) -> Result<StorageStudy, String> {
        StorageStudy::parse(text)
    }

    fn heading(study: &StorageStudy) -> StudyHeading {
        study.heading()
    }

    fn describe(study: &StorageStudy) -> Result<About<StorageContents, StorageSize>, Error> {
        let size = |study: &StorageStudy| StorageSize {
            cells: arms(study).len() * study.repeats,
            cell_seconds: study.length.0.as_secs_f64(),
            expected_seconds: study.expected_seconds(),
        };
        Ok(About {
            heading: study.heading(),
            contents: StorageContents {
                arms: arms(study).into_iter().map(|arm| arm.title).collect(),
                victims: study.victims.iter().map(|victim| victim.name.clone()).collect(),
            },
            quick: size(&study.clone().quick()),
            proper: size(study),
        })
    }

    fn contents(contents: &StorageContents) -> Vec<(&'static str, String)> {
        vec![("arms", contents.arms.join(", ")), ("victims", contents.victims.join(", "))]
    }

    fn size(size: &StorageSize) -> (String, f64) {
        let cell = length(size.cell_seconds);
        (format!("{} cells of {cell}", size.cells), size.expected_seconds)
    }

    fn target(args: &StorageRunArgs) -> RunTarget<'_> {
        RunTarget { study: &args.study, output: args.output.as_deref(), json: args.json }
    }

    fn run(args: &StorageRunArgs, file: StudyFile, folder: &Path) -> Result<(), Error> {
        run::run(args, &file.text, folder)
    }

    fn has_results(folder: &Path) -> bool {
        std::fs::read_dir(folder.join("cells")).is_ok_and(|mut all| all.next().is_some())
    }

    fn compute(folder: &Path) -> Result<Computed<StorageResults>, Error> {
        let (file, _, kept) = journal::read::<CompletedCell>(folder)?;
        let length = kept.head.seconds.map(Duration::from_secs_f64);
        let study = variant(&file, kept.head.quick, length)
            .map_err(|error| Error::Failed(format!("{}/study.toml: {error}", folder.display())))?;
        let mut courses = Vec::new();
        for block in 0..study.repeats {
            for arm in arms(&study) {
                let lines = log::read(&log::path(folder, &arm.name, block))?;
                courses.extend(CellCourse::from_events(&lines));
            }
        }
        let results = StorageResults::compute(&study, &courses, &kept, folder)?;
        let tables = tables::make_tables(&results);
        let charts = charts::draw_charts(&results, &courses);
        let facts = page::facts(&results);
        Ok(Computed {
            heading: study.heading(),
            page_findings: Some(page::findings(&results.sentences)),
            page_rest: page::method(&facts, &file),
            facts,
            findings: results.sentences.clone(),
            tables,
            charts,
            results,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_studies_have_the_names_of_their_files_and_quick_variants() {
        for (name, text) in StorageStudies::BUILT_IN {
            let study = StorageStudy::parse(text).unwrap();
            assert_eq!(study.name, *name);
            assert!(study.clone().quick().expected_seconds() <= 20.0 * 60.0, "{name}");
        }
    }
}
