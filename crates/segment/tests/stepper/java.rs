// SPDX-License-Identifier: PostgreSQL
//! The Java agent's writers, which a debugger stops at each line. At each stop, the file is read as it is, and as it
//! would be after a kill: the memory is the same, but the owner's process does not exist.

use std::os::unix::fs::FileExt;
use std::path::Path;

use segment::book::{Identity, Life};
use segment::layout::{entry, header, trace};
use segment::{Segment, Snapshot, TraceKind, TraceReader, TraceRequest, TraceSwitch};

use super::process::{java, Stepper, Stop};
use super::scenario_segment::{ScenarioSegment, Shared};
use super::witness::{word, Witness};

/// Points at which another process sees a change.
const TRANSITIONS: &str = r"(Merger\.(merge|mergeHead|commit|free)|Segment\.(claim|note)|Book\.(begin|publish)|CallRing\.(call|waited|close|take)|Directory\.publish):";
const STRIDES: [u64; 4] = [2, 5, 17, 61];
/// A PID that no process has.
const NOBODY: u32 = 0x3fff_fffe;
const FIGURES: [&str; 17] = [
    "execute",
    "first",
    "fetch",
    "wait",
    "decode",
    "rows",
    "messages",
    "trips",
    "failed",
    "batch",
    "repeated",
    "sent",
    "received",
    "prepare",
    "close",
    "unfetched",
    "savepoint",
];

fn is_of_a_thread(identity: &Identity) -> bool {
    identity.kind == "thread"
        && identity.database.is_empty()
        && ["first thread", "another thread"].contains(&&*identity.application)
}

/// One of the names that the scenarios use.
fn is_a_name(name: &str) -> bool {
    let is_method = |name: &str| ["Work.outer()", "Work.inner(int)"].contains(&name);
    let is_hash =
        |text: &str| text.len() == 16 && text.chars().all(|letter| letter.is_ascii_hexdigit());
    match name.split("::").collect::<Vec<_>>()[..] {
        ["other", "overflow"] | ["idle", "application"] | ["off", "uninstrumented"] => true,
        ["function", method, figure, "org.example"] => {
            is_method(method) && ["inclusive", "exclusive", "thrown"].contains(&figure)
        }
        ["org.example", method] => is_method(method),
        // The reader has replaced the hashes with names.
        ["edge", "org.example", caller, "org.example", callee] => {
            (caller, callee) == ("Work.outer()", "Work.inner(int)")
        }
        ["call", figure, id] => FIGURES.contains(&figure) && (is_hash(id) || id == "others"),
        _ => false,
    }
}

fn text_of(n: usize) -> String {
    format!("select {}", n.to_string().repeat(20 * n))
}

/// A statistic in all books.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Figure {
    count: u64,
    total: u64,
    in_histogram: u64,
}

fn figure(snapshot: &Snapshot, begins: &str, ends: &str) -> Figure {
    let mut figure = Figure::default();
    for book in snapshot.books.iter().chain(&snapshot.groups) {
        for head in &book.heads {
            let name = snapshot.directory.get(head.stat).map_or("", |stat| &*stat.name);
            if name.starts_with(begins) && name.ends_with(ends) {
                figure.count += head.count;
                figure.total += head.total;
                figure.in_histogram += book.histogram(head).count();
            }
        }
    }
    figure
}

/// Checks that the counts of an update are complete; returns the number of calls and executions counted.
fn counted(snapshot: &Snapshot, texts: &[(String, usize)]) -> Result<u64, String> {
    let of = |begins: &str, ends: &str| figure(snapshot, begins, ends);
    let mut sum = 0;
    for method in ["Work.outer()", "Work.inner(int)"] {
        let inclusive = of(&format!("function::{method}::inclusive"), "");
        let exclusive = of(&format!("function::{method}::exclusive"), "");
        let edge = of("edge::", "");
        let whole = inclusive.count == exclusive.count
            && inclusive.in_histogram == inclusive.count
            && (method == "Work.outer()"
                || (exclusive.total, edge.total, edge.count)
                    == (inclusive.total, inclusive.total, inclusive.count));
        if !whole {
            return Err(format!("{method}: {inclusive:?}, {exclusive:?}, {edge:?}"));
        }
        sum += inclusive.count;
    }
    for (id, n) in texts {
        let n = *n as u64;
        let of = |figure: &str| of(&format!("call::{figure}::"), id);
        let execute = of("execute");
        let per_execution = [
            ("rows", n),
            ("messages", n),
            ("trips", 1),
            ("sent", 10 * n * n),
            ("received", 100 * n),
        ];
        for (name, each) in per_execution {
            let found = of(name);
            if found.count != execute.count || found.total != each * execute.count {
                return Err(format!("{name} of statement {n}: {found:?}, {execute:?}"));
            }
        }
        let counts = [of("first").count, of("wait").count, execute.in_histogram];
        if counts != [execute.count; 3] {
            return Err(format!("statement {n}: {execute:?}, {counts:?}"));
        }
        sum += execute.count;
    }
    Ok(sum)
}

