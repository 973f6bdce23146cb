// SPDX-License-Identifier: PostgreSQL
//! One part of a table: a Parquet file, written whole or read whole.

use crate::error::Error;
use crate::series;
use crate::table::{Cells, Column, Columns, Shape, Table, Unit};
use parquet::basic::ZstdLevel;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::column::reader::{get_typed_column_reader, ColumnReader, ColumnReaderImpl};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Where the metadata names the series.
const SERIES_KEY: &str = "pgtally.series";
/// Times are kept in milliseconds: the rest of a time of day is chance, which takes room.
const MILLISECOND_US: i64 = 1000;
/// Rows that are handed over at once.
const BATCH: usize = 1 << 16;

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

fn schema(table: &str, columns: &[Column]) -> Result<Type, ParquetError> {
    let fields = columns.iter().map(|column| field(column).map(Arc::new));
    Type::group_type_builder(table).with_fields(fields.collect::<Result<_, _>>()?).build()
}

fn properties(columns: &[Column], metadata: Option<String>) -> Result<WriterProperties, Error> {
    let level = ZstdLevel::try_new(6).unwrap_or_default();
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("pgtally ", env!("CARGO_PKG_VERSION")).to_string())
        .set_compression(Compression::ZSTD(level))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_dictionary_enabled(true);
    for column in columns {
        let path = match column.shape {
            Shape::Long | Shape::OptLong => ColumnPath::from(column.name),
            Shape::Longs => {
                ColumnPath::new(vec![column.name.into(), "list".into(), "element".into()])
            }
            _ => continue,
        };
        // Numbers that hardly repeat, but are near to each other.
        builder = builder
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    let metadata = metadata.map(|text| vec![KeyValue::new(SERIES_KEY.to_string(), text)]);
    Ok(builder.set_key_value_metadata(metadata).build())
}

/// Write rows, which are sorted, to a new file.
pub(crate) fn write<T: Table>(path: &Path, rows: &[T]) -> Result<(), Error> {
    let columns = T::columns();
    let file = File::create(path).map_err(Error::io(path))?;
    let write = || -> Result<(), ParquetError> {
        let schema = Arc::new(schema(T::NAME, &columns)?);
        let properties = properties(&columns, T::metadata(rows))
            .map_err(|e| ParquetError::General(e.to_string()))?;
        let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
        let mut group = writer.next_row_group()?;
        for (mut cells, column) in T::store(rows).into_iter().zip(&columns) {
            if column.unit == Unit::Time {
                scale(&mut cells, |us| us.div_euclid(MILLISECOND_US));
            }
            if let Some(mut column) = group.next_column()? {
                put(column.untyped(), cells)?;
                column.close()?;
            }
        }
        group.close()?;
        writer.close()?;
        Ok(())
    };
    write().map_err(failed(path))
}

fn scale(cells: &mut Cells, by: impl Fn(i64) -> i64) {
    if let Cells::Long(cells) = cells {
        cells.iter_mut().for_each(|cell| *cell = by(*cell));
    }
}

