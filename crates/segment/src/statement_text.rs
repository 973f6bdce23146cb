// SPDX-License-Identifier: PostgreSQL
//! The text of a statement, and the texts that the reader of a segment keeps. The text of an entry does
//! not change, so each text is read once.

use crate::layout::{i32_at, statement, u32_at};
use std::collections::HashMap;
use std::sync::Arc;

/// The text of a statement, with constants replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The stored part of the text; control characters other than line feeds and tabs are question marks.
    pub shown: Arc<str>,
    /// Bytes of the stored part.
    pub kept: u32,
    /// Bytes of the whole text.
    pub whole: u32,
}

impl Text {
    /// Whether the text is truncated.
    pub fn is_cut(&self) -> bool {
        self.whole > self.kept
    }
}

/// The location of the text of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextLocation {
    /// 1 + number of its first block; 0: it has none.
    pub first: u32,
    pub bytes: u32,
    pub whole: u32,
    pub encoding: i32,
}

impl TextLocation {
    pub fn decode(bytes: &[u8]) -> TextLocation {
        TextLocation {
            first: u32_at(bytes, statement::TEXT),
            bytes: u32_at(bytes, statement::TEXT_BYTES),
            whole: u32_at(bytes, statement::TEXT_WHOLE),
            encoding: i32_at(bytes, statement::ENCODING),
        }
    }
}

/// Texts that have been read, by number of their entry.
#[derive(Debug, Clone, Default)]
pub(crate) struct Texts {
    pub known: HashMap<u32, KnownText>,
}

#[derive(Debug, Clone)]
pub(crate) struct KnownText {
    pub born: u64,
    pub at: TextLocation,
    pub text: Text,
}
