// SPDX-License-Identifier: PostgreSQL
//! Tables that writers share: statements, plans, relations, events, names, traces and blockers. Each entry is counted
//! once and has its own text, at every stop of its writer and at every phase of the reader.

use std::collections::HashMap;

use segment::layout::header;
use segment::{Segment, SlowExecutions, StatementsReading, TraceKind, TraceRequest, TraceSwitch};

use super::process::{Stepper, Stop};
use super::scenario_segment::{ScenarioSegment, Shared};
use super::witness::word;

const STRIDES: &[u64] = &[1, 6, 36];

/// The fate of the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    Nothing,
    /// It may have counted half of its last update.
    Death,
}

/// The result of a reading.
struct TableWitness {
    /// The minimum and maximum of the scenario's counts.
    counted: std::ops::RangeInclusive<u64>,
    /// Whether the reader reports that it read during an update.
    torn: bool,
}

impl TableWitness {
    fn exactly(counted: u64, torn: bool) -> TableWitness {
        TableWitness { counted: counted..=counted, torn }
    }
}

type Read = Box<dyn FnMut(&mut Segment) -> Result<TableWitness, String>>;

struct Subject {
    scenario: &'static str,
    /// The scenario that another process runs after a death, and how much it adds to the counts.
    next: Option<(&'static str, u64)>,
    /// Numbers of stops for which a writer continues at a time while the reader reads.
    strides: &'static [u64],
    /// Creates a reader at the beginning of the scenario.
    reader: fn(&Segment, After) -> Read,
}

/// A run of a scenario that is being read.
struct Reading {
    read: Read,
    min: u64,
    torn: usize,
}

impl Reading {
    fn new(subject: &Subject, segment: &Segment, after: After) -> Reading {
        Reading { read: (subject.reader)(segment, after), min: 0, torn: 0 }
    }

