// SPDX-License-Identifier: PostgreSQL
//! The plans of a range, with their figures before it.

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
    /// The executions noted in the range; if there were none, before it.
    pub sums: PlanRow,
}

const DAY_US: i64 = 86_400_000_000;

impl Recording {
    /// The plans that were noted in a range or before it. Texts are written once a day, so plans that have not been
    /// noted since the previous day are not known.
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
                // Executions before the text are in the figures of the text's row.
                if let Some(sum) =
                    before.get_mut(&row.key()).filter(|sum| sum.time_us <= row.time_us)
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
