// SPDX-License-Identifier: PostgreSQL
//! How long reading a full table of statements takes.
//!
//! There are 5,000 statements with texts of 300 bytes, and 100 sessions with 32 of them each in their
//! caches. A quarter of the statements changes between two readings. Prints the median CPU time of the
//! first reading, of a later one and of computing the interval, in ms, with the minimum and the
//! maximum.
//!
//!     cargo run --release -p segment --example read_statements

#[path = "../tests/maker/mod.rs"]
mod maker;

use maker::{Counted, Maker, Shape, Who, ACCOUNT};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustix::time::{clock_gettime, ClockId};
use segment::clock::monotonic_ns;
use segment::{Segment, StatementsDelta};

const STATEMENTS: u64 = 5000;
const SESSIONS: u32 = 100;
const CACHED: u32 = 32;
const ROUNDS: usize = 40;
const UTF8: i32 = 6;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::Builder::new().tempdir_in("/dev/shm")?;
    let path = folder.path().join("statements.seg");
    let shape = Shape { slots: SESSIONS, groups: 4, stats_per_book: 16 };
    let mut maker = Maker::with_statements(&path, shape, (STATEMENTS / 16) as u32 + 1);
    let mut random = StdRng::seed_from_u64(1);
    let stats: Vec<u32> =
        (0..6).map(|i| maker.stat(&format!("execute::wait::IO:Number{i}"), ACCOUNT)).collect();
    let counted = |random: &mut StdRng, id: u64, times: usize| {
        let times: Vec<u64> = (0..times).map(|_| 1 << random.random_range(12..26)).collect();
        let parts: Vec<_> = stats.iter().map(|&stat| (stat, 10, 1_000_000)).collect();
        Counted::new(id, &times).parts(&parts)
    };
    for id in 1..=STATEMENTS {
        let number = maker.enter(&counted(&mut random, id, 50), id);
        maker.give_text(number, &[b'x'; 300], 300, UTF8, (2 * id as u32, 1));
    }
    for slot in 0..SESSIONS {
        maker.claim(slot, 1, Who::client(), stats[0], monotonic_ns());
    }
    let (mut first, mut later, mut interval) = (Vec::new(), Vec::new(), Vec::new());
    let mut segment = Segment::open(&path)?;
    let mut previous = None;
    for round in 0..ROUNDS {
        for slot in 0..SESSIONS {
            let changed = if round == 0 { 0..CACHED } else { 0..CACHED / 4 };
            for index in changed {
                let id = 1 + u64::from(slot * 37 + index * 101) % STATEMENTS;
                maker.cache(slot, 2 * index, 1, &counted(&mut random, id, 10 + round));
            }
        }
        let begin = cpu_ms();
        let fresh = Segment::open(&path)?.statements()?;
        first.push(cpu_ms() - begin);
        assert_eq!(fresh.map(|all| all.statements().len()), Some(STATEMENTS as usize));

        let begin = cpu_ms();
        let now = segment.statements()?.ok_or("the segment keeps none")?;
        later.push(cpu_ms() - begin);
        let begin = cpu_ms();
        let delta = match &previous {
            Some(previous) => StatementsDelta::between(previous, &now),
            None => StatementsDelta::total(&now),
        };
        interval.push(cpu_ms() - begin);
        assert!(!delta.statements().is_empty());
        previous = Some(now);
    }
    println!("{STATEMENTS} statements, {SESSIONS} sessions with {CACHED} each, {ROUNDS} rounds");
    print("first reading", &first);
    print("later reading", &later);
    print("interval", &interval);
    Ok(())
}

fn cpu_ms() -> f64 {
    let t = clock_gettime(ClockId::ProcessCPUTime);
    t.tv_sec as f64 * 1e3 + t.tv_nsec as f64 * 1e-6
}

fn print(what: &str, ms: &[f64]) {
    let mut ms = ms.to_vec();
    ms.sort_by(f64::total_cmp);
    let (min, median, max) = (ms[0], ms[ms.len() / 2], ms[ms.len() - 1]);
    println!("  {what:14} {median:6.2} ms ({min:.2} to {max:.2})");
}
