// SPDX-License-Identifier: PostgreSQL
//! How long reading a thousand busy slots takes.
//!
//! There are 1,000 slots with 30 statistics each; every other one changes 8 times between two
//! snapshots. Prints the mean time of a snapshot and of computing the interval, and the CPU time in all
//! threads, in ms, with the half-width of the 95 % confidence interval.
//!
//!     cargo run --release -p segment --example read_thousand

#[path = "../tests/maker/mod.rs"]
mod maker;

use maker::{Maker, Shape, Who, ACCOUNT};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustix::time::{clock_gettime, ClockId};
use segment::{Interval, Segment};
use std::time::Instant;

const SLOTS: u32 = 1000;
const STATISTICS: usize = 30;
const CHANGED: usize = 15;
/// Number of records per changed statistic.
const RECORDS: usize = 8;
const ROUNDS: usize = 40;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::Builder::new().tempdir_in("/dev/shm")?;
    let path = folder.path().join("thousand.seg");
    let shape = Shape { slots: SLOTS, groups: 64, stats_per_book: 256 };
    let mut random = StdRng::seed_from_u64(1);
    let mut maker = Maker::new(&path, shape);
    let stats: Vec<u32> = (0..STATISTICS)
        .map(|i| maker.stat(&format!("execute::wait::LWLock:Number{i}"), ACCOUNT))
        .collect();
    let mut slots = Vec::new();
    for index in 0..SLOTS {
        let now = segment::clock::monotonic_ns();
        let mut slot = maker.claim(index, 1, Who::client(), stats[0], now);
        for &stat in &stats {
            for _ in 0..200 {
                slot.record(stat, value(&mut random));
            }
        }
        maker.write(&slot);
        slots.push(slot);
    }

    let mut segment = Segment::open(&path)?;
    let mut previous = segment.snapshot(None)?;
    let mut read = Vec::new();
    let mut model = Vec::new();
    for _ in 0..ROUNDS {
        for slot in &mut slots {
            for &stat in stats.iter().step_by(STATISTICS / CHANGED) {
                let values: [u64; RECORDS] = std::array::from_fn(|_| value(&mut random));
                maker.count(slot, stat, &values);
            }
        }
        let begin = Lap::begin();
        let snapshot = segment.snapshot(Some(&previous))?;
        read.push(begin.end());
        let begin = Lap::begin();
        let interval = Interval::between(&segment, Some(&previous), &snapshot);
        model.push(begin.end());
        let counted: u64 = interval.ledger.iter().map(|a| a.timing.count).sum();
        assert_eq!(counted, u64::from(SLOTS) * (CHANGED * RECORDS) as u64);
        previous = snapshot;
    }
    print("snapshot", &read);
    print("interval", &model);
    Ok(())
}

/// A random value from microseconds to milliseconds, uniform over the octaves.
fn value(random: &mut StdRng) -> u64 {
    let octave = random.random_range(10..22);
    random.random_range(1 << octave..1 << (octave + 1))
}

/// A stretch of time by the wall clock and in CPU time.
struct Lap {
    wall: Instant,
    cpu: f64,
}

impl Lap {
    fn begin() -> Lap {
        Lap { wall: Instant::now(), cpu: cpu_ms() }
    }

    /// Wall-clock time and CPU time, ms.
    fn end(&self) -> (f64, f64) {
        (self.wall.elapsed().as_secs_f64() * 1e3, cpu_ms() - self.cpu)
    }
}

fn cpu_ms() -> f64 {
    let t = clock_gettime(ClockId::ProcessCPUTime);
    t.tv_sec as f64 * 1e3 + t.tv_nsec as f64 * 1e-6
}

fn print(what: &str, laps: &[(f64, f64)]) {
    let wall: Vec<f64> = laps.iter().map(|l| l.0).collect();
    let cpu: Vec<f64> = laps.iter().map(|l| l.1).collect();
    println!(
        "{what} of {SLOTS} slots, {STATISTICS} statistics, {CHANGED} changed, {} rounds",
        laps.len()
    );
    println!("  elapsed        {}", summary(&wall));
    println!("  processor time {}", summary(&cpu));
}

fn summary(values: &[f64]) -> String {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    // 2.02: Student's t for 95 % and 39 degrees of freedom.
    let half_width = 2.02 * (variance / n).sqrt();
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    format!(
        "{mean:.2} ms ± {half_width:.2} (best {:.2}, median {:.2}, worst {:.2})",
        sorted[0],
        sorted[sorted.len() / 2],
        sorted[sorted.len() - 1]
    )
}
