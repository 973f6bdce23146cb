// SPDX-License-Identifier: PostgreSQL
//! Grafana's JSON model of dashboards (schema 39: Grafana 10 and later).

use serde_json::{json, Value};

use super::boards::{Board, Form, Panel};

const COLUMNS: u64 = 24;
const HEIGHT: u64 = 8;

/// A dashboard as a file to import or to provision.
pub fn json(board: &Board) -> String {
    let mut panels = Vec::new();
    let (mut x, mut y) = (0, 0);
    for (number, panel) in (1u64..).zip(&board.panels) {
        if x + panel.form.width() > COLUMNS {
            (x, y) = (0, y + HEIGHT);
        }
        panels.push(chart(panel, number, x, y));
        x += panel.form.width();
    }
    let model = json!({
        "uid": board.name,
        "title": board.title,
        "tags": ["pgtally", "postgresql"],
        "schemaVersion": 39,
        "editable": true,
        "refresh": "30s",
        "time": { "from": "now-1h", "to": "now" },
        "templating": { "list": [data_source(), instances()] },
        "panels": panels,
    });
    format!("{model:#}\n")
}

fn source() -> Value {
    json!({ "type": "prometheus", "uid": "${datasource}" })
}

fn data_source() -> Value {
    json!({ "name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus" })
}

fn instances() -> Value {
    json!({
        "name": "instance",
        "label": "Instance",
        "type": "query",
        "datasource": source(),
        "query": "label_values(pgtally_up, instance)",
        "refresh": 2,
        "includeAll": true,
        "multi": true,
        "sort": 1,
    })
}

fn chart(panel: &Panel, number: u64, x: u64, y: u64) -> Value {
    let names = 'A'..='Z';
    let targets = panel.lines.iter().zip(names).map(|((expression, legend), name)| {
        json!({ "refId": name.to_string(), "datasource": source(), "expr": expression, "legendFormat": legend })
    });
    let (fill, stacking) = match panel.form {
        Form::Lines => (0, "none"),
        Form::Stacked | Form::WholeRow => (60, "normal"),
    };
    json!({
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.help,
        "datasource": source(),
        "gridPos": { "x": x, "y": y, "w": panel.form.width(), "h": HEIGHT },
        "targets": targets.collect::<Vec<_>>(),
        "fieldConfig": {
            "defaults": {
                "unit": panel.unit,
                "min": 0,
                "custom": { "fillOpacity": fill, "stacking": { "mode": stacking } },
            },
            "overrides": [],
        },
        "options": {
            "legend": { "displayMode": "list", "placement": "bottom" },
            "tooltip": { "mode": "multi", "sort": "desc" },
        },
    })
}
