// SPDX-License-Identifier: PostgreSQL
//! Whether a clock shows the same time on two processors.
//!
//! Two tests, each with two threads. In the *warp* test both read the clock under one lock and
//! compare with the last reading if the other thread made it; a reading below it is a warp (Linux
//! does so when it starts a processor, arch/x86/kernel/tsc_sync.c). In the *ping-pong* test thread
//! One reads, Other reads, and One reads again. Other's clock is ahead of One's by at least (its
//! reading - the later one) and at most (its reading - the earlier one). Every round gives valid
//! bounds, so the tightest of all rounds apply, and no round has to be fast in both directions.
//! Network clocks are compared in the same way: F. Cristian, Distributed Computing 3 (1989).
//!
//! Each thread writes what it passes on before the store that passes the turn: (A) releases, (B)
//! acquires.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::source::Source;
use crate::steps::Backward;

/// Spins before the thread yields its processor, which the other thread may need.
const SPINS: u32 = 500;

/// The length of the tests of a pair.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// The time of each test.
    pub time: Duration,
    /// The minimum of ping-pong rounds, and of readings compared in the warp test.
    pub rounds: u64,
}

impl Effort {
    /// Whether a test is over. It ends even on a machine that hardly runs it.
    fn over(&self, began: Instant, rounds: u64) -> bool {
        let elapsed = began.elapsed();
        let patience = 20 * self.time + Duration::from_millis(300);
        (elapsed >= self.time && rounds >= self.rounds) || elapsed >= patience
    }
}

/// Bounds of the second processor's lead over the first, ticks; negative if it lags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The lower bound.
    pub min: i64,
    /// The upper bound; below `min` if the lead changed meanwhile.
    pub max: i64,
    /// Rounds of ping-pong.
    pub rounds: u64,
}

impl Bounds {
    /// Whether the processors differ, because no delay explains the bounds.
    pub fn proven(&self) -> bool {
        self.rounds > 0 && (self.min > 0 || self.max < 0)
    }
}

/// The findings on one pair of processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairFindings {
    /// Readings below an earlier one.
    pub warps: Backward,
    /// Readings in the warp test that followed a reading of the other processor.
    pub readings: u64,
    /// Bounds from the ping-pong test.
    pub bounds: Bounds,
}

/// State shared by the two threads, for one pair and one source.
#[derive(Debug, Default)]
pub struct Meeting {
    lock: AtomicBool,
    last: AtomicU64,
    /// The thread of the last reading: 1 or 2, 0 before the first.
    last_by: AtomicU64,
    turn: AtomicU64,
    reading: AtomicU64,
    over: AtomicBool,
    ready: AtomicU64,
}

/// The role of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The thread that starts, measures and ends.
    One,
    /// The thread that answers.
    Other,
}

impl Meeting {
    /// Runs the tests. Both threads call this with the same source and effort; each gets its own half of the
    /// warps, and One gets the bounds.
    pub fn run(&self, side: Side, source: &dyn Source, effort: Effort) -> PairFindings {
        self.ready.fetch_add(1, Ordering::AcqRel);
        patiently(|| self.ready.load(Ordering::Acquire) >= 2);
        let (warps, readings) = self.warp(side, source, effort);
        let bounds = match side {
            Side::One => self.ping(source, effort),
            Side::Other => self.pong(source),
        };
        PairFindings { warps, readings, bounds }
    }

    /// The warp test.
    fn warp(&self, side: Side, source: &dyn Source, effort: Effort) -> (Backward, u64) {
        let mine = side as u64 + 1;
        let (mut warps, mut readings) = (Backward::default(), 0);
        let began = Instant::now();
        while !effort.over(began, readings) {
            for _ in 0..64 {
                patiently(|| !self.lock.swap(true, Ordering::Acquire)); // (B)
                let now = source.read_in_order();
                let last = self.last.swap(now, Ordering::Relaxed);
                let others = self.last_by.swap(mine, Ordering::Relaxed) + mine == 3;
                self.lock.store(false, Ordering::Release); // (A)
                if others {
                    readings += 1;
                    if now < last {
                        warps.add(last - now);
                    }
                }
                self.give_way(mine);
            }
        }
        (warps, readings)
    }

    /// Waits briefly until the other thread takes the lock.
    fn give_way(&self, mine: u64) {
        for _ in 0..SPINS {
            if self.last_by.load(Ordering::Relaxed) != mine {
                return;
            }
            spin_loop();
        }
        std::thread::yield_now();
    }

    /// The ping-pong test of One. Odd turns are Other's.
    fn ping(&self, source: &dyn Source, effort: Effort) -> Bounds {
        let mut bounds = Bounds { min: i64::MIN, max: i64::MAX, rounds: 0 };
        let began = Instant::now();
        let mut turn = 0;
        while !effort.over(began, bounds.rounds) {
            for _ in 0..16 {
                let before = source.read_in_order();
                self.turn.store(turn + 1, Ordering::Release); // (A)
                patiently(|| self.turn.load(Ordering::Acquire) == turn + 2); // (B)
                let after = source.read_in_order();
                let there = self.reading.load(Ordering::Relaxed);
                bounds.min = bounds.min.max(there.wrapping_sub(after) as i64);
                bounds.max = bounds.max.min(there.wrapping_sub(before) as i64);
                bounds.rounds += 1;
                turn += 2;
            }
        }
        self.over.store(true, Ordering::Release);
        bounds
    }

    /// The ping-pong test of Other.
    fn pong(&self, source: &dyn Source) -> Bounds {
        let mut turn = 1;
        loop {
            let mut over = false;
            patiently(|| {
                over = self.over.load(Ordering::Acquire);
                over || self.turn.load(Ordering::Acquire) == turn // (B)
            });
            if over {
                return Bounds { min: 0, max: 0, rounds: 0 };
            }
            self.reading.store(source.read_in_order(), Ordering::Relaxed);
            self.turn.store(turn + 1, Ordering::Release); // (A)
            turn += 2;
        }
    }
}

/// Spins until the condition holds.
fn patiently(mut holds: impl FnMut() -> bool) {
    let mut spins = 0u32;
    while !holds() {
        spins += 1;
        if spins.is_multiple_of(SPINS) {
            std::thread::yield_now();
        }
        spin_loop();
    }
}
