// SPDX-License-Identifier: PostgreSQL
//! The intervals of the recent past, and which of them is shown.
//!
//! The history is limited in time and in memory. Each interval stores what the panes show, with a limited number
//! of statements, those with the most time. The accounts of each session and the whole table of statements are
//! stored only for the newest interval.

use std::collections::VecDeque;
use std::mem::{size_of, size_of_val};

use diagnose::Diagnoses;
use segment::commits::Commits;
use segment::files::{FileRow, ProcessFileRow};
use segment::functions::{EdgeRow, FunctionRow};
use segment::interval::{AccountRow, ActivityRow, CommandRow, SessionRow, StatisticRow};
use segment::locks::LwlockRow;

use view::blocking::Party;
use view::statements::{SlowExecutionFigures, StatementFigures};
use view::Reading;

/// Intervals are stored for this time, seconds, ...
pub const SECONDS: f64 = 3600.0;
/// ... or less, if they take more memory than this by our estimate, bytes.
const BYTES: usize = 256 << 20;
/// Number of statements that are stored for an interval that is not the newest.
pub const STATEMENTS: usize = 100;
/// Estimated memory of a row beyond its own size, for names and perhaps a histogram.
const PLAIN: usize = 64;
const TIMED: usize = 512;
/// Estimated memory of the diagnoses.
const ANSWER: usize = 4096;

/// The stored intervals, oldest first, numbered from 1.
#[derive(Debug)]
pub struct History {
    kept: VecDeque<KeptInterval>,
    /// Number of the oldest stored interval.
    first: u64,
    /// Total memory and total time of all of them.
    bytes: usize,
    seconds: f64,
    /// The selected interval; `None` to follow the newest.
    at: Option<u64>,
    /// Why the next interval does not directly follow the last one.
    gap: Option<String>,
    max_seconds: f64,
    max_bytes: usize,
}

#[derive(Debug)]
struct KeptInterval {
    reading: Box<Reading>,
    /// The diagnoses at that time; `None` for a recorded interval, which has everything to compute them again.
    answer: Option<Diagnoses>,
    bytes: usize,
    /// Why it does not directly follow the previous one.
    gap: Option<String>,
}

/// The position in the history.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Position {
    /// Number of the interval, from 1.
    pub number: u64,
    /// Numbers of the oldest and the newest stored interval.
    pub kept: (u64, u64),
    /// When it ended, seconds since 1970.
    pub time: f64,
    /// How long before the end of the newest one.
    pub ago_seconds: f64,
}

impl Default for History {
    fn default() -> History {
        History::with_limits(SECONDS, BYTES)
    }
}

impl History {
    /// An empty history with limits in seconds and bytes.
    pub fn with_limits(max_seconds: f64, max_bytes: usize) -> History {
        History {
            kept: VecDeque::new(),
            first: 1,
            bytes: 0,
            seconds: 0.0,
            at: None,
            gap: None,
            max_seconds,
            max_bytes,
        }
    }

    /// Adds the next interval; drops old ones beyond the limits.
    pub fn push(&mut self, mut reading: Box<Reading>) {
        let answer = reading.recorded.is_none().then(|| Diagnoses::examine(&reading));
        // It is large, and only the diagnoses need it.
        reading.recent = None;
        if let Some(last) = self.kept.back_mut() {
            slim(&mut last.reading);
            self.bytes -= last.bytes;
            last.bytes = weight(&last.reading);
            self.bytes += last.bytes;
        }
        let bytes = weight(&reading);
        self.bytes += bytes;
        // Uses their lengths, because after the system's clock was set, times of day would empty the history or
        // never limit it.
        self.seconds += reading.interval.interval_seconds;
        let gap = self.gap.take();
        self.kept.push_back(KeptInterval { reading, answer, bytes, gap });
        let too_much = |history: &History| {
            history.bytes > history.max_bytes || history.seconds > history.max_seconds
        };
        while self.kept.len() > 1 && too_much(self) {
            if let Some(oldest) = self.kept.pop_front() {
                self.bytes -= oldest.bytes;
                self.seconds -= oldest.reading.interval.interval_seconds;
                self.first += 1;
            }
        }
        // If the selected interval was dropped, the oldest is shown.
        self.at = self.at.map(|at| at.max(self.first));
    }

