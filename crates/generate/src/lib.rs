// SPDX-License-Identifier: PostgreSQL
//! Writes what follows from the specifications in `format/`: definitions in C, Rust and Java, and tables of the
//! documentation. They are kept in the repository, so that nobody needs this to build or to read them; a test says when
//! they are not those of the specifications.

mod c;
mod java;
mod markdown;
mod rust;
mod spec;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use spec::Layout;

/// The files to be written, by their names from `root` on, with their content.
pub fn outputs(root: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let read = |name: &str| {
        fs::read_to_string(root.join(name))
            .map_err(|error| format!("could not read {name}: {error}"))
    };
    let layout = Layout::read(&read("format/layout.toml")?)
        .map_err(|why| format!("format/layout.toml: {why}"))?;
    let format = read("format/FORMAT.md")?;
    let format = markdown::refill(&format, &markdown::tables(&layout)?)
        .map_err(|why| format!("format/FORMAT.md: {why}"))?;
    Ok(vec![
        ("libtally/include/tally_format.h".into(), c::header(&layout)?),
        ("crates/segment/src/layout/offsets.rs".into(), rust::offsets(&layout)?),
        ("client/java/src/main/java/org/pgtally/segment/Layout.java".into(), java::layout(&layout)),
        ("format/FORMAT.md".into(), format),
    ])
}

/// The files that are not as they are to be: name, present content, content to be.
pub fn differing(root: &Path) -> Result<Vec<(PathBuf, String, String)>, String> {
    let mut differing = Vec::new();
    for (name, wanted) in outputs(root)? {
        let present = fs::read_to_string(root.join(&name)).unwrap_or_default();
        if present != wanted {
            differing.push((name, present, wanted));
        }
    }
    Ok(differing)
}

/// The first line in which the two differ: its number, and what each has there.
pub fn first_difference(present: &str, wanted: &str) -> String {
    let (mut present, mut wanted) = (present.lines(), wanted.lines());
    let mut number = 0;
    loop {
        number += 1;
        match (present.next(), wanted.next()) {
            (None, None) => return "at their ends".into(),
            (a, b) if a != b => {
                let shown = |line: Option<&str>| line.unwrap_or("(end)").to_string();
                return format!("line {number}\n  is      {}\n  must be {}", shown(a), shown(b));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_files_are_those_of_the_specification() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let differing = differing(&root).unwrap().into_iter().map(|(name, present, wanted)| {
            format!("{}: {}", name.display(), first_difference(&present, &wanted))
        });
        let differing: Vec<String> = differing.collect();
        assert!(differing.is_empty(), "{}\nrun make generate", differing.join("\n"));
    }
}
