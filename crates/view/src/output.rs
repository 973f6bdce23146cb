// SPDX-License-Identifier: PostgreSQL
//! Where a report goes: to standard output, or into a file, which is there whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use error::Error;

/// Write `text` into the file at `path`: beside it first, then in its place. What is no plain
/// file, such as a pipe, is written to as it is.
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
    let beside = beside(path);
    let written = File::create_new(&beside).and_then(|mut file| {
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    });
    written.map_err(|error| {
        // It may not have been made at all.
        let _ = fs::remove_file(&beside);
        failed(error)
    })
}

fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("report.html");
        write(&path, b"one").unwrap();
        write(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_cannot_be_written_is_said_with_what_to_do() {
        let place = tempfile::tempdir().unwrap();
        let error = write(&place.path().join("none/report.html"), b"").unwrap_err().to_string();
        assert!(error.contains("none/report.html") && error.contains("-o"), "{error}");
        let error = write(place.path(), b"").unwrap_err().to_string();
        assert!(error.contains("is a directory"), "{error}");
    }
}
