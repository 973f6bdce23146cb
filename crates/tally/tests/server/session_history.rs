// SPDX-License-Identifier: PostgreSQL
//! What a recording contains for each session and second, compared with the server's own views at the same time,
//! also if the recorder is killed.

use crate::support;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::support::recorder::Recorder;
use crate::support::row_lock::{server, session, UPDATE};
use crate::support::tmux::Tmux;
use crate::support::{eventually, output};
use postgres::Client;
use recording::{Range, Recording, SessionHistoryRow};
use rustix::process::Signal;
use scratch::Cluster;
use segment::Segment;
use serde_json::Value;

/// Number of intervals to record while nothing changes.
const LONG: u64 = 8;

/// A session according to the server's views: application, state, blockers.
type SeenByViews = BTreeMap<i64, (String, String, BTreeSet<u64>)>;

/// The output of the server's views.
fn seen(client: &mut Client) -> SeenByViews {
    let rows = client
        .query(
            "select pid, application_name, state, pg_blocking_pids(pid)
             from pg_stat_activity where application_name in ('forgetful', 'waiter') and state <> 'idle'",
            &[],
        )
        .unwrap();
    rows.iter()
        .map(|row| {
            let blockers: Vec<i32> = row.get(3);
            let blockers = blockers.iter().map(|pid| *pid as u64).collect();
            (i64::from(row.get::<_, i32>(0)), (row.get(1), row.get(2), blockers))
        })
        .collect()
}

/// The current time, microseconds since 1970.
fn now_us() -> i64 {
    jiff::Timestamp::now().as_microsecond()
}

/// A state of the server that did not change while some intervals were recorded.
struct Held {
    seen: SeenByViews,
    /// Start and end of that time, microseconds since 1970.
    time_us: [i64; 2],
}

impl Held {
    /// Waits until the waiting sessions have looked up their blockers, and then for this many intervals; starts
    /// again if the server has changed meanwhile, because sessions that are woken wait for each other once more.
    fn record(cluster: &Cluster, recorder: &Recorder) -> Held {
        let (mut witness, _) = session(cluster, "witness");
        let segment = Segment::open(&support::segment(cluster)).unwrap();
        eventually("the server stays as it is", || {
            let mut state = SeenByViews::new();
            eventually("those that wait know for whom", || {
                state = seen(&mut witness);
                let all = segment.blocked().unwrap();
                let known = |pid: i64, blockers: &BTreeSet<u64>| {
                    let own = all.iter().find(|session| i64::from(session.pid) == pid);
                    let listed =
                        own.map(|session| session.blockers.iter().map(|pid| *pid as u64).collect());
                    listed.as_ref() == Some(blockers)
                };
                state.iter().all(|(pid, (.., by))| by.is_empty() || known(*pid, by))
            });
            let begin = now_us();
            recorder.wait_for(LONG + 1);
            let time_us = [begin, now_us()];
            (seen(&mut witness) == state).then_some(Held { seen: state, time_us })
        })
    }

    /// The intervals within that time agree with the server's views.
    fn compare(&self, rows: &[SessionHistoryRow]) {
        let mut recorded: BTreeMap<i64, SeenByViews> = BTreeMap::new();
        let [begin, end] = self.time_us;
        let compared = |row: &&SessionHistoryRow| {
            matches!(&*row.application, "forgetful" | "waiter")
                && row.time_us - row.interval_ns.div_ceil(1000) as i64 >= begin
                && row.time_us < end
        };
        for row in rows.iter().filter(compared) {
            let blockers = row.blockers.iter().copied().collect();
            let session = (row.application.to_string(), row.state.to_string(), blockers);
            let before = recorded.entry(row.time_us).or_default().insert(row.pid, session);
            assert_eq!(before, None, "one row for each session and interval");
        }
        // The first one may have ended before that time, and the next one have started before.
        assert!(recorded.len() as u64 >= LONG - 1, "{recorded:#?}");
        for (time_us, sessions) in recorded {
            assert_eq!(sessions, self.seen, "at {time_us}");
        }
    }
}

