// SPDX-License-Identifier: PostgreSQL
//! What a profile has in order of time, for formats that show it: single samples, and the waits that were met.
//! It is not kept in the profile's own file.

use crate::profile::Account;

/// Samples and waits of one process.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Track {
    /// The process.
    pub pid: i32,
    /// "client backend", ...
    pub name: String,
    /// Samples of CPUs, in order: seconds since the beginning, index in the profile's stacks.
    pub samples: Vec<(f64, usize)>,
    /// Waits, in order of their ends.
    pub waits: Vec<Wait>,
}

/// A wait that an instant met, from its beginning to the last instant that met it.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    /// Its account.
    pub account: Account,
    /// Its class.
    pub class: String,
    /// Seconds since the beginning of the profile; below 0 where it began earlier.
    pub begin: f64,
    /// The same.
    pub end: f64,
}

/// All processes of the server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timeline {
    /// One for each.
    pub tracks: Vec<Track>,
    /// Waits that were not kept.
    pub waits_dropped: u64,
}
