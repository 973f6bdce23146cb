// SPDX-License-Identifier: PostgreSQL
//! What the server's log says went wrong: certain are errors that no client can have caused alone; all others are counted.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use recording::LogRow;

use super::finding::{note, warning};
use crate::material::Material;
use crate::tables::server_log::{is_error, logged, statement, texts};
use view::document::{time, Finding};
use view::statements::beginning;
use view::units::whole;

/// What a SQLSTATE says about the server, whoever sent the statement (errcodes.txt).
const CERTAIN: [(&str, &str); 6] = [
    ("XX001", "The server found corrupted data"),
    ("XX002", "The server found a corrupted index"),
    ("58030", "Input or output failed"),
    ("53100", "A disk was full"),
    ("53200", "The server ran out of memory"),
    ("53300", "Sessions were refused, because all connections were in use"),
];

/// Names of the SQLSTATEs that clients cause most (errcodes.txt). Messages stay in the table: they quote values.
const NAMES: [(&str, &str); 30] = [
    ("08006", "connection_failure"),
    ("08P01", "protocol_violation"),
    ("22001", "string_data_right_truncation"),
    ("22003", "numeric_value_out_of_range"),
    ("22012", "division_by_zero"),
    ("22P02", "invalid_text_representation"),
    ("23502", "not_null_violation"),
    ("23503", "foreign_key_violation"),
    ("23505", "unique_violation"),
    ("23514", "check_violation"),
    ("25006", "read_only_sql_transaction"),
    ("25P02", "in_failed_sql_transaction"),
    ("25P03", "idle_in_transaction_session_timeout"),
    ("26000", "invalid_sql_statement_name"),
    ("28000", "invalid_authorization_specification"),
    ("28P01", "invalid_password"),
    ("3D000", "invalid_catalog_name"),
    ("40001", "serialization_failure"),
    ("40P01", "deadlock_detected"),
    ("42501", "insufficient_privilege"),
    ("42601", "syntax_error"),
    ("42703", "undefined_column"),
    ("42883", "undefined_function"),
    ("42P01", "undefined_table"),
    ("53300", "too_many_connections"),
    ("55P03", "lock_not_available"),
    ("57014", "query_canceled"),
    ("57P01", "admin_shutdown"),
    ("57P03", "cannot_connect_now"),
    ("P0001", "raise_exception"),
];

/// "23505 (unique_violation)"; of a log without codes, the severity.
fn code(row: &LogRow) -> String {
    let name = NAMES.iter().find(|(code, _)| *code == &*row.sqlstate);
    match (&*row.sqlstate, name) {
        ("", _) => row.severity.to_string(),
        (code, Some((_, name))) => format!("{code} ({name})"),
        (code, None) => code.to_string(),
    }
}

/// Maximum number of times of a finding.
const TIMES: usize = 1000;
/// Characters of a statement in a sentence.
const TEXT: usize = 70;

/// The findings about the log.
pub(super) fn findings(material: &Material, zone: &TimeZone) -> Vec<Finding> {
    let errors: Vec<&LogRow> = material.log.iter().filter(|row| is_error(row)).collect();
    let panics: Vec<&LogRow> =
        errors.iter().filter(|row| &*row.severity == "PANIC").copied().collect();
    let mut found = Vec::new();
    if !panics.is_empty() {
        let text = format!("The server ended with a PANIC{}.", when(&panics, zone));
        found.push(Finding { times: times(&panics), ..warning("log", text) });
    }
    for (sqlstate, what) in CERTAIN {
        let those =
            errors.iter().filter(|row| &*row.sqlstate == sqlstate && &*row.severity != "PANIC");
        let those: Vec<&LogRow> = those.copied().collect();
        if !those.is_empty() {
            let text = format!("{what} ({sqlstate}){}.", when(&those, zone));
            found.push(Finding { times: times(&those), ..warning("log", text) });
        }
    }
    found.extend(most_frequent(material, &errors));
    found
}

