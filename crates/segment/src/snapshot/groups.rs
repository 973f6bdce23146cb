// SPDX-License-Identifier: PostgreSQL
//! The groups: the counts of sessions that have ended.
//!
//! Concurrency contract. A process that merges a session changes its group while merge_active is set,
//! and counts the merge before it clears merge_active. The groups are read between two equal readings of
//! both. If the merging process was killed, the journal has the former content of the head in question,
//! and how much of the slot was already moved.

use super::context::ReadContext;
use super::histograms::HistogramBuffers;
use crate::book::{identity_of, Book, Head, NAMELESS};
use crate::error::Error;
use crate::layout::{self, book, entry, head, header, i32_at, journal, slot_state, u32_at, u64_at};
use crate::segment::Segment;
use crate::this_host;
use std::sync::atomic::{fence, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long to wait for a merge before checking whether the merging process runs.
const MERGE_PATIENCE: Duration = Duration::from_millis(20);
/// Maximum time to wait for a merge.
const MERGE_LIMIT: Duration = Duration::from_millis(500);

/// The groups, and the number of merges that they contain.
pub(crate) struct Groups {
    pub books: Vec<Book>,
    pub merges: u64,
    pub stuck: Option<InterruptedMerge>,
}

/// An interrupted merge, whose process was killed or stopped.
pub(crate) struct InterruptedMerge {
    pub merge: MergeState,
    undo: Option<Undo>,
}

/// The progress of a merge, which never returns to a former state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MergeState {
    active: u32,
    /// The slot of the last merge in the journal.
    pub slot: u32,
    group: u32,
    head: u32,
    /// The state of the slot.
    state: u32,
    pub generation: u32,
    /// Number of its statistics that are in the group.
    pub merged: u32,
}

impl MergeState {
    /// Whether the slot is being merged. The journal may also name a slot that was merged long ago.
    pub fn is_merging(&self) -> bool {
        self.state == slot_state::MERGING
    }

    /// Whether the group has all statistics of the slot, although the merge is not counted yet.
    pub fn has_all(&self) -> bool {
        self.active == COMMIT && self.state == slot_state::CLAIMING
    }
}

/// State in the journal: a head is being merged, and may be inconsistent.
const HEAD: u32 = 1;
/// State in the journal: all heads are merged.
const COMMIT: u32 = 3;

/// The head that an interrupted merge was changing, and its former content.
pub(crate) struct Undo {
    group: u32,
    head: u32,
    saved: [u8; head::SIZE],
    hist: Vec<u64>,
}

impl Segment {
    /// The groups, and the number of merges that they contain; `None`: merges were too frequent.
    pub(crate) fn read_groups(&self, context: &ReadContext<'_>) -> Result<Option<Groups>, Error> {
        let begin = Instant::now();
        loop {
            let live = self.read_live()?;
            let merges = u64_at(&live, header::MERGE_COUNT);
            let active = u64_at(&live, header::MERGE_ACTIVE) != 0;
            if active && !self.merge_is_interrupted(&live, begin.elapsed()) {
                std::thread::sleep(Duration::from_micros(100));
                continue;
            }
            let stuck = if active { Some(self.read_journal()?) } else { None };
            fence(Ordering::Acquire);
            let undo = stuck.as_ref().and_then(|s| s.undo.as_ref());
            let books = self.read_group_books(context, undo)?;
            fence(Ordering::Acquire);
            // The process may have continued, if it was only stopped.
            let continued = match &stuck {
                Some(stuck) => self.merge_state()? != stuck.merge,
                None => false,
            };
            let after = self.read_live()?;
            if !continued
                && u64_at(&after, header::MERGE_COUNT) == merges
                && (u64_at(&after, header::MERGE_ACTIVE) != 0) == active
            {
                return Ok(Some(Groups { books, merges, stuck }));
            }
            if begin.elapsed() > self.hooks.patience(MERGE_LIMIT) {
                return Ok(None);
            }
        }
    }

    fn merge_is_interrupted(&self, live: &[u8], waited: Duration) -> bool {
        let holder = i32_at(live, header::MERGE_LOCK);
        !self.is_of_this_boot()
            || waited > self.hooks.patience(MERGE_LIMIT)
            || (waited > MERGE_PATIENCE && self.pids_known && !this_host::runs(holder))
    }

