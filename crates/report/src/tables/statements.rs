// SPDX-License-Identifier: PostgreSQL
//! The statements, with the details that can be opened for each.

use segment::statements::WaitClass;
use view::choose;

use view::document::{Details, Row, Table, Tone};
use view::statements::{own, StatementFigures, StatementsTable, FIELDS};
use view::table::field::Picked;

use crate::statement_id::key_of_row;

/// Statements, most time first; `seconds` is the measured time. Those of tally itself are one row.
pub fn statements(all: &StatementsTable, seconds: f64) -> Table {
    macro_rules! columns {
        ($who:literal) => {
            choose!(
                FIELDS,
                concat!(
                    "query, ",
                    $who,
                    ", calls, per_second:13, seconds, share, per_call_seconds, \
                     mean_seconds:2, p50_seconds:12, p95_seconds:14, p99_seconds:3, max_seconds:4, rows_per_call:15, \
                     hit_share:16, cpu_share:5, io_share:6, lwlock_share:7, lock_share:8, client_share:9, \
                     ipc_share:10, other_share:11, wal_bytes:17, temp_bytes:22, errors:18, cancels:23, \
                     queryid:19, level:24"
                )
            )
        };
    }
    // Where statements are told apart by it.
    let named = all.rows.iter().any(|row| row.application.name().is_some());
    let fields = Picked::of_document(match named {
        true => columns!("database:20, user:21, application:1"),
        false => columns!("database:20, user:21"),
    });
    let row = |row: &StatementFigures| {
        let (tone, details) = (Tone::Class(class(row)), Some(details(row, all)));
        Row { tone, details, ..Row::new("", fields.cells(row, seconds)) }
    };
    let own = own(all);
    let rows = all.rows.iter().filter(|row| !row.own).chain(&own).map(row).collect();
    Table { rows, ..Table::new("statements", "Statements", fields.columns.clone()) }
        .sorted("seconds")
}

/// The class in which it spends the most time.
pub fn class(row: &StatementFigures) -> WaitClass {
    let most = |a: &WaitClass, b: &WaitClass| row.split.class(*a).total_cmp(&row.split.class(*b));
    WaitClass::ALL
        .into_iter()
        .max_by(most)
        .filter(|_| row.seconds > 0.0)
        .unwrap_or(WaitClass::Other)
}

fn details(row: &StatementFigures, all: &StatementsTable) -> Details {
    Details {
        statement: key_of_row(row),
        plans: all.plans_of(&row.key).map(|plan| plan.details(all.time)).collect(),
        slow_executions: all
            .slow_executions_of(&row.key)
            .map(|slow| (slow.ended.into(), slow.seconds.into(), slow.parameters.clone()))
            .collect(),
        text: row.query.clone(),
        cut: row.query_cut,
        example: row.example(),
        histogram: row
            .histogram
            .iter()
            .map(|bucket| (bucket.from_seconds.into(), bucket.to_seconds.into(), bucket.count))
            .collect(),
        activities: row
            .activities
            .iter()
            .map(|activity| {
                (
                    activity.phase.clone(),
                    activity.activity.clone(),
                    activity.seconds.into(),
                    // Samples do not count them.
                    row.seconds_source.is_none().then_some(activity.count),
                )
            })
            .collect(),
    }
}
