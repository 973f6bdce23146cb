// SPDX-License-Identifier: PostgreSQL
//! The functions of libpq that are used (libpq-fe.h), whose interface has been stable since PostgreSQL 9.

use std::ffi::{c_char, c_int, c_void};

/// `PGconn`.
#[repr(C)]
pub(crate) struct Connection {
    _opaque: [u8; 0],
}

/// `PGresult`.
#[repr(C)]
pub(crate) struct RawResult {
    _opaque: [u8; 0],
}

/// `PQconninfoOption`.
#[repr(C)]
pub(crate) struct ConninfoOption {
    pub keyword: *const c_char,
    pub envvar: *const c_char,
    pub compiled: *const c_char,
    pub val: *const c_char,
    pub label: *const c_char,
    pub dispchar: *const c_char,
    pub dispsize: c_int,
}

pub(crate) const CONNECTION_OK: c_int = 0;
pub(crate) const EMPTY_QUERY: c_int = 0;
pub(crate) const COMMAND_OK: c_int = 1;
pub(crate) const TUPLES_OK: c_int = 2;

/// Fields of an error: `PG_DIAG_*`.
pub(crate) mod diag {
    use super::c_int;

    pub const SQLSTATE: c_int = b'C' as c_int;
    pub const MESSAGE: c_int = b'M' as c_int;
    pub const DETAIL: c_int = b'D' as c_int;
    pub const HINT: c_int = b'H' as c_int;
}

/// `struct ucred` of Linux.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Credentials {
    pub pid: i32,
    pub uid: u32,
    pub gid: u32,
}

pub(crate) const SOL_SOCKET: c_int = 1;
pub(crate) const SO_PEERCRED: c_int = 17;

extern "C" {
    pub fn getsockopt(
        socket: c_int,
        level: c_int,
        name: c_int,
        value: *mut c_void,
        length: *mut u32,
    ) -> c_int;
}

// Without it, pq-src's libpq would not be linked.
#[cfg(feature = "bundled")]
extern crate pq_src as _;

#[cfg_attr(not(feature = "bundled"), link(name = "pq"))]
extern "C" {
    pub fn PQconnectdbParams(
        keywords: *const *const c_char,
        values: *const *const c_char,
        expand_dbname: c_int,
    ) -> *mut Connection;
    pub fn PQfinish(connection: *mut Connection);
    pub fn PQstatus(connection: *const Connection) -> c_int;
    pub fn PQerrorMessage(connection: *const Connection) -> *const c_char;
    pub fn PQhost(connection: *const Connection) -> *const c_char;
    pub fn PQport(connection: *const Connection) -> *const c_char;
    pub fn PQuser(connection: *const Connection) -> *const c_char;
    pub fn PQdb(connection: *const Connection) -> *const c_char;
    pub fn PQserverVersion(connection: *const Connection) -> c_int;
    pub fn PQsocket(connection: *const Connection) -> c_int;
    pub fn PQsslInUse(connection: *mut Connection) -> c_int;
    pub fn PQsetNoticeProcessor(
        connection: *mut Connection,
        processor: Option<extern "C" fn(*mut c_void, *const c_char)>,
        argument: *mut c_void,
    ) -> *mut c_void;
    pub fn PQexec(connection: *mut Connection, query: *const c_char) -> *mut RawResult;
    pub fn PQexecParams(
        connection: *mut Connection,
        query: *const c_char,
        count: c_int,
        types: *const u32,
        values: *const *const c_char,
        lengths: *const c_int,
        formats: *const c_int,
        result_format: c_int,
    ) -> *mut RawResult;
    pub fn PQsendQuery(connection: *mut Connection, query: *const c_char) -> c_int;
    pub fn PQgetResult(connection: *mut Connection) -> *mut RawResult;
    pub fn PQclear(outcome: *mut RawResult);
    pub fn PQresultStatus(outcome: *const RawResult) -> c_int;
    pub fn PQresultErrorField(outcome: *const RawResult, field: c_int) -> *const c_char;
    pub fn PQntuples(outcome: *const RawResult) -> c_int;
    pub fn PQnfields(outcome: *const RawResult) -> c_int;
    pub fn PQfname(outcome: *const RawResult, column: c_int) -> *const c_char;
    pub fn PQftype(outcome: *const RawResult, column: c_int) -> u32;
    pub fn PQgetisnull(outcome: *const RawResult, row: c_int, column: c_int) -> c_int;
    pub fn PQgetlength(outcome: *const RawResult, row: c_int, column: c_int) -> c_int;
    pub fn PQgetvalue(outcome: *const RawResult, row: c_int, column: c_int) -> *const c_char;
    pub fn PQconninfoParse(
        conninfo: *const c_char,
        message: *mut *mut c_char,
    ) -> *mut ConninfoOption;
    pub fn PQconninfoFree(options: *mut ConninfoOption);
    pub fn PQfreemem(pointer: *mut c_void);
}