fn put(column: &mut ColumnWriter<'_>, cells: Cells) -> Result<(), ParquetError> {
    let texts = |text: &Arc<str>| ByteArray::from(text.as_bytes().to_vec());
    match (column, cells) {
        (ColumnWriter::Int64ColumnWriter(to), Cells::Long(cells)) => {
            to.write_batch(&cells, None, None)?;
        }
        (ColumnWriter::Int64ColumnWriter(to), Cells::OptLong(cells)) => {
            let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
            let values: Vec<i64> = cells.into_iter().flatten().collect();
            to.write_batch(&values, Some(&levels), None)?;
        }
        (ColumnWriter::Int64ColumnWriter(to), Cells::Longs(cells)) => {
            let (mut values, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
            for list in &cells {
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
            to.write_batch(&cells, None, None)?;
        }
        (ColumnWriter::BoolColumnWriter(to), Cells::Bool(cells)) => {
            to.write_batch(&cells, None, None)?;
        }
        (ColumnWriter::ByteArrayColumnWriter(to), Cells::Text(cells)) => {
            // In pieces: a text that many rows have is not copied for all of them at once.
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

/// Read the rows of a part.
pub(crate) fn read<T: Table>(file: File, path: &Path) -> Result<Vec<T>, Error> {
    let wanted: Vec<Column> =
        T::columns().into_iter().filter(|column| !T::repeats().contains(&column.name)).collect();
    let mut rows = Vec::new();
    read_columns(file, path, &wanted, |columns| rows.extend(T::load(columns)))?;
    Ok(rows)
}

/// Read some columns of a part, group by group of rows.
pub(crate) fn read_columns(
    file: File,
    path: &Path,
    wanted: &[Column],
    mut see: impl FnMut(&Columns),
) -> Result<(), Error> {
    // A damaged file may lead the reader where its author did not think of.
    let read = std::panic::AssertUnwindSafe(|| -> Result<(), ParquetError> {
        let reader = SerializedFileReader::new(file)?;
        let metadata = reader.metadata().file_metadata();
        let pairs = metadata.key_value_metadata().into_iter().flatten();
        let named = pairs.filter(|pair| pair.key == SERIES_KEY).find_map(|pair| pair.value.clone());
        let series = named.map_or_else(Vec::new, |text| series::of_metadata(&text));
        let places: HashMap<String, usize> = (0..)
            .zip(metadata.schema_descr().columns())
            .filter_map(|(at, column)| Some((column.path().parts().first()?.clone(), at)))
            .collect();
        for group in 0..reader.num_row_groups() {
            let group = reader.get_row_group(group)?;
            let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            let mut columns = Columns { rows, cells: Vec::new(), series: series.clone() };
            for column in wanted {
                if let Some(&at) = places.get(column.name) {
                    let mut cells = get(&*group, at, column.shape, rows)?;
                    if column.unit == Unit::Time {
                        scale(&mut cells, |ms| ms.saturating_mul(MILLISECOND_US));
                    }
                    columns.cells.push((column.name.to_string(), cells));
                }
            }
            see(&columns);
        }
        Ok(())
    });
    match std::panic::catch_unwind(read) {
        Ok(done) => done.map_err(failed(path)),
        Err(_) => Err(Error::Part { path: path.to_path_buf(), what: "damaged".to_string() }),
    }
}

/// All values of a column, with the levels that say where there are none.
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
        return Err(ParquetError::General("a column of another type".to_string()));
    }
    let mut typed: ColumnReaderImpl<T> = get_typed_column_reader(reader);
    let mut read = Read { values: Vec::new(), defined: Vec::new(), repeated: Vec::new() };
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

/// Texts, each kept once.
#[derive(Default)]
struct Texts {
    known: HashMap<Vec<u8>, Arc<str>>,
}

impl Texts {
    fn of(&mut self, bytes: &ByteArray) -> Arc<str> {
        if let Some(text) = self.known.get(bytes.data()) {
            return text.clone();
        }
        let text: Arc<str> = String::from_utf8_lossy(bytes.data()).into();
        self.known.insert(bytes.data().to_vec(), text.clone());
        text
    }
}

fn get(
    group: &dyn RowGroupReader,
    at: usize,
    shape: Shape,
    rows: usize,
) -> Result<Cells, ParquetError> {
    let reader = group.get_column_reader(at)?;
    let mut texts = Texts::default();
    Ok(match shape {
        Shape::Long => Cells::Long(all::<Int64Type>(reader, rows)?.values),
        Shape::Double => Cells::Double(all::<DoubleType>(reader, rows)?.values),
        Shape::Bool => Cells::Bool(all::<BoolType>(reader, rows)?.values),
        Shape::Text => {
            let read = all::<ByteArrayType>(reader, rows)?;
            Cells::Text(read.values.iter().map(|bytes| texts.of(bytes)).collect())
        }
        Shape::OptLong => {
            let read = all::<Int64Type>(reader, rows)?;
            let mut values = read.values.into_iter();
            let cell = |defined: &i16| if *defined > 0 { values.next() } else { None };
            Cells::OptLong(read.defined.iter().map(cell).collect())
        }
        Shape::OptText => {
            let read = all::<ByteArrayType>(reader, rows)?;
            let mut values = read.values.iter();
            let cell = |defined: &i16| {
                if *defined > 0 {
                    values.next().map(|bytes| texts.of(bytes))
                } else {
                    None
                }
            };
            Cells::OptText(read.defined.iter().map(cell).collect())
        }
        Shape::Longs => {
            let read = all::<Int64Type>(reader, rows)?;
            let mut lists: Vec<Vec<i64>> = Vec::with_capacity(rows);
            let mut values = read.values.into_iter();
            for (defined, repeated) in read.defined.iter().zip(&read.repeated) {
                if *repeated == 0 {
                    lists.push(Vec::new());
                }
                if *defined > 0 {
                    if let (Some(list), Some(value)) = (lists.last_mut(), values.next()) {
                        list.push(value);
                    }
                }
            }
            Cells::Longs(lists)
        }
    })
}
