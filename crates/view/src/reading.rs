// SPDX-License-Identifier: PostgreSQL
//! One interval with everything that a view may show of it.

use segment::Interval;
use serde::Serialize;

use crate::io::Io;
use crate::statements::Statements;

/// What happened since the reading before.
#[derive(Debug, Serialize)]
pub struct Reading {
    /// Everything but the statements.
    #[serde(flatten)]
    pub interval: Interval,
    /// The statements; `None`: the segment keeps none, or nobody has asked for them.
    pub statements: Option<Statements>,
    /// The storage side; `None`: nobody has asked for it.
    pub io: Option<Io>,
    /// Whether somebody has asked for the statements.
    #[serde(skip)]
    pub asked: bool,
    /// Of a recorded interval, what is to be known beside it.
    #[serde(skip)]
    pub recorded: Option<Recorded>,
}

/// What distinguishes a recorded interval from a live one.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its number, from 0 on.
    pub index: usize,
    /// Minima, maxima and percentiles are kept of intervals of this length, seconds, and not of
    /// this shorter one.
    pub spread_from_seconds: Option<f64>,
}
