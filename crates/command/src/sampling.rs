// SPDX-License-Identifier: PostgreSQL
//! The option with which views sample a server.

use clap::Args;
use error::Error;
use live::target::{self, Budget, SampleRate, SegmentSource};

/// How to sample a server.
#[derive(Debug, Default, Args)]
pub struct SamplingFlags {
    /// Sample the server N times per second, 1 to 100, even if it has pg_tally; a server without pg_tally is sampled in
    /// any case [default: 10]
    #[arg(long, value_name = "N")]
    pub samples: Option<SampleRate>,
    /// Sample less often, down to once per second, if sampling costs the server more than this share of one CPU, such as 0.5%
    /// [default: no limit]
    #[arg(long, value_name = "PERCENT")]
    pub budget: Option<Budget>,
}

impl SamplingFlags {
    /// Where TARGET leads: the segment of its server, or samples.
    pub fn source(&self, target: Option<&str>) -> Result<SegmentSource, Error> {
        target::source_or_samples(target, self.samples, self.budget)
    }
}
