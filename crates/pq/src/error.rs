// SPDX-License-Identifier: PostgreSQL
//! Why a connection or a statement failed.

use std::ffi::{c_char, c_int, CStr};
use std::fmt;

use crate::ffi::{self, diag};

/// A failed connection or statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    message: String,
    /// Only of a statement that the server refused.
    sqlstate: Option<String>,
    detail: Option<String>,
    hint: Option<String>,
}

impl Error {
    pub(crate) fn local(message: impl Into<String>) -> Error {
        Error { message: message.into(), sqlstate: None, detail: None, hint: None }
    }

    /// What libpq says of the connection, on one line.
    pub(crate) fn of_connection(connection: *const ffi::Connection) -> Error {
        // SAFETY: the caller's connection is open or null, for both of which libpq has a message.
        let text = unsafe { text(ffi::PQerrorMessage(connection)) }.unwrap_or_default();
        let lines: Vec<&str> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        Error::local(if lines.is_empty() { "out of memory".into() } else { lines.join(" ") })
    }

    pub(crate) fn of_outcome(
        outcome: *const ffi::Outcome,
        connection: *const ffi::Connection,
    ) -> Error {
        let field = |field: c_int| {
            // SAFETY: the outcome is null, for which libpq returns null, or not cleared yet.
            unsafe { text(ffi::PQresultErrorField(outcome, field)) }
        };
        match (field(diag::MESSAGE), field(diag::SQLSTATE)) {
            // libpq makes such an outcome itself when the connection breaks.
            (Some(message), Some(sqlstate)) => Error {
                message,
                sqlstate: Some(sqlstate),
                detail: field(diag::DETAIL),
                hint: field(diag::HINT),
            },
            _ => Error::of_connection(connection),
        }
    }

    /// The message, without severity.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// SQLSTATE; `None`: not the server's error.
    pub fn sqlstate(&self) -> Option<&str> {
        self.sqlstate.as_deref()
    }

    /// The server's detail.
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// The server's hint.
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sqlstate.is_none() {
            return f.write_str(&self.message);
        }
        write!(f, "server error: {}", self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, " ({hint})"))
    }
}

impl std::error::Error for Error {}

impl From<Error> for ::error::Error {
    fn from(error: Error) -> Self {
        Self::from_cause(error)
    }
}

/// A text of libpq; `None`: null.
///
/// # Safety
///
/// `text` is null or a terminated string.
pub(crate) unsafe fn text(text: *const c_char) -> Option<String> {
    // SAFETY: the caller's promise.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
