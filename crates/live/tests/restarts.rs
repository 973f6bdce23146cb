// SPDX-License-Identifier: PostgreSQL
//! Histories of a server that stops, crashes and starts again while it is followed, with a clock that the test
//! advances. Every execution counts once, whichever part of the history the reader sees.
#![allow(missing_docs)]

#[path = "../../segment/tests/maker/mod.rs"]
mod maker;

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use live::follower::{Figures, FollowOptions, Follower, Step};
use maker::{Counted, Maker, Shape};
use segment::layout::header;
use segment::{StatementsReading, ToSegmentPath};

const SHAPE: Shape = Shape { slots: 2, groups: 1, stats_per_book: 16 };
const SECOND: u64 = 1_000_000_000;
/// Start of a history, by the clock and in ns since 1970.
const BEGIN: u64 = 100 * SECOND;
const EPOCH: u64 = 1_700_000_000 * SECOND;
const STATEMENTS: usize = 3;
/// A PID that no process has.
const NOBODY: u32 = 1 << 30;

/// Pseudo-random numbers, reproducible from their seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// How a run of the server ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stop {
    /// The statements are saved for the next run.
    Saved,
    /// The statements are not saved.
    Unsaved,
    /// The server is killed, and the next run uses the same segment.
    Killed,
}

struct Server {
    path: PathBuf,
    now: u64,
    /// The segment, if there is one.
    maker: Option<Maker>,
    /// The segment of the previous run, which readers may still have open. Time also passes there.
    removed: Option<Maker>,
    runs: bool,
    /// How far its counter is behind `now`.
    behind: u64,
    starts: u64,
    /// When each segment was created, and when its server ended for good.
    runs_of: Vec<(u64, Option<u64>)>,
    /// Calls of each statement in the segment, and the segment since which they count.
    calls: [u64; STATEMENTS],
    since: u64,
    /// The same in the file of a clean shutdown.
    saved: Option<([u64; STATEMENTS], u64)>,
    /// All executions so far.
    executed: [u64; STATEMENTS],
}

impl Server {
    fn new(folder: &Path, loaded: u64) -> Server {
        let saved = (loaded > 0).then_some(([loaded; STATEMENTS], EPOCH));
        let path = folder.join("pg_tally.1.2");
        let mut server = Server {
            path,
            now: BEGIN,
            maker: None,
            removed: None,
            runs: false,
            behind: 0,
            starts: 0,
            runs_of: Vec::new(),
            calls: [0; STATEMENTS],
            since: 0,
            saved,
            executed: [0; STATEMENTS],
        };
        server.start();
        server
    }

    /// The PID of an existing process, a different one each time.
    fn pid(&self) -> u32 {
        match self.starts % 2 {
            0 => std::process::id(),
            _ => std::os::unix::process::parent_id(),
        }
    }

    fn start(&mut self) {
        self.starts += 1;
        self.runs = true;
        if self.maker.is_none() {
            // No two segments are created at the same instant.
            self.now += 1000;
            let created = EPOCH + self.now;
            (self.calls, self.since) = self.saved.take().unwrap_or(([0; STATEMENTS], created));
            let maker = Maker::with_statements(&self.path, SHAPE, 2);
            for (word, value) in [
                (header::CLOCK_TICK0, self.now),
                (header::CLOCK_NS0, self.now),
                (header::RESET_TICK, self.now),
                (header::CREATED_REALTIME_NS, created),
                (header::STATEMENTS_SINCE_NS, self.since),
            ] {
                maker.u64(word as u64, value);
            }
            maker.u32(header::CLOCK_KIND as u64, 255);
            self.maker = Some(maker);
            self.runs_of.push((self.now, None));
            (0..STATEMENTS).for_each(|id| self.write(id));
        }
        self.pass(0);
        let maker = self.maker.as_ref().expect("made");
        maker.u32(header::SERVER_PID as u64, self.pid());
    }

    fn pass(&mut self, ticks: u64) {
        self.now += ticks;
        for maker in self.maker.iter().chain(&self.removed) {
            maker.u64(header::VIRTUAL_TICK as u64, self.now - self.behind);
        }
    }

    /// The CPU counter restarts, and a writer notices: a reset, with a new origin of the clock.
    fn counter_begins_anew(&mut self) {
        const ANEW: u64 = SECOND;
        self.behind = self.now - ANEW;
        self.pass(0);
        let maker = self.maker.as_ref().expect("a server that runs");
        for (word, value) in
            [(header::RESET_TICK, ANEW), (header::CLOCK_TICK0, ANEW), (header::CLOCK_NS0, self.now)]
        {
            maker.u64(word as u64, value);
        }
        let word = header::LEVEL_WORD as u64;
        maker.u32(word, maker.get_u32(word) + 0x1_0000);
    }