    /// Check the result of a reading.
    fn check(
        &mut self,
        found: Result<TableWitness, String>,
        done: u64,
        begun: u64,
    ) -> Result<(), String> {
        let TableWitness { counted, torn } = found?;
        self.torn += usize::from(torn);
        if torn {
            return Ok(());
        }
        let (min, max) = counted.into_inner();
        if min > begun || max < done || max < self.min {
            let before = self.min;
            return Err(format!(
                "{min} to {max} are counted, of {done} to {begun}; before: {before}"
            ));
        }
        self.min = self.min.max(min);
        Ok(())
    }
}

fn at(subject: &Subject, stop: &Stop) -> String {
    format!("{}: stop {} ({})", subject.scenario, stop.number, stop.name)
}

fn at_every_stop(subject: &Subject) {
    let (mut stepper, place) = (Stepper::new(), ScenarioSegment::new());
    let mut stop = stepper.start(subject.scenario, place.clear());
    let mut segment = place.open();
    let mut reading = Reading::new(subject, &segment, After::Nothing);
    loop {
        let found = (reading.read)(&mut segment);
        reading
            .check(found, stop.done, stop.begun)
            .unwrap_or_else(|error| panic!("{}: {error}", at(subject, &stop)));
        if stop.is_end() {
            break;
        }
        stop = stepper.go(1);
    }
    stepper.finish();
    println!("{}: {} stops, {} readings in an update", subject.scenario, stop.number, reading.torn);
}

fn at_every_phase(subject: &Subject) {
    let (stepper, place) = (Shared::new(), ScenarioSegment::new());
    let (mut readings, mut phases) = (0, 0);
    for &stride in subject.strides {
        for phase in 1.. {
            let mut stop = stepper.with(|stepper| stepper.start(subject.scenario, place.clear()));
            let mut segment = place.open();
            let mut reading = Reading::new(subject, &segment, After::Nothing);
            let mut reached = false;
            while !stop.is_end() {
                let read = |segment: &mut _| (reading.read)(segment);
                let (found, next, here) = stepper.move_in(&mut segment, phase, stride, read);
                reading.check(found, stop.done, next.begun).unwrap_or_else(|error| {
                    let from = at(subject, &stop);
                    panic!(
                        "{from}, at reading {phase} to stop {} ({}): {error}",
                        next.number, next.name
                    )
                });
                (stop, reached) = (next, reached | here);
                readings += 1;
            }
            let found = (reading.read)(&mut segment);
            reading
                .check(found, stop.done, stop.begun)
                .unwrap_or_else(|error| panic!("{}, at its end: {error}", subject.scenario));
            stepper.with(Stepper::finish);
            phases = phases.max(phase);
            if !reached {
                break;
            }
        }
    }
    println!("{}: {phases} phases, {readings} readings", subject.scenario);
}

/// When a writer is killed, at most the entry that it was changing is lost, and it is counted as lost.
fn killed_at_every_stop(subject: &Subject, losses: fn(&mut Segment) -> (u64, u64)) {
    let (mut stepper, mut other, place) = (Stepper::new(), Stepper::new(), ScenarioSegment::new());
    for n in 0.. {
        let mut stop = stepper.start(subject.scenario, place.clear());
        let mut segment = place.open();
        let mut reading = Reading::new(subject, &segment, After::Nothing);
        if n > 0 {
            stop = stepper.go(n);
        }
        let fails =
            |error: String| -> ! { panic!("{}, killed there: {error}", at(subject, &stop)) };
        stepper.kill();
        let found = (reading.read)(&mut segment);
        reading.check(found, stop.done, stop.begun).unwrap_or_else(|error| fails(error));
        let mut more = 0;
        if let Some((scenario, adds)) = subject.next {
            other.start(scenario, &place.path);
            other.go(0);
            other.finish();
            more = adds;
        }
        other.start("repair", &place.path);
        other.go(0);
        other.finish();
        let (lost, largest) = losses(&mut segment);
        if lost > 1 {
            fails(format!("{lost} are lost"));
        }
        let mut reading = Reading::new(subject, &segment, After::Death);
        let found = (reading.read)(&mut segment);
        if found.as_ref().is_ok_and(|found| found.torn) {
            fails("still in an update after the repair".into());
        }
        let done = if lost > 0 { stop.done.saturating_sub(largest) } else { stop.done };
        reading.check(found, done + more, stop.begun + more).unwrap_or_else(|error| fails(error));
        if stop.is_end() {
            break;
        }
    }
}

/* ---------------------------------------------------------------- statements */

fn text_of(id: u64) -> String {
    let mut text = format!("{id}:");
    while text.len() < 600 {
        text.push_str(&format!("{id},"));
    }
    text
}

/// Checks that every statement is consistent: its executions, their time and histogram, its parts and its text. Returns
/// calls by id, and the total time.
fn statements_of(
    segment: &mut Segment,
    after: After,
) -> Result<(StatementsReading, HashMap<u64, u64>, u64), String> {
    let read = segment.statements().map_err(|error| error.to_string())?.ok_or("no statements")?;
    let mut calls = HashMap::new();
    let mut ticks = 0;
    for statement in read.statements() {
        let id = statement.key.id;
        let time: u64 = statement.parts().iter().map(|part| part.ticks).sum();
        ticks += time;
        if let Some(text) = &statement.text {
            let whole = text_of(id);
            let is_whole =
                *text.shown == *whole || (read.texts_cut() > 0 && whole.starts_with(&*text.shown));
            if !is_whole {
                return Err(format!("statement {id} has a foreign or half text: {text:?}"));
            }
        }
        if *calls.entry(id).or_insert(0) != 0 {
            return Err(format!("statement {id} is there twice"));
        }
        calls.insert(id, statement.calls());
        let expected = statement.calls() * 100 * id;
        let measured = (statement.exec().seconds * 1e9).round() as u64;
        let in_histogram = statement.histogram().count();
        let slack = u64::from(after == After::Death);
        let whole = measured.abs_diff(expected) <= slack * 100 * id
            && in_histogram.abs_diff(statement.calls()) <= slack
            && time.abs_diff(expected) <= slack * 100 * id;
        if !whole && id != 0 && read.torn() == 0 {
            return Err(format!(
                "statement {id}: {} calls, {measured} ticks, {in_histogram} in its histogram, {time} in its parts",
                statement.calls()
            ));
        }
    }
    Ok((read, calls, ticks))
}

fn lost_statements(segment: &mut Segment) -> (u64, u64) {
    let read = segment.statements().unwrap().unwrap();
    (read.lost() + read.dropped(), 900)
}

/// The lost counts: of three executions of statement 4, or two of statement 6.
fn lost_while_locked(segment: &mut Segment) -> (u64, u64) {
    (lost_statements(segment).0, 1200)
}

const STATEMENTS: Subject = Subject {
    scenario: "statements",
    next: Some(("takeover", 500)),
    strides: STRIDES,
    reader: |_, after| {
        Box::new(move |segment| {
            let (read, _, ticks) = statements_of(segment, after)?;
            Ok(TableWitness::exactly(ticks, read.torn() > 0))
        })
    },
};

/// Another process is stopped while it holds the locks of sets, and then continues.
const LOCKED: Subject = Subject { scenario: "locked", ..STATEMENTS };

/// For a moment, the time of an evicted statement is on its way to the statement with id 0.
const EVICTION: Subject = Subject {
    scenario: "eviction",
    next: None,
    strides: &[24],
    reader: |_, after| {
        Box::new(move |segment| {
            let (read, _, ticks) = statements_of(segment, after)?;
            Ok(TableWitness { counted: ticks..=u64::MAX, torn: read.torn() > 0 })
        })
    },
};

/// Only the statement that is forgotten has fewer executions afterwards.
const FORGETTING: Subject = Subject {
    scenario: "forgetting",
    next: None,
    strides: STRIDES,
    reader: |_, after| {
        Box::new(move |segment| {
            let (read, calls, _) = statements_of(segment, after)?;
            let calls_of = |id: u64| calls.get(&id).copied().unwrap_or(0);
            let fits = calls_of(1) == 3
                && calls_of(3) == 3
                && matches!(calls_of(2), 0 | 1 | 3)
                && calls_of(5) <= 1;
            if !fits && read.torn() == 0 && read.lost() == 0 {
                return Err(format!("calls: {calls:?}"));
            }
            Ok(TableWitness { counted: 0..=u64::MAX, torn: read.torn() > 0 })
        })
    },
};

/* ---------------------------------------------------------------- the rest */

const PLANS: Subject = Subject {
    scenario: "plans",
    next: None,
    strides: STRIDES,
    reader: |_, _| {
        Box::new(|segment| {
            for plan in segment.plans().map_err(|error| error.to_string())? {
                let (shape, text) = (plan.shape, text_of(plan.shape));
                if plan.statement.id != 1 || plan.text != text || plan.max != 100 * shape {
                    return Err(format!("a plan of another: {plan:?}"));
                }
                // An execution may be in the count, but not yet in the time.
                let max = 100 * shape * plan.count;
                if !(max.saturating_sub(100 * shape)..=max).contains(&plan.ticks) || plan.count > 2
                {
                    return Err(format!(
                        "plan {shape}: {} executions, {} ticks",
                        plan.count, plan.ticks
                    ));
                }
            }
            Ok(TableWitness { counted: 0..=u64::MAX, torn: false })
        })
    },
};

const RELATIONS: Subject = Subject {
    scenario: "relations",
    next: None,
    strides: STRIDES,
    reader: |_, after| {
        Box::new(move |segment| {
            let read =
                segment.relations().map_err(|error| error.to_string())?.ok_or("no relations")?;
            let mut count = 0;
            for row in read.since(None) {
                count += row.read.count;
                let relation = u64::from(row.key.relfilenode);
                let ticks = (row.read.seconds * 1e9).round() as u64;
                // A flush may have added a part of two operations.
                let slack = if after == After::Death { 2 } else { 0 };
                let whole = ticks.abs_diff(row.read.count * (1000 + relation))
                    <= slack * (1000 + relation)
                    && row.read.bytes.abs_diff(row.read.count * 8192) <= slack * 8192;
                if !whole && read.torn() == 0 {
                    return Err(format!("relation {relation}: {:?}", row.read));
                }
            }
            Ok(TableWitness::exactly(count, read.torn() > 0))
        })
    },
};

const EVENTS: Subject = Subject {
    scenario: "events",
    next: None,
    strides: STRIDES,
    reader: |_, _| {
        Box::new(|segment| {
            let events = segment.events(0).map_err(|error| error.to_string())?;
            for event in &events {
                let n = event.number;
                if event.text != format!("event {n} and as much again, event {n}") {
                    return Err(format!("event {n} has a foreign or half text: {:?}", event.text));
                }
            }
            Ok(TableWitness::exactly(events.last().map_or(0, |event| event.number), false))
        })
    },
};

const NAMES: Subject = Subject {
    scenario: "names",
    next: None,
    strides: STRIDES,
    reader: |_, _| {
        Box::new(|segment| {
            let snapshot = segment.snapshot(None).map_err(|error| error.to_string())?;
            let mut found = 0;
            for book in &snapshot.books {
                for head in &book.heads {
                    let name = snapshot.directory.get(head.stat).map_or("", |stat| &*stat.name);
                    if let Some(number) = name.strip_prefix("execute::wait::Extension:") {
                        found += 1;
                        if !["Number0", "Number1", "Number2"].contains(&number) {
                            return Err(format!("a foreign or half name: {name:?}"));
                        }
                    }
                }
            }
            if snapshot.nameless > 0 {
                return Err("a statistic is used that has no name".into());
            }
            let torn = snapshot.books.iter().any(|book| book.torn);
            Ok(TableWitness { counted: found..=u64::MAX, torn })
        })
    },
};

const BLOCKED: Subject = Subject {
    scenario: "blocked",
    next: None,
    strides: STRIDES,
    reader: |_, _| {
        Box::new(|segment| {
            for wait in segment.blocked().map_err(|error| error.to_string())? {
                let n = wait.lock.fields[0];
                let pids = [100 + n as i32, 200 + n as i32];
                if wait.lock.fields != [n; 3]
                    || wait.blockers != pids
                    || wait.count != 2
                    || !(1..=2).contains(&n)
                {
                    return Err(format!("half of one wait and half of another: {wait:?}"));
                }
            }
            Ok(TableWitness { counted: 0..=u64::MAX, torn: false })
        })
    },
};

const TRACE: Subject = Subject {
    scenario: "trace",
    next: None,
    strides: STRIDES,
    reader: |segment, _| {
        let mut switch = TraceSwitch::open(segment).unwrap();
        let request =
            TraceRequest { application: "first application".into(), ..TraceRequest::default() };
        let mut readers = switch.arm(&request, 1).unwrap();
        let mut seen = 0;
        Box::new(move |segment| {
            let _armed = &switch;
            let mut wrong = None;
            let lost = readers[0]
                .poll(segment, |lost, record| {
                    seen += 1;
                    let all = seen << 32 | seen;
                    if lost > 0 || record.kind != (TraceKind::NodeEnd { rows: all, calls: all }) {
                        wrong = Some(format!("record {seen} after {lost} lost ones: {record:?}"));
                    }
                })
                .map_err(|error| error.to_string())?;
            match wrong {
                Some(wrong) => Err(wrong),
                None if lost > 0 => Err(format!("{lost} records are lost")),
                None => Ok(TableWitness::exactly(seen, false)),
            }
        })
    },
};

/// Reads slow executions, each of which must be whole. Returns how many there were.
fn slow_of(slow: &mut SlowExecutions, segment: &Segment) -> Result<u64, String> {
    let (mut seen, mut wrong) = (0, None);
    let missed = slow.poll(segment, |execution| {
        seen += 1;
        let n = execution.ticks;
        let key = execution.statement;
        let parameters = format!("$1 = NULL, $2 = (not shown: {n} bytes)");
        if (key.id, key.database_id, key.user_id, key.toplevel) != (n << 32 | n, 5, 10, true)
            || execution.pid as u64 != n
            || execution.parameters.to_string() != parameters
        {
            wrong = Some(format!("half of one execution and half of another: {execution:?}"));
        }
    });
    let missed = missed.map_err(|error| error.to_string())?;
    match wrong {
        Some(wrong) => Err(wrong),
        None if missed > 0 => Err(format!("{missed} executions are missed")),
        None => Ok(seen),
    }
}

const SLOW: Subject = Subject {
    scenario: "slow",
    next: None,
    strides: STRIDES,
    reader: |segment, _| {
        let mut slow = SlowExecutions::start(segment).unwrap().unwrap();
        let mut seen = 0;
        Box::new(move |segment| {
            seen += slow_of(&mut slow, segment)?;
            Ok(TableWitness::exactly(seen, false))
        })
    },
};

/// The loss of a local entry that was being flushed: at most two operations.
fn lost_relations(segment: &mut Segment) -> (u64, u64) {
    (word(segment.path(), header::RELATIONS_LOST as u64), 2)
}

fn nothing_lost(_: &mut Segment) -> (u64, u64) {
    (0, 0)
}

macro_rules! subjects {
    ($($module:ident: $subject:ident, $losses:ident;)*) => {
        $(mod $module {
            #[test]
            fn counts_once_at_every_stop() {
                super::at_every_stop(&super::$subject);
            }

            #[test]
            fn counts_once_while_its_writer_goes_on_at_any_phase_of_the_reader() {
                super::at_every_phase(&super::$subject);
            }

            #[test]
            fn counts_once_when_its_writer_is_killed_at_any_stop() {
                super::killed_at_every_stop(&super::$subject, super::$losses);
            }
        })*
    };
}

subjects! {
    a_statement: STATEMENTS, lost_statements;
    a_statement_whose_set_is_locked: LOCKED, lost_while_locked;
    an_evicted_statement: EVICTION, lost_statements;
    a_forgotten_statement: FORGETTING, lost_statements;
    a_plan: PLANS, nothing_lost;
    a_relation: RELATIONS, lost_relations;
    an_event: EVENTS, nothing_lost;
    a_name: NAMES, nothing_lost;
    a_blocked_session: BLOCKED, nothing_lost;
}

mod a_trace {
    use super::{header, ScenarioSegment, Stepper, TraceRequest, TraceSwitch};

