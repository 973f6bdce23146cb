// SPDX-License-Identifier: PostgreSQL
//! What is shown, written into a file of its own.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::keys::Form;
use super::screen::Screen;
use super::{moment, text};

/// So many names are tried.
const NAMES: u32 = 1000;
/// Wide enough for most columns.
const WIDTH: usize = 160;

/// Write what the screen shows into a new file in this folder: "tally-top-ledger-20260301-140330",
/// with "-2" and so on where there is one already. Returns its path.
///
/// # Errors
///
/// What could not be written and why, in words.
pub fn export(screen: &Screen, form: Form, folder: &Path) -> Result<PathBuf, String> {
    let reading = screen.reading().ok_or("there is no interval yet to be written")?;
    let text = match form {
        Form::Text => shown(screen),
        Form::Json => {
            let json = serde_json::to_string(reading).map_err(|error| error.to_string())?;
            json + "\n"
        }
    };
    let view = screen.view().to_possible_value();
    let view = view.as_ref().map_or("screen", |view| view.get_name());
    let name = format!("tally-top-{view}-{}", moment::stamp(reading.interval.time, &screen.zone));
    let ending = match form {
        Form::Text => "txt",
        Form::Json => "json",
    };
    write_new(folder, &name, ending, view::escape::json(&text).as_bytes())
}

/// What is seen, with all rows and wide enough for them.
fn shown(screen: &Screen) -> String {
    let Some(reading) = screen.reading() else { return String::new() };
    let time = moment::full(reading.interval.time, &screen.zone);
    let mut out = format!("tally top: {time}, {:.2} s\n", reading.interval.interval_seconds);
    if !screen.wish.filter.is_empty() {
        out.push_str(&format!("only rows that contain \"{}\"\n", screen.wish.filter));
    }
    match screen.statement.and_then(|_| screen.sections()) {
        Some(page) => {
            out.push_str(&text::head(reading, WIDTH, false));
            out.push_str(&text::sections(&page, WIDTH, false));
        }
        None => {
            let wish = screen.wish();
            out.push_str(&text::render(reading, &wish, screen.view(), Some(WIDTH), false));
        }
    }
    out
}

/// A file that was not there before: written aside, and then given the first name that is free.
fn write_new(folder: &Path, name: &str, ending: &str, bytes: &[u8]) -> Result<PathBuf, String> {
    let problem = |path: &Path, error: std::io::Error| {
        format!("{}: {error}; nothing is written (start tally where files may be)", path.display())
    };
    let aside = folder.join(format!(".{name}.{}", std::process::id()));
    let write = || -> std::io::Result<()> {
        let mut file = fs::File::create(&aside)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    let named = || -> Result<PathBuf, String> {
        write().map_err(|error| problem(&aside, error))?;
        for number in 1..=NAMES {
            let more = if number > 1 { format!("-{number}") } else { String::new() };
            let path = folder.join(format!("{name}{more}.{ending}"));
            // Unlike a renaming, a link never takes the place of what is there.
            match fs::hard_link(&aside, &path) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(problem(&path, error)),
            }
        }
        Err(format!("{name}.{ending}: there are {NAMES} of that name; nothing is written"))
    };
    let result = named();
    // It has its name, or is of no use.
    let _ = fs::remove_file(&aside);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_there_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let write = |text: &str| write_new(folder.path(), "a", "txt", text.as_bytes());
        assert!(write("one").unwrap().ends_with("a.txt"));
        assert!(write("two").unwrap().ends_with("a-2.txt"));
        fs::create_dir(folder.path().join("a-3.txt")).unwrap();
        assert!(write("three").unwrap().ends_with("a-4.txt"));
        assert_eq!(fs::read_to_string(folder.path().join("a.txt")).unwrap(), "one");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4, "nothing is left aside");
    }

    #[test]
    fn a_folder_that_takes_no_file_is_said() {
        let said = write_new(Path::new("/proc/nowhere"), "a", "txt", b"").unwrap_err();
        assert!(said.contains("/proc/nowhere") && said.contains("nothing is written"), "{said}");
    }
}
