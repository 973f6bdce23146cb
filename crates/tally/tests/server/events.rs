// SPDX-License-Identifier: PostgreSQL
//! `tally events`: on segments written byte by byte, and on live servers.

use crate::support;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{channel, Receiver};
use std::time::{Duration, Instant};

use crate::maker::{Maker, Shape, Who, ACCOUNT, EVENTS};
use crate::support::json_reference::{assert_documented, documented, section};
use crate::support::{eventually, line_of};
use postgres::Client;
use rustix::process::{kill_process, Pid, Signal};
use scratch::{Cluster, StopMode};
use segment::clock::{monotonic_ns, realtime_ns};
use segment::layout::{event, header};
use serde_json::Value;
use tempfile::TempDir;

/// Until something is printed.
const PATIENCE: Duration = Duration::from_secs(120);

const SHAPE: Shape = Shape { slots: 4, groups: 2, stats_per_book: 32 };

/// A segment without events, and a session of this process.
fn segment() -> (TempDir, PathBuf, Maker) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pg_tally.1.2");
    let maker = made(&path);
    (folder, path, maker)
}

fn made(path: &Path) -> Maker {
    let mut maker = Maker::new(path, SHAPE);
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    maker.claim(0, 1, Who::client(), cpu, monotonic_ns());
    maker
}

fn events(args: &[&str], target: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tally"));
    command.env("TZ", "UTC").arg("events").args(args).arg(target);
    command
}