    #[test]
    fn has_each_record_once_at_every_stop() {
        super::at_every_stop(&super::TRACE);
    }

    #[test]
    fn has_each_record_once_while_its_writer_goes_on_at_any_phase_of_the_reader() {
        super::at_every_phase(&super::TRACE);
    }

    #[test]
    fn keeps_its_ring_when_the_reader_ends_that_had_it_before() {
        let (mut stepper, place) = (Stepper::new(), ScenarioSegment::new());
        stepper.start("trace", place.clear());
        let segment = place.open();
        stepper.kill();
        let arm = || {
            let mut switch = TraceSwitch::open(&segment).unwrap();
            assert_eq!(switch.arm(&TraceRequest::default(), 1).unwrap().len(), 1);
            switch
        };
        let armed = || place.word(header::TRACES_ARMED as u64);
        let before = arm();
        place.advance(segment.clock().ticks(60.0));
        let after = arm();
        drop(before);
        assert_eq!(armed(), 1);
        drop(after);
        assert_eq!(armed(), 0);
    }
}

mod a_slow_execution {
    use std::os::unix::fs::FileExt;

    use segment::layout::trace;

    use super::{at, header, slow_of, ScenarioSegment, SlowExecutions, Stepper, SLOW};

    #[test]
    fn is_there_once_and_whole_at_every_stop() {
        super::at_every_stop(&SLOW);
    }

