// SPDX-License-Identifier: PostgreSQL
//! Tables of a client's methods: the five of the original study, or one in a chosen order.

use crate::choose;
use std::cmp::Ordering;

use segment::functions::FunctionRow;

use crate::table::field::{Field, Picked};
use crate::table::{Row, Table, Unit};

/// Sort order of methods; highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum MethodSort {
    /// By number of calls
    Count,
    /// By elapsed time, including the methods that they called
    Incl,
    /// By elapsed time, excluding timed methods that they called
    Excl,
    /// By elapsed time of timed methods that they called
    Callees,
    /// By CPU time, including the methods that they called
    Cpu,
    /// By CPU time, excluding timed methods that they called
    CpuExcl,
    /// By CPU time of timed methods that they called
    CpuCallees,
    /// By calls that ended with an exception
    Thrown,
}

impl MethodSort {
    /// The orders of the tables that are printed by default.
    const TABLES: [MethodSort; 5] = [
        MethodSort::Count,
        MethodSort::Incl,
        MethodSort::Callees,
        MethodSort::Cpu,
        MethodSort::CpuCallees,
    ];

    fn title(self) -> &'static str {
        match self {
            MethodSort::Count => "number of calls",
            MethodSort::Incl => "elapsed time, inclusive",
            MethodSort::Excl => "elapsed time, exclusive",
            MethodSort::Callees => "elapsed time in timed methods that they called",
            MethodSort::Cpu => "CPU time, inclusive",
            MethodSort::CpuExcl => "CPU time, exclusive",
            MethodSort::CpuCallees => "CPU time in timed methods that they called",
            MethodSort::Thrown => "exceptions",
        }
    }

    /// The column that has its figure.
    fn key(self) -> &'static str {
        match self {
            MethodSort::Count => "calls",
            MethodSort::Incl => "seconds",
            MethodSort::Excl => "exclusive",
            MethodSort::Callees => "callees",
            MethodSort::Cpu => "cpu",
            MethodSort::CpuExcl => "cpu_exclusive",
            MethodSort::CpuCallees => "cpu_callees",
            MethodSort::Thrown => "thrown",
        }
    }

    /// Whether it needs CPU times.
    pub fn needs_cpu(self) -> bool {
        matches!(self, MethodSort::Cpu | MethodSort::CpuExcl | MethodSort::CpuCallees)
    }

    fn figure(self, row: &FunctionRow) -> f64 {
        match self {
            MethodSort::Count => row.calls as f64,
            MethodSort::Incl => row.inclusive.seconds,
            MethodSort::Excl => row.exclusive_seconds,
            MethodSort::Callees => callees(row),
            MethodSort::Cpu => row.cpu_inclusive_seconds.unwrap_or(0.0),
            MethodSort::CpuExcl => row.cpu_exclusive_seconds.unwrap_or(0.0),
            MethodSort::CpuCallees => cpu_callees(row).unwrap_or(0.0),
            MethodSort::Thrown => row.thrown as f64,
        }
    }

    /// The rows in this order, equal ones by name.
    pub fn sorted(self, rows: &[FunctionRow]) -> Vec<&FunctionRow> {
        let mut rows: Vec<&FunctionRow> = rows.iter().collect();
        rows.sort_by(|a, b| match self.figure(b).total_cmp(&self.figure(a)) {
            Ordering::Equal => (&a.name, &a.phase).cmp(&(&b.name, &b.phase)),
            order => order,
        });
        rows
    }
}

/// Time in timed methods that a method called.
pub fn callees(row: &FunctionRow) -> f64 {
    (row.inclusive.seconds - row.exclusive_seconds).max(0.0)
}

/// The same for its CPU time, if that is measured.
pub fn cpu_callees(row: &FunctionRow) -> Option<f64> {
    Some((row.cpu_inclusive_seconds? - row.cpu_exclusive_seconds?).max(0.0))
}

type F = Field<FunctionRow>;

