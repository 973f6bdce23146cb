// SPDX-License-Identifier: PostgreSQL

//! The measurement: sets the switch before each slice and reads the backends at both ends.
//!
//! The start of each slice is not measured (`Plan::discard`): backends notice the change at their
//! next probe, and the code and data of the new side are not in the caches yet. That is a cost of
//! toggling, not of the level. The start is discarded in every slice, even if the side stays the same.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use segment::Level;

use super::toggle::Toggle;
use crate::study::cost::contrast::{contrast, RoundContrast, Slice};
use crate::study::cost::design::{Design, Round, Side};
use crate::study::cost::meter::BackendMeter;
use crate::study::cost::CostOf;
use error::Error;

/// How often to look for backends that started or ended.
const REFRESH: Duration = Duration::from_millis(500);
/// Reading all backends may take at most this share of a slice.
const EFFORT: u32 = 20;
/// Longest sleep without checking for signals.
const NAP: Duration = Duration::from_millis(100);
/// Give up after this many consecutive rounds in which another process set the level.
const SPOILT: u32 = 50;

/// What to measure, and how.
#[derive(Debug, Clone)]
pub struct CostPlan {
    pub of: CostOf,
    /// The level on side B; on both sides if something else is toggled.
    pub level: Level,
    /// Measured time of a slice.
    pub slice: Duration,
    /// Unmeasured time at the start of a slice.
    pub discard: Duration,
    /// Length of the run.
    pub length: Duration,
    pub seed: u64,
}

/// Rounds that were not used, and why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct Discarded {
    /// A side handled too few commands.
    pub idle: u64,
    /// A counter was reset, or a slot changed hands.
    pub reset: u64,
    /// Another process set the level or paused statements.
    pub level: u64,
}

/// The measurements; rounds in order of time.
#[derive(Debug, Clone, Default)]
pub struct Record {
    pub rounds: Vec<RoundContrast>,
    /// Sum of all slices with measuring off.
    pub off: Slice,
    /// Sum of all slices with measuring on.
    pub on: Slice,
    pub discarded: Discarded,
    /// Minimum and maximum number of measured backends.
    pub backends: (usize, usize),
    /// Actual length of a slice: longer than planned if reading the backends takes long.
    pub slice: Duration,
    /// How long reading all backends takes.
    pub effort: Duration,
    pub elapsed: Duration,
    pub interrupted: bool,
}

/// Why a round was discarded.
enum DiscardReason {
    Reset,
    Level,
    Interrupted,
}

/// Toggles and measures until the time is over or `stop` is set. Calls `progress` between rounds,
/// every [`REFRESH`].
pub fn run(
    plan: &CostPlan,
    meter: &mut BackendMeter,
    toggle: &Toggle,
    stop: &AtomicBool,
    mut progress: impl FnMut(&Record) -> Result<(), Error>,
) -> Result<Record, Error> {
    meter.refresh()?;
    let effort = meter.effort()?;
    let mut record = Record {
        slice: plan.slice.max(effort * EFFORT),
        effort,
        backends: (usize::MAX, 0),
        ..Record::default()
    };
    let began = Instant::now();
    let (mut refreshed, mut in_a_row) = (began, 0);
    for round in Design::new(plan.seed) {
        record.elapsed = began.elapsed();
        if record.elapsed >= plan.length || stop.load(Ordering::Relaxed) {
            break;
        }
        if refreshed.elapsed() >= REFRESH {
            refreshed = Instant::now();
            meter.refresh()?;
            progress(&record)?;
        }
        record.backends.0 = record.backends.0.min(meter.backends());
        record.backends.1 = record.backends.1.max(meter.backends());
        match slices(round, plan, record.slice, meter, toggle, stop)? {
            Ok(slices) => {
                in_a_row = 0;
                record.take(round, &slices);
            }
            Err(DiscardReason::Interrupted) => break,
            Err(DiscardReason::Reset) => record.discarded.reset += 1,
            Err(DiscardReason::Level) => {
                record.discarded.level += 1;
                in_a_row += 1;
                if in_a_row >= SPOILT {
                    return Err(Error::Failed(format!(
                        "another process keeps changing the level or the pause of {}; stop that process",
                        meter.segment().path().display()
                    )));
                }
            }
        }
    }
    record.elapsed = began.elapsed();
    record.interrupted = stop.load(Ordering::Relaxed);
    Ok(record)
}

impl Record {
    fn take(&mut self, round: Round, slices: &[[Slice; 4]; 2]) {
        let Some(result) = contrast(round, slices) else {
            self.discarded.idle += 1;
            return;
        };
        self.rounds.push(result);
        for (quad, slices) in round.quads.into_iter().zip(slices) {
            for (side, slice) in quad.sides().into_iter().zip(slices) {
                match side {
                    Side::A => self.off.add(slice),
                    Side::B => self.on.add(slice),
                }
            }
        }
    }
}

/// The eight slices of a round.
fn slices(
    round: Round,
    plan: &CostPlan,
    length: Duration,
    meter: &BackendMeter,
    toggle: &Toggle,
    stop: &AtomicBool,
) -> Result<Result<[[Slice; 4]; 2], DiscardReason>, Error> {
    let mut slices = [[Slice::default(); 4]; 2];
    let sides = round.quads.into_iter().flat_map(|quad| quad.sides());
    for (slice, side) in slices.iter_mut().flatten().zip(sides) {
        let on = side == Side::B;
        // Set it even if the side stays the same, so that all slices start alike.
        toggle.set(on);
        sleep(plan.discard, stop);
        let before = meter.read()?;
        sleep(length, stop);
        let after = meter.read()?;
        if stop.load(Ordering::Relaxed) {
            return Ok(Err(DiscardReason::Interrupted));
        }
        if !toggle.is(on) {
            return Ok(Err(DiscardReason::Level));
        }
        match after.since(&before) {
            Some(measured) => *slice = measured,
            None => return Ok(Err(DiscardReason::Reset)),
        }
    }
    Ok(Ok(slices))
}

/// Sleep until `length` has passed or `stop` is set.
fn sleep(length: Duration, stop: &AtomicBool) {
    let until = Instant::now() + length;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || stop.load(Ordering::Relaxed) {
            return;
        }
        std::thread::sleep(left.min(NAP));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::cost::design::Quad;

    #[test]
    fn an_idle_round_is_discarded_and_a_good_one_adds_to_the_side_of_its_level() {
        let slice =
            |cpu_ns| Slice { cpu_ns, dispatches: 0, commands: 100, changes: 0, wall_ns: 1000 };
        let round = Round { quads: [Quad { reversed: true }; 2], flipped: false };
        let mut record = Record::default();
        record.take(round, &[[3, 1, 1, 3].map(slice); 2]);
        record.take(round, &[[Slice::default(); 4]; 2]);
        assert_eq!(record.rounds.len(), 1);
        assert_eq!((record.off.cpu_ns, record.on.cpu_ns), (4, 12));
        assert_eq!(record.discarded, Discarded { idle: 1, ..Discarded::default() });
    }

    #[test]
    fn a_signal_ends_a_long_sleep() {
        let stop = AtomicBool::new(true);
        let began = Instant::now();
        sleep(Duration::from_secs(60), &stop);
        assert!(began.elapsed() < Duration::from_secs(1));
    }
}
