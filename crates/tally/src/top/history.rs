// SPDX-License-Identifier: PostgreSQL
//! The intervals that were seen, as far back as they are kept, and which of them is looked at.
//!
//! Bounded twice: by time and by memory. What is kept of an interval is what the panes show of
//! it, of statements those with most time; the accounts of each session and the whole table of
//! statements are of the newest only.

use std::collections::VecDeque;
use std::mem::{size_of, size_of_val};

use segment::commits::Commits;
use segment::files::{FileRow, ProcessFileRow};
use segment::functions::{EdgeRow, FunctionRow};
use segment::interval::{AccountRow, ActivityRow, CommandRow, SessionRow, StatisticRow};
use segment::locks::LwlockRow;

use view::statements::StatementRow;
use view::Reading;

/// Intervals are kept for so long, seconds, ...
const SECONDS: f64 = 3600.0;
/// ... unless they take more memory than this, bytes, by our own reckoning.
const BYTES: usize = 256 << 20;
/// So many statements are kept of an interval that is not the newest.
pub const STATEMENTS: usize = 100;
/// What a row holds beside itself: names, and where it has one, a histogram.
const PLAIN: usize = 64;
const TIMED: usize = 512;

/// The intervals that are kept, oldest first; they are numbered from 1 on.
#[derive(Debug)]
pub struct History {
    kept: VecDeque<Kept>,
    /// Number of the oldest that is kept.
    first: u64,
    /// What all of them take, and how long they were together.
    bytes: usize,
    seconds: f64,
    /// The one that is looked at; `None`: always the newest.
    at: Option<u64>,
    /// Why what comes next does not follow on what was last.
    gap: Option<String>,
    most_seconds: f64,
    most_bytes: usize,
}

#[derive(Debug)]
struct Kept {
    reading: Box<Reading>,
    bytes: usize,
    /// Why it does not follow on the one before.
    gap: Option<String>,
}

/// Where in the history one looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// Number of the interval, from 1 on.
    pub number: u64,
    /// Numbers of the oldest and the newest that there are.
    pub kept: (u64, u64),
    /// When it ended, seconds since 1970.
    pub time: f64,
    /// How long before the newest one that was.
    pub ago_seconds: f64,
}

impl Default for History {
    fn default() -> History {
        History::with_room(SECONDS, BYTES)
    }
}

impl History {
    /// An empty one for so many seconds and bytes.
    pub fn with_room(most_seconds: f64, most_bytes: usize) -> History {
        History {
            kept: VecDeque::new(),
            first: 1,
            bytes: 0,
            seconds: 0.0,
            at: None,
            gap: None,
            most_seconds,
            most_bytes,
        }
    }

    /// Take the next interval; what is too old or too much goes.
    pub fn push(&mut self, reading: Box<Reading>) {
        if let Some(last) = self.kept.back_mut() {
            slim(&mut last.reading);
            self.bytes -= last.bytes;
            last.bytes = weight(&last.reading);
            self.bytes += last.bytes;
        }
        let bytes = weight(&reading);
        self.bytes += bytes;
        // By their lengths: a clock that is set must neither empty it nor keep them for ever.
        self.seconds += reading.interval.interval_seconds;
        let gap = self.gap.take();
        self.kept.push_back(Kept { reading, bytes, gap });
        let too_much = |it: &History| it.bytes > it.most_bytes || it.seconds > it.most_seconds;
        while self.kept.len() > 1 && too_much(self) {
            if let Some(oldest) = self.kept.pop_front() {
                self.bytes -= oldest.bytes;
                self.seconds -= oldest.reading.interval.interval_seconds;
                self.first += 1;
            }
        }
        // Who looks at what has gone looks at the oldest that there is.
        self.at = self.at.map(|at| at.max(self.first));
    }

    /// What comes next does not follow on what was last, for this reason. Of several reasons the
    /// first counts.
    pub fn gap(&mut self, reason: String) {
        self.gap.get_or_insert(reason);
    }

