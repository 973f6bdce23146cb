// SPDX-License-Identifier: PostgreSQL
//! Reads a segment through a connection to its server: `tally.segment_changes` returns the changes since its last
//! call in the session (pg_tally/sql/remote.c).

mod changes;
mod packing;
mod pglz;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

use pq::{Client, Conninfo, Row};
use segment::layout::header;
use segment::{Moment, Origin, Parts};

use crate::session_limits::{self, Limit};
use crate::{extension, server};
use error::Error;

/// Maximum size of an image, so that a server cannot make us fill the memory.
const LARGEST: u64 = 1 << 40;

const CHANGES: &str = "/* tally */ select next_mark, tick, monotonic_ns, realtime_ns, sees_all, \
                       slot_ticks, raw_size, changes, processors from tally.segment_changes($1, $2)";

const EXTENSION: &str =
    "/* tally */ select exists (select from pg_extension where extname = 'pg_tally')";

/// Bring an image up to date: columns `changes` and `raw_size` of `tally.segment_changes`.
pub fn apply(image: &File, changes: &[u8], raw_size: i32) -> Result<(), String> {
    let changes = packing::unpack(changes, raw_size).ok_or("the server's reply is malformed")?;
    changes::apply(&changes, image, LARGEST)
}

/// A connection through which a segment is read.
pub(crate) struct Connection {
    client: Mutex<Client>,
    conninfo: String,
    server: String,
    /// Time limits of our session that could not be lifted.
    limits: Vec<Limit>,
    /// Identifies the call whose result the image has; 0: none.
    mark: i64,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the connection string, which may contain a password.
        f.debug_struct("Connection").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Connection {
    /// Connect, and check that the database has the extension.
    pub(crate) fn open(conninfo: &Conninfo) -> Result<Connection, Error> {
        let mut client = server::connect(conninfo)?;
        let exists: bool = client.query_one(EXTENSION, &[])?.get(0)?;
        let readable = extension::has_function(&mut client, "segment_changes")?;
        let database = client.database();
        let server = name_of(&client);
        if !exists {
            return Err(Error::Failed(format!(
                "{server}: database {database} does not have the extension pg_tally, which is needed to read the \
                 server's figures from another machine; run CREATE EXTENSION pg_tally there, or tally \
                 enable --database {database}. On the server's machine, GRANT pg_read_all_settings to \
                 the role is enough"
            )));
        }
        if !readable {
            return Err(Error::Failed(format!(
                "{server}: the extension pg_tally in database {database} is an earlier version, which \
                 cannot be read from another machine; install the current one, restart the server if it \
                 preloads pg_tally, then run ALTER EXTENSION pg_tally UPDATE in that database"
            )));
        }
        let limits = session_limits::in_force(&mut client);
        let client = Mutex::new(client);
        Ok(Connection { client, conninfo: conninfo.to_string(), server, limits, mark: 0 })
    }

    fn error(&self, why: impl std::fmt::Display) -> segment::Error {
        segment::Error::Remote { server: self.server.clone(), why: why.to_string() }
    }

    fn apply(&self, row: &Row, image: &File) -> Result<Moment, segment::Error> {
        let answer = |error: pq::Error| self.error(error.message());
        let number = |column| row.get::<i64>(column).map(|number| number as u64).map_err(answer);
        let changes = row.get(7).map_err(answer)?;
        apply(image, changes, row.get(6).map_err(answer)?).map_err(|why| self.error(why))?;
        let tick = number(1)?;
        let slots = changes::slot_ticks(row.get(5).map_err(answer)?, tick);
        Ok(Moment {
            tick,
            monotonic_ns: number(2)?,
            realtime_ns: number(3)?,
            slots: slots.ok_or_else(|| self.error("the server's reply is malformed"))?,
            processors: u32::try_from(row.get::<i32>(8).map_err(answer)?).unwrap_or(0),
            complete: row.get(4).map_err(answer)?,
            sample_seconds: None,
        })
    }
}

impl Origin for Connection {
    fn bring(&mut self, image: &File, parts: Parts) -> Result<Moment, segment::Error> {
        let first = self.mark == 0;
        let client = self.client.get_mut().unwrap_or_else(PoisonError::into_inner);
        let answer =
            client.query_one(CHANGES, &[&self.mark, &(i32::from(parts.0) | packing::ZSTD)]);
        let row = answer.map_err(|error| {
            let hint = error.hint().map_or(String::new(), |hint| format!(" ({hint})"));
            let limits = session_limits::explain(error.sqlstate(), &self.limits);
            self.error(format!("{}{hint}{limits}", error.message()))
        })?;
        let moment = self.apply(&row, image)?;
        self.mark = row.get(0).map_err(|error| self.error(error.message()))?;
        if first {
            let mut size = [0; 8];
            let read = image.read_exact_at(&mut size, header::SEGMENT_SIZE as u64);
            let size = u64::from_ne_bytes(size).min(LARGEST);
            read.and_then(|()| image.set_len(size)).map_err(|error| self.error(error))?;
        }
        Ok(moment)
    }

    fn server(&self) -> &str {
        &self.server
    }

    fn conninfo(&self) -> &str {
        &self.conninfo
    }
}

/// The server's location, as a user would name it.
pub(crate) fn name_of(client: &Client) -> String {
    let (host, port) = (client.host(), client.port());
    if host.starts_with('/') {
        return format!("{host}/.s.PGSQL.{port}");
    }
    let kind = if client.is_encrypted() { ", encrypted" } else { "" };
    format!("{host}:{port}{kind}")
}
