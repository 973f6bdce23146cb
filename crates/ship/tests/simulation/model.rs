// SPDX-License-Identifier: PostgreSQL
//! The model: which intervals were taken, and which of them readers may find.

use super::recorder::stat;
use recording::{Error, Range, Recording};
use segment::directory::StatKind;
use segment::frame::FrameStat;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// An interval, in whole numbers.
#[derive(Debug, Clone)]
pub struct Interval {
    pub time_us: i64,
    pub length_ns: u64,
    pub server: u32,
    /// The values of its statistics.
    pub cpu: Vec<u64>,
    pub handle: Vec<u64>,
    /// Number of values of the detail that came with it.
    pub details: u64,
    /// Whether the kernel has written it to disk.
    pub on_disk: bool,
    /// Whether it was not, or not completely, on disk when the machine lost power.
    pub may_be_lost: bool,
}

impl Interval {
    pub fn statistics(&self) -> Vec<FrameStat> {
        vec![
            stat("client backend", "execute::cpu", StatKind::Account, &self.cpu),
            stat("client backend", "command::Query::handle", StatKind::Timer, &self.handle),
        ]
    }
}

/// Sums of intervals.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Sums {
    length_ns: u64,
    wall_ns: u64,
    commands: u64,
    cpu_events: u64,
    handle_ns: u64,
    members: u64,
}

impl Sums {
    fn add(&mut self, interval: &Interval) {
        self.length_ns += interval.length_ns;
        self.wall_ns += interval.cpu.iter().sum::<u64>();
        self.commands += interval.handle.len() as u64;
        self.cpu_events += interval.cpu.len() as u64;
        self.handle_ns += interval.handle.iter().sum::<u64>();
        self.members += 1;
    }
}

#[derive(Debug, Default)]
pub struct Model {
    pub intervals: BTreeMap<u64, Interval>,
    /// Whether some of them may be there in part.
    pub in_part: bool,
}

/// Events that must occur, because otherwise the histories test nothing.
#[derive(Debug, Clone, Copy)]
pub enum BucketView {
    Kill,
    Loss,
    Full,
    Lie,
    Sent,
    Refused,
    Removed,
    Coarse,
    Forgotten,
}

static SEEN: [AtomicU64; 9] = [const { AtomicU64::new(0) }; 9];

impl BucketView {
    pub fn count(self, seen: bool) {
        SEEN[self as usize].fetch_add(u64::from(seen), Ordering::Relaxed);
    }

    /// Number of times that each was seen.
    pub fn all() -> Vec<(BucketView, u64)> {
        use BucketView::{Coarse, Forgotten, Full, Kill, Lie, Loss, Refused, Removed, Sent};
        let all = [Kill, Loss, Full, Lie, Sent, Refused, Removed, Coarse, Forgotten];
        all.map(|seen| (seen, SEEN[seen as usize].load(Ordering::Relaxed))).to_vec()
    }
}

/// The intervals that a reader finds.
pub struct FoundIntervals {
    pub intervals: BTreeSet<u64>,
}

macro_rules! require {
    ($condition:expr, $($text:tt)*) => {
        if !$condition {
            return Err(format!($($text)*));
        }
    };
}

