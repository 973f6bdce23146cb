// SPDX-License-Identifier: PostgreSQL
//! Samples which node of its plan each traced process runs: a thread that reads the rings' heads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use error::Error;
use segment::{Segment, TraceNode};

use super::story::NodeId;

/// Mean time between two samples; the actual ones vary, so that they keep in step with nothing.
const PERIOD: Duration = Duration::from_millis(1);
/// Samples of a ring that wait for its reader; more come only while it is stopped.
const MOST: usize = 20_000;

/// When, tick, and which node; `None`: none of the plan's.
pub type Sample = (u64, Option<NodeId>);

#[derive(Debug)]
struct Sampled {
    ring: TraceNode,
    samples: Vec<Sample>,
}

/// The thread; it ends with this.
#[derive(Debug)]
pub struct Sampler {
    rings: Arc<Mutex<Vec<Sampled>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// Of rings of this segment.
    pub fn start(segment: &Segment) -> Result<Sampler, Error> {
        let segment = Segment::open(segment.path())?;
        let rings = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let (of, ends) = (Arc::clone(&rings), Arc::clone(&stop));
        let work = move || {
            while !ends.load(Ordering::Relaxed) {
                sample(&segment, &of);
                std::thread::sleep(PERIOD.mul_f64(rand::random_range(0.5..1.5)));
            }
        };
        let thread = std::thread::Builder::new().name("nodes".into()).spawn(work)?;
        Ok(Sampler { rings, stop, thread: Some(thread) })
    }

    /// The samples of a ring since the last call; sampled from now on, if it was not.
    pub fn take(&self, ring: TraceNode) -> Vec<Sample> {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        match rings.iter_mut().find(|it| it.ring == ring) {
            Some(it) => std::mem::take(&mut it.samples),
            None => {
                rings.push(Sampled { ring, samples: Vec::new() });
                Vec::new()
            }
        }
    }

    /// Sample a ring no longer.
    pub fn leave(&self, ring: TraceNode) {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner).retain(|it| it.ring != ring);
    }
}

fn sample(segment: &Segment, rings: &Mutex<Vec<Sampled>>) {
    let mut rings = rings.lock().unwrap_or_else(PoisonError::into_inner);
    for it in rings.iter_mut().filter(|ring| ring.samples.len() < MOST) {
        // A ring that cannot be read has no samples; whoever follows it says why.
        if let Ok(Some(node)) = it.ring.read(segment) {
            it.samples.push((segment.clock().now(), node));
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has nothing to say; a panic of it was printed.
            let _ = thread.join();
        }
    }
}
