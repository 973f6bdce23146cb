// SPDX-License-Identifier: PostgreSQL
//! A kind of experiment, and what its verb does: list, show, run and report studies. The kinds are `study` and
//! `storage`; `verb` has the arguments that both take.

use std::fmt::Debug;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::journal::{self, RunRecord};
use super::page::{self, Drawn};
use super::progress::length;
use error::Error;
use maud::{html, Markup};
use view::escape;
use view::html::Visible;
use view::table::Table;

/// A kind of experiment.
pub trait Experiment: Debug {
    /// Its verb. The file of a study is called KIND.toml, the directory of a run KIND-NAME.
    const KIND: &'static str;
    /// Names and texts of the built-in studies, in the order of lists.
    const BUILT_IN: &'static [(&'static str, &'static str)];
    /// Help of `show`.
    const SHOWS: &'static str;
    /// Help of `report`.
    const REPORTS: &'static str;
    /// Arguments of `run`.
    type RunArgs: clap::Args + Debug;
    /// A parsed study file.
    type Study;
    /// The contents of a study, as `list` and `show` print them.
    type Contents: Serialize;
    /// How much a study measures.
    type Size: Serialize;
    /// The results of a run: results.json.
    type Results: Serialize;

    /// Parses a study file. The error says what is wrong with it.
    fn parse(text: &str) -> Result<Self::Study, String>;
    /// What a study is about.
    fn heading(study: &Self::Study) -> StudyHeading;
    /// Describes a study.
    fn describe(study: &Self::Study) -> Result<About<Self::Contents, Self::Size>, Error>;
    /// Its contents, in words.
    fn contents(contents: &Self::Contents) -> Vec<(&'static str, String)>;
    /// How much it measures, in words, and how long that takes, seconds.
    fn size(size: &Self::Size) -> (String, f64);
    /// The arguments of `run` that each kind has.
    fn target(args: &Self::RunArgs) -> RunTarget<'_>;
    /// Runs the cells that are missing from the directory. If interrupted, the error says how to resume.
    fn run(args: &Self::RunArgs, file: StudyFile, folder: &Path) -> Result<(), Error>;
    /// Whether the directory of a run has anything to report.
    fn has_results(folder: &Path) -> bool;
    /// Computes the results of the run in this directory.
    fn compute(folder: &Path) -> Result<Computed<Self::Results>, Error>;
}

/// What a study is about, as `list`, `show` and results.json begin with it.
#[derive(Debug, Clone, Serialize)]
pub struct StudyHeading {
    /// Name of the study.
    pub name: String,
    /// Title, one line.
    pub title: String,
    /// The question it answers.
    pub question: String,
    /// The original study, if it repeats one.
    pub source: Option<String>,
}

impl StudyHeading {
    /// From the texts of a study's file.
    pub fn new(name: &str, title: &str, question: &str, source: Option<&str>) -> Self {
        let (name, title, question) = (name.into(), title.into(), question.trim().into());
        Self { name, title, question, source: source.map(String::from) }
    }
}

/// A study, as `list` and `show` print it.
#[derive(Debug, Serialize)]
pub struct About<C, S> {
    /// What it is about.
    #[serde(flatten)]
    pub heading: StudyHeading,
    /// Its contents.
    #[serde(flatten)]
    pub contents: C,
    /// Size of the quick variant.
    pub quick: S,
    /// Size of the full variant.
    pub proper: S,
}

/// The results of a run, and how they are shown.
#[derive(Debug)]
pub struct Computed<R> {
    /// The figures.
    pub results: R,
    /// What the study is about.
    pub heading: StudyHeading,
    /// What was measured, on which machine, and what failed: a line each.
    pub facts: Vec<String>,
    /// The answer: a line for each finding.
    pub findings: Vec<String>,
    /// Tables of the figures.
    pub tables: Vec<Table>,
    /// Charts of the figures.
    pub charts: Vec<Drawn>,
    /// The findings on the page; `None` if there are none.
    pub page_findings: Option<Markup>,
    /// The rest of the page, below the tables.
    pub page_rest: Markup,
}

impl<R> Computed<R> {
    /// The answer as text, its tables of this width.
    fn text(&self, width: usize) -> String {
        let StudyHeading { title, question, .. } = &self.heading;
        let lines =
            |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let (facts, findings) = (lines(&self.facts), lines(&self.findings));
        let mut text = format!("{title}\n\n{question}\n\n{facts}\n{findings}");
        for table in &self.tables {
            text += &format!("\n{}\n\n{}", table.title, table.text(width));
        }
        text
    }

