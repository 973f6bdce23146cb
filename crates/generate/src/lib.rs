// SPDX-License-Identifier: PostgreSQL
//! Generates code and documentation from the specifications in `format/` and the figures in `docs/figures.toml`:
//! definitions in C, Rust and Java, and tables and quotations of the documentation. The results are in the repository, so
//! that building and reading them does not need this crate; a test fails if they differ from the specifications.

mod c;
mod classes;
mod counters;
mod figures;
mod java;
mod markdown;
mod rust;
mod spec;
mod statistics;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use classes::Classes;
use counters::Counters;
use figures::Figures;
use spec::Layout;
use statistics::Statistics;

/// The generated files: names relative to `root`, and contents.
pub fn outputs(root: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let read = |name: &str| {
        fs::read_to_string(root.join(name))
            .map_err(|error| format!("could not read {name}: {error}"))
    };
    let in_file = |name: &'static str| move |why: String| format!("{name}: {why}");
    let mut layout =
        Layout::read(&read("format/layout.toml")?).map_err(in_file("format/layout.toml"))?;
    let counters =
        Counters::read(&read("format/counters.toml")?).map_err(in_file("format/counters.toml"))?;
    counters.complete(&mut layout).map_err(in_file("format"))?;
    let statistics = Statistics::read(&read("format/statistics.toml")?)
        .map_err(in_file("format/statistics.toml"))?;
    let classes =
        Classes::read(&read("format/classes.toml")?).map_err(in_file("format/classes.toml"))?;
    let mut tables = markdown::tables(&layout)?;
    tables.insert("names of statistics".into(), statistics.table());
    tables.insert("statements of recordings".into(), counters.recorded_table());
    tables.insert("counters of statements".into(), counters.shown_table()?);
    let mut outputs: Vec<(PathBuf, String)> = vec![
        ("libtally/include/tally_format.h".into(), c::header(&layout)?),
        ("crates/segment/src/layout/offsets.rs".into(), rust::offsets(&layout)?),
        ("crates/segment/src/statements/counters.rs".into(), counters.reader()?),
        ("crates/recording/src/recorded_statement.rs".into(), counters.recorded()),
        ("client/java/src/main/java/org/pgtally/segment/Layout.java".into(), java::layout(&layout)),
        ("pg_tally/statement_columns.h".into(), counters.columns_header()?),
        ("libtally/include/tally_names.h".into(), statistics.header()),
        ("crates/segment/src/stat_names.rs".into(), statistics.reader()),
        ("client/java/src/main/java/org/pgtally/segment/StatNames.java".into(), statistics.java()),
        ("pg_tally/ledger/wait_prefixes.h".into(), classes.wait_header()),
        ("crates/segment/src/wait_prefixes.rs".into(), classes.wait_reader()),
        ("web/src/look/classes.ts".into(), classes.script()),
        ("web/src/look/activities.css".into(), classes.sheet()),
        ("crates/terminal/src/class_color.rs".into(), classes.terminal()),
    ];
    for page in ["format/FORMAT.md", "docs/reference-recording.md", "docs/reference-sql.md"] {
        let filled = markdown::refill(&read(page)?, &tables).map_err(in_file(page))?;
        outputs.push((page.into(), filled));
    }
    let figures = Figures::read(&read("docs/figures.toml")?, &read("bench/instructions.baseline")?)
        .map_err(in_file("docs/figures.toml"))?;
    quote(root, &figures, &mut outputs)?;
    for script in scripts(root)? {
        let text = read(&script)?;
        if let Some(filled) = counters::refill_script(&text, &counters.sql_columns()) {
            outputs.push((script.into(), filled));
        }
    }
    Ok(outputs)
}

/// Pages that are about measurements, so that they have more figures than those of the page of results.
const MEASUREMENTS: [&str; 3] =
    ["docs/results.md", "docs/measurements.md", "docs/results-history.md"];

/// Adds the pages and the code that quote figures.
fn quote(
    root: &Path,
    figures: &Figures,
    outputs: &mut Vec<(PathBuf, String)>,
) -> Result<(), String> {
    let read = |name: &str| {
        fs::read_to_string(root.join(name))
            .map_err(|error| format!("could not read {name}: {error}"))
    };
    let tables = figures.tables();
    for page in pages(root)? {
        // It may have other generated tables, too.
        let filled = outputs.iter().position(|(name, _)| *name == Path::new(&page));
        let mut text = match filled {
            Some(at) => outputs.swap_remove(at).1,
            None => read(&page)?,
        };
        if MEASUREMENTS.contains(&page.as_str()) {
            text = markdown::refill(&text, &tables).map_err(|why| format!("{page}: {why}"))?;
        }
        let strict = !MEASUREMENTS.contains(&page.as_str());
        let quoted = figures.requote(&text, strict).map_err(|why| format!("{page}: {why}"))?;
        outputs.push((page.into(), quoted));
    }
    for code in &figures.quoted_in {
        let filled = figures.refill_code(&read(code)?).map_err(|why| format!("{code}: {why}"))?;
        outputs.push((code.into(), filled));
    }
    Ok(())
}

/// The pages of the documentation.
fn pages(root: &Path) -> Result<Vec<String>, String> {
    let mut pages = Vec::new();
    for (folder, prefix) in [(root.to_path_buf(), ""), (root.join("docs"), "docs/")] {
        let names = fs::read_dir(&folder)
            .map_err(|error| format!("could not read {}: {error}", folder.display()))?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        pages.extend(
            names.filter(|name| name.ends_with(".md")).map(|name| format!("{prefix}{name}")),
        );
    }
    pages.sort();
    Ok(pages)
}

/// The extension's scripts.
fn scripts(root: &Path) -> Result<Vec<String>, String> {
    let folder =
        fs::read_dir(root.join("pg_tally")).map_err(|error| format!("pg_tally: {error}"))?;
    let names = folder.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut scripts: Vec<String> = names
        .filter(|name| name.ends_with(".sql"))
        .map(|name| format!("pg_tally/{name}"))
        .collect();
    scripts.sort();
    Ok(scripts)
}

/// The files that differ: name, current content, generated content.
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

/// Describes the first line in which the two differ: its number and both versions.
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
