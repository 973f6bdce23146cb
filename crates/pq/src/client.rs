// SPDX-License-Identifier: PostgreSQL
//! A connection to a server.

use std::ffi::{c_char, c_int, c_void, CString};
use std::mem::ManuallyDrop;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{FromRawFd, RawFd};
use std::ptr::{null, NonNull};

use crate::bundled;
use crate::conninfo::Conninfo;
use crate::error::{text, Error};
use crate::ffi;
use crate::param::Param;
use crate::row::{Outcome, Row};

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// For a Unix-domain socket: the process that listens on it.
    Process {
        /// Its PID.
        pid: u32,
        /// The user that it ran as when it began to listen.
        uid: u32,
    },
    /// For a TCP connection: the addresses of both ends.
    Address {
        /// This end.
        ours: SocketAddr,
        /// The other end, or a proxy in between.
        theirs: SocketAddr,
    },
}

/// A connection; closed on drop.
#[derive(Debug)]
pub struct Client {
    connection: NonNull<ffi::Connection>,
}

// SAFETY: libpq allows any thread to use a connection, one at a time; all methods that do more than read its parameters
// take `&mut self`.
unsafe impl Send for Client {}

/// Names of columns, and rows: each value as text, `None` for null.
pub type Table = (Vec<String>, Vec<Vec<Option<String>>>);

impl Client {
    /// Connect. libpq finds parameters that `conninfo` does not have.
    ///
    /// # Errors
    ///
    /// libpq's message, which names host and port.
    pub fn connect(conninfo: &Conninfo) -> Result<Client, Error> {
        let mut conninfo = conninfo.clone();
        if cfg!(feature = "bundled") {
            if let Some(host) = bundled::default_host(&conninfo) {
                conninfo.set("host", host);
            }
        }
        // Pass the parameters as a string in dbname, so that an empty value overrides the environment instead of being
        // ignored.
        let string = terminated(&conninfo.set("client_encoding", "UTF8").to_string())?;
        let keywords = [c"dbname".as_ptr(), null()];
        let values = [string.as_ptr(), null()];
        // SAFETY: both arrays end with a null pointer, and their strings with a null byte.
        let connection = unsafe { ffi::PQconnectdbParams(keywords.as_ptr(), values.as_ptr(), 1) };
        let connection = NonNull::new(connection).ok_or_else(|| Error::local("out of memory"))?;
        let client = Client { connection };
        if client.is_closed() {
            return Err(Error::of_connection(client.as_ptr()));
        }
        // SAFETY: the connection is open; the processor uses no argument.
        unsafe {
            ffi::PQsetNoticeProcessor(client.as_ptr(), Some(ignore), null::<c_void>().cast_mut())
        };
        Ok(client)
    }

    fn as_ptr(&self) -> *mut ffi::Connection {
        self.connection.as_ptr()
    }

    /// Run statements, separated by semicolons.
    pub fn batch_execute(&mut self, sql: &str) -> Result<(), Error> {
        let sql = terminated(sql)?;
        // SAFETY: the connection is open, and the text terminated.
        let outcome = Outcome(unsafe { ffi::PQexec(self.as_ptr(), sql.as_ptr()) });
        self.check(&outcome)
    }

