// SPDX-License-Identifier: PostgreSQL
//! What the kernel reports of the same processes, to check the ledger.
//!
//! /proc/PID/schedstat has the time that a process was on a processor and the time that it
//! stood in the run queue. The `cpu` account holds both, so it may never exceed their sum:
//! what exceeds it was blocked where nobody looked. The other way round is no error: a
//! process that has been woken stands in the run queue inside of its wait, and the kernel's
//! own work at a wait's begin and end lies inside of it too; that is "runnable inside waits".
//!
//! Waiting unseen may hide behind that difference. So a thread asks the kernel every 5 ms
//! about three of the sessions in turn, then reads what runs in its book and since when: if that began
//! before the kernel was asked, it ran when the kernel answered. A process that is blocked
//! while its account is `cpu` is a sample of unexplained time. Each session is looked at
//! equally often, and only what was found busy counts, so the share of such samples is the
//! share of busy time. A blocked process whose account changed between the two readings,
//! about 10 µs, cannot be judged and is not counted.

use crate::book::Life;
use crate::directory::{Directory, Stat};
use crate::process;
use crate::segment::Segment;
use crate::snapshot::Snapshot;
use serde::Serialize;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two rounds of the sampler ...
const PERIOD: Duration = Duration::from_millis(5);
/// ... in each of which it looks at so many sessions. Always the same number, so that busy
/// times weigh no less than quiet ones.
const LOOKS: usize = 3;
/// Files of /proc that the sampler keeps open.
const MOST_FILES: usize = 256;

/// What the kernel says of an interval. Seconds are of the interval and of the sessions that
/// were there at both of its ends; the share is of all intervals since the watch began.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct KernelView {
    /// Whether the kernel was asked and could answer.
    pub available: bool,
    /// Why not.
    pub reason: Option<String>,
    /// What the seconds are of, where that is longer than the interval: a recording has the
    /// kernel's view by details.
    pub of_seconds: Option<f64>,
    /// Sessions that were compared.
    pub sessions: usize,
    /// What the ledger has as `cpu`.
    pub cpu_account_seconds: f64,
    /// What the kernel has as on a processor.
    pub on_cpu_seconds: f64,
    /// What the kernel has as ready to run and not running.
    pub run_queue_seconds: f64,
    /// What the kernel has beyond the `cpu` account: runnable inside waits.
    pub runnable_inside_waits_seconds: f64,
    /// Busy time that was spent blocked outside of every probe: the share below, of this
    /// interval's busy time.
    pub unexplained_seconds: f64,
    /// The share of busy time that is unexplained: the greater of what the sums and what the
    /// samples say.
    pub unexplained_share: f64,
    /// Half-width of the 95 % confidence interval of the sampled share.
    pub unexplained_error: f64,
    /// Samples of busy sessions since the watch began.
    pub samples: u64,
    /// Of those, blocked while the account was `cpu`.
    pub samples_unexplained: u64,
    /// Why there are no samples.
    pub sampling_reason: Option<String>,
    /// In which system calls the unexplained samples were blocked, most first.
    pub blocked_in: Vec<BlockedIn>,
}

/// Unexplained samples of one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlockedIn {
    /// Number of the system call; `None`: outside of any, as at a page fault, or unknown.
    pub syscall: Option<i64>,
    /// Samples.
    pub samples: u64,
}

impl KernelView {
    /// One that was not asked.
    pub fn unavailable(why: &str) -> KernelView {
        KernelView { reason: Some(why.to_string()), ..KernelView::default() }
    }
}

/// A reading of /proc/PID/schedstat, and the counter of the book at that time.
#[derive(Debug, Clone, Copy)]
struct Reading {
    seq: u64,
    on_cpu_ns: u64,
    run_queue_ns: u64,
}

/// What was seen since the watch began.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    cpu_account: f64,
    kernel: f64,
    busy: f64,
}

/// Watches the processes of one segment.
#[derive(Debug)]
pub struct Watch {
    reason: Option<String>,
    readings: HashMap<(u32, u32), Reading>,
    sums: Sums,
    sampler: Option<Sampler>,
}

