// SPDX-License-Identifier: PostgreSQL
//! Relations of a segment made for tests.

use super::Maker;
use segment::layout::{self, entry, file_sums, header, local_relation, relation};

/// An entry of the table, or a local entry: reads and failures of a relation.
pub struct Reads {
    pub relation: u32,
    pub count: u64,
    pub ticks: u64,
    pub max: u64,
    pub failed: u64,
}

impl Reads {
    pub fn new(relation: u32, count: u64) -> Reads {
        Reads { relation, count, ticks: 10 * count, max: 12, failed: count / 4 }
    }
}

impl Maker {
    /// Add tables for this many relations at the end of the file.
    pub fn with_relations(&self, capacity: u32) {
        let slots = u64::from(self.shape.slots);
        let table = self.file.metadata().unwrap().len().next_multiple_of(4096);
        let local =
            (table + u64::from(1 + capacity) * relation::SIZE as u64).next_multiple_of(4096);
        let stride = layout::LOCAL_RELATIONS * local_relation::SIZE;
        self.file.set_len(local + slots * stride as u64).unwrap();
        self.u64(header::SEGMENT_SIZE as u64, local + slots * stride as u64);
        for (at, offset, count, stride) in [
            (header::RELATIONS, table, 1 + capacity, relation::SIZE),
            (header::LOCAL_RELATIONS, local, self.shape.slots, stride),
        ] {
            self.u64(at as u64, offset);
            self.u32(at as u64 + 8, count);
            self.u32(at as u64 + 12, stride as u32);
        }
        self.u32(table + relation::STATE as u64, 2);
    }

    pub fn relation_at(&self, number: u32) -> u64 {
        self.get_u64(header::RELATIONS as u64) + u64::from(number) * relation::SIZE as u64
    }

    /// An entry in use; relation 0 is the others.
    pub fn relation(&self, number: u32, reads: &Reads) {
        let at = self.relation_at(number);
        self.u32(at + relation::STATE as u64, 2);
        let key = at + relation::KEY as u64;
        if reads.relation != 0 {
            self.u32(key, 1663);
            self.u32(key + 4, 5);
            self.u32(key + 8, reads.relation);
        }
        self.u64(at + relation::FAILED as u64, reads.failed);
        self.reads(at + relation::OF as u64, reads);
    }

    /// A local entry of this slot, in this state, for this entry.
    pub fn local_relation(&self, slot: u32, index: u32, state: u32, number: u32, reads: &Reads) {
        let stride = layout::LOCAL_RELATIONS * local_relation::SIZE;
        let at = self.get_u64(header::LOCAL_RELATIONS as u64)
            + u64::from(slot) * stride as u64
            + u64::from(index) * local_relation::SIZE as u64;
        self.u32(
            self.entry_at(slot) + entry::LOCAL_RELATIONS as u64,
            layout::LOCAL_RELATIONS as u32,
        );
        self.u32(at + local_relation::STATE as u64, state);
        self.u32(at + local_relation::ENTRY as u64, number);
        self.u64(at + local_relation::FAILED as u64, reads.failed);
        self.reads(at + local_relation::OF as u64, reads);
    }

    fn reads(&self, at: u64, reads: &Reads) {
        self.u64(at + file_sums::COUNT as u64, reads.count);
        self.u64(at + file_sums::BYTES as u64, 8192 * reads.count);
        self.u64(at + file_sums::TICKS as u64, reads.ticks);
        self.u64(at + file_sums::MAX as u64, reads.max);
    }
}
