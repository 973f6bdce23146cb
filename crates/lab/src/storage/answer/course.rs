// SPDX-License-Identifier: PostgreSQL
//! The course of a cell: its log as series and runs, with times in seconds since measuring began.

use crate::storage::log::{CellEvent, LoadSample};
use crate::storage::victim::VictimOutcome;

/// The background during one period.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CoursePoint {
    /// Start; negative during the warm-up.
    pub from: f64,
    /// End.
    pub to: f64,
    /// Operations (or transactions) per second.
    pub rate: f64,
    /// Operations due per second; `None` for a load without a schedule.
    pub wanted: Option<f64>,
    /// Mean response time, seconds; `None` if no operation ended.
    pub response: Option<f64>,
    /// The 99th percentile, seconds; `None` if unknown.
    pub p99: Option<f64>,
    /// Share of reads among the operations; `None` without any.
    pub reads: Option<f64>,
    /// Bytes per second.
    pub bytes: f64,
    /// Operations behind the schedule.
    pub owed: u64,
    /// Dirty bytes, as a share of the kernel's limit.
    pub dirty: f64,
}

/// A run of a victim.
#[derive(Debug, Clone, PartialEq)]
pub struct VictimRun {
    /// Its name.
    pub name: String,
    /// Its time in the study; `None` without background.
    pub at: Option<f64>,
    /// When it actually began.
    pub began: f64,
    /// How it went.
    pub ran: VictimOutcome,
}

/// A cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CellCourse {
    /// Name of the arm.
    pub arm: String,
    /// Number of the block, from 0.
    pub block: usize,
    /// When measuring began, seconds since 1970: the origin of all other times.
    pub origin: f64,
    /// Why the warm-up ended; `None` if it did not.
    pub warm_up: Option<String>,
    /// The background, warm-up included.
    pub points: Vec<CoursePoint>,
    /// Runs of victims.
    pub runs: Vec<VictimRun>,
    /// Limits that were set while measuring.
    pub limits: Vec<(f64, String)>,
    /// Dropped operations.
    pub dropped: u64,
    /// Share of the measured time in which some task on the machine waited for I/O; `None` if the kernel does not
    /// report it.
    pub stalled: Option<f64>,
    /// Why it is incomplete; `None` if it is complete.
    pub early: Option<String>,
}

impl CellCourse {
    /// Builds the course from the lines of a cell's log; `None` if the cell has not begun.
    pub fn from_events(lines: &[CellEvent]) -> Option<CellCourse> {
        let Some(CellEvent::Begin { arm, block, .. }) = lines.first() else { return None };
        let mut course = CellCourse {
            arm: arm.clone(),
            block: *block,
            early: Some("killed".into()),
            ..CellCourse::default()
        };
        let measuring = lines.iter().find_map(|line| match line {
            CellEvent::Measuring { time, why } => Some((*time, why.clone())),
            _ => None,
        });
        course.warm_up = measuring.as_ref().map(|measuring| measuring.1.clone());
        let begin = measuring.map_or(f64::INFINITY, |measuring| measuring.0);
        let first = lines.iter().find_map(|line| match line {
            CellEvent::Sample(sample) => Some(sample.from),
            _ => None,
        });
        // Without a measured part, the background's start is the origin.
        let origin = if begin.is_finite() { begin } else { first.unwrap_or(0.0) };
        course.origin = origin;
        course.stalled = stalled(lines, begin);
        let has_background = first.is_some();
        for line in lines {
            match line {
                CellEvent::Sample(sample) => course.points.push(point(sample, origin)),
                CellEvent::Transactions(second) if !has_background => {
                    course.points.push(CoursePoint {
                        from: second.to - 1.0 - origin,
                        to: second.to - origin,
                        rate: second.rate,
                        wanted: None,
                        response: Some(second.mean),
                        p99: None,
                        reads: None,
                        bytes: 0.0,
                        owed: 0,
                        dirty: 0.0,
                    })
                }
                CellEvent::Victim { name, at, ran } => course.runs.push(VictimRun {
                    name: name.clone(),
                    at: *at,
                    began: ran.began - origin,
                    ran: ran.clone(),
                }),
                CellEvent::Limit { time, text } if *time >= begin => {
                    course.limits.push((time - origin, text.clone()));
                }
                CellEvent::Dropped { operations, .. } => course.dropped += operations,
                CellEvent::End { early, .. } => course.early = early.clone(),
                _ => {}
            }
        }
        Some(course)
    }

