// SPDX-License-Identifier: PostgreSQL
//! Reading a Parquet file.

use super::limit::{GroupReader, Limit};
use super::quiet;
use super::series::FileSeries;
use super::{failed, scale, MILLISECOND_US};
use crate::error::Error;
use crate::table::{Cells, Column, Columns, Lists, Shape, Table, Unit};
use bytes::Bytes;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Columns that were renamed without a change of the format: old name, new name.
const RENAMED: [(&str, &str); 1] = [("overflow_lost_folds", "overflow_lost_merges")]; // old name

/// Maximum number of rows in memory at a time: some columns of numbers then fit into the processor's cache.
const BATCH: usize = 1 << 15;

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

/// Pass some columns of a file to `see`, in batches of rows.
pub(crate) fn read_columns(
    mut file: File,
    path: &Path,
    wanted: &[Column],
    mut see: impl FnMut(&Columns),
) -> Result<(), Error> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(Error::io(path))?;
    let bytes = Bytes::from(bytes);
    // The Parquet reader may panic on a damaged file.
    let read = || -> Result<(), ParquetError> {
        let limit = Limit::of_file(bytes.len() as u64);
        let reader = SerializedFileReader::new(bytes.clone())?;
        let file = Arc::new(bytes);
        let metadata = reader.metadata().file_metadata();
        let mut series = FileSeries::from_metadata(metadata);
        let positions: HashMap<String, usize> = (0..)
            .zip(metadata.schema_descr().columns())
            .filter_map(|(at, column)| {
                Some((current_name(column.path().parts().first()?).to_string(), at))
            })
            .collect();
        for metadata in reader.metadata().row_groups() {
            let group = GroupReader { file: file.clone(), metadata, limit: &limit };
            read_group(&group, &positions, wanted, &mut series, &mut see)?;
        }
        Ok(())
    };
    match quiet::catch(read) {
        Some(done) => done.map_err(failed(path)),
        None => Err(Error::File { path: path.to_path_buf(), reason: "damaged".to_string() }),
    }
}

