// SPDX-License-Identifier: PostgreSQL
//! The names of tranches of lightweight locks: directory entries `tranche::<number>::<name>`, which
//! are not statistics.

use crate::stat_names;
use std::collections::HashMap;

/// Names by number.
#[derive(Debug, Clone, Default)]
pub struct Tranches {
    names: HashMap<u32, String>,
}

impl Tranches {
    /// The name of a tranche, or its number if the name is not known.
    pub fn name(&self, tranche: u32) -> String {
        self.names.get(&tranche).cloned().unwrap_or_else(|| tranche.to_string())
    }

    pub(crate) fn knows(&self, tranche: u32) -> bool {
        self.names.contains_key(&tranche)
    }

    /// Adds the tranche that a directory entry with this name describes, if it does.
    pub(crate) fn learn(&mut self, entry: &str) {
        let tranche =
            entry.strip_prefix(stat_names::TRANCHE).and_then(|rest| rest.split_once("::"));
        if let Some((Ok(number), name)) = tranche.map(|(number, name)| (number.parse(), name)) {
            self.names.insert(number, name.to_string());
        }
    }
}
