// SPDX-License-Identifier: PostgreSQL
//! Man pages and shell completions, made from the definition of the command line.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;

use error::Error;

/// The date of the pages, which changes with the version: what is built from the same source is the same.
const DATE: &str = "2026-11-29";

/// Arguments of `tally man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Directory to write tally.1 and one page for each verb into
    #[arg(value_name = "DIR")]
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
    view::output::announce(folder);
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
    let (title, version) = (name(command), env!("CARGO_PKG_VERSION"));
    writeln!(
        page,
        ".TH \"{}\" \"1\" \"{DATE}\" \"tally {version}\" \"User Commands\"",
        title.to_uppercase()
    )?;
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
                line if line.starts_with(' ') => ".nf",
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
    // Line breaks around an empty line, which is one by itself: mandoc warns of them.
    let text = String::from_utf8_lossy(&page)
        .replace("\n.br\n\n.br\n", "\n\n")
        .replace("\n.br\n\n", "\n\n");
    Ok(text.into_bytes())
}

/// `tally completions`: prints the completions of `command` for a shell.
pub fn completions(args: &CompletionsArgs, mut command: Command) -> Result<(), Error> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "tally", &mut script);
    Ok(view::escape::process_stdout().write_all(&script)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// Programs that check manual pages, with what makes them report warnings; nothing printed: the page is well.
    const LINTERS: [&[&str]; 3] = [
        &["mandoc", "-Tlint", "-Wwarning"],
        &["groff", "-man", "-ww", "-z", "-Tutf8"],
        &["man", "--warnings=all", "-l"],
    ];

    #[test]
    fn no_program_that_formats_manual_pages_warns() {
        let folder = tempfile::tempdir().unwrap();
        let args = ManArgs { folder: Some(folder.path().into()) };
        man(&args, crate::cli::Cli::command()).unwrap();
        let mut pages: Vec<PathBuf> =
            std::fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.path()).collect();
        pages.sort();
        assert!(pages.len() > 20, "{pages:?}");
        for linter in LINTERS {
            for page in &pages {
                let mut command = std::process::Command::new(linter[0]);
                command.args(&linter[1..]).arg(page).env("MANROFFOPT", "").env("LC_ALL", "C.UTF-8");
                let Ok(output) = command.stdin(std::process::Stdio::null()).output() else {
                    println!("not tested: there is no {}", linter[0]);
                    break;
                };
                let is_report = linter[0] == "mandoc";
                let said =
                    [&output.stderr[..], if is_report { &output.stdout } else { b"" }].concat();
                assert!(said.is_empty(), "{linter:?}: {}", String::from_utf8_lossy(&said));
            }
        }
    }

    /// Clap wraps a longer line in the middle of a command, and its rest looks like another command.
    #[test]
    fn examples_in_help_fit_into_80_columns() {
        fn add_wide(command: &Command, wide: &mut Vec<String>) {
            for help in [command.get_after_help(), command.get_after_long_help()] {
                let text = help.map(ToString::to_string).unwrap_or_default();
                let examples = text.lines().filter(|line| line.starts_with(' '));
                wide.extend(
                    examples.filter(|line| line.chars().count() > 80).map(ToString::to_string),
                );
            }
            for verb in command.get_subcommands() {
                add_wide(verb, wide);
            }
        }
        let mut wide = Vec::new();
        add_wide(&crate::cli::Cli::command(), &mut wide);
        assert_eq!(wide, Vec::<String>::new());
    }
}
