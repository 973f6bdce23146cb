// SPDX-License-Identifier: PostgreSQL
//! A Parquet file with rows of one table, written whole or read whole.

mod chunk;
mod encoding;
mod numbers;
mod quiet;
mod read;
mod schema;
mod series;
mod sorted_dictionary;
mod write;

use crate::error::Error;
use crate::table::Cells;
use parquet::errors::ParquetError;
use std::path::Path;

pub(crate) use encoding::Effort;
pub use quiet::panic_is_expected;
pub(crate) use read::{read, read_columns};
pub(crate) use write::write;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::FrameRow;
    use crate::table::{table, Cell, Column, Columns, Table, Unit};
    use std::fs::File;

    table! {
        /// An interval as the first version wrote it.
        OldRow in "frames" by |a, b| a.frame.cmp(&b.frame);
        /// The old name of `overflow_lost_merges`.
        overflow_lost_folds: u64, Count; // old name
    }

    #[test]
    fn a_column_is_read_by_its_old_name_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old.parquet");
        let old = OldRow { frame: 3, overflow_lost_folds: 7, ..OldRow::default() }; // old name
        write(&path, std::slice::from_ref(&old), Effort::Fast, files::Access::Owner).unwrap();
        let rows = read::<FrameRow>(File::open(&path).unwrap(), &path).unwrap();
        assert_eq!((rows[0].frame, rows[0].overflow_lost_merges), (3, 7));
        let text = serde_json::to_string(&old).unwrap();
        let row: FrameRow = serde_json::from_str(&text).unwrap();
        assert_eq!((row.frame, row.overflow_lost_merges), (3, 7));
    }
}
