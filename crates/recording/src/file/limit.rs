// SPDX-License-Identifier: PostgreSQL
//! Limits the memory for a file's values: a few bytes may stand for any number of equal values.

use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::{get_column_reader, ColumnReader};
use parquet::errors::ParquetError;
use parquet::file::reader::RowGroupReader;
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

    /// The reader of a column, whose values are counted before they are decoded.
    pub fn reader(
        &self,
        group: &dyn RowGroupReader,
        at: usize,
    ) -> Result<ColumnReader, ParquetError> {
        let column = group.metadata().column(at).column_descr_ptr();
        let value = match column.physical_type() {
            parquet::basic::Type::BYTE_ARRAY | parquet::basic::Type::FIXED_LEN_BYTE_ARRAY => {
                size_of::<parquet::data_type::ByteArray>()
            }
            _ => size_of::<i64>(),
        };
        let value = value as u64 + LEVELS;
        let pages = group.get_column_page_reader(at)?;
        Ok(get_column_reader(column, Box::new(Counted { pages, value, limit: self.clone() })))
    }
}

/// Pages whose values are counted before they are decoded.
struct Counted {
    pages: Box<dyn PageReader>,
    /// Size of a value, bytes.
    value: u64,
    limit: Limit,
}

impl Iterator for Counted {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Counted {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            let values = u64::from(page.num_values()).saturating_mul(self.value);
            self.limit.take(values.saturating_add(page.buffer().len() as u64))?;
        }
        Ok(page)
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
