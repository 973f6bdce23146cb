// SPDX-License-Identifier: PostgreSQL
//! The output files of a profile. Their names select the format.

use std::path::{Path, PathBuf};

use crate::recorder::Recorded;
use crate::{firefox, pprof, Profile};
use error::Error;

use super::text;

/// Rows and width of the tables below a flame graph.
const ROWS: usize = 50;
const WIDTH: usize = 140;

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    /// The profile itself, which can be read again.
    Own,
    /// A page with a flame graph.
    Page,
    /// pprof.
    Pprof,
    /// The Firefox Profiler's format.
    Firefox,
}

/// Name endings and their formats, longest first.
const ENDINGS: [(&str, Format); 4] = [
    (".json.gz", Format::Firefox),
    (".pb.gz", Format::Pprof),
    (".html", Format::Page),
    (".json", Format::Own),
];

/// Files with their formats.
#[derive(Debug)]
pub struct Files(Vec<(PathBuf, Format)>);

impl Files {
    /// Files with these names. Fails if a name does not select a format, before anything is sampled.
    pub fn from_paths(names: &[PathBuf]) -> Result<Files, Error> {
        let one = |path: &PathBuf| format(path).map(|format| (path.clone(), format));
        names.iter().map(one).collect::<Result<_, _>>().map(Files)
    }

    /// Writes all files.
    pub fn write(&self, recorded: &Recorded) -> Result<(), Error> {
        self.0.iter().try_for_each(|(path, format)| {
            let content = match format {
                Format::Own => serde_json::to_vec(&recorded.profile)?,
                Format::Page => page(&recorded.profile)?.into_bytes(),
                Format::Pprof => pprof::encode(&recorded.profile)?,
                Format::Firefox => firefox::encode(&recorded.profile, &recorded.timeline)?,
            };
            view::output::write(path, &content)?;
            view::output::announce(path);
            Ok(())
        })
    }
}

fn page(profile: &Profile) -> Result<String, Error> {
    let title = format!("Profile of {}, {}", profile.server, profile.host);
    view::page::flame(&title, &text::text(profile, ROWS, (WIDTH, WIDTH), false), profile)
}

fn format(path: &Path) -> Result<Format, Error> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let found = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending));
    found.map(|ending| ending.1).ok_or_else(|| {
        let known: Vec<&str> = ENDINGS.iter().map(|ending| ending.0).collect();
        let known = known.join(", ");
        Error::Usage(format!("-o {}: the file name must end in one of {known}", path.display()))
    })
}
