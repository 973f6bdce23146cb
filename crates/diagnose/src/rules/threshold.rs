// SPDX-License-Identifier: PostgreSQL
//! When seconds are enough to be a problem.

use crate::case::Case;

/// What takes less than this many sessions on average is no trouble for anybody, whatever part of the load it is ...
pub(super) const SESSIONS: f64 = 0.05;

/// ... nor what takes less time than this in a short interval, seconds.
pub(super) const SHORT: f64 = 0.2;

/// Whether `seconds` are much by themselves.
pub(super) fn much(case: &Case<'_>, seconds: f64) -> bool {
    seconds >= (SESSIONS * case.length()).max(SHORT)
}

/// Whether `seconds` are much by themselves, and at least this part of the load.
pub(super) fn matters(case: &Case<'_>, seconds: f64, part: f64) -> bool {
    much(case, seconds) && seconds >= part * case.load()
}
