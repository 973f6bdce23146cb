// SPDX-License-Identifier: PostgreSQL
//! Names of the objects in a bucket, and the rule by which names determine which objects are valid
//! (docs/reference-recording.md, "In object storage").
//!
//! Under the prefix and "v1/":
//!
//! - `TABLE/cluster=C/host=H/date=D/HHMMSS-GRADE.parquet`, with `-N` (the generation, from 2) before the
//!   grade if another recording was shipped there earlier
//! - `recordings/cluster=C/host=H.json`: recording.json
//! - `owners/cluster=C/host=H.json`: the recording that is shipped there
//!
//! **The rule.** Among the files of one table, cluster, host, generation and hour (the date and the first
//! two digits of the name), those of the highest grade are valid. Only grade minute has several files.

use crate::error::Error;
use recording::{Compaction, DataFile, TABLES};
use std::collections::HashMap;

/// The directory under the prefix; a different layout would get a different one.
pub const VERSION: &str = "v1";

/// The source of rows: a host of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// The cluster's name, which the user chooses.
    pub cluster: String,
    /// The machine.
    pub host: String,
}

impl Origin {
    /// An origin. The cluster's name must be usable in a path; the host's name is converted.
    pub fn new(cluster: &str, host: &str) -> Result<Origin, Error> {
        let fit = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let long_enough = (1..=100).contains(&cluster.len());
        if !long_enough || !cluster.chars().all(fit) || cluster.trim_matches('.').is_empty() {
            return Err(Error::Name { what: "--cluster", name: cluster.to_string() });
        }
        let host = recording::file_name_of_host(host);
        Ok(Origin { cluster: cluster.to_string(), host })
    }

    /// Whether this cluster and host select it. The host's name may be written as the machine has it.
    pub fn is_selected(&self, cluster: Option<&str>, host: Option<&str>) -> bool {
        cluster.is_none_or(|name| name == self.cluster)
            && host.is_none_or(|name| recording::file_name_of_host(name) == self.host)
    }

    fn part(&self) -> String {
        format!("cluster={}/host={}", self.cluster, self.host)
    }

    /// The object that names the owner.
    pub fn owner(&self) -> String {
        format!("owners/{}.json", self.part())
    }

    /// The object with recording.json.
    pub fn about(&self) -> String {
        format!("recordings/{}.json", self.part())
    }

    /// The prefix of the names of a table's objects of this origin.
    pub fn folder(&self, table: &str) -> String {
        format!("{table}/{}", self.part())
    }
}

/// An object with rows of a table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Object {
    /// The table.
    pub table: &'static str,
    /// The cluster and host.
    pub origin: Origin,
    /// "2026-03-01".
    pub date: String,
    /// "173000".
    pub time: String,
    /// How far it has been compacted.
    pub grade: Compaction,
    /// Number of the recording within this origin, from 1.
    pub generation: u32,
}

/// The group of files within which the rule compares grades.
pub type Hour<'o> = (&'static str, &'o Origin, u32, &'o str, &'o str);

impl Object {
    /// The object of a file of a recording.
    pub fn name(table: &'static str, file: &DataFile, origin: &Origin, generation: u32) -> Object {
        Object {
            table,
            origin: origin.clone(),
            date: file.date.clone(),
            time: file.time.clone(),
            grade: file.compaction,
            generation,
        }
    }

    /// Its name relative to the prefix and version.
    pub fn key(&self) -> String {
        let generation = match self.generation {
            1 => String::new(),
            n => format!("-{n}"),
        };
        let (folder, grade) = (self.origin.folder(self.table), self.grade.name());
        format!("{folder}/date={}/{}{generation}-{grade}.parquet", self.date, self.time)
    }

    /// The object with this name; `None` if it does not contain rows.
    pub fn parse(key: &str) -> Option<Object> {
        let mut parts = key.split('/');
        let mut next = |before: &str| parts.next()?.strip_prefix(before);
        let table = next("")?;
        let (cluster, host) = (next("cluster=")?.to_string(), next("host=")?.to_string());
        let (date, name) = (next("date=")?.to_string(), next("")?);
        if parts.next().is_some() {
            return None;
        }
        let mut words = name.strip_suffix(".parquet")?.split('-');
        let (time, second, third) = (words.next()?, words.next()?, words.next());
        let (generation, grade) = match third {
            Some(grade) => (second.parse().ok().filter(|n| *n > 1)?, grade),
            None => (1, second),
        };
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        if words.next().is_some() || time.len() != 6 || !digits(time) {
            return None;
        }
        Some(Object {
            table: TABLES.iter().find(|known| **known == table)?,
            origin: Origin { cluster, host },
            date,
            time: time.to_string(),
            grade: Compaction::of_name(grade)?,
            generation,
        })
    }

