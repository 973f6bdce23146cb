// SPDX-License-Identifier: PostgreSQL
//! What a full table or the file system could not take: each is counted, never an error.

use crate::layout::{header, u64_at};

/// Overflows since the segment was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Overflows {
    /// Sessions that found no slot and run uninstrumented.
    pub slots: u64,
    /// Statistics that did not fit into their session's book.
    pub statistics: u64,
    /// Names that did not fit into the directory.
    pub directory: u64,
    /// Sessions merged into the group of last resort.
    pub groups: u64,
    /// Growths that the file system refused, and sessions that found no memory for a slot.
    pub memory: u64,
    /// Slots found damaged and not merged.
    pub lost_merges: u64,
    /// Counts of statements that could not be flushed into their table.
    pub statements_dropped: u64,
    /// Statements left half changed by a process that died.
    pub statements_lost: u64,
    /// Texts of statements cut because their space was full.
    pub texts_cut: u64,
    /// Counts of a relation left half flushed by a process that died.
    pub relations_lost: u64,
}

impl Overflows {
    pub(crate) fn of(live: &[u8]) -> Overflows {
        Overflows {
            slots: u64_at(live, header::OVERFLOW_SLOTS),
            statistics: u64_at(live, header::OVERFLOW_STATS),
            directory: u64_at(live, header::OVERFLOW_DIRECTORY),
            groups: u64_at(live, header::OVERFLOW_GROUPS),
            memory: u64_at(live, header::OVERFLOW_MEMORY)
                .saturating_add(u64_at(live, header::REFUSED_MEMORY)),
            lost_merges: u64_at(live, header::LOST_MERGES),
            statements_dropped: u64_at(live, header::STATEMENTS_DROPPED),
            statements_lost: u64_at(live, header::STATEMENTS_LOST),
            texts_cut: u64_at(live, header::TEXTS_CUT),
            relations_lost: u64_at(live, header::RELATIONS_LOST),
        }
    }

    /// Whether there were none.
    pub fn is_zero(&self) -> bool {
        *self == Overflows::default()
    }

    /// Add others.
    pub fn add(&mut self, other: &Overflows) {
        let pairs = [
            (&mut self.slots, other.slots),
            (&mut self.statistics, other.statistics),
            (&mut self.directory, other.directory),
            (&mut self.groups, other.groups),
            (&mut self.memory, other.memory),
            (&mut self.lost_merges, other.lost_merges),
            (&mut self.statements_dropped, other.statements_dropped),
            (&mut self.statements_lost, other.statements_lost),
            (&mut self.texts_cut, other.texts_cut),
        ];
        for (sum, more) in pairs {
            *sum = sum.saturating_add(more);
        }
    }

    /// Those since an earlier reading.
    pub fn since(&self, earlier: &Overflows) -> Overflows {
        Overflows {
            slots: self.slots.saturating_sub(earlier.slots),
            statistics: self.statistics.saturating_sub(earlier.statistics),
            directory: self.directory.saturating_sub(earlier.directory),
            groups: self.groups.saturating_sub(earlier.groups),
            memory: self.memory.saturating_sub(earlier.memory),
            lost_merges: self.lost_merges.saturating_sub(earlier.lost_merges),
            statements_dropped: self.statements_dropped.saturating_sub(earlier.statements_dropped),
            statements_lost: self.statements_lost.saturating_sub(earlier.statements_lost),
            texts_cut: self.texts_cut.saturating_sub(earlier.texts_cut),
            relations_lost: self.relations_lost.saturating_sub(earlier.relations_lost),
        }
    }

    /// A writer looks only once for a statistic that does not fit into a directory or a book: so no
    /// interval after that has everything.
    pub(crate) fn with_lasting(self, ever: &Overflows) -> Overflows {
        Overflows {
            statistics: self.statistics.max(ever.statistics.min(1)),
            directory: self.directory.max(ever.directory.min(1)),
            ..self
        }
    }
}