/// When they were logged.
fn times(rows: &[&LogRow]) -> Vec<(f64, f64)> {
    rows.iter().map(|row| (logged(row), logged(row))).take(TIMES).collect()
}

/// ", 3 times from 10:00:01 to 10:04:07" or " at 10:00:01".
fn when(rows: &[&LogRow], zone: &TimeZone) -> String {
    let at = |row: &&LogRow| time(logged(row), zone);
    match (rows.first(), rows.last()) {
        (Some(first), Some(last)) if rows.len() > 1 => {
            format!(", {} times from {} to {}", whole(rows.len() as u64), at(first), at(last))
        }
        (Some(first), _) => format!(" at {}", at(first)),
        _ => String::new(),
    }
}

/// How many errors there are, and the one with most of them.
fn most_frequent(material: &Material, errors: &[&LogRow]) -> Option<Finding> {
    let texts = texts(material);
    let mut groups: BTreeMap<_, Vec<&LogRow>> = BTreeMap::new();
    for row in errors {
        groups.entry((code(row), statement(row, &texts))).or_default().push(row);
    }
    let ((code, text), most) =
        groups.iter().max_by(|a, b| a.1.len().cmp(&b.1.len()).then_with(|| b.0.cmp(a.0)))?;
    let of = text.as_ref().map_or(String::new(), |text| format!(" of {}", beginning(text, TEXT)));
    let count = whole(errors.len() as u64);
    let text = match (errors.len(), groups.len()) {
        (1, _) => format!("The server logged 1 error: {code}{of}."),
        (_, 1) => format!("The server logged {count} errors: {code}{of}."),
        (_, _) => {
            let most = whole(most.len() as u64);
            format!("The server logged {count} errors; most frequent, {most} times: {code}{of}.")
        }
    };
    Some(Finding { times: times(errors), ..note("log", text) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn row(at: f64, severity: &str, sqlstate: &str, message: &str, query: Option<&str>) -> LogRow {
        LogRow {
            time_us: (at * 1e6) as i64,
            kind: "error".into(),
            severity: severity.into(),
            sqlstate: sqlstate.into(),
            message: message.into(),
            query: query.map(Into::into),
            ..LogRow::default()
        }
    }

    fn found(log: Vec<LogRow>) -> Vec<(view::document::Weight, String)> {
        let material = Material { log, ..sample::material() };
        let all = findings(&material, &TimeZone::UTC).into_iter();
        all.map(|finding| (finding.weight, finding.text)).collect()
    }

    #[test]
    fn errors_of_clients_are_counted_and_those_of_the_server_are_warnings() {
        use view::document::Weight::{Note, Warning};
        assert_eq!(found(Vec::new()), []);
        let insert = Some("insert into t values (?)");
        let one = || row(60.0, "ERROR", "23505", "duplicate key value", insert);
        let text =
            "The server logged 1 error: 23505 (unique_violation) of insert into t values (?).";
        assert_eq!(found(vec![one()]), [(Note, text.to_owned())]);
        let full = |at| row(at, "FATAL", "53300", "sorry, too many clients already", None);
        let log = vec![
            one(),
            full(60.0),
            full(120.0),
            full(121.0),
            row(130.0, "PANIC", "58030", "could not write to file \"pg_wal/x\"", None),
        ];
        let expected = [
            (Warning, "The server ended with a PANIC at 1970-01-01 00:02:10 UTC."),
            (
                Warning,
                "Sessions were refused, because all connections were in use (53300), 3 times from 1970-01-01 00:01:00 UTC to \
                 1970-01-01 00:02:01 UTC.",
            ),
            (
                Note,
                "The server logged 5 errors; most frequent, 3 times: 53300 (too_many_connections).",
            ),
        ];
        assert_eq!(found(log), expected.map(|(weight, text)| (weight, text.to_owned())));
        let of_stderr = vec![row(60.0, "ERROR", "", "invalid input: \"secret\"", None)];
        assert_eq!(found(of_stderr)[0].1, "The server logged 1 error: ERROR.");
    }
}
