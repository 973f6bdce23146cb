// SPDX-License-Identifier: PostgreSQL
//! `tally storage`: times commands during a steady load on storage, as a file defines them, and reports
//! when the storage loses its steadiness. The crate `storage` does the work.

mod args;

use std::io::Write;
use std::path::{Path, PathBuf};

use error::Error;
use experiment::progress::length;
use storage::about::{About, Size};
use storage::results::{any, parse, write};
use storage::{run, stock, text};
use view::table::Table;

pub use args::{StorageArgs, StorageRunArgs, StorageVerb};

/// List, show, run or report studies of storage.
pub fn run(args: &StorageArgs) -> Result<(), Error> {
    match &args.what {
        StorageVerb::List { json } => list(*json),
        StorageVerb::Show { study, file, json } => show(study, *file, *json),
        StorageVerb::Run(args) => run_one(args),
        StorageVerb::Report { directory, json } => report(directory, *json),
    }
}

fn list(json: bool) -> Result<(), Error> {
    let all: Vec<About> = stock::all()
        .map(|(name, text)| Ok(About::describe(&parse(name, text)?)))
        .collect::<Result<_, Error>>()?;
    let mut out = view::escape::stdout();
    if json {
        serde_json::to_writer(&mut out, &all)?;
        return Ok(writeln!(out)?);
    }
    let mut columns = Table::with_headings(&["NAME", "QUICK", "PROPER", "TITLE"], 1..3);
    for about in all {
        let time = |size: &Size| length(size.expected_seconds);
        columns.push_texts(vec![about.name, time(&about.quick), time(&about.proper), about.title]);
    }
    Ok(out.write_all(columns.to_string().as_bytes())?)
}

fn show(name: &str, file: bool, json: bool) -> Result<(), Error> {
    let files = stock::find(name)?;
    let mut out = view::escape::stdout();
    if file {
        return Ok(out.write_all(files.study.as_bytes())?);
    }
    let about = About::describe(&parse(name, &files.study)?);
    if json {
        serde_json::to_writer(&mut out, &about)?;
        return Ok(writeln!(out)?);
    }
    writeln!(out, "{}: {}", about.name, about.title)?;
    out.write_all(format!("\n{}\n\n", about.question).as_bytes())?;
    if let Some(source) = &about.source {
        writeln!(out, "from     {source}")?;
    }
    writeln!(out, "arms     {}", about.arms.join(", "))?;
    writeln!(out, "victims  {}", about.victims.join(", "))?;
    for (name, size) in [("quick", &about.quick), ("proper", &about.proper)] {
        let (cell, time) = (length(size.cell_seconds), length(size.expected_seconds));
        writeln!(out, "{name:<8} {} cells of {cell}, about {time}", size.cells)?;
    }
    Ok(())
}

fn run_one(args: &StorageRunArgs) -> Result<(), Error> {
    let files = stock::find(&args.study)?;
    let study = parse(&args.study, &files.study)?;
    let folder =
        args.output.clone().unwrap_or_else(|| PathBuf::from(format!("storage-{}", study.name)));
    let wish = run::StorageRunOptions {
        text: files.study,
        folder: folder.clone(),
        quick: args.quick,
        length: args.length,
        near: args.directory.clone(),
    };
    let result = run::run(&wish);
    // Partial results are results, too.
    if result.is_err() && any(&folder) {
        write(&folder)?;
    }
    result?;
    report(&folder, args.json)
}

/// Write all result files of a run's directory and print the tables.
fn report(folder: &Path, json: bool) -> Result<(), Error> {
    let (answer, tables) = write(folder)?;
    let mut out = view::escape::stdout();
    if json {
        serde_json::to_writer(&mut out, &answer)?;
        return Ok(writeln!(out)?);
    }
    out.write_all(text::render(&answer, &tables).as_bytes())?;
    writeln!(out)?;
    Ok(writeln!(out, "The page: {}", folder.join("report.html").display())?)
}
