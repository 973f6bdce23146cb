// SPDX-License-Identifier: PostgreSQL
//! Writing a Parquet file.

use super::encoding::{ColumnEncoding, Effort};
use super::{failed, scale, MILLISECOND_US, SERIES_KEY};
use crate::error::Error;
use crate::table::{Cells, Column, Shape, Table, Unit};
use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::borrow::Borrow;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

/// Rows that are written at once.
const BATCH: usize = 1 << 16;

fn field(column: &Column) -> Result<Type, ParquetError> {
    let time = LogicalType::Timestamp { is_adjusted_to_u_t_c: true, unit: TimeUnit::MILLIS };
    let (physical, repetition) = match column.shape {
        Shape::Long => (Physical::INT64, Repetition::REQUIRED),
        Shape::OptLong => (Physical::INT64, Repetition::OPTIONAL),
        Shape::Double => (Physical::DOUBLE, Repetition::REQUIRED),
        Shape::Bool => (Physical::BOOLEAN, Repetition::REQUIRED),
        Shape::Text => (Physical::BYTE_ARRAY, Repetition::REQUIRED),
        Shape::OptText => (Physical::BYTE_ARRAY, Repetition::OPTIONAL),
        Shape::Longs => {
            let element = Type::primitive_type_builder("element", Physical::INT64)
                .with_repetition(Repetition::REQUIRED)
                .build()?;
            let list = Type::group_type_builder("list")
                .with_repetition(Repetition::REPEATED)
                .with_fields(vec![Arc::new(element)])
                .build()?;
            return Type::group_type_builder(column.name)
                .with_repetition(Repetition::REQUIRED)
                .with_logical_type(Some(LogicalType::List))
                .with_fields(vec![Arc::new(list)])
                .build();
        }
    };
    let logical = match (column.unit, physical) {
        (Unit::Time, Physical::INT64) => Some(time),
        (_, Physical::BYTE_ARRAY) => Some(LogicalType::String),
        _ => None,
    };
    Type::primitive_type_builder(column.name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build()
}

fn schema(table: &str, columns: &[(Column, ColumnEncoding)]) -> Result<Type, ParquetError> {
    let fields = columns.iter().map(|(column, _)| field(column).map(Arc::new));
    Type::group_type_builder(table).with_fields(fields.collect::<Result<_, _>>()?).build()
}

fn properties(columns: &[(Column, ColumnEncoding)], effort: Effort) -> WriterPropertiesBuilder {
    let builder = WriterProperties::builder()
        .set_created_by(concat!("pgtally ", env!("CARGO_PKG_VERSION")).to_string());
    columns
        .iter()
        .fold(effort.apply(builder), |builder, (column, encoding)| encoding.apply(column, builder))
}

/// Write sorted rows to a new file.
pub(crate) fn write<T: Table>(path: &Path, rows: &[T], effort: Effort) -> Result<(), Error> {
    let mut file = File::create(path).map_err(Error::io(path))?;
    let mut write = || -> Result<(), ParquetError> {
        let mut columns = Vec::new();
        let mut all = T::store(rows);
        for (column, cells) in T::columns().into_iter().zip(&mut all) {
            if column.unit == Unit::Time {
                scale(cells, |us| us.div_euclid(MILLISECOND_US));
            }
            columns.push((column, smallest(column, cells, effort)?));
        }
        let metadata = T::metadata(rows).map(|text| KeyValue::new(SERIES_KEY.to_string(), text));
        let properties = properties(&columns, effort)
            .set_key_value_metadata(metadata.map(|pair| vec![pair]))
            .build();
        write_columns(&mut file, T::NAME, &columns, all, properties)
    };
    write().map_err(failed(path))
}

/// The encoding in which a column is smallest.
fn smallest(column: Column, cells: &Cells, effort: Effort) -> Result<ColumnEncoding, ParquetError> {
    let encodings = effort.encodings(column.shape);
    if let [only] = encodings {
        return Ok(*only);
    }
    let mut sizes = Vec::new();
    for &encoding in encodings {
        let columns = [(column, encoding)];
        let mut trial = Vec::new();
        let properties = properties(&columns, effort).build();
        write_columns(&mut trial, "trial", &columns, [cells], properties)?;
        sizes.push((trial.len(), encoding));
    }
    let smallest = sizes.into_iter().min_by_key(|(size, _)| *size);
    Ok(smallest.map_or(ColumnEncoding::Plain, |(_, encoding)| encoding))
}

fn write_columns<W: Write + Send>(
    to: &mut W,
    name: &str,
    columns: &[(Column, ColumnEncoding)],
    all: impl IntoIterator<Item = impl Borrow<Cells>>,
    properties: WriterProperties,
) -> Result<(), ParquetError> {
    let schema = Arc::new(schema(name, columns)?);
    let mut writer = SerializedFileWriter::new(to, schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for cells in all {
        if let Some(mut column) = group.next_column()? {
            put(column.untyped(), cells.borrow())?;
            column.close()?;
        }
    }
    group.close()?;
    writer.close()?;
    Ok(())
}

fn put(column: &mut ColumnWriter<'_>, cells: &Cells) -> Result<(), ParquetError> {
    let texts = |text: &Arc<str>| ByteArray::from(text.as_bytes().to_vec());
    match (column, cells) {
        (ColumnWriter::Int64ColumnWriter(to), Cells::Long(cells)) => {
            to.write_batch(cells, None, None)?;
        }
        (ColumnWriter::Int64ColumnWriter(to), Cells::OptLong(cells)) => {
            let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
            let values: Vec<i64> = cells.iter().flatten().copied().collect();
            to.write_batch(&values, Some(&levels), None)?;
        }
        (ColumnWriter::Int64ColumnWriter(to), Cells::Longs(cells)) => {
            let (mut values, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
            for list in cells {
                if list.is_empty() {
                    defined.push(0);
                    repeated.push(0);
                }
                for (at, value) in list.iter().enumerate() {
                    defined.push(1);
                    repeated.push(i16::from(at > 0));
                    values.push(*value);
                }
            }
            to.write_batch(&values, Some(&defined), Some(&repeated))?;
        }
        (ColumnWriter::DoubleColumnWriter(to), Cells::Double(cells)) => {
            to.write_batch(cells, None, None)?;
        }
        (ColumnWriter::BoolColumnWriter(to), Cells::Bool(cells)) => {
            to.write_batch(cells, None, None)?;
        }
        (ColumnWriter::ByteArrayColumnWriter(to), Cells::Text(cells)) => {
            // In chunks: a text that many rows share is not copied for all of them at once.
            for cells in cells.chunks(BATCH) {
                to.write_batch(&cells.iter().map(texts).collect::<Vec<_>>(), None, None)?;
            }
        }
        (ColumnWriter::ByteArrayColumnWriter(to), Cells::OptText(cells)) => {
            let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
            let values: Vec<ByteArray> = cells.iter().flatten().map(texts).collect();
            to.write_batch(&values, Some(&levels), None)?;
        }
        _ => return Err(ParquetError::General("a column of another kind".to_string())),
    }
    Ok(())
}
