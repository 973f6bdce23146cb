// SPDX-License-Identifier: PostgreSQL
//! What the server's log says went wrong: certain are errors that no client can have caused alone; all others are counted.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use recording::LogRow;

use super::finding::note;
use crate::material::Material;
use crate::tables::server_log::{is_error, logged, statement, texts};
use diagnose::{Confidence, Diagnosis, Kind, Rule};
use view::document::{time, Finding};
use view::statements::beginning;
use view::units::whole;

/// What an error says about the server, whoever sent the statement.
struct CertainError {
    /// Its SQLSTATE (errcodes.txt).
    sqlstate: &'static str,
    what: &'static str,
    advice: &'static str,
    /// Whether data is damaged: nothing else matters as much.
    damage: bool,
}

const CERTAIN: [CertainError; 6] = [
    CertainError {
        sqlstate: "XX001",
        what: "The server found corrupted data",
        advice: "Save a copy of the data directory before anything else. pg_amcheck finds what else is damaged; restore that from a \
                 backup. Look for errors of the device in the kernel's log.",
        damage: true,
    },
    CertainError {
        sqlstate: "XX002",
        what: "The server found a corrupted index",
        advice: "Build the index anew (REINDEX), and let pg_amcheck look for others. Look for errors of the device in the kernel's \
                 log, and for a new version of the C library, whose collations may sort differently.",
        damage: true,
    },
    CertainError {
        sqlstate: "58030",
        what: "Input or output failed",
        advice: "Look for errors of the device in the kernel's log (dmesg). The message in the server's log names the file.",
        damage: false,
    },
    CertainError {
        sqlstate: "53100",
        what: "A disk was full",
        advice: "Make the file system larger, or find out what fills it: slots that retain WAL, temporary files (temp_file_limit \
                 limits those of a session), logs, or tables. Never delete files in pg_wal by hand.",
        damage: false,
    },
    CertainError {
        sqlstate: "53200",
        what: "The server ran out of memory",
        advice: "The message and the list of memory contexts in the server's log say what needed it. Lower work_mem, \
                 hash_mem_multiplier or the number of sessions; if it was shared memory, raise max_locks_per_transaction.",
        damage: false,
    },
    CertainError {
        sqlstate: "53300",
        what: "Sessions were refused, because all connections were in use",
        advice: "Find out who holds the connections: group pg_stat_activity by usename, application_name and state. Use a connection \
                 pool rather than a larger max_connections.",
        damage: false,
    },
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

/// A problem in the log, and when it was logged.
pub(super) struct LogProblem {
    pub diagnosis: Diagnosis,
    pub times: Vec<(f64, f64)>,
    /// Whether data is damaged, or the server went down.
    pub damage: bool,
}

/// The errors that no client can have caused alone.
pub(super) fn problems(material: &Material, zone: &TimeZone) -> Vec<LogProblem> {
    let errors: Vec<&LogRow> = material.log.iter().filter(|row| is_error(row)).collect();
    let (panics, others): (Vec<&LogRow>, Vec<&LogRow>) =
        errors.iter().partition(|row| &*row.severity == "PANIC");
    let mut found = Vec::new();
    if !panics.is_empty() {
        let text = format!("The server ended with a PANIC{}.", when(&panics, zone));
        let advice = "Read the messages before it in the server's log: they name the cause, most often the device or the file \
                      system of the WAL.";
        let diagnosis = problem(text, advice);
        found.push(LogProblem { diagnosis, times: times(&panics), damage: true });
    }
    for CertainError { sqlstate, what, advice, damage } in CERTAIN {
        let those: Vec<&LogRow> =
            others.iter().filter(|row| &*row.sqlstate == sqlstate).copied().collect();
        if !those.is_empty() {
            let text = format!("{what} ({sqlstate}){}.", when(&those, zone));
            let diagnosis = problem(text, advice);
            found.push(LogProblem { diagnosis, times: times(&those), damage });
        }
    }
    found
}

fn problem(text: String, advice: &str) -> Diagnosis {
    Diagnosis {
        rule: Rule::ServerLog,
        kind: Kind::Problem,
        text,
        seconds: 0.0,
        share: None,
        evidence: Vec::new(),
        advice: advice.into(),
        confidence: Confidence::Certain,
        section: "log",
        consequence_of: None,
    }
}

/// How many errors were logged.
pub(super) fn finding(material: &Material) -> Option<Finding> {
    let errors: Vec<&LogRow> = material.log.iter().filter(|row| is_error(row)).collect();
    most_frequent(material, &errors)
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

    fn found(log: Vec<LogRow>) -> (Vec<String>, Option<String>) {
        let material = Material { log, ..sample::material() };
        let problems = problems(&material, &TimeZone::UTC).into_iter();
        let texts = problems.map(|problem| problem.diagnosis.text).collect();
        (texts, finding(&material).map(|finding| finding.text))
    }

    #[test]
    fn errors_of_clients_are_counted_and_those_of_the_server_are_problems() {
        assert_eq!(found(Vec::new()), (Vec::new(), None));
        let insert = Some("insert into t values (?)");
        let one = || row(60.0, "ERROR", "23505", "duplicate key value", insert);
        let text =
            "The server logged 1 error: 23505 (unique_violation) of insert into t values (?).";
        assert_eq!(found(vec![one()]), (Vec::new(), Some(text.to_owned())));
        let full = |at| row(at, "FATAL", "53300", "sorry, too many clients already", None);
        let log = vec![
            one(),
            full(60.0),
            full(120.0),
            full(121.0),
            row(130.0, "PANIC", "58030", "could not write to file \"pg_wal/x\"", None),
        ];
        let problems = [
            "The server ended with a PANIC at 1970-01-01 00:02:10 UTC.",
            "Sessions were refused, because all connections were in use (53300), 3 times from 1970-01-01 00:01:00 UTC to \
             1970-01-01 00:02:01 UTC.",
        ];
        let count =
            "The server logged 5 errors; most frequent, 3 times: 53300 (too_many_connections).";
        let expected = (problems.map(str::to_owned).to_vec(), Some(count.to_owned()));
        assert_eq!(found(log), expected);
        let of_stderr = vec![row(60.0, "ERROR", "", "invalid input: \"secret\"", None)];
        assert_eq!(found(of_stderr).1.unwrap(), "The server logged 1 error: ERROR.");
    }
}
