// SPDX-License-Identifier: PostgreSQL
//! Counts of losses because a table or the file system was full.

use crate::layout::{header, u64_at};

macro_rules! overflows {
    ($($field:ident: $($offset:ident)+, $doc:literal;)*) => {
        /// Overflows since the segment was created.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
        pub struct Overflows {
            $(#[doc = $doc] pub $field: u64,)*
        }

        impl Overflows {
            pub(crate) fn decode(live: &[u8]) -> Overflows {
                let sum = |offsets: &[usize]| {
                    offsets.iter().fold(0, |sum: u64, at| sum.saturating_add(u64_at(live, *at)))
                };
                Overflows { $($field: sum(&[$(header::$offset),+]),)* }
            }

            /// Add other overflows.
            pub fn add(&mut self, other: &Overflows) {
                $(self.$field = self.$field.saturating_add(other.$field);)*
            }

            /// The overflows since an earlier reading.
            pub fn since(&self, earlier: &Overflows) -> Overflows {
                Overflows { $($field: self.$field.saturating_sub(earlier.$field),)* }
            }
        }
    };
}

overflows! {
    slots: OVERFLOW_SLOTS, "Sessions that got no slot and run uninstrumented.";
    statistics: OVERFLOW_STATS, "Statistics for which a session had no entry left.";
    directory: OVERFLOW_DIRECTORY, "Names for which the directory had no space.";
    groups: OVERFLOW_GROUPS, "Sessions merged into the overflow group.";
    memory: OVERFLOW_MEMORY REFUSED_MEMORY,
        "Requests for memory of the segment that the file system refused, and sessions that got no memory for a slot.";
    lost_merges: LOST_MERGES, "Damaged slots, which were not merged.";
    statements_dropped: STATEMENTS_DROPPED, "Statement counts that could not be flushed into the table.";
    statements_lost: STATEMENTS_LOST, "Statements that a process left half updated when it died.";
    texts_cut: TEXTS_CUT, "Statement texts truncated because their space was full.";
    relations_lost: RELATIONS_LOST, "Relation counts that a process left half flushed when it died.";
}

impl Overflows {
    /// Whether there were no overflows.
    pub fn is_zero(&self) -> bool {
        *self == Overflows::default()
    }

    /// The overflows of an interval, with lasting effects of earlier ones: a writer tries only once to add a statistic
    /// to a full directory or book, so every later interval is incomplete.
    pub(crate) fn with_lasting(self, ever: &Overflows) -> Overflows {
        Overflows {
            statistics: self.statistics.max(ever.statistics.min(1)),
            directory: self.directory.max(ever.directory.min(1)),
            ..self
        }
    }
}
