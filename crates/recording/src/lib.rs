// SPDX-License-Identifier: PostgreSQL
//! Recordings: the frames of a server, interval by interval, as Parquet files that pandas,
//! DuckDB or Spark read without us. docs/recording.md describes the data set.
//!
//! A [`Writer`] puts each interval into a journal, turns the journal into parts every minute,
//! and minutes into hours (`upkeep`). A [`Recording`] reads parts and journal, gives back
//! [`segment::Frame`]s, alone or added up over a range, and everything that was noted beside
//! them. Nothing here knows how to look at a server, nor what the figures mean.

mod about;
mod batch;
mod commit;
mod error;
mod file;
mod frames;
mod grid;
mod host_metrics;
mod index;
mod journal;
mod merge;
mod range;
mod recording;
mod relations;
mod retention;
mod rollup;
mod row_builder;
mod rows;
mod scan;
mod series;
mod statement;
mod statements;
mod statistics;
mod store;
mod sum;
mod table;
mod upkeep;
mod writer;

pub use about::{About, FORMAT};
pub use batch::{Batch, TABLES};
pub use error::Error;
pub use frames::Frames;
pub use grid::{Grid, StatTotals};
pub use range::{format_utc, time_us, Range};
pub use recording::Recording;
pub use relations::relation_rows;
pub use retention::RetentionPolicy;
pub use row_builder::{statement_rows, RowBuilder};
pub use rows::{
    DeviceRow, EventRow, FrameRow, GapRow, KernelRow, MarkRow, RelationRow, RunRow, ServerIoRow,
    ServerRow, SessionsRow, SettingRow, StatementAccountRow, StatementRow, TextRow,
};
pub use series::Series;
pub use statistics::{HistogramRow, StatRow};
pub use sum::Latency;
pub use table::{Column, Shape, Table, Unit};
pub use writer::{LastFrame, Writer};
