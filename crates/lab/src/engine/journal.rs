// SPDX-License-Identifier: PostgreSQL
//! The directory of a run: the study as it was run, and its cells, each added when it ends. An
//! interrupted run resumes from it.

use files::Access;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use error::Error;
use live::host::Host;

/// Maximum number of bytes to read from a file.
const LARGEST: u64 = 1 << 30;

const STUDY: &str = "study.toml";
const CELLS: &str = "cells.jsonl";
const HEAD: &str = "run.json";

/// How the cells were run. A run may only resume with an equal head.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunHead {
    /// Whether it is the quick variant.
    pub quick: bool,
    /// Directories given instead of those of the arms.
    pub directories: Vec<PathBuf>,
    /// Length of the cells, seconds, if it differs from the study's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Version of the program that is measured or generates the load: PostgreSQL, fio.
    pub server: String,
    /// Version of tally.
    pub version: String,
}

impl RunHead {
    /// A run by this version of tally, without options.
    pub fn new(quick: bool, server: String) -> Self {
        let version = env!("CARGO_PKG_VERSION").into();
        Self { quick, directories: Vec::new(), seconds: None, server, version }
    }
}

/// The record of a run in its directory, apart from its cells: run.json.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunRecord {
    /// How the cells were run.
    pub head: RunHead,
    /// The machine.
    pub host: Host,
    /// Names of arms that were left out, with the reason.
    #[serde(default)]
    pub left_out: Vec<(String, String)>,
    /// Cells without figures, in words, with the reason. The next run tries them again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<(String, String)>,
}

impl RunRecord {
    /// Why an arm was left out; `None` if it was not.
    pub fn left_out(&self, arm: &str) -> Option<&str> {
        let (_, why) = self.left_out.iter().find(|(known, _)| known == arm)?;
        Some(why)
    }

    /// The variant, to be appended to a sentence about the number of cells.
    pub fn variant(&self) -> &'static str {
        match self.head.quick {
            true => " of the quick variant",
            false => "",
        }
    }

    /// Program and machine in words.
    pub fn machine(&self) -> String {
        let Host { processors, processor, kernel, .. } = &self.host;
        format!("{}, {processors} processors ({processor}), {kernel}", self.head.server)
    }
}

/// The open directory of a run.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    /// Lock on the directory: one run at a time writes there.
    _lock: files::Lock,
    cells: File,
    /// The content of run.json.
    pub kept: RunRecord,
}

impl Journal {
    /// Opens the directory for a new or resumed run. Also returns its cells. Fails if another run uses it
    /// or if its cells belong to a different run.
    pub fn open<C: DeserializeOwned>(
        folder: &Path,
        text: &str,
        head: RunHead,
        host: Host,
    ) -> Result<(Self, Vec<C>), Error> {
        files::folder(folder, Access::Owner).map_err(|error| at(folder, &error))?;
        let lock = File::open(folder).map_err(|error| at(folder, &error))?;
        let lock =
            files::Lock::take(lock).map_err(|error| at(folder, &error))?.ok_or_else(|| {
                Error::Failed(format!("{} is in use by another run", folder.display()))
            })?;
        let study = folder.join(STUDY);
        let mut kept = RunRecord { head, host, left_out: Vec::new(), failed: Vec::new() };
        let mut cells = Vec::new();
        if study.exists() {
            let same = files::read_text(&study, LARGEST).is_ok_and(|kept| kept == text);
            let before = read_kept(folder)?;
            if !same || before.head != kept.head {
                return Err(Error::Failed(format!(
                    "{} has the results of a different run ({}); choose another directory with -o, \
                     or remove this one",
                    folder.display(),
                    if same {
                        "different variant, server or version"
                    } else {
                        "different study file"
                    }
                )));
            }
            kept = before;
            cells = read_cells(folder)?;
            drop_cut_line(&folder.join(CELLS))?;
        } else {
            write_kept(folder, &kept)?;
            replace(&study, text.as_bytes())?;
        }
        let path = folder.join(CELLS);
        let file = files::append(&path, Access::Owner).map_err(|error| at(&path, &error))?;
        Ok((Self { folder: folder.into(), _lock: lock, cells: file, kept }, cells))
    }

    /// How many cells are complete, and how to continue.
    pub fn progress(&self, done: usize, all: usize) -> String {
        format!(
            "{done} of {all} cells are complete in {}; run the same command again to continue",
            self.folder.display()
        )
    }

    /// Appends a cell and flushes it to disk.
    pub fn add(&mut self, cell: &impl Serialize) -> Result<(), Error> {
        let line = serde_json::to_string(cell)? + "\n";
        self.cells
            .write_all(line.as_bytes())
            .and_then(|()| self.cells.sync_data())
            .map_err(|error| at(&self.folder.join(CELLS), &error))
    }

