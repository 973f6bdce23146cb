// SPDX-License-Identifier: PostgreSQL
//! `tally study`: runs an experiment that is defined in a file, in randomised order, and reports its
//! results. The crate `study` does the work.

mod args;

use std::io::Write;
use std::path::{Path, PathBuf};

use error::Error;
use experiment::progress::length;
use study::about::{About, Size};
use study::results::{any, parse, write};
use study::{run, server, stock, text};
use view::table::Table;

pub use args::{StudyArgs, StudyRunArgs, StudyVerb};

/// List, show, run or report studies.
pub fn run(args: &StudyArgs) -> Result<(), Error> {
    match &args.what {
        StudyVerb::List { json } => list(*json),
        StudyVerb::Show { study, file, json } => show(study, *file, *json),
        StudyVerb::Run(args) => run_one(args),
        StudyVerb::Report { directory, json } => report(directory, *json),
    }
}

fn list(json: bool) -> Result<(), Error> {
    let all: Vec<About> = stock::all()
        .map(|(name, text)| About::describe(&parse(name, text)?))
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
    let about = About::describe(&parse(name, &files.study)?)?;
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
    writeln!(out, "points   {}", about.points.join(", "))?;
    writeln!(out, "reads    {}", about.reads.join(", "))?;
    for (name, size) in [("quick", &about.quick), ("proper", &about.proper)] {
        let time = length(size.expected_seconds);
        writeln!(out, "{name:<8} {} cells in {} blocks, about {time}", size.cells, size.blocks)?;
    }
    Ok(())
}

fn run_one(args: &StudyRunArgs) -> Result<(), Error> {
    let files = stock::find(&args.study)?;
    let study = parse(&args.study, &files.study)?;
    let folder =
        args.output.clone().unwrap_or_else(|| PathBuf::from(format!("study-{}", study.name)));
    let wish = run::StudyRunOptions {
        text: files.study,
        folder: folder.clone(),
        quick: args.quick,
        directories: args.directory.clone(),
        here: server::Here {
            folder: files.folder.unwrap_or_else(|| PathBuf::from(".")),
            may_set_clock_source: args.set_clock_source,
        },
    };
    let result = run::run(wish);
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
