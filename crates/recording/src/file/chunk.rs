// SPDX-License-Identifier: PostgreSQL
//! The bytes of one column of a file.

use super::encoding::{ColumnEncoding, Effort};
use super::numbers::Numbers;
use crate::table::{Cells, Column};
use bytes::Bytes;
use parquet::column::writer::{get_column_writer, ColumnCloseResult, ColumnWriter};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use std::sync::Arc;

/// Number of texts that are written at a time.
const BATCH: usize = 1 << 16;

/// A column, encoded and compressed.
pub(super) struct Chunk {
    pub bytes: Bytes,
    /// The column's entry in the file's footer.
    pub close: ColumnCloseResult,
}

impl Chunk {
    /// The column in an encoding of the library.
    pub fn encode(
        descr: &ColumnDescPtr,
        column: &Column,
        cells: &Cells,
        encoding: ColumnEncoding,
        effort: Effort,
    ) -> Result<Chunk, ParquetError> {
        let properties = encoding.apply(column, effort.apply(WriterProperties::builder())).build();
        let mut sink = TrackedWrite::new(Vec::new());
        let pages = Box::new(SerializedPageWriter::new(&mut sink));
        let mut writer = get_column_writer(descr.clone(), Arc::new(properties), pages);
        put(&mut writer, cells)?;
        let close = writer.close()?;
        Ok(Chunk { bytes: sink.into_inner()?.into(), close })
    }
}

fn put(column: &mut ColumnWriter<'_>, cells: &Cells) -> Result<(), ParquetError> {
    let texts = |text: &Arc<str>| ByteArray::from(text.as_bytes().to_vec());
    match (column, cells) {
        (ColumnWriter::DoubleColumnWriter(to), Cells::Double(cells)) => {
            to.write_batch(cells, None, None)?;
        }
        (ColumnWriter::BoolColumnWriter(to), Cells::Bool(cells)) => {
            to.write_batch(cells, None, None)?;
        }
        (ColumnWriter::ByteArrayColumnWriter(to), Cells::Text(cells)) => {
            // In chunks, so that a text that many rows share is not copied for all of them at once.
            for cells in cells.chunks(BATCH) {
                to.write_batch(&cells.iter().map(texts).collect::<Vec<_>>(), None, None)?;
            }
        }
        (ColumnWriter::ByteArrayColumnWriter(to), Cells::OptText(cells)) => {
            let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
            let values: Vec<ByteArray> = cells.iter().flatten().map(texts).collect();
            to.write_batch(&values, Some(&levels), None)?;
        }
        (ColumnWriter::Int64ColumnWriter(to), cells) => {
            let numbers = Numbers::from_cells(cells).ok_or_else(other_kind)?;
            let (defined, repeated) = (numbers.defined.as_deref(), numbers.repeated.as_deref());
            to.write_batch(&numbers.values, defined, repeated)?;
        }
        _ => return Err(other_kind()),
    }
    Ok(())
}

fn other_kind() -> ParquetError {
    ParquetError::General("a column has an unexpected kind".to_string())
}