/// The rows in order of time; those of the same instant, which files contain in any order, by process.
fn history(directory: &Path) -> Vec<SessionHistoryRow> {
    let recording = Recording::open(directory, None).unwrap();
    let mut rows = recording.session_history(Range::ALL).unwrap();
    assert_eq!(recording.problems(), Vec::<String>::new());
    rows.sort_by_key(|row| (row.time_us, row.pid));
    rows
}

/// Sessions that change the same row.
struct Crowd {
    /// It has a transaction that has changed the row, and does nothing.
    root: Client,
    root_pid: i64,
    /// The waiting sessions: the first of them waits for the root, the others behind it.
    pids: Vec<i64>,
    /// While set, a session that gets the row keeps its transaction open.
    keep: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Client>>,
}

impl Crowd {
    fn start(cluster: &Cluster) -> Crowd {
        let (mut root, root_pid) = session(cluster, "forgetful");
        root.batch_execute("begin").unwrap();
        root.batch_execute("update orders set v = 7 where id = 1").unwrap();
        let (mut asker, _) = session(cluster, "asker");
        let keep = Arc::new(AtomicBool::new(true));
        let (mut pids, mut threads) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let (mut client, pid) = session(cluster, "waiter");
            pids.push(i64::from(pid));
            let keep = keep.clone();
            threads.push(std::thread::spawn(move || {
                client.batch_execute("begin").unwrap();
                client.batch_execute(UPDATE).unwrap();
                if !keep.load(Ordering::Relaxed) {
                    client.batch_execute("commit").unwrap();
                }
                client
            }));
            let waits = "select cardinality(pg_blocking_pids($1)) > 0";
            eventually("it waits", || asker.query_one(waits, &[&pid]).unwrap().get::<_, bool>(0));
        }
        Crowd { root, root_pid: root_pid.into(), pids, keep, threads }
    }

    /// The root commits; one of the waiting sessions has the row now, and blocks the others. Usually it is the
    /// first.
    fn next(&mut self) -> (i64, Client) {
        self.root.batch_execute("commit").unwrap();
        let mut next = None;
        eventually("one gets the row", || {
            next = self.threads.iter().position(JoinHandle::is_finished);
            next.is_some()
        });
        let next = next.unwrap();
        (self.pids.remove(next), self.threads.remove(next).join().unwrap())
    }

    /// All end; `first` has the row.
    fn end(self, first: Client) {
        self.keep.store(false, Ordering::Relaxed);
        drop((self.root, first));
        for thread in self.threads {
            drop(thread.join().unwrap());
        }
    }
}

