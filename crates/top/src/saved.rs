// SPDX-License-Identifier: PostgreSQL
//! The saved view: the state in which the full-screen view starts, as saved with key W.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use view::Sort;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::View;

/// The shortest and the longest interval that can be entered, seconds.
pub const INTERVALS: std::ops::RangeInclusive<f64> = 0.1..=3600.0;

/// The file, in the user's configuration directory.
const FILE: &str = "pgtally/top.toml";

/// What is saved.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Saved {
    /// The pane.
    pub view: Option<View>,
    /// The sort order.
    pub sort: Option<Sort>,
    /// Whether the order is reversed.
    pub reverse: bool,
    /// Whether idle accounts are shown.
    pub idle: bool,
    /// Whether all rows are open.
    pub open: bool,
    /// Length of an interval.
    pub interval: Option<Duration>,
    /// Whether the mouse is on.
    pub mouse: bool,
}

/// The saved view as it is stored in the file. Fields of later versions are ignored.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct SavedFile {
    view: Option<String>,
    sort: Option<String>,
    reverse: bool,
    idle: bool,
    open: bool,
    interval_seconds: Option<f64>,
    mouse: bool,
}

/// The path of the file; `None` if the environment does not name a configuration directory.
pub fn path() -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let settings = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(settings.join(FILE))
}

/// Reads the file; a missing file gives the defaults.
///
/// # Errors
///
/// Says what is wrong with the file.
pub fn load(path: &Path) -> Result<Saved, String> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Saved::default()),
        Err(error) => return Err(format!("ignored {}: {error}", path.display())),
    };
    read(&text)
        .map_err(|problem| format!("ignored {}: {problem} (W writes a new file)", path.display()))
}

fn read(text: &str) -> Result<Saved, String> {
    let file: SavedFile = toml::from_str(text).map_err(|error| error.message().to_string())?;
    let view = |name: &String| match View::from_str(name, false) {
        Ok(view) if view != View::All => Ok(view),
        _ => Err(format!("view \"{name}\" does not exist")),
    };
    let interval = |seconds: f64| match INTERVALS.contains(&seconds) {
        true => Ok(Duration::from_secs_f64(seconds)),
        false => Err(format!("interval_seconds {seconds} is not between 0.1 and 3600")),
    };
    Ok(Saved {
        view: file.view.as_ref().map(view).transpose()?,
        sort: file.sort.map(|name| Sort::named(&name)).transpose()?,
        reverse: file.reverse,
        idle: file.idle,
        open: file.open,
        interval: file.interval_seconds.map(interval).transpose()?,
        mouse: file.mouse,
    })
}

/// Writes the file, and its directory if that does not exist.
///
/// # Errors
///
/// Names the file that could not be written, and the reason.
pub fn save(saved: &Saved, path: &Path) -> Result<(), String> {
    let file = SavedFile {
        view: saved.view.and_then(|v| v.to_possible_value()).map(|v| v.get_name().to_string()),
        sort: saved.sort.as_ref().map(Sort::name),
        reverse: saved.reverse,
        idle: saved.idle,
        open: saved.open,
        interval_seconds: saved.interval.map(|length| length.as_secs_f64()),
        mouse: saved.mouse,
    };
    let figures = toml::to_string(&file).map_err(|error| error.to_string())?;
    let text = format!(
        "# Initial state of the full-screen view of tally top. Key W writes this file.\n\
         # Options on the command line take precedence.\n{figures}"
    );
    path.parent()
        .map_or(Ok(()), |folder| files::folder(folder, files::Access::Owner))
        .and_then(|()| view::output::replace(path, text.as_bytes()))
        .map_err(|error| format!("could not save the view to {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_view_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/top.toml");
        assert_eq!(load(&path), Ok(Saved::default()));
        let saved = Saved {
            view: Some(View::Statements),
            sort: Some(Sort::Activity("io:datafileread".into())),
            reverse: true,
            idle: true,
            open: true,
            interval: Some(Duration::from_millis(2500)),
            mouse: true,
        };
        save(&saved, &path).unwrap();
        assert_eq!(load(&path), Ok(saved));
        let less = Saved { sort: Some(Sort::Count), ..Saved::default() };
        save(&less, &path).unwrap();
        assert_eq!(load(&path), Ok(less));
        let files = fs::read_dir(path.parent().unwrap()).unwrap().count();
        assert_eq!(files, 1, "no temporary file is left");
    }

    #[test]
    fn errors_in_the_file_are_reported() {
        for (text, problem) in [
            ("view = ledger", "string"),
            ("view = \"all\"", "\"all\" does not exist"),
            ("sort = \"colour\"", "\"colour\" is not a sort order"),
            ("interval_seconds = 0.0", "not between 0.1 and 3600"),
            ("interval_seconds = nan", "not between 0.1 and 3600"),
            ("idle = 3", "expected a boolean"),
            ("view", "expected"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
        assert_eq!(read("of_later = 1\n"), Ok(Saved::default()));
        let folder = tempfile::tempdir().unwrap();
        let error = load(folder.path()).unwrap_err();
        assert!(error.contains("ignored"), "{error}");
        fs::write(folder.path().join("top.toml"), b"\xff\xfe").unwrap();
        assert!(load(&folder.path().join("top.toml")).is_err());
    }

    #[test]
    fn a_failed_save_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file/top.toml");
        fs::write(folder.path().join("file"), "").unwrap();
        let error = save(&Saved::default(), &path).unwrap_err();
        assert!(error.contains("file/top.toml") && error.contains("could not save"), "{error}");
    }
}
