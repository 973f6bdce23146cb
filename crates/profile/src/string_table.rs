// SPDX-License-Identifier: PostgreSQL
//! The texts of a profile's file, each stored once and named by its number.

use std::collections::HashMap;

/// Texts by number.
#[derive(Debug, Default)]
pub(crate) struct StringTable {
    texts: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl StringTable {
    /// The number of a text.
    pub fn number(&mut self, text: &str) -> usize {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len();
        self.texts.push(text.to_string());
        self.numbers.insert(text.to_string(), number);
        number
    }

    /// All texts, in the order of their numbers.
    pub fn into_texts(self) -> Vec<String> {
        self.texts
    }
}