    /// Marks a gap: the next interval does not directly follow the last one, for this reason. Only the first of
    /// several reasons is stored.
    pub fn gap(&mut self, reason: String) {
        self.gap.get_or_insert(reason);
    }

    /// Why the shown interval does not directly follow the previous one.
    pub fn gap_before(&self) -> Option<&str> {
        self.kept.get(self.index()?)?.gap.as_deref()
    }

    /// Forgets all intervals.
    pub fn clear(&mut self) {
        let next = self.last() + 1;
        self.kept.clear();
        (self.bytes, self.seconds) = (0, 0.0);
        (self.at, self.gap, self.first) = (None, None, next);
    }

    /// Number of the newest interval.
    fn last(&self) -> u64 {
        (self.first + self.kept.len() as u64).saturating_sub(1)
    }

    fn number(&self) -> u64 {
        self.at.unwrap_or_else(|| self.last())
    }

    fn index(&self) -> Option<usize> {
        self.number().checked_sub(self.first).map(|index| index as usize)
    }

    /// The shown interval.
    pub fn shown(&self) -> Option<&Reading> {
        self.kept.get(self.index()?).map(|kept| &*kept.reading)
    }

    /// The diagnoses of the shown interval, if they are stored.
    pub fn answer(&self) -> Option<&Diagnoses> {
        self.kept.get(self.index()?)?.answer.as_ref()
    }

    /// The shown interval, mutable.
    pub fn shown_mut(&mut self) -> Option<&mut Reading> {
        let index = self.index()?;
        self.kept.get_mut(index).map(|kept| &mut *kept.reading)
    }

    /// Drops the last seconds before each interval, which are large and of which only the diagnoses of the shown one need theirs.
    pub fn forget_recent(&mut self) {
        self.kept.iter_mut().for_each(|kept| kept.reading.recent = None);
    }

    /// Whether the newest interval is shown and will be replaced by newer ones.
    pub fn is_live(&self) -> bool {
        self.at.is_none()
    }

    /// Whether there is a newer interval than the one shown.
    pub fn is_past(&self) -> bool {
        self.number() < self.last()
    }

    /// Keeps showing the current interval.
    pub fn hold(&mut self) {
        self.at = (!self.kept.is_empty()).then(|| self.number());
    }

    /// Shows the newest again.
    pub fn live(&mut self) {
        self.at = None;
    }

    /// Moves by a number of intervals. Returns by how many this goes beyond the stored ones.
    pub fn step(&mut self, by: i64) -> i64 {
        if self.kept.is_empty() {
            return by;
        }
        let wanted = i128::from(self.number()) + i128::from(by);
        let number = wanted.clamp(i128::from(self.first), i128::from(self.last()));
        self.at = Some(number as u64);
        (wanted - number) as i64
    }

    /// Shows the first interval that ended at this time or later, seconds since 1970. Returns whether the time is
    /// within the stored intervals.
    pub fn seek(&mut self, time: f64) -> bool {
        let index = self.kept.partition_point(|kept| kept.reading.interval.time < time);
        let begun = |kept: &KeptInterval| {
            kept.reading.interval.time - kept.reading.interval.interval_seconds
        };
        let within = index < self.kept.len() && self.kept.front().is_some_and(|k| begun(k) <= time);
        let index = index.min(self.kept.len().saturating_sub(1));
        if !self.kept.is_empty() {
            self.at = Some(self.first + index as u64);
        }
        within
    }

    /// The current position; `None` if there is no interval yet.
    pub fn position(&self) -> Option<Position> {
        let (shown, newest) = (self.shown()?, self.kept.back()?);
        Some(Position {
            number: self.number(),
            kept: (self.first, self.last()),
            time: shown.interval.time,
            ago_seconds: newest.reading.interval.time - shown.interval.time,
        })
    }

