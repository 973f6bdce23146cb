// SPDX-License-Identifier: PostgreSQL
//! Writing a Parquet file.

use super::chunk::Chunk;
use super::encoding::{ColumnEncoding, Effort};
use super::schema::schema;
use super::sorted_dictionary;
use super::{failed, scale, MILLISECOND_US};
use crate::error::Error;
use crate::table::{Cells, Column, Table, Unit};
use files::Access;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnDescPtr;
use std::path::Path;
use std::sync::Arc;

/// Write sorted rows to a new file.
pub(crate) fn write<T: Table>(
    path: &Path,
    rows: &[T],
    effort: Effort,
    access: Access,
) -> Result<(), Error> {
    let file = files::create(path, access).map_err(Error::io(path))?;
    let write = || -> Result<(), ParquetError> {
        let columns = T::columns();
        let schema = Arc::new(schema(T::NAME, &columns)?);
        let properties = effort
            .apply(WriterProperties::builder())
            .set_created_by(concat!("pgtally ", env!("CARGO_PKG_VERSION")).to_string());
        let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties.build()))?;
        let described = writer.schema_descr().columns().to_vec();
        let mut group = writer.next_row_group()?;
        for ((column, mut cells), descr) in columns.iter().zip(T::store(rows)).zip(&described) {
            if column.unit == Unit::Time {
                scale(&mut cells, |us| us.div_euclid(MILLISECOND_US));
            }
            let chunk = smallest(descr, column, &cells, rows.len(), effort)?;
            group.append_column(&chunk.bytes, chunk.close)?;
        }
        group.close()?;
        writer.close()?;
        Ok(())
    };
    write().map_err(failed(path))
}

/// The column in the encoding that makes it smallest.
fn smallest(
    descr: &ColumnDescPtr,
    column: &Column,
    cells: &Cells,
    rows: usize,
    effort: Effort,
) -> Result<Chunk, ParquetError> {
    let effort = effort.on(column.shape, rows);
    let mut smallest: Option<(ColumnEncoding, Chunk)> = None;
    for encoding in effort.encodings(column.shape) {
        let chunk = match encoding {
            ColumnEncoding::SortedDictionary => {
                sorted_dictionary::encode(descr, cells, effort.level())?
            }
            _ => Some(Chunk::encode(descr, column, cells, *encoding, effort)?),
        };
        let chunk = chunk.map(|chunk| (*encoding, chunk));
        smallest = match (smallest, chunk) {
            (Some(known), Some(chunk)) if chunk.1.bytes.len() < known.1.bytes.len() => Some(chunk),
            (known, chunk) => known.or(chunk),
        };
    }
    match smallest {
        // The bytes of such numbers have no repetitions, so a search for all of them takes little time.
        Some((ColumnEncoding::SortedDictionary, chunk)) => {
            let best = sorted_dictionary::encode(descr, cells, effort.last_level())?;
            Ok(best.filter(|best| best.bytes.len() < chunk.bytes.len()).unwrap_or(chunk))
        }
        Some((_, chunk)) => Ok(chunk),
        None => Err(ParquetError::General("a column has no encoding".to_string())),
    }
}
