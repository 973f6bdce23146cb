// SPDX-License-Identifier: PostgreSQL
//! The context of reading one snapshot.

use crate::book::Book;
use std::sync::atomic::AtomicU32;

/// The context of reading one snapshot.
pub(crate) struct ReadContext<'a> {
    /// The previous snapshot's books of slots and groups, if they are comparable.
    pub previous: Option<Previous<'a>>,
    pub resets: u32,
    pub reset_tick: u64,
    /// Number of repeated readings, for all books together.
    pub repeats: AtomicU32,
}

impl<'a> ReadContext<'a> {
    /// The previous book of a slot. Usually it is the one after that of the preceding slot, whereas a search
    /// would touch books that are no longer in the CPU cache.
    pub fn previous_of(&self, slot: u32, next: &mut usize) -> Option<&'a Book> {
        let books = self.previous?.books;
        if books.get(*next).is_none_or(|book| book.slot != slot) {
            *next = books.binary_search_by_key(&slot, |book| book.slot).ok()?;
        }
        *next += 1;
        books.get(*next - 1)
    }
}

/// Books of the previous snapshot, each in the order of its slot or group.
#[derive(Clone, Copy)]
pub(crate) struct Previous<'a> {
    pub books: &'a [Book],
    pub groups: &'a [Book],
}
