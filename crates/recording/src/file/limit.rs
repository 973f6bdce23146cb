// SPDX-License-Identifier: PostgreSQL
//! Decompresses the pages of columns, and limits the memory for a file's values: a few bytes may stand for any number
//! of equal values.

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::{get_column_reader, ColumnReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::serialized_reader::SerializedPageReader;
use std::cell::RefCell;
use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Limit for a file of any size, bytes.
const FREE: u64 = 64 << 20;
/// Limit for a larger file, as a multiple of its size. Files of real servers stay below 300.
const RATIO: u64 = 1000;
/// Limit for all files, bytes.
const MOST: u64 = 2 << 30;
/// Bytes of the levels that assign a value to a row.
const LEVELS: u64 = 4;

/// The memory that is left, bytes.
#[derive(Debug, Clone)]
pub(super) struct Limit {
    limit: u64,
    left: Arc<AtomicU64>,
}

impl Limit {
    /// The limit for a file of this length.
    pub fn of_file(length: u64) -> Limit {
        let limit = FREE.saturating_add(length.saturating_mul(RATIO)).min(MOST);
        Limit { limit, left: Arc::new(limit.into()) }
    }

    /// The memory that is left, bytes.
    fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Count this many more bytes.
    pub fn take(&self, bytes: u64) -> Result<(), ParquetError> {
        let take = |left: u64| left.checked_sub(bytes);
        match self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Ok(()),
            Err(_) => Err(ParquetError::General(format!(
                "its values would take more than {} MB of memory, the limit for a file of its size",
                self.limit >> 20
            ))),
        }
    }
}

/// Reads the columns of a row group.
pub(super) struct GroupReader<'m> {
    /// The whole file.
    pub file: Arc<Bytes>,
    pub metadata: &'m RowGroupMetaData,
    pub limit: &'m Limit,
}

impl GroupReader<'_> {
    /// Number of rows.
    pub fn rows(&self) -> usize {
        usize::try_from(self.metadata.num_rows()).unwrap_or(0)
    }

    /// The reader of a column, whose values are counted before they are decoded.
    pub fn column(&self, at: usize) -> Result<ColumnReader, ParquetError> {
        let chunk = self.metadata.column(at);
        let column = chunk.column_descr_ptr();
        let value = match column.physical_type() {
            parquet::basic::Type::BYTE_ARRAY | parquet::basic::Type::FIXED_LEN_BYTE_ARRAY => {
                size_of::<parquet::data_type::ByteArray>()
            }
            _ => size_of::<i64>(),
        };
        let value = value as u64 + LEVELS;
        let is_compressed = match chunk.compression() {
            Compression::UNCOMPRESSED => false,
            Compression::ZSTD(_) => true,
            other => {
                return Err(ParquetError::General(format!("unsupported compression {other}")));
            }
        };
        // The library would make a compressor and a decompressor for each column, which takes longer than to
        // decompress a few numbers.
        let plain = chunk.clone().into_builder().set_compression(Compression::UNCOMPRESSED);
        let pages =
            SerializedPageReader::new(self.file.clone(), &plain.build()?, self.rows(), None)?;
        let limit = self.limit.clone();
        let pages = Counted { pages: Box::new(pages), is_compressed, value, limit };
        Ok(get_column_reader(column, Box::new(pages)))
    }
}

thread_local! {
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> =
        const { RefCell::new(None) };
}

/// Pages whose values are counted before they are decoded.
struct Counted {
    /// The pages as they are in the file.
    pages: Box<dyn PageReader>,
    is_compressed: bool,
    /// Size of a value, bytes.
    value: u64,
    limit: Limit,
}

/// These bytes, of which the first `plain` are not compressed.
fn decompress(bytes: &[u8], plain: usize, limit: &Limit) -> Result<Bytes, ParquetError> {
    let damaged = || ParquetError::EOF("a page is shorter than its levels".to_string());
    let (levels, frame) = bytes.split_at_checked(plain).ok_or_else(damaged)?;
    let mut whole = levels.to_vec();
    if frame.is_empty() {
        return Ok(whole.into());
    }
    match zstd::zstd_safe::get_frame_content_size(frame) {
        Ok(Some(size)) => {
            limit.take(size)?;
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            let contents = DECOMPRESSOR.with_borrow_mut(|known| {
                let decompressor = match known {
                    Some(decompressor) => decompressor,
                    None => known.insert(zstd::bulk::Decompressor::new()?),
                };
                decompressor.decompress(frame, size)
            })?;
            if whole.is_empty() {
                whole = contents;
            } else {
                whole.extend(contents);
            }
        }
        // Other writers need not say it.
        _ => {
            let frame = zstd::stream::read::Decoder::with_buffer(frame)?;
            frame.take(limit.left().saturating_add(1)).read_to_end(&mut whole)?;
            limit.take((whole.len() - plain) as u64)?;
        }
    }
    Ok(whole.into())
}

impl Iterator for Counted {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Counted {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let Some(mut page) = self.pages.get_next_page()? else { return Ok(None) };
        self.limit.take(u64::from(page.num_values()).saturating_mul(self.value))?;
        let (bytes, plain) = match &mut page {
            Page::DataPageV2 {
                buf,
                def_levels_byte_len,
                rep_levels_byte_len,
                is_compressed,
                ..
            } => {
                let levels = def_levels_byte_len.saturating_add(*rep_levels_byte_len);
                // Without compression, all of it is plain.
                let plain = if *is_compressed { levels as usize } else { buf.len() };
                (buf, plain)
            }
            Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. } => (buf, 0),
        };
        match self.is_compressed {
            true => *bytes = decompress(bytes, plain, &self.limit)?,
            false => self.limit.take(bytes.len() as u64)?,
        }
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool, ParquetError> {
        self.pages.at_record_boundary()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_decompressed_whether_they_tell_their_size_or_not() {
        let contents: Vec<u8> = (0..100_000u32).flat_map(|n| (n % 7).to_le_bytes()).collect();
        let told = zstd::bulk::compress(&contents, 3).unwrap();
        let untold = zstd::stream::encode_all(&contents[..], 3).unwrap();
        let size = |frame| zstd::zstd_safe::get_frame_content_size(frame).unwrap();
        assert_eq!((size(&told), size(&untold)), (Some(400_000), None));
        for frame in [told, untold] {
            let limit = Limit::of_file(0);
            assert_eq!(decompress(&frame, 0, &limit).unwrap(), contents);
            assert_eq!(limit.left(), FREE - 400_000);
            let page = [b"levels", &frame[..]].concat();
            let found = decompress(&page, 6, &limit).unwrap();
            assert_eq!((&found[..6], &found[6..]), (&b"levels"[..], &contents[..]));
            assert_eq!(decompress(&page[..6], 6, &limit).unwrap(), &b"levels"[..]);
            assert!(decompress(&page[..5], 6, &limit).is_err());
            assert!(decompress(&frame[..frame.len() - 9], 0, &limit).is_err());
            limit.take(limit.left() - 399_999).unwrap();
            let error = decompress(&frame, 0, &limit).unwrap_err().to_string();
            assert!(error.contains("MB of memory"), "{error}");
        }
    }
}
