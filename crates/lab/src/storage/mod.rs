// SPDX-License-Identifier: PostgreSQL
//! Storage under load: a steady background load, and commands timed while it runs, before and after the storage stops
//! keeping up. docs/storage-studies.md is the manual.
//!
//! `file` parses a study. `run` goes through the arms in randomised order and measures each `cell`: in an
//! `arm_directory` with a `tree` of files, under the load of the `engine` (fio), with `victim`s and `limit`s, and
//! possibly a `server`. `answer` computes figures from the cells' logs; `tables`, `charts` and `page` show them.

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
mod tree;
mod victim;

pub use answer::StorageResults;
pub use file::StorageStudy;

use crate::engine::verb::ExperimentVerb;
use clap::Args;
use error::Error;
use kind::StorageStudies;

/// Arguments of `tally storage`.
#[derive(Debug, Args)]
#[command(after_help = "\
A storage study is a file, storage.toml (docs/storage-studies.md), or the name of a built-in study \
(`tally storage list`). fio generates the background load. Files are created in new directories and \
on loop devices, and removed afterwards.

Examples:
  tally storage list
  tally storage show storage-victim
  tally storage run storage-victim --quick
  tally storage run storage-victim --for 4h --directory /mnt/array -o array
  tally storage run ./storage.toml
  tally storage report array
  tally report array/recordings/full-0")]
pub struct StorageArgs {
    /// Action
    #[command(subcommand)]
    pub what: ExperimentVerb<StorageStudies>,
}

/// Lists, shows, runs or reports storage studies.
pub fn run(args: &StorageArgs) -> Result<(), Error> {
    args.what.run()
}
