// SPDX-License-Identifier: PostgreSQL
//! Replaces words in braces in a meaning, for each language.

use crate::spec::{Enum, Layout};

/// A language in which a meaning is printed.
pub trait Language {
    /// Refers to an enumeration of a member's values.
    fn enumeration(&self, one: &Enum) -> String;
    /// Prints a number, given as written in the meaning and as a value.
    fn number(&self, expression: &str, value: u64) -> String;
}

/// `text` with its words in braces replaced.
pub fn expand(layout: &Layout, text: &str, language: &dyn Language) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (word, after) =
            after.split_once('}').ok_or_else(|| format!("no closing brace in \"{text}\""))?;
        out.push_str(before);
        out.push_str(&match layout.enums.iter().find(|one| one.name == word) {
            Some(one) => language.enumeration(one),
            None => language.number(word, layout.value(word)?),
        });
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// Formats a number with commas between groups of three digits.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Wraps `text` into lines of at most `width` characters; a longer word gets its own line.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_and_lines_end_between_words() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(wrapped("one two  three", 7), ["one two", "three"]);
    }
}
