// SPDX-License-Identifier: PostgreSQL
//! When seconds are enough to report.

use crate::case::Case;

/// A problem that takes fewer sessions than this on average harms nobody, whatever its share of the
/// load ...
pub(super) const SESSIONS: f64 = 0.05;

/// ... nor does one that takes less time than this in a short interval, seconds.
pub(super) const SHORT: f64 = 0.2;

/// Whatever takes this many sessions on average is a problem, no matter what else the server does: further
/// load does not make it smaller.
const HARM: f64 = 0.5;

/// Whether `seconds` are much by themselves.
pub(super) fn much(case: &Case<'_>, seconds: f64) -> bool {
    seconds >= (SESSIONS * case.length()).max(SHORT)
}

/// Whether `seconds` are much by themselves and at least this share of the load.
pub(super) fn bounds(case: &Case<'_>, seconds: f64, share: f64) -> bool {
    much(case, seconds) && seconds >= share * case.load()
}

/// Whether `seconds` harm sessions: much by themselves, and either at least this share of the load or half a session.
pub(super) fn harms(case: &Case<'_>, seconds: f64, share: f64) -> bool {
    much(case, seconds) && (seconds >= share * case.load() || seconds >= HARM * case.length())
}
