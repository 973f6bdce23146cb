// SPDX-License-Identifier: PostgreSQL
//! Characters that are invisible, or that change how others appear.
//!
//! Statements, names and paths may contain any character. Some control a terminal; others reverse the
//! text's direction (U+202E) or are invisible (U+200B), so that one text looks like
//! another. In output for people they become \uXXXX, as in psql. In JSON
//! the same form is an escape, so a parser gets the original text.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, StdoutLock, Write};

/// First and last of each range of format characters (Unicode's general category Cf), line and paragraph
/// separators, and others drawn as nothing (Default_Ignorable_Code_Point).
const UNSEEN: [(u32, u32); 25] = [
    (0xAD, 0xAD),
    (0x034F, 0x034F),
    (0x0600, 0x0605),
    (0x061C, 0x061C),
    (0x06DD, 0x06DD),
    (0x070F, 0x070F),
    (0x0890, 0x0891),
    (0x08E2, 0x08E2),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
];

/// Whether a character other than a control character is not visible as itself.
fn is_unseen(letter: char) -> bool {
    let code = u32::from(letter);
    // Fast path: most characters are ASCII.
    code >= UNSEEN[0].0
        && UNSEEN
            .binary_search_by(|(first, last)| {
                if *last < code {
                    std::cmp::Ordering::Less
                } else if *first > code {
                    std::cmp::Ordering::Greater
                } else {
                    std::cmp::Ordering::Equal
                }
            })
            .is_ok()
}

fn push_escaped(text: &mut String, letter: char) {
    let mut units = [0; 2];
    for unit in letter.encode_utf16(&mut units) {
        // Writing to a string cannot fail.
        let _ = write!(text, "\\u{unit:04X}");
    }
}

fn replaced(text: &str, is_bad: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_bad) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match is_bad(letter) {
            true => push_escaped(&mut safe, letter),
            false => safe.push(letter),
        }
    }
    Cow::Owned(safe)
}

/// Text for people: invisible and control characters become visible. Line feeds and tabs
/// are kept.
pub fn visible(text: &str) -> Cow<'_, str> {
    replaced(text, |c| is_unseen(c) || c.is_control() && !matches!(c, '\n' | '\t'))
}

/// Escapes the same characters in JSON, where they occur within strings only. The JSON's meaning does not
/// change.
pub fn json(text: &str) -> Cow<'_, str> {
    replaced(text, is_unseen)
}

/// Standard output for text and JSON: escapes everything as [`json`] does. Control
/// characters are kept, since colours need them; input is cleaned of them where it is read or
/// put into lines.
pub fn stdout() -> Escaping<StdoutLock<'static>> {
    Escaping::new(io::stdout().lock())
}

/// Writes a message to standard error and ignores errors: it may be closed.
pub fn say(text: &str) {
    let line = format!("tally: {}\n", visible(text));
    let _ = io::stderr().write_all(line.as_bytes());
}

/// The same, with the target that the user named in front.
pub fn say_of(target: Option<&str>, text: &str) {
    match target {
        Some(target) => say(&format!("{target}: {text}")),
        None => say(text),
    }
}

/// A writer of UTF-8 that escapes what it writes.
#[derive(Debug)]
pub struct Escaping<W> {
    inner: W,
    /// The first bytes of a character that is not complete yet.
    begun: Vec<u8>,
}

impl<W: Write> Escaping<W> {
    /// Wraps another writer.
    pub fn new(inner: W) -> Escaping<W> {
        Escaping { inner, begun: Vec::new() }
    }
}

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.begun.is_empty() && bytes.is_ascii() {
            return self.inner.write(bytes);
        }
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        let mut rest = all.as_slice();
        while !rest.is_empty() {
            let (text, invalid) = match std::str::from_utf8(rest) {
                Ok(text) => (text, 0),
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    let Some(length) = error.error_len() else {
                        self.begun = after.to_vec();
                        rest = valid;
                        continue;
                    };
                    (std::str::from_utf8(valid).unwrap_or_default(), length)
                }
            };
            self.inner.write_all(json(text).as_bytes())?;
            let (bad, after) = rest[text.len()..].split_at(invalid);
            self.inner.write_all(bad)?;
            rest = after;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_escaped_and_others_are_kept() {
        for (text, shown) in [
            ("select 1 -- Grüße, שלום, 日本, 😀", "select 1 -- Grüße, שלום, 日本, 😀"),
            ("a\u{202e}b\u{2066}c\u{2069}", "a\\u202Eb\\u2066c\\u2069"),
            ("\u{200b}\u{200e}\u{200f}\u{61c}\u{feff}", "\\u200B\\u200E\\u200F\\u061C\\uFEFF"),
            ("\u{1b}[31m\u{9b}\r\n\t", "\\u001B[31m\\u009B\\u000D\n\t"),
            ("\u{2028}\u{ad}\u{e0041}", "\\u2028\\u00AD\\uDB40\\uDC41"),
        ] {
            assert_eq!(visible(text), shown);
        }
    }

    #[test]
    fn the_ranges_are_in_order() {
        assert!(UNSEEN.windows(2).all(|pair| pair[0].1 < pair[1].0));
        assert!(UNSEEN.iter().all(|(first, last)| first <= last));
    }

    #[test]
    fn escaped_json_has_the_same_meaning() {
        let text = "a\u{202e}\u{e0041}\"\\ü";
        let json = serde_json::to_string(text).unwrap();
        let escaped = super::json(&json);
        assert!(!escaped.chars().any(is_unseen));
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
    }

    #[test]
    fn a_writer_escapes_wherever_the_text_is_split() {
        let text = "ab\u{202e}ü\u{e0041}😀\u{1b}[0m".as_bytes();
        let broken = [text, &[0xff, b'x', 0xe2, 0x80]].concat();
        for cut in 0..text.len() {
            let mut writer = Escaping::new(Vec::new());
            writer.write_all(&broken[..cut]).unwrap();
            writer.write_all(&broken[cut..]).unwrap();
            let expected = "ab\\u202Eü\\uDB40\\uDC41😀\u{1b}[0m".as_bytes();
            assert_eq!(writer.inner, [expected, &[0xff, b'x']].concat(), "{cut}");
        }
    }
}
