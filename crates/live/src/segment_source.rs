// SPDX-License-Identifier: PostgreSQL
//! Where a segment is read from.

use std::fmt;

use pq::{Client, Conninfo};
use segment::{Segment, SegmentPath};

use crate::local_server::path_by_now;
use crate::reach::Reach;
use crate::remote::Connection;
use crate::sampled::{SampleRate, Sampler};
use crate::{server, spec};
use error::Error;

/// Where a segment is read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SegmentSource {
    /// A file on this machine.
    File(SegmentPath),
    /// The segment is read through a connection to this server.
    Server(Conninfo),
    /// The segment is made of samples of this server.
    Samples(Conninfo, SampleRate),
}

impl SegmentSource {
    /// Attach to the segment.
    pub fn open(&self) -> Result<Segment, Error> {
        match self {
            SegmentSource::File(path) => Ok(Segment::open(&path_by_now(path))?),
            SegmentSource::Server(conninfo) => {
                let connection = Connection::open(conninfo)?;
                Ok(Segment::of_origin(Box::new(connection))?)
            }
            SegmentSource::Samples(conninfo, rate) => {
                // It may have been enabled since.
                if !rate.is_for_any_server() {
                    match Reach::find(conninfo)? {
                        Reach::File(path) => return Ok(Segment::open(&path)?),
                        Reach::Connection => return SegmentSource::Server(conninfo.clone()).open(),
                        Reach::Nothing { .. } => {}
                    }
                }
                let sampler = Sampler::open(conninfo, *rate)?;
                Ok(Segment::of_origin(Box::new(sampler))?)
            }
        }
    }

    /// The file; an error if the segment is read through a connection. `what` names the feature that needs the file.
    pub fn file(&self, what: &str) -> Result<&SegmentPath, Error> {
        match self {
            SegmentSource::File(path) => Ok(path),
            SegmentSource::Server(_) => Err(Error::Failed(format!(
                "{what} works only on the server's machine, and as a user who may open the segment: run \
                 this there, as the server's user"
            ))),
            SegmentSource::Samples(..) => Err(Error::Failed(format!(
                "{what} needs pg_tally on the server, which is only sampled; `tally enable` enables it"
            ))),
        }
    }

    /// A name under which other commands find the segment: a path or a connection string.
    pub fn target(&self) -> String {
        match self {
            SegmentSource::File(path) => path.path().display().to_string(),
            SegmentSource::Server(conninfo) | SegmentSource::Samples(conninfo, _) => {
                conninfo.to_string()
            }
        }
    }
}

impl SegmentSource {
    /// Connects to its server, as the user specified if the segment was found through a connection.
    pub(crate) fn connect(&self) -> Result<Client, Error> {
        let as_specified = |mut conninfo: Conninfo| {
            spec::complete_database(&mut conninfo);
            server::connect(&conninfo)
        };
        match self {
            SegmentSource::File(path) => match path.conninfo() {
                Some(conninfo) => as_specified(Conninfo::parse(conninfo)?),
                None => server::connect_target(Some(&self.target())),
            },
            SegmentSource::Server(conninfo) | SegmentSource::Samples(conninfo, _) => {
                as_specified(conninfo.clone())
            }
        }
    }
}

impl From<SegmentPath> for SegmentSource {
    fn from(path: SegmentPath) -> SegmentSource {
        SegmentSource::File(path)
    }
}

impl fmt::Display for SegmentSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SegmentSource::File(path) => path.path().display().fmt(f),
            // Never the connection string: it may contain a password.
            SegmentSource::Server(conninfo) | SegmentSource::Samples(conninfo, _) => {
                let part = |name| conninfo.get(name).unwrap_or("the default");
                write!(f, "the server at host {}, port {}", part("host"), part("port"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_without_its_password() {
        let text = "host=db1 port=5433 user=me password=SECRET";
        let source = SegmentSource::Server(Conninfo::parse(text).unwrap());
        assert_eq!(source.to_string(), "the server at host db1, port 5433");
        let error = source.file("`tally level`").unwrap_err().to_string();
        assert!(error.starts_with("`tally level` works only on the server's machine"), "{error}");
        let source = SegmentSource::Server(Conninfo::default());
        assert_eq!(source.to_string(), "the server at host the default, port the default");
    }
}
