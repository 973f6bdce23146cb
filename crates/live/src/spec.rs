// SPDX-License-Identifier: PostgreSQL
//! The forms of TARGET on the command line.

use std::path::{Path, PathBuf};

use error::Error;

/// What the user named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spec {
    /// Nothing was given.
    Only,
    /// A segment, by its path.
    Segment(PathBuf),
    /// A data directory.
    DataDirectory(PathBuf),
    /// A connection string or URI.
    Connection(String),
}

impl Spec {
    /// The form of this TARGET; a usage error if it has none of them.
    pub fn parse(target: Option<&str>) -> Result<Self, Error> {
        let Some(text) = target else { return Ok(Self::Only) };
        let path = Path::new(text);
        // A file may have an equals sign in its name: what exists is a path.
        if path.is_dir() {
            return Ok(Self::DataDirectory(path.into()));
        }
        if path.exists() {
            return Ok(Self::Segment(path.into()));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Connection(text.into()));
        }
        if !text.starts_with('/') && text.contains('=') {
            return Ok(Self::Connection(text.into()));
        }
        Err(match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                Error::Failed(format!("{text}: {error}; run this as the server's user or as root"))
            }
            _ => Error::Usage(format!(
                "{text}: no such file or directory, and not a connection string (\"host=... \
                 user=...\" or postgresql://...)"
            )),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_strings_differ_from_paths() {
        let connection = |text: &str| Ok::<_, ()>(Spec::Connection(text.into()));
        for text in ["host=/tmp user=me", "postgresql://localhost/db", "postgres://u@h:1/d"] {
            assert_eq!(Spec::parse(Some(text)).map_err(drop), connection(text));
        }
        assert_eq!(Spec::parse(None).map_err(drop), Ok(Spec::Only));
        assert_eq!(Spec::parse(Some("/tmp")).map_err(drop), Ok(Spec::DataDirectory("/tmp".into())));
        assert!(matches!(Spec::parse(Some("nonsense")), Err(Error::Usage(_))));
        assert!(matches!(Spec::parse(Some("/no/such=file")), Err(Error::Usage(_))));
    }
}