const FIELDS: &[F] = &[
    F::new("calls", "Count", Unit::Count, |row, _| row.calls.into()),
    F::new("thrown", "Thrown", Unit::Count, |row, _| row.thrown.into()),
    F::new("seconds", "Elapsed", Unit::Seconds, |row, _| row.inclusive.seconds.into()),
    F::new("exclusive", "Exclusive", Unit::Seconds, |row, _| row.exclusive_seconds.into()),
    F::new("callees", "Callees", Unit::Seconds, |row, _| callees(row).into()),
    F::new("bytes", "Bytes", Unit::Bytes, |row, _| row.bytes.into()),
    F::new("mean", "Mean", Unit::Seconds, |row, _| row.inclusive.mean_seconds.into()),
    F::new("p99", "p99", Unit::Seconds, |row, _| row.inclusive.p99_seconds.into()),
    F::new("cpu", "CPU", Unit::Seconds, |row, _| row.cpu_inclusive_seconds.into()),
    F::new("cpu_exclusive", "CPU excl", Unit::Seconds, |row, _| row.cpu_exclusive_seconds.into()),
    F::new("cpu_callees", "CPU callees", Unit::Seconds, |row, _| cpu_callees(row).into()),
    F::new("method", "Method", Unit::Text, |row, _| method(row).into()),
];

/// For example `jdbc::PgResultSet.getString(int)`.
pub fn method(row: &FunctionRow) -> String {
    format!("{}::{}", row.phase, row.name)
}

/// Whether the CPU times of any of them are known.
pub fn has_cpu(rows: &[FunctionRow]) -> bool {
    rows.iter().any(|row| row.cpu_inclusive_seconds.is_some())
}

/// The first `top` rows in this order.
pub fn table(rows: &[FunctionRow], sort: MethodSort, top: usize) -> Table {
    let choice = if has_cpu(rows) {
        choose!(
            FIELDS,
            "calls:6, thrown:9, seconds:1, exclusive:2, callees:5, cpu:3, cpu_exclusive:7, \
             cpu_callees:8, method"
        )
    } else if rows.iter().any(|row| row.bytes > 0) {
        choose!(
            FIELDS,
            "calls:5, thrown:8, seconds:1, exclusive:2, callees:6, mean:3, p99:4, bytes:7, method"
        )
    } else {
        choose!(
            FIELDS,
            "calls:5, thrown:7, seconds:1, exclusive:2, callees:6, mean:3, p99:4, method"
        )
    };
    let figures = Picked::of_pane(choice);
    let lines = sort.sorted(rows).into_iter().take(top);
    let lines = lines.map(|row| Row::new(method(row), figures.cells(row, 0.0))).collect();
    Table::from_rows(figures.columns.clone(), lines).sorted(sort.key())
}

/// The tables of the original study, with their titles; without CPU times, only those of elapsed time.
pub fn tables(rows: &[FunctionRow], top: usize) -> Vec<(String, Table)> {
    let known = |sort: &MethodSort| has_cpu(rows) || !sort.needs_cpu();
    MethodSort::TABLES
        .into_iter()
        .filter(known)
        .map(|sort| (format!("Top {top} by {}", sort.title()), table(rows, sort, top)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;
    use segment::functions::FunctionTotals;

    fn row(name: &str, exclusive: u64, cpu: Option<u64>) -> FunctionRow {
        let totals =
            FunctionTotals { exclusive, cpu: [cpu, cpu], thrown: 1, ..FunctionTotals::default() };
        FunctionRow::from_totals([name, "jdbc"], totals, 1e9)
    }

    #[test]
    fn rows_are_in_the_order_of_the_figure_and_equal_ones_by_name() {
        let rows = [row("b", 1, None), row("a", 1, None), row("c", 2, None)];
        let names = |sort: MethodSort| -> Vec<String> {
            sort.sorted(&rows).iter().map(|row| row.name.to_string()).collect()
        };
        assert_eq!(names(MethodSort::Excl), ["c", "a", "b"]);
        assert_eq!(names(MethodSort::Thrown), ["a", "b", "c"]);
    }

    #[test]
    fn on_eighty_columns_the_column_of_the_order_is_shown() {
        let name = "PgPreparedStatement.executeWithFlags(java.lang.String, int, boolean)";
        let rows = [row(name, 1_000_000, Some(900_000))];
        for sort in MethodSort::value_variants() {
            let text = table(&rows, *sort, 5).text(80);
            let column = FIELDS.iter().position(|field| field.key() == sort.key()).unwrap();
            let title = FIELDS[column].title().to_uppercase();
            assert!(text.lines().next().unwrap().contains(&title), "{sort:?}: {text}");
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            let joined: String = text.split_whitespace().collect();
            assert!(joined.contains("executeWithFlags"), "{text}");
        }
    }

    #[test]
    fn without_cpu_times_there_are_three_tables() {
        assert_eq!(tables(&[row("a", 1, None)], 5).len(), 3);
        assert_eq!(tables(&[row("a", 1, Some(2))], 5).len(), 5);
    }
}
