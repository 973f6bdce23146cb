// SPDX-License-Identifier: PostgreSQL
//! How the figures of the server at the other end of a connection can be read.

use std::path::PathBuf;

use pq::{Client, Conninfo};
use segment::{Segment, SegmentPath};

use crate::local_server::LocalServer;
use crate::server;
use error::Error;

/// How they can be read.
pub(crate) enum Reach {
    /// From a segment on this machine that we may open.
    File(SegmentPath),
    /// Through the connection.
    Connection,
    /// The server does not load pg_tally, as far as this role can see.
    Nothing {
        /// Its data directory, if it runs on this machine and has no segment.
        data: Option<PathBuf>,
    },
}

impl Reach {
    /// Ask the server.
    pub(crate) fn find(conninfo: &Conninfo) -> Result<Reach, Error> {
        let mut client = server::connect(conninfo)?;
        let mut data = None;
        if let Some(server) = LocalServer::of_connection(&mut client)? {
            let path = server.segment_path();
            match Segment::open(path) {
                // A crashed server may have left the segment of an earlier run.
                Ok(segment) if segment.header().server_pid == server.postmaster() => {
                    let path = path.clone().found_through(conninfo.to_string());
                    return Ok(Reach::File(path));
                }
                Err(error @ segment::Error::Foreign { .. }) => return Err(error.into()),
                Err(segment::Error::NotFound { .. }) => data = Some(server.data().to_path_buf()),
                _ => {}
            }
        }
        Ok(match loads_library(&mut client)? {
            true => Reach::Connection,
            false => Reach::Nothing { data },
        })
    }
}

/// Whether the server loads the library (as far as this role can see), or our session has loaded it and so defined its
/// settings, or its database has the views.
fn loads_library(client: &mut Client) -> Result<bool, Error> {
    const LISTS: &str = "/* tally */ select exists (select from pg_settings where name in \
                         ('shared_preload_libraries', 'session_preload_libraries') and setting like '%pg_tally%' \
                         or left(name, 9) = 'pg_tally.') \
                         or exists (select from pg_extension where extname = 'pg_tally')";
    Ok(client.query_one(LISTS, &[])?.get(0)?)
}
