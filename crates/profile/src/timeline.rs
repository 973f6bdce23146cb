// SPDX-License-Identifier: PostgreSQL
//! The contents of a profile in order of time, for formats that show them: single samples, and the waits that instants
//! met. The profile's own file does not have them.

use crate::profile::Account;

/// Samples and waits of one process.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Track {
    /// The process.
    pub pid: i32,
    /// "client backend", ...
    pub name: String,
    /// CPU samples, in order: seconds since the beginning, index in the profile's stacks.
    pub samples: Vec<(f64, usize)>,
    /// Waits, in order of their ends.
    pub waits: Vec<Wait>,
}

/// A wait seen at an instant, from its beginning to the last instant that saw it.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    /// Its account.
    pub account: Account,
    /// Its class.
    pub class: String,
    /// Start, seconds since the beginning of the profile; negative if it began earlier.
    pub begin: f64,
    /// End, seconds since the beginning of the profile.
    pub end: f64,
}

/// All processes of the server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timeline {
    /// One track per process.
    pub tracks: Vec<Track>,
    /// Number of waits that were dropped.
    pub waits_dropped: u64,
}
