// SPDX-License-Identifier: PostgreSQL
//! Parquet's dictionary encoding in a form that compresses well.
//!
//! The library writes a dictionary in the order of first use, and the numbers of its entries in as few
//! bits as possible. This leaves nothing for the compressor to find: close values get unrelated numbers,
//! and numbers of 13 bits share no bytes. Here the dictionary is sorted, and its numbers take one or two
//! whole bytes, so that the values of a series share their high byte, and the compressor's byte codes
//! come close to the entropy. Every reader that supports dictionaries can read this.

use super::chunk::Chunk;
use super::numbers::Numbers;
use crate::table::Cells;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

/// Maximum size of a dictionary, whose numbers must fit into two bytes.
const MOST: usize = 1 << 16;

/// Encodes a column of numbers. `None`: the column has another type, too many distinct values, or none.
pub(super) fn encode(
    descr: &ColumnDescPtr,
    cells: &Cells,
    level: i32,
) -> Result<Option<Chunk>, ParquetError> {
    let is_double = matches!(cells, Cells::Double(_));
    let numbers = match cells {
        Cells::Double(cells) => Some(Numbers::of_bits(cells)),
        _ => Numbers::from_cells(cells),
    };
    let Some(numbers) = numbers else { return Ok(None) };
    let order = |n: &i64| if is_double { double_order(*n) } else { *n };
    let mut dictionary = numbers.values.to_vec();
    dictionary.sort_unstable_by_key(order);
    dictionary.dedup();
    let (Some(min), Some(max)) = (dictionary.first().copied(), dictionary.last().copied()) else {
        return Ok(None);
    };
    if dictionary.len() > MOST {
        return Ok(None);
    }
    let levels = numbers.defined.as_ref().map_or(numbers.values.len(), Vec::len);
    let count = |n: usize| u32::try_from(n).map_err(|e| ParquetError::External(Box::new(e)));
    let entries: Vec<u8> = dictionary.iter().flat_map(|n| n.to_le_bytes()).collect();
    let compressed = |bytes: &[u8]| {
        zstd::bulk::compress(bytes, level).map_err(|e| ParquetError::External(Box::new(e)))
    };
    let mut sink = TrackedWrite::new(Vec::new());
    let mut pages = SerializedPageWriter::new(&mut sink);
    let first = pages.write_page(CompressedPage::new(
        Page::DictionaryPage {
            buf: compressed(&entries)?.into(),
            num_values: count(dictionary.len())?,
            encoding: Encoding::PLAIN,
            is_sorted: true,
        },
        entries.len(),
    ))?;
    let body = data_page(&numbers, &dictionary, order);
    let second = pages.write_page(CompressedPage::new(
        Page::DataPage {
            buf: compressed(&body)?.into(),
            num_values: count(levels)?,
            encoding: Encoding::RLE_DICTIONARY,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        },
        body.len(),
    ))?;
    pages.close()?;
    let nulls = (levels - numbers.values.len()) as u64;
    let (from, to) = (f64::from_bits(min as u64), f64::from_bits(max as u64));
    let statistics = match is_double {
        // The order of NaN is undefined.
        true if from.is_nan() || to.is_nan() => None,
        true => Some(Statistics::double(Some(from), Some(to), None, Some(nulls), false)),
        false => Some(Statistics::int64(Some(min), Some(max), None, Some(nulls), false)),
    };
    let mut metadata = ColumnChunkMetaData::builder(descr.clone())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(level)?))
        .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
        .set_total_compressed_size((first.compressed_size + second.compressed_size) as i64)
        .set_total_uncompressed_size((first.uncompressed_size + second.uncompressed_size) as i64)
        .set_num_values(levels as i64)
        .set_dictionary_page_offset(Some(first.offset as i64))
        .set_data_page_offset(second.offset as i64);
    if let Some(statistics) = statistics {
        metadata = metadata.set_statistics(statistics);
    }
    let close = ColumnCloseResult {
        bytes_written: first.bytes_written + second.bytes_written,
        rows_written: numbers.rows as u64,
        metadata: metadata.build()?,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    };
    Ok(Some(Chunk { bytes: sink.into_inner()?.into(), close }))
}