    /// The answer as one HTML page.
    fn page(&self) -> String {
        let StudyHeading { title, question, source, .. } = &self.heading;
        let body = html! {
            header {
                h1 { (Visible(title)) }
                p.question { (Visible(question)) }
                @if let Some(source) = source {
                    p.faint { "Source: " (Visible(source)) }
                }
            } "\n"
            @if let Some(findings) = &self.page_findings {
                section { h2 { "Findings" } (findings) } "\n"
            }
            (page::figures(&self.charts))
            (page::table_sections(&self.tables))
            (self.page_rest)
        };
        page::frame(title, body)
    }
}

/// A study's text and its origin.
#[derive(Debug, Clone)]
pub struct StudyFile {
    /// Text of the file.
    pub text: String,
    /// Directory of the user's own file; `None` for a built-in study.
    pub folder: Option<PathBuf>,
}

/// What to run, and where.
#[derive(Debug, Clone, Copy)]
pub struct RunTarget<'a> {
    /// Name of a built-in study, or a study file.
    pub study: &'a str,
    /// The directory of the run, unless it is KIND-NAME.
    pub output: Option<&'a Path>,
    /// Whether to print the results as JSON.
    pub json: bool,
}

/// An arm of a study, as it appears in results.
#[derive(Debug, Clone, Serialize)]
pub struct ArmRow {
    /// Name of the arm.
    pub name: String,
    /// Its title in output.
    pub title: String,
    /// Whether it is the A/A control: the first arm, or the base, a second time.
    pub again: bool,
    /// Why it was left out, if it was.
    pub left_out: Option<String>,
}

impl ArmRow {
    /// An arm of this run.
    pub fn new(name: &str, title: &str, again: bool, run: &RunRecord) -> Self {
        Self {
            name: name.into(),
            title: title.into(),
            again,
            left_out: run.left_out(name).map(String::from),
        }
    }

    /// Says why it was left out, if it was.
    pub fn skipped(&self) -> Option<String> {
        self.left_out.as_ref().map(|why| format!("skipped: {}: {why}", self.title))
    }
}

/// The built-in study of this name, or the one in this file or directory.
pub fn find<E: Experiment>(name: &str) -> Result<StudyFile, Error> {
    if let Some((_, text)) = E::BUILT_IN.iter().find(|(known, _)| *known == name) {
        return Ok(StudyFile { text: (*text).into(), folder: None });
    }
    let path = Path::new(name);
    let path =
        if path.is_dir() { path.join(format!("{}.toml", E::KIND)) } else { path.to_path_buf() };
    match files::read_named_text(&path, 16 << 20) {
        Ok(text) => {
            let folder = path.canonicalize()?.parent().map(Path::to_path_buf);
            Ok(StudyFile { text, folder })
        }
        Err(error) => {
            let known: Vec<&str> = E::BUILT_IN.iter().map(|(name, _)| *name).collect();
            Err(Error::Usage(format!(
                "{name}: neither a built-in study ({}) nor a study file ({error})",
                known.join(", ")
            )))
        }
    }
}

/// Parses a study. Errors name the file.
pub fn parse<E: Experiment>(name: &str, text: &str) -> Result<E::Study, Error> {
    E::parse(text).map_err(|error| Error::Usage(format!("{name}: {error}")))
}

