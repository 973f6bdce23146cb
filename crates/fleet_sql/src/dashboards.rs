// SPDX-License-Identifier: PostgreSQL
//! The queries that a dashboard sends to a ClickHouse server with the views. Grafana replaces the variables in
//! them: `${__from}`, `${__to}`, `${__interval_ms}`, and the selected clusters and hosts.

use crate::template::Values;
use crate::{Chart, Dialect, Query};

/// Number of hosts with a series of their own, and of rows in a table.
const SERIES: u32 = 20;
const ROWS: u32 = 50;

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
        step: "${__interval_ms}".into(),
        instant: |ms| format!("fromUnixTimestamp64Milli({ms}, 'UTC')"),
    }
}

impl Chart {
    /// Its SQL for a dashboard.
    pub fn dashboard_sql(&self) -> String {
        self.with(Dialect::ClickHouse, &variables(SERIES))
    }
}

impl Query {
    /// Its SQL for a dashboard; it compares with an equally long time before.
    pub fn dashboard_sql(&self) -> String {
        self.with(Dialect::ClickHouse, &variables(ROWS))
    }
}