/// Pass some columns of a row group to `see`, in batches of rows.
fn read_group(
    group: &GroupReader<'_>,
    positions: &HashMap<String, usize>,
    wanted: &[Column],
    series: &mut FileSeries,
    see: &mut impl FnMut(&Columns),
) -> Result<(), ParquetError> {
    let rows = group.rows();
    let take = |bytes: usize| group.limit.take((rows as u64).saturating_mul(bytes as u64));
    // Columns that the file does not have get defaults, and are not counted below.
    let absent = wanted.iter().filter(|column| !positions.contains_key(column.name)).count();
    take(8 * absent)?;
    let mut columns = Columns::default();
    let mut sources = Vec::new();
    for column in wanted {
        let Some(&at) = positions.get(column.name) else { continue };
        let source = match known_values(group, at, column.shape) {
            Some(KnownValues::Zeros) => {
                take(size_of::<i64>())?;
                columns.zeros.push(column.name);
                continue;
            }
            Some(KnownValues::Text(text)) => {
                take(size_of::<Arc<str>>())?;
                CellSource::Repeated(text)
            }
            None => CellSource::new(group.column(at)?, column.shape)?,
        };
        sources.push((source, column.unit));
        columns.cells.push((column.name.to_string(), Cells::new(column.shape)));
    }
    // The texts of the series are found by all of their numbers.
    let numbers = columns.cells.iter().position(|(name, _)| name == "series");
    if let Some((source, _)) = numbers.and_then(|at| sources.get_mut(at)) {
        let mut all = Cells::Long(Vec::new());
        source.read(rows, &mut all)?;
        if let Cells::Long(all) = all {
            columns.series = series.up_to(group, positions, &all)?;
            *source = CellSource::Numbers { all, next: 0 };
        }
    } else {
        let none = vec![0; if columns.zeros.contains(&"series") { rows } else { 0 }];
        columns.series = series.up_to(group, positions, &none)?;
    }
    let mut have = 0;
    while have < rows {
        columns.rows = (rows - have).min(BATCH);
        for ((source, unit), (_, cells)) in sources.iter_mut().zip(&mut columns.cells) {
            source.read(columns.rows, cells)?;
            if *unit == Unit::Time {
                scale(cells, |ms| ms.saturating_mul(MILLISECOND_US));
            }
        }
        if !columns.zeros.is_empty() {
            // The last batch may be shorter.
            let zeros = columns.zero_cells.get_or_insert_with(|| Cells::Long(Vec::new()));
            if let Cells::Long(zeros) = zeros {
                zeros.resize(columns.rows, 0);
            }
        }
        see(&columns);
        have += columns.rows;
    }
    Ok(())
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
fn known_values(group: &GroupReader<'_>, at: usize, shape: Shape) -> Option<KnownValues> {
    let column = group.metadata.column(at);
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

/// Where the cells of a column come from.
enum CellSource {
    /// All rows have this text.
    Repeated(Arc<str>),
    /// The numbers of the whole row group, and how many were passed on.
    Numbers {
        all: Vec<i64>,
        next: usize,
    },
    /// Whole numbers.
    Int64(ColumnReaderImpl<Int64Type>, Levels),
    Double(ColumnReaderImpl<DoubleType>),
    Bool(ColumnReaderImpl<BoolType>),
    Text(ColumnReaderImpl<ByteArrayType>, Levels, InternedTexts),
}

/// The levels that say which rows have a value.
#[derive(Default)]
struct Levels {
    defined: Vec<i16>,
    repeated: Vec<i16>,
}

/// Append the values of this many rows.
fn read_rows<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    levels: &mut Levels,
    values: &mut Vec<T::T>,
) -> Result<(), ParquetError> {
    levels.defined.clear();
    levels.repeated.clear();
    let mut have = 0;
    while have < rows {
        let (records, ..) = reader.read_records(
            rows - have,
            Some(&mut levels.defined),
            Some(&mut levels.repeated),
            values,
        )?;
        if records == 0 {
            return Err(ParquetError::EOF("a column is shorter than the others".to_string()));
        }
        have += records;
    }
    Ok(())
}

impl CellSource {
    fn new(reader: ColumnReader, shape: Shape) -> Result<CellSource, ParquetError> {
        Ok(match (shape, reader) {
            (
                Shape::Long | Shape::OptLong | Shape::Longs,
                ColumnReader::Int64ColumnReader(reader),
            ) => CellSource::Int64(reader, Levels::default()),
            (Shape::Double, ColumnReader::DoubleColumnReader(reader)) => CellSource::Double(reader),
            (Shape::Bool, ColumnReader::BoolColumnReader(reader)) => CellSource::Bool(reader),
            (Shape::Text | Shape::OptText, ColumnReader::ByteArrayColumnReader(reader)) => {
                CellSource::Text(reader, Levels::default(), InternedTexts::default())
            }
            _ => {
                return Err(ParquetError::General("a column has an unexpected type".to_string()));
            }
        })
    }

    /// Replace the cells by those of the next rows. Their memory is used again.
    fn read(&mut self, rows: usize, cells: &mut Cells) -> Result<(), ParquetError> {
        let none = &mut Levels::default();
        match (self, cells) {
            (CellSource::Repeated(text), Cells::Text(cells)) => {
                cells.clear();
                cells.resize(rows, text.clone());
            }
            (CellSource::Numbers { all, next }, Cells::Long(cells)) => {
                cells.clear();
                cells.extend(all.iter().skip(*next).take(rows));
                *next += rows;
            }
            (CellSource::Int64(reader, levels), Cells::Long(cells)) => {
                cells.clear();
                read_rows(reader, rows, levels, cells)?;
            }
            (CellSource::Int64(reader, levels), Cells::OptLong(cells)) => {
                let mut values = Vec::new();
                read_rows(reader, rows, levels, &mut values)?;
                *cells = optional(&levels.defined, values.into_iter());
            }
            (CellSource::Int64(reader, levels), Cells::Longs(lists)) => {
                let (mut values, mut ends) = std::mem::take(lists).into_ends();
                values.clear();
                read_rows(reader, rows, levels, &mut values)?;
                levels.ends(&mut ends);
                *lists = Lists::from_ends(values, ends);
            }
            (CellSource::Double(reader), Cells::Double(cells)) => {
                cells.clear();
                read_rows(reader, rows, none, cells)?;
            }
            (CellSource::Bool(reader), Cells::Bool(cells)) => {
                cells.clear();
                read_rows(reader, rows, none, cells)?;
            }
            (CellSource::Text(reader, levels, texts), Cells::Text(cells)) => {
                let mut values = Vec::new();
                read_rows(reader, rows, levels, &mut values)?;
                cells.clear();
                cells.extend(values.iter().map(|bytes| texts.intern(bytes)));
            }
            (CellSource::Text(reader, levels, texts), Cells::OptText(cells)) => {
                let mut values = Vec::new();
                read_rows(reader, rows, levels, &mut values)?;
                *cells = optional(&levels.defined, values.iter().map(|bytes| texts.intern(bytes)));
            }
            _ => return Err(ParquetError::General("a column has an unexpected type".to_string())),
        }
        Ok(())
    }
}

impl Levels {
    /// The number of values up to the end of each row's list.
    fn ends(&self, ends: &mut Vec<usize>) {
        ends.clear();
        let mut count = 0;
        for (level, (defined, repeated)) in self.defined.iter().zip(&self.repeated).enumerate() {
            if *repeated == 0 && level > 0 {
                ends.push(count);
            }
            count += usize::from(*defined > 0);
        }
        if !self.defined.is_empty() {
            ends.push(count);
        }
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
