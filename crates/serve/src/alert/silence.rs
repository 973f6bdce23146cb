// SPDX-License-Identifier: PostgreSQL
//! The file with the rules that are silenced: a line for each, with a rule's name or `all`, and optionally
//! the time at which the silence ends.

use std::path::PathBuf;

use diagnose::Rule;
use jiff::Timestamp;
use view::escape::say;

/// Maximum size of the file, bytes.
const SIZE: u64 = 64 << 10;

/// The file, read at each look.
#[derive(Debug)]
pub struct Silence {
    path: Option<PathBuf>,
    /// The last complaint about it.
    reported: Option<String>,
}

/// The rules that are silenced now.
#[derive(Debug, Default, PartialEq)]
pub struct Silenced {
    all: bool,
    rules: Vec<String>,
}

impl Silenced {
    /// Whether this rule is silenced.
    pub fn covers(&self, rule: Rule) -> bool {
        self.all || self.rules.iter().any(|name| name == rule.name())
    }

    /// Reads the lines; a line that cannot be read silences nothing, and is returned.
    fn parse(text: &str, now: Timestamp) -> (Silenced, Option<String>) {
        let (mut silenced, mut wrong) = (Silenced::default(), None);
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let mut words = line.split_whitespace();
            let Some(name) = words.next() else { continue };
            let until = words.next().map(str::parse::<Timestamp>).transpose();
            match until {
                Ok(until) if words.next().is_none() => {
                    if until.is_none_or(|until| now < until) {
                        silenced.all |= name == "all";
                        silenced.rules.push(name.to_string());
                    }
                }
                _ => wrong = Some(line.trim().to_string()),
            }
        }
        (silenced, wrong)
    }
}

impl Silence {
    /// The file at this path, which need not exist.
    pub fn new(path: Option<PathBuf>) -> Silence {
        Silence { path, reported: None }
    }

    /// What it silences at this time. A file that cannot be read silences nothing.
    pub fn read(&mut self, now: Timestamp) -> Silenced {
        let Some(path) = &self.path else { return Silenced::default() };
        let (silenced, complaint) = match files::read_named_text(path, SIZE) {
            Ok(text) => {
                let (silenced, wrong) = Silenced::parse(&text, now);
                let form =
                    "expected RULE or \"all\", and perhaps a time such as 2026-03-01T14:30:00Z";
                (silenced, wrong.map(|line| format!("\"{line}\": {form}")))
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                (Silenced::default(), None)
            }
            Err(error) => (Silenced::default(), Some(error.to_string())),
        };
        if complaint != self.reported {
            if let Some(complaint) = &complaint {
                say(&format!("alert: {}: {complaint}", path.display()));
            }
            self.reported = complaint;
        }
        silenced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_rules_and_times() {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let text =
            "# deployment\nlocks\njit 2026-03-01T13:00:00Z\ncommits 2026-03-01T11:00:00+00:00\n\n";
        let (silenced, wrong) = Silenced::parse(text, now);
        assert_eq!(wrong, None);
        for (rule, covered) in [(Rule::Locks, true), (Rule::Jit, true), (Rule::Commits, false)] {
            assert_eq!(silenced.covers(rule), covered, "{rule:?}");
        }
        assert!(Silenced::parse("all", now).0.covers(Rule::Deadlocks));
        let (silenced, wrong) = Silenced::parse("locks tomorrow\njit", now);
        assert_eq!(wrong.as_deref(), Some("locks tomorrow"));
        assert!(!silenced.covers(Rule::Locks) && silenced.covers(Rule::Jit));
    }

    #[test]
    fn a_file_that_does_not_exist_silences_nothing() {
        let mut silence = Silence::new(Some("/no/such/file".into()));
        assert_eq!(silence.read(Timestamp::UNIX_EPOCH), Silenced::default());
        assert_eq!(silence.reported, None);
    }
}
