// SPDX-License-Identifier: PostgreSQL
//! What took the most time, over time: the statements by details, the sessions by the points of the charts.

use std::collections::{BTreeMap, HashMap};

use recording::{Detail, Recording};
use view::document::{Axis, Ranking, RankingRow};
use view::statements::StatementsTable;

use super::seconds;
use crate::tables::statements::class;
use error::Error;

/// Maximum number of rows, besides that of the others.
const ROWS: usize = 30;
/// Maximum number of points of statements.
const POINTS: usize = 720;
/// Maximum number of characters of a statement; its section has the whole text.
const LETTERS: usize = 300;

/// Blocks of neighbouring details, and the times between them in which none were recorded.
struct Blocks<'d> {
    details: &'d [Detail],
    /// The point of each detail.
    points: Vec<usize>,
    axis: Axis,
}

impl Blocks<'_> {
    fn new(details: &[Detail]) -> Blocks<'_> {
        let each = details.len().div_ceil(POINTS).max(1);
        let mut blocks = Blocks { details, points: Vec::new(), axis: Axis::default() };
        let mut end: Option<i64> = None;
        for (at, detail) in details.iter().enumerate() {
            let gap = end.filter(|end| detail.from_us > *end);
            if let Some(gap) = gap {
                blocks.begin(gap);
            }
            if at % each == 0 || gap.is_some() {
                blocks.begin(detail.from_us);
            }
            let last = blocks.axis.time.len().saturating_sub(1);
            if let Some(covered) = blocks.axis.seconds.get_mut(last) {
                *covered += detail.covered_ns as f64 * 1e-9;
            }
            blocks.points.push(last);
            end = Some(detail.to_us);
        }
        blocks
    }

    fn begin(&mut self, at_us: i64) {
        self.axis.time.push(seconds(at_us));
        self.axis.seconds.push(0.0);
    }

    /// The point of an interval.
    fn point(&self, frame: u64) -> Option<usize> {
        let at = self.details.partition_point(|detail| detail.last < frame);
        self.details.get(at).filter(|detail| detail.contains(frame))?;
        self.points.get(at).copied()
    }
}

/// The statements of clients; those of tally itself are one row. Nested statements are part of those that called them.
pub fn statements(
    recording: &Recording,
    all: &StatementsTable,
    details: &[Detail],
) -> Result<Option<Ranking>, Error> {
    let Some(range) = Detail::range(details) else { return Ok(None) };
    let blocks = Blocks::new(details);
    let points = blocks.axis.time.len();
    let series = recording.statement_series(range, points, |frame| blocks.point(frame))?;
    let mut rows: Vec<RankingRow> = Vec::new();
    let mut row_of: HashMap<Option<(i64, u32, u32)>, usize> = HashMap::new();
    let mut added = std::collections::HashSet::new();
    for row in all.rows.iter().filter(|row| row.toplevel) {
        let key = (row.key.query_id(), row.key.database_id, row.key.user_id, row.key.toplevel);
        // The series is that of all applications together.
        let Some(series) = series.get(&key).filter(|_| added.insert(key)) else { continue };
        let of = (!row.own).then_some((key.0, key.1, key.2));
        let at = *row_of.entry(of).or_insert_with(|| {
            let name = match (row.own, &row.query) {
                (true, _) => "tally's own statements".to_string(),
                (false, Some(query)) => query.chars().take(LETTERS).collect(),
                (false, None) => format!("statement {}", key.0),
            };
            let class = Some(class(row).name());
            rows.push(RankingRow { name, class, seconds: vec![0.0; points] });
            rows.len() - 1
        });
        if let Some(row) = rows.get_mut(at) {
            let times = series.total_ns.iter().map(|ns| *ns as f64 * 1e-9);
            row.seconds.iter_mut().zip(times).for_each(|(sum, one)| *sum += one);
        }
    }
    let empty = Ranking {
        id: "statements",
        section: "statements",
        title: "Statements",
        axis: blocks.axis,
        rows: Vec::new(),
    };
    Ok(Some(empty.with_rows(rows, ROWS)))
}

/// Busy time of a session, by point.
type Times = Vec<(usize, f64)>;

/// Busy time of sessions: by process and application, the name to show and the time.
#[derive(Debug, Default)]
pub struct SessionTimes(BTreeMap<(i64, String), (String, Times)>);

