// SPDX-License-Identifier: PostgreSQL
//! `tally dashboards`: Grafana dashboards and Prometheus alert rules for the metrics that `tally serve` provides
//! at `/metrics`.
//!
//! [`boards`] and [`alerts`] define what is shown and when to alert; [`grafana`] and [`rules`] write it in the
//! formats of these programs. Expressions may use only metrics and labels of docs/reference-metrics.md, which a
//! test compares with those of a server; another test runs each expression in a Prometheus that scrapes a server.

mod alerts;
mod boards;
mod fleet_board;
mod grafana;
mod rules;

use files::Access;
use std::path::{Path, PathBuf};

use clap::Args;

use error::Error;

/// Arguments of `tally dashboards`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct DashboardsArgs {
    /// Directory to write grafana/*.json, grafana-clickhouse/*.json and prometheus/pgtally.rules.yml into
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

const HELP: &str = "\
The dashboards have two variables: the Prometheus data source, and the instances of \
`tally serve`. The dashboard in grafana-clickhouse uses the views of `tally fleet schema`. The alert rules are for Prometheus: list the file in rule_files.

Examples:
  tally dashboards /tmp/pgtally
  promtool check rules /tmp/pgtally/prometheus/pgtally.rules.yml";

/// Writes the files.
pub fn run(args: &DashboardsArgs) -> Result<(), Error> {
    let (grafana, prometheus) = (args.folder.join("grafana"), args.folder.join("prometheus"));
    let clickhouse = args.folder.join("grafana-clickhouse");
    for folder in [&grafana, &clickhouse, &prometheus] {
        files::folder(folder, Access::Everybody)
            .map_err(|error| failed("create", folder, &error))?;
    }
    for board in boards::all() {
        write(&grafana.join(format!("{}.json", board.name)), &grafana::json(&board))?;
    }
    write(&clickhouse.join("pgtally-fleet.json"), &fleet_board::json())?;
    write(&prometheus.join("pgtally.rules.yml"), &rules::yaml(alerts::ALL))?;
    view::output::announce(&args.folder);
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    files::write(path, text.as_bytes(), Access::Everybody)
        .map_err(|error| failed("write", path, &error))
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::Failed(format!("could not {what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The metrics of an expression: words that begin with the prefix.
    fn metrics(expression: &str) -> Vec<&str> {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let words = expression.split(|c| !word(c));
        words.filter(|word| word.starts_with("pgtally_")).collect()
    }

    /// The labels that selectors and `by` name.
    fn labels(expression: &str) -> Vec<&str> {
        let mut found = Vec::new();
        for part in expression.split('{').skip(1) {
            let selector = part.split('}').next().unwrap();
            let names = selector.split(',').filter_map(|matcher| matcher.split(['=', '!']).next());
            found.extend(names.map(str::trim).filter(|name| !name.is_empty()));
        }
        for part in expression.split("by (").skip(1) {
            found.extend(part.split(')').next().unwrap().split(',').map(str::trim));
        }
        found
    }

    #[test]
    fn expressions_use_documented_metrics_and_labels() {
        let documented = include_str!("../../../../docs/reference-metrics.md");
        let row_of = |metric: &str| {
            let bare = ["_bucket", "_count", "_sum"]
                .iter()
                .find_map(|end| metric.strip_suffix(end))
                .unwrap_or(metric);
            let row = documented.lines().find(|line| {
                line.starts_with(&format!("| `{bare}`"))
                    || line.starts_with(&format!("| `{metric}`"))
            });
            row.unwrap_or_else(|| panic!("docs/reference-metrics.md has no {metric}"))
        };
        let boards = boards::all();
        let panels = boards.iter().flat_map(|board| &board.panels);
        let shown =
            panels.flat_map(|panel| panel.lines.iter().map(|(expression, _)| &**expression));
        for expression in shown.chain(alerts::ALL.iter().map(|alert| alert.expression)) {
            let rows: Vec<&str> = metrics(expression).into_iter().map(row_of).collect();
            assert!(!rows.is_empty(), "no metric in {expression}");
            for label in labels(expression) {
                let known = ["instance", "le"].contains(&label)
                    || rows.iter().any(|row| row.contains(&format!("`{label}`")));
                assert!(known, "{label} is no label of the metrics in {expression}");
            }
        }
    }

    #[test]
    fn every_panel_and_alert_explains_itself() {
        for board in boards::all() {
            assert!(!board.panels.is_empty());
            for panel in &board.panels {
                assert!(panel.help.ends_with('.'), "{}", panel.title);
            }
        }
        for alert in alerts::ALL {
            assert!(alert.summary.contains("{{ $labels.instance }}"), "{}", alert.name);
            assert!(alert.remedy.ends_with('.'), "{}", alert.name);
        }
    }

    #[test]
    fn panels_lie_side_by_side_in_rows_of_24_columns() {
        for board in boards::all() {
            let json: serde_json::Value = serde_json::from_str(&grafana::json(&board)).unwrap();
            let panels = json["panels"].as_array().unwrap();
            assert_eq!(panels.len(), board.panels.len());
            let place =
                |panel: &serde_json::Value, key: &str| panel["gridPos"][key].as_u64().unwrap();
            for (n, panel) in panels.iter().enumerate() {
                assert!(place(panel, "x") + place(panel, "w") <= 24, "{panel}");
                for other in &panels[..n] {
                    let apart = place(other, "y") + place(other, "h") <= place(panel, "y")
                        || place(other, "x") + place(other, "w") <= place(panel, "x");
                    assert!(apart, "{} lies on {}", panel["title"], other["title"]);
                }
            }
        }
    }
}
