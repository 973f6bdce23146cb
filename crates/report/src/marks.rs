// SPDX-License-Identifier: PostgreSQL
//! The marks in all charts: checkpoints, slow operations, sessions that blocked others, new plans of statements,
//! changed settings, and what the recorder noted.

use segment::EventKind;

use super::histories;
use super::material::Material;
use super::tables::checkpoints;
use super::tables::server_log::{is_error, logged as logged_at};
use view::blocking::Blocker;
use view::document::Mark;
use view::units::{duration, whole};

/// Maximum number of slow operations that are marked, the longest ones; more would hide the charts.
const SLOW: usize = 200;

/// The same of sessions that blocked others, and of the stretches of time in which they did.
const BLOCKERS: usize = 50;
const STRETCHES: usize = 200;

/// The same of what the server logged: deadlocks, and errors that ended a session or the server.
const LOGGED: usize = 100;

/// All of them, in order of time.
pub fn marks(material: &Material) -> Vec<Mark> {
    let mut marks: Vec<Mark> = checkpoints(&material.events, material.measured.from)
        .into_iter()
        .filter_map(|checkpoint| {
            let ended = checkpoint.ended?;
            Some(Mark {
                time: ended - checkpoint.seconds,
                until: Some(ended),
                kind: "checkpoint".to_string(),
                text: format!(
                    "checkpoint ({}), {}: {} buffers, sync {}",
                    checkpoint.reason,
                    duration(checkpoint.seconds),
                    whole(checkpoint.buffers),
                    duration(checkpoint.sync_seconds)
                ),
            })
        })
        .collect();
    let slow = material.events.iter().filter(|row| row.kind == EventKind::Slow);
    let mut slow: Vec<(f64, Mark)> = slow
        .filter_map(|row| {
            let time = row.time.filter(|time| *time >= material.measured.from)?;
            let kind = "slow".to_string();
            let text = row.text.clone();
            Some((row.slow_seconds(), Mark { time, until: None, kind, text }))
        })
        .collect();
    marks.extend(material.sessions.iter().flat_map(|sessions| blocking(&sessions.blockers)));
    let logged = material.log.iter().filter(|row| {
        is_error(row) && (&*row.kind == "deadlock" || ["FATAL", "PANIC"].contains(&&*row.severity))
    });
    marks.extend(logged.take(LOGGED).map(|row| Mark {
        time: logged_at(row),
        until: None,
        kind: row.kind.to_string(),
        text: format!("{}: {} (PID {})", row.severity, row.message, row.pid),
    }));
    slow.sort_by(|a, b| b.0.total_cmp(&a.0));
    marks.extend(slow.into_iter().take(SLOW).map(|(_, mark)| mark));
    marks.extend(
        material
            .statements
            .iter()
            .flat_map(|statements| histories::plan_changes(statements, material.measured.from)),
    );
    marks.extend(material.marks.iter().cloned());
    marks.extend(changed_settings(material));
    marks.sort_by(|a, b| a.time.total_cmp(&b.time));
    // A live page keeps the new plans of a run of the server that has ended, and may read them again.
    marks.dedup();
    marks
}

/// When sessions blocked others. These have the most waiting time, most first; of too many stretches, the longest are marked.
pub fn blocking(blockers: &[Blocker]) -> Vec<Mark> {
    let marks = blockers.iter().take(BLOCKERS).flat_map(|blocker| {
        let text = format!(
            "session {} ({}) blocked up to {} {}, {} of their time",
            blocker.root.pid,
            blocker.root.application.as_deref().unwrap_or("no application name"),
            blocker.waiters,
            if blocker.waiters == 1 { "session" } else { "sessions" },
            duration(blocker.waiting_seconds)
        );
        blocker.stretches.iter().map(move |(from, to)| Mark {
            time: *from,
            until: Some(*to),
            kind: "blocking".to_string(),
            text: text.clone(),
        })
    });
    let mut marks: Vec<Mark> = marks.collect();
    let length = |mark: &Mark| mark.until.unwrap_or(mark.time) - mark.time;
    marks.sort_by(|a, b| length(b).total_cmp(&length(a)));
    marks.truncate(STRETCHES);
    marks
}

/// A mark for each time at which settings changed.
fn changed_settings(material: &Material) -> Vec<Mark> {
    let mut marks: Vec<Mark> = Vec::new();
    for change in &material.setting_changes {
        let text = match change.before == change.after {
            true => format!("{} = {}", change.name, change.after),
            false => format!("{} = {} (was {})", change.name, change.after, change.before),
        };
        match marks.last_mut().filter(|mark| mark.time == change.time) {
            Some(mark) => mark.text = format!("{}, {text}", mark.text),
            None => {
                marks.push(Mark {
                    time: change.time,
                    until: None,
                    kind: "setting".to_string(),
                    text,
                });
            }
        }
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_blocked_others_twice_has_two_marks() {
        let blocker = Blocker {
            waiters: 1,
            waiting_seconds: 3.0,
            stretches: vec![(1.0, 2.0), (9.0, 11.0)],
            ..Blocker::default()
        };
        let marks = blocking(&[blocker]);
        let times: Vec<_> = marks.iter().map(|mark| (mark.time, mark.until)).collect();
        assert_eq!(times, [(9.0, Some(11.0)), (1.0, Some(2.0))]);
        assert!(marks[0].text.ends_with("blocked up to 1 session, 3 s of their time"));
    }

    #[test]
    fn the_longest_slow_operations_are_marked_in_order_of_time() {
        let mut material = crate::sample::material();
        let slow = |row: &&view::events::Row| row.kind == EventKind::Slow;
        let one = material.events.iter().find(slow).unwrap().clone();
        let from = material.measured.from;
        // The first are the shortest; one is before the report, one has no time.
        let row = |at: u64, time: Option<f64>| view::events::Row {
            time,
            text: format!("slow {at}"),
            payload: segment::Payload::of_text(EventKind::Slow, &format!("sync: {at}.000 s: x")),
            ..one.clone()
        };
        material.events = (0..=SLOW as u64).map(|at| row(at, Some(from + at as f64))).collect();
        material.events.reverse();
        material.events.push(row(1_000, Some(from - 1.0)));
        material.events.push(row(1_001, None));
        material.marks.clear();
        material.setting_changes.clear();
        let texts: Vec<String> = marks(&material).into_iter().map(|mark| mark.text).collect();
        let expected: Vec<String> = (1..=SLOW).map(|at| format!("slow {at}")).collect();
        assert_eq!(texts, expected);
    }
}
