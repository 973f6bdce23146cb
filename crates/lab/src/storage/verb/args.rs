// SPDX-License-Identifier: PostgreSQL
//! Arguments of `tally storage`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

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
    pub what: StorageVerb,
}

/// Actions on storage studies.
#[derive(Debug, Subcommand)]
pub enum StorageVerb {
    /// List the built-in studies
    List {
        /// Print JSON (docs/reference-json.md)
        #[arg(long)]
        json: bool,
    },
    /// Show a study's question, arms, victims and approximate duration
    Show {
        /// Name from `tally storage list`, or a study file
        #[arg(value_name = "NAME|FILE")]
        study: String,
        /// Print the study file unchanged
        #[arg(long, conflicts_with = "json")]
        file: bool,
        /// Print JSON (docs/reference-json.md)
        #[arg(long)]
        json: bool,
    },
    /// Run a study, or continue an interrupted run in the same directory
    Run(StorageRunArgs),
    /// Rebuild the tables and the page from the logs in a directory
    Report {
        /// Directory of a run
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// Print the results as JSON (docs/reference-json.md) instead of the tables
        #[arg(long)]
        json: bool,
    },
}

/// Arguments of `tally storage run`.
#[derive(Debug, Args)]
pub struct StorageRunArgs {
    /// Name from `tally storage list`, or a study file
    #[arg(value_name = "NAME|FILE")]
    pub study: String,
    /// Directory for logs and results [default: storage-NAME in the current directory]
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Directory for the files of arms that set none [default: the temporary directory]
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Length of each cell, such as 4h, instead of the study's
    #[arg(long = "for", value_name = "TIME", value_parser = cell_length)]
    pub length: Option<Duration>,
    /// Run the quick variant, which takes minutes
    #[arg(long)]
    pub quick: bool,
    /// Print the results as JSON (docs/reference-json.md) instead of the tables
    #[arg(long)]
    pub json: bool,
}

fn cell_length(text: &str) -> Result<Duration, String> {
    view::duration::within(text, Duration::from_secs(5), Duration::from_secs(30 * 86_400))
}