fn run(args: &[&str], target: &Path) -> Output {
    events(args, target).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The printed objects, one per line.
fn json(args: &[&str], target: &Path) -> Vec<Value> {
    let output = run(&[args, &["--json"]].concat(), target);
    assert!(output.status.success(), "{output:?}");
    text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn numbers(rows: &[Value]) -> Vec<u64> {
    rows.iter().map(|row| row["number"].as_u64().unwrap()).collect()
}

/// A running `tally events --follow`. Its output comes through channels, so that waits have a timeout.
struct Follower {
    child: Child,
    lines: Receiver<String>,
    stderr: Receiver<String>,
}

fn lines_of(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

impl Follower {
    fn start(args: &[&str], target: &Path) -> Follower {
        let mut command = events(&[&["--follow"], args].concat(), target);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = lines_of(child.stdout.take().unwrap());
        let stderr = lines_of(child.stderr.take().unwrap());
        Follower { child, lines, stderr }
    }

    /// The next line of standard output.
    fn line(&self) -> String {
        self.lines.recv_timeout(PATIENCE).unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// How often it has slept so far.
    fn naps(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"));
        line.unwrap().split_whitespace().nth(1).unwrap().parse().unwrap()
    }

    fn row(&self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    /// Waits until standard error contains this.
    fn reports(&self, what: &str) {
        let next = || self.stderr.recv_timeout(PATIENCE);
        while !next().unwrap_or_else(|_| panic!("it does not report: {what}")).contains(what) {}
    }

    /// Interrupts it; returns the remaining lines of standard output and error.
    fn interrupt(mut self) -> (Vec<String>, Vec<String>) {
        self.signal(Signal::INT);
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
        (self.lines.iter().collect(), self.stderr.iter().collect())
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn events_are_printed_in_order_with_time_process_and_kind() {
    let (_folder, path, maker) = segment();
    let pid = std::process::id();
    let events = [(1, 1, "one"), (4, 4, "fsync: 7.02 s"), (9, 77, "of another time\x1b[2J")];
    let made = realtime_ns();
    for (number, kind, what) in events {
        maker.event(number, kind, what);
    }
    let output = run(&[], &path);
    assert!(output.status.success(), "{output:?}");
    let printed = text(&output.stdout);
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 3, "{printed}");
    assert!(lines[1]
        .ends_with(&format!(" UTC [{pid}] client backend alice@postgres SLOW: fsync: 7.02 s")));
    assert!(lines[2].contains(" EVENT 77: of another time?[2J"), "{printed}");
    assert!(!printed.contains('\x1b'));
    // Gaps left by killed writers are reported where they occur.
    assert!(text(&output.stderr).contains("2 events were lost"), "{output:?}");

    let rows = json(&[], &path);
    assert_eq!(numbers(&rows), [1, 4, 9]);
    happened_since(made, &rows[0]);
    assert_eq!(
        (&rows[1]["process"], &rows[1]["user"]),
        (&"client backend".into(), &"alice".into())
    );
    let lost: Vec<u64> = rows.iter().map(|row| row["lost"].as_u64().unwrap()).collect();
    assert_eq!(lost, [0, 2, 4]);

    // Losses before a filtered event are added to the next printed one.
    maker.event(10, 1, "last");
    let notes = json(&["--kind", "note"], &path);
    assert_eq!((numbers(&notes), &notes[1]["lost"]), (vec![1, 10], &6.into()));
    assert_eq!(numbers(&json(&["--kind", "slow,note"], &path)), [1, 4, 10]);
    let last = &json(&["--last", "2"], &path)[0];
    assert_eq!((&last["kind"], &last["lost"]), (&"event 77".into(), &0.into()));
    assert_eq!(numbers(&json(&["--since", "4"], &path)), [9, 10]);
    assert_eq!(numbers(&json(&["--since", "1h"], &path)), [1, 4, 9, 10]);
    assert_eq!(json(&["--pid", "1"], &path).len(), 0);
    let none = run(&["--pid", "1"], &path);
    assert!(none.stdout.is_empty() && text(&none.stderr).contains("no events match"), "{none:?}");
    assert!(!text(&run(&[], &path).stderr).contains("no events match"));
    let refused = run(&["--since", "yesterday"], &path);
    assert_eq!(refused.status.code(), Some(2));
}

/// Checks an event's time, which the command computes from two clocks that it reads one after the other.
fn happened_since(begin_ns: u64, row: &Value) {
    let (begin, now) = (begin_ns as f64 / 1e9, realtime_ns() as f64 / 1e9);
    let time = row["time"].as_f64().unwrap();
    let apart = now - begin;
    assert!(begin - apart <= time && time <= now, "{time}, not {begin} to {now}");
}

#[test]
fn every_field_is_documented() {
    let (_folder, path, maker) = segment();
    maker.event(1, 3, "waited");
    let document = section("The JSON of `tally events`");
    let row = &json(&[], &path)[0];
    let written: Vec<&String> = row.as_object().unwrap().keys().collect();
    assert_documented(document, &written);
    for name in documented(document, "") {
        assert!(written.iter().any(|w| *w == name), "{name} is documented and not written");
    }
}

#[test]
fn events_overwritten_in_the_ring_are_counted_as_lost() {
    let (_folder, path, maker) = segment();
    for number in 1..=20 {
        maker.event(number, 1, &format!("event {number}"));
    }
    let output = run(&["--json"], &path);
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("4 events were lost: only the last 16 are kept (pg_tally.max_events)"),
        "{stderr}"
    );
    let rows = json(&[], &path);
    assert_eq!(numbers(&rows), (5..=20).collect::<Vec<_>>());
    assert_eq!((&rows[0]["lost"], &rows[1]["lost"]), (&4.into(), &0.into()));
    let latest = run(&["--last", "2"], &path);
    assert_eq!((text(&latest.stdout).lines().count(), latest.stderr.len()), (2, 0));
}

#[test]
fn followed_events_are_printed_once_and_lost_ones_are_counted() {
    let (_folder, path, maker) = segment();
    maker.event(1, 1, "before");
    let follower = Follower::start(&["--json"], &path);
    assert_eq!(follower.row()["text"], "before");
    maker.event(2, 4, "after");
    assert_eq!(follower.row()["number"], 2);
    // Many more than the ring can hold, in bursts, each of which appears to the reader at once.
    let mut last = 2;
    let mut lost = 0;
    for burst in [3, 16, 50, 17, 1] {
        follower.signal(Signal::STOP);
        let end = last + burst;
        (last + 1..=end).for_each(|number| maker.event(number, 1, "burst"));
        follower.signal(Signal::CONT);
        while last < end {
            let row = follower.row();
            let (number, missing) =
                (row["number"].as_u64().unwrap(), row["lost"].as_u64().unwrap());
            assert_eq!(number, last + 1 + missing);
            lost += missing;
            last = number;
        }
    }
    assert_eq!(lost, u64::from(50 + 17 - 2 * EVENTS));
    let (rows, stderr) = follower.interrupt();
    assert_eq!(rows, [""; 0]);
    assert!(
        stderr.iter().all(|line| line.contains("lost: only the last 16 are kept")),
        "{stderr:?}"
    );
    assert!(!stderr.is_empty());
}

#[test]
fn the_reader_waits_for_a_late_writer_but_not_forever_for_a_killed_one() {
    let (_folder, path, maker) = segment();
    maker.event(1, 1, "first");
    let follower = Follower::start(&["--json"], &path);
    assert_eq!(follower.row()["number"], 1);
    // Number 3 exists before number 2. A writer that is late by less than a second loses nothing; if this
    // machine takes longer, the next numbers are tried.
    let mut number = 1;
    loop {
        let (began, naps) = (Instant::now(), follower.naps());
        maker.event(number + 2, 1, "third");
        eventually("the reader has looked", || follower.naps() >= naps + 2);
        maker.event(number + 1, 1, "second");
        maker.u64(header::EVENT_COUNT as u64, number + 2);
        let in_time = began.elapsed() < Duration::from_secs(1);
        if in_time {
            let (second, third) = (follower.row(), follower.row());
            assert_eq!((&second["text"], &second["lost"]), (&"second".into(), &0.into()));
            assert_eq!((&third["text"], &third["lost"]), (&"third".into(), &0.into()));
        } else {
            while follower.row()["number"] != number + 2 {}
        }
        number += 2;
        if in_time {
            break;
        }
        assert!(number < 100, "this machine is too busy");
    }
    // One number never appears.
    let began = Instant::now();
    maker.event(number + 2, 1, "next");
    let next = follower.row();
    assert_eq!((&next["text"], &next["lost"]), (&"next".into(), &1.into()));
    assert!(began.elapsed() > Duration::from_millis(900), "{:?}", began.elapsed());
}

#[test]
fn following_continues_after_a_restart_in_the_same_segment_without_duplicates() {
    let (_folder, path, maker) = segment();
    maker.event(1, 1, "before");
    let follower = Follower::start(&["--json"], &path);
    assert_eq!(follower.row()["text"], "before");
    let mut ended = Command::new("true").spawn().unwrap();
    maker.u32(header::SERVER_PID as u64, ended.id());
    ended.wait().unwrap();
    follower.reports("the server has stopped");
    // Events of a stopped server can still be read.
    assert_eq!(numbers(&json(&[], &path)), [1]);
    maker.event(2, 1, "after");
    maker.u32(header::SERVER_PID as u64, std::process::id());
    follower.reports("the server was restarted");
    assert_eq!(follower.row()["number"], 2);
    assert_eq!(follower.interrupt().0, [""; 0]);
}

#[test]
fn a_replaced_segment_is_read_to_its_end_and_the_new_one_from_its_start() {
    let (folder, path, maker) = segment();
    maker.event(1, 1, "before");
    let follower = Follower::start(&[], &path);
    assert!(follower.line().ends_with("NOTE: before"));
    maker.event(2, 2, "last words");
    std::fs::remove_file(&path).unwrap();
    assert!(follower.line().ends_with("WARNING: last words"));
    follower.reports("the server has ended");
    let half_made = folder.path().join("new");
    let next = made(&half_made);
    for (number, what) in [(1, "first words"), (2, "second"), (3, "third")] {
        next.event(number, 1, what);
    }
    std::fs::rename(&half_made, &path).unwrap();
    follower.reports("the server was restarted");
    assert!(follower.line().ends_with("NOTE: first words"));
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let (_folder, path, maker) = segment();
    maker.event(1, 1, "one");
    let mut follower = Follower::start(&["--json"], &path);
    assert_eq!(follower.row()["number"], 1);
    // The output is closed before the first line, and after the last one while no event follows.
    for read in [false, true] {
        let mut command = events(&["--follow"], &path);
        let mut unread = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(unread.stdout.take().unwrap());
        if read {
            assert!(!line_of(&mut out).is_empty());
        }
        drop(out);
        eventually("the end", || unread.try_wait().unwrap().is_some());
        let status = unread.wait().unwrap();
        let mut stderr = String::new();
        unread.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert!(status.success() && stderr.is_empty(), "{status} {stderr}");
    }
    assert!(follower.child.try_wait().unwrap().is_none());
}

#[test]
fn errors_state_why_a_target_cannot_be_read() {
    let (folder, path, maker) = segment();
    let other = folder.path().join("other");
    std::fs::write(&other, "nothing of the kind").unwrap();
    for (target, code, reason) in
        [(other.as_path(), 1, "not a segment"), (Path::new("/no/such"), 2, "no such file")]
    {
        let refused = run(&["--follow"], target);
        assert_eq!(refused.status.code(), Some(code));
        assert!(text(&refused.stderr).contains(reason), "{refused:?}");
    }
    // Impossible counts: valid events are still printed, and the command ends.
    maker.event(1, 1, "one");
    maker.u64(header::EVENT_COUNT as u64, u64::MAX);
    assert_eq!(json(&[], &path).len(), 0);
    maker.u64(header::EVENT_COUNT as u64, 1);
    maker.u64(event::TICK as u64 + event_at(&maker), u64::MAX);
    assert_eq!(json(&[], &path).len(), 1);
}

/// Offset of the first event.
fn event_at(maker: &Maker) -> u64 {
    let mut offset = [0; 8];
    std::os::unix::fs::FileExt::read_exact_at(&maker.file, &mut offset, header::EVENTS as u64)
        .unwrap();
    u64::from_ne_bytes(offset)
}

/// A server that keeps 16 events.
fn server_with_a_small_ring() -> Cluster {
    support::start(
        support::plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.slow_threshold", "30ms")
            .setting("pg_tally.max_events", "16"),
    )
}

/// A session that has locked a table.
fn locked(cluster: &Cluster) -> Client {
    let mut holder = cluster.connect().unwrap();
    holder.batch_execute("begin; create table if not exists t (n int); commit").unwrap();
    holder.batch_execute("begin; lock table t").unwrap();
    holder
}

/// Waits for the table this many times, each time for longer than a slow wait; returns the waiter's PID.
fn time_out_on_lock(cluster: &Cluster, times: u32) -> i32 {
    let _holder = locked(cluster);
    let mut waiter = cluster.connect().unwrap();
    waiter.batch_execute("set lock_timeout = '60ms'").unwrap();
    for _ in 0..times {
        waiter.batch_execute("select from t").unwrap_err();
    }
    support::pid_of(&mut waiter)
}

/// A session waits for the table until `reported` has seen it, and is cancelled then.
fn wait_until<T>(waiter: &mut Client, reported: impl FnOnce() -> T) -> T {
    let token = waiter.cancel_token();
    std::thread::scope(|scope| {
        scope.spawn(|| waiter.batch_execute("select from t").unwrap_err());
        // The wait ends in any case.
        let _cancel = Cancel(token);
        reported()
    })
}

/// Cancels a session's statement.
struct Cancel(postgres::CancelToken);

impl Drop for Cancel {
    fn drop(&mut self) {
        let _ = self.0.cancel_query(postgres::NoTls);
    }
}

#[test]
fn blocked_waits_of_a_live_server_are_followed_across_its_restart() {
    let mut cluster = server_with_a_small_ring();
    let path = support::segment(&cluster);
    let follower = Follower::start(&["--json", "--kind", "blocked,slow"], &path);
    let began = realtime_ns();
    let mut holder = locked(&cluster);
    let mut waiter = cluster.connect().unwrap();
    let (holder_pid, own) = (support::pid_of(&mut holder), support::pid_of(&mut waiter));
    // The server wakes its sleepers after deadlock_timeout, so there are slow waits as well.
    let next_blocked = || loop {
        let row = follower.row();
        if row["kind"] == "blocked" {
            return row;
        }
    };
    let row = wait_until(&mut waiter, next_blocked);
    assert_eq!(row["pid"], own);
    let event = row["text"].as_str().unwrap();
    let begin = format!(
        "1 session waits for session {holder_pid} (postgres@postgres), idle in transaction for "
    );
    assert!(event.starts_with(&begin) && event.contains(" s, for relation "), "{event}");
    happened_since(began, &row);
    let row = next_blocked();
    let event = row["text"].as_str().unwrap();
    assert!(event.starts_with(&format!("no longer waits for session {holder_pid} (")), "{event}");

    // User and database are known as long as the session exists.
    let line = text(&run(&["--last", "1", "--kind", "blocked"], cluster.data_dir()).stdout);
    let user: String = waiter.query_one("select current_user::text", &[]).unwrap().get(0);
    let database: String = waiter.query_one("select current_database()::text", &[]).unwrap().get(0);
    assert!(
        line.contains(&format!("[{own}] client backend {user}@{database} BLOCKED: ")),
        "{line}"
    );
    drop((waiter, holder));

    // More events than the ring's 16.
    time_out_on_lock(&cluster, 20);
    let output = run(&["--json"], &path);
    assert_eq!(text(&output.stdout).lines().count(), 16);
    assert!(text(&output.stderr).contains("were lost: only the last 16 are kept"), "{output:?}");
    let mut last = 0;
    eventually("the follower has printed them", || {
        last = follower.row()["number"].as_u64().unwrap();
        last >= 22
    });

    cluster.stop(StopMode::Fast).unwrap();
    follower.reports("the server has ended");
    cluster.start().unwrap();
    follower.reports("the server was restarted");
    let _holder = locked(&cluster);
    let mut waiter = cluster.connect().unwrap();
    let again = support::pid_of(&mut waiter);
    assert_eq!(wait_until(&mut waiter, next_blocked)["pid"], again);
    follower.interrupt();
}

#[test]
fn slow_waits_and_checkpoints_of_a_live_server_are_reported() {
    let cluster = support::start(
        support::plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.slow_threshold", "30ms"),
    );
    let path = support::segment(&cluster);
    let slow = Follower::start(&["--json", "--kind", "slow"], &path);
    let waiter = time_out_on_lock(&cluster, 1);
    eventually("the wait is reported", || {
        let row = slow.row();
        row["pid"] == waiter && row["text"].as_str().unwrap().starts_with("Lock:relation: ")
    });
    let checkpoints = Follower::start(&["--kind", "checkpoint"], &path);
    cluster.psql("checkpoint").unwrap();
    for word in ["begins", "ends"] {
        eventually("the checkpoint is reported", || {
            let line = checkpoints.line();
            assert!(line.contains("] checkpointer CHECKPOINT: "), "{line}");
            line.contains(word)
        });
    }
    assert!(json(&["--kind", "checkpoint,slow"], &path).len() >= 3);
}
