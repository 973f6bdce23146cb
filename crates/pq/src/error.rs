// SPDX-License-Identifier: PostgreSQL
//! Why a connection or a statement failed.

use std::ffi::{c_char, c_int, CStr};
use std::fmt;

use crate::ffi::{self, diag};

/// A failed connection or statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    message: String,
    /// Only set if the server returned the error.
    sqlstate: Option<String>,
    detail: Option<String>,
    hint: Option<String>,
}

/// libpq's message, whose lines are sentences without a full stop or questions, on one line.
fn in_one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.fold(String::new(), |all, line| match all.chars().last() {
        None => line.to_string(),
        Some('.' | '?' | '!' | ':' | ';' | ',') => all + " " + line,
        Some(_) => all + ". " + line,
    })
}

impl Error {
    pub(crate) fn local(message: impl Into<String>) -> Error {
        Error { message: message.into(), sqlstate: None, detail: None, hint: None }
    }

    /// libpq's message about the connection, on one line.
    pub(crate) fn of_connection(connection: *const ffi::Connection) -> Error {
        // SAFETY: the caller's connection is open or null; libpq has a message for both.
        let text = unsafe { text(ffi::PQerrorMessage(connection)) }.unwrap_or_default();
        let line = in_one_line(&text);
        Error::local(if line.is_empty() { "out of memory".into() } else { line })
    }

    pub(crate) fn of_outcome(
        outcome: *const ffi::RawResult,
        connection: *const ffi::Connection,
    ) -> Error {
        let field = |field: c_int| {
            // SAFETY: the outcome is null, for which libpq returns null, or has not been cleared yet.
            unsafe { text(ffi::PQresultErrorField(outcome, field)) }
        };
        match (field(diag::MESSAGE), field(diag::SQLSTATE)) {
            // libpq creates an outcome without these fields when the connection breaks.
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

    /// The SQLSTATE; `None`: the error does not come from the server.
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

/// Converts a string of libpq; `None`: null.
///
/// # Safety
///
/// `text` is null or a terminated string.
pub(crate) unsafe fn text(text: *const c_char) -> Option<String> {
    // SAFETY: the caller guarantees this.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::in_one_line;

    #[test]
    fn a_message_of_several_lines_becomes_sentences() {
        let text = "connection to server at \"db\", port 1 failed: Connection refused\n\tIs the server running on that host?\n";
        assert_eq!(
            in_one_line(text),
            "connection to server at \"db\", port 1 failed: Connection refused. Is the server running on that host?"
        );
        assert_eq!(in_one_line("a\nb?\nc"), "a. b? c");
        assert_eq!(in_one_line(" \n"), "");
    }
}
