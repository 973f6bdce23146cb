// SPDX-License-Identifier: PostgreSQL
//! Whatever the file contains, the reader returns an error or a reading, and neither panics nor takes
//! long.
//!
//! The run is short by default; TALLY_FUZZ_INPUTS sets the number of inputs, TALLY_FUZZ_SEED the seed,
//! and TALLY_FUZZ_FIRST the first input, to repeat one.
#![allow(missing_docs)]

mod maker;

use maker::{Counted, Maker, Shape, Who, ACCOUNT, TIMER};
use rand::rngs::StdRng;
use rand::{Rng, RngCore, SeedableRng};
use segment::{layout, Interval, Relations, Segment, Snapshot, StatementsDelta, StatementsReading};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SHAPE: Shape = Shape { slots: 3, groups: 2, stats_per_book: 16 };

/// A segment with two sessions, and a group that contains a third; some statements are in the table, with
/// texts, and some in the sessions' caches; the same is true of relations.
fn real(path: &Path) -> Vec<u8> {
    let mut maker = Maker::with_statements(path, SHAPE, 3);
    let stats: Vec<u32> = ["execute::cpu", "execute::wait::IO:WALSync", "idle::cpu"]
        .iter()
        .map(|name| maker.stat(name, ACCOUNT))
        .collect();
    let handle = maker.stat("command::Query::handle", TIMER);
    let start = segment::clock::monotonic_ns() - 1_000_000_000;
    let mut group = maker.group(0);
    for index in 0..3 {
        let mut slot = maker.claim(index, 1, Who::client(), stats[0], start);
        for i in 0..20 {
            slot.switch(stats[i % 3], start + (i as u64 + 1) * 1_000_000);
            slot.record(handle, 1 << i);
        }
        maker.write(&slot);
        if index == 2 {
            maker.merge(slot, &mut group, start + 30_000_000);
        }
    }
    let text: String = (0..50).map(|i| format!("select ${i}, größe\n")).collect();
    for id in 0..20u64 {
        let parts = [(stats[0], id, 1000 * id), (stats[1], 1, 10)];
        let counted = Counted::new(id, &[100 * id, 1 << (2 * id)]).parts(&parts);
        if id < 16 {
            let number = maker.enter(&counted, start + id);
            let bytes = &text.as_bytes()[..(30 * id) as usize];
            if !bytes.is_empty() {
                maker.give_text(number, bytes, 900, 6 + (id % 2) as i32 * 2, (4 * id as u32, 1));
            }
        }
        if id > 10 {
            maker.cache((id % 3) as u32, id as u32, 1 + id, &counted);
        }
        if id == 12 {
            maker.log(0, 0, 12, 13);
        }
    }
    let counted = Counted::new(3, &[]).parts(&[(stats[0], 1, 1000), (stats[1], 1, 10)]);
    maker.work(0, &counted, start, start + 1000);
    maker.with_relations(20);
    for number in 1..15 {
        maker.relation(number, &maker::relations::Reads::new(16384 + number, u64::from(number)));
        let reads = maker::relations::Reads::new(16384 + number, 5);
        maker.local_relation(number % 2, number, 1, number, &reads);
    }
    std::fs::read(path).unwrap()
}

/// A value such as a faulty machine could leave.
fn value(random: &mut StdRng) -> u64 {
    match random.random_range(0..6) {
        0 => 0,
        1 => u64::MAX,
        2 => random.next_u64(),
        3 => random.random_range(0..64),
        4 => 1 << random.random_range(0..64),
        _ => u64::from(u32::MAX),
    }
}

struct Bench {
    path: PathBuf,
    whole: Vec<u8>,
    file: std::fs::File,
    snapshot: Option<Snapshot>,
    statements: Option<StatementsReading>,
    relations: Option<Relations>,
}

impl Bench {
    /// Change the file, read it, restore it.
    fn input(&mut self, random: &mut StdRng) {
        let size = self.whole.len() as u64;
        let mut spots: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut cut = None;
        match random.random_range(0..10) {
            // A different length.
            0 => cut = Some(random.random_range(0..size + 5000)),
            // Noise in the header, or everywhere.
            1 => {
                let mut noise = vec![0; random.random_range(1..600)];
                random.fill_bytes(&mut noise);
                spots.push((random.random_range(0..1400), noise));
            }
            2 => {
                let mut noise = vec![0; random.random_range(1..5000)];
                random.fill_bytes(&mut noise);
                spots.push((random.random_range(0..size - 5000), noise));
            }
            // Bytes swapped.
            3 => {
                let at = random.random_range(0..size / 8) * 8;
                let bytes = &self.whole[at as usize..at as usize + 8];
                spots.push((at, bytes.iter().rev().copied().collect()));
            }
            // Flip one bit, a few times, mostly in used parts of the file.
            4..=6 => {
                for _ in 0..random.random_range(1..8) {
                    let at = self.spot(random);
                    let bit = 1u8 << random.random_range(0..8);
                    spots.push((at, vec![self.whole[at as usize] ^ bit]));
                }
            }
            // Values of the right size but with a wrong meaning.
            _ => {
                for _ in 0..random.random_range(1..5) {
                    let at = self.spot(random) & !7;
                    let value = value(random).to_ne_bytes();
                    let half = if random.random_bool(0.5) { 4 } else { 8 };
                    spots.push((at, value[..half].to_vec()));
                }
            }
        }
        for (at, bytes) in &spots {
            self.file.write_all_at(bytes, *at).unwrap();
        }
        if let Some(length) = cut {
            self.file.set_len(length).unwrap();
        }
        self.read();
        for (at, bytes) in &spots {
            let end = (*at as usize + bytes.len()).min(self.whole.len());
            self.file.write_all_at(&self.whole[*at as usize..end], *at).unwrap();
        }
        if cut.is_some() {
            self.file.set_len(0).unwrap();
            self.file.set_len(size).unwrap();
            write_sparse(&self.file, &self.whole);
        }
        if spots.iter().any(|(at, bytes)| at + bytes.len() as u64 > size) {
            self.file.set_len(size).unwrap();
        }
    }