impl Watch {
    /// Begin to watch. Every [`KernelView`] says what stands in the way.
    pub fn start(segment: &Segment) -> Watch {
        let watch = Watch::unsampled(segment);
        Watch { sampler: watch.reason.is_none().then(|| Sampler::start(segment)), ..watch }
    }

    fn unsampled(segment: &Segment) -> Watch {
        let reason = if !segment.is_of_this_boot() {
            Some("the segment is of an earlier boot")
        } else if !segment.knows_pids() {
            Some("the server's processes are of another pid namespace; run tally where the server runs")
        } else if schedstat(std::process::id() as i32).is_none() {
            Some("this kernel has no /proc/PID/schedstat (CONFIG_SCHED_INFO)")
        } else {
            None
        };
        Watch {
            sampler: None,
            reason: reason.map(str::to_string),
            readings: HashMap::new(),
            sums: Sums::default(),
        }
    }

    /// The same without the thread that samples: only the kernel's sums are reported,
    /// for a reader that runs all the time and must cost next to nothing.
    pub fn without_samples(segment: &Segment) -> Watch {
        Watch::unsampled(segment)
    }

    /// Compare the interval between two snapshots, of which `busy_seconds` were not idle, and
    /// go on watching. Call it right after taking `snapshot`, the first one included.
    pub fn observe(
        &mut self,
        previous: Option<&Snapshot>,
        snapshot: &Snapshot,
        busy_seconds: f64,
    ) -> KernelView {
        if let Some(reason) = &self.reason {
            return KernelView::unavailable(reason);
        }
        let clock = &snapshot.clock;
        let mut witness = KernelView { available: true, ..KernelView::default() };
        let mut readings = HashMap::with_capacity(snapshot.books.len());
        let mut targets = Vec::new();
        for book in snapshot.books.iter().filter(|b| b.life == Life::Alive) {
            let key = (book.slot, book.generation);
            let before = self.readings.get(&key);
            // What has not moved since has not run either.
            let reading = match before.filter(|b| b.seq == book.seq && book.seq % 2 == 0) {
                Some(same) => Some(*same),
                None => schedstat(book.pid).map(|(on_cpu_ns, run_queue_ns)| Reading {
                    seq: book.seq,
                    on_cpu_ns,
                    run_queue_ns,
                }),
            };
            let Some(reading) = reading else { continue };
            readings.insert(key, reading);
            let idle = |stat: Option<&Stat>| stat.is_none_or(Stat::is_idle);
            let now_idle = idle(book.run().and_then(|id| snapshot.directory.get(id)));
            if !now_idle || before.is_none_or(|b| b.seq != book.seq) {
                targets.push(Target { slot: book.slot, generation: key.1, pid: book.pid });
            }
            let then = previous.and_then(|p| p.book(book.slot, book.generation));
            let (Some(before), Some(then)) = (before, then) else { continue };
            let cpu = cpu_ticks(book, &snapshot.directory)
                .saturating_sub(cpu_ticks(then, &snapshot.directory));
            witness.sessions += 1;
            witness.cpu_account_seconds += clock.seconds(cpu);
            witness.on_cpu_seconds +=
                reading.on_cpu_ns.saturating_sub(before.on_cpu_ns) as f64 * 1e-9;
            witness.run_queue_seconds +=
                reading.run_queue_ns.saturating_sub(before.run_queue_ns) as f64 * 1e-9;
        }
        self.readings = readings;
        let kernel = witness.on_cpu_seconds + witness.run_queue_seconds;
        witness.runnable_inside_waits_seconds = (kernel - witness.cpu_account_seconds).max(0.0);
        self.sums.cpu_account += witness.cpu_account_seconds;
        self.sums.kernel += kernel;
        self.sums.busy += busy_seconds;
        if self.sums.busy > 0.0 {
            let exceeding = self.sums.cpu_account - self.sums.kernel;
            witness.unexplained_share = (exceeding / self.sums.busy).max(0.0);
        }
        if let Some(sampler) = &self.sampler {
            let mut state = sampler.state();
            state.targets = targets;
            witness.samples = state.samples;
            witness.samples_unexplained = state.unexplained.values().sum();
            witness.sampling_reason = state.reason.clone();
            witness.blocked_in = state
                .unexplained
                .iter()
                .map(|(&syscall, &samples)| BlockedIn { syscall, samples })
                .collect();
            witness.blocked_in.sort_by_key(|b| (std::cmp::Reverse(b.samples), b.syscall));
        }
        if witness.samples > 0 {
            let share = witness.samples_unexplained as f64 / witness.samples as f64;
            witness.unexplained_share = witness.unexplained_share.max(share);
            witness.unexplained_error = half_width(witness.samples_unexplained, witness.samples);
        }
        witness.unexplained_seconds = witness.unexplained_share * busy_seconds;
        witness
    }
}

