// SPDX-License-Identifier: PostgreSQL
//! Sessions: claim, switches, merge, retirement, reset and level. Time is conserved to the tick.

use segment::book::Life;
use segment::Snapshot;

use super::process::{Stepper, Stop};
use super::scenario_segment::{first_of_each_name, stops_of, ScenarioSegment, Shared};
use super::witness::{ended_ticks, Ended, Witness};

/// Numbers of stops for which a writer continues at a time while the reader reads.
const STRIDES: [u64; 4] = [1, 5, 25, 125];

/// The position of a test, for messages.
fn at(scenario: &str, stop: &Stop) -> String {
    format!("{scenario}: stop {} ({})", stop.number, stop.name)
}

/// The outcome of a run that is not read meanwhile.
fn outcome(stepper: &mut Stepper, place: &ScenarioSegment, scenario: &str) -> Ended {
    stepper.start(scenario, place.clear());
    let before = ended_ticks(&place.open().snapshot(None).unwrap());
    stepper.go(0);
    let after = ended_ticks(&place.open().snapshot(None).unwrap());
    stepper.finish();
    Ended { before, after }
}

/// Takes a snapshot at every stop, and compares each with the previous one.
fn at_every_stop(scenario: &str) {
    let (mut stepper, place) = (Stepper::new(), ScenarioSegment::new());
    let ended = outcome(&mut stepper, &place, scenario);
    let mut stop = stepper.start(scenario, place.clear());
    let mut segment = place.open();
    let mut witness = Witness::new(ended);
    loop {
        let tick = place.tick();
        witness
            .look(&mut segment, tick, true)
            .unwrap_or_else(|error| panic!("{}: {error}", at(scenario, &stop)));
        if stop.is_end() {
            break;
        }
        stop = stepper.go(1);
    }
    stepper.finish();
    println!("{scenario}: {} stops, {} readings in an update", stop.number, witness.torn);
    assert!(witness.torn > 0);
}

/// The writer continues while the reader reads: at each phase of the reader, from each stop to a later one.
fn at_every_phase(scenario: &str) {
    let (stepper, place) = (Shared::new(), ScenarioSegment::new());
    let ended = stepper.with(|stepper| outcome(stepper, &place, scenario));
    let mut snapshots = 0;
    let mut phases = 0;
    for stride in STRIDES {
        for phase in 1.. {
            let mut stop = stepper.with(|stepper| stepper.start(scenario, place.clear()));
            let mut segment = place.open();
            let mut witness = Witness::new(ended);
            let mut reached = false;
            while !stop.is_end() {
                let tick = place.tick();
                let look = |segment: &mut _| witness.look(segment, tick, false);
                let (found, next, here) = stepper.move_in(&mut segment, phase, stride, look);
                found.unwrap_or_else(|error| {
                    let from = at(scenario, &stop);
                    panic!(
                        "{from}, at reading {phase} to stop {} ({}): {error}",
                        next.number, next.name
                    )
                });
                (stop, reached) = (next, reached | here);
                snapshots += 1;
            }
            let tick = place.tick();
            let last = witness.look(&mut segment, tick, true);
            last.unwrap_or_else(|error| {
                panic!("{scenario}, after reading {phase} by {stride}: {error}")
            });
            stepper.with(Stepper::finish);
            phases = phases.max(phase);
            if !reached {
                break;
            }
        }
    }
    println!("{scenario}: {phases} phases, {snapshots} snapshots");
}

/// The same from each kind of stop to the end.
fn to_the_end_at_every_phase(scenario: &str) {
    let (stepper, place) = (Shared::new(), ScenarioSegment::new());
    let ended = stepper.with(|stepper| outcome(stepper, &place, scenario));
    let stops = stepper.with(|stepper| stops_of(stepper, &place, scenario));
    for from in first_of_each_name(&stops).iter().filter(|stop| !stop.is_end()) {
        for phase in 1.. {
            stepper.with(|stepper| {
                stepper.start(scenario, place.clear());
                (from.number > 0).then(|| stepper.go(from.number))
            });
            let mut segment = place.open();
            let mut witness = Witness::new(ended);
            let tick = place.tick();
            let first = witness.look(&mut segment, tick, true);
            let look = |segment: &mut _| witness.look(segment, tick, false);
            let (found, _, reached) = stepper.move_in(&mut segment, phase, 0, look);
            let tick = place.tick();
            let last = witness.look(&mut segment, tick, true);
            for found in [first, found, last] {
                found.unwrap_or_else(|error| {
                    panic!("{}, at reading {phase} to the end: {error}", at(scenario, from))
                });
            }
            stepper.with(Stepper::finish);
            if !reached {
                break;
            }
        }
    }
}

/// How long a session is dead before other processes find it, ticks.
const DEAD: u64 = 5_000_000;

