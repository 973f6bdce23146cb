// SPDX-License-Identifier: PostgreSQL
//! The intervals that the details of a recording cover.
//!
//! Statements, histograms, relations and the kernel's figures come only with the intervals that `frames.detail`
//! marks. They cover all intervals since the previous mark, so rates must be computed from the figures of these
//! intervals, not from those of a time range.

use crate::batch::Batch;
use crate::error::Error;
use crate::range::Range;
use crate::recorded_statement::RecordedStatementRow;
use crate::recording::Recording;
use crate::rows::{FrameRow, KernelRow, RelationRow};
use crate::statistics::HistogramRow;
use crate::table::{columns, unsigned, Table};
use std::collections::{HashMap, HashSet};

/// Maximum length of a detail: the longest interval plus the longest time between two details; microseconds.
const LONGEST_US: i64 = 1_200_000_000;
/// The intervals of each generation of a recording are numbered from a multiple of this number, plus 1.
const GENERATION: u64 = 1 << 32;
/// After a roll-up, the first row of a generation has the number of the last of up to this many intervals.
const FIRST: u64 = 600;

/// The columns of intervals by which details are found.
const COLUMNS: [&str; 8] =
    ["frame", "time", "interval_ns", "server", "busy_ns", "exact", "partial", "detail"];

/// A run of intervals that the same details cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detail {
    /// The number of the interval before the first one.
    pub after: u64,
    /// The number of the last interval, with which the details came.
    pub last: u64,
    /// The rows of these intervals have later times than this, microseconds since 1970,
    pub from_us: i64,
    /// and times up to this one, the end of the last interval.
    pub to_us: i64,
    /// Recorded time of the intervals, ns.
    pub covered_ns: u64,
    /// Time in these intervals in which sessions were not idle, ns.
    pub busy_ns: u64,
    /// Whether the details cover exactly these intervals: the intervals are exact, without a gap, and of one run of the
    /// server. The first details of a run may cover time that was not recorded.
    pub exact: bool,
}

impl Detail {
    /// The middle of its time, microseconds since 1970.
    pub fn middle_us(&self) -> i64 {
        self.from_us.midpoint(self.to_us)
    }

    /// Whether the details cover this interval.
    pub fn contains(&self, frame: u64) -> bool {
        self.after < frame && frame <= self.last
    }

    /// The range of the rows of these consecutive details; `None`: there are none.
    pub fn range(details: &[Detail]) -> Option<Range> {
        let (first, last) = (details.first()?, details.last()?);
        Some(Range { from_us: first.from_us, to_us: last.to_us })
    }

    /// Recorded time that these details cover, seconds.
    pub fn seconds(details: &[Detail]) -> f64 {
        details.iter().map(|detail| detail.covered_ns).sum::<u64>() as f64 * 1e-9
    }
}

/// Runs of the server in which no details are marked, because an earlier version recorded them.
pub(crate) fn unmarked_runs(frames: &[FrameRow]) -> HashSet<u32> {
    let mut runs: HashMap<u32, bool> = HashMap::new();
    for row in frames {
        *runs.entry(row.server).or_default() |= row.detail;
    }
    runs.into_iter().filter(|(_, marked)| !marked).map(|(run, _)| run).collect()
}

/// Among the intervals that `of` selects, mark those with which rows of details came.
pub(crate) fn mark(batch: &mut Batch, of: impl Fn(&FrameRow) -> bool) {
    fn frames<R: Table>(rows: &[R]) -> impl Iterator<Item = u64> + '_ {
        rows.iter().map(R::frame)
    }
    if !batch.frames.iter().any(|row| of(row) && !row.detail) {
        return;
    }
    let found: HashSet<u64> = frames(&batch.histograms)
        .chain(frames(&batch.statements))
        .chain(frames(&batch.kernel))
        .chain(frames(&batch.relations))
        .collect();
    for row in batch.frames.iter_mut().filter(|row| of(row)) {
        row.detail |= found.contains(&row.frame);
    }
}

impl Recording {
    /// The details whose middle is in a range, in the order of their intervals. With consecutive ranges, each detail
    /// belongs to exactly one.
    pub fn details(&self, range: Range) -> Result<Vec<Detail>, Error> {
        let wide = Range {
            from_us: range.from_us.saturating_sub(2 * LONGEST_US),
            to_us: range.to_us.saturating_add(LONGEST_US),
        };
        let mut frames: Vec<FrameRow> = self.rows_with(wide, &COLUMNS)?;
        self.mark_details(&mut frames, wide)?;
        let gaps: HashSet<u64> = self.gaps(wide)?.into_iter().map(|gap| gap.frame).collect();
        let mut details = of_frames(&frames, &gaps);
        details.retain(|detail| range.contains(detail.middle_us()));
        Ok(details)
    }

    /// The same, plus earlier details that an interval at the beginning of the range reveals.
    pub fn details_until(&self, range: Range) -> Result<Vec<Detail>, Error> {
        self.details(Range { from_us: range.from_us.saturating_sub(LONGEST_US), ..range })
    }

