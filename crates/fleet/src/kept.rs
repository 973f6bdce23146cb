// SPDX-License-Identifier: PostgreSQL
//! The rows that the tables of a ClickHouse server keep, and which of them count (ADR 70).

use std::fmt::{Display, Formatter};

use crate::valid::valid;

/// The length of time that a row of statistics and of statements has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// A minute.
    Minute,
    /// An hour.
    Hour,
}

impl Per {
    /// The one of this name.
    pub fn of_name(name: &str) -> Option<Per> {
        [Per::Minute, Per::Hour].into_iter().find(|it| it.to_string() == name)
    }

    /// Milliseconds.
    pub(crate) fn ms(self) -> i64 {
        match self {
            Per::Minute => 60_000,
            Per::Hour => 3_600_000,
        }
    }
}

impl Display for Per {
    fn fmt(&self, to: &mut Formatter<'_>) -> std::fmt::Result {
        to.write_str(match self {
            Per::Minute => "minute",
            Per::Hour => "hour",
        })
    }
}

/// The name of a table.
pub(crate) fn table(per: Per, name: &str) -> String {
    format!("tally_{per}_{name}")
}

/// The files of a source whose rows are complete.
pub(crate) fn complete(name: &str, per: Per) -> String {
    let (files, runs) = (table(per, "files"), table(per, "runs"));
    format!(
        "SELECT path, size, modified, file, run FROM {files} WHERE source = '{name}' \
         AND run IN (SELECT run FROM {runs} WHERE source = '{name}')"
    )
}

/// A query for the rows of a source that count, with the columns of `Source::rows`.
pub(crate) fn rows(name: &str, per: Per) -> String {
    let complete = complete(name, per);
    format!(
        "SELECT * EXCEPT (file) FROM {table} WHERE file IN (SELECT argMax(file, run) FROM ({complete}) complete \
         WHERE path IN ({valid}) GROUP BY path)",
        table = table(per, name),
        valid = valid(&format!("SELECT DISTINCT path FROM ({complete}) every")),
    )
}
