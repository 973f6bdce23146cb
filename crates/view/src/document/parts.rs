// SPDX-License-Identifier: PostgreSQL
//! How the rows of tables add up over time, so that a page can show a table for any part of the time.
//!
//! A table has sums (time, counts, bytes) for each of its rows in each point of an axis. All its other figures of a part are
//! quotients of two sums. What is neither, as a percentile, is known for the whole time only.

use std::collections::BTreeMap;

use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

use super::Axis;
use crate::table::cell::write_short;

/// The tables that can be shown for a part of the time.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Parts {
    /// The points of all tables that have no axis of their own.
    pub axis: Axis,
    /// Sums of all rows of a table, or of the server, by name.
    pub totals: BTreeMap<&'static str, SumSeries>,
    /// The tables, by key.
    pub tables: BTreeMap<&'static str, TableParts>,
}

/// A table over time.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TableParts {
    /// Its points; `None`: those of [`Parts`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub axis: Option<Axis>,
    /// Its own totals.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub totals: BTreeMap<&'static str, SumSeries>,
    /// How the cells of each column follow from sums.
    pub columns: Vec<Derivation>,
    /// The names of the sums of each row.
    pub sums: Vec<&'static str>,
    /// For each row of the table, its sums; empty: unknown.
    pub rows: Vec<Vec<SumSeries>>,
}

/// How the cell of a column follows from the sums of its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Derivation {
    /// It is the same at any time: a name.
    Same,
    /// It is a sum.
    Sum(&'static str),
    /// The quotient of two sums, of the row or else of the totals; nothing without the second one. [`MEASURED`] is the
    /// measured time.
    Quotient(&'static str, &'static str),
    /// It is known for the whole time only.
    Unknown,
}

/// The name of the measured time of an axis, as a sum.
pub const MEASURED: &str = "measured";

impl Serialize for Derivation {
    /// `[]`, `["seconds"]`, `["seconds", "count"]`, `null`.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Derivation::Same => to.collect_seq::<[&str; 0]>([]),
            Derivation::Sum(of) => to.collect_seq([of]),
            Derivation::Quotient(of, by) => to.collect_seq([of, by]),
            Derivation::Unknown => to.serialize_none(),
        }
    }
}

/// Values that are not negative, one for each point. In JSON, a negative number stands for so many zeros, and zeros at the end
/// are left out.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SumSeries(pub Vec<f64>);

impl Serialize for SumSeries {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut list = to.serialize_seq(None)?;
        let mut zeros = 0i64;
        for value in &self.0 {
            if *value <= 0.0 || !value.is_finite() {
                zeros += 1;
                continue;
            }
            match std::mem::take(&mut zeros) {
                0 => {}
                1 => list.serialize_element(&0)?,
                many => list.serialize_element(&-many)?,
            }
            list.serialize_element(&write_short(Some(*value)))?;
        }
        list.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_take_no_space() {
        let json = |values: &[f64]| serde_json::to_string(&SumSeries(values.to_vec())).unwrap();
        assert_eq!(json(&[0.0, 1.5, 0.0, 0.0, 0.0, 2.0, 0.0]), "[0,1.5,-3,2]");
        assert_eq!(json(&[0.0, 0.0]), "[]");
        assert_eq!(json(&[1.0 / 3.0, f64::NAN, 1234567.0]), "[0.333333,0,1234570]");
    }

    #[test]
    fn a_column_is_a_name_a_sum_a_quotient_or_unknown() {
        let all = [
            Derivation::Same,
            Derivation::Sum("seconds"),
            Derivation::Quotient("seconds", "count"),
            Derivation::Unknown,
        ];
        let json = serde_json::to_string(&all).unwrap();
        assert_eq!(json, r#"[[],["seconds"],["seconds","count"],null]"#);
    }
}
