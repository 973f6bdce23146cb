// SPDX-License-Identifier: PostgreSQL
//! The table of probes: where the producer measures, and why it left a probe out.

use crate::error::Error;
use crate::layout::{probe, text_at, u32_at};
use crate::segment::Segment;

/// How the name of a function's probe begins.
pub const PROBE_PREFIX: &str = "function ";

/// What became of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeState {
    /// It is in place.
    Installed,
    /// It was left out; the reason says why.
    LeftOut,
}

/// A function or call that the producer measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// Its index in the table, and, of the first ones, in every book's counters of calls.
    pub index: u32,
    /// Installed or left out.
    pub state: ProbeState,
    /// "import fsync", ...
    pub name: String,
    /// Why it was left out; empty when installed.
    pub reason: String,
}

impl Probe {
    /// Whether it measures the calls of a function that the user chose.
    pub fn is_of_function(&self) -> bool {
        self.state == ProbeState::Installed && self.name.starts_with(PROBE_PREFIX)
    }
}

impl Segment {
    /// The probes of the producer, installed or left out.
    pub fn probes(&self) -> Result<Vec<Probe>, Error> {
        let mut probes = Vec::new();
        self.each_entry(self.regions.probes, probe::SIZE, |index, bytes| {
            let state = match u32_at(bytes, probe::STATE) {
                1 => ProbeState::Installed,
                2 => ProbeState::LeftOut,
                _ => return,
            };
            probes.push(Probe {
                index,
                state,
                name: text_at(bytes, probe::NAME, probe::NAME_SIZE),
                reason: text_at(bytes, probe::REASON, 120),
            });
        })?;
        Ok(probes)
    }
}
