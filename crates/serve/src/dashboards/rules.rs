// SPDX-License-Identifier: PostgreSQL
//! Prometheus' file of alert rules. JSON strings are valid YAML strings, so nothing else has to be quoted.

use std::fmt::Write;

use serde_json::json;

use super::alerts::Alert;

/// The rules, in one group.
pub fn yaml(alerts: &[Alert]) -> String {
    let mut text = String::from(
        "# Alerts on the metrics of `tally serve`. Written by `tally dashboards`.\n\
         groups:\n  - name: pgtally\n    rules:\n",
    );
    for alert in alerts {
        let Alert { name, expression, lasts, severity, summary, remedy } = alert;
        let _ = write!(
            text,
            "      - alert: {name}\n        expr: {}\n        for: {lasts}\n        labels: {{severity: {severity}}}\n        \
             annotations:\n          summary: {}\n          description: {}\n",
            json!(expression),
            json!(summary),
            json!(remedy),
        );
    }
    text
}
