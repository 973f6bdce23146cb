// SPDX-License-Identifier: PostgreSQL
//! The ways in which Parquet keeps the cells of a column, of which one takes the least room.
//!
//! Which one that is depends on the load: counts that hardly repeat are near to each other, those
//! of a quiet server are always the same few. What is kept for long is therefore written in each
//! way, and the shortest stays; what will be merged in an hour is written as usual.

use crate::table::{Column, Shape};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;

/// How much work is done for less room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Care {
    /// Little: it will soon be written again.
    Little,
    /// Much: it stays.
    Much,
}

/// How a column's values are kept, before they are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// By their distance from one to the next.
    Near,
    /// Each that is different once, and which it is.
    Listed,
    /// As they are.
    Plain,
    /// Their first bytes, then their second, ...; of whole numbers few readers know it.
    Split,
}

/// Rows of a page: what repeats is found within one only.
const PAGE_ROWS: usize = 1 << 20;

impl Care {
    /// The ways to try; the first is the usual one.
    pub fn ways(self, shape: Shape) -> &'static [Way] {
        let all: &'static [Way] = match shape {
            Shape::Long | Shape::OptLong | Shape::Longs => &[Way::Near, Way::Listed, Way::Plain],
            Shape::Double => &[Way::Listed, Way::Plain, Way::Split],
            Shape::Bool => &[Way::Plain],
            Shape::Text | Shape::OptText => &[Way::Listed],
        };
        match self {
            Care::Little => &all[..1],
            Care::Much => all,
        }
    }

    /// What is the same for all columns.
    pub fn apply(self, builder: WriterPropertiesBuilder) -> WriterPropertiesBuilder {
        let (level, builder) = match self {
            Care::Little => (6, builder),
            Care::Much => (9, builder.set_data_page_row_count_limit(PAGE_ROWS)),
        };
        let level = ZstdLevel::try_new(level).unwrap_or_default();
        builder
            .set_compression(Compression::ZSTD(level))
            .set_statistics_enabled(EnabledStatistics::Chunk)
    }
}

impl Way {
    /// Keep a column so.
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
        let builder = builder.set_column_dictionary_enabled(path.clone(), self == Way::Listed);
        match self {
            Way::Listed => builder,
            Way::Near => builder.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            Way::Plain => builder.set_column_encoding(path, Encoding::PLAIN),
            Way::Split => builder.set_column_encoding(path, Encoding::BYTE_STREAM_SPLIT),
        }
    }
}
