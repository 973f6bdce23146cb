// SPDX-License-Identifier: PostgreSQL
//! Settings of the server, and their changes.

use crate::vacuum::{Condition, ConditionKind};

/// Stands for a value that may contain a password.
pub const HIDDEN: &str = "(not recorded)";

/// A change of a setting of the server.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingChange {
    /// When the configuration was loaded, or when the change was found, seconds since 1970.
    pub time: f64,
    /// The setting's name.
    pub name: String,
    /// Its value before, as SHOW prints it.
    pub before: String,
    /// Its value since then.
    pub after: String,
}

impl SettingChange {
    /// The same as a condition of the server at a time.
    pub fn into_condition(self, now: f64) -> Condition {
        Condition {
            kind: ConditionKind::SettingChange,
            state: self.words(),
            seconds: Some((now - self.time).max(0.0)),
            name: self.name,
            database: None,
            count: 0,
            bytes: 0,
        }
    }

    /// "work_mem: 4MB -> 64MB"; a value that may contain a password is not shown.
    pub fn words(&self) -> String {
        match self.before == self.after {
            true => format!("{}: {}", self.name, self.after),
            false => format!("{}: {} -> {}", self.name, shown(&self.before), shown(&self.after)),
        }
    }
}

fn shown(value: &str) -> &str {
    if value.is_empty() {
        "''"
    } else {
        value
    }
}

/// Units of amounts of memory and of time, the largest first, each with its size in the smallest one (guc.c).
const MEMORY: [(&str, i64); 5] =
    [("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("kB", 1 << 10), ("B", 1)];
const TIME: [(&str, i64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000), ("ms", 1)];

/// A value of pg_settings as SHOW prints it: "64MB" for 65536 with the unit kB, "16MB" for 2048 with the unit 8kB.
pub fn value_with_unit(value: &str, unit: &str) -> String {
    let Ok(number) = value.parse::<i64>() else {
        return format!("{value}{unit}");
    };
    let digits = unit.len() - unit.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (factor, base) = unit.split_at(digits);
    let factor = factor.parse().unwrap_or(1);
    let units = if TIME.iter().any(|(name, _)| *name == base) { TIME } else { MEMORY };
    let size = units.iter().find(|(name, _)| *name == base).map(|(_, size)| *size);
    // Those that are 0 or -1 have a meaning of their own.
    let Some(size) = size.filter(|_| number > 0) else { return value.to_string() };
    let Some(all) = number.checked_mul(factor).and_then(|number| number.checked_mul(size)) else {
        return format!("{value}{unit}");
    };
    let fits = units.iter().find(|(_, size)| all % size == 0);
    fits.map_or_else(|| format!("{value}{unit}"), |(name, size)| format!("{}{name}", all / size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_show() {
        for (value, unit, expected) in [
            ("65536", "kB", "64MB"),
            ("16384", "8kB", "128MB"),
            ("1025", "8kB", "8200kB"),
            ("1024", "MB", "1GB"),
            ("300", "s", "5min"),
            ("90", "s", "90s"),
            ("60000", "ms", "1min"),
            ("-1", "kB", "-1"),
            ("0", "ms", "0"),
            ("0.5", "ms", "0.5ms"),
            ("on", "", "on"),
            ("100", "", "100"),
            ("9223372036854775807", "kB", "9223372036854775807kB"),
            ("16777216", "B", "16MB"),
        ] {
            assert_eq!(value_with_unit(value, unit), expected, "{value} {unit}");
        }
    }

    #[test]
    fn a_change_is_in_words_and_a_hidden_value_stays_hidden() {
        let words = |before: &str, after: &str| {
            let (before, after) = (before.to_string(), after.to_string());
            SettingChange { time: 0.0, name: "s".into(), before, after }.words()
        };
        assert_eq!(words("4MB", "64MB"), "s: 4MB -> 64MB");
        assert_eq!(words("", "a"), "s: '' -> a");
        assert_eq!(words(HIDDEN, HIDDEN), "s: (not recorded)");
    }
}
