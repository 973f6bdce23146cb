// SPDX-License-Identifier: PostgreSQL
//! Reads the texts of statements from their chains of blocks.

use super::table::Entry;
use crate::encoding::decode;
use crate::error::Error;
use crate::header::StatementRegions;
use crate::layout::{block, statement, u32_at, u64_at};
use crate::segment::Segment;
use crate::statement_text::{KnownText, Text, TextLocation, Texts};
use std::collections::HashMap;
use std::sync::atomic::{fence, Ordering};
use std::sync::Arc;

/// Number of blocks to read at a time, because texts are stored in the order of their creation.
const WINDOW: u32 = 64;
/// Maximum size of all texts together; only a damaged segment appears to have more.
const MOST: usize = 256 << 20;

/// The text in `bytes`, without control characters.
pub(super) fn shown(bytes: &[u8], encoding: i32) -> Arc<str> {
    let safe = |c: char| if c.is_control() && c != '\n' && c != '\t' { '?' } else { c };
    decode(bytes, encoding).chars().map(safe).collect::<String>().into()
}

/// The blocks of text read last, all after the entries had been copied.
struct Window {
    first: u32,
    bytes: Vec<u8>,
    /// Bytes of text that may still be read, because no block belongs to two texts.
    budget: usize,
}

impl Segment {
    /// The texts of these entries, by number.
    pub(super) fn read_texts<'e>(
        &mut self,
        regions: &StatementRegions,
        entries: impl Iterator<Item = &'e Entry>,
    ) -> Result<HashMap<u32, Text>, Error> {
        let mut known = std::mem::take(&mut self.texts).known;
        let mut kept = HashMap::with_capacity(known.len());
        let mut new = Vec::new();
        for entry in entries.filter(|entry| entry.text.first != 0) {
            match known.remove(&entry.number) {
                Some(k) if k.born == entry.born && k.at == entry.text => {
                    kept.insert(entry.number, k);
                }
                _ => new.push(entry),
            }
        }
        new.sort_by_key(|entry| entry.text.first);
        let space = regions.texts.count as usize * (block::SIZE - block::BYTES);
        let mut window = Window { first: 0, bytes: Vec::new(), budget: space.min(MOST) };
        for entry in new {
            if let Some(text) = self.read_text(regions, entry, &mut window)? {
                let known = KnownText { born: entry.born, at: entry.text, text };
                kept.insert(entry.number, known);
            }
        }
        let texts = kept.iter().map(|(&number, known)| (number, known.text.clone())).collect();
        self.texts = Texts { known: kept };
        Ok(texts)
    }

    /// The text of one entry; `None` if the entry was reused for another statement.
    fn read_text(
        &self,
        regions: &StatementRegions,
        entry: &Entry,
        window: &mut Window,
    ) -> Result<Option<Text>, Error> {
        let at = entry.text;
        let bytes = self.read_blocks(regions, at, window)?;
        fence(Ordering::Acquire);
        let mut head = [0u8; statement::EXEC];
        self.read(regions.table.entry(entry.number), &mut head)?;
        let same = u32_at(&head, statement::STATE) == 1
            && u64_at(&head, statement::BORN) == entry.born
            && TextLocation::decode(&head) == at;
        Ok(same.then(|| Text {
            shown: shown(&bytes, at.encoding),
            kept: bytes.len() as u32,
            whole: at.whole,
        }))
    }

    /// The bytes in a chain of blocks, up to its end.
    fn read_blocks(
        &self,
        regions: &StatementRegions,
        at: TextLocation,
        window: &mut Window,
    ) -> Result<Vec<u8>, Error> {
        let wanted = (at.bytes as usize).min(window.budget);
        let mut text = Vec::with_capacity(wanted.min(1 << 16));
        let mut next = at.first;
        while text.len() < wanted && next != 0 && next <= regions.texts.count {
            let block = self.block(regions, next - 1, window)?;
            let rest = wanted - text.len();
            text.extend(block[block::BYTES..].iter().take(rest));
            next = u32_at(block, block::NEXT);
        }
        window.budget -= text.len();
        Ok(text)
    }

    fn block<'w>(
        &self,
        regions: &StatementRegions,
        number: u32,
        window: &'w mut Window,
    ) -> Result<&'w [u8], Error> {
        let region = regions.texts;
        let held = window.bytes.len() / block::SIZE;
        let inside = number.checked_sub(window.first).is_some_and(|at| (at as usize) < held);
        if !inside {
            let together = if region.stride as usize == block::SIZE { WINDOW } else { 1 };
            let count = together.min(region.count - number);
            window.bytes.resize(count as usize * block::SIZE, 0);
            window.first = number;
            self.read(region.entry(number), &mut window.bytes)?;
        }
        let offset = (number - window.first) as usize * block::SIZE;
        Ok(&window.bytes[offset..offset + block::SIZE])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UTF8: i32 = 6;
    const LATIN1: i32 = 8;

    #[test]
    fn texts_are_decoded_without_control_characters() {
        assert_eq!(&*shown(b"select\n\t$1\x1b[2J\r", UTF8), "select\n\t$1?[2J?");
        assert_eq!(&*shown("größe".as_bytes(), UTF8), "größe");
        assert_eq!(&*shown(b"gr\xf6\xdfe\x9b", LATIN1), "größe?");
        assert_eq!(&*shown(b"gr\xf6\xdfe", UTF8), "gr\u{fffd}\u{fffd}e");
        // Truncated within a character.
        assert_eq!(&*shown(b"gr\xc3", UTF8), "gr");
    }
}
