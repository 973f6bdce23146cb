// SPDX-License-Identifier: PostgreSQL
//! The rows that the tables of a ClickHouse server store, and which of them count (ADR 70).

use std::fmt::{Display, Formatter};

use crate::valid::{grade, place};

/// The length of time that one row of statistics or statements covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granularity {
    /// A minute.
    Minute,
    /// An hour.
    Hour,
}

impl Granularity {
    /// Looks up a length by name.
    pub fn of_name(name: &str) -> Option<Granularity> {
        [Granularity::Minute, Granularity::Hour].into_iter().find(|per| per.to_string() == name)
    }

    /// Milliseconds.
    pub(crate) fn ms(self) -> i64 {
        match self {
            Granularity::Minute => 60_000,
            Granularity::Hour => 3_600_000,
        }
    }
}

impl Display for Granularity {
    fn fmt(&self, to: &mut Formatter<'_>) -> std::fmt::Result {
        to.write_str(match self {
            Granularity::Minute => "minute",
            Granularity::Hour => "hour",
        })
    }
}

/// The name of a table.
pub(crate) fn table(per: Granularity, name: &str) -> String {
    format!("tally_{per}_{name}")
}

/// The columns of the table of files. What the rule about names needs is computed once, when a file is listed.
pub(crate) fn files_columns() -> String {
    let [_, hour, _] = place("path");
    format!(
        "source LowCardinality(String), path String, size UInt64, modified DateTime, file UInt64, run Int64, \
         date LowCardinality(String), hour LowCardinality(String) MATERIALIZED {hour}, \
         place UInt64 MATERIALIZED cityHash64({place}), grade UInt8 MATERIALIZED {grade}",
        place = place("path").join(", "),
        grade = grade("path")
    )
}

/// The files of a source whose rows are complete.
pub(crate) fn complete(name: &str, per: Granularity) -> String {
    let (files, runs) = (table(per, "files"), table(per, "runs"));
    format!(
        "SELECT path, size, modified, file, run, date, hour, place, grade FROM {files} WHERE source = '{name}' \
         AND run IN (SELECT run FROM {runs} WHERE source = '{name}')"
    )
}

/// A query for the rows of a source that count, with the columns of `Source::rows`. The rule about names
/// ([`crate::valid`]) is joined by date and hour, so that conditions on these exclude the files of other times
/// before it is evaluated.
pub(crate) fn rows(name: &str, per: Granularity) -> String {
    format!(
        "SELECT * EXCEPT (file) FROM {table} LEFT SEMI JOIN (SELECT date, hour, file FROM \
         (SELECT date, hour, argMax(file, run) AS file, any(grade) AS of_path, \
         max(any(grade)) OVER (PARTITION BY date, hour, any(place)) AS best \
         FROM ({complete}) complete GROUP BY date, hour, path) ranked \
         WHERE of_path = best AND of_path > 0) counting USING (date, hour, file)",
        table = table(per, name),
        complete = complete(name, per),
    )
}
