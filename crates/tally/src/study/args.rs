// SPDX-License-Identifier: PostgreSQL
//! Arguments of `tally study`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Arguments of `tally study`.
#[derive(Debug, Args)]
#[command(after_help = "\
A study is a file: docs/studies.md says what it can say. Those that the command carries repeat the
experiments that asked for pgtally. They run on throw-away servers.

Examples:
  tally study list
  tally study show commit-delay
  tally study run commit-delay --quick
  tally study run ./study.toml -o results
  tally study report results")]
pub struct StudyArgs {
    /// What to do
    #[command(subcommand)]
    pub what: StudyVerb,
}

/// What can be done with studies.
#[derive(Debug, Subcommand)]
pub enum StudyVerb {
    /// List the studies that the command carries
    List {
        /// Print JSON (docs/reference-json.md)
        #[arg(long)]
        json: bool,
    },
    /// Say what a study asks, with which arms, and about how long it takes
    Show {
        /// One of `tally study list`, or a study's file
        #[arg(value_name = "NAME|FILE")]
        study: String,
        /// Print the study's file as it stands
        #[arg(long, conflicts_with = "json")]
        file: bool,
        /// Print JSON (docs/reference-json.md)
        #[arg(long)]
        json: bool,
    },
    /// Run one; what an interrupted run has left undone when it is given the same directory
    Run(StudyRunArgs),
    /// Make tables and page again from the cells in a directory
    Report {
        /// The directory of a run
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
    /// One of `tally study list`, or a study's file
    #[arg(value_name = "NAME|FILE")]
    pub study: String,
    /// Where its cells and results go; without it, study-NAME here
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// The quick variant: minutes, and wider intervals
    #[arg(long)]
    pub quick: bool,
    /// Compare these directories instead of the study's own (again for each)
    #[arg(long, value_name = "DIR")]
    pub directory: Vec<PathBuf>,
    /// Let arms change the kernel's clock source, which is the whole machine's; it is put back
    #[arg(long)]
    pub set_clock_source: bool,
    /// Print the results as JSON (docs/reference-json.md) instead of the tables
    #[arg(long)]
    pub json: bool,
}
