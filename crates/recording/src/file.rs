// SPDX-License-Identifier: PostgreSQL
//! A Parquet file with rows of one table, written whole or read whole.

mod encoding;
mod read;
mod write;

use crate::error::Error;
use crate::table::Cells;
use parquet::errors::ParquetError;
use std::path::Path;

pub(crate) use encoding::Effort;
pub(crate) use read::{read, read_columns};
pub(crate) use write::write;

/// The key of the series in the metadata.
const SERIES_KEY: &str = "pgtally.series";
/// Files keep times in milliseconds: the other digits of a time of day are noise, which takes space.
const MILLISECOND_US: i64 = 1000;

fn failed(path: &Path) -> impl Fn(ParquetError) -> Error + '_ {
    move |error| {
        if let ParquetError::External(source) = &error {
            if let Some(io) = source.downcast_ref::<std::io::Error>() {
                return Error::io(path)(io.kind().into());
            }
        }
        Error::File { path: path.to_path_buf(), reason: error.to_string() }
    }
}

fn scale(cells: &mut Cells, by: impl Fn(i64) -> i64) {
    if let Cells::Long(cells) = cells {
        cells.iter_mut().for_each(|cell| *cell = by(*cell));
    }
}
