// SPDX-License-Identifier: PostgreSQL
//! A Python with packages that a test uses to read recordings. None of them is needed to use pgtally.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

fn succeeds(program: &Path, args: &[&str]) -> bool {
    match Command::new(program).args(args).output() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            eprintln!("{}", String::from_utf8_lossy(&output.stderr));
            false
        }
        Err(error) => {
            eprintln!("{}: {error}", program.display());
            false
        }
    }
}

/// A Python with the packages of the crate's `tests/NAME/requirements.txt`; `None` if they cannot be installed.
pub fn with_requirements_of(name: &str) -> Option<PathBuf> {
    with_requirements_in(Path::new(env!("CARGO_MANIFEST_DIR")), name)
}

/// The same for another crate, in this directory.
pub fn with_requirements_in(directory: &Path, name: &str) -> Option<PathBuf> {
    let requirements = directory.join("tests").join(name).join("requirements.txt");
    let venv = directory.join(format!("../../target/{name}-venv"));
    let python = venv.join("bin/python");
    let wanted = std::fs::read_to_string(&requirements).unwrap();
    // Tests run in parallel: one creates it, the others wait. The lock ends with the file.
    let lock = File::create(venv.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    let done = venv.join("requirements.txt");
    if std::fs::read_to_string(&done).is_ok_and(|there| there == wanted) {
        // A system other than the one on which it was created may have no Python.
        return python.metadata().is_ok().then_some(python);
    }
    let install = ["-m", "pip", "install", "-q", "--disable-pip-version-check", "-r"];
    let install: Vec<&str> = install.into_iter().chain([requirements.to_str()?]).collect();
    let made = succeeds(Path::new("python3"), &["-m", "venv", venv.to_str()?]);
    (made && succeeds(&python, &install)).then(|| {
        std::fs::write(&done, &wanted).unwrap();
        python
    })
}
