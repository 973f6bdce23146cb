// SPDX-License-Identifier: PostgreSQL
//! What is compared: a recording, or a part of its time.

use std::path::{Path, PathBuf};

use report::Edge;

/// One side of a comparison, as it was asked for: DIR, or DIR@FROM..TO.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// The recording's directory.
    pub directory: PathBuf,
    /// From here ...
    pub from: Option<Edge>,
    /// ... to there.
    pub to: Option<Edge>,
}

impl Place {
    /// What the words say. A directory of that very name comes first.
    pub fn parse(text: &str) -> Result<Place, String> {
        let whole = || Place { directory: text.into(), from: None, to: None };
        if Path::new(text).exists() {
            return Ok(whole());
        }
        let Some((directory, range)) = text.rsplit_once('@') else {
            return Ok(whole());
        };
        let Some((from, to)) = range.split_once("..") else {
            return Err(format!(
                "\"@{range}\" is no range of time; say @FROM..TO, @FROM.. or @..TO, such as \
                 @14:30..14:45 or @-10m.."
            ));
        };
        let edge = |text: &str| (!text.is_empty()).then(|| Edge::parse(text)).transpose();
        Ok(Place { directory: directory.into(), from: edge(from)?, to: edge(to)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_follows_the_directory() {
        let parse = |text| Place::parse(text).unwrap();
        let (from, to) = (Edge::parse("-20m").ok(), Edge::parse("-10m").ok());
        let directory: PathBuf = "/srv/a@b".into();
        let place = |from, to| Place { directory: directory.clone(), from, to };
        assert_eq!(parse("/srv/a@b@-20m..-10m"), place(from, to));
        assert_eq!(parse("/srv/a@b@-20m.."), place(from, None));
        assert_eq!(parse("/srv/a@b@..-10m"), place(None, to));
        assert_eq!(parse("/srv/recording").directory, Path::new("/srv/recording"));
    }

    #[test]
    fn what_is_no_range_is_said_with_examples() {
        let error = Place::parse("/srv/recording@14:30").unwrap_err();
        assert!(error.contains("@14:30..14:45"), "{error}");
        assert!(Place::parse("/srv/recording@yesterday..").is_err());
    }

    #[test]
    fn a_directory_with_such_a_name_is_a_directory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run@1..2");
        std::fs::create_dir(&path).unwrap();
        let place = Place::parse(path.to_str().unwrap()).unwrap();
        assert_eq!(place, Place { directory: path, from: None, to: None });
    }
}
