// SPDX-License-Identifier: PostgreSQL
//! What took the most time, over time, so that a page can add it up for any part of the time.

use serde::Serialize;

use super::Axis;
use crate::table::cell;

/// Statements or sessions with their time over time.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Ranking {
    /// "statements", "sessions".
    pub id: &'static str,
    /// The section with further figures.
    pub section: &'static str,
    /// Its title.
    pub title: &'static str,
    /// The time of the points.
    pub axis: Axis,
    /// The rows, most time first. The last one may hold all that have less time.
    pub rows: Vec<RankingRow>,
}

/// A row of a [`Ranking`].
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RankingRow {
    /// The statement or the session.
    pub name: String,
    /// The class of activity that takes most of its time, for its colour.
    pub class: Option<&'static str>,
    /// The statement, as in [`super::Details::statement`]; `None`: a session, or several statements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub statement: Option<String>,
    /// Its time in each point, seconds.
    #[serde(serialize_with = "cell::short_all")]
    pub seconds: Vec<f64>,
}

impl Ranking {
    /// With the rows that have the most time, at most this number, and the sum of the others as a last row.
    pub fn with_rows(self, mut rows: Vec<RankingRow>, most: usize) -> Ranking {
        let time = |row: &RankingRow| row.seconds.iter().sum::<f64>();
        rows.retain(|row| time(row) > 0.0);
        rows.sort_by(|a, b| time(b).total_cmp(&time(a)).then_with(|| a.name.cmp(&b.name)));
        if rows.len() > most + 1 {
            let others = rows.split_off(most);
            let mut sum = RankingRow {
                name: crate::units::others(others.len()),
                seconds: vec![0.0; self.axis.time.len()],
                ..RankingRow::default()
            };
            for row in others {
                sum.seconds.iter_mut().zip(row.seconds).for_each(|(sum, one)| *sum += one);
            }
            rows.push(sum);
        }
        Ranking { rows, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, seconds: &[f64]) -> RankingRow {
        RankingRow { name: name.into(), seconds: seconds.to_vec(), ..RankingRow::default() }
    }

    #[test]
    fn the_rows_add_up_to_all_time_with_the_largest_first() {
        let axis = Axis { time: vec![0.0, 1.0], seconds: vec![1.0; 2] };
        let rows = vec![
            row("idle", &[0.0, 0.0]),
            row("c", &[1.0, 0.0]),
            row("a", &[0.0, 4.0]),
            row("b", &[1.0, 1.0]),
            row("d", &[0.5, 0.0]),
        ];
        let short = Ranking { axis, ..Ranking::default() };
        let ranking = short.clone().with_rows(rows.clone(), 2);
        assert_eq!(
            ranking.rows,
            [row("a", &[0.0, 4.0]), row("b", &[1.0, 1.0]), row("2 others", &[1.5, 0.0])]
        );
        // A row of others never stands for a single one.
        let names =
            |ranking: Ranking| ranking.rows.into_iter().map(|row| row.name).collect::<Vec<_>>();
        assert_eq!(names(short.with_rows(rows, 3)), ["a", "b", "c", "d"]);
    }
}
