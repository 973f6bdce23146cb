// SPDX-License-Identifier: PostgreSQL
//! The server at the other end of a connection, proven to run on this machine.
//!
//! A server's `data_directory` is a path on its own machine; here, the same path may belong to another server. So
//! nothing is looked up under that path, and no file is written or removed, before the kernel has shown that the
//! process at the other end is the postmaster of exactly this directory. A proxy, a forwarded socket or a translated
//! address proves nothing; such a server is treated as one on another machine.

use std::net::UdpSocket;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use error::Error;
use pq::{Client, Peer};
use process::Proc;
use segment::segment_path::NAME_PREFIX;
use segment::SegmentPath;

use crate::postmaster_file::PostmasterFile;

/// The directory of segments unless `pg_tally.directory` is set.
pub const DEFAULT_FOLDER: &str = "/dev/shm";

/// A server on this machine that is proven to be at the other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalServer {
    data: PathBuf,
    segment_path: SegmentPath,
    /// The postmaster's PID, as the server's own processes see it.
    postmaster: u32,
}

/// The server's statements about itself and its end of the connection.
struct Claims {
    data: Option<PathBuf>,
    folder: PathBuf,
    backend: Option<u32>,
    /// Addresses and ports of the client and the server; `None` for a Unix-domain socket.
    ends: Option<[(String, i32); 2]>,
}

impl LocalServer {
    /// The server of this connection, if it is proven to run here. `None`: it runs elsewhere, or the proof fails, as it
    /// does for a user who may not read its postmaster.pid.
    pub fn of_connection(client: &mut Client) -> Result<Option<LocalServer>, Error> {
        let claims = Claims::read(client)?;
        let Some(data) = &claims.data else { return Ok(None) };
        let (Some(postmaster), Ok(segment_path)) =
            (postmaster_in(data, &claims, client), segment_path_in(&claims.folder, data))
        else {
            return Ok(None);
        };
        Ok(Some(LocalServer { data: data.clone(), segment_path, postmaster }))
    }

    /// Where the extension would create its segment, whether or not that exists.
    pub fn segment_path(&self) -> &SegmentPath {
        &self.segment_path
    }

    /// Its data directory.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Its postmaster's PID, as its own processes see it.
    pub fn postmaster(&self) -> u32 {
        self.postmaster
    }
}

impl Claims {
    fn read(client: &mut Client) -> Result<Claims, Error> {
        let row = client.query_one(
            "/* tally */ select current_setting('pg_tally.directory', true), \
                    (select setting from pg_settings where name = 'data_directory'), \
                    pg_backend_pid(), host(inet_client_addr()), inet_client_port(), \
                    host(inet_server_addr()), inet_server_port()",
            &[],
        )?;
        let text = |at: usize| row.get::<Option<&str>>(at).ok()?.filter(|text| !text.is_empty());
        let end = |at: usize| Some((text(at)?.to_string(), row.get::<Option<i32>>(at + 1).ok()??));
        Ok(Claims {
            data: text(1).map(PathBuf::from),
            folder: text(0).unwrap_or(DEFAULT_FOLDER).into(),
            backend: u32::try_from(row.get::<i32>(2)?).ok(),
            ends: end(3).and_then(|client| Some([client, end(5)?])),
        })
    }
}

/// The PID of the postmaster of this data directory, if it is at the other end.
fn postmaster_in(data: &Path, claims: &Claims, client: &Client) -> Option<u32> {
    let named = PostmasterFile::named_in(data)?;
    // A server runs as the owner of its data directory. PIDs and process titles alone would prove nothing: any user may
    // have the PID in a namespace of their own, and titles contain text that clients sent before authentication.
    let owner = std::fs::metadata(data).ok()?.uid();
    let proc = Proc::default();
    let here = match client.peer()? {
        // It called listen(2) on the socket.
        Peer::Process { pid, uid } => {
            (uid == owner && proc.inner_pid(pid)? == named).then_some(pid)
        }
        Peer::Address { ours, theirs } => {
            // No address is translated between the two ends, and the other end is on this machine.
            let [client, server] = claims.ends.as_ref()?;
            let is = |(address, port): &(String, i32), end: &std::net::SocketAddr| {
                address.parse() == Ok(end.ip()) && *port == i32::from(end.port())
            };
            let direct = is(client, &ours) && is(server, &theirs);
            let local = direct && UdpSocket::bind((theirs.ip(), 0)).is_ok();
            // The server process that holds the other end, if we may look; in any case a process of that user.
            let backend = claims.backend?;
            let serves = local
                && proc.stat(backend)?.parent == named
                && proc.tcp_end(theirs, ours).is_some_and(|end| {
                    end.uid == owner && proc.holds(backend, end.inode).unwrap_or(true)
                });
            serves.then_some(named)
        }
    }?;
    // Its working directory is the data directory, if /proc lets us see it.
    let of = |path: &Path| std::fs::metadata(path).map(|meta| (meta.dev(), meta.ino()));
    let runs_in = of(&proc.path(here, "cwd"));
    (runs_in.is_err() || runs_in.ok() == of(data).ok()).then_some(named)
}

/// The path of a data directory's segment in this directory. Its name comes from the data
/// directory's device and inode, so that every spelling of its path leads to the same file; its
/// owner must be the data directory's.
pub fn segment_path_in(folder: &Path, data: &Path) -> Result<SegmentPath, Error> {
    let meta = std::fs::metadata(data)
        .map_err(|error| Error::Failed(format!("data directory {}: {error}", data.display())))?;
    let name = format!("{NAME_PREFIX}{:x}.{:x}", meta.dev(), meta.ino());
    Ok(SegmentPath::of_owner(folder.join(name), meta.uid()).found_in(data))
}

/// The same segment's path if its data directory is another one by now, under the same name: a standby that is made anew gets
/// a copy of its primary's.
pub(crate) fn path_by_now(path: &SegmentPath) -> SegmentPath {
    let folder = path.path().parent();
    let found = folder
        .zip(path.data_directory())
        .and_then(|(folder, data)| segment_path_in(folder, data).ok());
    match (found, path.conninfo()) {
        (Some(found), Some(conninfo)) => found.found_through(conninfo),
        (Some(found), None) => found,
        // No data directory is there for now.
        (None, _) => path.clone(),
    }
}