    /// Why the interval that is looked at does not follow on the one before.
    pub fn gap_before(&self) -> Option<&str> {
        self.kept.get(self.index()?)?.gap.as_deref()
    }

    /// Forget all of it.
    pub fn clear(&mut self) {
        let next = self.last() + 1;
        self.kept.clear();
        (self.bytes, self.seconds) = (0, 0.0);
        (self.at, self.gap, self.first) = (None, None, next);
    }

    /// Number of the newest.
    fn last(&self) -> u64 {
        (self.first + self.kept.len() as u64).saturating_sub(1)
    }

    fn number(&self) -> u64 {
        self.at.unwrap_or_else(|| self.last())
    }

    fn index(&self) -> Option<usize> {
        self.number().checked_sub(self.first).map(|index| index as usize)
    }

    /// The interval that is looked at.
    pub fn shown(&self) -> Option<&Reading> {
        self.kept.get(self.index()?).map(|kept| &*kept.reading)
    }

    /// The same, to add to it.
    pub fn shown_mut(&mut self) -> Option<&mut Reading> {
        let index = self.index()?;
        self.kept.get_mut(index).map(|kept| &mut *kept.reading)
    }

    /// Whether the newest is looked at, now and when there will be a newer one.
    pub fn is_live(&self) -> bool {
        self.at.is_none()
    }

    /// Whether there is a newer one than that which is looked at.
    pub fn is_past(&self) -> bool {
        self.number() < self.last()
    }

    /// Look at the one that is looked at now, whatever comes.
    pub fn hold(&mut self) {
        self.at = (!self.kept.is_empty()).then(|| self.number());
    }

    /// Look at the newest again.
    pub fn live(&mut self) {
        self.at = None;
    }

    /// Look at another, by so many on. Returns by how many that went too far.
    pub fn step(&mut self, by: i64) -> i64 {
        if self.kept.is_empty() {
            return by;
        }
        let wanted = i128::from(self.number()) + i128::from(by);
        let number = wanted.clamp(i128::from(self.first), i128::from(self.last()));
        self.at = Some(number as u64);
        (wanted - number) as i64
    }

    /// Look at the first that ended at this time or later, seconds since 1970. Returns whether
    /// the time lies within what is kept.
    pub fn seek(&mut self, time: f64) -> bool {
        let index = self.kept.partition_point(|kept| kept.reading.interval.time < time);
        let begun =
            |kept: &Kept| kept.reading.interval.time - kept.reading.interval.interval_seconds;
        let within = index < self.kept.len() && self.kept.front().is_some_and(|k| begun(k) <= time);
        let index = index.min(self.kept.len().saturating_sub(1));
        if !self.kept.is_empty() {
            self.at = Some(self.first + index as u64);
        }
        within
    }

    /// Where one looks; `None`: there is nothing.
    pub fn place(&self) -> Option<Place> {
        let (shown, newest) = (self.shown()?, self.kept.back()?);
        Some(Place {
            number: self.number(),
            kept: (self.first, self.last()),
            time: shown.interval.time,
            ago_seconds: newest.reading.interval.time - shown.interval.time,
        })
    }