    /// Records that an arm is left out, and why.
    pub fn leave_out(&mut self, arm: &str, why: &str) -> Result<(), Error> {
        self.kept.left_out.push((arm.into(), why.into()));
        write_kept(&self.folder, &self.kept)
    }

    /// Records that a cell has failed, and why; `None` if it has figures after all.
    pub fn fail(&mut self, cell: &str, why: Option<&str>) -> Result<(), Error> {
        let before = self.kept.failed.len();
        self.kept.failed.retain(|(known, _)| known != cell);
        self.kept.failed.extend(why.map(|why| (cell.to_string(), why.to_string())));
        match before == 0 && why.is_none() {
            true => Ok(()),
            false => write_kept(&self.folder, &self.kept),
        }
    }
}

fn write_kept(folder: &Path, kept: &RunRecord) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(kept)? + "\n";
    replace(&folder.join(HEAD), text.as_bytes())
}

/// Reads a run's directory: the text of the study, the cells, and the content of run.json.
pub fn read<C: DeserializeOwned>(folder: &Path) -> Result<(String, Vec<C>, RunRecord), Error> {
    let kept = read_kept(folder)?;
    let path = folder.join(STUDY);
    let study = files::read_text(&path, LARGEST).map_err(|error| at(&path, &error))?;
    Ok((study, read_cells(folder)?, kept))
}

fn read_kept(folder: &Path) -> Result<RunRecord, Error> {
    let path = folder.join(HEAD);
    let text = files::read_text(&path, LARGEST).map_err(|error| {
        Error::Failed(format!("{}: {error}; is this the directory of a run?", path.display()))
    })?;
    serde_json::from_str(&text)
        .map_err(|error| Error::Failed(format!("{}: {error}", path.display())))
}

fn read_cells<C: DeserializeOwned>(folder: &Path) -> Result<Vec<C>, Error> {
    let path = folder.join(CELLS);
    let text = match files::read_text(&path, LARGEST) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(at(&path, &error)),
    };
    let mut cells = Vec::new();
    let last = text.lines().count();
    for (number, line) in text.lines().enumerate() {
        match serde_json::from_str(line) {
            Ok(cell) => cells.push(cell),
            // A kill may have cut the last line short.
            Err(_) if number + 1 == last && !text.ends_with('\n') => {}
            Err(error) => {
                return Err(Error::Failed(format!(
                    "{}, line {}: {error}",
                    path.display(),
                    number + 1
                )))
            }
        }
    }
    Ok(cells)
}

/// Removes a last line that a kill cut short.
fn drop_cut_line(path: &Path) -> Result<(), Error> {
    let Ok(bytes) = files::read(path, LARGEST) else { return Ok(()) };
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    match whole == bytes.len() {
        true => Ok(()),
        false => replace(path, &bytes[..whole]),
    }
}

/// Replaces a file atomically.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    view::output::replace(path, bytes).map_err(|error| at(path, &error))
}

fn at(path: &Path, error: &std::io::Error) -> Error {
    Error::Failed(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(folder: &Path, text: &str, quick: bool) -> Result<(Journal, Vec<u32>), Error> {
        let host = live::host::Watch::start().host("tsc");
        Journal::open(folder, text, RunHead::new(quick, "15".into()), host)
    }

    #[test]
    fn a_run_resumes_where_it_was_killed_and_no_other_run_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        let (mut journal, cells) = open(path, "study", false).unwrap();
        assert!(cells.is_empty());
        journal.add(&7).unwrap();
        journal.add(&123).unwrap();
        journal.leave_out("zfs", "no pool").unwrap();
        journal.fail("a cell", Some("no load")).unwrap();
        journal.fail("another cell", Some("no load")).unwrap();
        journal.fail("a cell", Some("no server")).unwrap();
        journal.fail("another cell", None).unwrap();
        let error = open(path, "study", false).unwrap_err().to_string();
        assert!(error.contains("in use by another run"), "{error}");
        drop(journal);

        // A kill has cut the last line short.
        std::fs::write(path.join(CELLS), "7\n\"").unwrap();
        let (mut journal, cells) = open(path, "study", false).unwrap();
        assert_eq!(cells, [7]);
        assert_eq!(journal.kept.left_out, [("zfs".to_string(), "no pool".to_string())]);
        let failed = [("a cell".to_string(), "no server".to_string())];
        assert_eq!(journal.kept.failed, failed);
        journal.add(&8).unwrap();
        drop(journal);
        let (study, cells, kept) = read::<u32>(path).unwrap();
        assert_eq!((study.as_str(), &cells[..], kept.left_out.len()), ("study", &[7, 8][..], 1));

        for (text, quick, why) in
            [("study", true, "different variant"), ("other", false, "different study file")]
        {
            let error = open(path, text, quick).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        std::fs::write(path.join(CELLS), "7\nx\n8\n").unwrap();
        let error = open(path, "study", false).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
    }
}