    fn write(&self, id: usize) {
        let Some(maker) = self.maker.as_ref().filter(|_| self.calls[id] > 0) else { return };
        let first_us = (BEGIN / 1000) as i64;
        // Some of each length, because the maker's buckets are bytes.
        let times: Vec<u64> = (0..self.calls[id]).map(|n| 8 << (n % 32)).collect();
        let counted = Counted { seen: (first_us, first_us), ..Counted::new(1 + id as u64, &times) };
        maker.enter(&counted, maker.get_u64(header::CLOCK_TICK0 as u64));
    }

    fn execute(&mut self, id: usize, calls: u64) {
        self.calls[id] += calls;
        self.executed[id] += calls;
        self.write(id);
    }

    /// `unread`: the reader can no longer read the segment, as after a broken connection.
    fn stop(&mut self, how: Stop, unread: bool) {
        self.runs = false;
        let maker = self.maker.as_ref().expect("a server that runs");
        maker.u32(header::SERVER_PID as u64, NOBODY);
        if how == Stop::Killed {
            return;
        }
        // As the postmaster does: first in the file that readers have open.
        maker.u64(header::ENDED_TICK as u64, self.now);
        std::fs::remove_file(&self.path).unwrap();
        self.saved = (how == Stop::Saved).then_some((self.calls, self.since));
        if unread {
            maker.file.set_len(100).unwrap();
        }
        let removed = self.maker.take();
        self.removed = removed.filter(|_| !unread);
        if let Some(run) = self.runs_of.last_mut() {
            run.1 = Some(self.now);
        }
    }
}

/// A reader, and its readings.
struct Reader {
    follower: Follower,
    recorded: [u64; STATEMENTS],
    attached: bool,
    /// Beginning and end of each frame.
    frames: Vec<(u64, u64)>,
    /// Whether the next frame must begin with its run.
    fresh: bool,
    /// The steps that the follower returned, for failure messages.
    steps: Vec<String>,
}

impl Reader {
    fn new(server: &Server) -> Reader {
        let wanted = FollowOptions {
            figures: Figures::Frames,
            statements: true,
            ..FollowOptions::default()
        };
        let follower = Follower::new(server.path.to_segment_path(), wanted);
        Reader {
            follower,
            recorded: [0; STATEMENTS],
            attached: false,
            frames: Vec::new(),
            fresh: false,
            steps: Vec::new(),
        }
    }

    /// Frames are consecutive, each within a run, and the first frame of a run that was found later begins with the
    /// run.
    fn frame(&mut self, begin: u64, end: u64, server: &Server) {
        let last = self.frames.last().map_or(0, |last| last.1);
        assert!(last <= begin && begin <= end, "{begin} {end}: {:?}", self.frames);
        let run = server.runs_of.iter().rev().find(|run| run.0 <= begin);
        let (start, stop) = run.expect("no frame without a run");
        assert!(stop.is_none_or(|stop| end <= stop), "{begin} {end}: {:?}", server.runs_of);
        assert!(
            !std::mem::take(&mut self.fresh) || begin == *start,
            "{begin}: {:?}",
            server.runs_of
        );
        self.frames.push((begin, end));
    }

    fn look(&mut self, details: bool, server: &Server) {
        for step in self.follower.step(details) {
            match step {
                Step::Attached { fresh } => {
                    self.steps.push(format!("attached, fresh: {fresh}"));
                    (self.attached, self.fresh) = (true, fresh);
                }
                Step::Ended(why) => self.steps.push(why.to_string()),
                Step::Absent(why) => self.steps.push(why.to_string()),
                Step::Frame(taken) => {
                    let end = taken.frame.monotonic_ns;
                    if taken.reset {
                        self.steps.push("reset".into());
                    }
                    self.frame(end - taken.frame.ticks, end, server);
                    let found = taken.details.and_then(|details| details.statements);
                    let Some((before, now)) = found else { continue };
                    let before = before.expect("an interval begins with a reading");
                    for record in StatementsReading::records(&before, &now) {
                        self.recorded[record.key.id as usize - 1] += record.sums.exec.count;
                    }
                }
                _ => {}
            }
        }
    }
}

/// Runs a history; returns whether all executions had to be recorded.
fn history(seed: u64) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let mut dice = Dice(seed);
    let mut server = Server::new(folder.path(), dice.below(2) * 1000);
    server.pass(SECOND);
    let mut reader = Reader::new(&server);
    reader.look(true, &server);
    assert!(reader.attached, "seed {seed}");
    let mut whole = true;
    for _ in 0..60 {
        match (dice.below(8), server.runs) {
            (0..4, true) => {
                server.execute(dice.below(STATEMENTS as u64) as usize, 1 + dice.below(20))
            }
            (4, true) => {
                let how = [Stop::Saved, Stop::Saved, Stop::Killed, Stop::Unsaved];
                let how = how[dice.below(4) as usize];
                // Executions that only an unread segment had are lost unless they were handed on.
                whole &= how != Stop::Unsaved;
                server.stop(how, dice.below(2) == 0);
            }
            (_, false) if dice.below(2) == 0 => server.start(),
            (5, _) => server.pass(1 + dice.below(3 * SECOND)),
            _ => reader.look(dice.below(2) == 0, &server),
        }
        let (recorded, executed) = (reader.recorded, server.executed);
        let within =
            recorded.iter().zip(executed).all(|(recorded, executed)| *recorded <= executed);
        assert!(within, "seed {seed}: {recorded:?} of {executed:?}");
    }
    if !server.runs {
        server.start();
    }
    // The first look finds the end of the previous run.
    (0..3).for_each(|_| reader.look(true, &server));
    if whole {
        assert_eq!(reader.recorded, server.executed, "seed {seed}: {:?}", reader.steps);
    }
    whole
}