/// Half the width of Wilson's 95 % interval of a share: honest also when no hit was seen.
/// E. B. Wilson, JASA 22 (1927), 209-212.
pub fn half_width(hits: u64, samples: u64) -> f64 {
    const Z: f64 = 1.96;
    let n = samples as f64;
    let p = hits as f64 / n;
    Z / (1.0 + Z * Z / n) * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt()
}

/// Ticks in the `cpu` accounts of a book.
fn cpu_ticks(book: &crate::book::Book, directory: &Directory) -> u64 {
    book.heads
        .iter()
        .filter(|h| directory.get(h.stat).is_some_and(is_cpu))
        .fold(0, |sum, h| sum.saturating_add(h.total))
}

fn is_cpu(stat: &Stat) -> bool {
    stat.kind == crate::directory::StatKind::Account && &**stat.activity() == "cpu"
}

/// On-CPU and run-queue time of a process, ns.
fn schedstat(pid: i32) -> Option<(u64, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    let mut numbers = text.split_ascii_whitespace().map(|n| n.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

/// A session to be sampled.
#[derive(Debug, Clone, Copy)]
struct Target {
    slot: u32,
    generation: u32,
    pid: i32,
}

/// Shared between the sampler's thread and the watch.
#[derive(Debug, Default)]
struct State {
    targets: Vec<Target>,
    samples: u64,
    /// By system call.
    unexplained: HashMap<Option<i64>, u64>,
    reason: Option<String>,
}

#[derive(Debug)]
struct Sampler {
    state: Arc<Mutex<State>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What a state protects is numbers: they hold whatever happened to the thread.
fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sampler {
    fn start(segment: &Segment) -> Sampler {
        let state = Arc::new(Mutex::new(State::default()));
        let stop = Arc::new(AtomicBool::new(false));
        let place = segment.segment_path().clone();
        let thread = {
            let (state, stop) = (state.clone(), stop.clone());
            std::thread::Builder::new().name("witness".to_string()).spawn(move || {
                match Segment::open(&place) {
                    Ok(segment) => sample(segment, &state, &stop),
                    Err(error) => lock(&state).reason = Some(error.to_string()),
                }
            })
        };
        let thread = thread
            .map_err(|error| lock(&state).reason = Some(format!("no thread for it: {error}")))
            .ok();
        Sampler { state, stop, thread }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It holds nothing and ends within one period; a panic of it is not ours.
            let _ = thread.join();
        }
    }
}

/// What the kernel says of one process at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// On a processor or in the run queue.
    Running,
    /// Blocked in this system call; `None`: outside of any, or unknown.
    Blocked(Option<i64>),
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
    // The kernel is the dearer one to ask: not about who is idle anyway.
    if runs(target, segment).is_none_or(|now| now.idle) {
        return;
    }
    let asked = segment.clock().now();
    let doing = match proc.doing(target.pid) {
        Ok(doing) => doing,
        Err(error) => {
            if process::exists(target.pid) {
                let reason = format!("/proc/{}/stat cannot be read: {error}", target.pid);
                lock(state).reason = Some(reason);
            }
            return;
        }
    };
    let Some(now) = runs(target, segment).filter(|now| !now.idle) else { return };
    let unexplained = match doing {
        // What wants a processor is not blocked, whatever its account was.
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

/// What runs in a book.
struct Now {
    /// Since when, tick.
    since: u64,
    /// Whether that is idling.
    idle: bool,
    /// Whether it is `cpu`.
    cpu: bool,
}

fn runs(target: Target, segment: &mut Segment) -> Option<Now> {
    let running = segment.running(target.slot, target.generation).ok()??;
    let stat = segment.directory.get(running.stat);
    Some(Now {
        since: running.since,
        idle: stat.is_none_or(Stat::is_idle),
        cpu: stat.is_some_and(is_cpu),
    })
}

/// Files of /proc, kept open: reading one again asks the kernel again.
#[derive(Debug, Default)]
struct Proc {
    files: HashMap<i32, (File, bool)>,
}

impl Proc {
    /// /proc/PID/syscall where we may read it (root, or the same user and no restriction on
    /// ptrace), else the state in /proc/PID/stat, which anyone may.
    fn doing(&mut self, pid: i32) -> io::Result<Doing> {
        let mut buffer = [0u8; 512];
        if self.files.len() > MOST_FILES {
            self.files.clear();
        }
        if let Some((file, is_syscall)) = self.files.get(&pid) {
            match file.read_at(&mut buffer, 0) {
                Ok(n) if n > 0 => return parse_doing(&buffer[..n], *is_syscall),
                // Its process has ended, or we may not ask about this one.
                _ => self.files.remove(&pid),
            };
        }
        if let Ok(file) = File::open(format!("/proc/{pid}/syscall")) {
            if let Ok(n) = file.read_at(&mut buffer, 0) {
                let doing = parse_doing(&buffer[..n], true)?;
                self.files.insert(pid, (file, true));
                return Ok(doing);
            }
        }
        let file = File::open(format!("/proc/{pid}/stat"))?;
        let n = file.read_at(&mut buffer, 0)?;
        let doing = parse_doing(&buffer[..n], false)?;
        self.files.insert(pid, (file, false));
        Ok(doing)
    }
}

fn parse_doing(bytes: &[u8], is_syscall: bool) -> io::Result<Doing> {
    let text = String::from_utf8_lossy(bytes);
    if !is_syscall {
        let state = text.rsplit(')').next().and_then(|rest| rest.trim_start().chars().next());
        return match state {
            Some('R') => Ok(Doing::Running),
            Some(_) => Ok(Doing::Blocked(None)),
            None => Err(io::ErrorKind::InvalidData.into()),
        };
    }
    match text.split_ascii_whitespace().next() {
        Some("running") => Ok(Doing::Running),
        Some(number) => Ok(Doing::Blocked(number.parse().ok().filter(|&n: &i64| n >= 0))),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_says_whether_a_process_is_blocked_and_where() {
        let own = std::process::id() as i32;
        assert!(schedstat(own).is_some_and(|(on_cpu, _)| on_cpu > 0));
        let mut busy =
            std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(Proc::default().doing(busy.id() as i32).unwrap(), Doing::Running);
        busy.kill().unwrap();
        busy.wait().unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let mut proc = Proc::default();
        for _ in 0..2 {
            assert!(matches!(proc.doing(child.id() as i32).unwrap(), Doing::Blocked(_)));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(proc.doing(child.id() as i32).is_err());
    }

    #[test]
    fn blocked_and_running_are_distinguished_in_both_files() {
        assert_eq!(parse_doing(b"running\n", true).unwrap(), Doing::Running);
        assert_eq!(parse_doing(b"74 0x5 0x0 ...", true).unwrap(), Doing::Blocked(Some(74)));
        assert_eq!(parse_doing(b"-1 0x7ffd 0x7f", true).unwrap(), Doing::Blocked(None));
        assert_eq!(parse_doing(b"7 (a) b) R 1", false).unwrap(), Doing::Running);
        assert_eq!(parse_doing(b"7 (a) b) D 1", false).unwrap(), Doing::Blocked(None));
        assert!(parse_doing(b"", true).is_err());
    }

    #[test]
    fn no_hit_in_few_samples_is_not_certainty() {
        assert!(half_width(0, 100) > 0.015);
        assert!(half_width(0, 10_000) < 0.001);
        assert!((half_width(50, 100) - 0.096).abs() < 0.002);
    }
}
