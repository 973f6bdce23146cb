// SPDX-License-Identifier: PostgreSQL
//! The kernel's witness, tested with processes whose behavior is known.
#![allow(missing_docs)]

mod maker;

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use maker::{Maker, Shape, Who, ACCOUNT};
use segment::clock::monotonic_ns;
use segment::kernel::{KernelView, Watch};
use segment::layout::header;
use segment::{Interval, Segment};

const SHAPE: Shape = Shape { slots: 4, groups: 2, stats_per_book: 16 };

/// A process that is killed at the end of the test.
struct Process(Child);

impl Process {
    fn new(program: &str, args: &[&str]) -> Process {
        Process(Command::new(program).args(args).spawn().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the kernel reports this state for the process.
fn until(process: &Process, state: char) {
    let path = format!("/proc/{}/stat", process.0.id());
    let name = |text: &str| text[text.find('(').unwrap() + 1..text.rfind(')').unwrap()].to_string();
    eventually(|| {
        let text = std::fs::read_to_string(&path).unwrap();
        // Until it has its own name, it is still a copy of this process.
        let is_itself = ["sleep", "sh", "dash", "bash"].contains(&&*name(&text));
        is_itself && text.rsplit(')').next().unwrap().trim_start().starts_with(state)
    });
}

fn eventually(mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(120), "timeout");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The witness's view of a process whose book says `account`, once it has seen enough.
fn witness(process: &Process, account: &str, enough: impl Fn(&KernelView) -> bool) -> KernelView {
    let folder = tempfile::tempdir().unwrap();
    let mut maker = Maker::new(&folder.path().join("pg_tally.1.2"), SHAPE);
    let stat = maker.stat(account, ACCOUNT);
    let who = Who { pid: process.0.id(), ..Who::client() };
    maker.claim(0, 1, who, stat, monotonic_ns());
    let mut segment = Segment::open(&maker.path).unwrap();
    let mut watch = Watch::start(&segment);
    let mut last = segment.snapshot(None).unwrap();
    let mut view = watch.observe(None, &last, 0.0);
    eventually(|| {
        std::thread::sleep(Duration::from_millis(20));
        let next = segment.snapshot(Some(&last)).unwrap();
        let interval = Interval::between(&segment, Some(&last), &next);
        view = watch.observe(Some(&last), &next, interval.busy_seconds);
        last = next;
        enough(&view)
    });
    view
}

fn sampled(view: &KernelView) -> bool {
    view.samples > 20
}

/// A process that sleeps.
fn asleep() -> Process {
    let process = Process::new("sleep", &["600"]);
    until(&process, 'S');
    process
}

#[test]
fn a_process_blocked_outside_every_probe_is_unexplained() {
    let witness = witness(&asleep(), "execute::cpu", sampled);
    assert!(witness.available, "{witness:?}");
    assert_eq!((witness.unexplained_share, witness.samples_unexplained), (1.0, witness.samples));
    assert!(!witness.blocked_in.is_empty());
}

#[test]
fn a_runnable_process_is_explained() {
    let busy = Process::new("sh", &["-c", "while :; do :; done"]);
    until(&busy, 'R');
    // The kernel's sums show it as well, although the book does not change.
    let witness = witness(&busy, "execute::cpu", |view| sampled(view) && view.on_cpu_seconds > 0.0);
    assert_eq!(witness.samples_unexplained, 0, "{witness:?}");
    assert!(witness.unexplained_share <= witness.unexplained_error, "{witness:?}");
}

#[test]
fn a_process_in_the_wait_of_its_book_is_explained() {
    let witness = witness(&asleep(), "execute::wait::IO:WALSync", sampled);
    assert_eq!(witness.unexplained_share, 0.0, "{witness:?}");
}

#[test]
fn idle_sessions_are_not_sampled() {
    // Wait as long as it takes to sample another process.
    let process = asleep();
    let (enough, done) = std::sync::mpsc::channel();
    let other = std::thread::spawn(move || {
        witness(&asleep(), "execute::cpu", sampled);
        enough.send(()).unwrap();
    });
    let witness = witness(&process, "idle::wait::Client:ClientRead", |_| done.try_recv().is_ok());
    other.join().unwrap();
    assert_eq!(witness.samples, 0, "{witness:?}");
}

#[test]
fn processes_of_another_pid_namespace_are_not_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let maker = Maker::new(&folder.path().join("pg_tally.1.2"), SHAPE);
    maker.u64(header::PID_NAMESPACE as u64, 7);
    let mut segment = Segment::open(&maker.path).unwrap();
    let mut watch = Watch::start(&segment);
    let snapshot = segment.snapshot(None).unwrap();
    let witness = watch.observe(None, &snapshot, 0.0);
    assert!(!witness.available);
    assert!(witness.reason.unwrap().contains("PID namespace"));
}
