// SPDX-License-Identifier: PostgreSQL
//! The dashboard of a fleet, for Grafana's ClickHouse data source (`grafana-clickhouse-datasource` 4): charts of
//! hosts, and one table for each named query of the crate `fleet_sql`.

use fleet_sql::{Query, CHARTS, QUERIES};
use serde_json::{json, Value};
use view::table::Unit;

const PLUGIN: &str = "grafana-clickhouse-datasource";
const HEIGHT: u64 = 9;

/// The dashboard as a file.
pub fn json() -> String {
    let charts = CHARTS.iter().map(|chart| {
        let unit = if chart.is_share { "percentunit" } else { "short" };
        panel("timeseries", chart.title, unit, 12, &chart.dashboard_sql(), json!([]))
    });
    let tables = QUERIES.iter().map(|query| {
        panel("table", query.about, "short", 24, &query.dashboard_sql(), columns(query))
    });
    let (mut panels, mut x, mut y) = (Vec::new(), 0, 0);
    for (number, (width, mut panel)) in (1u64..).zip(charts.chain(tables)) {
        panel["id"] = number.into();
        panel["gridPos"] = json!({ "x": x, "y": y, "w": width, "h": HEIGHT });
        x += width;
        if x >= 24 {
            (x, y) = (0, y + HEIGHT);
        }
        panels.push(panel);
    }
    let model = json!({
        "uid": "pgtally-fleet",
        "title": "PostgreSQL fleet (ClickHouse)",
        "tags": ["pgtally", "postgresql"],
        "schemaVersion": 39,
        "editable": true,
        "refresh": "",
        "time": { "from": "now-1h/m", "to": "now/m" },
        "templating": { "list": [
            json!({ "name": "datasource", "label": "Data source", "type": "datasource", "query": PLUGIN }),
            variable("cluster", "SELECT DISTINCT cluster FROM intervals ORDER BY cluster"),
            variable("host", "SELECT DISTINCT host FROM intervals WHERE cluster IN (${cluster:singlequote}) ORDER BY host"),
        ] },
        "panels": panels,
    });
    format!("{model:#}\n")
}

fn source() -> Value {
    json!({ "type": PLUGIN, "uid": "${datasource}" })
}

fn variable(name: &str, sql: &str) -> Value {
    json!({
        "name": name, "label": name, "type": "query", "datasource": source(), "query": sql, "definition": sql,
        "refresh": 2, "includeAll": true, "multi": true, "sort": 1,
        "current": { "text": ["All"], "value": ["$__all"] },
    })
}

fn panel(
    kind: &str,
    title: &str,
    unit: &str,
    width: u64,
    sql: &str,
    overrides: Value,
) -> (u64, Value) {
    let (format, query) = if kind == "table" { (1, "table") } else { (0, "timeseries") };
    let panel = json!({
        "type": kind,
        "title": title,
        "datasource": source(),
        "targets": [{
            "refId": "A", "datasource": source(), "editorType": "sql", "rawSql": sql, "format": format, "queryType": query,
        }],
        "fieldConfig": { "defaults": { "unit": unit }, "overrides": overrides },
    });
    (width, panel)
}

/// Titles and units of a query's columns.
fn columns(query: &Query) -> Value {
    let one = |column: &view::table::Column| {
        let unit = match column.unit {
            Unit::Seconds => "s",
            Unit::Share => "percentunit",
            Unit::Bytes => "bytes",
            Unit::PerSecond => "ops",
            _ => "short",
        };
        json!({
            "matcher": { "id": "byName", "options": column.key },
            "properties": [{ "id": "displayName", "value": column.title }, { "id": "unit", "value": unit }],
        })
    };
    query.columns.iter().map(one).collect()
}
