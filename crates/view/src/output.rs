// SPDX-License-Identifier: PostgreSQL
//! Writes a report to standard output, or to a file, which is then complete or unchanged.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use error::Error;

/// Writes `text` to a temporary file next to `path` and renames it to `path`. A pipe or another special
/// file is written directly.
pub fn write(path: &Path, text: &[u8]) -> Result<(), Error> {
    let failed = |error: io::Error| {
        Error::Failed(format!(
            "{}: cannot be written ({error}); give another file with -o",
            path.display()
        ))
    };
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return fs::write(path, text).map_err(failed);
    }
    if path.is_dir() {
        let name = path.join("report.html");
        return Err(Error::Failed(format!(
            "{}: is a directory; name a file, say {}",
            path.display(),
            name.display()
        )));
    }
    let temporary = temporary(path);
    let written = File::create_new(&temporary).and_then(|mut file| {
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    });
    written.map_err(|error| {
        // It may not exist.
        let _ = fs::remove_file(&temporary);
        failed(error)
    })
}

fn temporary(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}", std::process::id()))
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
