// SPDX-License-Identifier: PostgreSQL
//! Samples which plan node each traced process runs, in a thread that reads the heads of the rings.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use error::Error;
use segment::{Segment, TraceNode};

use super::story::NodeId;

/// Mean time between two samples. The actual time varies, so that sampling is not in step with the load.
const PERIOD: Duration = Duration::from_millis(1);
/// Maximum number of unread samples of a ring; more come only while its reader is stopped.
const MOST: usize = 20_000;

/// Tick and node; `None` if no node of the plan ran.
pub type Sample = (u64, Option<NodeId>);

#[derive(Debug)]
struct Sampled {
    ring: TraceNode,
    samples: Vec<Sample>,
}

/// The sampling thread, which ends when this is dropped.
#[derive(Debug)]
pub struct Sampler {
    rings: Arc<Mutex<Vec<Sampled>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// Starts sampling rings of this segment.
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

    /// Takes the samples of a ring since the last call; the first call starts sampling it.
    pub fn take(&self, ring: TraceNode) -> Vec<Sample> {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        match rings.iter_mut().find(|sampled| sampled.ring == ring) {
            Some(sampled) => std::mem::take(&mut sampled.samples),
            None => {
                rings.push(Sampled { ring, samples: Vec::new() });
                Vec::new()
            }
        }
    }

    /// Stops sampling a ring.
    pub fn leave(&self, ring: TraceNode) {
        self.rings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|sampled| sampled.ring != ring);
    }
}

fn sample(segment: &Segment, rings: &Mutex<Vec<Sampled>>) {
    let mut rings = rings.lock().unwrap_or_else(PoisonError::into_inner);
    for sampled in rings.iter_mut().filter(|ring| ring.samples.len() < MOST) {
        // A ring that cannot be read has no samples; its reader reports why.
        if let Ok(Some(node)) = sampled.ring.read(segment) {
            sampled.samples.push((segment.clock().now(), node));
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has no result, and a panic was printed already.
            let _ = thread.join();
        }
    }
}
