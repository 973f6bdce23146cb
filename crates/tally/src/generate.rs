// SPDX-License-Identifier: PostgreSQL
//! Man pages and shell completions, made from the definition of the command line.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;

use error::Error;

/// Arguments of `tally man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Directory to write tally.1 and one page for each verb into
    pub folder: Option<PathBuf>,
}

/// Arguments of `tally completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Shell to print completions for
    pub shell: clap_complete::Shell,
}

/// `tally man`: prints the main page of `command`, or writes all pages into a directory.
pub fn man(args: &ManArgs, command: Command) -> Result<(), Error> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let Some(folder) = &args.folder else {
        return Ok(view::escape::process_stdout().write_all(&page(&command)?)?);
    };
    write(folder, &command)?;
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        write(folder, verb)?;
    }
    Ok(())
}

fn write(folder: &Path, command: &Command) -> Result<(), Error> {
    let path = folder.join(format!("{}.1", name(command)));
    files::write(&path, &page(command)?, files::Access::Everybody)
        .map_err(|error| Error::Failed(format!("could not write {}: {error}", path.display())))
}

/// "tally", "tally-top".
fn name(command: &Command) -> String {
    command.get_display_name().unwrap_or(command.get_name()).to_string()
}

/// Makes a man page. In the text after the options, indented lines keep their line breaks; other lines are
/// filled.
fn page(command: &Command) -> io::Result<Vec<u8>> {
    let notes = command.get_after_help().map(|text| text.to_string()).unwrap_or_default();
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if !notes.is_empty() {
        writeln!(page, ".SH NOTES")?;
        for line in notes.lines() {
            let format = match line {
                "" => ".PP",
                it if it.starts_with(' ') => ".nf",
                _ => ".fi",
            };
            writeln!(page, "{format}")?;
            // roff takes a line that starts with a period or an apostrophe as a request.
            let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
            if !line.is_empty() {
                writeln!(page, "{guard}{}", line.replace('\\', "\\e").replace('-', "\\-"))?;
            }
        }
        writeln!(page, ".fi")?;
    }
    if command.get_version().is_some() {
        man.render_version_section(&mut page)?;
    }
    Ok(page)
}

/// `tally completions`: prints the completions of `command` for a shell.
pub fn completions(args: &CompletionsArgs, mut command: Command) -> Result<(), Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "tally", &mut script);
    Ok(view::escape::process_stdout().write_all(&script)?)
}
