// SPDX-License-Identifier: PostgreSQL
//! `tally study`: runs an experiment defined in a file, in randomised order, and reports its results.

mod args;

use std::path::PathBuf;

use crate::engine::experiment::{find, finish, list, parse, report, show};
use crate::study::kind::ServerStudies;
use crate::study::{run, server};
use error::Error;

pub use args::{StudyArgs, StudyRunArgs, StudyVerb};

/// Lists, shows, runs or reports studies.
pub fn run(args: &StudyArgs) -> Result<(), Error> {
    match &args.what {
        StudyVerb::List { json } => list::<ServerStudies>(*json),
        StudyVerb::Show { study, file, json } => show::<ServerStudies>(study, *file, *json),
        StudyVerb::Run(args) => run_one(args),
        StudyVerb::Report { directory, json } => report::<ServerStudies>(directory, *json),
    }
}

fn run_one(args: &StudyRunArgs) -> Result<(), Error> {
    let found = find::<ServerStudies>(&args.study)?;
    let study = parse::<ServerStudies>(&args.study, &found.text)?;
    let folder =
        args.output.clone().unwrap_or_else(|| PathBuf::from(format!("study-{}", study.name)));
    let options = run::StudyRunOptions {
        text: found.text,
        folder: folder.clone(),
        quick: args.quick,
        directories: args.directory.clone(),
        here: server::Here {
            folder: found.folder.unwrap_or_else(|| PathBuf::from(".")),
            may_set_clock_source: args.set_clock_source,
        },
    };
    finish::<ServerStudies>(&folder, run::run(options), args.json)
}