/// The reported case: the server stops between two looks, and the next one starts soon.
#[test]
fn an_interval_ends_where_its_run_ended_and_the_next_one_begins_with_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::new(folder.path(), 0);
    let mut reader = Reader::new(&server);
    reader.look(true, &server);
    let begin = server.now;
    server.pass(SECOND);
    server.stop(Stop::Saved, false);
    let stop = server.now;
    server.pass(SECOND / 2);
    server.start();
    let start = server.now;
    server.pass(3 * SECOND);
    (0..2).for_each(|_| reader.look(true, &server));
    assert_eq!(reader.frames, [(begin, stop), (start, server.now)]);
    // A killed server leaves no end; the run ends at the reader's last look.
    server.stop(Stop::Killed, false);
    server.pass(SECOND);
    (0..2).for_each(|_| reader.look(true, &server));
    assert_eq!(reader.frames[2..], [(server.now - SECOND, server.now)]);
}

/// No run is found twice, at whichever reading of the reader's last look the next server takes over the segment.
#[test]
fn a_server_that_takes_the_segment_over_while_the_reader_looks_is_one_run() {
    let mut looks = 0;
    for at in 0.. {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Server::new(folder.path(), 0);
        let mut reader = Reader::new(&server);
        reader.look(true, &server);
        server.pass(SECOND);
        server.stop(Stop::Killed, false);
        server.starts += 1;
        let (pid, file) = (server.pid(), std::fs::File::options().write(true).open(&server.path));
        let (file, mut readings) = (file.unwrap(), 0);
        let begun = Arc::new(AtomicBool::new(false));
        let starts = begun.clone();
        let segment = reader.follower.segment().unwrap();
        segment.set_before_reading(Some(Box::new(move |_, _| {
            if readings == at {
                file.write_all_at(&pid.to_ne_bytes(), header::SERVER_PID as u64).unwrap();
                starts.store(true, Ordering::Relaxed);
            }
            readings += 1;
        })));
        (0..3).for_each(|_| reader.look(true, &server));
        let found = reader.steps.iter().filter(|step| step.starts_with("attached")).count();
        if !begun.load(Ordering::Relaxed) {
            break;
        }
        assert_eq!(found, 2, "at reading {at}: {:?}", reader.steps);
        looks += 1;
    }
    assert!(looks > 5, "{looks} readings");
}

/// Hibernation, or a restored virtual machine. The recorder writes a gap before an interval with a reset.
#[test]
fn an_interval_in_which_the_counter_begins_anew_begins_there_and_tells_of_a_reset() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::new(folder.path(), 0);
    server.pass(8 * SECOND);
    let mut reader = Reader::new(&server);
    reader.look(true, &server);
    let begin = server.now;
    server.pass(SECOND);
    reader.look(true, &server);
    let before = reader.steps.len();
    server.pass(SECOND);
    server.counter_begins_anew();
    let anew = server.now;
    server.pass(2 * SECOND);
    reader.look(true, &server);
    server.pass(SECOND);
    reader.look(true, &server);
    let end = server.now;
    let frames = [(begin, begin + SECOND), (anew, anew + 2 * SECOND), (end - SECOND, end)];
    assert_eq!(reader.frames, frames);
    assert_eq!(reader.steps[before..], ["reset"]);
}

#[test]
fn over_any_restarts_each_execution_is_recorded_once() {
    let whole = (0..400).filter(|seed| history(*seed)).count();
    assert!(whole > 50, "{whole} histories without a loss");
}

/// The reported case: 1,000 executions, 100 more while recording, a restart, 10 more.
#[test]
fn what_a_clean_stop_has_saved_is_not_counted_again() {
    for unread in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let mut server = Server::new(folder.path(), 0);
        server.execute(0, 1000);
        let mut reader = Reader::new(&server);
        reader.look(true, &server);
        server.executed = [0; STATEMENTS];
        server.execute(0, 100);
        if !unread {
            reader.look(true, &server);
            assert_eq!(reader.recorded, [100, 0, 0]);
        }
        for _ in 0..20 {
            server.stop(Stop::Saved, unread);
            server.start();
        }
        server.execute(0, 10);
        (0..3).for_each(|_| reader.look(true, &server));
        assert_eq!(reader.recorded, [110, 0, 0], "unread: {unread}: {:?}", reader.steps);
    }
}
