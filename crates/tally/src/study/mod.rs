// SPDX-License-Identifier: PostgreSQL
//! `tally study`: an experiment as a file, run in an order by lot, and its answer with what chance
//! could have done. docs/studies.md is its manual.
//!
//! The way of a run: `file` is what is written and `plan` what is done; `order` draws the blocks, `run`
//! goes through them and `journal` keeps each cell. A cell of a restarted arm is `measure`'s, on the
//! `station` of its arm, under a `load`, through `window`s; those of arms that take turns are `toggle`'s.
//! `answer` makes figures of the cells, `tables` and `charts` show them, `page` and `text` write them.

mod answer;
mod beside;
mod cell;
mod charts;
mod clock_source;
mod expression;
mod file;
mod file_systems;
mod fit_table;
mod gate;
mod instrument;
mod journal;
mod latency;
mod listing;
mod live;
mod load;
mod material;
mod measure;
mod order;
mod page;
mod place;
mod plan;
mod processes;
mod run;
mod selector;
mod station;
mod stock;
mod svg;
mod tables;
mod text;
mod toggle;
mod usl;
mod views;
mod window;
mod words;
mod worst;

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::cli::{StudyArgs, StudyRunArgs, StudyVerb};
use crate::columns::Columns;
use crate::error::Error;
use answer::Answer;
use file::Study;
use plan::Plan;

/// List, show, run or report.
pub fn run(args: &StudyArgs) -> Result<(), Error> {
    match &args.what {
        StudyVerb::List { json } => list(*json),
        StudyVerb::Show { study, file, json } => show(study, *file, *json),
        StudyVerb::Run(args) => run_one(args),
        StudyVerb::Report { directory, json } => report(directory, *json),
    }
}

fn parse(name: &str, text: &str) -> Result<Study, Error> {
    Study::parse(text).map_err(|error| Error::Usage(format!("{name}: {error}")))
}

/// What `list` and `show` print.
#[derive(Debug, Serialize)]
struct About {
    name: String,
    title: String,
    question: String,
    source: Option<String>,
    design: file::Design,
    arms: Vec<String>,
    points: Vec<String>,
    reads: Vec<String>,
    quick: Size,
    proper: Size,
}

#[derive(Debug, Serialize)]
struct Size {
    blocks: usize,
    cells: usize,
    expected_seconds: f64,
}

impl About {
    fn of(study: &Study) -> Result<Self, Error> {
        let proper = Plan::new(study.clone(), false, &[])?;
        let quick = Plan::new(study.clone(), true, &[])?;
        let size = |plan: &Plan| Size {
            blocks: plan.study.measure.repeats,
            cells: plan.cells(),
            expected_seconds: plan.expected_seconds(),
        };
        Ok(Self {
            name: study.name.clone(),
            title: study.title.clone(),
            question: study.question.trim().into(),
            source: study.source.clone(),
            design: study.measure.design,
            arms: proper.arms.iter().map(|arm| arm.title().into()).collect(),
            points: proper.points.iter().map(plan::Point::label).collect(),
            reads: study.reads.iter().map(|read| read.name.clone()).collect(),
            quick: size(&quick),
            proper: size(&proper),
        })
    }
}

fn list(json: bool) -> Result<(), Error> {
    let all: Vec<About> = stock::all()
        .map(|(name, text)| About::of(&parse(name, text)?))
        .collect::<Result<_, Error>>()?;
    let mut out = crate::escape::stdout();
    if json {
        serde_json::to_writer(&mut out, &all)?;
        return Ok(writeln!(out)?);
    }
    let mut columns = Columns::with_headings(&["NAME", "QUICK", "PROPER", "TITLE"]);
    for about in all {
        let time = |size: &Size| text::length(size.expected_seconds);
        columns.push(vec![about.name, time(&about.quick), time(&about.proper), about.title]);
    }
    Ok(columns.write(&mut out, 1..3)?)
}

fn show(name: &str, file: bool, json: bool) -> Result<(), Error> {
    let files = stock::find(name)?;
    let mut out = crate::escape::stdout();
    if file {
        return Ok(out.write_all(files.study.as_bytes())?);
    }
    let about = About::of(&parse(name, &files.study)?)?;
    if json {
        serde_json::to_writer(&mut out, &about)?;
        return Ok(writeln!(out)?);
    }
    writeln!(out, "{}: {}\n\n{}\n", about.name, about.title, about.question)?;
    if let Some(source) = &about.source {
        writeln!(out, "from     {source}")?;
    }
    writeln!(out, "arms     {}", about.arms.join(", "))?;
    writeln!(out, "points   {}", about.points.join(", "))?;
    writeln!(out, "reads    {}", about.reads.join(", "))?;
    for (name, size) in [("quick", &about.quick), ("proper", &about.proper)] {
        let time = text::length(size.expected_seconds);
        writeln!(out, "{name:<8} {} cells in {} blocks, about {time}", size.cells, size.blocks)?;
    }
    Ok(())
}

fn run_one(args: &StudyRunArgs) -> Result<(), Error> {
    let files = stock::find(&args.study)?;
    let study = parse(&args.study, &files.study)?;
    let folder =
        args.output.clone().unwrap_or_else(|| PathBuf::from(format!("study-{}", study.name)));
    let wish = run::Wish {
        text: files.study,
        folder: folder.clone(),
        quick: args.quick,
        directories: args.directory.clone(),
        here: station::Here {
            folder: files.folder.unwrap_or_else(|| PathBuf::from(".")),
            may_set_clock_source: args.set_clock_source,
        },
    };
    let result = run::run(wish);
    // Partial results are results, too.
    if result.is_err() && journal::read(&folder).is_ok_and(|(_, cells, _)| !cells.is_empty()) {
        write(&folder)?;
    }
    result?;
    report(&folder, args.json)
}

/// Write all files of a folder and print the tables.
fn report(folder: &Path, json: bool) -> Result<(), Error> {
    let (answer, tables) = write(folder)?;
    let mut out = crate::escape::stdout();
    if json {
        serde_json::to_writer(&mut out, &answer)?;
        return Ok(writeln!(out)?);
    }
    out.write_all(text::render(&answer, &tables).as_bytes())?;
    Ok(writeln!(out, "\nThe page: {}", folder.join("report.html").display())?)
}

fn write(folder: &Path) -> Result<(Answer, Vec<tables::Shown>), Error> {
    let (text, cells, kept) = journal::read(folder)?;
    let study = parse(&folder.join("study.toml").display().to_string(), &text)?;
    let plan = Plan::new(study, kept.head.quick, &kept.head.directories)?;
    let cells = answer::complete(&plan, cells);
    let answer = Answer::of(&plan, &cells, &kept);
    let tables = tables::of(&plan, &cells, &answer);
    let charts = charts::of(&plan, &cells, &answer);
    let put = |name: &str, text: &str| journal::write_aside(&folder.join(name), text.as_bytes());
    put("results.json", &(serde_json::to_string_pretty(&answer)? + "\n"))?;
    put("tables.txt", &text::render(&answer, &tables))?;
    for (number, table) in tables.iter().enumerate() {
        put(&format!("table-{}.csv", number + 1), &table.csv())?;
    }
    put("report.html", &page::render(&plan, &cells, &answer, &tables, &charts))?;
    Ok((answer, tables))
}
