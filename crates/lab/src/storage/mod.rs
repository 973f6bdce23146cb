// SPDX-License-Identifier: PostgreSQL
//! Storage under load: a steady background load, and commands timed while it runs, before and after the storage stops
//! keeping up. docs/storage-studies.md is the manual.
//!
//! `file` parses a study. `run` goes through the arms in randomised order and measures each `cell`: in an
//! `arm_directory` with a `tree` of files, under the load of the `engine` (fio), with `victim`s and `limit`s, and
//! possibly a `server`. `answer` computes figures from the cells' logs; `tables`, `charts`, `text` and `page` show
//! them.

mod answer;
mod arm_directory;
mod arms;
mod cell;
mod charts;
mod engine;
pub mod file;
mod kind;
mod limit;
mod log;
mod machine;
mod page;
mod record;
mod run;
mod server;
mod tables;
mod text;
mod tree;
pub mod verb;
mod victim;

pub use answer::StorageResults;
pub use file::StorageStudy;
