// SPDX-License-Identifier: PostgreSQL
//! Errors and units of a file's cells.

use crate::error::Error;
use crate::table::Cells;
use parquet::errors::ParquetError;
use std::path::Path;

/// Files store times in milliseconds: further digits of a time of day are noise, which takes space.
pub(super) const MILLISECOND_US: i64 = 1000;

pub(super) fn failed(path: &Path) -> impl Fn(ParquetError) -> Error + '_ {
    move |error| {
        if let ParquetError::External(source) = &error {
            if let Some(io) = source.downcast_ref::<std::io::Error>() {
                return Error::io(path)(io.kind().into());
            }
        }
        Error::File { path: path.to_path_buf(), reason: error.to_string() }
    }
}

pub(super) fn scale(cells: &mut Cells, by: impl Fn(i64) -> i64) {
    if let Cells::Long(cells) = cells {
        cells.iter_mut().for_each(|cell| *cell = by(*cell));
    }
}
