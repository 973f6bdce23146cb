// SPDX-License-Identifier: PostgreSQL
//! Man pages and shell completions, from the definition of the command line.

use std::io::Write;
use std::path::Path;

use clap::CommandFactory;

use crate::cli::{Cli, CompletionsArgs, ManArgs};
use crate::error::Error;

/// `tally man`: the main page on standard output, or all pages into a folder.
pub fn man(args: &ManArgs) -> Result<(), Error> {
    match &args.folder {
        Some(folder) => {
            clap_mangen::generate_to(Cli::command(), folder).map_err(|error| cannot(folder, &error))
        }
        None => {
            // Rendered in memory: the pipe may close in the middle.
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command()).render(&mut page)?;
            Ok(std::io::stdout().write_all(&page)?)
        }
    }
}

/// `tally completions`.
pub fn completions(args: &CompletionsArgs) -> Result<(), Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tally", &mut script);
    Ok(std::io::stdout().write_all(&script)?)
}

fn cannot(folder: &Path, error: &std::io::Error) -> Error {
    Error::Failed(format!("cannot write man pages into {}: {error}", folder.display()))
}
