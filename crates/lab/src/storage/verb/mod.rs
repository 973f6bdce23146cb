// SPDX-License-Identifier: PostgreSQL
//! `tally storage`: times commands under a steady load on storage, as defined in a file, and reports when the storage
//! stops keeping up.

mod args;

use std::path::PathBuf;

use crate::engine::experiment::{find, finish, list, parse, report, show};
use crate::storage::kind::StorageStudies;
use crate::storage::run;
use error::Error;

pub use args::{StorageArgs, StorageRunArgs, StorageVerb};

/// Lists, shows, runs or reports storage studies.
pub fn run(args: &StorageArgs) -> Result<(), Error> {
    match &args.what {
        StorageVerb::List { json } => list::<StorageStudies>(*json),
        StorageVerb::Show { study, file, json } => show::<StorageStudies>(study, *file, *json),
        StorageVerb::Run(args) => run_one(args),
        StorageVerb::Report { directory, json } => report::<StorageStudies>(directory, *json),
    }
}

fn run_one(args: &StorageRunArgs) -> Result<(), Error> {
    let found = find::<StorageStudies>(&args.study)?;
    let study = parse::<StorageStudies>(&args.study, &found.text)?;
    let folder =
        args.output.clone().unwrap_or_else(|| PathBuf::from(format!("storage-{}", study.name)));
    let options = run::StorageRunOptions {
        text: found.text,
        folder: folder.clone(),
        quick: args.quick,
        length: args.length,
        near: args.directory.clone(),
    };
    finish::<StorageStudies>(&folder, run::run(&options), args.json)
}
