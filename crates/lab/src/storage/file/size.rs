// SPDX-License-Identifier: PostgreSQL
//! Sizes in a study file, in PostgreSQL's units.

use serde::{Deserialize, Deserializer};

/// A size in bytes, written with a unit of 1024 as in postgresql.conf: `"8kB"`, `"512kB"`, `"4MB"`, `"2GB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl Size {
    /// Parse a size.
    pub fn parse(text: &str) -> Result<Size, String> {
        command::size(text).map(Size).map_err(|why| format!("\"{text}\" is not a size: {why}"))
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let units = [("TB", 40), ("GB", 30), ("MB", 20), ("kB", 10)];
        match units.iter().find(|(_, shift)| self.0 > 0 && self.0.trailing_zeros() >= *shift) {
            Some((unit, shift)) => write!(f, "{} {unit}", self.0 >> shift),
            None => write!(f, "{} B", self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Size::parse(&String::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_units_of_postgresql() {
        for (text, bytes) in [("8kB", 8192), ("4 MB", 4 << 20), ("2GB", 2 << 30), ("100B", 100)] {
            let size = Size::parse(text).unwrap();
            assert_eq!(size, Size(bytes));
            assert_eq!(Size::parse(&size.to_string()), Ok(size));
        }
        for bad in ["", "8", "8KB", "8k", "-1kB", "x", "1.5MB", "99999999999TB"] {
            assert!(Size::parse(bad).is_err(), "{bad}");
        }
    }
}
