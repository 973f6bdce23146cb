// SPDX-License-Identifier: PostgreSQL
//! Arguments of `tally study`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `tally study`.
#[derive(Debug, Args)]
#[command(after_help = "\
A study is a file, study.toml (docs/studies.md), or the name of a built-in study (`tally study \
list`). Studies run on scratch servers.

Examples:
  tally study list
  tally study show commit-delay
  tally study run commit-delay --quick
  tally study run ./study.toml -o results
  tally study report results")]
pub struct StudyArgs {
    /// Action
    #[command(subcommand)]
    pub what: StudyVerb,
}

/// Actions on studies.
#[derive(Debug, Subcommand)]
pub enum StudyVerb {
    /// List the built-in studies
    List {
        /// Print JSON (docs/reference-json.md)
        #[arg(long)]
        json: bool,
    },
    /// Show a study's question, arms and approximate duration
    Show {
        /// Name from `tally study list`, or a study file
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
    Run(StudyRunArgs),
    /// Rebuild the tables and the page from the cells in a directory
    Report {
        /// Directory of a run
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// Print the results as JSON (docs/reference-json.md) instead of the tables
        #[arg(long)]
        json: bool,
    },
}

/// Arguments of `tally study run`.
#[derive(Debug, Args)]
pub struct StudyRunArgs {
    /// Name from `tally study list`, or a study file
    #[arg(value_name = "NAME|FILE")]
    pub study: String,
    /// Directory for cells and results [default: study-NAME in the current directory]
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Run the quick variant, which takes minutes and has wider confidence intervals
    #[arg(long)]
    pub quick: bool,
    /// Directory to compare instead of the study's own; may be repeated
    #[arg(long, value_name = "DIR")]
    pub directory: Vec<PathBuf>,
    /// Allow arms to change the machine's clock source, which is restored afterwards
    #[arg(long)]
    pub set_clock_source: bool,
    /// Print the results as JSON (docs/reference-json.md) instead of the tables
    #[arg(long)]
    pub json: bool,
}