    /// The progress of the merge in the journal.
    fn merge_state(&self) -> Result<MergeState, Error> {
        let mut bytes = [0u8; journal::SAVED];
        self.read(self.regions.journal.offset, &mut bytes)?;
        let slot = u32_at(&bytes, journal::SLOT);
        let mut owner = [0u8; entry::MERGED + 4];
        if slot < self.header().slots {
            self.read(self.regions.entries.entry(slot), &mut owner)?;
        }
        Ok(MergeState {
            active: u32_at(&bytes, journal::ACTIVE),
            slot,
            group: u32_at(&bytes, journal::GROUP),
            head: u32_at(&bytes, journal::HEAD),
            state: u32_at(&owner, entry::STATE),
            generation: u32_at(&owner, entry::GENERATION),
            merged: u32_at(&owner, entry::MERGED),
        })
    }

    /// The head that an interrupted merge was changing.
    fn read_journal(&self) -> Result<InterruptedMerge, Error> {
        let merge = self.merge_state()?;
        fence(Ordering::Acquire);
        let mut bytes = vec![0u8; journal::SIZE];
        self.read(self.regions.journal.offset, &mut bytes)?;
        let mut saved = [0u8; head::SIZE];
        saved.copy_from_slice(&bytes[journal::SAVED..journal::SAVED + head::SIZE]);
        let mut undo = None;
        if merge.active == HEAD && merge.slot < self.header().slots {
            // The first reserved word of the saved head is the number of the slot's head that is added.
            let source = u64_at(&saved, head::RESERVED);
            if u64::from(merge.merged) <= source {
                undo = Some(Undo {
                    group: merge.group,
                    head: merge.head,
                    saved,
                    hist: (0..layout::HIST_BUCKETS)
                        .map(|i| u64_at(&bytes, journal::HIST + 8 * i))
                        .collect(),
                });
            }
        }
        Ok(InterruptedMerge { merge, undo })
    }

    fn read_group_books(
        &self,
        context: &ReadContext<'_>,
        undo: Option<&Undo>,
    ) -> Result<Vec<Book>, Error> {
        let region = self.regions.entries;
        let (slots, count) = (self.header().slots, self.header().groups);
        let most = self.header().stats_per_book as usize;
        let mut entries = vec![0u8; count as usize * region.stride as usize];
        self.read(region.entry(slots), &mut entries)?;
        let mut groups = Vec::new();
        let mut buffer = Vec::new();
        let mut buffers = HistogramBuffers::default();
        for (index, bytes) in (slots..).zip(entries.chunks_exact(region.stride as usize)) {
            if u32_at(bytes, entry::STATE) != slot_state::GROUP {
                continue;
            }
            let previous = context.previous.and_then(|p| {
                let at = p.groups.binary_search_by_key(&index, |b| b.slot).ok()?;
                p.groups.get(at)
            });
            let mut group = Book::of_entry(index, bytes);
            group.identity = Arc::new(identity_of(bytes));
            group.sessions = u64_at(bytes, entry::SESSIONS);
            let base = self.regions.books.entry(index);
            buffer.resize(book::SIZE, 0);
            self.read_book_bytes(base, &mut buffer)?;
            let call = |i| u64_at(&buffer, book::CALLS + 8 * i);
            group.calls.extend((0..layout::CALLS).map(call));
            let used = (u32_at(&buffer, book::USED) as usize).min(most);
            buffer.resize(used * head::SIZE, 0);
            self.read_book_bytes(base + book::SIZE as u64, &mut buffer)?;
            // Histograms may be ahead of the heads, but not behind.
            fence(Ordering::Acquire);
            let undone = undo.filter(|u| u.group == index).map(|u| (u.head as usize, u));
            for (at, bytes) in buffer.chunks_exact(head::SIZE).enumerate() {
                let stat = self.known_stat(u32_at(bytes, head::STAT)).unwrap_or(NAMELESS);
                let saved = undone.filter(|(head, _)| *head == at).map(|(_, undo)| &undo.saved);
                group.unnamed |= stat == NAMELESS;
                group.heads.push(Head::decode(saved.map_or(bytes, |s| s), stat));
            }
            let given = undone.map(|(head, undo)| (head, undo.hist.as_slice()));
            self.read_histograms(&mut group, previous, given, &mut buffers)?;
            groups.push(group);
        }
        Ok(groups)
    }
}
