// SPDX-License-Identifier: PostgreSQL
//! Reading a Parquet file.

use super::limit::Limit;
use super::quiet;
use super::series::FileSeries;
use super::{failed, scale, MILLISECOND_US};
use crate::error::Error;
use crate::table::{Cells, Column, Columns, Lists, Shape, Table, Unit};
use parquet::basic::Type as Physical;
use parquet::column::reader::{get_typed_column_reader, ColumnReader, ColumnReaderImpl};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Columns that were renamed without a change of the format: old name, new name.
const RENAMED: [(&str, &str); 1] = [("overflow_lost_folds", "overflow_lost_merges")]; // old name

/// Maximum number of values for which memory is reserved up front.
const MAX_RESERVED: usize = 1 << 20;

fn current_name(name: &str) -> &str {
    RENAMED.iter().find(|(old, _)| *old == name).map_or(name, |(_, new)| new)
}

/// The rows of a file.
pub(crate) fn read<T: Table>(file: File, path: &Path) -> Result<Vec<T>, Error> {
    let wanted: Vec<Column> =
        T::columns().into_iter().filter(|column| !T::repeats().contains(&column.name)).collect();
    let mut rows = Vec::new();
    read_columns(file, path, &wanted, |columns| rows.extend(T::load(columns)))?;
    Ok(rows)
}

/// Pass some columns of a file to `see`, row group by row group.
pub(crate) fn read_columns(
    file: File,
    path: &Path,
    wanted: &[Column],
    mut see: impl FnMut(&Columns),
) -> Result<(), Error> {
    // The Parquet reader may panic on a damaged file.
    let read = || -> Result<(), ParquetError> {
        let limit = Limit::of_file(file.metadata()?.len());
        let reader = SerializedFileReader::new(file)?;
        let metadata = reader.metadata().file_metadata();
        let mut series = FileSeries::from_metadata(metadata);
        let positions: HashMap<String, usize> = (0..)
            .zip(metadata.schema_descr().columns())
            .filter_map(|(at, column)| {
                Some((current_name(column.path().parts().first()?).to_string(), at))
            })
            .collect();
        for group in 0..reader.num_row_groups() {
            let group = reader.get_row_group(group)?;
            let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            let take = |bytes: usize| limit.take((rows as u64).saturating_mul(bytes as u64));
            // Columns that the file does not have get defaults, and are not counted below.
            let absent =
                wanted.iter().filter(|column| !positions.contains_key(column.name)).count();
            take(8 * absent)?;
            let mut columns = Columns { rows, ..Columns::default() };
            for column in wanted {
                if let Some(&at) = positions.get(column.name) {
                    let known = known_values(&*group, at, column.shape);
                    let mut cells = match known {
                        Some(KnownValues::Zeros) => {
                            take(size_of::<i64>())?;
                            columns.zeros.push(column.name);
                            continue;
                        }
                        Some(KnownValues::Text(text)) => {
                            take(size_of::<Arc<str>>())?;
                            Cells::Text(vec![text; rows])
                        }
                        _ => get(limit.reader(&*group, at)?, column.shape, rows)?,
                    };
                    if column.unit == Unit::Time {
                        scale(&mut cells, |ms| ms.saturating_mul(MILLISECOND_US));
                    }
                    columns.cells.push((column.name.to_string(), cells));
                }
            }
            if !columns.zeros.is_empty() {
                columns.zero_cells = Some(Cells::Long(vec![0; rows]));
            }
            columns.series = series.up_to(&*group, &limit, &positions, columns.longs("series"))?;
            see(&columns);
        }
        Ok(())
    };
    match quiet::catch(read) {
        Some(done) => done.map_err(failed(path)),
        None => Err(Error::File { path: path.to_path_buf(), reason: "damaged".to_string() }),
    }
}

/// The values of a column that its statistics in the row group tell, so that they need not be decoded.
#[derive(Debug, PartialEq, Eq)]
enum KnownValues {
    /// All are 0, as in most columns of `statements`.
    Zeros,
    /// All are this text.
    Text(Arc<str>),
}

/// The values of a column without nulls, if they are all the same.
fn known_values(group: &dyn RowGroupReader, at: usize, shape: Shape) -> Option<KnownValues> {
    let column = group.metadata().column(at);
    if column.column_descr().max_def_level() > 0 {
        return None;
    }
    match (shape, column.statistics()?) {
        (Shape::Long, Statistics::Int64(values)) => {
            let is_zero = (values.min_opt()?, values.max_opt()?) == (&0, &0);
            is_zero.then_some(KnownValues::Zeros)
        }
        (Shape::Text, Statistics::ByteArray(values)) => {
            // Long texts are cut in statistics.
            let is_exact = values.min_is_exact() && values.max_is_exact();
            let (min, max) = (values.min_opt()?, values.max_opt()?);
            let text = String::from_utf8_lossy(min.data());
            (is_exact && min == max).then(|| KnownValues::Text(text.into()))
        }
        _ => None,
    }
}

