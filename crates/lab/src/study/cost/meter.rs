// SPDX-License-Identifier: PostgreSQL

//! Reads the measured backends: CPU time from the kernel, commands from the segment.
//!
//! The kernel updates the on-CPU time of a process (/proc/PID/schedstat) when the process leaves
//! its processor and at every timer tick; CPU time since then is missing. A slice's end is read
//! right before the next slice starts, so CPU time missing from one slice appears in a later one.
//! A backend that waits for its client after each command is never far behind.
//!
//! The extension counts commands at every level, off included, so the unit of both sides does not
//! depend on the level.

use std::fs::File;
use std::time::{Duration, Instant};

use process::Schedstat;
use segment::{ProbeState, Segment};

use super::contrast::Slice;
use crate::study::cost::CostOf;
use error::Error;

/// The probe that counts messages at every level.
const COUNTER: &str = "messages";
/// The kind of process that handles clients' commands.
const KIND: &str = "client backend";

/// A measured process.
struct Backend {
    slot: u32,
    generation: u32,
    pid: i32,
    schedstat: File,
}

/// Counters of one backend.
#[derive(Debug, Clone, Copy)]
struct BackendCounters {
    cpu_ns: u64,
    dispatches: u64,
    commands: u64,
    /// Twice the number of changes made by what is toggled.
    seq: u64,
}

/// Counters of all measured backends, in the meter's order; `None` for one that has ended.
pub struct BackendReading {
    at: Instant,
    totals: Vec<Option<BackendCounters>>,
}

/// The measured backends of one segment.
pub struct BackendMeter {
    segment: Segment,
    of: CostOf,
    counter: u32,
    /// Whether to measure the server's other processes too.
    whole: bool,
    backends: Vec<Backend>,
}

impl BackendMeter {
    /// A meter for the client backends of this segment. Fails if they cannot be measured: their processes are
    /// not visible, no probe counts commands, or `of` needs statements and the server keeps none.
    pub fn new(segment: Segment, of: CostOf) -> Result<Self, Error> {
        let path = segment.path().display().to_string();
        if !segment.knows_pids() {
            return Err(Error::Failed(format!(
                "{path}: the server's processes are not visible from here (another container or an \
                 earlier boot); run tally where the server runs"
            )));
        }
        let counter = segment
            .probes()?
            .into_iter()
            .find(|probe| probe.name == COUNTER)
            .filter(|probe| probe.state == ProbeState::Installed)
            .ok_or_else(|| {
                Error::Failed(format!(
                    "{path}: the server does not count commands (probe \"{COUNTER}\" is not installed), so their \
                     cost is unknown; `tally status` shows why"
                ))
            })?
            .index;
        if of == CostOf::Statements && !segment.keeps_statements() {
            return Err(Error::Failed(format!(
                "{path}: the server keeps no statements (check pg_tally.max_statements)"
            )));
        }
        Ok(Self { segment, of, counter, whole: false, backends: Vec::new() })
    }

    /// Measures the server's other processes too: their CPU time and dispatches; they handle no messages. A
    /// process reports its kind only after a level is on.
    pub fn of_whole_server(mut self) -> Self {
        self.whole = true;
        self
    }

    /// Updates the list of backends. Call it only between rounds.
    pub fn refresh(&mut self) -> Result<(), Error> {
        let claims = self.segment.claims()?;
        let wanted = || claims.iter().filter(|claim| self.whole || claim.kind == KIND);
        self.backends.retain(|backend| {
            wanted().any(|c| {
                (c.slot, c.generation, c.pid) == (backend.slot, backend.generation, backend.pid)
            })
        });
        for claim in wanted() {
            if self.backends.iter().any(|backend| backend.slot == claim.slot) {
                continue;
            }
            // A backend that has just ended is not an error.
            if let Ok(schedstat) = File::open(format!("/proc/{}/schedstat", claim.pid)) {
                self.backends.push(Backend {
                    slot: claim.slot,
                    generation: claim.generation,
                    pid: claim.pid,
                    schedstat,
                });
            }
        }
        Ok(())
    }

    /// Number of measured backends.
    pub fn backends(&self) -> usize {
        self.backends.len()
    }

    /// The segment that the meter reads.
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Reads the counters of all backends.
    pub fn read(&self) -> Result<BackendReading, Error> {
        let mut totals = Vec::with_capacity(self.backends.len());
        let at = Instant::now();
        for backend in &self.backends {
            totals.push(match Schedstat::read_open(&backend.schedstat) {
                None => None,
                Some(Schedstat { on_cpu_ns: cpu_ns, dispatches, .. }) => {
                    let counters = self.segment.book_counters(backend.slot, self.counter)?;
                    let seq = match self.of {
                        CostOf::Level => counters.seq,
                        CostOf::Statements => self.segment.statement_changes(backend.slot)?,
                        CostOf::Outside => 0,
                    };
                    Some(BackendCounters { cpu_ns, dispatches, commands: counters.calls, seq })
                }
            });
        }
        Ok(BackendReading { at, totals })
    }

    /// Duration of a reading: the median of 21.
    pub fn effort(&self) -> Result<Duration, Error> {
        let mut efforts = Vec::new();
        for _ in 0..21 {
            let began = Instant::now();
            self.read()?;
            efforts.push(began.elapsed());
        }
        efforts.sort();
        Ok(efforts[efforts.len() / 2])
    }
}

impl BackendReading {
    /// The difference from an earlier reading of the same backends; `None` when a counter went
    /// backwards, because it was reset or its slot has a new owner.
    pub fn since(&self, earlier: &BackendReading) -> Option<Slice> {
        let mut slice = Slice {
            wall_ns: u64::try_from(self.at.duration_since(earlier.at).as_nanos()).ok()?,
            ..Slice::default()
        };
        for (now, then) in self.totals.iter().zip(&earlier.totals) {
            // A backend that ended in between is left out.
            let (Some(now), Some(then)) = (now, then) else { continue };
            slice.cpu_ns += now.cpu_ns.checked_sub(then.cpu_ns)?;
            slice.dispatches += now.dispatches.checked_sub(then.dispatches)?;
            slice.commands += now.commands.checked_sub(then.commands)?;
            slice.changes += now.seq.checked_sub(then.seq)? / 2;
        }
        Some(slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at: Instant, totals: &[Option<(u64, u64, u64, u64)>]) -> BackendReading {
        let totals = totals
            .iter()
            .map(|t| {
                t.map(|(cpu_ns, dispatches, commands, seq)| BackendCounters {
                    cpu_ns,
                    dispatches,
                    commands,
                    seq,
                })
            })
            .collect();
        BackendReading { at, totals }
    }

    #[test]
    fn a_slice_sums_the_backends_present_at_both_ends() {
        let now = Instant::now();
        let before = reading(now, &[Some((100, 5, 10, 4)), Some((7, 7, 7, 7)), None]);
        let after = reading(
            now + Duration::from_millis(4),
            &[Some((350, 8, 12, 8)), None, Some((9, 9, 9, 9))],
        );
        let slice =
            Slice { cpu_ns: 250, dispatches: 3, commands: 2, changes: 2, wall_ns: 4_000_000 };
        assert_eq!(after.since(&before), Some(slice));
    }

    #[test]
    fn a_counter_that_went_backwards_discards_the_slice() {
        let now = Instant::now();
        let before = reading(now, &[Some((100, 5, 10, 4))]);
        assert!(reading(now, &[Some((200, 5, 0, 4))]).since(&before).is_none());
    }
}
