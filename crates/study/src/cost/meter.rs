// SPDX-License-Identifier: PostgreSQL

//! Reading the measured backends: their CPU from the kernel, their commands from the segment.
//!
//! The kernel's on-CPU time of a process (/proc/PID/schedstat) is brought up to date when the
//! process leaves its processor and at every timer tick; what a running process has used since
//! is missing. Each slice's end is read right before the next one begins, so what is missing
//! from one slice is found in a later one, and a backend that waits for its client after each
//! command is never far behind.
//!
//! Commands are counted by the extension at every level, off included, so the unit that both
//! sides are measured in does not depend on the level.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use segment::{ProbeState, Segment};

use super::contrast::Slice;
use crate::cost::CostOf;
use error::Error;

/// The probe that counts messages whatever the level.
const COUNTER: &str = "messages";
/// The processes that handle clients' commands.
const KIND: &str = "client backend";

/// A process that is measured.
struct Backend {
    slot: u32,
    generation: u32,
    pid: i32,
    schedstat: File,
}

/// What one backend had done up to an instant.
#[derive(Debug, Clone, Copy)]
struct Totals {
    cpu_ns: u64,
    dispatches: u64,
    commands: u64,
    /// Changes, twice counted, of what only the side that is on changes.
    seq: u64,
}

/// What all of them had done, each with its place; gone ones are none.
pub struct Reading {
    at: Instant,
    totals: Vec<Option<Totals>>,
}

/// The measured backends of one segment.
pub struct Meter {
    segment: Segment,
    of: CostOf,
    counter: u32,
    /// The server's other processes are measured too.
    whole: bool,
    backends: Vec<Backend>,
}

impl Meter {
    /// For the client backends of this segment, once it is known that they can be measured.
    pub fn new(segment: Segment, of: CostOf) -> Result<Self, Error> {
        let place = segment.path().display().to_string();
        if !segment.knows_pids() {
            return Err(Error::Failed(format!(
                "{place}: its processes cannot be seen from here (another container or an \
                 earlier boot); run this where the server runs"
            )));
        }
        let counter = segment
            .probes()?
            .into_iter()
            .find(|probe| probe.name == COUNTER)
            .filter(|probe| probe.state == ProbeState::Installed)
            .ok_or_else(|| {
                Error::Failed(format!(
                    "{place}: nothing counts commands there (no probe \"{COUNTER}\"), so their \
                     cost cannot be told; `tally status` says what is left out and why"
                ))
            })?
            .index;
        if of == CostOf::Statements && !segment.keeps_statements() {
            return Err(Error::Failed(format!(
                "{place}: no statements are kept there (pg_tally.max_statements)"
            )));
        }
        Ok(Self { segment, of, counter, whole: false, backends: Vec::new() })
    }

    /// Also for the server's other processes: their time and dispatches count, and messages they have
    /// none. What a process is it does not tell before a level is on.
    pub fn of_whole_server(mut self) -> Self {
        self.whole = true;
        self
    }

    /// Look again which backends there are. Between rounds only.
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
            // A backend that has just gone is no error.
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

    /// How many backends are measured.
    pub fn backends(&self) -> usize {
        self.backends.len()
    }

    /// The segment that is read.
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Read them all.
    pub fn read(&self) -> Result<Reading, Error> {
        let mut totals = Vec::with_capacity(self.backends.len());
        let at = Instant::now();
        for backend in &self.backends {
            totals.push(match on_cpu(&backend.schedstat) {
                None => None,
                Some((cpu_ns, dispatches)) => {
                    let counters = self.segment.book_counters(backend.slot, self.counter)?;
                    let seq = match self.of {
                        CostOf::Level => counters.seq,
                        CostOf::Statements => self.segment.statement_changes(backend.slot)?,
                        CostOf::Outside => 0,
                    };
                    Some(Totals { cpu_ns, dispatches, commands: counters.calls, seq })
                }
            });
        }
        Ok(Reading { at, totals })
    }

    /// How long reading takes: the median of some.
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

/// First number of a schedstat file; none when the process has gone.
pub fn on_cpu_ns(schedstat: &File) -> Option<u64> {
    on_cpu(schedstat).map(|(cpu_ns, _)| cpu_ns)
}

/// Time on a processor, and how often the process was put on one.
fn on_cpu(schedstat: &File) -> Option<(u64, u64)> {
    let mut bytes = [0u8; 80];
    let length = schedstat.read_at(&mut bytes, 0).ok()?;
    let text = std::str::from_utf8(&bytes[..length]).ok()?;
    let mut numbers = text.split_ascii_whitespace().map(|number| number.parse().ok());
    Some((numbers.next()??, numbers.nth(1)??))
}

impl Reading {
    /// What happened since an earlier reading of the same backends; none when a counter went
    /// backwards, because it was reset or its slot has a new owner.
    pub fn since(&self, earlier: &Reading) -> Option<Slice> {
        let mut slice = Slice {
            wall_ns: u64::try_from(self.at.duration_since(earlier.at).as_nanos()).ok()?,
            ..Slice::default()
        };
        for (now, then) in self.totals.iter().zip(&earlier.totals) {
            // One that has gone meanwhile counts in neither.
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

    fn reading(at: Instant, totals: &[Option<(u64, u64, u64)>]) -> Reading {
        let totals = totals
            .iter()
            .map(|t| {
                t.map(|(cpu_ns, commands, seq)| Totals { cpu_ns, dispatches: 0, commands, seq })
            })
            .collect();
        Reading { at, totals }
    }

    #[test]
    fn a_slice_is_the_sum_over_backends_that_are_there_at_both_ends() {
        let now = Instant::now();
        let before = reading(now, &[Some((100, 10, 4)), Some((7, 7, 7)), None]);
        let after =
            reading(now + Duration::from_millis(4), &[Some((350, 12, 8)), None, Some((9, 9, 9))]);
        let slice =
            Slice { cpu_ns: 250, dispatches: 0, commands: 2, changes: 2, wall_ns: 4_000_000 };
        assert_eq!(after.since(&before), Some(slice));
    }

    #[test]
    fn a_counter_that_went_backwards_spoils_the_slice() {
        let now = Instant::now();
        let before = reading(now, &[Some((100, 10, 4))]);
        assert!(reading(now, &[Some((200, 0, 4))]).since(&before).is_none());
    }

    #[test]
    fn our_own_time_on_a_processor_can_be_read_and_grows() {
        let file = File::open("/proc/thread-self/schedstat").unwrap();
        let before = on_cpu_ns(&file).unwrap();
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(30) {
            std::hint::black_box(0);
        }
        assert!(on_cpu_ns(&file).unwrap() > before);
    }
}