    /// The rows of all statements, which are separated by semicolons: each value as text, `None` for null.
    pub fn texts(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, Error> {
        Ok(self.text_rows(sql)?.iter().map(Row::texts).collect())
    }

    /// The same, with the names of the first row's columns.
    pub fn table(&mut self, sql: &str) -> Result<Table, Error> {
        let rows = self.text_rows(sql)?;
        Ok((
            rows.first().map(Row::names).unwrap_or_default(),
            rows.iter().map(Row::texts).collect(),
        ))
    }

    fn text_rows(&mut self, sql: &str) -> Result<Vec<Row>, Error> {
        let sql = terminated(sql)?;
        // SAFETY: the connection is open, and the text terminated.
        if unsafe { ffi::PQsendQuery(self.as_ptr(), sql.as_ptr()) } == 0 {
            return Err(Error::of_connection(self.as_ptr()));
        }
        let (mut rows, mut failed) = (Vec::new(), None);
        loop {
            // SAFETY: the connection is open. Results are fetched until there are none, as libpq requires.
            let outcome = Outcome(unsafe { ffi::PQgetResult(self.as_ptr()) });
            if outcome.0.is_null() {
                break;
            }
            match self.check(&outcome) {
                Ok(()) => rows.extend(outcome.rows()),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(rows), Err)
    }

    /// The rows of one statement.
    pub fn query(&mut self, sql: &str, params: &[&dyn Param]) -> Result<Vec<Row>, Error> {
        let sql = terminated(sql)?;
        let texts =
            params.iter().map(|param| param.text().map(|text| terminated(&text)).transpose());
        let texts: Vec<Option<CString>> = texts.collect::<Result<_, _>>()?;
        let values: Vec<*const c_char> =
            texts.iter().map(|text| text.as_ref().map_or(null(), |text| text.as_ptr())).collect();
        let count =
            c_int::try_from(values.len()).map_err(|_| Error::local("too many parameters"))?;
        // SAFETY: the connection is open; there are `count` values, each null or terminated. Without types, lengths
        // and formats, libpq takes them as text, and the server infers the types.
        let outcome = Outcome(unsafe {
            ffi::PQexecParams(
                self.as_ptr(),
                sql.as_ptr(),
                count,
                null(),
                values.as_ptr(),
                null(),
                null(),
                1,
            )
        });
        self.check(&outcome)?;
        Ok(outcome.rows())
    }

    /// The only row of one statement.
    pub fn query_one(&mut self, sql: &str, params: &[&dyn Param]) -> Result<Row, Error> {
        self.query_opt(sql, params)?.ok_or_else(|| Error::local("the server returned no row"))
    }

    /// The only row of one statement, or `None` if there is no row.
    pub fn query_opt(&mut self, sql: &str, params: &[&dyn Param]) -> Result<Option<Row>, Error> {
        let mut rows = self.query(sql, params)?;
        match rows.len() {
            0 | 1 => Ok(rows.pop()),
            count => Err(Error::local(format!("the server returned {count} rows instead of one"))),
        }
    }

    fn check(&self, outcome: &Outcome) -> Result<(), Error> {
        match outcome.status() {
            ffi::COMMAND_OK | ffi::TUPLES_OK | ffi::EMPTY_QUERY => Ok(()),
            _ => Err(Error::of_outcome(outcome.0, self.as_ptr())),
        }
    }

    /// Whether the connection is known to be broken.
    pub fn is_closed(&self) -> bool {
        // SAFETY: the connection is not freed yet.
        unsafe { ffi::PQstatus(self.as_ptr()) != ffi::CONNECTION_OK }
    }

    /// The host name, address or socket directory of the server.
    pub fn host(&self) -> String {
        // SAFETY: the connection is not freed yet.
        unsafe { text(ffi::PQhost(self.as_ptr())) }.unwrap_or_default()
    }

    /// The port.
    pub fn port(&self) -> String {
        // SAFETY: the connection is not freed yet.
        unsafe { text(ffi::PQport(self.as_ptr())) }.unwrap_or_default()
    }

    /// The user of the connection.
    pub fn user(&self) -> String {
        // SAFETY: the connection is not freed yet.
        unsafe { text(ffi::PQuser(self.as_ptr())) }.unwrap_or_default()
    }

    /// The database.
    pub fn database(&self) -> String {
        // SAFETY: the connection is not freed yet.
        unsafe { text(ffi::PQdb(self.as_ptr())) }.unwrap_or_default()
    }

    /// The server's version as server_version_num; 0 without a connection.
    pub fn server_version(&self) -> i32 {
        // SAFETY: the connection is not freed yet.
        unsafe { ffi::PQserverVersion(self.as_ptr()) }
    }

    /// The socket's descriptor.
    pub fn socket(&self) -> RawFd {
        // SAFETY: the connection is not freed yet.
        unsafe { ffi::PQsocket(self.as_ptr()) }
    }

    /// The other end of the connection, according to the kernel.
    pub fn peer(&self) -> Option<Peer> {
        let fd = self.socket();
        if fd < 0 {
            return None;
        }
        // SAFETY: this is libpq's socket, which is open until the connection is freed, and `self` keeps the connection.
        // It is not closed here.
        let stream = ManuallyDrop::new(unsafe { TcpStream::from_raw_fd(fd) });
        if let (Ok(ours), Ok(theirs)) = (stream.local_addr(), stream.peer_addr()) {
            return Some(Peer::Address { ours, theirs });
        }
        let mut credentials = ffi::Credentials::default();
        let mut length = size_of::<ffi::Credentials>() as u32;
        // SAFETY: the kernel writes at most `length` bytes, the size of the structure; every bit pattern is a valid
        // number.
        let failed = unsafe {
            ffi::getsockopt(
                fd,
                ffi::SOL_SOCKET,
                ffi::SO_PEERCRED,
                (&raw mut credentials).cast(),
                &raw mut length,
            )
        };
        // 0: a process in a PID namespace that is not visible from here.
        let pid = u32::try_from(credentials.pid).ok().filter(|&pid| pid != 0);
        let pid = pid.filter(|_| failed == 0)?;
        Some(Peer::Process { pid, uid: credentials.uid })
    }

    /// Whether the connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        // SAFETY: the connection is not freed yet.
        unsafe { ffi::PQsslInUse(self.as_ptr()) != 0 }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // SAFETY: we own the connection, and free it only once.
        unsafe { ffi::PQfinish(self.as_ptr()) }
    }
}

fn terminated(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::local("a string for the server contains a null byte"))
}

/// Ignores notices, because the user did not write the statements.
extern "C" fn ignore(_: *mut c_void, _: *const c_char) {}