    /// Mark the details that earlier versions recorded, according to their rows.
    fn mark_details(&self, frames: &mut [FrameRow], range: Range) -> Result<(), Error> {
        let unmarked = unmarked_runs(frames);
        if unmarked.is_empty() {
            return Ok(());
        }
        let mut found: HashSet<u64> = HashSet::new();
        macro_rules! find {
            ($($row:ident in $rows:ident;)*) => {$(
                let wanted = columns::<$row>(&["frame"]);
                let journal = self.each_columns::<$row>(range, &wanted, |columns| {
                    found.extend(columns.longs("frame").iter().copied().map(unsigned));
                })?;
                found.extend(journal.$rows.iter().map(Table::frame));
            )*};
        }
        find! {
            HistogramRow in histograms;
            RecordedStatementRow in statements;
            KernelRow in kernel;
            RelationRow in relations;
        }
        for row in frames.iter_mut().filter(|row| unmarked.contains(&row.server)) {
            row.detail = found.contains(&row.frame);
        }
        Ok(())
    }
}

/// The details of these intervals. The first detail may have begun before the first interval. `gaps`: the intervals
/// that follow a gap.
fn of_frames(frames: &[FrameRow], gaps: &HashSet<u64>) -> Vec<Detail> {
    let mut all = Vec::new();
    let mut before: Option<&FrameRow> = None;
    let mut open: Option<Detail> = None;
    let mut is_whole =
        frames.first().is_some_and(|row| (1..=FIRST).contains(&(row.frame % GENERATION)));
    for row in frames {
        let length_us = i64::try_from(row.interval_ns / 1000).unwrap_or(i64::MAX);
        let begin_us = row.time_us.saturating_sub(length_us);
        let detail = open.get_or_insert(Detail {
            after: before.map_or(row.frame.saturating_sub(1), |before| before.frame),
            last: row.frame,
            // The clock may have been set back.
            from_us: before.map_or(begin_us, |before| before.time_us).min(row.time_us - 1),
            to_us: row.time_us,
            covered_ns: 0,
            busy_ns: 0,
            exact: true,
        });
        detail.last = row.frame;
        detail.to_us = detail.to_us.max(row.time_us);
        detail.covered_ns = detail.covered_ns.saturating_add(row.interval_ns);
        detail.busy_ns = detail.busy_ns.saturating_add(row.busy_ns);
        let same = before.is_none_or(|before| before.server == row.server);
        detail.exact &= row.exact && !row.partial && same && !gaps.contains(&row.frame);
        if row.detail {
            let detail = open.take();
            if std::mem::replace(&mut is_whole, true) {
                all.extend(detail);
            }
        }
        before = Some(row);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    /// Intervals of one second; details come with the intervals in `details`.
    fn frames(n: u64, details: &[u64]) -> Vec<FrameRow> {
        let row = |frame: u64| FrameRow {
            frame,
            time_us: frame as i64 * SECOND + 3_000,
            interval_ns: 1_000_000_000,
            busy_ns: frame,
            server: 1,
            exact: true,
            detail: details.contains(&frame),
            ..FrameRow::default()
        };
        (1..=n).map(row).collect()
    }

    fn spans(frames: &[FrameRow]) -> Vec<(u64, u64, bool)> {
        let all = of_frames(frames, &HashSet::from([9]));
        all.iter().map(|detail| (detail.after, detail.last, detail.exact)).collect()
    }

    #[test]
    fn a_detail_is_of_the_intervals_since_the_one_before() {
        let mut all = frames(8, &[1, 4, 7]);
        assert_eq!(spans(&all), [(0, 1, true), (1, 4, true), (4, 7, true)]);
        let found = of_frames(&all, &HashSet::new());
        assert_eq!((found[1].from_us, found[1].to_us), (1_003_000, 4_003_000));
        assert_eq!((found[1].covered_ns, found[1].busy_ns), (3_000_000_000, 2 + 3 + 4));
        assert!(found[1].contains(2) && found[1].contains(4) && !found[1].contains(1));
        assert_eq!(Detail::range(&found), Some(Range { from_us: 3_000, to_us: 7_003_000 }));
        assert!((Detail::seconds(&found) - 7.0).abs() < 1e-9);
        // A later recorder that ships into the same bucket starts at a different number.
        all.iter_mut().for_each(|row| row.frame += GENERATION);
        assert_eq!(spans(&all)[0], (GENERATION, GENERATION + 1, true));
        // The first detail of a part of a recording may have begun before that part.
        all.iter_mut().for_each(|row| row.frame += FIRST);
        let found = spans(&all);
        assert_eq!((found.len(), found[0].0), (2, GENERATION + FIRST + 1));
    }

    #[test]
    fn a_detail_over_a_gap_a_restart_or_an_inexact_interval_is_not_exact() {
        let exact = |change: fn(&mut FrameRow)| {
            let mut all = frames(12, &[2, 4, 6, 8, 10, 12]);
            all[2..].iter_mut().for_each(change);
            let found = spans(&all);
            found.iter().filter(|span| !span.2).map(|span| span.1).collect::<Vec<u64>>()
        };
        assert_eq!(exact(|_| ()), [10], "the gap before 9");
        assert_eq!(exact(|row| row.server = 2), [4, 10], "the first of another run");
        assert_eq!(exact(|row| row.exact = row.frame != 6), [6, 10]);
        assert_eq!(exact(|row| row.partial = row.frame == 11), [10, 12]);
        let mut all = frames(4, &[4]);
        all[3].server = 2;
        assert_eq!(spans(&all), [(0, 4, false)]);
    }

    #[test]
    fn runs_of_earlier_versions_are_those_without_a_mark() {
        let mut all = frames(6, &[2]);
        all[3..].iter_mut().for_each(|row| row.server = 2);
        assert_eq!(unmarked_runs(&all), HashSet::from([2]));
    }
}
