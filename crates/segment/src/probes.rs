// SPDX-License-Identifier: PostgreSQL
//! The table of probes, with the reasons why probes are not installed.

use crate::error::Error;
use crate::layout::{probe, probe_state, text_at, u32_at};
use crate::segment::Segment;
use serde::{Serialize, Serializer};

/// The beginning of the name of a function's probe.
pub const PROBE_PREFIX: &str = "function ";

/// Whether a probe is installed; in JSON a boolean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeState {
    /// The probe is installed.
    Installed,
    /// The probe could not be installed.
    LeftOut,
}

impl Serialize for ProbeState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(*self == ProbeState::Installed)
    }
}

/// A function or call that the producer measures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Probe {
    /// Its index in the table. The first probes have a counter of calls at this index in every book.
    #[serde(skip)]
    pub index: u32,
    /// "import fsync", ...
    pub name: String,
    /// Whether it is installed.
    #[serde(rename = "installed")]
    pub state: ProbeState,
    /// Why it is not installed; empty if it is.
    pub reason: String,
}

impl Probe {
    /// Whether it measures the calls of a function that the user chose.
    pub fn is_of_function(&self) -> bool {
        self.state == ProbeState::Installed && self.name.starts_with(PROBE_PREFIX)
    }
}

impl Segment {
    /// The probes of the producer, whether installed or not.
    pub fn probes(&self) -> Result<Vec<Probe>, Error> {
        let mut probes = Vec::new();
        self.each_entry(self.regions.probes, probe::SIZE, |index, bytes| {
            let state = match u32_at(bytes, probe::STATE) {
                probe_state::INSTALLED => ProbeState::Installed,
                probe_state::LEFT_OUT => ProbeState::LeftOut,
                _ => return,
            };
            probes.push(Probe {
                index,
                state,
                name: text_at(bytes, probe::NAME, probe::NAME_BYTES),
                reason: text_at(bytes, probe::REASON, probe::REASON_BYTES),
            });
        })?;
        Ok(probes)
    }
}