/// A run of a scenario that is being read.
struct Reading {
    witness: Witness,
    ring: Option<(TraceSwitch, TraceReader)>,
    calls: i32,
    waits: i32,
}

impl Reading {
    fn new(scenario: &str, segment: &Segment) -> Reading {
        let ring = (scenario == "statements").then(|| {
            let mut switch = TraceSwitch::open(segment).unwrap();
            let reader = switch.arm(&TraceRequest::default(), 1).unwrap().pop().unwrap();
            // The request does not expire, however long the writer is stopped.
            let until = word(segment.path(), header::TRACES as u64) + trace::UNTIL as u64;
            let file = std::fs::File::options().write(true).open(segment.path()).unwrap();
            file.write_all_at(&i64::MAX.to_ne_bytes(), until).unwrap();
            (switch, reader)
        });
        Reading { witness: Witness::of_threads(is_of_a_thread), ring, calls: 0, waits: 0 }
    }

    /// Read everything that a reader can. `stopped`: the writer does not move.
    fn look(
        &mut self,
        segment: &mut Segment,
        counts: (u64, u64),
        stopped: bool,
    ) -> Result<(), String> {
        self.witness.look(segment, 0, stopped)?;
        check(segment, counts)?;
        self.records(segment, counts)
    }

    /// Checks that each record occurs once, in order, with all fields.
    fn records(&mut self, segment: &Segment, (done, begun): (u64, u64)) -> Result<(), String> {
        let Some((_, ring)) = &mut self.ring else { return Ok(()) };
        let (calls, waits) = (&mut self.calls, &mut self.waits);
        let mut wrong = None;
        let lost = ring.poll(segment, |lost, record| {
            let (expected, is_whole) = match record.kind {
                TraceKind::CallWait { pid } => {
                    *waits += 1;
                    (pid, *waits == *calls + 1 && pid == 100 + *waits)
                }
                TraceKind::Call {
                    fetches, failed, statistic, pid, first, messages, rows, ..
                } => {
                    *calls += 1;
                    let n = *calls as u32;
                    let fields = (fetches, failed, first, messages, rows, statistic.is_some());
                    (pid, fields == (false, false, Some(1), n, n, true) && pid == 100 + *calls)
                }
                TraceKind::Begin { .. } => (0, *waits == 0),
                _ => (0, false),
            };
            if !is_whole || lost > 0 || record.tick == 0 {
                wrong = Some(format!("after {lost} lost ones, of {expected}: {record:?}"));
            }
        });
        let lost = lost.map_err(|error| error.to_string())?;
        // A record is written before the statistics.
        if wrong.is_some() || lost > 0 || !(done..=begun).contains(&(*calls as u64)) {
            return Err(format!("{lost} lost, {calls} of {done} to {begun} calls, {wrong:?}"));
        }
        Ok(())
    }
}

/// Checks names, texts, events and probes, and the counts, unless they were read during an update.
fn check(segment: &mut Segment, (done, begun): (u64, u64)) -> Result<(), String> {
    let snapshot = segment.snapshot(None).map_err(|error| error.to_string())?;
    for book in snapshot.books.iter().chain(&snapshot.groups) {
        for head in &book.heads {
            let name = snapshot.directory.get(head.stat).map_or("", |stat| &*stat.name);
            if !is_a_name(name) {
                return Err(format!("a foreign or half name: {name:?}"));
            }
        }
    }
    let mut texts = Vec::new();
    for (id, text) in segment.call_texts().map_err(|error| error.to_string())? {
        // The second piece of the third text has three letters.
        let n = (1..=3).find(|n| text == text_of(*n) || (*n == 3 && text == text_of(3)[..64]));
        texts.push((id, n.ok_or_else(|| format!("a foreign or half text: {text:?}"))?));
    }
    for event in segment.events(0).map_err(|error| error.to_string())? {
        let n = event.number;
        if event.text != format!("event {n} and as much again, event {n}") {
            return Err(format!("event {n} has a foreign or half text: {:?}", event.text));
        }
    }
    for probe in segment.probes().map_err(|error| error.to_string())? {
        let found = (&*probe.name, &*probe.reason);
        if ![("probe 1", ""), ("probe 2", "left out because of 2")].contains(&found) {
            return Err(format!("a probe has foreign or half texts: {found:?}"));
        }
    }
    let in_update = |book: &segment::Book| book.torn || book.life == Life::Dead;
    if !snapshot.books.iter().any(in_update) {
        let counted = counted(&snapshot, &texts)?;
        let events = snapshot.event_count;
        if !(done..=begun).contains(&(counted + events)) {
            return Err(format!("{counted} calls, {events} events of {done} to {begun}"));
        }
    }
    Ok(())
}

