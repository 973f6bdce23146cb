// SPDX-License-Identifier: PostgreSQL
//! The segment of a scenario, and a reader of it whose readings a test can count.

use std::collections::HashSet;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use segment::layout::header::VIRTUAL_TICK;
use segment::Segment;

use super::process::{Stepper, Stop};

/// A folder in memory, and the path of a segment in it.
pub struct ScenarioSegment {
    _folder: tempfile::TempDir,
    pub path: PathBuf,
}

impl ScenarioSegment {
    pub fn new() -> ScenarioSegment {
        let folder = tempfile::Builder::new().prefix("stepper").tempdir_in("/dev/shm").unwrap();
        let path = folder.path().join("pg_tally.1.2");
        ScenarioSegment { _folder: folder, path }
    }

    /// Remove the segment before the next run.
    pub fn clear(&self) -> &Path {
        let _ = std::fs::remove_file(&self.path);
        &self.path
    }

    pub fn open(&self) -> Segment {
        let segment = Segment::open(&self.path).unwrap();
        segment.set_impatient();
        segment
    }

    pub fn word(&self, at: u64) -> u64 {
        let mut bytes = [0; 8];
        std::fs::File::open(&self.path).unwrap().read_exact_at(&mut bytes, at).unwrap();
        u64::from_ne_bytes(bytes)
    }

    pub fn tick(&self) -> u64 {
        self.word(VIRTUAL_TICK as u64)
    }

    /// Advance the clock, while no writer runs.
    pub fn advance(&self, ticks: u64) {
        let file = std::fs::File::options().write(true).open(&self.path).unwrap();
        file.write_all_at(&(self.tick() + ticks).to_ne_bytes(), VIRTUAL_TICK as u64).unwrap();
    }
}

/// Lets a writer continue before the reader's n-th reading.
struct Mover {
    phase: usize,
    stops: u64,
    readings: usize,
    stop: Option<Stop>,
}

/// A stepper that readers' hooks share.
#[derive(Clone)]
pub struct Shared(Arc<Mutex<Stepper>>);

impl Shared {
    pub fn new() -> Shared {
        Shared::with_stepper(Stepper::new())
    }

    pub fn with_stepper(stepper: Stepper) -> Shared {
        Shared(Arc::new(Mutex::new(stepper)))
    }

    pub fn with<T>(&self, f: impl FnOnce(&mut Stepper) -> T) -> T {
        f(&mut self.0.lock().unwrap())
    }

    /// Read, and before the reader's reading number `phase`, let the writer continue for this many stops; if the reader
    /// does not reach the phase, do so afterwards. Returns the result of reading, the writer's stop, and whether the
    /// reader reached the phase.
    pub fn move_in<T>(
        &self,
        segment: &mut Segment,
        phase: usize,
        stops: u64,
        read: impl FnOnce(&mut Segment) -> T,
    ) -> (T, Stop, bool) {
        let mover = Arc::new(Mutex::new(Mover { phase, stops, readings: 0, stop: None }));
        let (moving, stepper) = (mover.clone(), self.clone());
        segment.set_before_reading(Some(Box::new(move |_, _| {
            let mut mover = moving.lock().unwrap();
            mover.readings += 1;
            if mover.readings == mover.phase {
                mover.stop = Some(stepper.with(|stepper| stepper.go(mover.stops)));
            }
        })));
        let found = read(segment);
        segment.set_before_reading(None);
        let stop = mover.lock().unwrap().stop.take();
        match stop {
            Some(stop) => (found, stop, true),
            None => (found, self.with(|stepper| stepper.go(stops)), false),
        }
    }
}

/// The stops of a scenario, from the first to the last.
pub fn stops_of(stepper: &mut Stepper, place: &ScenarioSegment, scenario: &str) -> Vec<Stop> {
    let mut stops = vec![stepper.start(scenario, place.clear())];
    while !stops.last().unwrap().is_end() {
        stops.push(stepper.go(1));
    }
    stepper.finish();
    stops
}

/// The first stop of each name, and the last one.
pub fn first_of_each_name(stops: &[Stop]) -> Vec<Stop> {
    let mut names = HashSet::new();
    stops.iter().filter(|stop| names.insert(&*stop.name)).cloned().collect()
}
