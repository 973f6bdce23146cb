// SPDX-License-Identifier: PostgreSQL
//! Plans of statements by shape, as noted by the sessions at the end of slow executions.
//!
//! Concurrency contract. An entry is copied while its state is "used" and its generation stays the same. Meanwhile,
//! writers add to its figures one by one, so an execution may be in the count but not yet in the time.

use std::sync::atomic::{fence, Ordering};

use crate::encoding::decode;
use crate::error::Error;
use crate::layout::{i32_at, plan, plan_state, u32_at, u64_at};
use crate::segment::Segment;
use crate::statements::{FileKey, StatementKey};

/// A plan of a statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The statement of the plan.
    pub statement: StatementKey,
    /// Hash of its nodes with their relations and indexes.
    pub shape: u64,
    /// When it was first noted, tick.
    pub first: u64,
    /// When it was last noted, tick.
    pub last: u64,
    /// Executions noted.
    pub count: u64,
    /// Their total time, ticks.
    pub ticks: u64,
    /// The longest of them, ticks.
    pub max: u64,
    /// Rows that these executions returned or changed.
    pub rows: u64,
    /// The planner's cost estimate for the first of them.
    pub cost: f64,
    /// One line per node, indented by two spaces per level.
    pub text: String,
    /// Whether lines are missing at the end of the text.
    pub cut: bool,
}

impl Plan {
    /// The plan of that statement; `None`: it is none.
    fn decode(bytes: &[u8], statement: StatementKey) -> Option<Plan> {
        let stored = (u32_at(bytes, plan::TEXT_BYTES) as usize).min(plan::SIZE - plan::TEXT);
        let text = bytes.get(plan::TEXT..plan::TEXT + stored)?;
        (u32_at(bytes, plan::STATE) == plan_state::USED && statement.is_identified()).then(|| {
            Plan {
                statement,
                shape: u64_at(bytes, plan::SHAPE),
                first: u64_at(bytes, plan::BORN),
                last: u64_at(bytes, plan::LAST),
                count: u64_at(bytes, plan::COUNT),
                ticks: u64_at(bytes, plan::TICKS),
                max: u64_at(bytes, plan::MAX),
                rows: u64_at(bytes, plan::ROWS),
                cost: f64::from_bits(u64_at(bytes, plan::COST)),
                text: decode(text, i32_at(bytes, plan::ENCODING).wrapping_sub(1)).into_owned(),
                cut: u32_at(bytes, plan::TEXT_WHOLE) as usize > stored,
            }
        })
    }
}

impl Segment {
    /// The plans in the segment, in no particular order; empty if the segment keeps none.
    pub fn plans(&self) -> Result<Vec<Plan>, Error> {
        let Some(regions) = self.regions.plans else { return Ok(Vec::new()) };
        let mut there = Vec::new();
        self.each_entry(regions.memory, 8, |index, bytes| {
            if u64_at(bytes, 0) != 0 {
                there.push(index);
            }
        })?;
        let mut all = Vec::with_capacity(there.len());
        for index in there {
            let at = regions.table.entry(index);
            let generation = self.read_u64(at + plan::GENERATION as u64)?;
            fence(Ordering::Acquire);
            let mut bytes = [0u8; plan::SIZE];
            self.read(at, &mut bytes)?;
            fence(Ordering::Acquire);
            let same = self.read_u64(at + plan::GENERATION as u64)? == generation
                && self.read_u32(at + plan::STATE as u64)? == plan_state::USED;
            let statement = self.statement_key(FileKey::decode(&bytes, plan::KEY))?;
            all.extend(Plan::decode(&bytes, statement).filter(|_| same));
        }
        Ok(all)
    }
}
