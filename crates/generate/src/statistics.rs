// SPDX-License-Identifier: PostgreSQL
//! The names of statistics from `format/statistics.toml`, and everything generated from them.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde::Deserialize;

/// The statistics.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statistics {
    statistics: Vec<Statistic>,
    figures: Vec<TagValue>,
}

/// Constant, kind, unit, name, meaning.
#[derive(Debug, Deserialize)]
struct Statistic(String, Kind, String, String, String);

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Account,
    Timer,
    Value,
    Name,
}

/// A value of a statistic's tag FIGURE or PART: the statistic's constant, the value, its meaning.
#[derive(Debug, Deserialize)]
struct TagValue(String, String, String);

fn varies(tag: &str) -> bool {
    tag.starts_with(|c: char| c.is_ascii_uppercase())
}

impl Statistic {
    /// The fixed part: the whole name, or everything before the first tag that varies.
    fn fixed(&self) -> String {
        let tags = self.3.split("::");
        let fixed: Vec<&str> = tags.take_while(|tag| !varies(tag)).collect();
        let fixed = fixed.join("::");
        if fixed.len() < self.3.len() {
            format!("{fixed}::")
        } else {
            fixed
        }
    }
}

/// A constant of a string.
struct StringConstant {
    name: String,
    value: String,
    meaning: String,
}

impl Statistics {
    /// Parses the statistics from `text`.
    pub fn read(text: &str) -> Result<Statistics, String> {
        let read: Statistics = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut names = BTreeSet::new();
        for one in read.constants() {
            if !names.insert(one.name.clone()) {
                return Err(format!("{} is defined twice", one.name));
            }
        }
        for one in &read.statistics {
            // A reader assigns a name to the first statistic with whose fixed part it begins.
            let begins = |other: &&Statistic| {
                other.0 != one.0 && other.3 != other.fixed() && one.3.starts_with(&other.fixed())
            };
            let at = |name: &str| read.statistics.iter().position(|other| other.0 == name);
            if let Some(other) =
                read.statistics.iter().find(begins).filter(|other| at(&other.0) < at(&one.0))
            {
                return Err(format!(
                    "{} must come before {}, because it begins with it",
                    one.0, other.0
                ));
            }
        }
        for TagValue(of, value, _) in &read.figures {
            if !read.statistics.iter().any(|one| one.0 == *of) {
                return Err(format!("figure {value}: statistic {of} does not exist"));
            }
        }
        Ok(read)
    }

    fn constants(&self) -> Vec<StringConstant> {
        let of = |one: &Statistic| StringConstant {
            name: one.0.to_uppercase(),
            value: one.fixed(),
            meaning: match one.fixed() == one.3 {
                true => one.4.clone(),
                false => format!("{}: {}", one.3, one.4),
            },
        };
        let figure = |TagValue(of, value, meaning): &TagValue| StringConstant {
            name: format!("{of}_{value}").to_uppercase(),
            value: value.clone(),
            meaning: meaning.clone(),
        };
        self.statistics.iter().map(of).chain(self.figures.iter().map(figure)).collect()
    }

    /// Generates `tally_names.h`.
    pub fn header(&self) -> String {
        let mut out = String::from(
            "/* SPDX-License-Identifier: PostgreSQL */\n\
             /*\n * tally_names.h\n *\t  The names of statistics, up to the first tag that varies.\n *\n \
             * Generated from format/statistics.toml by `make generate`; do not edit.\n */\n\
             #ifndef TALLY_NAMES_H\n#define TALLY_NAMES_H\n\n",
        );
        for StringConstant { name, value, meaning } in self.constants() {
            let _ = writeln!(out, "#define TALLY_STAT_{name} \"{value}\"\t/* {meaning} */");
        }
        out.push_str("\n#endif\t\t\t\t\t\t\t/* TALLY_NAMES_H */\n");
        out
    }

    /// Generates `stat_names.rs` of the reader.
    pub fn reader(&self) -> String {
        let mut out = String::from(
            "// SPDX-License-Identifier: PostgreSQL\n\
             //! The names of statistics, up to the first tag that varies.\n\
             //!\n\
             //! Generated from format/statistics.toml by `make generate`; do not edit.\n\n",
        );
        for StringConstant { name, value, meaning } in self.constants() {
            let _ = writeln!(out, "/// {meaning}\npub const {name}: &str = \"{value}\";");
        }
        out
    }

    /// Generates `StatNames.java`.
    pub fn java(&self) -> String {
        let mut out = String::from(
            "// SPDX-License-Identifier: PostgreSQL\n\
             package org.pgtally.segment;\n\n\
             /**\n \
             * The names of statistics (format/FORMAT.md), up to the first tag that varies.\n \
             * Generated from format/statistics.toml by `make generate`; do not edit.\n \
             */\n\
             public final class StatNames {\n",
        );
        for StringConstant { name, value, meaning } in self.constants() {
            let _ = writeln!(
                out,
                "    /** {meaning} */\n    public static final String {name} = \"{value}\";"
            );
        }
        out.push_str("\n    private StatNames() {\n    }\n}\n");
        out
    }

    /// Generates the table of format/FORMAT.md.
    pub fn table(&self) -> String {
        let mut out = String::from("| name | kind | unit | |\n|---|---|---|---|\n");
        for Statistic(constant, kind, unit, name, meaning) in &self.statistics {
            let kind = format!("{kind:?}").to_lowercase();
            let figures: Vec<String> = self
                .figures
                .iter()
                .filter(|figure| figure.0 == *constant)
                .map(|TagValue(_, value, meaning)| format!("`{value}` {meaning}"))
                .collect();
            let figures = match figures.is_empty() {
                true => String::new(),
                false => format!(": {}", figures.join("; ")),
            };
            let _ = writeln!(out, "| `{name}` | {kind} | {unit} | {meaning}{figures} |");
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_has_what_is_fixed() {
        let text = "statistics = [\n\
            [\"check\", \"timer\", \"ticks\", \"lock::check::PHASE\", \"a check\"],\n\
            [\"lock\", \"timer\", \"ticks\", \"lock::TYPE::FIGURE\", \"a lock\"],\n\
            [\"off\", \"account\", \"ticks\", \"off::none\", \"nothing\"]]\n\
            figures = [[\"lock\", \"held\", \"held\"]]";
        let read = Statistics::read(text).unwrap();
        let constants: Vec<(String, String)> =
            read.constants().into_iter().map(|one| (one.name, one.value)).collect();
        let constants: Vec<(&str, &str)> =
            constants.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(
            constants,
            [
                ("CHECK", "lock::check::"),
                ("LOCK", "lock::"),
                ("OFF", "off::none"),
                ("LOCK_HELD", "held")
            ]
        );
        let refused = |from: &str, to: &str| Statistics::read(&text.replace(from, to)).unwrap_err();
        assert_eq!(
            refused("[\"lock\", \"held", "[\"locks\", \"held"),
            "figure held: statistic locks does not exist"
        );
        assert_eq!(refused("\"off\"", "\"lock\""), "LOCK is defined twice");
        assert_eq!(
            refused("off::none", "lock::none"),
            "off must come before lock, because it begins with it"
        );
    }
}
