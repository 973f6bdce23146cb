// SPDX-License-Identifier: PostgreSQL
//! The series of a file, by number.

use super::limit::GroupReader;
use crate::series::Series;
use crate::statistics::{of_metadata, of_texts, TEXTS};
use parquet::basic::Type as Physical;
use parquet::column::reader::{get_typed_column_reader, ColumnReaderImpl};
use parquet::data_type::ByteArrayType;
use parquet::errors::ParquetError;
use parquet::file::metadata::FileMetaData;
use std::collections::HashMap;
use std::sync::Arc;

/// The metadata key under which format 1 lists the series.
const METADATA_KEY: &str = "pgtally.series";

/// The series of a file that are known so far.
pub(super) struct FileSeries {
    known: Vec<Arc<Series>>,
}

impl FileSeries {
    /// The series that the file's metadata lists.
    pub fn from_metadata(metadata: &FileMetaData) -> FileSeries {
        let pairs = metadata.key_value_metadata().into_iter().flatten();
        let named =
            pairs.filter(|pair| pair.key == METADATA_KEY).find_map(|pair| pair.value.as_deref());
        FileSeries { known: named.map_or_else(Vec::new, of_metadata) }
    }

    /// The series up to and including a row group: `numbers` is its column of series numbers, `positions`
    /// the positions of its columns.
    pub fn up_to(
        &mut self,
        group: &GroupReader<'_>,
        positions: &HashMap<String, usize>,
        numbers: &[i64],
    ) -> Result<Vec<Arc<Series>>, ParquetError> {
        let rows = self.first_rows(numbers);
        let positions = TEXTS.map(|name| positions.get(name).copied());
        if let ([Some(a), Some(b), Some(c), Some(d)], false) = (positions, rows.is_empty()) {
            let mut texts = Vec::new();
            for at in [a, b, c, d] {
                texts.push(texts_at(group, at, &rows)?.into_iter());
            }
            let mut next = |at: usize| texts[at].next().unwrap_or_default();
            self.known.extend(rows.iter().map(|_| of_texts([next(0), next(1), next(2), next(3)])));
        }
        Ok(self.known.clone())
    }

    /// The first row of each new series. Series are numbered in the order of these rows.
    fn first_rows(&self, numbers: &[i64]) -> Vec<usize> {
        let mut next = self.known.len() as i64;
        let mut rows = Vec::new();
        for (row, number) in numbers.iter().enumerate() {
            if *number == next {
                rows.push(row);
                next += 1;
            }
        }
        rows
    }
}

/// The texts of some rows of a column.
fn texts_at(
    group: &GroupReader<'_>,
    at: usize,
    rows: &[usize],
) -> Result<Vec<Arc<str>>, ParquetError> {
    if group.metadata.column(at).column_type() != Physical::BYTE_ARRAY {
        return Err(ParquetError::General("a column has an unexpected type".to_string()));
    }
    let mut reader: ColumnReaderImpl<ByteArrayType> = get_typed_column_reader(group.column(at)?);
    let mut texts = Vec::with_capacity(rows.len());
    let (mut passed, mut value) = (0, Vec::with_capacity(1));
    for row in rows {
        reader.skip_records(row - passed)?;
        value.clear();
        reader.read_records(1, None, None, &mut value)?;
        let text = value
            .first()
            .ok_or_else(|| ParquetError::EOF("a column is shorter than the others".to_string()))?;
        texts.push(String::from_utf8_lossy(text.data()).into());
        passed = row + 1;
    }
    Ok(texts)
}
