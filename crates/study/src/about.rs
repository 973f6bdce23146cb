// SPDX-License-Identifier: PostgreSQL
//! What a study asks, and how long it takes.

use serde::Serialize;

use crate::file::{self, Study};
use crate::plan::{self, Plan};
use error::Error;

/// What `list` and `show` print.
#[derive(Debug, Serialize)]
pub struct About {
    /// Name of the study.
    pub name: String,
    /// Title, one line.
    pub title: String,
    /// The question it answers.
    pub question: String,
    /// The original study, if it repeats one.
    pub source: Option<String>,
    /// How its arms take turns.
    pub design: file::Design,
    /// Titles of the arms.
    pub arms: Vec<String>,
    /// Labels of the points.
    pub points: Vec<String>,
    /// Names of the reads.
    pub reads: Vec<String>,
    /// Size of the quick variant.
    pub quick: Size,
    /// Size of the full variant.
    pub proper: Size,
}

/// How much a study measures.
#[derive(Debug, Serialize)]
pub struct Size {
    /// Number of blocks; each contains every arm.
    pub blocks: usize,
    /// Number of cells: arms times points times blocks.
    pub cells: usize,
    /// Estimated duration, seconds.
    pub expected_seconds: f64,
}

impl About {
    /// Describe a study.
    pub fn describe(study: &Study) -> Result<Self, Error> {
        let proper = Plan::new(study.clone(), false, &[])?;
        let quick = Plan::new(study.clone(), true, &[])?;
        let size = |plan: &Plan| Size {
            blocks: plan.study.measure.repeats,
            cells: plan.cells(),
            expected_seconds: plan.expected_seconds(),
        };
        Ok(Self {
            name: study.name.clone(),
            title: study.title.clone(),
            question: study.question.trim().into(),
            source: study.source.clone(),
            design: study.measure.design,
            arms: proper.arms.iter().map(|arm| arm.title().into()).collect(),
            points: proper.points.iter().map(plan::Point::label).collect(),
            reads: study.reads.iter().map(|read| read.name.clone()).collect(),
            quick: size(&quick),
            proper: size(&proper),
        })
    }
}
