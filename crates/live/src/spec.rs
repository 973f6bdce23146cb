// SPDX-License-Identifier: PostgreSQL
//! The forms of TARGET on the command line.

use std::path::{Path, PathBuf};

use error::Error;
use pq::Conninfo;

use crate::default_server::{self, is_set};

/// Environment variables that name a server.
const NAMING: [&str; 4] = ["PGHOST", "PGHOSTADDR", "PGPORT", "PGSERVICE"];

/// The server or segment that the user specified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Spec {
    /// No TARGET was given, and the environment does not name a server.
    Only,
    /// A segment, by its path.
    Segment(PathBuf),
    /// A data directory.
    DataDirectory(PathBuf),
    /// A connection, specified by a string, a URI, flags or the environment.
    Connection(Conninfo),
}

impl Spec {
    /// The form of this TARGET; a usage error if it has none of these forms.
    pub fn parse(target: Option<&str>) -> Result<Self, Error> {
        let Some(text) = target else {
            let named = NAMING.into_iter().any(is_set);
            return Ok(match named {
                true => Self::Connection(Conninfo::default()),
                false => default_server::cluster()?.map_or(Self::Only, Self::Connection),
            });
        };
        let path = Path::new(text);
        // A file name may contain an equals sign, so an existing path takes precedence.
        if path.is_dir() {
            return Ok(Self::DataDirectory(path.into()));
        }
        if path.exists() {
            return Ok(Self::Segment(path.into()));
        }
        if is_connection(text) {
            return Ok(Self::Connection(connection(text)?));
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

/// Whether this has the form of a connection string or URI.
pub fn is_connection(text: &str) -> bool {
    text.starts_with("postgres://")
        || text.starts_with("postgresql://")
        || (!text.starts_with('/') && text.contains('='))
}

/// The parameters in a connection string or URI.
pub fn connection(text: &str) -> Result<Conninfo, Error> {
    Conninfo::parse(text)
        .map_err(|error| Error::Usage(format!("not a connection string: {}", error.message())))
}

/// For a verb that stays connected: TARGET with the database `postgres`, if it is a connection and nobody names a database.
/// libpq's default is the role's own database, which could not be dropped meanwhile.
pub fn default_to_postgres(target: Option<&str>) -> Option<String> {
    let same = target.map(str::to_owned);
    // The verb itself reports what is wrong with TARGET.
    let Ok(Spec::Connection(conninfo)) = Spec::parse(target) else { return same };
    let mut completed = conninfo.clone();
    complete_database(&mut completed);
    if completed == conninfo {
        same
    } else {
        Some(completed.to_string())
    }
}

/// Names the database `postgres`, unless the user or the environment names one.
pub(crate) fn complete_database(conninfo: &mut Conninfo) {
    let named = ["dbname", "service"].iter().any(|keyword| conninfo.get(keyword).is_some());
    if !named && !is_set("PGDATABASE") && !is_set("PGSERVICE") {
        conninfo.set("dbname", "postgres");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_connection_without_a_database_gets_one() {
        let completed = |text: &str| default_to_postgres(Some(text)).unwrap();
        assert_eq!(completed("host=db1 user=me"), "user='me' host='db1' dbname='postgres'");
        for same in ["host=db1 dbname=shop", "service=production", "postgresql://db1/shop", "/tmp"]
        {
            assert_eq!(completed(same), same);
        }
    }

    #[test]
    fn connection_strings_differ_from_paths() {
        let connection = |text: &str| Ok::<_, ()>(Spec::Connection(connection(text).unwrap()));
        for text in ["host=/tmp user=me", "postgresql://localhost/db", "postgres://u@h:1/d"] {
            assert_eq!(Spec::parse(Some(text)).map_err(drop), connection(text));
        }
        assert_eq!(Spec::parse(None).map_err(drop), Ok(Spec::Only));
        assert_eq!(Spec::parse(Some("/tmp")).map_err(drop), Ok(Spec::DataDirectory("/tmp".into())));
        assert!(matches!(Spec::parse(Some("nonsense")), Err(Error::Usage(_))));
        assert!(matches!(Spec::parse(Some("/no/such=file")), Err(Error::Usage(_))));
    }
}