    /// Whether a victim with background ran during a point, or ended at most `after` seconds before it.
    pub fn is_busy(&self, point: &CoursePoint, after: f64) -> bool {
        self.runs
            .iter()
            .filter(|run| run.at.is_some())
            .any(|run| point.to > run.began && point.from < run.began + run.ran.seconds + after)
    }

    /// Duration of a victim without background, seconds.
    pub fn base(&self, name: &str) -> Option<f64> {
        let run = self.runs.iter().find(|run| run.at.is_none() && run.name == name)?;
        run.ran.failure.is_none().then_some(run.ran.seconds)
    }

    /// Its measured part.
    pub fn measured(&self) -> impl Iterator<Item = &CoursePoint> {
        // A point may begin a little before the end of the warm-up, by rounding.
        self.points.iter().filter(|point| point.from > -0.01)
    }
}

/// The pressure of I/O (/proc/pressure/io, some) from this time on.
fn stalled(lines: &[CellEvent], begin: f64) -> Option<f64> {
    let mut measured = lines.iter().filter_map(|line| match line {
        CellEvent::Sample(sample) if sample.to >= begin => Some(sample),
        _ => None,
    });
    let (first, last) = (measured.clone().next()?, measured.next_back()?);
    let seconds = last.to - first.to;
    let us = last.memory.io_stalled_us.checked_sub(first.memory.io_stalled_us)?;
    (last.memory.io_stalled_us > 0 && seconds > 0.0).then(|| us as f64 * 1e-6 / seconds)
}

fn point(sample: &LoadSample, origin: f64) -> CoursePoint {
    let seconds = sample.seconds();
    let memory = sample.memory;
    CoursePoint {
        from: sample.from - origin,
        to: sample.to - origin,
        rate: sample.rate(),
        wanted: Some(sample.wanted as f64 / seconds),
        response: sample.responses.map(|responses| responses.mean),
        p99: sample.responses.map(|responses| responses.p99),
        reads: (sample.made() > 0).then(|| sample.reads as f64 / sample.made() as f64),
        bytes: (sample.read_bytes + sample.written_bytes) as f64 / seconds,
        owed: sample.owed,
        dirty: memory.dirty as f64 / memory.dirty_limit.max(1) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::machine::Memory;

    #[test]
    fn times_are_since_measuring_began_and_only_that_part_counts() {
        let sample = |from: f64, io_stalled_us| {
            let memory = Memory { io_stalled_us, ..Memory::default() };
            CellEvent::Sample(LoadSample {
                from,
                to: from + 1.0,
                reads: 3,
                memory,
                ..LoadSample::default()
            })
        };
        let limit = |time, text: &str| CellEvent::Limit { time, text: text.into() };
        let victim = |name: &str, at, began, failure: Option<&str>| {
            let failure = failure.map(String::from);
            CellEvent::Victim {
                name: name.into(),
                at,
                ran: VictimOutcome { began, seconds: 2.0, failure, ..VictimOutcome::default() },
            }
        };
        let course = CellCourse::from_events(&[
            CellEvent::Begin { arm: "one".into(), block: 3, time: 1.0 },
            victim("copy", None, 2.0, None),
            victim("fails", None, 4.0, Some("it ended with 1")),
            sample(8.0, 500_000),
            limit(8.0, "early"),
            sample(9.0, 1_000_000),
            CellEvent::Measuring { time: 10.0, why: "after 2 s".into() },
            sample(10.0, 1_500_000),
            limit(11.0, "late"),
            CellEvent::Dropped { time: 11.0, operations: 3 },
            sample(11.0, 2_500_000),
            CellEvent::Dropped { time: 12.0, operations: 4 },
            victim("copy", Some(1.0), 11.5, None),
            CellEvent::End { time: 12.0, early: None },
        ])
        .unwrap();
        assert_eq!((course.arm.as_str(), course.block, course.early.clone()), ("one", 3, None));
        assert_eq!(
            course.measured().map(|point| (point.from, point.rate)).collect::<Vec<_>>(),
            [(0.0, 3.0), (1.0, 3.0)]
        );
        assert_eq!(course.stalled, Some(0.75), "1.5 s of the two");
        assert_eq!((&course.limits[..], course.dropped), (&[(1.0, "late".to_string())][..], 7));
        assert_eq!(
            (course.base("copy"), course.base("fails"), course.runs[2].began),
            (Some(2.0), None, 1.5)
        );
    }
}
