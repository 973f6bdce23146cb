// SPDX-License-Identifier: PostgreSQL
//! The differences between the engines' SQL.

use std::fmt::{Display, Formatter};

use recording::{Column, Shape};

/// An engine's SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// DuckDB, 1.4 and later.
    DuckDb,
    /// ClickHouse, 25 and later; chdb is the same.
    ClickHouse,
    /// Spark SQL, 3.5 and later.
    Spark,
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Dialect; 3] = [Dialect::DuckDb, Dialect::ClickHouse, Dialect::Spark];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::DuckDb => "duckdb",
            Dialect::ClickHouse => "clickhouse",
            Dialect::Spark => "spark",
        }
    }

    /// The dialect of this name.
    pub fn of_name(name: &str) -> Option<Dialect> {
        Dialect::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// An identifier in quotes.
    pub(crate) fn quoted(self, name: &str) -> String {
        match self {
            Dialect::Spark => format!("`{name}`"),
            _ => format!("\"{name}\""),
        }
    }

    /// The type of a file's column.
    pub(crate) fn type_of(self, column: &Column) -> &'static str {
        if column.unit == recording::Unit::Time {
            return match self {
                Dialect::DuckDb => "TIMESTAMPTZ",
                Dialect::ClickHouse => "DateTime64(3, 'UTC')",
                Dialect::Spark => "TIMESTAMP",
            };
        }
        let [duckdb, clickhouse, spark] = match column.shape {
            Shape::Long => ["BIGINT", "Int64", "BIGINT"],
            Shape::OptLong => ["BIGINT", "Nullable(Int64)", "BIGINT"],
            Shape::Double => ["DOUBLE", "Float64", "DOUBLE"],
            Shape::Bool => ["BOOLEAN", "Bool", "BOOLEAN"],
            Shape::Text => ["VARCHAR", "String", "STRING"],
            Shape::OptText => ["VARCHAR", "Nullable(String)", "STRING"],
            Shape::Longs => ["BIGINT[]", "Array(Int64)", "ARRAY<BIGINT>"],
        };
        match self {
            Dialect::DuckDb => duckdb,
            Dialect::ClickHouse => clickhouse,
            Dialect::Spark => spark,
        }
    }

    /// A time of day in milliseconds since 1970.
    pub(crate) fn epoch_ms(self, column: &str) -> String {
        match self {
            Dialect::DuckDb => format!("epoch_ms({column})"),
            Dialect::ClickHouse => format!("toUnixTimestamp64Milli({column})"),
            Dialect::Spark => format!("unix_millis({column})"),
        }
    }

    /// A number as text.
    pub(crate) fn text(self, number: &str) -> String {
        match self {
            Dialect::DuckDb => format!("CAST({number} AS VARCHAR)"),
            Dialect::ClickHouse => format!("toString({number})"),
            Dialect::Spark => format!("CAST({number} AS STRING)"),
        }
    }

    /// The value of `what` in the row with the highest `by`; if there are several such rows, the highest value.
    pub(crate) fn max_by(self, what: &str, by: &str) -> String {
        match self {
            Dialect::DuckDb => format!("arg_max({what}, row({by}, {what}))"),
            Dialect::ClickHouse => format!("argMax({what}, ({by}, {what}))"),
            Dialect::Spark => format!("max_by({what}, struct({by}, {what}))"),
        }
    }

    /// The distinct values of a column, sorted, separated by commas; nulls are left out.
    pub(crate) fn names(self, column: &str) -> String {
        match self {
            Dialect::DuckDb => {
                format!("coalesce(string_agg(DISTINCT {column}, ', ' ORDER BY {column}), '')")
            }
            Dialect::ClickHouse => {
                format!("arrayStringConcat(arraySort(groupUniqArray({column})), ', ')")
            }
            Dialect::Spark => format!("array_join(array_sort(collect_set({column})), ', ')"),
        }
    }

    /// The start of the step that contains a time of day, both in milliseconds; the start itself is not part of
    /// the step.
    pub(crate) fn step(self, time: &str, step: &str) -> String {
        match self {
            Dialect::DuckDb => format!("(({time} - 1) // {step} * {step})"),
            Dialect::ClickHouse => format!("(intDiv({time} - 1, {step}) * {step})"),
            Dialect::Spark => format!("(({time} - 1) div {step} * {step})"),
        }
    }

    /// The first element of a list that is not empty.
    pub(crate) fn first(self, list: &str) -> String {
        match self {
            Dialect::Spark => format!("element_at({list}, 1)"),
            _ => format!("{list}[1]"),
        }
    }
}

impl Display for Dialect {
    fn fmt(&self, to: &mut Formatter<'_>) -> std::fmt::Result {
        to.write_str(self.name())
    }
}
