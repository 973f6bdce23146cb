// SPDX-License-Identifier: PostgreSQL
//! Who blocked others, when and for how long, from readings at the end of each interval.

use std::collections::BTreeMap;

use segment::interval::SLACK;

use super::{Forest, Party};
use crate::units::duration;

/// Number of stretches that are kept of one session, the last ones.
const STRETCHES: usize = 1_000;

/// A session that blocked others and was not blocked itself.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Blocker {
    /// The session, at the moment when others had waited longest for it in total.
    pub root: Party,
    /// All sessions that blocked or were blocked then, ...
    pub forest: Forest,
    /// ... and when that was, seconds since 1970.
    pub time: f64,
    /// How long they had waited, seconds.
    pub waited_seconds: f64,
    /// How many waited at the same time, directly or indirectly, at most.
    pub waiters: usize,
    /// How long it blocked at least one session, from samples.
    pub seconds: f64,
    /// The total time of all sessions that waited, from samples.
    pub waiting_seconds: f64,
    /// The part of it for which they can have waited for this session, and not for another one before it.
    pub kept_seconds: f64,
    /// From when to when it blocked at least one session without a break, oldest first; seconds since 1970.
    pub stretches: Vec<(f64, f64)>,
}

impl Blocker {
    /// When it first blocked a session, seconds since 1970.
    pub fn from(&self) -> f64 {
        self.stretches.first().map_or(self.time, |(from, _)| *from)
    }

    /// "blocked up to 8 sessions, 12 s of their time".
    pub fn harm(&self) -> String {
        format!(
            "blocked up to {} {}, {} of their time",
            self.waiters,
            if self.waiters == 1 { "session" } else { "sessions" },
            duration(self.waiting_seconds)
        )
    }

    /// When it last blocked a session, seconds since 1970.
    pub fn to(&self) -> f64 {
        self.stretches.last().map_or(self.time, |(_, to)| *to)
    }
}

/// The sessions that blocked others and were not blocked themselves, by process and application.
#[derive(Debug, Clone, Default)]
pub struct Blockers(BTreeMap<(i32, Option<String>), Blocker>);

impl Blockers {
    /// Adds who blocked whom at the end of an interval, for the whole of it. `time` is in seconds since 1970, `length` in seconds.
    pub fn add(&mut self, forest: &Forest, time: f64, length: f64) {
        for root in &forest.roots {
            let sum = self.0.entry((root.pid, root.application.clone())).or_default();
            sum.seconds += length;
            sum.waiting_seconds += root.waiters as f64 * length;
            sum.kept_seconds += root.keeps_all_within(length);
            add_stretch(&mut sum.stretches, (time - length, time));
            sum.waiters = sum.waiters.max(root.waiters);
            let waited = root.keeps_all_seconds();
            if waited >= sum.waited_seconds {
                (sum.waited_seconds, sum.time) = (waited, time);
                sum.root = Party { blocks: Vec::new(), ..root.clone() };
                sum.forest = forest.clone();
            }
        }
    }

    /// Adds later ones.
    pub fn append(&mut self, later: &Blockers) {
        for (session, later) in &later.0 {
            let sum = self.0.entry(session.clone()).or_default();
            sum.seconds += later.seconds;
            sum.waiting_seconds += later.waiting_seconds;
            sum.kept_seconds += later.kept_seconds;
            for stretch in &later.stretches {
                add_stretch(&mut sum.stretches, *stretch);
            }
            sum.waiters = sum.waiters.max(later.waiters);
            if later.waited_seconds >= sum.waited_seconds {
                (sum.waited_seconds, sum.time) = (later.waited_seconds, later.time);
                (sum.root, sum.forest) = (later.root.clone(), later.forest.clone());
            }
        }
    }

    /// The session that kept others waiting for more than half of the time that anybody did; `None`: there is none. Whoever gets
    /// a lock that is passed on blocks all that queue for it, but only for a moment.
    pub fn main(&self) -> Option<&Blocker> {
        let all: f64 = self.0.values().map(|blocker| blocker.kept_seconds).sum();
        self.0.values().find(|blocker| blocker.kept_seconds > all / 2.0)
    }

    /// Those with the most waiting time of others, most first.
    pub fn most(self, number: usize) -> Vec<Blocker> {
        let mut blockers: Vec<Blocker> = self.0.into_values().collect();
        blockers.sort_by(|a, b| b.waiting_seconds.total_cmp(&a.waiting_seconds));
        blockers.truncate(number);
        blockers
    }
}

/// Adds a stretch of time, or continues the last one.
fn add_stretch(stretches: &mut Vec<(f64, f64)>, (from, to): (f64, f64)) {
    match stretches.last_mut() {
        Some((_, end)) if from - *end < SLACK * (to - from) => *end = end.max(to),
        _ => stretches.push((from, to)),
    }
    stretches.drain(..stretches.len().saturating_sub(STRETCHES));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocking::Wait;

    fn forest(pid: i32, waiters: usize) -> Forest {
        let wait = Some(Wait { seconds: waiters as f64, ..Wait::default() });
        let blocks = vec![Party { wait, ..Party::default() }];
        let root =
            Party { pid, application: Some("shop".into()), waiters, blocks, ..Party::default() };
        Forest { blocked: waiters, roots: vec![root], ..Forest::default() }
    }

    #[test]
    fn a_session_that_blocks_again_has_two_stretches() {
        let (mut all, mut later) = (Blockers::default(), Blockers::default());
        for (time, waiters) in [(1.0, 1), (2.1, 3), (10.0, 2)] {
            all.add(&forest(7, waiters), time, 1.0);
        }
        later.add(&forest(7, 2), 11.0, 1.0);
        later.add(&forest(8, 1), 12.0, 1.0);
        all.append(&later);
        let found = all.most(9);
        assert_eq!(found.len(), 2);
        let first = &found[0];
        assert_eq!((first.root.pid, first.waiters, first.time), (7, 3, 2.1));
        assert_eq!(first.stretches, [(0.0, 2.1), (9.0, 11.0)]);
        assert_eq!((first.from(), first.to()), (0.0, 11.0));
        assert_eq!((first.seconds, first.waiting_seconds), (4.0, 8.0));
        assert_eq!(found[1].stretches, [(11.0, 12.0)]);
    }

    #[test]
    fn whoever_has_just_got_a_lock_is_not_the_one_who_keeps_others_waiting() {
        let of_row = |pid, waiters: usize, age| {
            let wait = Some(Wait { seconds: 0.9, lock_type: "tuple", ..Wait::default() });
            let blocks = vec![Party { wait, ..Party::default() }; waiters];
            let transaction_seconds = Some(age);
            let root = Party { pid, waiters, blocks, transaction_seconds, ..Party::default() };
            Forest { blocked: waiters, roots: vec![root], ..Forest::default() }
        };
        let mut all = Blockers::default();
        all.add(&of_row(1, 2, 3.0), 1.0, 1.0);
        for (pid, time) in [(2, 2.0), (2, 3.0), (3, 4.0)] {
            all.add(&of_row(pid, 9, 0.01), time, 1.0);
        }
        let main = all.main().unwrap();
        assert_eq!((main.root.pid, main.kept_seconds, main.waiting_seconds), (1, 1.8, 2.0));
        // Two of the same kind.
        all.add(&of_row(4, 2, 3.0), 5.0, 1.0);
        assert_eq!(all.main(), None);
    }
}
