// SPDX-License-Identifier: PostgreSQL
//! A kind of experiment, and what its verb does: list, show and report studies. The kinds are `study` and `storage`.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::journal;
use super::progress::length;
use error::Error;
use view::escape;
use view::table::Table;

/// A kind of experiment.
pub trait Experiment {
    /// Its verb. The file of a study is called KIND.toml, the directory of a run KIND-NAME.
    const KIND: &'static str;
    /// Names and texts of the built-in studies, in the order of lists.
    const BUILT_IN: &'static [(&'static str, &'static str)];
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
    /// Describes a study.
    fn describe(study: &Self::Study) -> Result<About<Self::Contents, Self::Size>, Error>;
    /// Its contents, in words.
    fn contents(contents: &Self::Contents) -> Vec<(&'static str, String)>;
    /// How much it measures, in words, and how long that takes, seconds.
    fn size(size: &Self::Size) -> (String, f64);
    /// Whether the directory of a run has anything to report.
    fn has_results(folder: &Path) -> bool;
    /// Computes the results of the run in this directory.
    fn compute(folder: &Path) -> Result<Computed<Self::Results>, Error>;
}

/// A study, as `list` and `show` print it.
#[derive(Debug, Serialize)]
pub struct About<C, S> {
    /// Name of the study.
    pub name: String,
    /// Title, one line.
    pub title: String,
    /// The question it answers.
    pub question: String,
    /// The original study, if it repeats one.
    pub source: Option<String>,
    /// Its contents.
    #[serde(flatten)]
    pub contents: C,
    /// Size of the quick variant.
    pub quick: S,
    /// Size of the full variant.
    pub proper: S,
}

/// The results of a run.
#[derive(Debug)]
pub struct Computed<R> {
    /// The figures.
    pub results: R,
    /// Their tables.
    pub tables: Vec<Table>,
    /// The answer in sentences.
    pub text: String,
    /// The answer as a page.
    pub page: String,
}

impl<R> Computed<R> {
    /// The answer as text, its tables of this width.
    fn text_with_tables(&self, width: usize) -> String {
        let tables = self.tables.iter();
        let tables = tables.map(|table| format!("\n{}\n\n{}", table.title, table.text(width)));
        self.text.clone() + &tables.collect::<String>()
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
        columns.push_texts(vec![about.name, time(&about.quick), time(&about.proper), about.title]);
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
    writeln!(out, "{}: {}", about.name, about.title)?;
    out.write_all(format!("\n{}\n\n", about.question).as_bytes())?;
    let source = about.source.map(|source| ("source", source));
    for (what, text) in source.into_iter().chain(E::contents(&about.contents)) {
        writeln!(out, "{what:<8} {text}")?;
    }
    for (name, size) in [("quick", &about.quick), ("full", &about.proper)] {
        let (size, seconds) = E::size(size);
        writeln!(out, "{name:<8} {size}, about {}", length(seconds))?;
    }
    Ok(())
}

/// Writes and prints the results of a run, even if it is incomplete.
pub fn finish<E: Experiment>(
    folder: &Path,
    ended: Result<(), Error>,
    json: bool,
) -> Result<(), Error> {
    if ended.is_err() && E::has_results(folder) {
        write::<E>(folder)?;
    }
    ended?;
    report::<E>(folder, json)
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
    out.write_all(computed.text_with_tables(width).as_bytes())?;
    writeln!(out)?;
    Ok(writeln!(out, "Page: {}", folder.join("report.html").display())?)
}

/// Writes the results into a run's directory: results.json, tables.txt, the tables as CSV, report.html.
fn write<E: Experiment>(folder: &Path) -> Result<Computed<E::Results>, Error> {
    let computed = E::compute(folder)?;
    let put = |name: &str, text: &str| journal::replace(&folder.join(name), text.as_bytes());
    put("results.json", &(serde_json::to_string_pretty(&computed.results)? + "\n"))?;
    put("tables.txt", &computed.text_with_tables(usize::MAX))?;
    for (number, table) in computed.tables.iter().enumerate() {
        put(&format!("table-{}.csv", number + 1), &table.csv())?;
    }
    put("report.html", &computed.page)?;
    Ok(computed)
}
