// SPDX-License-Identifier: PostgreSQL
//! The plans of a range, with what was usual before it.

use crate::error::Error;
use crate::plan_rows::{PlanKey, PlanRow, PlanTextRow};
use crate::range::Range;
use crate::recording::Recording;
use crate::rollup;
use crate::table::Table;
use std::collections::HashMap;

/// A plan and its figures.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedPlan {
    /// Its text.
    pub text: PlanTextRow,
    /// What was noted in the range; where that is nothing, before it.
    pub sums: PlanRow,
}

const DAY_US: i64 = 86_400_000_000;

impl Recording {
    /// The plans that were noted in a range or before it. Texts are written once a day: plans that were not noted since
    /// the day before are not known.
    pub fn plans(&self, range: Range) -> Result<Vec<RecordedPlan>, Error> {
        let mut within: HashMap<PlanKey, PlanRow> = HashMap::new();
        self.each_row(range, |row: PlanRow| {
            rollup::total(&mut within, row.key(), row);
        })?;
        let days = Range {
            from_us: range.from_us.saturating_sub(DAY_US),
            to_us: range.to_us.saturating_add(DAY_US),
        };
        let mut texts: HashMap<PlanKey, PlanTextRow> = HashMap::new();
        let mut before: HashMap<PlanKey, PlanRow> = HashMap::new();
        for row in self.rows::<PlanTextRow>(days)? {
            let key = row.key();
            if row.time_us <= range.to_us && !within.contains_key(&key) {
                before.insert(key, row.before());
            }
            texts.insert(key, row);
        }
        if !before.is_empty() {
            self.each_row(Range { to_us: range.from_us, ..days }, |row: PlanRow| {
                // What came before the text is in its own figures.
                if let Some(sum) = before.get_mut(&row.key()).filter(|it| it.time_us <= row.time_us)
                {
                    sum.add(row);
                }
            })?;
        }
        let plan = |(key, text): (PlanKey, PlanTextRow)| {
            let sums = within.remove(&key).or_else(|| before.remove(&key));
            Some(RecordedPlan { text, sums: sums.filter(|sums| sums.noted > 0)? })
        };
        Ok(texts.into_iter().filter_map(plan).collect())
    }
}