/// All values of a column, with the levels that say which rows have one.
struct Read<T: DataType> {
    values: Vec<T::T>,
    defined: Vec<i16>,
    repeated: Vec<i16>,
}

fn all<T: DataType>(reader: ColumnReader, rows: usize) -> Result<Read<T>, ParquetError>
where
    ColumnReaderImpl<T>: Sized,
{
    if T::get_physical_type() != physical(&reader) {
        return Err(ParquetError::General("a column has an unexpected type".to_string()));
    }
    let mut typed: ColumnReaderImpl<T> = get_typed_column_reader(reader);
    // The number of rows may be wrong in a damaged file.
    let values = Vec::with_capacity(rows.min(MAX_RESERVED));
    let mut read = Read { values, defined: Vec::new(), repeated: Vec::new() };
    let mut have = 0;
    while have < rows {
        let (records, ..) = typed.read_records(
            rows - have,
            Some(&mut read.defined),
            Some(&mut read.repeated),
            &mut read.values,
        )?;
        if records == 0 {
            return Err(ParquetError::EOF("a column is shorter than the others".to_string()));
        }
        have += records;
    }
    Ok(read)
}

fn physical(reader: &ColumnReader) -> Physical {
    match reader {
        ColumnReader::BoolColumnReader(_) => Physical::BOOLEAN,
        ColumnReader::Int32ColumnReader(_) => Physical::INT32,
        ColumnReader::Int64ColumnReader(_) => Physical::INT64,
        ColumnReader::Int96ColumnReader(_) => Physical::INT96,
        ColumnReader::FloatColumnReader(_) => Physical::FLOAT,
        ColumnReader::DoubleColumnReader(_) => Physical::DOUBLE,
        ColumnReader::ByteArrayColumnReader(_) => Physical::BYTE_ARRAY,
        ColumnReader::FixedLenByteArrayColumnReader(_) => Physical::FIXED_LEN_BYTE_ARRAY,
    }
}

/// Texts, each stored once.
#[derive(Default)]
struct InternedTexts {
    known: HashMap<Vec<u8>, Arc<str>>,
    /// The last one: rows are sorted, so it often comes again.
    last: Option<(ByteArray, Arc<str>)>,
}

impl InternedTexts {
    fn intern(&mut self, bytes: &ByteArray) -> Arc<str> {
        if let Some((_, text)) = self.last.as_ref().filter(|(last, _)| last.data() == bytes.data())
        {
            return text.clone();
        }
        let text = match self.known.get(bytes.data()) {
            Some(text) => text.clone(),
            None => {
                let text: Arc<str> = String::from_utf8_lossy(bytes.data()).into();
                self.known.insert(bytes.data().to_vec(), text.clone());
                text
            }
        };
        self.last = Some((bytes.clone(), text.clone()));
        text
    }
}

fn optional<T>(defined: &[i16], mut values: impl Iterator<Item = T>) -> Vec<Option<T>> {
    defined.iter().map(|defined| if *defined > 0 { values.next() } else { None }).collect()
}

fn get(reader: ColumnReader, shape: Shape, rows: usize) -> Result<Cells, ParquetError> {
    let mut texts = InternedTexts::default();
    Ok(match shape {
        Shape::Long => Cells::Long(all::<Int64Type>(reader, rows)?.values),
        Shape::Double => Cells::Double(all::<DoubleType>(reader, rows)?.values),
        Shape::Bool => Cells::Bool(all::<BoolType>(reader, rows)?.values),
        Shape::Text => {
            let read = all::<ByteArrayType>(reader, rows)?;
            Cells::Text(read.values.iter().map(|bytes| texts.intern(bytes)).collect())
        }
        Shape::OptLong => {
            let read = all::<Int64Type>(reader, rows)?;
            Cells::OptLong(optional(&read.defined, read.values.into_iter()))
        }
        Shape::OptText => {
            let read = all::<ByteArrayType>(reader, rows)?;
            let texts = read.values.iter().map(|bytes| texts.intern(bytes));
            Cells::OptText(optional(&read.defined, texts))
        }
        Shape::Longs => {
            let read = all::<Int64Type>(reader, rows)?;
            let mut lists = Lists::with_capacity(rows.min(MAX_RESERVED), read.values.len());
            let mut values = read.values.into_iter();
            let mut levels = read.defined.iter().zip(&read.repeated).peekable();
            while let Some((defined, _)) = levels.next() {
                // The rest of the row has a value for each level.
                let mut count = usize::from(*defined > 0);
                while let Some((defined, _)) = levels.next_if(|(_, repeated)| **repeated > 0) {
                    count += usize::from(*defined > 0);
                }
                lists.push(values.by_ref().take(count));
            }
            Cells::Longs(lists)
        }
    })
}