impl Model {
    /// Compare the intervals of a directory with those that it may have. `between`: an hour is being replaced
    /// by one whose times are rounded, which does not change their sum.
    pub fn compare(
        &self,
        directory: &Path,
        lied: bool,
        between: bool,
    ) -> Result<FoundIntervals, String> {
        let mut found = BTreeSet::new();
        let recording = match Recording::open(directory, None) {
            Ok(recording) => recording,
            Err(Error::Empty { .. }) => return Ok(FoundIntervals { intervals: found }),
            Err(Error::NotARecording { .. }) if lied || self.intervals.is_empty() => {
                return Ok(FoundIntervals { intervals: found })
            }
            Err(error) => return Err(error.to_string()),
        };
        let rows = recording.frame_rows(Range::ALL).map_err(|error| error.to_string())?;
        let mut before = 0;
        for row in &rows {
            require!(row.frame > before, "interval {} is there twice", row.frame);
            let mut sums = Sums::default();
            let members = self.intervals.range(before + 1..=row.frame).rev();
            for (number, interval) in members {
                if sums.length_ns >= row.interval_ns {
                    break;
                }
                if *number == row.frame {
                    let last = (interval.time_us, interval.server);
                    require!((row.time_us, row.server) == last, "{row:?} is not {interval:?}");
                }
                sums.add(interval);
                found.insert(*number);
            }
            require!(found.contains(&row.frame), "interval {} was never taken", row.frame);
            BucketView::Coarse.count(sums.members > 1);
            let of_row = (row.interval_ns, row.wall_ns, row.commands);
            let of_model = (sums.length_ns, sums.wall_ns, sums.commands);
            require!(of_row == of_model, "interval {}: {of_row:?} is not {of_model:?}", row.frame);
            before = row.frame;
        }
        self.compare_sums(&recording, &found, lied, between)?;
        let problems = recording.problems();
        require!(problems.is_empty() || self.in_part || lied, "{problems:?}");
        Ok(FoundIntervals { intervals: found })
    }

    fn compare_sums(
        &self,
        recording: &Recording,
        found: &BTreeSet<u64>,
        lied: bool,
        between: bool,
    ) -> Result<(), String> {
        let marks = recording.marks(Range::ALL).map_err(|error| error.to_string())?;
        let mut numbers = BTreeSet::new();
        for mark in &marks {
            let number: u64 = mark.text.parse().map_err(|_| format!("{mark:?} was never made"))?;
            require!(numbers.insert(number), "mark {number} is there twice");
            require!(self.intervals.contains_key(&number), "mark {number} was never made");
        }
        if found.is_empty() {
            return Ok(());
        }
        let sum = recording.sum(Range::ALL).map_err(|error| error.to_string())?;
        let mut expected = Sums::default();
        found.iter().for_each(|number| expected.add(&self.intervals[number]));
        let of = |name: &str| {
            let statistic = sum.statistics.iter().find(|statistic| statistic.stat.name == name);
            statistic.map_or((0, 0), |statistic| {
                (statistic.total.change.count, statistic.total.change.total)
            })
        };
        let (cpu, handle) = (of("execute::cpu"), of("command::Query::handle"));
        let read = [cpu.0, handle.0, sum.ticks, cpu.1, handle.1];
        let own = [
            expected.cpu_events,
            expected.commands,
            expected.length_ns,
            expected.wall_ns,
            expected.handle_ns,
        ];
        if self.in_part || lied {
            let fewer = read.iter().zip(own).all(|(read, own)| *read <= own + own / 50);
            require!(fewer, "the sums {read:?} exceed {own:?}");
            return Ok(());
        }
        let near = |(read, own): (&u64, &u64)| between && read.abs_diff(*own) <= own / 50;
        let same =
            read[..3] == own[..3] && (read == own || read[3..].iter().zip(&own[3..]).all(near));
        require!(same, "the sums {read:?} are not {own:?}");
        let of_found: BTreeSet<u64> = found.iter().copied().collect();
        // While an hour is being replaced, rows that belong to intervals arrive before these.
        require!(numbers.is_superset(&of_found), "marks {numbers:?} of intervals {of_found:?}");
        require!(between || numbers == of_found, "marks {numbers:?} of intervals {of_found:?}");
        let spread =
            sum.statistics.iter().map(|statistic| statistic.total.histogram.count()).sum::<u64>();
        let details = found.iter().map(|number| self.intervals[number].details).sum::<u64>();
        require!(
            between || spread == details,
            "{spread} values in histograms instead of {details}"
        );
        Ok(())
    }
}