impl SessionTimes {
    /// Adds time of a session in a point.
    pub fn add(
        &mut self,
        session: (i64, &str),
        name: impl FnOnce() -> String,
        point: usize,
        time: f64,
    ) {
        if time <= 0.0 {
            return;
        }
        let key = (session.0, session.1.to_string());
        let (_, times) = self.0.entry(key).or_insert_with(|| (name(), Vec::new()));
        match times.last_mut() {
            Some((at, sum)) if *at == point => *sum += time,
            _ => times.push((point, time)),
        }
    }

    /// The sessions with the most time.
    pub fn ranking(self, axis: Axis) -> Ranking {
        let points = axis.time.len();
        let time = |times: &[(usize, f64)]| times.iter().map(|one| one.1).sum::<f64>();
        let mut sessions: Vec<(String, Times)> = self.0.into_values().collect();
        sessions.sort_by(|a, b| time(&b.1).total_cmp(&time(&a.1)));
        // There may be very many short sessions.
        let others = sessions.split_off(sessions.len().min(ROWS));
        let number = others.len();
        let row = |name: String, times: &mut dyn Iterator<Item = (usize, f64)>| {
            let mut seconds = vec![0.0; points];
            for (at, time) in times {
                if let Some(sum) = seconds.get_mut(at) {
                    *sum += time;
                }
            }
            RankingRow { name, class: None, seconds }
        };
        let mut rows: Vec<RankingRow> =
            sessions.into_iter().map(|(name, times)| row(name, &mut times.into_iter())).collect();
        if number > 0 {
            let mut times = others.into_iter().flat_map(|(_, times)| times);
            rows.push(row(format!("{number} others"), &mut times));
        }
        Ranking { id: "sessions", section: "sessions", title: "Sessions", axis, rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detail(after: u64, from_us: i64, to_us: i64) -> Detail {
        let covered_ns = (to_us - from_us) as u64 * 1000;
        Detail { after, last: after + 10, from_us, to_us, covered_ns, busy_ns: 0, exact: true }
    }

    #[test]
    fn a_gap_between_details_is_a_point_without_time() {
        let details = [
            detail(0, 0, 10_000_000),
            detail(10, 10_000_000, 20_000_000),
            detail(30, 50_000_000, 60_000_000),
        ];
        let blocks = Blocks::new(&details);
        assert_eq!(blocks.axis.time, [0.0, 10.0, 20.0, 50.0]);
        assert_eq!(blocks.axis.seconds, [10.0, 10.0, 0.0, 10.0]);
        let points = [1, 10, 11, 25, 31, 40, 41].map(|frame| blocks.point(frame));
        assert_eq!(points, [Some(0), Some(0), Some(1), None, Some(3), Some(3), None]);
    }

    #[test]
    fn many_details_share_points() {
        let details: Vec<Detail> = (0..2 * POINTS as i64)
            .map(|at| detail(10 * at as u64, at * 10_000_000, (at + 1) * 10_000_000))
            .collect();
        let blocks = Blocks::new(&details);
        assert_eq!(blocks.axis.time.len(), POINTS);
        assert!(blocks.axis.seconds.iter().all(|covered| (covered - 20.0).abs() < 1e-9));
    }

    #[test]
    fn sessions_have_their_time_in_each_point_and_the_shortest_are_together() {
        let mut times = SessionTimes::default();
        for pid in 0..ROWS as i64 + 2 {
            let name = || format!("shop ({pid})");
            times.add((pid, "shop"), name, 0, 100.0 - pid as f64);
            times.add((pid, "shop"), name, 0, 1.0);
            times.add((pid, "shop"), name, 2, 0.5);
        }
        times.add((99, "idle"), || "idle".into(), 0, 0.0);
        let axis = Axis { time: vec![0.0, 1.0, 2.0], seconds: vec![1.0; 3] };
        let rows = times.ranking(axis).rows;
        assert_eq!(rows.len(), ROWS + 1);
        assert_eq!(
            (rows[0].name.as_str(), &rows[0].seconds[..]),
            ("shop (0)", &[101.0, 0.0, 0.5][..])
        );
        assert_eq!((rows[ROWS].name.as_str(), rows[ROWS].seconds[0]), ("2 others", 71.0 + 70.0));
    }
}
