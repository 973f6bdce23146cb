// SPDX-License-Identifier: PostgreSQL
//! A column of whole numbers as Parquet stores it: the values, and levels that assign them to rows.

use crate::table::{Cells, Lists};
use std::borrow::Cow;

/// The values of a column, without nulls.
pub(super) struct Numbers<'c> {
    pub values: Cow<'c, [i64]>,
    /// 1: there is a value; 0: null, or an empty list. `None`: every row has a value.
    pub defined: Option<Vec<i16>>,
    /// 0: the first value of a row; 1: another value of the same row. `None`: no lists.
    pub repeated: Option<Vec<i16>>,
    /// Number of rows.
    pub rows: usize,
}

impl<'c> Numbers<'c> {
    /// `None`: a column of another type.
    pub fn from_cells(cells: &'c Cells) -> Option<Numbers<'c>> {
        match cells {
            Cells::Long(cells) => Some(Numbers {
                values: Cow::Borrowed(cells),
                defined: None,
                repeated: None,
                rows: cells.len(),
            }),
            Cells::OptLong(cells) => Some(Numbers {
                values: cells.iter().flatten().copied().collect(),
                defined: Some(cells.iter().map(|cell| i16::from(cell.is_some())).collect()),
                repeated: None,
                rows: cells.len(),
            }),
            Cells::Longs(cells) => Some(Numbers::of_lists(cells)),
            _ => None,
        }
    }

    /// The bits of doubles.
    pub fn of_bits(cells: &[f64]) -> Numbers<'c> {
        let values = cells.iter().map(|n| n.to_bits() as i64).collect();
        Numbers { values, defined: None, repeated: None, rows: cells.len() }
    }

    fn of_lists(lists: &'c Lists) -> Numbers<'c> {
        let (mut defined, mut repeated) = (Vec::new(), Vec::new());
        for list in lists.iter() {
            defined.extend(list.iter().map(|_| 1));
            repeated.extend((0..list.len()).map(|at| i16::from(at > 0)));
            if list.is_empty() {
                defined.push(0);
                repeated.push(0);
            }
        }
        Numbers {
            values: Cow::Borrowed(lists.values()),
            defined: Some(defined),
            repeated: Some(repeated),
            rows: lists.len(),
        }
    }
}
