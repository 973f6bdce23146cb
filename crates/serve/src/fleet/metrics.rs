// SPDX-License-Identifier: PostgreSQL
//! `/metrics` of a fleet: what the last results of the queries say of each host.

use report::fleet::{Fleet, FleetQueryResult};
use view::document::{Cell, Table};

use super::super::metrics::{Family, Kind, MetricSample, Value};

/// A metric from a column of a query's result.
struct FromColumn {
    query: &'static str,
    column: &'static str,
    name: &'static str,
    help: &'static str,
    labels: &'static [&'static str],
}

const HOST: &[&str] = &["cluster", "host"];

const COLUMNS: [FromColumn; 8] = [
    FromColumn {
        query: "hosts",
        column: "ended",
        name: "pgtally_fleet_host_last_interval_timestamp_seconds",
        help: "End of the last recorded interval of a host.",
        labels: HOST,
    },
    FromColumn {
        query: "hosts",
        column: "covered_share",
        name: "pgtally_fleet_host_covered_ratio",
        help: "Part of the time range that a host recorded.",
        labels: HOST,
    },
    FromColumn {
        query: "capacity",
        column: "cpus",
        name: "pgtally_fleet_host_processors",
        help: "CPUs of a host.",
        labels: HOST,
    },
    FromColumn {
        query: "capacity",
        column: "cpu_share",
        name: "pgtally_fleet_host_cpu_ratio",
        help: "Part of a host's CPU time that was used in the time range.",
        labels: HOST,
    },
    FromColumn {
        query: "capacity",
        column: "sessions",
        name: "pgtally_fleet_host_active_sessions",
        help: "Average active sessions of a host in the time range.",
        labels: HOST,
    },
    FromColumn {
        query: "capacity",
        column: "commands_per_second",
        name: "pgtally_fleet_host_commands_per_second",
        help: "Commands that a host handled per second of the time range.",
        labels: HOST,
    },
    FromColumn {
        query: "load",
        column: "sessions",
        name: "pgtally_fleet_activity_active_sessions",
        help: "Average active sessions of a host in the time range by activity.",
        labels: &["cluster", "host", "activity", "class"],
    },
    FromColumn {
        query: "blocking",
        column: "waited_seconds",
        name: "pgtally_fleet_blocker_waited_seconds",
        help: "Time in the time range that sessions waited for locks of a session.",
        labels: &["cluster", "host", "blocker"],
    },
];

/// The metrics of these results.
pub fn families(fleet: &Fleet) -> Vec<Family> {
    let mut families = vec![
        Family::new(
            "pgtally_fleet_query_success",
            Kind::Gauge,
            "Whether the last run of a query succeeded.",
        ),
        Family::new(
            "pgtally_fleet_query_duration_seconds",
            Kind::Gauge,
            "Run time of a query's last result.",
        ),
        Family::new(
            "pgtally_fleet_query_result_timestamp_seconds",
            Kind::Gauge,
            "End of the time range of a query's last result.",
        ),
    ];
    let tables = fleet.tables.iter().map(|question| {
        let known = question.answer.as_ref().map(|answer| (answer.seconds, answer.window.1));
        (question.name, known, question.failure.is_some())
    });
    let courses = fleet.courses.iter().map(|question| {
        let known = question.answer.as_ref().map(|answer| (answer.seconds, answer.window.1));
        (question.name, known, question.failure.is_some())
    });
    for (query, known, failed) in tables.chain(courses) {
        if known.is_some() || failed {
            families[0].number([("query", query)], f64::from(u8::from(!failed)));
        }
        if let Some((seconds, end)) = known {
            families[1].number([("query", query)], seconds);
            families[2].number([("query", query)], end);
        }
    }
    families.extend(COLUMNS.iter().filter_map(|of| {
        let question = fleet.tables.iter().find(|question| question.name == of.query)?;
        of.family(question.answer.as_ref()?)
    }));
    families
}

impl FromColumn {
    fn family(&self, result: &FleetQueryResult<Table>) -> Option<Family> {
        let table = &result.value;
        let at = |key: &str| table.columns.iter().position(|column| column.key == key);
        let value = at(self.column)?;
        let labels: Vec<(&'static str, usize)> =
            self.labels.iter().map(|label| Some((*label, at(label)?))).collect::<Option<_>>()?;
        let mut family = Family::new(self.name, Kind::Gauge, self.help);
        family.samples = table
            .rows
            .iter()
            .filter_map(|row| {
                let value = number(row.cells.get(value)?)?;
                let label =
                    |(label, at): &(&'static str, usize)| Some((*label, text(row.cells.get(*at)?)));
                let labels = labels.iter().map(label).collect::<Option<Vec<_>>>()?;
                Some(MetricSample { labels, value: Value::Number(value), since: None })
            })
            .collect();
        Some(family)
    }
}

fn number(cell: &Cell) -> Option<f64> {
    match cell {
        Cell::Number(value) => Some(*value),
        Cell::Whole(value) => Some(*value as f64),
        _ => None,
    }
}

fn text(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => text.to_string(),
        Cell::Whole(value) => value.to_string(),
        Cell::Number(value) => value.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::metrics::{write, Form};
    use super::*;
    use fleet_sql::HostFilter;
    use report::fleet::Failure;
    use view::document::{Column, Tone, Unit};

    #[test]
    fn hosts_have_the_figures_of_the_last_results() {
        let mut fleet = Fleet::new(HostFilter::default(), "duckdb".into(), 60.0);
        let columns = ["cluster", "host", "cpus", "cpu_share", "sessions", "commands_per_second"]
            .map(|key| Column::new(key, key, Unit::Number))
            .to_vec();
        let mut capacity = Table::new("capacity", "", columns);
        let cells = |host: &str, share: Cell| {
            vec!["shop".into(), host.into(), 8u64.into(), share, 2.5.into(), 100.0.into()]
        };
        capacity.push(Tone::Plain, cells("db\"1", 0.25.into()));
        capacity.push(Tone::Plain, cells("db2", Cell::Empty));
        for question in &mut fleet.tables {
            match question.name {
                "capacity" => question.take(Ok(FleetQueryResult {
                    value: capacity.clone(),
                    window: (100.0, 200.0),
                    seconds: 1.5,
                })),
                "hosts" => question.take(Err(Failure { time: 200.0, text: "no file".into() })),
                _ => {}
            }
        }
        let text = String::from_utf8(write(&families(&fleet), Form::wanted(""), None)).unwrap();
        for line in [
            "pgtally_fleet_query_success{query=\"capacity\"} 1",
            "pgtally_fleet_query_success{query=\"hosts\"} 0",
            "pgtally_fleet_query_duration_seconds{query=\"capacity\"} 1.5",
            "pgtally_fleet_query_result_timestamp_seconds{query=\"capacity\"} 200",
            "pgtally_fleet_host_cpu_ratio{cluster=\"shop\",host=\"db\\\"1\"} 0.25",
            "pgtally_fleet_host_active_sessions{cluster=\"shop\",host=\"db2\"} 2.5",
            "pgtally_fleet_host_processors{cluster=\"shop\",host=\"db2\"} 8",
        ] {
            assert!(text.lines().any(|one| one == line), "{line}: {text}");
        }
        // A figure that is missing is no figure, and a query without a result says nothing.
        assert!(!text.contains("cpu_ratio{cluster=\"shop\",host=\"db2\"}"), "{text}");
        assert!(
            !text.contains("query=\"waits\"") && !text.contains("pgtally_fleet_activity"),
            "{text}"
        );
    }
}
