// SPDX-License-Identifier: PostgreSQL
//! The known results about the fleet and its parts, and the part to query next.
//!
//! A part is queried while somebody views its page. The thread that runs queries writes results; requests read
//! them and record that the page is being viewed. One lock protects everything, and nobody waits while holding
//! it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fleet_sql::HostFilter;
use report::fleet::Fleet;

/// Maximum number of parts that can be viewed at the same time.
const PARTS: usize = 16;
/// Minimum time after a request for which a page counts as viewed. Pages send a request every two seconds.
const VIEWED: Duration = Duration::from_secs(15);

/// What is found out about a part, each by a thread of its own: a thousand hosts are diagnosed in a quarter of an hour, during which
/// the queries go on.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    Queries,
    Diagnoses,
}

/// A part of the fleet.
#[derive(Debug)]
struct Scope {
    fleet: Fleet,
    /// When the page was last requested.
    viewed: Option<Instant>,
    /// When to do each [`Work`] again.
    due: [Instant; 2],
    /// Number of changes.
    changes: u64,
}

#[derive(Debug)]
struct BoardState {
    parts: Vec<Scope>,
    ended: bool,
}

/// The parts; the first one is that of the command line, and stays.
#[derive(Debug)]
pub struct Board {
    state: Mutex<BoardState>,
    changed: Condvar,
    engine: String,
    interval: Duration,
    /// Whether hosts are diagnosed from their recordings.
    has_doctor: bool,
}

impl Board {
    /// A board without results; `has_doctor`: hosts are diagnosed from their recordings.
    pub fn new(only: HostFilter, engine: String, interval: Duration, has_doctor: bool) -> Board {
        let board = Board {
            state: Mutex::new(BoardState { parts: Vec::new(), ended: false }),
            changed: Condvar::new(),
            engine,
            interval,
            has_doctor,
        };
        let mut first = board.part(only);
        // The first page should not have to wait.
        first.viewed = Some(Instant::now());
        board.state().parts.push(first);
        board
    }

    fn part(&self, only: HostFilter) -> Scope {
        let fleet = Fleet::new(only, self.engine.clone(), self.interval.as_secs_f64());
        let fleet = if self.has_doctor { fleet.with_doctor() } else { fleet };
        Scope { fleet, viewed: None, due: [Instant::now(); 2], changes: 0 }
    }

    fn state(&self) -> MutexGuard<'_, BoardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The part that the command line selects.
    pub fn whole(&self) -> HostFilter {
        self.state().parts.first().map_or_else(HostFilter::default, |part| part.fleet.only.clone())
    }

    /// The known results about a part, and the number of changes to them. From now on the part counts as viewed.
    /// The error says why it cannot be viewed.
    pub fn view(&self, only: &HostFilter) -> Result<(Fleet, u64), String> {
        let mut state = self.state();
        let now = Instant::now();
        let at = match state.parts.iter().position(|part| part.fleet.only == *only) {
            Some(at) => at,
            None => {
                if state.parts.len() >= PARTS {
                    let idle = state.parts.iter().skip(1).position(|part| !self.views(part, now));
                    let idle =
                        idle.ok_or("too many hosts are being viewed at once; close some pages")?;
                    state.parts.remove(idle + 1);
                }
                let part = self.part(only.clone());
                state.parts.push(part);
                state.parts.len() - 1
            }
        };
        let part = &mut state.parts[at];
        part.viewed = Some(now);
        let known = (part.fleet.clone(), part.changes);
        self.changed.notify_all();
        Ok(known)
    }

    fn views(&self, part: &Scope, now: Instant) -> bool {
        part.viewed.is_some_and(|viewed| now < viewed + VIEWED.max(self.interval * 2))
    }

    /// Whether somebody views a part.
    pub fn is_viewed(&self, only: &HostFilter) -> bool {
        let state = self.state();
        let now = Instant::now();
        !state.ended
            && state.parts.iter().any(|part| part.fleet.only == *only && self.views(part, now))
    }

    /// Waits until this work has to be done for a part; `None` once the board is closed.
    pub fn next(&self, work: Work) -> Option<HostFilter> {
        let mut state = self.state();
        loop {
            if state.ended {
                return None;
            }
            let now = Instant::now();
            let due = |part: &Scope| part.due[work as usize];
            let viewed = state.parts.iter_mut().filter(|part| self.views(part, now));
            let wait = match viewed.min_by_key(|part| due(part)) {
                Some(part) if due(part) <= now => {
                    part.due[work as usize] = now + self.interval;
                    return Some(part.fleet.only.clone());
                }
                Some(part) => due(part) - now,
                None => self.interval,
            };
            let waited = self.changed.wait_timeout(state, wait);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Stores a result, or an error, in the known results about a part.
    pub fn put(&self, only: &HostFilter, take: impl FnOnce(&mut Fleet)) {
        let mut state = self.state();
        if let Some(part) = state.parts.iter_mut().find(|part| part.fleet.only == *only) {
            take(&mut part.fleet);
            part.changes += 1;
        }
    }

    /// A part's work is done. The next round does not start at once, even if this one took longer than an interval.
    pub fn done(&self, only: &HostFilter, work: Work) {
        let mut state = self.state();
        if let Some(part) = state.parts.iter_mut().find(|part| part.fleet.only == *only) {
            let due = &mut part.due[work as usize];
            *due = (*due).max(Instant::now() + self.interval / 2);
        }
    }

    /// Closes the board.
    pub fn end(&self) {
        self.state().ended = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> HostFilter {
        HostFilter { host: Some(name.into()), cluster: None }
    }

    #[test]
    fn parts_are_asked_about_in_turn_while_they_are_viewed() {
        let board =
            Board::new(HostFilter::default(), "duckdb".into(), Duration::from_secs(3600), false);
        assert_eq!(board.next(Work::Queries), Some(HostFilter::default()));
        board.view(&host("a")).unwrap();
        assert_eq!(board.next(Work::Queries), Some(host("a")));
        board.put(&host("a"), |fleet| fleet.engine = "other".into());
        let (known, changes) = board.view(&host("a")).unwrap();
        assert_eq!((&*known.engine, changes), ("other", 1));
        board.end();
        assert_eq!(board.next(Work::Queries), None);
    }

    #[test]
    fn diagnoses_do_not_delay_queries_and_end_when_nobody_looks() {
        let board =
            Board::new(HostFilter::default(), "duckdb".into(), Duration::from_secs(3600), true);
        assert_eq!(board.next(Work::Diagnoses), Some(HostFilter::default()));
        assert_eq!(board.next(Work::Queries), Some(HostFilter::default()));
        assert!(board.is_viewed(&HostFilter::default()) && !board.is_viewed(&host("a")));
        board.state().parts[0].viewed = None;
        assert!(!board.is_viewed(&HostFilter::default()));
    }

    #[test]
    fn the_number_of_parts_is_limited() {
        let board =
            Board::new(HostFilter::default(), "duckdb".into(), Duration::from_secs(3600), false);
        for n in 1..PARTS {
            board.view(&host(&n.to_string())).unwrap();
        }
        assert!(board.view(&host("one-more")).unwrap_err().contains("too many"));
        assert!(board.view(&host("1")).is_ok());
        // Parts that nobody views any more make space; the whole fleet stays.
        for part in &mut board.state().parts {
            part.viewed = None;
        }
        board.view(&host("one-more")).unwrap();
        assert_eq!(board.whole(), HostFilter::default());
    }
}
