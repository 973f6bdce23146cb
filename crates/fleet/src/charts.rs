// SPDX-License-Identifier: PostgreSQL
//! What a dashboard asks a ClickHouse server with the views: the named queries, and figures over time. Grafana replaces
//! the variables of their texts: `${__from}`, `${__to}`, `${__interval_ms}`, and the chosen clusters and hosts.

use crate::template::{expand, Values};
use crate::views::body;
use crate::{Dialect, Query};

/// A figure of the hosts with most of it, over time.
#[derive(Debug)]
pub struct Chart {
    /// Its heading.
    pub title: &'static str,
    /// Whether it is a share, 0 to 1; otherwise a number of sessions.
    pub is_share: bool,
    sql: &'static str,
}

/// All charts.
pub const CHARTS: [Chart; 2] = [
    Chart {
        title: "Average active sessions, the 20 hosts with most",
        is_share: false,
        sql: include_str!("../sql/charts/sessions.sql"),
    },
    Chart {
        title: "CPU use of the machine, the 20 hosts with most",
        is_share: true,
        sql: include_str!("../sql/charts/cpu.sql"),
    },
];

/// The condition for rows between two times, milliseconds since 1970.
fn condition(from: &str, to: &str) -> String {
    let day =
        |ms: &str| format!("toString(toDate(fromUnixTimestamp64Milli(toInt64({ms}), 'UTC')))");
    format!(
        "date >= {} AND date <= {} AND time_ms > {from} AND time_ms <= {to} \
         AND cluster IN (${{cluster:singlequote}}) AND host IN (${{host:singlequote}})",
        day(&format!("{from} - 3600000")),
        day(to)
    )
}

fn variables(limit: u32) -> Values {
    let (from, to) = ("${__from}", "${__to}");
    let before = "(2 * ${__from} - ${__to})";
    Values {
        window: condition(from, to),
        either: condition(before, to),
        in_window: format!("time_ms > {from} AND time_ms <= {to}"),
        in_against: format!("time_ms > {before} AND time_ms <= {from}"),
        seconds: "((${__to} - ${__from}) / 1e3)".into(),
        limit: limit.to_string(),
    }
}

impl Chart {
    /// Its text: columns `time`, `series` and the figure.
    pub fn sql(&self) -> String {
        expand(body(self.sql), Dialect::ClickHouse, None, Some(&variables(20)))
    }
}

impl Query {
    /// Its text for a dashboard; it compares with as long a time before.
    pub fn dashboard_sql(&self) -> String {
        self.with(Dialect::ClickHouse, &variables(50))
    }
}