/// Converts the bits of a double to an integer that sorts in the same order.
fn double_order(bits: i64) -> i64 {
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

/// Levels, the width of a number, and the numbers of the values in the dictionary.
fn data_page(numbers: &Numbers<'_>, dictionary: &[i64], order: impl Fn(&i64) -> i64) -> Vec<u8> {
    let bytes = if dictionary.len() <= 1 << 8 { 1 } else { 2 };
    let mut page = Vec::with_capacity(numbers.values.len() * bytes + 1024);
    for levels in [&numbers.repeated, &numbers.defined].into_iter().flatten() {
        let mut run = Vec::new();
        begin_run(&mut run, levels.len());
        for eight in levels.chunks(8) {
            let bits = eight.iter().enumerate();
            run.push(bits.fold(0, |byte, (at, level)| byte | u8::from(*level > 0) << at));
        }
        page.extend((run.len() as u32).to_le_bytes());
        page.extend(run);
    }
    page.push(8 * bytes as u8);
    begin_run(&mut page, numbers.values.len());
    for value in numbers.values.iter() {
        let number = dictionary.partition_point(|known| order(known) < order(value));
        page.extend(&number.to_le_bytes()[..bytes]);
    }
    // A run consists of whole groups of eight.
    let missing = numbers.values.len().next_multiple_of(8) - numbers.values.len();
    page.extend(std::iter::repeat_n(0, missing * bytes));
    page
}

/// The header of a bit-packed run of this many values.
fn begin_run(page: &mut Vec<u8>, values: usize) {
    let mut header = values.div_ceil(8) << 1 | 1;
    while header >= 0x80 {
        page.push(header as u8 | 0x80);
        header >>= 7;
    }
    page.push(header as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::read::read_columns;
    use crate::file::schema::schema;
    use crate::table::{Column, Columns, Lists, Shape, Unit};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use proptest::prelude::*;
    use std::sync::Arc;

    /// The column as a reader finds it.
    fn read(shape: Shape, cells: &Cells) -> Cells {
        let column = Column { name: "n", shape, unit: Unit::Count };
        let file = tempfile::NamedTempFile::new().unwrap();
        let schema = Arc::new(schema("t", &[column]).unwrap());
        let properties = Arc::new(WriterProperties::builder().build());
        let mut writer = SerializedFileWriter::new(file.as_file(), schema, properties).unwrap();
        let chunk = encode(&writer.schema_descr().column(0), cells, 3).unwrap().unwrap();
        let mut group = writer.next_row_group().unwrap();
        group.append_column(&chunk.bytes, chunk.close).unwrap();
        group.close().unwrap();
        writer.close().unwrap();
        let mut found = Cells::new(shape);
        let see = |columns: &Columns| found = columns.find("n").clone();
        read_columns(file.reopen().unwrap(), file.path(), &[column], see).unwrap();
        found
    }

    fn long() -> impl Strategy<Value = i64> {
        prop_oneof![Just(0), -3i64..300, any::<i64>()]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_was_written_is_read(
            longs in prop::collection::vec(long(), 1..2000),
            lists in prop::collection::vec(prop::collection::vec(long(), 0..4), 1..200),
            some in prop::collection::vec(prop::option::of(long()), 1..200),
            doubles in prop::collection::vec(prop_oneof![Just(-0.0), -1e9..1e20f64], 1..200),
        ) {
            match read(Shape::Long, &Cells::Long(longs.clone())) {
                Cells::Long(found) => prop_assert_eq!(found, longs),
                other => prop_assert!(false, "{:?}", other),
            }
            if lists.iter().any(|list| !list.is_empty()) {
                let mut all = Lists::new();
                lists.iter().for_each(|list| all.push(list.iter().copied()));
                match read(Shape::Longs, &Cells::Longs(all)) {
                    Cells::Longs(found) => {
                        prop_assert_eq!(found.len(), lists.len());
                        prop_assert!(found.iter().eq(lists.iter().map(Vec::as_slice)));
                    }
                    other => prop_assert!(false, "{:?}", other),
                }
            }
            if some.iter().any(Option::is_some) {
                match read(Shape::OptLong, &Cells::OptLong(some.clone())) {
                    Cells::OptLong(found) => prop_assert_eq!(found, some),
                    other => prop_assert!(false, "{:?}", other),
                }
            }
            match read(Shape::Double, &Cells::Double(doubles.clone())) {
                Cells::Double(found) => {
                    let bits = |all: &[f64]| all.iter().map(|n| n.to_bits()).collect::<Vec<_>>();
                    prop_assert_eq!(bits(&found), bits(&doubles));
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_left_to_others() {
        let descr = |shape| {
            let column = Column { name: "n", shape, unit: Unit::Count };
            let schema = Arc::new(schema("t", &[column]).unwrap());
            parquet::schema::types::SchemaDescriptor::new(schema).column(0)
        };
        let many = Cells::Long((0..=MOST as i64).collect());
        assert!(encode(&descr(Shape::Long), &many, 1).unwrap().is_none());
        let mut empty = Lists::new();
        (0..3).for_each(|_| empty.push([]));
        let none = Cells::Longs(empty);
        assert!(encode(&descr(Shape::Longs), &none, 1).unwrap().is_none());
        let most = Cells::Long((0..MOST as i64).collect());
        assert!(encode(&descr(Shape::Long), &most, 1).unwrap().is_some());
    }
}
