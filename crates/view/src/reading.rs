// SPDX-License-Identifier: PostgreSQL
//! One interval, with everything that views may show.

use segment::Interval;
use serde::Serialize;

use crate::blocking::{Blocker, Forest};
use crate::deadlocks::Deadlock;
use crate::io::Io;
use crate::session_id::Opened;
use crate::statements::StatementsTable;
use crate::vacuum::Vacuum;

/// An interval, as views receive it.
#[derive(Debug, Serialize)]
pub struct Reading {
    /// Everything except statements and storage.
    #[serde(flatten, serialize_with = "crate::known::interval")]
    pub interval: Interval,
    /// The statements; `None` if the segment has none, or if they were not requested.
    pub statements: Option<StatementsTable>,
    /// The storage figures; `None` if they were not requested.
    pub io: Option<Io>,
    /// Who blocks whom at its end; `None` if this was not requested.
    pub blocking: Option<Forest>,
    /// The session for which others waited most of the time in what diagnoses cover; `None`: there is none, or it is not
    /// known.
    #[serde(skip)]
    pub blocker: Option<Blocker>,
    /// Processes of the server that are not measured because they started before pg_tally was loaded; `None` if
    /// unknown.
    pub uncovered_processes: Option<usize>,
    /// The last few seconds until its end; `None` if they were not requested.
    #[serde(skip)]
    pub recent: Option<Box<Recent>>,
    /// The last deadlocks that are known, oldest first; those of other times, too.
    #[serde(skip)]
    pub deadlocks: Vec<Deadlock>,
    /// How far vacuum is behind; `None` if the server was not queried.
    #[serde(skip)]
    pub vacuum: Option<Vacuum>,
    /// More about one session; `None` if it was not requested.
    #[serde(skip)]
    pub opened: Option<Opened>,
    /// Whether the statements were requested.
    #[serde(skip)]
    pub asked: bool,
    /// For a recorded interval, facts that a live one does not have.
    #[serde(skip)]
    pub recorded: Option<Recorded>,
}

impl Reading {
    /// An interval without anything optional.
    pub fn new(interval: Interval) -> Reading {
        Reading {
            interval,
            statements: None,
            io: None,
            blocking: None,
            blocker: None,
            uncovered_processes: None,
            recent: None,
            deadlocks: Vec::new(),
            vacuum: None,
            opened: None,
            asked: false,
            recorded: None,
        }
    }
}

/// The last few seconds, which may be more than one interval.
#[derive(Debug)]
pub struct Recent {
    /// The ledger.
    pub interval: Interval,
    /// The statements; `None` if they were not requested.
    pub statements: Option<StatementsTable>,
}

/// What distinguishes a recorded interval from a live one.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its number, from 0.
    pub index: usize,
    /// Length in seconds of the detail interval that minima, maxima and percentiles cover, if it is longer than
    /// this interval.
    pub spread_from_seconds: Option<f64>,
}
