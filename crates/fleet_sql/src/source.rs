// SPDX-License-Identifier: PostgreSQL
//! The rows of a recording's table that count, from the files of all hosts.
//!
//! The minutes of an hour are uploaded one by one, and later the hour as a whole, rolled up. Until upkeep has
//! removed the files that were replaced, both are there. The names of the files alone decide which of them count:
//! for each hour of a host, those of the highest grade (ADR 66).

use std::path::Path;

use recording::{
    Column, ConditionRow, EventRow, FrameRow, HistogramRow, PlanRow, PlanTextRow,
    RecordedStatementRow, SessionHistoryRow, SettingRow, StatRow, Table, TextRow,
};

use crate::kept::{self, Granularity};
use crate::valid::{valid, HOUR};
use crate::window::Window;
use crate::{local, Dialect, Root};

/// A table of recordings.
#[derive(Debug)]
pub struct Source {
    /// Its name, which is also that of its directory.
    pub name: &'static str,
    columns: fn() -> Vec<Column>,
    rules: fn() -> &'static [(&'static str, &'static str)],
}

const fn source<T: Table>() -> Source {
    Source { name: T::NAME, columns: T::columns, rules: T::rules }
}

/// The tables from which views are made.
pub(crate) const SOURCES: [Source; 11] = [
    source::<FrameRow>(),
    source::<StatRow>(),
    source::<HistogramRow>(),
    source::<RecordedStatementRow>(),
    source::<TextRow>(),
    source::<EventRow>(),
    source::<SessionHistoryRow>(),
    source::<PlanRow>(),
    source::<PlanTextRow>(),
    source::<ConditionRow>(),
    source::<SettingRow>(),
];

/// Columns whose names are SQL keywords, and their names in views.
const RENAMED: [(&str, &str); 7] = [
    ("count", "events"),
    ("user", "user_name"),
    ("lock", "lock_name"),
    ("group", "group_name"),
    ("table", "table_name"),
    ("min", "lowest"),
    ("max", "highest"),
];

/// Columns taken from the path of a file.
const PARTS: [(&str, &str); 4] = [
    ("cluster", "/cluster=([^/]*)/"),
    ("host", "/host=([^/]*)/"),
    ("date", "/date=([^/]*)/"),
    ("hour", HOUR),
];

/// The files to read, and the engine that reads them.
#[derive(Debug, Clone, Copy)]
pub struct Files<'a> {
    /// The engine's SQL.
    pub dialect: Dialect,
    /// Where the files are.
    pub root: &'a Root,
    /// The window; at least its files are read.
    pub window: Option<&'a Window>,
    /// The tables that store their rows; `None` to read the files themselves.
    pub tables: Option<Granularity>,
}

/// The columns that the path of a file gives its rows.
fn parts(path: &str) -> String {
    let part = |(name, pattern)| format!("regexp_extract({path}, '{pattern}', 1) AS {name}");
    PARTS.map(part).join(", ")
}

