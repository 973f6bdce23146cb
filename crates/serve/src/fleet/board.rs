// SPDX-License-Identifier: PostgreSQL
//! The known results about the fleet and its parts, and the part to query next.
//!
//! A part is queried while somebody views its page. The thread that runs queries writes results; requests read
//! them and record that the page is being viewed. One lock protects everything, and nobody waits while holding
//! it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fleet_sql::Only;
use report::fleet::Fleet;

/// Maximum number of parts that can be viewed at the same time.
const PARTS: usize = 16;
/// Minimum time after a request for which a page counts as viewed. Pages send a request every two seconds.
const VIEWED: Duration = Duration::from_secs(15);

/// A part of the fleet.
#[derive(Debug)]
struct Scope {
    fleet: Fleet,
    /// When the page was last requested.
    viewed: Option<Instant>,
    /// When to run the queries again.
    due: Instant,
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
    pub fn new(only: Only, engine: String, interval: Duration, has_doctor: bool) -> Board {
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

    fn part(&self, only: Only) -> Scope {
        let fleet = Fleet::new(only, self.engine.clone(), self.interval.as_secs_f64());
        let fleet = if self.has_doctor { fleet.with_doctor() } else { fleet };
        Scope { fleet, viewed: None, due: Instant::now(), changes: 0 }
    }

    fn state(&self) -> MutexGuard<'_, BoardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The part that the command line selects.
    pub fn whole(&self) -> Only {
        self.state().parts.first().map_or_else(Only::default, |part| part.fleet.only.clone())
    }

    /// The known results about a part, and the number of changes to them. From now on the part counts as viewed.
    /// The error says why it cannot be viewed.
    pub fn view(&self, only: &Only) -> Result<(Fleet, u64), String> {
        let mut state = self.state();
        let now = Instant::now();
        let viewed = |part: &Scope| part.viewed.is_some_and(|viewed| now < viewed + self.viewed());
        let at = match state.parts.iter().position(|part| part.fleet.only == *only) {
            Some(at) => at,
            None => {
                if state.parts.len() >= PARTS {
                    let idle = state.parts.iter().skip(1).position(|part| !viewed(part));
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

    fn viewed(&self) -> Duration {
        VIEWED.max(self.interval * 2)
    }

    /// Waits until a part has to be queried; `None` once the board is closed.
    pub fn next(&self) -> Option<Only> {
        let mut state = self.state();
        loop {
            if state.ended {
                return None;
            }
            let now = Instant::now();
            let viewed =
                |part: &&mut Scope| part.viewed.is_some_and(|viewed| now < viewed + self.viewed());
            let first = state.parts.iter_mut().filter(viewed).min_by_key(|part| part.due);
            let wait = match first {
                Some(part) if part.due <= now => {
                    part.due = now + self.interval;
                    return Some(part.fleet.only.clone());
                }
                Some(part) => part.due - now,
                None => self.interval,
            };
            let waited = self.changed.wait_timeout(state, wait);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Stores a result, or an error, in the known results about a part.
    pub fn put(&self, only: &Only, take: impl FnOnce(&mut Fleet)) {
        let mut state = self.state();
        if let Some(part) = state.parts.iter_mut().find(|part| part.fleet.only == *only) {
            take(&mut part.fleet);
            part.changes += 1;
        }
    }

    /// All queries about a part have run. The next round does not start at once, even if this one took longer
    /// than an interval.
    pub fn asked(&self, only: &Only) {
        let mut state = self.state();
        if let Some(part) = state.parts.iter_mut().find(|part| part.fleet.only == *only) {
            part.due = part.due.max(Instant::now() + self.interval / 2);
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

    fn host(name: &str) -> Only {
        Only { host: Some(name.into()), cluster: None }
    }

    #[test]
    fn parts_are_asked_about_in_turn_while_they_are_viewed() {
        let board = Board::new(Only::default(), "duckdb".into(), Duration::from_secs(3600), false);
        assert_eq!(board.next(), Some(Only::default()));
        board.view(&host("a")).unwrap();
        assert_eq!(board.next(), Some(host("a")));
        board.put(&host("a"), |fleet| fleet.engine = "other".into());
        let (known, changes) = board.view(&host("a")).unwrap();
        assert_eq!((&*known.engine, changes), ("other", 1));
        board.end();
        assert_eq!(board.next(), None);
    }

    #[test]
    fn the_number_of_parts_is_limited() {
        let board = Board::new(Only::default(), "duckdb".into(), Duration::from_secs(3600), false);
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
        assert_eq!(board.whole(), Only::default());
    }
}
