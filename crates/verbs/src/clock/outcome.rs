// SPDX-License-Identifier: PostgreSQL
//! The result of a clock test.

use crate::clock::forecast::Forecast;
use crate::clock::verify::Verified;
use serde::Serialize;

/// The result, as `--json` prints it.
#[derive(Serialize)]
pub(super) struct ClockTest {
    #[serde(flatten)]
    pub(super) report: ::clock::Report,
    pub(super) forecasts: Vec<Forecast>,
    pub(super) verified: Option<Verified>,
}
