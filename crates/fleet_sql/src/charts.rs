// SPDX-License-Identifier: PostgreSQL
//! Figures of hosts over time: a series for each of the hosts with the highest figures, and one for all others.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::answer::rows;
use crate::source::Files;
use crate::template::{expand, Values};
use crate::views::{body, with_views};
use crate::{Dialect, QueryParams, Root, Window};

/// A figure of hosts over time.
#[derive(Debug)]
pub struct Chart {
    /// Its name, and the key of the figure in a result.
    pub name: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// Whether it is a share, 0 to 1; otherwise it is a number of sessions.
    pub is_share: bool,
    sql: &'static str,
}

/// All charts.
pub const CHARTS: &[Chart] = &[
    Chart {
        name: "sessions",
        title: "Average active sessions, top hosts",
        is_share: false,
        sql: include_str!("../sql/charts/sessions.sql"),
    },
    Chart {
        name: "cpu",
        title: "CPU use of the machine, top hosts",
        is_share: true,
        sql: include_str!("../sql/charts/cpu.sql"),
    },
];

/// The series of all hosts without a series of their own. No host has this name, because the names of their
/// series contain a space.
pub const OTHERS: &str = "others";

/// A result: one value of each series for each step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Course {
    /// When each step begins, seconds since 1970.
    pub time: Vec<f64>,
    /// How long it lasts.
    pub seconds: Vec<f64>,
    /// Name and values of each series, the highest first, the others last; `None` if nothing was recorded.
    pub series: Vec<(String, Vec<Option<f64>>)>,
}

impl Chart {
    /// Its SQL with these values; it has the columns `time`, `series` and the figure.
    pub(crate) fn with(&self, dialect: Dialect, values: &Values) -> String {
        expand(body(self.sql), dialect, None, Some(values))
    }

    /// Its SQL for the window of a query, whose limit is the number of hosts with a series of their own. With a
    /// root, the SQL includes the views that it needs.
    pub fn sql(&self, dialect: Dialect, root: Option<&Root>, asked: &QueryParams) -> String {
        let query = self.with(dialect, &Values::from_params(asked));
        let Some(root) = root else { return query };
        let files = Files { dialect, root, window: Some(&asked.window), tables: None };
        with_views(self.sql, &query, &files)
    }

    /// The series in a result for this window.
    pub fn course(&self, window: &Window, answer: &str) -> Result<Course, String> {
        let step = window.step_ms();
        let first = window.since_ms.div_euclid(step);
        let last = (window.until_ms - 1).div_euclid(step);
        let mut series: BTreeMap<String, Vec<Option<f64>>> = BTreeMap::new();
        for row in rows(answer)? {
            let name = row.get("series").and_then(Value::as_str).unwrap_or_default();
            let time =
                number(&row, "time").ok_or("the engine's response has a step without a time")?;
            let place = ((time * 1e3).round() as i64).div_euclid(step) - first;
            let all = (last - first + 1) as usize;
            let values = series.entry(name.to_string()).or_insert_with(|| vec![None; all]);
            let value = usize::try_from(place).ok().and_then(|at| values.get_mut(at));
            if let Some(value) = value {
                *value = number(&row, self.name);
            }
        }
        let sum = |values: &[Option<f64>]| values.iter().flatten().sum::<f64>();
        let mut series: Vec<_> = series.into_iter().collect();
        series.sort_by(|(a, x), (b, y)| {
            (a == OTHERS).cmp(&(b == OTHERS)).then(sum(y).total_cmp(&sum(x))).then(a.cmp(b))
        });
        let begin = |at: i64| (at * step).max(window.since_ms);
        let end = |at: i64| ((at + 1) * step).min(window.until_ms);
        Ok(Course {
            time: (first..=last).map(|at| begin(at) as f64 / 1e3).collect(),
            seconds: (first..=last).map(|at| (end(at) - begin(at)) as f64 / 1e3).collect(),
            series,
        })
    }
}

/// Some engines return wide numbers as text.
fn number(row: &Map<String, Value>, key: &str) -> Option<f64> {
    match row.get(key)? {
        Value::String(text) => text.parse().ok(),
        value => value.as_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostFilter;

    #[test]
    fn an_answer_becomes_series_with_the_highest_first_and_the_others_last() {
        let window = Window::new(100_500, 103_500, HostFilter::default()).unwrap();
        let answer = r#"[{"time":100.0,"series":"c a","sessions":1.0},{"time":"103","series":"c a","sessions":2},
            {"time":101.0,"series":"others","sessions":9.0},{"time":101.0,"series":"c b","sessions":"4.5"},
            {"time":102.0,"series":"c b","sessions":null}]"#;
        let course = CHARTS[0].course(&window, answer).unwrap();
        assert_eq!(course.time, [100.5, 101.0, 102.0, 103.0]);
        assert_eq!(course.seconds, [0.5, 1.0, 1.0, 0.5]);
        let names: Vec<&str> = course.series.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["c b", "c a", "others"]);
        assert_eq!(course.series[1].1, [Some(1.0), None, None, Some(2.0)]);
        assert!(CHARTS[0].course(&window, "[{}]").unwrap_err().contains("time"));
    }

    #[test]
    fn every_chart_is_complete_in_every_dialect() {
        let root = Root::parse("/srv/fleet").unwrap();
        let window =
            Window::new(1_000_000_000_000, 1_000_003_600_000, HostFilter::default()).unwrap();
        let asked = QueryParams { against: window.clone(), window, limit: 7 };
        for (chart, dialect) in CHARTS.iter().flat_map(|chart| Dialect::ALL.map(|of| (chart, of))) {
            let sql = chart.sql(dialect, Some(&root), &asked);
            assert!(!sql.contains("{{") && sql.contains("place <= 7"), "{sql}");
            assert!(sql.contains("WITH intervals AS (") && sql.contains("60000"), "{sql}");
        }
    }

    #[test]
    fn a_step_without_a_part_in_the_window_is_left_out() {
        let window = |from, to| Window::new(from, to, HostFilter::default()).unwrap();
        let course = |window: &Window, answer: &str| CHARTS[1].course(window, answer).unwrap();
        // The window includes its end, so no step begins there.
        assert_eq!(course(&window(100_000, 102_000), "").time, [100.0, 101.0]);
        let answer = r#"[{"time":99,"series":"a","cpu":0.1},{"time":102,"series":"a","cpu":0.2},
            {"time":101,"series":"a","cpu":0.3}]"#;
        let outside = course(&window(100_000, 102_000), answer);
        assert_eq!(outside.series, [("a".into(), vec![None, Some(0.3)])]);
    }
}
