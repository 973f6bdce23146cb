// SPDX-License-Identifier: PostgreSQL
//! One part of a table: a Parquet file, written whole or read whole.

mod read;
mod ways;
mod write;

use crate::error::Error;
use crate::table::Cells;
use parquet::errors::ParquetError;
use std::path::Path;

pub(crate) use read::{read, read_columns};
pub(crate) use ways::Care;
pub(crate) use write::write;

/// Where the metadata names the series.
const SERIES_KEY: &str = "pgtally.series";
/// Times are kept in milliseconds: the rest of a time of day is chance, which takes room.
const MILLISECOND_US: i64 = 1000;

fn failed(path: &Path) -> impl Fn(ParquetError) -> Error + '_ {
    move |error| {
        if let ParquetError::External(source) = &error {
            if let Some(io) = source.downcast_ref::<std::io::Error>() {
                return Error::io(path)(io.kind().into());
            }
        }
        Error::Part { path: path.to_path_buf(), what: error.to_string() }
    }
}

fn scale(cells: &mut Cells, by: impl Fn(i64) -> i64) {
    if let Cells::Long(cells) = cells {
        cells.iter_mut().for_each(|cell| *cell = by(*cell));
    }
}
