// SPDX-License-Identifier: PostgreSQL
//! How long reading a thousand busy slots takes.
//!
//! 1,000 slots of 30 statistics each, of which 15 change between two snapshots. Prints the
//! mean time of a snapshot and of the interval made of it, in ms with the half-width of
//! their 95 % confidence interval.
//!
//!     cargo run --release -p segment --example read_thousand

#[path = "../tests/maker/mod.rs"]
mod maker;

use maker::{Maker, Shape, Who, ACCOUNT};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use segment::{Interval, Segment};
use std::time::Instant;

const SLOTS: u32 = 1000;
const STATISTICS: usize = 30;
const CHANGED: usize = 15;
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
            for &stat in &stats[..CHANGED] {
                slot.record(stat, value(&mut random));
            }
            maker.write(slot);
        }
        let begin = Instant::now();
        let snapshot = segment.snapshot(Some(&previous))?;
        read.push(begin.elapsed().as_secs_f64() * 1e3);
        let begin = Instant::now();
        let interval = Interval::between(&segment, Some(&previous), &snapshot);
        model.push(begin.elapsed().as_secs_f64() * 1e3);
        let counted: u64 = interval.ledger.iter().map(|a| a.timing.count).sum();
        assert_eq!(counted, u64::from(SLOTS) * CHANGED as u64);
        previous = snapshot;
    }
    print("snapshot", &read);
    print("interval", &model);
    Ok(())
}

/// Microseconds to milliseconds, evenly over the octaves.
fn value(random: &mut StdRng) -> u64 {
    let octave = random.random_range(10..22);
    random.random_range(1 << octave..1 << (octave + 1))
}

fn print(what: &str, values: &[f64]) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    // 2.02: Student's t for 95 % and 39 degrees of freedom.
    let half_width = 2.02 * (variance / n).sqrt();
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    println!(
        "{what} of {SLOTS} slots, {STATISTICS} statistics, {CHANGED} changed: {mean:.2} ms ± {half_width:.2} (median {:.2}, worst {:.2}, {} rounds)",
        sorted[sorted.len() / 2],
        sorted[sorted.len() - 1],
        values.len(),
    );
}
