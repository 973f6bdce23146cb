// SPDX-License-Identifier: PostgreSQL
//! What is shown of recordings of real servers (`support::fixtures`): report and panes agree with each other and
//! with the recording, and for some of them the whole text is known.

use crate::support::fixtures::{self, Fixture};
use crate::support::{output, tally};
use recording::{Range, Recording};
use serde_json::Value;

/// A problem of locks, one of checkpoints, a load without any, and pgbench.
const SHOWN: [&str; 4] =
    ["readers-behind-ddl", "forced-checkpoints", "mixed-load", "pgbench-4-clients"];

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(b.abs()) + 1e-9
}

/// Seconds that are not idle in the rows of a ledger.
fn busy(ledger: &Value) -> f64 {
    let rows = ledger.as_array().unwrap().iter();
    rows.filter(|row| row["idle"] == false).map(|row| row["seconds"].as_f64().unwrap()).sum()
}

#[test]
fn report_and_panes_agree_with_what_was_recorded() {
    for name in fixtures::names() {
        let fixture = Fixture::open(&name);
        let recording = Recording::open(fixture.path(), None).unwrap();
        let rows = recording.frame_rows(Range::ALL).unwrap();
        let wanted = rows.iter().map(|row| row.busy_ns as f64 * 1e-9).sum::<f64>();
        // Earlier recordings count those of autovacuum workers in the intervals' sums, too.
        let sum = recording.sum(Range::ALL).unwrap();
        let handled = sum.statistics.iter().filter(|statistic| {
            let name = &statistic.stat.name;
            &*statistic.process == "client backend"
                && name.starts_with("command::")
                && name.ends_with("::handle")
        });
        let commands: u64 = handled.map(|statistic| statistic.total.change.count).sum();
        assert_eq!(recording.problems(), Vec::<String>::new(), "{name}");

        let (interval, report) = (fixture.interval(), fixture.report());
        let totals = &report["totals"];
        for found in [
            totals["busy_seconds"].as_f64().unwrap(),
            interval["busy_seconds"].as_f64().unwrap(),
            busy(&interval["ledger"]),
        ] {
            assert!(close(found, wanted), "{name}: {found} {wanted}");
        }
        assert_eq!(totals["commands"], commands, "{name}");
        assert_eq!(interval["commands_handled"], commands, "{name}");
        assert_eq!(report["measured"]["intervals"], rows.len(), "{name}");
    }
}

#[test]
fn text_of_panes_and_reports_is_as_it_was() {
    for name in SHOWN {
        let fixture = Fixture::open(name);
        let text = |arguments: &[&str]| {
            let text = output(tally().env("TZ", "UTC").args(arguments).arg(fixture.path()));
            text.replace(fixture.path().to_str().unwrap(), "RECORDING")
        };
        let panes = text(&["top", "--once", "--replay"]);
        fixtures::assert_text(&format!("{name}.panes"), &panes);
        fixtures::assert_text(&format!("{name}.report"), &text(&["report"]));
    }
}