/// Pretend that the segment's owner does not exist while `read` reads it.
fn without_owner<T>(path: &Path, read: impl FnOnce() -> T) -> T {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let entries = word(path, header::ENTRIES as u64);
    let slots = [0, 1].map(|slot| entries + slot * entry::SIZE as u64 + entry::PID as u64);
    let pids: Vec<(u64, u32)> = [header::SERVER_PID as u64, header::MERGE_LOCK as u64]
        .into_iter()
        .chain(slots)
        .map(|at| (at, word(path, at) as u32))
        .filter(|(_, pid)| *pid as i32 > 0)
        .collect();
    let write = |at, pid: u32| file.write_all_at(&pid.to_ne_bytes(), at).unwrap();
    pids.iter().for_each(|(at, _)| write(*at, NOBODY));
    let found = read();
    pids.iter().for_each(|(at, pid)| write(*at, *pid));
    found
}

fn at(scenario: &str, stop: &Stop) -> String {
    format!("{scenario}: stop {} ({})", stop.number, stop.name)
}

/// Reads at every stop, while the writer is alive and after its death.
fn at_every_stop(scenario: &str) {
    let Some(mut stepper) = Stepper::java(".*") else { return };
    let place = ScenarioSegment::new();
    let mut stop = stepper.start(scenario, place.clear());
    let mut segment = place.open();
    let mut reading = Reading::new(scenario, &segment);
    loop {
        let fails = |error: String| -> ! { panic!("{}: {error}", at(scenario, &stop)) };
        let counts = (stop.done, stop.begun);
        reading.look(&mut segment, counts, true).unwrap_or_else(|error| fails(error));
        without_owner(&place.path, || {
            let mut segment = place.open();
            reading.witness.after_death().look(&mut segment, 0, true)?;
            check(&mut segment, counts)
        })
        .unwrap_or_else(|error| fails(format!("killed there: {error}")));
        if stop.is_end() {
            break;
        }
        stop = stepper.go(1);
    }
    stepper.finish();
    println!("{scenario}: {} stops, {} readings in an update", stop.number, reading.witness.torn);
}

/// The writer continues while the reader reads, each time at the reader's next phase. The tests of libtally combine all
/// phases with all stops.
fn at_many_phases(scenario: &str) {
    let Some(stepper) = Stepper::java(TRANSITIONS) else { return };
    let (stepper, place) = (Shared::with_stepper(stepper), ScenarioSegment::new());
    let (mut readings, mut phase, mut phases) = (0, 1, 1);
    for stride in STRIDES {
        let mut stop = stepper.with(|stepper| stepper.start(scenario, place.clear()));
        let mut segment = place.open();
        let mut reading = Reading::new(scenario, &segment);
        while !stop.is_end() {
            let look = |segment: &mut Segment| reading.witness.look(segment, 0, false);
            let (found, next, reached) = stepper.move_in(&mut segment, phase, stride, look);
            let counts = (next.done, next.begun);
            let found = found
                .and_then(|()| check(&mut segment, counts))
                .and_then(|()| reading.records(&segment, counts));
            found.unwrap_or_else(|error| {
                let (from, to) = (at(scenario, &stop), at(scenario, &next));
                panic!("{from}, at reading {phase} to {to}: {error}")
            });
            phases = phases.max(phase);
            phase = if reached { phase + 1 } else { 1 };
            stop = next;
            readings += 1;
        }
        let last = reading.look(&mut segment, (stop.done, stop.begun), true);
        last.unwrap_or_else(|error| panic!("{}: {error}", at(scenario, &stop)));
        stepper.with(Stepper::finish);
    }
    println!("{scenario}: {phases} phases, {readings} readings");
}

macro_rules! scenarios {
    ($($module:ident: $scenario:literal;)*) => {
        $(mod $module {
            #[test]
            fn are_whole_at_every_stop_and_after_a_kill_there() {
                super::at_every_stop($scenario);
            }

            #[test]
            fn are_whole_while_their_writer_goes_on_between_two_phases_of_the_reader() {
                super::at_many_phases($scenario);
            }
        })*
    };
}

scenarios! {
    calls_of_two_threads: "calls";
    executions_of_statements: "statements";
    calls_at_changes_of_the_level: "level";
    notes: "notes";
}

/// Without stepping: classes of the agent, each by itself.
#[test]
fn the_agents_parts_do_what_they_say() {
    let tests = ["agent.AgentTest", "probe.ProbeTest", "segment.SegmentTest"];
    let tests = tests.map(|name| format!("org.pgtally.{name}"));
    let Some(mut java) = java("org.pgtally.test.Units") else { return };
    let output = java.args(tests).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.matches("ok ").count() > 15, "{text}{errors}");
}
