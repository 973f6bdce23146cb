// SPDX-License-Identifier: PostgreSQL
//! One interval with everything that views may show.

use segment::Interval;
use serde::Serialize;

use crate::blocking::Forest;
use crate::io::Io;
use crate::session_id::Opened;
use crate::statements::StatementsTable;
use crate::vacuum::Vacuum;

/// An interval, as the views get it.
#[derive(Debug, Serialize)]
pub struct Reading {
    /// All but statements and storage.
    #[serde(flatten)]
    pub interval: Interval,
    /// The statements; `None`: the segment has none, or nobody asked for them.
    pub statements: Option<StatementsTable>,
    /// The storage side; `None`: nobody asked for it.
    pub io: Option<Io>,
    /// Who blocks whom at its end; `None`: nobody asked for it.
    pub blocking: Option<Forest>,
    /// Processes of the server that are not measured, since they started before pg_tally was loaded;
    /// `None`: not known.
    pub uncovered_processes: Option<usize>,
    /// The last seconds until its end; `None`: nobody asked for them.
    #[serde(skip)]
    pub recent: Option<Box<Recent>>,
    /// How far vacuum is behind; `None`: nobody asked the server.
    #[serde(skip)]
    pub vacuum: Option<Vacuum>,
    /// More about one session; `None`: nobody asked for it.
    #[serde(skip)]
    pub opened: Option<Opened>,
    /// Whether somebody asked for the statements.
    #[serde(skip)]
    pub asked: bool,
    /// For a recorded interval, facts that a live one does not have.
    #[serde(skip)]
    pub recorded: Option<Recorded>,
}

impl Reading {
    /// Without all that is optional.
    pub fn new(interval: Interval) -> Reading {
        Reading {
            interval,
            statements: None,
            io: None,
            blocking: None,
            uncovered_processes: None,
            recent: None,
            vacuum: None,
            opened: None,
            asked: false,
            recorded: None,
        }
    }
}

/// The last seconds, perhaps more than one interval.
#[derive(Debug)]
pub struct Recent {
    /// The ledger.
    pub interval: Interval,
    /// The statements; `None`: nobody asked for them.
    pub statements: Option<StatementsTable>,
}

/// What distinguishes a recorded interval from a live one.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its number, from 0.
    pub index: usize,
    /// Length in seconds of the detail interval to which minima, maxima and percentiles belong, if
    /// longer than this interval.
    pub spread_from_seconds: Option<f64>,
}
