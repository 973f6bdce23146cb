// SPDX-License-Identifier: PostgreSQL
//! The rows of a result.

use std::ffi::c_int;
use std::sync::Arc;

use crate::error::{text, Error};
use crate::ffi;
use crate::value::FromValue;

/// Owns a result of libpq, which no longer changes.
#[derive(Debug)]
pub(crate) struct Outcome(pub(crate) *mut ffi::RawResult);

// SAFETY: a result is separate memory, and the libpq functions that read it do not change it.
unsafe impl Send for Outcome {}
// SAFETY: as above.
unsafe impl Sync for Outcome {}

impl Drop for Outcome {
    fn drop(&mut self) {
        // SAFETY: we own the result, and clear it only once. libpq ignores null.
        unsafe { ffi::PQclear(self.0) }
    }
}

impl Outcome {
    pub(crate) fn status(&self) -> c_int {
        // SAFETY: the result has not been cleared yet; for null, libpq reports a fatal error.
        unsafe { ffi::PQresultStatus(self.0) }
    }

    pub(crate) fn rows(self) -> Vec<Row> {
        // SAFETY: the result has not been cleared yet.
        let (count, columns) = unsafe { (ffi::PQntuples(self.0), ffi::PQnfields(self.0)) };
        let outcome = Arc::new(self);
        (0..count).map(|row| Row { outcome: outcome.clone(), row, columns }).collect()
    }
}

/// A row of a result.
#[derive(Debug, Clone)]
pub struct Row {
    outcome: Arc<Outcome>,
    row: c_int,
    columns: c_int,
}

impl Row {
    /// The value of a column, counted from 0. The types are checked, because a server may return anything.
    ///
    /// # Errors
    ///
    /// There is no such column, or it is null, or its type is not the expected one.
    pub fn get<'a, T: FromValue<'a>>(&'a self, column: usize) -> Result<T, Error> {
        let at = c_int::try_from(column).ok().filter(|at| *at < self.columns);
        let at = at.ok_or_else(|| Error::local(format!("the result has no column {column}")))?;
        // SAFETY: the column exists.
        let of = unsafe { ffi::PQftype(self.outcome.0, at) };
        T::from_value(self.bytes(at), of).ok_or_else(|| {
            let wanted = std::any::type_name::<T>();
            Error::local(format!("column {column} of the result has type {of}, expected {wanted}"))
        })
    }

    /// The names of its columns.
    pub(crate) fn names(&self) -> Vec<String> {
        let name = |column| {
            // SAFETY: the column exists; its name is terminated, and lives as long as the result.
            unsafe { text(ffi::PQfname(self.outcome.0, column)) }.unwrap_or_default()
        };
        (0..self.columns).map(name).collect()
    }

    /// The values of a result that was requested as text.
    pub(crate) fn texts(&self) -> Vec<Option<String>> {
        let text = |at| Some(String::from_utf8_lossy(self.bytes(at)?).into_owned());
        (0..self.columns).map(text).collect()
    }

    /// The value of a column, which must exist; `None`: null.
    fn bytes(&self, at: c_int) -> Option<&[u8]> {
        let outcome = self.outcome.0;
        // SAFETY: the row and column exist; the value lives as long as the result, which this row owns.
        unsafe {
            (ffi::PQgetisnull(outcome, self.row, at) == 0).then(|| {
                let length = usize::try_from(ffi::PQgetlength(outcome, self.row, at)).unwrap_or(0);
                std::slice::from_raw_parts(ffi::PQgetvalue(outcome, self.row, at).cast(), length)
            })
        }
    }
}
