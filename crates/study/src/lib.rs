// SPDX-License-Identifier: PostgreSQL
//! Experiments: a study as a file, run in randomised order with an A/A control, and its answer with the
//! statistics behind it. docs/studies.md is the manual.
//!
//! The way of a run: `file` is what is written and `plan` what is done; `order` draws the blocks, `run`
//! goes through them and `journal` keeps each cell. A cell of a restarted arm is `measure`'s, on the
//! `server` of its arm, under a `load`, through `window`s; those of arms that take turns are `toggle`'s.
//! `answer` makes figures of the cells, `tables` and `charts` show them, `page` and `text` write them.

pub mod about;
mod answer;
mod background;
mod cell;
mod charts;
mod clock_source;
pub mod cost;
mod expression;
mod file;
mod file_systems;
mod fit_table;
mod gate;
mod instrument;
pub mod journal;
mod latency;
mod listing;
mod live;
mod load;
mod material;
mod measure;
mod numbers;
mod order;
mod page;
mod plan;
mod processes;
pub mod results;
pub mod run;
mod selector;
pub mod server;
mod shown;
pub mod stock;
mod storage;
mod svg;
mod tables;
pub mod text;
mod toggle;
mod usl;
mod views;
mod window;
mod words;
mod worst;

pub use file::Study;