    /// The interval that is looked at and those before it, newest first, at most `n`; a gap is
    /// `None` and counts as one.
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

/// Leave what the panes show.
fn slim(reading: &mut Reading) {
    for session in &mut reading.interval.sessions {
        session.accounts = Vec::new();
    }
    if let Some(statements) = &mut reading.statements {
        statements.forget_source();
        // Most time first.
        statements.rows.truncate(STATEMENTS);
        statements.rows.shrink_to_fit();
    }
}

/// About how much memory it takes.
fn weight(reading: &Reading) -> usize {
    let interval = &reading.interval;
    let rows = |n: usize, row: usize, more: usize| n * (row + more);
    let accounts: usize =
        interval.sessions.iter().map(|s| s.accounts.len() + s.holding.len()).sum();
    let statements = reading.statements.as_ref().map_or(0, |it| {
        let of_row = |row: &StatementRow| {
            let lists = size_of_val(&*row.activities) + size_of_val(&*row.histogram);
            size_of::<StatementRow>() + PLAIN + lists
        };
        it.rows.iter().map(of_row).sum::<usize>() + 256 * it.current.len()
    });
    size_of::<Reading>()
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
            let (statements, io, asked, recorded) = (None, None, false, None);
            history.push(Box::new(Reading { interval, statements, io, asked, recorded }));
        }
        history
    }

    fn times(history: &History, n: usize) -> Vec<Option<f64>> {
        history.back(n).map(|it| it.map(|reading| reading.interval.time)).collect()
    }

    #[test]
    fn the_newest_is_looked_at_until_somebody_steps_back() {
        let mut history = filled(5, History::default());
        assert!(history.is_live() && !history.is_past());
        assert_eq!(history.shown().unwrap().interval.time, 5.0);
        assert_eq!(history.step(-2), 0);
        assert!(!history.is_live() && history.is_past());
        history.push(reading(6.0));
        assert_eq!(history.shown().unwrap().interval.time, 3.0);
        let place = history.place().unwrap();
        assert_eq!((place.number, place.kept, place.ago_seconds), (3, (1, 6), 3.0));
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
    fn it_is_bounded_by_time_and_by_memory() {
        let history = filled(200, History::with_room(60.0, BYTES));
        assert_eq!(history.place().unwrap().kept, (141, 200));
        let one = weight(filled(1, History::default()).shown().unwrap());
        let mut history = filled(200, History::with_room(SECONDS, 10 * one));
        let (first, last) = history.place().unwrap().kept;
        assert!((9..=40).contains(&(last - first)), "{first} {last}");
        assert!(history.bytes <= 10 * one);
        // The one that is looked at goes as well, and the oldest takes its place.
        history.step(i64::MIN);
        history.push(reading(201.0));
        history.push(reading(202.0));
        assert_eq!(history.place().unwrap().number, history.first);
    }

    #[test]
    fn a_clock_that_is_set_neither_empties_it_nor_makes_it_grow() {
        let mut history = filled(50, History::with_room(60.0, BYTES));
        history.push(reading(86_400.0));
        history.push(reading(-86_400.0));
        assert_eq!(history.place().unwrap().kept, (1, 52));
        (0..20).for_each(|_| history.push(reading(40.0)));
        assert_eq!(history.place().unwrap().kept, (13, 72));
    }

    #[test]
    fn a_gap_is_seen_from_behind_it() {
        let mut history = filled(2, History::default());
        history.gap("gone".into());
        history.push(reading(9.0));
        assert_eq!(times(&history, 9), [Some(9.0), None, Some(2.0), Some(1.0)]);
        assert_eq!(times(&history, 2), [Some(9.0), None]);
        history.step(-1);
        assert_eq!(times(&history, 9), [Some(2.0), Some(1.0)]);
        assert_eq!(times(&History::default(), 9), []);
    }

    #[test]
    fn a_time_is_found_and_one_outside_is_said() {
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
    fn only_the_newest_keeps_what_no_pane_shows() {
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
            reading.statements.iter_mut().for_each(|it| it.rows = vec![row.clone(); 400]);
            history.push(reading);
        }
        assert_eq!(history.shown().unwrap().interval.sessions[0].accounts.len(), 1);
        assert_eq!(history.shown().unwrap().statements.as_ref().unwrap().rows.len(), 400);
        history.step(-1);
        assert_eq!(history.shown().unwrap().statements.as_ref().unwrap().rows.len(), STATEMENTS);
        assert!(history.shown().unwrap().interval.sessions[0].accounts.is_empty());
    }
}
