// SPDX-License-Identifier: PostgreSQL
//! Two processors: does a clock tell both the same time?
//!
//! Two tests, each a race of two threads. In the *warp* test both read the clock under one lock
//! and compare with the last reading, if the other left it there; one below it is a warp (so
//! does Linux when it starts a processor, arch/x86/kernel/tsc_sync.c). In the *ping-pong* test the
//! one reads, hands over to the other, which reads and hands back, and the one reads again. The
//! other's reading was made between the two: so its clock is ahead of the one's by no less than
//! (its reading - the later one) and no more than (its reading - the earlier one). Every round
//! holds, so the tightest of all rounds bound what the clocks differ by, and no fast round is
//! needed on both ways. It is the reasoning of network clocks: F. Cristian, Distributed
//! Computing 3 (1989).
//!
//! Each thread alone writes what it hands over, before the store that hands over: (A) releases,
//! (B) acquires.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::source::Source;
use crate::steps::Backward;

/// Looks at what the other thread does before it is given the processor, which it may need.
const SPINS: u32 = 500;

/// How long both tests of a pair last, and at least how much.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Each test's time.
    pub time: Duration,
    /// Rounds of ping-pong, and readings compared in the warp test, that are made in any case.
    pub rounds: u64,
}

impl Effort {
    /// A machine that gives us hardly any time must not hold us for ever either.
    fn over(&self, began: Instant, rounds: u64) -> bool {
        let elapsed = began.elapsed();
        let patience = 20 * self.time + Duration::from_millis(300);
        (elapsed >= self.time && rounds >= self.rounds) || elapsed >= patience
    }
}

/// What two processors' readings of one clock differ by, ticks; positive when the second is ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// At least.
    pub least: i64,
    /// At most. Less than `least` when the difference changed meanwhile.
    pub most: i64,
    /// Rounds of ping-pong.
    pub rounds: u64,
}

impl Bounds {
    /// Whether there is a difference that no delay explains.
    pub fn proven(&self) -> bool {
        self.rounds > 0 && (self.least > 0 || self.most < 0)
    }
}

/// What was found of one pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Readings below one that was made before.
    pub warps: Backward,
    /// Readings in the warp test that followed one of the other processor.
    pub readings: u64,
    /// Of the ping-pong.
    pub bounds: Bounds,
}

/// Where the two threads meet, for one pair and one source.
#[derive(Debug, Default)]
pub struct Meeting {
    lock: AtomicBool,
    last: AtomicU64,
    /// Whose it is: 1 or 2, or 0 before the first.
    last_by: AtomicU64,
    turn: AtomicU64,
    reading: AtomicU64,
    over: AtomicBool,
    ready: AtomicU64,
}

/// Which of the two a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one that begins, measures and ends.
    One,
    /// The one that answers.
    Other,
}

impl Meeting {
    /// Both sides call this with the same source and effort; each gets its own half of the warps,
    /// and side One the bounds.
    pub fn run(&self, side: Side, source: &dyn Source, effort: Effort) -> Found {
        self.ready.fetch_add(1, Ordering::AcqRel);
        patiently(|| self.ready.load(Ordering::Acquire) >= 2);
        let (warps, readings) = self.warp(side, source, effort);
        let bounds = match side {
            Side::One => self.ping(source, effort),
            Side::Other => self.pong(source),
        };
        Found { warps, readings, bounds }
    }

    /// Each reading is compared with the last one, if that was the other's.
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

    /// Let the other have the lock, but do not wait for it for ever.
    fn give_way(&self, mine: u64) {
        for _ in 0..SPINS {
            if self.last_by.load(Ordering::Relaxed) != mine {
                return;
            }
            spin_loop();
        }
        std::thread::yield_now();
    }

    /// An odd turn is the other's.
    fn ping(&self, source: &dyn Source, effort: Effort) -> Bounds {
        let mut bounds = Bounds { least: i64::MIN, most: i64::MAX, rounds: 0 };
        let began = Instant::now();
        let mut turn = 0;
        while !effort.over(began, bounds.rounds) {
            for _ in 0..16 {
                let before = source.read_in_order();
                self.turn.store(turn + 1, Ordering::Release); // (A)
                patiently(|| self.turn.load(Ordering::Acquire) == turn + 2); // (B)
                let after = source.read_in_order();
                let there = self.reading.load(Ordering::Relaxed);
                bounds.least = bounds.least.max(there.wrapping_sub(after) as i64);
                bounds.most = bounds.most.min(there.wrapping_sub(before) as i64);
                bounds.rounds += 1;
                turn += 2;
            }
        }
        self.over.store(true, Ordering::Release);
        bounds
    }

    fn pong(&self, source: &dyn Source) -> Bounds {
        let mut turn = 1;
        loop {
            let mut over = false;
            patiently(|| {
                over = self.over.load(Ordering::Acquire);
                over || self.turn.load(Ordering::Acquire) == turn // (B)
            });
            if over {
                return Bounds { least: 0, most: 0, rounds: 0 };
            }
            self.reading.store(source.read_in_order(), Ordering::Relaxed);
            self.turn.store(turn + 1, Ordering::Release); // (A)
            turn += 2;
        }
    }
}

/// Spin until it holds.
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
