// SPDX-License-Identifier: PostgreSQL
//! Parses the prefix that the server's `log_line_prefix` has put before a message.

use crate::entry::{time_us, LogEntry};
use jiff::tz::TimeZone;

/// A part of a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// An escape: its letter.
    Field(char),
    /// Background processes have nothing from here on (%q).
    SessionsOnly,
}

/// A compiled `log_line_prefix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    parts: Vec<Part>,
}

impl Prefix {
    /// The meaning of the setting's text. Widths, as in %-10u, pad with blanks, which are ignored.
    pub fn parse(text: &str) -> Prefix {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if c != '%' {
                literal.push(c);
                continue;
            }
            while chars.peek().is_some_and(|c| *c == '-' || c.is_ascii_digit()) {
                chars.next();
            }
            match chars.next() {
                Some('%') => literal.push('%'),
                Some(field) => {
                    if !literal.is_empty() {
                        parts.push(Part::Literal(std::mem::take(&mut literal)));
                    }
                    parts.push(if field == 'q' { Part::SessionsOnly } else { Part::Field(field) });
                }
                None => {}
            }
        }
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Prefix { parts }
    }

    /// Splits a line into what the prefix says, and the rest; `None`: the line has no such prefix.
    pub fn split<'l>(&self, line: &'l str, zone: &TimeZone) -> Option<(LogEntry, &'l str)> {
        let mut entry = LogEntry::default();
        let rest = self.matched(&self.parts, line, zone, &mut entry)?;
        Some((entry, rest))
    }

    fn matched<'l>(
        &self,
        parts: &[Part],
        line: &'l str,
        zone: &TimeZone,
        entry: &mut LogEntry,
    ) -> Option<&'l str> {
        let Some((part, later)) = parts.split_first() else {
            return is_severity(line).then_some(line);
        };
        match part {
            Part::Literal(text) => {
                self.matched(later, line.strip_prefix(text.as_str())?, zone, entry)
            }
            Part::SessionsOnly => {
                let mut of_session = entry.clone();
                match self.matched(later, line, zone, &mut of_session) {
                    Some(rest) => {
                        *entry = of_session;
                        Some(rest)
                    }
                    None => is_severity(line).then_some(line),
                }
            }
            // The shortest text after which the rest fits. Names may contain what follows them.
            Part::Field(field) => {
                let ends = line.char_indices().map(|(at, _)| at).chain([line.len()]);
                ends.take_while(|end| *end <= MOST).find_map(|end| {
                    let (text, rest) = line.split_at(end);
                    let mut filled = entry.clone();
                    fill(&mut filled, *field, text.trim(), zone)?;
                    let rest = self.matched(later, rest, zone, &mut filled)?;
                    *entry = filled;
                    Some(rest)
                })
            }
        }
    }
}

/// Longest text of a field, in bytes.
const MOST: usize = 256;

/// Whether a message follows: an upper-case word, and a colon with two blanks.
fn is_severity(line: &str) -> bool {
    line.split_once(":  ").is_some_and(|(word, _)| {
        !word.is_empty() && word.chars().all(|c| c.is_uppercase() || c.is_ascii_digit())
    })
}

/// Stores a field; `None`: this text cannot be one.
fn fill(entry: &mut LogEntry, field: char, text: &str, zone: &TimeZone) -> Option<()> {
    let or_empty = |text: &str| if text == "[unknown]" { String::new() } else { text.to_string() };
    match field {
        'm' | 't' => entry.time_us = Some(time_us(text, zone)?),
        'n' => {
            let seconds: f64 = text.parse().ok()?;
            entry.time_us = Some((seconds * 1e6).round() as i64);
        }
        'p' => entry.pid = text.parse().ok()?,
        'c' => {
            let (_, pid) = text.split_once('.')?;
            entry.pid = i64::from_str_radix(pid, 16).ok()?;
        }
        'u' => entry.user = or_empty(text),
        'd' => entry.database = or_empty(text),
        'a' => entry.application = or_empty(text),
        'b' => entry.process = text.to_string(),
        'e' => {
            let is_code = text.len() == 5
                && text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
            entry.sqlstate = is_code.then(|| text.to_string())?;
        }
        'Q' => entry.queryid = text.parse().ok()?,
        _ => {}
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split<'l>(prefix: &str, line: &'l str) -> Option<(LogEntry, &'l str)> {
        Prefix::parse(prefix).split(line, &TimeZone::UTC)
    }

    #[test]
    fn the_prefixes_that_people_use() {
        let (entry, rest) =
            split("%m [%p] ", "2026-03-01 10:00:00.250 UTC [42] LOG:  ready").unwrap();
        assert_eq!(
            (entry.time_us, entry.pid, rest),
            (Some(1_772_359_200_250_000), 42, "LOG:  ready")
        );
        let debian = "%m [%p] %q%u@%d ";
        let line = "2026-03-01 10:00:00.250 UTC [42] app@shop ERROR:  division by zero";
        let (entry, rest) = split(debian, line).unwrap();
        assert_eq!((&*entry.user, &*entry.database), ("app", "shop"));
        assert_eq!(rest, "ERROR:  division by zero");
        let (entry, rest) =
            split(debian, "2026-03-01 10:00:00.250 UTC [7] LOG:  checkpoint starting: time")
                .unwrap();
        assert_eq!((entry.pid, &*entry.user, rest), (7, "", "LOG:  checkpoint starting: time"));
        let badger = "%t [%p]: [%l-1] user=%u,db=%d,app=%a,client=%h ";
        let line = "2026-03-01 10:00:00 UTC [42]: [3-1] user=a b,db=[unknown],app=x,db=y,client=[local] FATAL:  no";
        let (entry, _) = split(badger, line).unwrap();
        assert_eq!((&*entry.user, &*entry.database, &*entry.application), ("a b", "", "x,db=y"));
        let (entry, _) =
            split("%n %5p %e %Q%% ", "1772359200.250    42 23505 -17% ERROR:  x").unwrap();
        assert_eq!((entry.pid, &*entry.sqlstate, entry.queryid), (42, "23505", -17));
        assert_eq!(entry.time_us, Some(1_772_359_200_250_000));
    }

    #[test]
    fn other_lines_have_none() {
        for line in ["\tcontinued", "", "2026-03-01 10:00:00.250 UTC [x] LOG:  ready", "ERROR:  x"]
        {
            assert!(split("%m [%p] ", line).is_none(), "{line}");
        }
    }
}