/// The writer is killed at every stop: nothing is lost and nothing counts twice, before and after another process has
/// merged its slot. `recoveries`: the stops at which that process is also killed, before yet another one takes over.
fn killed_at_every_stop(scenario: &str, recoveries: impl Fn(u64) -> Option<u64>) {
    let (mut stepper, mut other, place) = (Stepper::new(), Stepper::new(), ScenarioSegment::new());
    let ended = outcome(&mut stepper, &place, scenario);
    for n in 0.. {
        let mut stop = stepper.start(scenario, place.clear());
        if n > 0 {
            stop = stepper.go(n);
        }
        let mut segment = place.open();
        let before = segment.snapshot(None).unwrap();
        let resets = before.resets;
        let fails =
            |error: String| -> ! { panic!("{}, killed there: {error}", at(scenario, &stop)) };
        // The total of its accounts: it lives until other processes find it, or until it has closed them.
        let whole = match before.books.first() {
            Some(book) if book.run().is_some() => {
                ended.before * u64::from(resets == 0) + place.tick() + DEAD - book.born
            }
            Some(_) => ended.after,
            None => ended_ticks(&before),
        };
        let mut witness = Witness::new(Ended { after: whole, ..ended });
        let tick = place.tick();
        witness.look(&mut segment, tick, true).unwrap_or_else(|error| fails(error));
        stepper.kill();
        place.advance(DEAD);
        witness.look(&mut segment, tick, false).unwrap_or_else(|error| fails(error));
        if let Some(recovery) = recoveries(n) {
            witness.is_merging = true;
            other.start("sweep", &place.path);
            if !other.go(1 + recovery).is_end() {
                witness.look(&mut segment, tick, false).unwrap_or_else(|error| fails(error));
                other.kill();
                witness.look(&mut segment, tick, false).unwrap_or_else(|error| fails(error));
            } else {
                other.finish();
            }
        }
        other.start("sweep", &place.path);
        other.go(0);
        other.finish();
        witness.is_merging = false;
        witness.look(&mut segment, tick, false).unwrap_or_else(|error| fails(error));
        let found = segment.snapshot(None).unwrap();
        let commands = commands(&found);
        // A writer that was in an update may have recorded an event that does not count as done yet.
        let fits = (stop.done..=stop.begun).contains(&commands.count)
            && commands.total == 700 * commands.count
            && commands.in_histogram == commands.count;
        if found.resets == 0 && !before.books.iter().any(|book| book.torn) && !fits {
            fails(format!("{commands:?} of {} to {}", stop.done, stop.begun));
        }
        // An interrupted reset is repeated.
        let whole = if found.resets == resets { whole } else { 0 };
        if !found.books.is_empty() || found.stuck_merge || ended_ticks(&found) != whole {
            fails(format!("{} ticks, not {whole}; left: {:?}", ended_ticks(&found), found.books));
        }
        // The slot is usable for the next session.
        other.start("claim", &place.path);
        other.go(0);
        place.advance(DEAD);
        let next = segment.snapshot(Some(&found)).unwrap();
        let book = next.books.first().unwrap_or_else(|| fails("no slot is free".into()));
        if book.accounted(&next.directory) != book.now - book.born || book.life != Life::Alive {
            fails(format!(
                "the next owner of the slot has {} ticks",
                book.accounted(&next.directory)
            ));
        }
        other.finish();
        if stop.is_end() {
            break;
        }
    }
}

/// All commands of a scenario, each of 700 ticks.
#[derive(Debug, Default)]
struct Commands {
    count: u64,
    total: u64,
    in_histogram: u64,
}

fn commands(snapshot: &Snapshot) -> Commands {
    let mut commands = Commands::default();
    for book in snapshot.books.iter().chain(&snapshot.groups) {
        for head in &book.heads {
            let name = snapshot.directory.get(head.stat).map(|stat| stat.name.clone());
            if name.as_deref() == Some("command::SimpleQuery::handle") {
                commands.count += head.count;
                commands.total += head.total;
                commands.in_histogram += book.histogram(head).count();
            }
        }
    }
    commands
}

macro_rules! scenarios {
    ($($module:ident: $scenario:literal;)*) => {
        $(mod $module {
            #[test]
            fn is_whole_at_every_stop() {
                super::at_every_stop($scenario);
            }

            #[test]
            fn is_whole_while_its_writer_goes_on_at_any_phase_of_the_reader() {
                super::at_every_phase($scenario);
            }

            #[test]
            fn is_whole_when_its_writer_ends_at_any_phase_of_the_reader() {
                super::to_the_end_at_every_phase($scenario);
            }

            #[test]
            fn is_whole_when_its_writer_is_killed_at_any_stop() {
                super::killed_at_every_stop($scenario, |_| None);
            }
        })*
    };
}

scenarios! {
    a_session: "session";
    a_further_session: "session-again";
    a_session_at_a_reset: "reset";
    a_session_with_interrupted_waits: "interrupted";
    a_session_at_a_change_of_the_level: "level";
}

/// Combines each stop of the process that is killed with a stop of the next one, which is also killed.
#[test]
fn a_session_is_whole_when_a_recovery_is_killed_too() {
    for first in [3, 41] {
        killed_at_every_stop("session-again", |n| Some((n * 7 + first) % 83));
    }
}
