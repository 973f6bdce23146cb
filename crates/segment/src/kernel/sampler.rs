// SPDX-License-Identifier: PostgreSQL
//! The thread that asks the kernel whether processes are blocked while their account is `cpu`.

use super::proc::{Doing, Proc};
use crate::directory::Stat;
use crate::segment::Segment;
use crate::this_host;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two rounds of the sampler.
const PERIOD: Duration = Duration::from_millis(5);
/// Number of sessions sampled per round: always the same, so that busy times do not weigh less.
const LOOKS: usize = 3;

/// A session to sample.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub slot: u32,
    pub generation: u32,
    pub pid: i32,
}

/// Shared between the sampler's thread and the watch.
#[derive(Debug, Default)]
pub(super) struct State {
    pub targets: Vec<Target>,
    pub samples: u64,
    /// Unexplained samples, by system call.
    pub unexplained: HashMap<Option<i64>, u64>,
    pub reason: Option<String>,
}

#[derive(Debug)]
pub(super) struct Sampler {
    state: Arc<Mutex<State>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// The state holds only numbers, which stay valid if the thread panicked.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sampler {
    pub fn start(segment: &Segment) -> Sampler {
        let state = Arc::new(Mutex::new(State::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let path = segment.segment_path().clone();
        let thread = {
            let (state, stop) = (state.clone(), stop.clone());
            std::thread::Builder::new().name("kernel sampler".to_string()).spawn(move || {
                match Segment::open(&path) {
                    Ok(segment) => sample(segment, &state, &stop),
                    Err(error) => lock(&state).reason = Some(error.to_string()),
                }
            })
        };
        let thread = thread
            .map_err(|error| {
                lock(&state).reason = Some(format!("could not start the sampling thread: {error}"))
            })
            .ok();
        Sampler { state, stop, thread }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // The thread ends within one period; a panic is ignored.
            let _ = thread.join();
        }
    }
}

fn sample(mut segment: Segment, state: &Mutex<State>, stop: &AtomicBool) {
    let mut proc = Proc::default();
    let mut turn = 0usize;
    let mut round = Vec::with_capacity(LOOKS);
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(PERIOD);
        round.clear();
        {
            let targets = &lock(state).targets;
            for _ in 0..LOOKS.min(targets.len()) {
                turn = turn.wrapping_add(1);
                round.push(targets[turn % targets.len()]);
            }
        }
        for &target in &round {
            look(target, &mut segment, &mut proc, state);
        }
    }
}

fn look(target: Target, segment: &mut Segment, proc: &mut Proc, state: &Mutex<State>) {
    // Querying the kernel is expensive, so idle sessions are skipped.
    if runs(target, segment).is_none_or(|now| now.idle) {
        return;
    }
    let asked = segment.clock().now();
    let doing = match proc.doing(target.pid) {
        Ok(doing) => doing,
        Err(error) => {
            if this_host::exists(target.pid) {
                let reason = format!("could not read /proc/{}/stat: {error}", target.pid);
                lock(state).reason = Some(reason);
            }
            return;
        }
    };
    let Some(now) = runs(target, segment).filter(|now| !now.idle) else { return };
    let unexplained = match doing {
        // A runnable process is not blocked, whatever its account was.
        Doing::Running => None,
        Doing::Blocked(_) if now.since > asked => return,
        Doing::Blocked(call) => now.cpu.then_some(call),
    };
    let mut state = lock(state);
    state.samples += 1;
    if let Some(call) = unexplained {
        *state.unexplained.entry(call).or_default() += 1;
    }
}

/// The running account of a book.
struct RunningAccount {
    /// When it began, tick.
    since: u64,
    /// Whether it is idle time.
    idle: bool,
    /// Whether it is `cpu`.
    cpu: bool,
}

fn runs(target: Target, segment: &mut Segment) -> Option<RunningAccount> {
    let running = segment.running(target.slot, target.generation).ok()??;
    let stat = segment.directory.get(running.stat);
    Some(RunningAccount {
        since: running.since,
        idle: stat.is_none_or(Stat::is_idle),
        cpu: stat.is_some_and(Stat::is_cpu),
    })
}
