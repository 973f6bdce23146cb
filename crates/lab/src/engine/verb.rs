// SPDX-License-Identifier: PostgreSQL
//! The actions of `tally study` and `tally storage`, which are the same but for the arguments of `run`.

use std::path::PathBuf;

use clap::Subcommand;

use super::experiment::{self, Experiment};
use error::Error;

/// Actions on studies of one kind.
#[derive(Debug, Subcommand)]
pub enum ExperimentVerb<E: Experiment> {
    /// List the built-in studies
    List {
        /// Print JSON (docs/reference-json.md)
        #[arg(long)]
        json: bool,
    },
    /// Show a study
    #[command(about = E::SHOWS)]
    Show {
        /// Study
        #[arg(value_name = "NAME|FILE", help = study_help(E::KIND))]
        study: String,
        /// Print the study file unchanged
        #[arg(long, conflicts_with = "json")]
        file: bool,
        /// Print JSON (docs/reference-json.md)
        #[arg(long)]
        json: bool,
    },
    /// Run a study, or continue an interrupted run in the same directory
    Run(E::RunArgs),
    /// Rebuild the tables and the page
    #[command(about = E::REPORTS)]
    Report {
        /// Directory of a run
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// Print the results as JSON (docs/reference-json.md) instead of the tables
        #[arg(long)]
        json: bool,
    },
}

/// Help of the argument that names a study of this kind.
pub fn study_help(kind: &str) -> String {
    format!("Name from `tally {kind} list`, or a study file")
}

impl<E: Experiment> ExperimentVerb<E> {
    /// Lists, shows, runs or reports studies.
    pub fn run(&self) -> Result<(), Error> {
        match self {
            Self::List { json } => experiment::list::<E>(*json),
            Self::Show { study, file, json } => experiment::show::<E>(study, *file, *json),
            Self::Run(args) => experiment::run::<E>(args),
            Self::Report { directory, json } => experiment::report::<E>(directory, *json),
        }
    }
}
