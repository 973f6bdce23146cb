// SPDX-License-Identifier: PostgreSQL
//! What a study of storage asks, and how long it takes.

use serde::Serialize;

use crate::arms::arms;
use crate::file::Study;

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
    /// Titles of the arms, the A/A control included.
    pub arms: Vec<String>,
    /// Names of the victims.
    pub victims: Vec<String>,
    /// Size of the quick variant.
    pub quick: Size,
    /// Size of the full variant.
    pub proper: Size,
}

/// How much a study measures.
#[derive(Debug, Serialize)]
pub struct Size {
    /// Number of cells: arms times repeats.
    pub cells: usize,
    /// Length of each cell's measured part, seconds.
    pub cell_seconds: f64,
    /// Estimated duration, seconds.
    pub expected_seconds: f64,
}

impl About {
    /// Describe a study.
    pub fn describe(study: &Study) -> Self {
        let size = |study: &Study| Size {
            cells: arms(study).len() * study.repeats,
            cell_seconds: study.length.0.as_secs_f64(),
            expected_seconds: study.expected_seconds(),
        };
        Self {
            name: study.name.clone(),
            title: study.title.clone(),
            question: study.question.trim().into(),
            source: study.source.clone(),
            arms: arms(study).into_iter().map(|arm| arm.title).collect(),
            victims: study.victims.iter().map(|victim| victim.name.clone()).collect(),
            quick: size(&study.clone().quick()),
            proper: size(study),
        }
    }
}
