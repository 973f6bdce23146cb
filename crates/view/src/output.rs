// SPDX-License-Identifier: PostgreSQL
//! Writes reports to a file, which is afterwards either complete or unchanged, and JSON to standard output.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use crate::escape;
use crate::units;
use error::Error;
use files::Access;
use serde::Serialize;

/// Writes a report with [`replace`]. A pipe or another special file is written directly.
pub fn write(path: &Path, text: &[u8]) -> Result<(), Error> {
    let failed = |error: io::Error| {
        Error::Failed(format!(
            "could not write {}: {error}; specify another file with -o",
            path.display()
        ))
    };
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return files::write(path, text, Access::Owner).map_err(failed);
    }
    if path.is_dir() {
        let name = path.join("report.html");
        return Err(Error::Failed(format!(
            "{} is a directory; specify a file, for example {}",
            path.display(),
            name.display()
        )));
    }
    replace(path, text).map_err(failed)
}

/// Says on standard error which file was written, or which directory; nothing of a pipe or a device, which the user named.
pub fn announce(path: &Path) {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    match fs::metadata(path) {
        Ok(found) if found.is_file() => {
            escape::say(&format!(
                "wrote {} ({})",
                whole.display(),
                units::bytes(found.len() as f64)
            ));
        }
        Ok(found) if found.is_dir() => escape::say(&format!("wrote {}", whole.display())),
        _ => {}
    }
}

/// Writes a value to standard output, as one line of JSON.
pub fn json(value: &impl Serialize) -> Result<(), Error> {
    let mut out = escape::stdout();
    serde_json::to_writer(&mut out, value)?;
    Ok(writeln!(out)?)
}

/// Replaces the file at `path` by one with this content: readers see either the old or the new content. On
/// return, the new content is on disk; a temporary file next to it never remains.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    files::replace(path, content, Access::Owner, "", true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_at_once_and_no_temporary_file_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_write_error_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let error = write(&folder.path().join("none/report.html"), b"").unwrap_err().to_string();
        assert!(error.contains("none/report.html") && error.contains("-o"), "{error}");
        let error = write(folder.path(), b"").unwrap_err().to_string();
        assert!(error.contains("is a directory"), "{error}");
    }
}
