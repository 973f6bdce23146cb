// SPDX-License-Identifier: PostgreSQL
//! Recordings: the frames of a server, interval by interval, as Parquet files that pandas,
//! DuckDB or Spark read without us. docs/reference-recording.md describes the data set.
//!
//! A [`Writer`] puts each interval into a journal, turns the journal into parts every minute,
//! and minutes into hours (`upkeep`). A [`Recording`] reads parts and journal, gives back
//! [`segment::Frame`]s, alone or added up over a range, and everything that was noted beside
//! them. Nothing here knows how to look at a server, nor what the figures mean.

mod about;
mod batch;
mod beside;
mod commit;
mod error;
mod frames;
mod grid;
mod index;
mod intake;
mod journal;
mod part;
mod range;
mod recording;
mod relations;
mod rollup;
mod rows;
mod series;
mod statement;
mod statements;
mod store;
mod sum;
mod table;
mod upkeep;
mod writer;

pub use about::{About, FORMAT};
pub use batch::{Batch, TABLES};
pub use error::Error;
pub use frames::Frames;
pub use grid::{Amount, Grid};
pub use intake::{statements, Intake};
pub use range::{in_words, time_us, Range};
pub use recording::Recording;
pub use relations::relations;
pub use rows::{
    DeviceRow, EventRow, FrameRow, GapRow, KernelRow, MarkRow, PartRow, RelationRow, RunRow,
    ServerIoRow, ServerRow, SessionsRow, SettingRow, StatementRow, TextRow,
};
pub use series::{Series, SpreadRow, StatRow};
pub use sum::Latency;
pub use table::{Column, Shape, Table, Unit};
pub use writer::{Keeping, Last, Writer};
