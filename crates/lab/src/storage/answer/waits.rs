// SPDX-License-Identifier: PostgreSQL
//! Which waits grow: the server's ledger while victims ran, compared with quiet periods of the same cells.

use std::collections::BTreeMap;
use std::path::Path;

use recording::{Range, Recording};
use segment::directory::StatKind;
use segment::Frame;
use serde::Serialize;

use error::Error;

use crate::storage::log::server_recording;

use super::course::{CellCourse, CoursePoint};
use super::steadiness::RECOVERY;

/// Rows with less than this in both columns are omitted, average sessions.
const FEW: f64 = 0.01;

/// Time of one kind of process in one activity.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WaitRow {
    /// Name of the arm.
    pub arm: String,
    /// Kind of process.
    pub process: String,
    /// A wait event, or cpu.
    pub activity: String,
    /// Average number of such processes in the activity, in quiet periods.
    pub quiet: f64,
    /// The same while a victim ran.
    pub during: f64,
}

#[derive(Default)]
struct WaitSums {
    seconds: f64,
    by: BTreeMap<(String, String), f64>,
}

impl WaitSums {
    fn add(&mut self, frame: &Frame) {
        self.seconds += frame.clock.seconds(frame.ticks);
        for statistic in &frame.statistics {
            if statistic.stat.kind != StatKind::Account || statistic.stat.is_idle() {
                continue;
            }
            let key = (statistic.process.to_string(), statistic.stat.activity().to_string());
            *self.by.entry(key).or_default() += frame.clock.seconds(statistic.total.change.total);
        }
    }

    fn sessions(&self, key: &(String, String)) -> f64 {
        self.by.get(key).copied().unwrap_or(0.0) / self.seconds.max(1e-9)
    }
}

/// Rows of all arms with a server, largest growth first.
pub fn waits(folder: &Path, courses: &[CellCourse]) -> Result<Vec<WaitRow>, Error> {
    let mut sides: BTreeMap<String, (WaitSums, WaitSums)> = BTreeMap::new();
    for course in courses {
        let path = server_recording(folder, &course.arm, course.block);
        if !path.exists() {
            continue;
        }
        let recording = Recording::open(&path, None)?;
        let (quiet, during) = sides.entry(course.arm.clone()).or_default();
        for (busy, from, to) in spans(course) {
            let us = |at: f64| ((course.origin + at) * 1e6) as i64;
            let frame = recording.sum(Range { from_us: us(from), to_us: us(to) });
            // A span between two intervals has no frame.
            let Ok(frame) = frame else { continue };
            if busy { &mut *during } else { &mut *quiet }.add(&frame);
        }
    }
    let mut rows = Vec::new();
    for (arm, (quiet, during)) in sides {
        let mut keys: Vec<_> = quiet.by.keys().chain(during.by.keys()).collect();
        keys.sort();
        keys.dedup();
        let mut of_arm: Vec<WaitRow> = keys
            .into_iter()
            .map(|key| WaitRow {
                arm: arm.clone(),
                process: key.0.clone(),
                activity: key.1.clone(),
                quiet: quiet.sessions(key),
                during: during.sessions(key),
            })
            .filter(|row| row.quiet.max(row.during) >= FEW)
            .collect();
        of_arm.sort_by(|a, b| (b.during - b.quiet).total_cmp(&(a.during - a.quiet)));
        rows.extend(of_arm);
    }
    Ok(rows)
}

/// The quiet and the busy parts of a cell: whether a victim ran, start and end.
fn spans(course: &CellCourse) -> Vec<(bool, f64, f64)> {
    let mut spans: Vec<(bool, f64, f64)> = Vec::new();
    for point in course.measured() {
        let busy = course.is_busy(point, 0.0);
        // The time just after a victim is neither.
        if !busy && course.is_busy(point, RECOVERY) {
            continue;
        }
        let CoursePoint { from, to, .. } = *point;
        match spans.last_mut() {
            Some((kind, _, end)) if *kind == busy && (from - *end).abs() < 0.5 => *end = to,
            _ => spans.push((busy, from, to)),
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::super::course::VictimRun;
    use super::*;
    use crate::storage::victim::VictimOutcome;

    #[test]
    fn what_follows_a_victim_is_neither_quiet_nor_busy() {
        let points = (0..10).map(f64::from).map(|from| CoursePoint {
            from,
            to: from + 1.0,
            ..CoursePoint::default()
        });
        let ran = VictimOutcome { seconds: 2.0, ..VictimOutcome::default() };
        let run = VictimRun { name: "copy".into(), at: Some(3.0), began: 3.0, ran };
        let course =
            CellCourse { points: points.collect(), runs: vec![run], ..CellCourse::default() };
        assert_eq!(spans(&course), [(false, 0.0, 3.0), (true, 3.0, 5.0), (false, 7.0, 10.0)]);
    }
}