#[test]
fn each_second_names_root_and_waiters_as_the_servers_views_do() {
    let cluster = server();
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    let begun_us = now_us();
    let mut crowd = Crowd::start(&cluster);
    let (root_pid, pids) = (crowd.root_pid, crowd.pids.clone());
    let known_us = now_us();
    let more = ["--interval", "500ms", "--detail", "1s"];
    let recorder = Recorder::start(&cluster, &directory, &more);
    let before = Held::record(&cluster, &recorder);
    let (next_pid, first) = crowd.next();
    let after = Held::record(&cluster, &recorder);
    recorder.end(Signal::INT);
    let rows = history(&directory);

    let blockers = |held: &Held, pid: i64| held.seen.get(&pid).unwrap().2.clone();
    let of = |pid: i64| BTreeSet::from([pid as u64]);
    before.compare(&rows);
    assert_eq!(blockers(&before, pids[0]), of(root_pid));
    assert_eq!(before.seen.len(), 4, "{:#?}", before.seen);
    after.compare(&rows);
    assert!(!after.seen.contains_key(&root_pid), "an idle session has no row: {:#?}", after.seen);
    let behind = pids.iter().filter(|pid| **pid != next_pid).map(|pid| blockers(&after, *pid));
    assert!(behind.into_iter().any(|blockers| blockers == of(next_pid)), "{:#?}", after.seen);

    // What each session waits for, since when, and with which statement.
    let recording = Recording::open(&directory, None).unwrap();
    let of_root = |row: &&SessionHistoryRow| {
        row.pid == root_pid && (before.time_us[0]..before.time_us[1]).contains(&row.time_us)
    };
    let last = rows.iter().rfind(of_root).unwrap();
    let same = |row: &&SessionHistoryRow| row.frame == last.frame;
    let waiter = rows.iter().filter(same).find(|row| row.pid == pids[0]).unwrap();
    assert_eq!(&*last.state, "idle in transaction");
    assert_eq!(
        (waiter.lock_type.as_deref(), waiter.lock_mode.as_deref()),
        (Some("transactionid"), Some("ShareLock"))
    );
    assert_eq!((&*waiter.phase, &*waiter.activity), ("simple query", "Lock:transactionid"));
    // It started between the crowd's first statement and the recording, and a session is read at most two
    // intervals before or after the end of its interval.
    let apart_ns = |instant_us: i64| (waiter.time_us - instant_us) as u64 * 1000;
    let (fewest, most) = (apart_ns(known_us), apart_ns(begun_us));
    let slack = 2 * waiter.interval_ns;
    for waited in [waiter.lock_wait_ns.unwrap(), waiter.since_ns] {
        assert!(
            (fewest.saturating_sub(slack)..most + slack).contains(&waited),
            "{fewest} {most} {waiter:?}"
        );
    }
    // Both last until the same instant; the length of a tick has been measured again between them.
    let of_waiter = rows.iter().filter(|row| row.pid == waiter.pid && row.frame < waiter.frame);
    let earlier = of_waiter.max_by_key(|row| row.frame).unwrap();
    assert!(
        waiter.busy_ns.abs_diff(waiter.since_ns - earlier.since_ns) < 100_000,
        "it waited all the time: {earlier:?} {waiter:?}"
    );
    let behind = rows.iter().filter(same).find(|row| row.pid == pids[1]).unwrap();
    assert_eq!(behind.lock.as_deref(), Some("row (0,1) of relation orders"), "{behind:?}");
    let texts = recording.statement_texts(Range::ALL).unwrap();
    let text = |row: &SessionHistoryRow| texts[&row.statement().unwrap()].text.to_string();
    // The root's statement had ended before the recording started.
    assert!(text(last).contains("update orders set v = $1"), "{}", text(last));
    assert!(text(waiter).contains("v + $1"), "{}", text(waiter));
    crowd.end(first);
    the_report_names_the_root(&directory, root_pid, begun_us, &before);
    any_second_can_be_opened(&directory, &rows);
}

