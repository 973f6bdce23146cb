// SPDX-License-Identifier: PostgreSQL
//! Recordings: the frames of a server, interval by interval, in Parquet files that pandas, DuckDB and
//! Spark can read. docs/reference-recording.md describes the data set.
//!
//! A [`RowBuilder`] turns frames into rows. A [`Writer`] writes them to a journal, moves the journal
//! to Parquet files every minute, and merges files to hours (`upkeep`). A [`Recording`] reads files
//! and journal: [`segment::Frame`]s, sums over a range, and events, settings and host metrics.
//! Nothing here connects to a server.

mod about;
mod batch;
mod client_waits;
mod commit;
mod details;
mod error;
mod file;
mod files;
mod fingerprint;
mod frames;
mod grid;
mod host_metrics;
mod index;
mod journal;
mod merge;
mod plan_rows;
mod plans;
mod range;
#[rustfmt::skip]
mod recorded_statement;
mod recording;
mod relations;
mod rollup;
mod row_builder;
mod rows;
mod scan;
mod series;
mod server_log;
mod session_history;
mod slow_executions;
mod statement;
mod statement_history;
mod statement_keys;
mod statements;
mod statistics;
mod store;
mod sum;
mod table;
mod texts;
mod totals;
mod upkeep;
mod vacuum;
mod writer;

pub use self::error::Error;
pub use about::{About, FORMAT};
pub use batch::{Batch, TABLES};
pub use client_waits::{ClientWaitsRow, ClientWaitsSum, EndedSessionsRow};
pub use details::Detail;
pub use file::panic_is_expected;
pub use files::Files;
pub use fingerprint::{
    comparable_fingerprint, fingerprint, normalized, synonyms, token_ranges, without_constants,
};
pub use frames::Frames;
pub use grid::Grid;
pub use plan_rows::{PlanRow, PlanTextRow};
pub use plans::RecordedPlan;
pub use range::{format_utc, time_us, Range};
pub use recorded_statement::RecordedStatementRow;
pub use recording::Recording;
pub use relations::{relation_rows, RecordedRelations};
pub use row_builder::{statement_rows, RowBuilder};
pub use rows::{
    step_of, DeviceRow, EventRow, FrameRow, GapRow, KernelRow, MarkRow, RelationRow, RunRow,
    ServerIoRow, ServerRow, SessionsRow, SettingRow, StatementAccountRow, TextKey, TextRow,
};
pub use series::Series;
pub use server_log::{LogFileRow, LogRow};
pub use session_history::SessionHistoryRow;
pub use slow_executions::SlowExecutionRow;
pub use statement_history::StatementHistory;
pub use statements::{StatementSeries, StatementTexts, StatementsOverTime};
pub use statistics::{HistogramRow, StatRow};
pub use store::{file_name_of_host, Compaction, DataFile, GRADES, SHIP};
pub use sum::Latency;
pub use table::{Column, Shape, Table, Unit};
pub use texts::Texts;
pub use totals::StatTotals;
pub use upkeep::RetentionPolicy;
pub use vacuum::{ConditionRow, DeadRowsRow, SnapshotRow};
pub use writer::{LastFrame, Writer};

/// The directory of the client's recording, inside the directory of the server's recording.
pub const CLIENT_DIRECTORY: &str = "client";
