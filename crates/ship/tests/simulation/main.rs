// SPDX-License-Identifier: PostgreSQL
//! Histories of a recorder that ships, generated from seeds: the recorder is killed at any system call, its disk fills
//! up, the machine loses power, the clock is set, object storage refuses requests, loses responses and lies. After each
//! step, the readers' view of the recording and the bucket is compared with a model, which only knows which intervals
//! were taken.
//!
//! A history that violates the model is shrunk and printed with its seed. `PGTALLY_SEED=N` runs only that history.

mod history;
mod memory;
mod model;
mod storage;
mod world;

#[path = "../../../recording/tests/support/mod.rs"]
mod recorder;

use history::History;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The first seed of `make test`.
const FIRST: u64 = 34_000;

/// The violation of the model in the history of this seed, with the shortest history found that has one.
fn violation(seed: u64) -> Option<String> {
    let history = History::of_seed(seed);
    let first = world::run(&history).err()?;
    let begun = Instant::now();
    let (shortest, last) = history.shrink(first, |history| {
        // A history of a few actions is found well within this time.
        let in_time = begun.elapsed() < Duration::from_secs(60);
        in_time.then(|| world::run(history).err()).flatten()
    });
    Some(format!("PGTALLY_SEED={seed}: {last}\n{shortest:#?}"))
}

/// Runs the histories of these seeds in parallel. Panics at the first violation.
fn run(first: u64, count: u64) {
    let next = AtomicU64::new(first);
    let found = Mutex::new(None);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= first.saturating_add(count) || found.lock().unwrap().is_some() {
                    return;
                }
                if let Some(text) = violation(seed) {
                    found.lock().unwrap().get_or_insert(text);
                }
            });
        }
    });
    let seconds = begun.elapsed().as_secs_f64();
    let done = next.load(Ordering::Relaxed).min(first.saturating_add(count)) - first;
    println!("{done} histories from seed {first} in {seconds:.1} s");
    let seen = model::BucketView::all();
    println!("steps with {seen:?}");
    if let Some(text) = found.into_inner().unwrap() {
        panic!("{text}");
    }
    // A single history need not have all of these.
    assert!(count == 1 || seen.iter().all(|(_, times)| *times > 0), "{seen:?}");
}

fn from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect(name))
}

#[test]
fn readers_find_every_interval_once_whatever_happens() {
    match from_environment("PGTALLY_SEED") {
        Some(seed) => run(seed, 1),
        None => run(FIRST, 400),
    }
}

#[test]
#[ignore = "verify: 100,000 histories, half an hour"]
fn verify_many_histories() {
    let seed = from_environment("PGTALLY_SEED").unwrap_or_else(|| {
        let random = std::collections::hash_map::RandomState::new();
        std::hash::BuildHasher::hash_one(&random, 0) >> 16
    });
    println!("PGTALLY_SEED={seed}");
    run(seed, from_environment("PGTALLY_HISTORIES").unwrap_or(100_000));
}
