// SPDX-License-Identifier: PostgreSQL
//! Queries over the recordings of many servers, for existing engines: DuckDB, ClickHouse and Spark.
//!
//! Recordings are Parquet files under a [`Root`]. A [`View`] defines which of their rows count and what its
//! columns mean; a [`Query`] answers a question from views. Each is defined once, as SQL with a few expressions
//! in braces that are written differently for each [`Dialect`]; the columns of files come from the recording's
//! tables. This crate does not run an engine. docs/fleet.md is the guide.

mod answer;
mod charts;
mod dashboards;
mod dialect;
mod kept;
mod local;
mod quantiles;
mod queries;
mod root;
mod source;
mod tables;
mod template;
mod valid;
mod views;
mod window;

pub use answer::table;
pub use charts::{Chart, Course, CHARTS, OTHERS};
pub use dialect::Dialect;
pub use kept::Granularity;
pub use queries::{Query, QUERIES};
pub use root::Root;
pub use tables::{refresh, tables};
pub use views::{schema, View, VIEWS};
pub use window::{HostFilter, QueryParams, Window};