    /// The table and hour within which the rule compares grades.
    pub fn hour(&self) -> Hour<'_> {
        self.hour_of(self.table)
    }

    /// The same hour of another table.
    pub fn hour_of(&self, table: &'static str) -> Hour<'_> {
        (table, &self.origin, self.generation, &self.date, self.time.get(..2).unwrap_or(""))
    }
}

/// The highest grade of each hour. A reader of several tables ignores files that arrived before their `frames`
/// ([`arrived`]).
pub fn grades<'o>(objects: impl IntoIterator<Item = &'o Object>) -> HashMap<Hour<'o>, Compaction> {
    let mut grades = HashMap::new();
    for object in objects {
        let grade = grades.entry(object.hour()).or_insert(object.grade);
        *grade = object.grade.max(*grade);
    }
    grades
}

/// The objects of a table whose grade is not higher than that of `frames`, given by the highest grades of its
/// hours: `frames` arrives last, and until then, the intervals of earlier files may be missing.
pub fn arrived<'o>(
    objects: &'o [Object],
    frames: &'o HashMap<Hour<'o>, Compaction>,
) -> impl Iterator<Item = &'o Object> {
    let early = |object: &Object| {
        frames.get(&object.hour_of("frames")).is_some_and(|grade| object.grade > *grade)
    };
    objects.iter().filter(move |object| !early(object))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(time: &str, grade: &str, generation: u32) -> Object {
        Object {
            table: "statistics",
            origin: Origin::new("main", "db 1").unwrap(),
            date: "2026-03-01".into(),
            time: time.into(),
            grade: Compaction::of_name(grade).unwrap(),
            generation,
        }
    }

    #[test]
    fn names_come_back() {
        let first = object("173000", "minute", 1);
        assert_eq!(
            first.key(),
            "statistics/cluster=main/host=db_1/date=2026-03-01/173000-minute.parquet"
        );
        assert_eq!(Object::parse(&first.key()), Some(first));
        let third = object("170000", "10s", 3);
        assert!(third.key().ends_with("/170000-3-10s.parquet"));
        assert_eq!(Object::parse(&third.key()), Some(third));
        for other in [
            "owners/cluster=main/host=db_1.json",
            "unknown/cluster=main/host=h/date=2026-03-01/170000-10s.parquet",
            "statistics/cluster=main/host=h/date=2026-03-01/170000-11s.parquet",
            "statistics/cluster=main/host=h/date=2026-03-01/1700-10s.parquet",
            "statistics/cluster=main/host=h/date=2026-03-01/170000-x-10s.parquet",
            "statistics/cluster=main/host=h/date=2026-03-01/170000-1-10s.parquet",
            "statistics/cluster=main/host=h/date=2026-03-01/170000-2-3-10s.parquet",
            "statistics/host=h/date=2026-03-01/170000-10s.parquet",
        ] {
            assert_eq!(Object::parse(other), None, "{other}");
        }
    }

    #[test]
    fn the_highest_grade_of_an_hour_is_valid() {
        let all = [
            object("170000", "minute", 1),
            object("170100", "minute", 1),
            object("170000", "hour", 1),
            object("180000", "minute", 1),
            object("170000", "minute", 2),
        ];
        let grades = grades(&all);
        let valid: Vec<bool> =
            all.iter().map(|object| grades[&object.hour()] == object.grade).collect();
        assert_eq!(valid, [false, false, true, true, true]);
    }

    #[test]
    fn a_cluster_has_a_name_that_is_fit_for_a_path() {
        for name in ["", "a/b", "..", "a b", "é", &"x".repeat(101)] {
            let error = Origin::new(name, "h").unwrap_err();
            assert!(error.is_usage() && error.to_string().contains("--cluster"), "{error}");
        }
    }

    #[test]
    fn names_are_bounded_and_digits_are_digits() {
        let longest = "x".repeat(100);
        for name in ["a", "A-_.9", ".a", longest.as_str()] {
            assert_eq!(Origin::new(name, "h").unwrap().cluster, name);
        }
        let minute = "statistics/cluster=main/host=h/date=2026-03-01/173000-minute.parquet";
        assert!(Object::parse(minute).is_some());
        for other in [
            minute.replace("173000", "17300a"),
            minute.replace("173000", "1730000"),
            format!("{minute}/x"),
            minute.replace(".parquet", ".json"),
        ] {
            assert_eq!(Object::parse(&other), None, "{other}");
        }
    }

    #[test]
    fn what_is_of_a_higher_grade_than_frames_has_not_arrived() {
        let objects = [
            object("170000", "minute", 1),
            object("170000", "hour", 1),
            object("180000", "hour", 1),
        ];
        let frame = Object { table: "frames", ..object("170000", "minute", 1) };
        let frames = [frame];
        let of_frames = grades(&frames);
        let early: Vec<bool> = objects
            .iter()
            .map(|object| arrived(&objects, &of_frames).any(|found| found == object))
            .collect();
        // Without frames of its hour, a file cannot be known to be early.
        assert_eq!(early, [true, false, true]);
    }
}
