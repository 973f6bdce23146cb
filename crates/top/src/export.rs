// SPDX-License-Identifier: PostgreSQL
//! Writes the current interval to a new file.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use files::Access;
use tempfile::NamedTempFile;

use super::plain::Json;
use super::screen::Screen;
use super::{moment, text};
use terminal::Form;

/// Maximum number of names to try.
const NAMES: u32 = 1000;
/// Wide enough for most columns.
const WIDTH: usize = 160;

/// Writes what the screen shows to a new file in this directory: "tally-top-ledger-20260301-140330", with "-2"
/// and so on appended if it exists. Returns its path.
///
/// # Errors
///
/// Names the file that could not be written, and the reason.
pub fn export(screen: &Screen, form: Form, folder: &Path) -> Result<PathBuf, String> {
    let reading = screen.reading().ok_or("no interval has been measured yet")?;
    let text = match form {
        Form::Text => shown(screen),
        Form::Json => {
            let answer = screen.answer().ok_or("no interval has been measured yet")?;
            let json = Json { reading, answer: &answer };
            let json = serde_json::to_string(&json).map_err(|error| error.to_string())?;
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

/// What the screen shows, with all rows and wide enough for them.
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
            out.push_str(&text::sections(&page, (WIDTH, usize::MAX), false));
        }
        None => {
            let wish = screen.wish();
            let Some(answer) = screen.answer() else { return out };
            out.push_str(&text::render(reading, &answer, &wish, screen.view(), None, false));
        }
    }
    out
}

/// Writes a temporary file, then links it to the first free name.
fn write_new(folder: &Path, name: &str, ending: &str, bytes: &[u8]) -> Result<PathBuf, String> {
    let problem = |path: &Path, error: std::io::Error| {
        format!("could not write {}: {error}; start tally in a writable directory", path.display())
    };
    let write = || -> std::io::Result<NamedTempFile> {
        let mut file = files::temporary(folder, ".tally-top.", "", Access::Owner)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        Ok(file)
    };
    let mut file = write().map_err(|error| problem(folder, error))?;
    for number in 1..=NAMES {
        let more = if number > 1 { format!("-{number}") } else { String::new() };
        let path = folder.join(format!("{name}{more}.{ending}"));
        match file.persist_noclobber(&path) {
            Ok(_) => return Ok(path),
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => file = error.file,
            Err(error) => return Err(problem(&path, error.error)),
        }
    }
    Err(format!("could not write {name}.{ending}: there are already {NAMES} files with this name"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn an_existing_file_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let write = |text: &str| write_new(folder.path(), "a", "txt", text.as_bytes());
        assert!(write("one").unwrap().ends_with("a.txt"));
        assert!(write("two").unwrap().ends_with("a-2.txt"));
        fs::create_dir(folder.path().join("a-3.txt")).unwrap();
        assert!(write("three").unwrap().ends_with("a-4.txt"));
        assert_eq!(fs::read_to_string(folder.path().join("a.txt")).unwrap(), "one");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4, "no temporary file is left");
    }

    #[test]
    fn an_error_names_the_directory() {
        let error = write_new(Path::new("/proc/nowhere"), "a", "txt", b"").unwrap_err();
        assert!(error.contains("/proc/nowhere") && error.contains("could not write"), "{error}");
    }
}
