// SPDX-License-Identifier: PostgreSQL
//! The kernel's witness, against processes of which we know what they do.
#![allow(missing_docs)]

mod maker;

use std::process::{Child, Command};
use std::time::Duration;

use maker::{Maker, Shape, Who, ACCOUNT};
use segment::clock::monotonic_ns;
use segment::kernel::{KernelView, Watch};
use segment::layout::header;
use segment::{Interval, Segment};

const SHAPE: Shape = Shape { slots: 4, groups: 2, stats_per_book: 16 };

/// Ends the process with the test.
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

/// What the witness says after a second of a process whose book says `account`.
fn witness(process: &Process, account: &str) -> KernelView {
    let folder = tempfile::tempdir().unwrap();
    let mut maker = Maker::new(&folder.path().join("pg_tally.1.2"), SHAPE);
    let stat = maker.stat(account, ACCOUNT);
    let who = Who { pid: process.0.id(), ..Who::client() };
    maker.claim(0, 1, who, stat, monotonic_ns());
    let mut segment = Segment::open(&maker.path).unwrap();
    let mut watch = Watch::start(&segment);
    let first = segment.snapshot(None).unwrap();
    watch.observe(None, &first, 0.0);
    std::thread::sleep(Duration::from_millis(1000));
    let second = segment.snapshot(Some(&first)).unwrap();
    let interval = Interval::between(&segment, Some(&first), &second);
    watch.observe(Some(&first), &second, interval.busy_seconds)
}

#[test]
fn a_process_blocked_outside_every_probe_is_unexplained() {
    let witness = witness(&Process::new("sleep", &["60"]), "execute::cpu");
    assert!(witness.available && witness.samples > 20, "{witness:?}");
    assert!(witness.unexplained_share > 0.9, "{witness:?}");
    assert_eq!(witness.samples_unexplained, witness.samples);
    assert!(!witness.blocked_in.is_empty());
}

#[test]
fn a_runnable_process_is_explained() {
    let busy = Process::new("sh", &["-c", "while :; do :; done"]);
    let witness = witness(&busy, "execute::cpu");
    assert!(witness.samples > 20, "{witness:?}");
    assert_eq!(witness.samples_unexplained, 0, "{witness:?}");
    assert!(witness.unexplained_error < 0.11, "{witness:?}");
    // The kernel's sums say so, too, although its book does not change.
    assert!(witness.on_cpu_seconds > 0.0, "{witness:?}");
    assert!(witness.unexplained_share <= witness.unexplained_error, "{witness:?}");
}

#[test]
fn a_process_in_the_wait_of_its_book_is_explained() {
    let witness = witness(&Process::new("sleep", &["60"]), "execute::wait::IO:WALSync");
    assert!(witness.samples > 20, "{witness:?}");
    assert_eq!(witness.unexplained_share, 0.0, "{witness:?}");
}

#[test]
fn idle_sessions_are_not_sampled() {
    let witness = witness(&Process::new("sleep", &["60"]), "idle::wait::Client:ClientRead");
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
    assert!(witness.reason.unwrap().contains("pid namespace"));
}
