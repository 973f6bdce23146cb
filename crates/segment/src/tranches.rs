// SPDX-License-Identifier: PostgreSQL
//! What tranches of lightweight locks are called: entries `tranche::<number>::<name>` of the
//! directory, which name no statistic.

use std::collections::HashMap;
use std::sync::Arc;

use crate::book::Book;
use crate::error::Error;
use crate::layout::{directory, text_at, u32_at};
use crate::segment::Segment;

/// Names by number.
#[derive(Debug, Clone, Default)]
pub struct Tranches {
    names: HashMap<u32, String>,
}

impl Tranches {
    /// The name of a tranche; its number where no name is known.
    pub fn name(&self, tranche: u32) -> String {
        self.names.get(&tranche).cloned().unwrap_or_else(|| tranche.to_string())
    }
}

/// The kind of such an entry.
const NAME: u32 = 4;
const PUBLISHED: u32 = 2;

impl Segment {
    /// Learn the names of the tranches of all locks that these sessions hold.
    pub(crate) fn name_tranches(&mut self, books: &[Book]) -> Result<(), Error> {
        let mut held = books.iter().flat_map(|book| &book.holds);
        if held.all(|hold| self.tranches.names.contains_key(&hold.tranche)) {
            return Ok(());
        }
        // Rare, so all of the directory is read: an entry lies where the hash of its whole
        // name puts it.
        let mut tranches = Arc::clone(&self.tranches);
        let names = &mut Arc::make_mut(&mut tranches).names;
        self.each_entry(self.regions.directory, directory::SIZE, |_, entry| {
            if u32_at(entry, directory::STATE) != PUBLISHED
                || u32_at(entry, directory::KIND) != NAME
            {
                return;
            }
            let name = text_at(entry, directory::NAME, 96);
            let tranche = name.strip_prefix("tranche::").and_then(|rest| rest.split_once("::"));
            if let Some((number, name)) = tranche {
                if let Ok(number) = number.parse() {
                    names.insert(number, name.to_string());
                }
            }
        })?;
        self.tranches = tranches;
        Ok(())
    }
}
