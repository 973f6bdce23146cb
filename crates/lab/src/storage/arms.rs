// SPDX-License-Identifier: PostgreSQL
//! The variant of the study to measure, and its arms with the A/A control.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::storage::file::{StorageArm, StorageStudy, AGAIN};

/// A complete cell: one line of cells.jsonl. Its figures are in its log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompletedCell {
    /// Name of the arm.
    pub arm: String,
    /// Number of the block, from 0.
    pub block: usize,
}

/// An arm as it is measured.
#[derive(Debug, Clone)]
pub struct MeasuredArm {
    /// Its name in output.
    pub name: String,
    /// Its title in output.
    pub title: String,
    /// The arm of the study.
    pub arm: StorageArm,
}

/// The arms of a study with the A/A control, which is the first arm a second time.
pub fn arms(study: &StorageStudy) -> Vec<MeasuredArm> {
    let measured = |arm: &StorageArm| MeasuredArm {
        name: arm.name.clone(),
        title: arm.title().into(),
        arm: arm.clone(),
    };
    let mut all: Vec<MeasuredArm> = study.arms.iter().map(measured).collect();
    if let (true, Some(base)) = (study.again, study.arms.first()) {
        let title = format!("{} again (A/A)", base.title());
        all.push(MeasuredArm { name: AGAIN.into(), title, arm: base.clone() });
    }
    all
}

/// The study as this variant runs it.
pub fn variant(text: &str, quick: bool, length: Option<Duration>) -> Result<StorageStudy, String> {
    let mut study = StorageStudy::parse(text)?;
    if quick {
        study = study.quick();
    }
    if let Some(length) = length {
        study.length = crate::engine::time::Time(length);
    }
    Ok(study)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_is_the_first_arm_again() {
        let text = "name = \"a\"\ntitle = \"A\"\nquestion = \"?\"\nfor = 9\n[background]\nrate = 1\nthreads = 4\n\
                    files = 1\nsizes = [{ size = \"8kB\", share = 1 }]\n[[arm]]\nname = \"x\"\ntitle = \"X\"\n[[arm]]\nname = \"y\"\n";
        let study = variant(text, false, Some(Duration::from_secs(7))).unwrap();
        let names: Vec<_> = arms(&study).into_iter().map(|arm| (arm.name, arm.title)).collect();
        let name = |a: &str, b: &str| (a.to_string(), b.to_string());
        assert_eq!(names, [name("x", "X"), name("y", "y"), name("again", "X again (A/A)")]);
        assert_eq!(study.length.0.as_secs(), 7);
    }
}
