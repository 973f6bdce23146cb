// SPDX-License-Identifier: PostgreSQL
//! The views of an interval, independent of the output format: rows, columns with units, order and filter; and
//! the renderers for terminal, text, HTML and JSON.

pub mod blocking;
pub mod calls;
pub mod deadlocks;
pub mod document;
pub mod duration;
pub mod escape;
pub mod events;
pub mod functions;
pub mod glob;
pub mod headline;
pub mod health;
pub mod host_metrics;
pub mod html;
pub mod indexes;
pub mod io;
pub mod json_id;
pub mod known;
pub mod locks;
pub mod measured;
pub mod method_edges;
pub mod methods;
pub mod moment;
pub mod output;
pub mod page;
pub mod panes;
pub mod population;
pub mod reading;
pub mod rows;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
pub mod session;
mod session_id;
pub mod settings;
mod sort;
pub mod statement_example;
pub mod statements;
pub mod table;
pub mod text;
pub mod timing;
pub mod units;
pub mod vacuum;

pub use host_metrics::HostMetrics;
pub use reading::{Reading, Recent, Recorded};
pub use sort::{Sort, SortParser};
