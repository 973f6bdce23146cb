// SPDX-License-Identifier: PostgreSQL
//! What took the most time, over time: the statements and the sessions, for recordings and live pages.

use std::collections::{BTreeMap, HashMap, HashSet};

use view::document::{Axis, Ranking, RankingRow};
use view::statements::StatementsTable;
use view::units::others as named_others;

use crate::statement_id::{key_of_row, StatementId};
use crate::tables::statements::class;

/// Maximum number of rows, besides that of the others.
const ROWS: usize = 30;
/// Maximum number of characters of a statement; its section has the whole text.
const LETTERS: usize = 300;

/// The name of the row of query ID 0.
const NO_STATEMENT: &str = "work without a known statement";

/// The statements of clients, with their seconds in each point of the axis as `times` returns them; those of tally itself are one
/// row. Nested statements are part of those that called them.
pub fn statements(
    axis: Axis,
    all: &StatementsTable,
    times: impl Fn(&StatementId) -> Option<Vec<f64>>,
) -> Ranking {
    let points = axis.time.len();
    let mut rows: Vec<RankingRow> = Vec::new();
    let mut row_of: HashMap<Option<(i64, u32, u32)>, usize> = HashMap::new();
    let mut added = HashSet::new();
    for row in all.rows.iter().filter(|row| row.toplevel) {
        let id = (row.key.query_id(), row.key.database_id, row.key.user_id, row.key.toplevel);
        // The times are those of all applications together.
        if !added.insert(id) {
            continue;
        }
        let Some(times) = times(&id) else { continue };
        let of = (!row.own).then_some((id.0, id.1, id.2));
        let at = *row_of.entry(of).or_insert_with(|| {
            let name = match (row.own, &row.query) {
                (true, _) => "tally's own statements".to_string(),
                (false, Some(query)) => query.chars().take(LETTERS).collect(),
                (false, None) if !row.key.is_identified() => NO_STATEMENT.to_string(),
                (false, None) => format!("statement {}", id.0),
            };
            let class = Some(class(row).name());
            let statement = key_of_row(row);
            rows.push(RankingRow { name, class, statement, seconds: vec![0.0; points] });
            rows.len() - 1
        });
        if let Some(row) = rows.get_mut(at) {
            row.seconds.iter_mut().zip(times).for_each(|(sum, one)| *sum += one);
        }
    }
    let empty = Ranking {
        id: "statements",
        section: "statements",
        title: "Statements",
        axis,
        rows: Vec::new(),
    };
    empty.with_rows(rows, ROWS)
}

/// The name of a session: its application or else its kind of process, its PID, and who is connected to what.
pub fn session_name(
    application: &str,
    process: &str,
    pid: i64,
    user: Option<&str>,
    database: Option<&str>,
) -> String {
    let application = if application.is_empty() { process } else { application };
    let who = match (user, database) {
        (Some(user), Some(database)) => format!(", {user}@{database}"),
        _ => String::new(),
    };
    format!("{application} ({pid}{who})")
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

    /// Adds later times, whose first point is point `first` of these.
    pub fn append(&mut self, later: &SessionTimes, first: usize) {
        for (session, (name, times)) in &later.0 {
            let known = self.0.entry(session.clone());
            let (_, sum) = known.or_insert_with(|| (name.clone(), Vec::new()));
            sum.extend(times.iter().map(|(point, time)| (first + point, *time)));
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
            RankingRow { name, seconds, ..RankingRow::default() }
        };
        let mut rows: Vec<RankingRow> =
            sessions.into_iter().map(|(name, times)| row(name, &mut times.into_iter())).collect();
        if number > 0 {
            let mut times = others.into_iter().flat_map(|(_, times)| times);
            rows.push(row(named_others(number), &mut times));
        }
        Ranking { id: "sessions", section: "sessions", title: "Sessions", axis, rows }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn work_without_a_known_statement_is_named_so_and_has_no_page() {
        let mut all = view::sample::statements();
        all.rows.truncate(2);
        let row = &mut all.rows[1];
        (row.key.id, row.queryid, row.query) = (0, None, None);
        let axis = Axis { time: vec![0.0], seconds: vec![1.0] };
        let rows = statements(axis, &all, |id| Some(vec![if id.0 == 0 { 1.0 } else { 2.0 }])).rows;
        assert!(rows[0].statement.is_some(), "{rows:?}");
        assert_eq!((rows[1].name.as_str(), &rows[1].statement), (NO_STATEMENT, &None));
    }

    #[test]
    fn later_times_follow_earlier_ones() {
        let (mut all, mut later) = (SessionTimes::default(), SessionTimes::default());
        all.add((7, "shop"), || "shop (7)".into(), 1, 2.0);
        later.add((7, "shop"), || "again".into(), 0, 3.0);
        later.add((8, "shop"), || "shop (8)".into(), 1, 1.0);
        all.append(&later, 2);
        let axis = Axis { time: vec![0.0, 1.0, 2.0, 3.0], seconds: vec![1.0; 4] };
        let rows = all.ranking(axis).rows;
        let of = |row: &RankingRow| (row.name.clone(), row.seconds.clone());
        assert_eq!(of(&rows[0]), ("shop (7)".to_string(), vec![0.0, 2.0, 3.0, 0.0]));
        assert_eq!(of(&rows[1]), ("shop (8)".to_string(), vec![0.0, 0.0, 0.0, 1.0]));
    }

    #[test]
    fn a_session_is_named_by_its_application_and_its_client() {
        let name = session_name("shop", "client backend", 7, Some("app"), Some("orders"));
        assert_eq!(name, "shop (7, app@orders)");
        assert_eq!(session_name("", "checkpointer", 8, None, None), "checkpointer (8)");
    }
}