/// `tally top --replay` has the sessions of an interval.
fn any_second_can_be_opened(directory: &Path, rows: &[SessionHistoryRow]) {
    let replay = |more: &[&str]| {
        let mut command = support::tally();
        command.args(["top", "--replay"]).arg(directory).args(["--since", "-3s", "--count", "1"]);
        output(command.args(more))
    };
    let interval: Value = serde_json::from_str(&replay(&["--json"])).unwrap();
    let time_us = (interval["time"].as_f64().unwrap() * 1e6).round() as i64;
    let same = |row: &&SessionHistoryRow| row.time_us.abs_diff(time_us) < 1_000;
    let recorded: BTreeMap<i64, String> =
        rows.iter().filter(same).map(|row| (row.pid, row.activity.to_string())).collect();
    let sessions = interval["sessions"].as_array().unwrap().iter();
    let shown: BTreeMap<i64, String> = sessions
        .map(|session| {
            (session["pid"].as_i64().unwrap(), session["activity"].as_str().unwrap().to_string())
        })
        .collect();
    assert!(shown.values().any(|activity| activity.starts_with("Lock:")), "{interval:#}");
    assert_eq!(shown, recorded);
    let text = replay(&["--view", "sessions"]);
    assert!(text.contains("waiter") && text.contains("sessions that were not idle"), "{text}");
    // The page of one of them, and the tree, which a recording shows in no other way.
    let tally = env!("CARGO_BIN_EXE_tally");
    let from = format!("--replay {} --from -3s --speed 0.125 --view locks", directory.display());
    let tmux = Tmux::run(160, 40, &format!("{tally} top {from}"));
    tmux.until_seen("BEHIND");
    tmux.press(&["p", "Enter"]);
    let seen = tmux.until_seen("A recording does not contain the accounts of individual");
    for part in ["client local", "transaction open for", "update orders set v", "Blocks"] {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    tmux.press(&["Escape"]);
    tmux.until_seen("BEHIND");
    tmux.press(&["Down", "Enter"]);
    let seen = tmux.until_seen("Blocked by");
    assert!(seen.contains("Waits for ") && seen.contains(", postgres@postgres), "), "{seen}");
}

/// A report on it starts with the session that blocked the most, as `tally doctor` does live.
fn the_report_names_the_root(directory: &Path, root_pid: i64, begun_us: i64, held: &Held) {
    let until = jiff::Timestamp::from_microsecond(held.time_us[1]).unwrap().to_string();
    let mut report = support::tally();
    let text = output(report.args(["report", "--json", "--until", &until]).arg(directory));
    let report: Value = serde_json::from_str(&text).unwrap();
    let first = &report["findings"][0];
    let name = format!("3 sessions wait for session {root_pid} (forgetful, postgres@postgres), idle in transaction for");
    assert!(first["text"].as_str().unwrap().starts_with(&name), "{first:#}");
    let details = first["details"].to_string();
    assert!(details.contains(" blocked up to 3 sessions, "), "{first:#}");
    assert!(details.contains("Its last statement: update orders set v = $1"), "{first:#}");
    let table = |id: &str| {
        let tables = report["tables"].as_array().unwrap();
        let table = tables.iter().find(|table| table["id"] == id).unwrap().clone();
        let at = |key: &str| {
            let columns = table["columns"].as_array().unwrap();
            columns.iter().position(|column| column["key"] == key).unwrap()
        };
        let cell = |key: &str| table["rows"][0][at(key)].clone();
        (
            cell("application"),
            cell(match id {
                "blockers" => "waiting_seconds",
                "idle_in_transaction" => "seconds",
                _ => "busy_seconds",
            }),
        )
    };
    // Three sessions waited for as long as it was recorded, and at least while all of them knew their blockers.
    // The time for which a session has been idle in a transaction is counted from before the recording.
    let recording = Recording::open(directory, None).unwrap();
    let length = |from_us: i64| -> f64 {
        let rows = recording.frame_rows(Range { from_us, to_us: held.time_us[1] }).unwrap();
        rows.iter().map(|row| row.interval_ns as f64 * 1e-9).sum()
    };
    let (whole, shortest) = (length(i64::MIN), length(held.time_us[0]));
    let all = recording.frame_rows(Range::ALL).unwrap();
    let longest = all.iter().map(|row| row.interval_ns as f64 * 1e-9).fold(0.0, f64::max);
    let since_begun = (held.time_us[1] - begun_us) as f64 * 1e-6;
    for (id, sessions, name, whole) in [
        ("blockers", 3.0, "forgetful", whole),
        ("active_sessions", 3.0, "waiter", whole),
        ("idle_in_transaction", 1.0, "forgetful", since_begun),
    ] {
        let (application, seconds) = table(id);
        assert_eq!(application, name, "{id}");
        let seconds = seconds.as_f64().unwrap();
        let expected = sessions * (shortest - longest)..=sessions * (whole + longest);
        assert!(expected.contains(&seconds), "{id}: {seconds} {expected:?}");
    }
}

#[test]
fn a_killed_recorder_leaves_every_second_once() {
    let cluster = server();
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    let mut crowd = Crowd::start(&cluster);
    let (root_pid, pids) = (crowd.root_pid, crowd.pids.clone());
    let more = ["--interval", "200ms"];
    let recorder = Recorder::start(&cluster, &directory, &more);
    recorder.wait_for(12);
    recorder.end(Signal::KILL);
    let killed = history(&directory);
    // The next recorder moves the contents of the journal to files.
    let recorder = Recorder::start(&cluster, &directory, &more);
    recorder.wait_for(5);
    recorder.end(Signal::INT);
    let rows = history(&directory);
    assert_eq!(
        rows.get(..killed.len()).unwrap().iter().map(key).collect::<Vec<_>>(),
        killed.iter().map(key).collect::<Vec<_>>()
    );
    let frames = Recording::open(&directory, None).unwrap().frame_rows(Range::ALL).unwrap();
    assert!(frames.len() >= 17);
    for frame in &frames {
        for pid in pids.iter().chain([&root_pid]) {
            let same = rows.iter().filter(|row| row.frame == frame.frame && row.pid == *pid);
            assert_eq!(same.count(), 1, "{pid} in {frame:?}");
        }
    }
    let (_, first) = crowd.next();
    crowd.end(first);
}

/// The contents of a row; times of day are in milliseconds in files.
fn key(row: &SessionHistoryRow) -> SessionHistoryRow {
    SessionHistoryRow { time_us: row.time_us / 1000 * 1000, ..row.clone() }
}

#[test]
fn the_times_of_the_sessions_add_up_to_the_ledger() {
    let cluster = server();
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    let recorder = Recorder::start(&cluster, &directory, &["--interval", "500ms"]);
    recorder.wait_for(1);
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let (mut client, pid) = session(&cluster, "worker");
            let stop = Arc::new(AtomicBool::new(false));
            let stopped = stop.clone();
            let thread = std::thread::spawn(move || {
                while !stopped.load(Ordering::Relaxed) {
                    client.query("select count(*) from pg_class", &[]).unwrap();
                    std::thread::sleep(Duration::from_millis(3));
                }
                client
            });
            (pid, stop, thread)
        })
        .collect();
    // The completed activity of a session is in no row.
    let is_whole = |row: &recording::FrameRow| row.ended_sessions == 0 && row.busy_ns > 0;
    eventually("intervals with work are recorded", || {
        let recording = Recording::open(&directory, None).unwrap();
        let rows = recording.frame_rows(Range::ALL).unwrap_or_default();
        rows.iter().filter(|row| is_whole(row)).count() >= 6
    });
    recorder.end(Signal::INT);
    let clients: Vec<Client> = workers
        .into_iter()
        .map(|(_, stop, thread)| {
            stop.store(true, Ordering::Relaxed);
            thread.join().unwrap()
        })
        .collect();
    let rows = history(&directory);
    let recording = Recording::open(&directory, None).unwrap();
    for frame in recording.frame_rows(Range::ALL).unwrap().into_iter().filter(is_whole) {
        let of: Vec<_> = rows.iter().filter(|row| row.frame == frame.frame).collect();
        let busy: u64 = of.iter().map(|row| row.busy_ns).sum();
        assert!(of
            .iter()
            .all(|row| row.cpu_ns <= row.busy_ns && row.interval_ns == frame.interval_ns));
        // A session that was busy for less than a thousandth has no row.
        let sessions = frame.sessions_active + frame.sessions_idle + frame.sessions_background;
        let left_out = u64::from(sessions) * frame.interval_ns / 1000;
        let missing = frame.busy_ns as i64 - busy as i64;
        assert!((-100..=left_out as i64).contains(&missing), "{missing} ns of {frame:?}: {of:#?}");
    }
    drop(clients);
}

#[test]
fn sessions_can_be_left_out() {
    let cluster = server();
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("recording");
    let recorder = Recorder::start(&cluster, &directory, &["--interval", "200ms", "--no-sessions"]);
    recorder.wait_for(3);
    recorder.end(Signal::INT);
    assert_eq!(history(&directory), []);
    assert!(!directory.join("session_history").exists());
}