/// A column's name in views.
fn renamed(name: &'static str) -> &'static str {
    RENAMED.iter().find(|(own, _)| *own == name).map_or(name, |(_, renamed)| renamed)
}

impl Source {
    /// Looks up a table by name.
    pub fn of_name(name: &str) -> Option<&'static Source> {
        SOURCES.iter().find(|source| source.name == name)
    }

    /// The columns under their names in views.
    fn selected(&self, dialect: Dialect) -> String {
        let mut all = String::new();
        for column in (self.columns)() {
            let quoted = dialect.quoted(column.name);
            if column.name == "time" {
                all.push_str(&format!(", {} AS time_ms", dialect.epoch_ms(&quoted)));
            }
            match renamed(column.name) {
                name if name == column.name => all.push_str(&format!(", {quoted}")),
                name => all.push_str(&format!(", {quoted} AS {name}")),
            }
        }
        all
    }

    /// A relation with all columns and no rows, for columns that no file has and tables without any file.
    fn empty(&self, dialect: Dialect) -> String {
        let columns = (self.columns)().into_iter().map(|column| {
            let known = dialect.type_of(&column);
            format!("CAST(NULL AS {known}) AS {}", dialect.quoted(column.name))
        });
        columns.collect::<Vec<_>>().join(", ")
    }

    /// Whether a local root has no file of this table for the window. This is unknown for other roots.
    fn is_missing(&self, root: &Root, window: Option<&Window>) -> bool {
        root.directory().is_some() && !local::has_file(Path::new(&root.of_table(self.name)), window)
    }

    /// A query for the rows that count: `cluster`, `host`, `date`, `hour`, `time_ms` and the columns of the
    /// table.
    pub fn rows(&self, files: &Files<'_>) -> String {
        let Files { dialect, root, window, tables } = *files;
        if let Some(per) = tables {
            return kept::rows(self.name, per);
        }
        // Texts are written once a day.
        let around = window
            .filter(|_| self.name.ends_with("_texts"))
            .map(|window| window.with_days_around());
        let window = around.as_ref().or(window);
        let selected = self.selected(dialect);
        let pattern = root.pattern(self.name, window, dialect);
        let nothing = self.empty(dialect);
        // Without a file, ClickHouse returns no rows; the other engines raise an error.
        if dialect != Dialect::ClickHouse && self.is_missing(root, window) {
            let parts = PARTS.map(|(name, _)| format!("'' AS {name}")).join(", ");
            return format!("SELECT {parts}{selected} FROM (SELECT {nothing}) missing WHERE 1 = 0");
        }
        match dialect {
            Dialect::DuckDb => format!(
                "SELECT {parts}{selected} FROM (SELECT {nothing}, '' AS filename WHERE 1 = 0 UNION ALL BY NAME \
                 SELECT * FROM read_parquet('{pattern}', union_by_name = true, filename = true, \
                 hive_partitioning = false)) files WHERE filename IN ({valid})",
                parts = parts("filename"),
                valid = valid(&format!("SELECT file AS path FROM glob('{pattern}')")),
            ),
            Dialect::ClickHouse => {
                let valid = valid(&format!(
                    "SELECT DISTINCT _path AS path FROM {}",
                    root.clickhouse(&pattern, "One", "dummy UInt8")
                ));
                self.read(root, window, &valid, "")
            }
            Dialect::Spark => {
                let path = "regexp_replace(_metadata.file_path, '^file:/+', '/')";
                let directory = root.of_table(self.name);
                format!(
                    "SELECT {parts}{selected} FROM parquet.`{directory}` WHERE {path} IN ({valid})",
                    parts = parts(path).replace(
                        &format!("regexp_extract({path}, '{}', 1) AS date", PARTS[2].1),
                        "CAST(date AS STRING) AS date"
                    ),
                    valid = valid(&format!(
                        "SELECT regexp_replace(path, '^file:/+', '/') AS path FROM binaryFile.`{pattern}`"
                    )),
                )
            }
        }
    }

    /// ClickHouse's query for the rows of these files.
    pub(crate) fn read(
        &self,
        root: &Root,
        window: Option<&Window>,
        files: &str,
        before: &str,
    ) -> String {
        let pattern = root.pattern(self.name, window, Dialect::ClickHouse);
        format!(
            "SELECT {before}{parts}{selected} FROM {read} WHERE _path IN ({files}) SETTINGS use_hive_partitioning = 0",
            parts = parts("_path"),
            selected = self.selected(Dialect::ClickHouse),
            read = root.clickhouse(&pattern, "Parquet", &self.structure()),
        )
    }

    /// ClickHouse's query for the list of files: `path`, `size`, `modified`.
    pub(crate) fn listed(&self, root: &Root, window: Option<&Window>) -> String {
        let pattern = root.pattern(self.name, window, Dialect::ClickHouse);
        // The pattern is coarse: it may match a whole year.
        let of_the_time = window.map_or(String::new(), |window| {
            let [first, last] = window.hours();
            let (date, hour) = (PARTS[2].1, HOUR);
            format!(
                " WHERE concat(regexp_extract(_path, '{date}', 1), ' ', regexp_extract(_path, '{hour}', 1)) \
                 BETWEEN '{first}' AND '{last}'"
            )
        });
        format!(
            "SELECT DISTINCT _path AS path, ifNull(_size, 0) AS size, ifNull(_time, toDateTime(0)) AS modified FROM {}{of_the_time}",
            root.clickhouse(&pattern, "One", "dummy UInt8")
        )
    }

    /// The columns of a ClickHouse table that stores the rows of views.
    pub(crate) fn kept_columns(&self) -> String {
        let mut all: Vec<String> =
            PARTS.map(|(name, _)| format!("{name} LowCardinality(String)")).into();
        for column in (self.columns)() {
            if column.name == "time" {
                all.push("time_ms Int64".into());
            }
            // Texts of statements and plans vary too much for a dictionary.
            let known = match Dialect::ClickHouse.type_of(&column) {
                "String" if !self.name.ends_with("_texts") => "LowCardinality(String)",
                known => known,
            };
            all.push(format!("{} {known}", renamed(column.name)));
        }
        all.join(", ")
    }

    /// The columns, from `time_ms` on, of rows that are merged by `keys` until `end_ms`, from a relation `it`.
    pub(crate) fn merged(&self, keys: &[&str]) -> String {
        let rules = (self.rules)();
        let added = "mapSort(sumMap(mapFromArrays(it.buckets, it.counts)))";
        let one = |column: Column| {
            let name = renamed(column.name);
            let rule = rules.iter().find(|(of, _)| *of == column.name).map(|(_, rule)| *rule);
            let merged = match (rule, name) {
                _ if keys.contains(&name) => format!("it.{name}"),
                (_, "time") => {
                    return "it.end_ms AS time_ms, fromUnixTimestamp64Milli(it.end_ms, 'UTC') AS time".into();
                }
                (_, "buckets") => format!("mapKeys({added})"),
                (_, "counts") => format!("mapValues({added})"),
                (Some("sum"), _) => format!("sum(it.{name})"),
                (Some("min"), _) => format!("min(it.{name})"),
                (Some("earliest"), _) => {
                    format!("minIf(it.{name}, toUnixTimestamp64Milli(it.{name}) > 0)")
                }
                // Numbers of intervals and series are those of the last one.
                _ => format!("max(it.{name})"),
            };
            format!("{merged} AS {name}")
        };
        (self.columns)().into_iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// The columns for ClickHouse, which then does not have to read a file to learn them.
    fn structure(&self) -> String {
        let column = |column: Column| {
            format!("\"{}\" {}", column.name, Dialect::ClickHouse.type_of(&column))
        };
        (self.columns)().into_iter().map(column).collect::<Vec<_>>().join(", ")
    }
}
