// SPDX-License-Identifier: PostgreSQL
//! Tablespaces by OID: their directories and, if the server could be queried, their names.

use std::collections::BTreeSet;

use serde::Serialize;

/// A tablespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Tablespace {
    /// Its OID.
    pub oid: u32,
    /// Its name; `None` if unknown.
    pub name: Option<String>,
    /// Its directory, if known.
    pub location: Option<String>,
}

/// All tablespaces except the two default ones, by OID.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Tablespaces(pub Vec<Tablespace>);

impl Tablespaces {
    fn get(&self, oid: u32) -> Option<&Tablespace> {
        self.0.iter().find(|tablespace| tablespace.oid == oid)
    }

    /// The name to print for the tablespace with this OID.
    pub fn name<'n>(&'n self, number: &'n str) -> &'n str {
        let known = number.parse().ok().and_then(|oid| self.get(oid));
        known.and_then(|tablespace| tablespace.name.as_deref()).unwrap_or(number)
    }

    /// "@16385: fast, in /mnt/fast", for each tablespace in `used`.
    pub fn legend<'n>(&self, used: impl Iterator<Item = &'n str>) -> Vec<String> {
        const MOST: usize = 6;
        let used: BTreeSet<u32> = used.filter_map(|number| number.parse().ok()).collect();
        let line = |number: &u32| {
            let tablespace = self.get(*number)?;
            let place = tablespace.location.as_ref().map(|location| format!("in {location}"));
            let parts: Vec<String> = tablespace.name.iter().cloned().chain(place).collect();
            (!parts.is_empty()).then(|| format!("@{number}: {}", parts.join(", ")))
        };
        used.iter().filter_map(line).take(MOST).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tablespaces_are_named_by_what_is_known() {
        let of = |oid, name: Option<&str>, location: Option<&str>| Tablespace {
            oid,
            name: name.map(String::from),
            location: location.map(String::from),
        };
        let all = Tablespaces(vec![
            of(16385, Some("fast"), Some("/mnt/fast")),
            of(16386, None, Some("/mnt/slow")),
            of(16387, None, None),
        ]);
        assert_eq!((all.name("16385"), all.name("16386")), ("fast", "16386"));
        assert_eq!((all.name("pg_default"), all.name("16999")), ("pg_default", "16999"));
        let used = ["pg_default", "16386", "16387", "16385", "16385"];
        assert_eq!(
            all.legend(used.into_iter()),
            ["@16385: fast, in /mnt/fast", "@16386: in /mnt/slow"]
        );
        assert!(all.legend(["pg_global"].into_iter()).is_empty());
    }
}