    /// The shown interval and the ones before it, newest first, at most `n`; a gap is `None` and counts as one.
    pub fn back(&self, n: usize) -> impl Iterator<Item = Option<&Reading>> {
        let end = self.index().map_or(0, |index| (index + 1).min(self.kept.len()));
        self.kept
            .iter()
            .take(end)
            .rev()
            .flat_map(move |kept| {
                [Some(&*kept.reading)].into_iter().chain(kept.gap.as_ref().map(|_| None))
            })
            .take(n)
    }
}

/// Drops everything that no pane shows.
fn slim(reading: &mut Reading) {
    for session in &mut reading.interval.sessions {
        session.accounts = Vec::new();
    }
    if let Some(statements) = &mut reading.statements {
        statements.forget_source();
        // They are ordered by time, longest first.
        statements.rows.truncate(STATEMENTS);
        statements.rows.shrink_to_fit();
        let rows = &statements.rows;
        statements.slow_executions.retain(|slow| rows.iter().any(|row| row.key == slow.key));
    }
}

/// Estimated memory, bytes.
fn weight(reading: &Reading) -> usize {
    let interval = &reading.interval;
    let rows = |n: usize, row: usize, more: usize| n * (row + more);
    let accounts: usize =
        interval.sessions.iter().map(|s| s.accounts.len() + s.holding.len()).sum();
    let statements = reading.statements.as_ref().map_or(0, |statements| {
        let of_row = |row: &StatementFigures| {
            let lists = size_of_val(&*row.activities) + size_of_val(&*row.histogram);
            size_of::<StatementFigures>() + PLAIN + lists
        };
        let values = statements.slow_executions.iter().map(|slow| slow.parameters.len());
        statements.rows.iter().map(of_row).sum::<usize>()
            + 256 * statements.current.len()
            + rows(values.len(), size_of::<SlowExecutionFigures>(), PLAIN)
            + values.sum::<usize>()
    });
    let blocked =
        reading.blocking.as_ref().map_or(0, |blocking| blocking.blocked + blocking.roots.len());
    size_of::<Reading>()
        + ANSWER
        + rows(blocked, size_of::<Party>(), TIMED)
        + size_of::<Commits>()
        + statements
        + rows(interval.sessions.len(), size_of::<SessionRow>(), 2 * PLAIN)
        + rows(accounts, 64, 0)
        + rows(interval.ledger.len(), size_of::<AccountRow>(), TIMED)
        + rows(interval.waits.len(), size_of::<ActivityRow>(), 0)
        + rows(interval.commands.len(), size_of::<CommandRow>(), PLAIN)
        + rows(interval.lwlocks.len(), size_of::<LwlockRow>(), 3 * TIMED)
        + rows(interval.functions.len(), size_of::<FunctionRow>(), TIMED)
        + rows(interval.edges.len(), size_of::<EdgeRow>(), 0)
        + rows(interval.files.len(), size_of::<FileRow>(), TIMED)
        + rows(interval.file_processes.len(), size_of::<ProcessFileRow>(), PLAIN)
        + rows(interval.statistics.len(), size_of::<StatisticRow>(), PLAIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use view::sample;

    fn reading(time: f64) -> Box<Reading> {
        let mut reading = Box::new(sample::reading());
        reading.interval.time = time;
        reading
    }

    fn filled(n: u32, mut history: History) -> History {
        let sample = reading(0.0).interval;
        for second in 1..=n {
            let interval = segment::Interval { time: f64::from(second), ..sample.clone() };
            history.push(Box::new(Reading::new(interval)));
        }
        history
    }

    fn times(history: &History, n: usize) -> Vec<Option<f64>> {
        history.back(n).map(|reading| reading.map(|reading| reading.interval.time)).collect()
    }

    #[test]
    fn the_newest_is_shown_until_the_user_steps_back() {
        let mut history = filled(5, History::default());
        assert!(history.is_live() && !history.is_past());
        assert_eq!(history.shown().unwrap().interval.time, 5.0);
        assert_eq!(history.step(-2), 0);
        assert!(!history.is_live() && history.is_past());
        history.push(reading(6.0));
        assert_eq!(history.shown().unwrap().interval.time, 3.0);
        let position = history.position().unwrap();
        assert_eq!((position.number, position.kept, position.ago_seconds), (3, (1, 6), 3.0));
        assert_eq!(times(&history, 2), [Some(3.0), Some(2.0)]);
        assert_eq!(history.step(-9), -7, "it ends at the oldest");
        assert_eq!(history.shown().unwrap().interval.time, 1.0);
        assert_eq!(history.step(100), 95);
        assert!(!history.is_past() && !history.is_live());
        history.live();
        history.push(reading(7.0));
        assert_eq!(history.shown().unwrap().interval.time, 7.0);
    }

    #[test]
    fn it_is_limited_by_time_and_by_memory() {
        let history = filled(200, History::with_limits(60.0, BYTES));
        assert_eq!(history.position().unwrap().kept, (141, 200));
        let one = weight(filled(1, History::default()).shown().unwrap());
        let mut history = filled(200, History::with_limits(SECONDS, 10 * one));
        let (first, last) = history.position().unwrap().kept;
        assert!((9..=40).contains(&(last - first)), "{first} {last}");
        assert!(history.bytes <= 10 * one);
        // The selected interval is dropped too, and the oldest takes its place.
        history.step(i64::MIN);
        history.push(reading(201.0));
        history.push(reading(202.0));
        assert_eq!(history.position().unwrap().number, history.first);
    }

    #[test]
    fn setting_the_clock_neither_empties_it_nor_makes_it_grow() {
        let mut history = filled(50, History::with_limits(60.0, BYTES));
        history.push(reading(86_400.0));
        history.push(reading(-86_400.0));
        assert_eq!(history.position().unwrap().kept, (1, 52));
        (0..20).for_each(|_| history.push(reading(40.0)));
        assert_eq!(history.position().unwrap().kept, (13, 72));
    }

    #[test]
    fn a_gap_is_shown_after_it() {
        let mut history = filled(2, History::default());
        history.gap("no server".into());
        history.gap("it is absent".into());
        history.push(reading(9.0));
        assert_eq!(times(&history, 9), [Some(9.0), None, Some(2.0), Some(1.0)]);
        assert_eq!(history.gap_before(), Some("no server"), "the first reason");
        assert_eq!(times(&history, 2), [Some(9.0), None]);
        history.step(-1);
        assert_eq!(times(&history, 9), [Some(2.0), Some(1.0)]);
        assert_eq!(times(&History::default(), 9), []);
        history.clear();
        history.push(reading(10.0));
        assert_eq!((history.position().unwrap().kept, history.gap_before()), ((4, 4), None));
    }

    #[test]
    fn a_time_is_found_and_one_outside_is_reported() {
        let mut history = filled(9, History::default());
        for (time, there, shown) in [
            (3.0, true, 3.0),
            (3.5, true, 4.0),
            (0.5, true, 1.0),
            (-4.0, false, 1.0),
            (99.0, false, 9.0),
        ] {
            assert_eq!(history.seek(time), there, "{time}");
            assert_eq!(history.shown().unwrap().interval.time, shown);
        }
        assert!(!History::default().seek(1.0));
    }

    #[test]
    fn only_the_newest_keeps_data_that_no_pane_shows() {
        let mut history = History::default();
        for time in [1.0, 2.0] {
            let mut reading = reading(time);
            let account = segment::interval::SessionAccount {
                phase: "execute".into(),
                activity: "cpu".into(),
                count: 1,
                seconds: 1.0,
                idle: false,
            };
            reading.interval.sessions[0].accounts.push(account);
            let mut row = reading.statements.as_ref().unwrap().rows[0].clone();
            row.histogram.clear();
            reading
                .statements
                .iter_mut()
                .for_each(|statement| statement.rows = vec![row.clone(); 400]);
            history.push(reading);
        }
        assert_eq!(history.shown().unwrap().interval.sessions[0].accounts.len(), 1);
        assert_eq!(history.shown().unwrap().statements.as_ref().unwrap().rows.len(), 400);
        history.step(-1);
        assert_eq!(history.shown().unwrap().statements.as_ref().unwrap().rows.len(), STATEMENTS);
        assert!(history.shown().unwrap().interval.sessions[0].accounts.is_empty());
    }
}
