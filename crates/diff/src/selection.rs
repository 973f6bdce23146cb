// SPDX-License-Identifier: PostgreSQL
//! Selects the part of a recording to compare: DIR or DIR@FROM..TO.

use std::path::{Path, PathBuf};

use report::Edge;

/// One side of a comparison, as given on the command line: DIR or DIR@FROM..TO.
#[derive(Debug, Clone, PartialEq)]
pub struct Selection {
    /// The recording's directory, or a bucket.
    pub directory: PathBuf,
    /// Start; `None` for the start of the recording.
    pub from: Option<Edge>,
    /// End; `None` for the end of the recording.
    pub to: Option<Edge>,
}

impl Selection {
    /// Whether the recording is in a bucket.
    pub fn is_url(&self) -> bool {
        self.directory.to_str().is_some_and(ship::is_url)
    }

    /// Parses the argument. An existing directory of that name takes precedence.
    pub fn parse(text: &str) -> Result<Selection, String> {
        let whole = || Selection { directory: text.into(), from: None, to: None };
        if Path::new(text).exists() {
            return Ok(whole());
        }
        let Some((directory, range)) = text.rsplit_once('@') else {
            return Ok(whole());
        };
        let Some((from, to)) = range.split_once("..") else {
            if ship::is_url(text) {
                // az://CONTAINER@ACCOUNT
                return Ok(whole());
            }
            return Err(format!(
                "\"@{range}\" is not a time range; write @FROM..TO, @FROM.. or @..TO, such as \
                 @14:30..14:45 or @-10m.."
            ));
        };
        let edge = |text: &str| (!text.is_empty()).then(|| Edge::parse(text)).transpose();
        Ok(Selection { directory: directory.into(), from: edge(from)?, to: edge(to)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_follows_the_directory() {
        let parse = |text| Selection::parse(text).unwrap();
        let (from, to) = (Edge::parse("-20m").ok(), Edge::parse("-10m").ok());
        let directory: PathBuf = "/srv/a@b".into();
        let selection = |from, to| Selection { directory: directory.clone(), from, to };
        assert_eq!(parse("/srv/a@b@-20m..-10m"), selection(from, to));
        assert_eq!(parse("/srv/a@b@-20m.."), selection(from, None));
        assert_eq!(parse("/srv/a@b@..-10m"), selection(None, to));
        assert_eq!(parse("/srv/recording").directory, Path::new("/srv/recording"));
    }

    #[test]
    fn errors_about_ranges_show_examples() {
        let error = Selection::parse("/srv/recording@14:30").unwrap_err();
        assert!(error.contains("@14:30..14:45"), "{error}");
        assert!(Selection::parse("/srv/recording@yesterday..").is_err());
    }

    #[test]
    fn an_existing_directory_takes_precedence_over_a_range() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run@1..2");
        std::fs::create_dir(&path).unwrap();
        let selection = Selection::parse(path.to_str().unwrap()).unwrap();
        assert_eq!(selection, Selection { directory: path, from: None, to: None });
    }
}
