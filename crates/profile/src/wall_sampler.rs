// SPDX-License-Identifier: PostgreSQL
//! Samples what all sessions do, waiting or not: one thread, which reads all slots at each of its instants.
//!
//! Each period has one instant, at a random place in it, so that a load with a period of its own is sampled
//! fairly (stratified sampling). An instant's account is the one that runs when its slot is read.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use error::Error;
use rand::Rng;
use segment::clock::monotonic_ns;
use segment::{AccountNumber, Segment, StatementKey};

use crate::thread;

/// Waits that are kept for the timeline.
const MOST_WAITS: usize = 500_000;
/// A sleep is cut so that the thread sees in time that it is to stop.
const NAP: Duration = Duration::from_millis(50);

/// A stretch of one account that at least one instant met.
#[derive(Debug, Clone, Copy)]
pub struct Stretch {
    /// The process.
    pub pid: i32,
    /// Its account.
    pub account: AccountNumber,
    /// When it began, tick.
    pub since: u64,
    /// The last instant that met it, tick.
    pub seen: u64,
}

/// Samples of one account.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hits {
    /// How many.
    pub samples: u64,
    /// The sum over instants of the square of how many sessions had the account: instants are independent,
    /// sessions at one instant are not.
    pub squares: u64,
}

/// What all sessions did.
#[derive(Debug, Default)]
pub struct WallSamples {
    /// Instants.
    pub instants: u64,
    /// Instants that came too late to be taken.
    pub missed: u64,
    /// By account.
    pub accounts: HashMap<AccountNumber, Hits>,
    /// By account and statement.
    pub statements: HashMap<(AccountNumber, Option<StatementKey>), u64>,
    /// In order of their ends.
    pub stretches: Vec<Stretch>,
    /// Stretches that were not kept.
    pub stretches_dropped: u64,
    /// Whether the thread ran before those that it sampled.
    pub first: bool,
}

/// Collect samples until `stop` is set.
pub fn collect(segment: &Segment, period_ns: u64, stop: &AtomicBool) -> Result<WallSamples, Error> {
    let mut found = WallSamples { first: thread::go_first(), ..WallSamples::default() };
    let mut random = rand::rng();
    let mut running: HashMap<i32, Stretch> = HashMap::new();
    let mut at_instant: HashMap<AccountNumber, u64> = HashMap::new();
    let begin = monotonic_ns();
    let mut period = 0;
    while !stop.load(Ordering::Acquire) {
        let instant = begin + period * period_ns + random.random_range(0..period_ns);
        if !sleep_until(instant, stop) {
            break;
        }
        at_instant.clear();
        // At each instant anew: sessions that have just begun do other things than old ones.
        for slot in segment.occupants()? {
            let Some(doing) = segment.doing(&slot)? else { continue };
            *at_instant.entry(doing.account).or_default() += 1;
            *found.statements.entry((doing.account, doing.statement)).or_default() += 1;
            let now = segment.clock().now();
            let stretch =
                Stretch { pid: slot.pid, account: doing.account, since: doing.since, seen: now };
            let before = running.insert(slot.pid, stretch);
            if let Some(ended) = before.filter(|it| it.since != doing.since) {
                found.keep(ended);
            }
        }
        for (account, count) in &at_instant {
            let hits = found.accounts.entry(*account).or_default();
            hits.samples += count;
            hits.squares += count * count;
        }
        found.instants += 1;
        // An instant that took longer than its period costs the next ones, rather than the server.
        let next = (monotonic_ns() - begin) / period_ns;
        found.missed += next.saturating_sub(period + 1);
        period = next.max(period + 1);
    }
    running.into_values().for_each(|it| found.keep(it));
    Ok(found)
}

impl WallSamples {
    fn keep(&mut self, stretch: Stretch) {
        match self.stretches.len() < MOST_WAITS {
            true => self.stretches.push(stretch),
            false => self.stretches_dropped += 1,
        }
    }
}

/// Returns whether the instant was reached.
fn sleep_until(instant: u64, stop: &AtomicBool) -> bool {
    loop {
        if stop.load(Ordering::Acquire) {
            return false;
        }
        match instant.saturating_sub(monotonic_ns()) {
            0 => return true,
            left => std::thread::sleep(Duration::from_nanos(left).min(NAP)),
        }
    }
}