    /// An offset in a part of the file that is used.
    fn spot(&self, random: &mut StdRng) -> u64 {
        loop {
            let at = match random.random_range(0..4) {
                0 => random.random_range(0..layout::LIVE_END),
                1 => random.random_range(4096..self.whole.len() / 2),
                _ => random.random_range(0..self.whole.len()),
            };
            let page = at & !63;
            if at < 4096 || self.whole[page..page + 64].iter().any(|&b| b != 0) {
                return at as u64;
            }
        }
    }

    fn read(&mut self) {
        let Ok(mut segment) = Segment::open(&self.path) else { return };
        let _ = segment.probes();
        let _ = segment.events(0);
        let _ = segment.population();
        // With and without a previous snapshot of the intact file.
        for previous in [self.snapshot.as_ref(), None] {
            if let Ok(snapshot) = segment.snapshot(previous) {
                let interval = Interval::between(&segment, previous, &snapshot);
                assert!(serde_json::to_vec(&interval).is_ok());
            }
        }
        if let Ok(Some(relations)) = segment.relations() {
            let rows = relations.since(self.relations.as_ref());
            assert!(serde_json::to_vec(&rows).is_ok());
            let _ = relations.since(None);
        }
        let Ok(Some(now)) = segment.statements() else { return };
        let grown = self.statements.as_ref().map(|then| StatementsDelta::between(then, &now));
        for delta in grown.into_iter().chain([StatementsDelta::total(&now)]) {
            for s in delta.statements() {
                let split = s.split(now.directory());
                let _ = (s.exec(), s.plan(), s.quantile(0.99), s.buckets(), s.counters(), split);
            }
        }
        for flight in now.in_flight() {
            let _ = flight.split(now.directory());
        }
    }
}

fn write_sparse(file: &std::fs::File, bytes: &[u8]) {
    for (index, page) in bytes.chunks(4096).enumerate() {
        if page.iter().any(|&b| b != 0) {
            file.write_all_at(page, index as u64 * 4096).unwrap();
        }
    }
}

#[test]
fn no_content_makes_the_reader_panic() {
    let number = |name: &str, default: u64| {
        std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
    };
    let inputs = number("TALLY_FUZZ_INPUTS", 3_000);
    let seed = number("TALLY_FUZZ_SEED", 1);
    let first = number("TALLY_FUZZ_FIRST", 0);
    let folder = tempfile::Builder::new().tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("hostile.seg");
    let mut whole = real(&path);
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    // With the ID of another boot there is nothing to wait for, so millions of inputs pass.
    for boot in ["", "0123"] {
        let mut snapshot = None;
        if !boot.is_empty() {
            file.write_all_at(boot.as_bytes(), layout::header::BOOT_ID as u64).unwrap();
            whole = std::fs::read(&path).unwrap();
        } else {
            snapshot = Some(Segment::open(&path).unwrap().snapshot(None).unwrap());
        }
        let statements = Segment::open(&path).unwrap().statements().unwrap();
        assert_eq!(statements.as_ref().map_or(0, |s| s.statements().len()), 20);
        let file = file.try_clone().unwrap();
        let relations = Segment::open(&path).unwrap().relations().unwrap();
        let whole = whole.clone();
        let mut bench = Bench { path: path.clone(), whole, file, snapshot, statements, relations };
        // The reader waits for a session that appears to be writing, so there are fewer of these inputs.
        let inputs = if boot.is_empty() { inputs.min(500) } else { inputs };
        let mut slowest = Duration::ZERO;
        for input in first..first + inputs {
            let mut random = StdRng::seed_from_u64(seed << 40 | input);
            let begin = Instant::now();
            bench.input(&mut random);
            let took = begin.elapsed();
            slowest = slowest.max(took);
        }
        assert_eq!(std::fs::read(&path).unwrap(), bench.whole, "the inputs left traces");
        println!("{inputs} inputs of seed {seed}, the slowest took {slowest:?}");
    }
}