/// Lists the built-in studies.
pub fn list<E: Experiment>(json: bool) -> Result<(), Error> {
    let all = E::BUILT_IN
        .iter()
        .map(|(name, text)| E::describe(&parse::<E>(name, text)?))
        .collect::<Result<Vec<_>, Error>>()?;
    let mut out = escape::stdout();
    if json {
        serde_json::to_writer(&mut out, &all)?;
        return Ok(writeln!(out)?);
    }
    let mut columns = Table::with_headings(&["NAME", "QUICK", "FULL", "TITLE"], 1..3);
    for about in all {
        let time = |size: &E::Size| length(E::size(size).1);
        let StudyHeading { name, title, .. } = about.heading;
        columns.push_texts(vec![name, time(&about.quick), time(&about.proper), title]);
    }
    Ok(out.write_all(columns.for_stdout().as_bytes())?)
}

/// Shows a study.
pub fn show<E: Experiment>(name: &str, file: bool, json: bool) -> Result<(), Error> {
    let found = find::<E>(name)?;
    let mut out = escape::stdout();
    if file {
        // As it is, so that it can be copied.
        return Ok(out.wrapped(None).write_all(found.text.as_bytes())?);
    }
    let about = E::describe(&parse::<E>(name, &found.text)?)?;
    if json {
        serde_json::to_writer(&mut out, &about)?;
        return Ok(writeln!(out)?);
    }
    let StudyHeading { name, title, question, source } = about.heading;
    writeln!(out, "{name}: {title}")?;
    out.write_all(format!("\n{question}\n\n").as_bytes())?;
    let source = source.map(|source| ("source", source));
    for (what, text) in source.into_iter().chain(E::contents(&about.contents)) {
        writeln!(out, "{what:<8} {text}")?;
    }
    for (name, size) in [("quick", &about.quick), ("full", &about.proper)] {
        let (size, seconds) = E::size(size);
        writeln!(out, "{name:<8} {size}, about {}", length(seconds))?;
    }
    Ok(())
}

/// Runs a study, and writes and prints its results, even if they are incomplete.
pub fn run<E: Experiment>(args: &E::RunArgs) -> Result<(), Error> {
    let RunTarget { study, output, json } = E::target(args);
    let file = find::<E>(study)?;
    let name = E::heading(&parse::<E>(study, &file.text)?).name;
    let folder = output.map_or_else(|| format!("{}-{name}", E::KIND).into(), Path::to_path_buf);
    let ended = E::run(args, file, &folder);
    if ended.is_err() && E::has_results(&folder) {
        write::<E>(&folder)?;
    }
    ended?;
    report::<E>(&folder, json)
}

/// Writes all result files into a run's directory and prints the tables.
pub fn report<E: Experiment>(folder: &Path, json: bool) -> Result<(), Error> {
    let computed = write::<E>(folder)?;
    let mut out = escape::stdout();
    if json {
        serde_json::to_writer(&mut out, &computed.results)?;
        return Ok(writeln!(out)?);
    }
    let width = escape::terminal_width().unwrap_or(usize::MAX);
    out.write_all(computed.text(width).as_bytes())?;
    writeln!(out)?;
    Ok(writeln!(out, "Page: {}", folder.join("report.html").display())?)
}

/// Writes the results into a run's directory: results.json, tables.txt, the tables as CSV, report.html.
fn write<E: Experiment>(folder: &Path) -> Result<Computed<E::Results>, Error> {
    let computed = E::compute(folder)?;
    let put = |name: &str, text: &str| journal::replace(&folder.join(name), text.as_bytes());
    put("results.json", &(serde_json::to_string_pretty(&computed.results)? + "\n"))?;
    put("tables.txt", &computed.text(usize::MAX))?;
    for (number, table) in computed.tables.iter().enumerate() {
        put(&format!("table-{}.csv", number + 1), &table.csv())?;
    }
    put("report.html", &computed.page())?;
    Ok(computed)
}
