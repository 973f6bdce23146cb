// SPDX-License-Identifier: PostgreSQL
//! Samples the activity of all sessions, waiting or not, in one thread that reads all slots at each instant.
//!
//! Each period has one instant, at a random position in it, so that a periodic load is sampled fairly (stratified
//! sampling). The account of a session at an instant is the one that runs when its slot is read.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use error::Error;
use rand::Rng;
use segment::clock::monotonic_ns;
use segment::{AccountNumber, Segment, StatementKey};

use crate::thread;

/// Maximum number of waits kept for the timeline.
const MOST_WAITS: usize = 500_000;
/// Longest sleep without checking whether to stop.
const NAP: Duration = Duration::from_millis(50);

/// A stretch of one account seen at one or more instants.
#[derive(Debug, Clone, Copy)]
pub struct Stretch {
    /// The process.
    pub pid: i32,
    /// Its account.
    pub account: AccountNumber,
    /// When it began, tick.
    pub since: u64,
    /// The last instant that saw it, tick.
    pub seen: u64,
}

/// Samples of one account.
#[derive(Debug, Clone, Copy, Default)]
pub struct Hits {
    /// Number of samples.
    pub samples: u64,
    /// Sum over instants of the squared number of sessions in the account: instants are independent, sessions at one
    /// instant are not.
    pub squares: u64,
}

/// Samples of all sessions.
#[derive(Debug, Default)]
pub struct WallSamples {
    /// Number of instants.
    pub instants: u64,
    /// Instants that came too late.
    pub missed: u64,
    /// Samples by account.
    pub accounts: HashMap<AccountNumber, Hits>,
    /// Samples by account and statement.
    pub statements: HashMap<(AccountNumber, Option<StatementKey>), u64>,
    /// Stretches in order of their ends.
    pub stretches: Vec<Stretch>,
    /// Number of stretches that were dropped.
    pub stretches_dropped: u64,
    /// Whether the thread ran before the processes that it sampled.
    pub first: bool,
}

/// Collects samples until `stop` is set.
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
        // Read the list at each instant: sessions that have just started behave differently from old ones.
        for slot in segment.occupants()? {
            let Some(doing) = segment.doing(&slot)? else { continue };
            *at_instant.entry(doing.account).or_default() += 1;
            *found.statements.entry((doing.account, doing.statement)).or_default() += 1;
            let now = segment.clock().now();
            let stretch =
                Stretch { pid: slot.pid, account: doing.account, since: doing.since, seen: now };
            let before = running.insert(slot.pid, stretch);
            if let Some(ended) = before.filter(|stretch| stretch.since != doing.since) {
                found.keep(ended);
            }
        }
        for (account, count) in &at_instant {
            let hits = found.accounts.entry(*account).or_default();
            hits.samples += count;
            hits.squares += count * count;
        }
        found.instants += 1;
        // If an instant takes longer than its period, the next ones are skipped rather than loading the server more.
        let next = (monotonic_ns() - begin) / period_ns;
        found.missed += next.saturating_sub(period + 1);
        period = next.max(period + 1);
    }
    running.into_values().for_each(|stretch| found.keep(stretch));
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

/// Sleeps until an instant. Returns whether the instant was reached.
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
