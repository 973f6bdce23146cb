// SPDX-License-Identifier: PostgreSQL
//! Parquet's encodings of a column, and the choice of the smallest.
//!
//! Which one is smallest depends on the load: on a busy server, counts hardly repeat but are close
//! together; on an idle server, they are always the same few. Files that stay are therefore encoded in
//! each way, and the smallest result is kept; files that will be merged within an hour get the usual
//! encoding.
//! BYTE_STREAM_SPLIT would be smaller still, but Spark 3 cannot read it.

use crate::table::{Column, Shape};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use ColumnEncoding::{Delta, Dictionary, Plain, SortedDictionary};

/// How much work to spend on a small file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// None, because a few numbers do not become smaller.
    None,
    /// Little, because the file will be merged soon.
    Fast,
    /// Much, because the file stays.
    Best,
}

/// How the values of a column are encoded before they are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnEncoding {
    /// The difference from one value to the next.
    Delta,
    /// Each distinct value once, and the number of each row's value.
    Dictionary,
    /// A sorted dictionary, with numbers of whole bytes.
    SortedDictionary,
    /// The values as they are.
    Plain,
}

/// Fewer numbers are not compressed.
const FEW: usize = 16;
/// Rows in a page; repetitions are only found within a page.
const PAGE_ROWS: usize = 1 << 20;

impl Effort {
    /// The compression effort that pays off for this number of values of this shape.
    pub fn on(self, shape: Shape, rows: usize) -> Effort {
        match shape {
            Shape::Long | Shape::OptLong | Shape::Double | Shape::Bool if rows < FEW => {
                Effort::None
            }
            _ => self,
        }
    }

    /// The encodings to try; the first is the usual one.
    pub fn encodings(self, shape: Shape) -> &'static [ColumnEncoding] {
        let all: &'static [ColumnEncoding] = match shape {
            Shape::Long | Shape::OptLong | Shape::Longs => {
                &[Delta, Dictionary, SortedDictionary, Plain]
            }
            Shape::Double => &[Dictionary, SortedDictionary, Plain],
            Shape::Bool => &[Plain],
            Shape::Text | Shape::OptText => &[Dictionary],
        };
        match self {
            Effort::None | Effort::Fast => &all[..1],
            Effort::Best => all,
        }
    }

    /// Set the properties that are the same for all columns.
    pub fn apply(self, builder: WriterPropertiesBuilder) -> WriterPropertiesBuilder {
        let builder = match self {
            Effort::None | Effort::Fast => builder,
            Effort::Best => builder.set_data_page_row_count_limit(PAGE_ROWS),
        };
        let compression = match self {
            Effort::None => Compression::UNCOMPRESSED,
            _ => Compression::ZSTD(ZstdLevel::try_new(self.level()).unwrap_or_default()),
        };
        builder
            .set_compression(compression)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            // A column has only one page, or a few.
            .set_offset_index_disabled(true)
    }

    /// The compressor's level.
    pub fn level(self) -> i32 {
        match self {
            Effort::None | Effort::Fast => 6,
            Effort::Best => 9,
        }
    }

    /// The level for a sorted dictionary, once it is known to be the smallest.
    pub fn last_level(self) -> i32 {
        match self {
            Effort::None | Effort::Fast => self.level(),
            Effort::Best => 19,
        }
    }
}

impl ColumnEncoding {
    /// Use this encoding for the column.
    pub fn apply(
        self,
        column: &Column,
        builder: WriterPropertiesBuilder,
    ) -> WriterPropertiesBuilder {
        let path = match column.shape {
            Shape::Longs => {
                ColumnPath::new(vec![column.name.into(), "list".into(), "element".into()])
            }
            _ => ColumnPath::from(column.name),
        };
        let builder = builder.set_column_dictionary_enabled(path.clone(), self == Dictionary);
        match self {
            Dictionary | SortedDictionary => builder,
            Delta => builder.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            Plain => builder.set_column_encoding(path, Encoding::PLAIN),
        }
    }
}