    #[test]
    fn is_there_once_and_whole_while_its_writer_goes_on_at_any_phase_of_the_reader() {
        super::at_every_phase(&SLOW);
    }

    #[test]
    fn is_not_made_up_from_numbers_that_no_writer_leaves() {
        let (mut stepper, place) = (Stepper::new(), ScenarioSegment::new());
        stepper.start(SLOW.scenario, place.clear());
        let segment = place.open();
        let mut slow = SlowExecutions::start(&segment).unwrap().unwrap();
        stepper.kill();
        let ring = place.word(header::TRACES as u64);
        let file = std::fs::File::options().write(true).open(&place.path).unwrap();
        for field in [trace::HEAD, trace::MISSED] {
            file.write_all_at(&u64::MAX.to_ne_bytes(), ring + field as u64).unwrap();
        }
        let mut poll = || slow.poll(&segment, |execution| panic!("{execution:?}")).unwrap();
        assert_eq!([poll(), poll()], [u64::MAX, 0]);
    }

    #[test]
    fn is_whole_or_missing_when_its_writer_is_killed_at_any_stop_and_others_follow() {
        let (mut stepper, mut other, place) =
            (Stepper::new(), Stepper::new(), ScenarioSegment::new());
        for n in 0.. {
            let mut stop = stepper.start(SLOW.scenario, place.clear());
            let segment = place.open();
            let mut slow = SlowExecutions::start(&segment).unwrap().unwrap();
            if n > 0 {
                stop = stepper.go(n);
            }
            stepper.kill();
            let fails = |what: String| panic!("{}, killed there: {what}", at(&SLOW, &stop));
            match slow_of(&mut slow, &segment) {
                Ok(seen) if (stop.done..=stop.begun).contains(&seen) => {}
                found => fails(format!("{found:?}")),
            }
            // The first renewal sees that somebody writes, and the second one that nobody does.
            slow.renew(&segment).unwrap();
            slow.renew(&segment).unwrap();
            other.start("slow-after", &place.path);
            other.go(0);
            other.finish();
            let after = slow_of(&mut slow, &segment);
            if after != Ok(3) {
                fails(format!("afterwards: {after:?}"));
            }
            if stop.is_end() {
                break;
            }
        }
    }
}
