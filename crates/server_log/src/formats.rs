// SPDX-License-Identifier: PostgreSQL
//! The three formats: where a message ends, and its fields.

use jiff::tz::TimeZone;
use serde::Deserialize;

use crate::entry::{time_us, LogEntry, MOST_OF_A_MESSAGE};
use crate::prefix::Prefix;

/// A format of the log, as `log_destination` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Comma-separated values.
    Csv,
    /// A JSON object on each line.
    Json,
    /// Text with `log_line_prefix` before it.
    Stderr,
}

impl LogFormat {
    /// The format of this name.
    pub fn of_name(name: &str) -> Option<LogFormat> {
        [LogFormat::Csv, LogFormat::Json, LogFormat::Stderr]
            .into_iter()
            .find(|format| format.name() == name)
    }

    /// Its name in `log_destination` and `current_logfiles`.
    pub fn name(self) -> &'static str {
        match self {
            LogFormat::Csv => "csvlog",
            LogFormat::Json => "jsonlog",
            LogFormat::Stderr => "stderr",
        }
    }

    /// The format of a file, by its first line.
    pub fn of_line(line: &str) -> LogFormat {
        if line.starts_with("{\"timestamp\":") {
            LogFormat::Json
        } else if begins_csv(line) {
            LogFormat::Csv
        } else {
            LogFormat::Stderr
        }
    }
}

/// Whether a message in csvlog may begin with this line: a time, and a user's name in quotes or none.
fn begins_csv(line: &str) -> bool {
    line.split_once(',').is_some_and(|(time, rest)| {
        time_us(time, &TimeZone::UTC).is_some() && rest.starts_with([',', '"'])
    })
}

/// A message in the format `csvlog`.
pub fn csv(text: &str, zone: &TimeZone) -> Option<LogEntry> {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let record = reader.records().next()?.ok()?;
    // 23 columns until 12, 24 in 13, 26 since 14.
    if record.len() < 23 {
        return None;
    }
    let at = |column: usize| record.get(column).unwrap_or("").to_string();
    Some(LogEntry {
        time_us: Some(time_us(&at(0), zone)?),
        user: at(1),
        database: at(2),
        pid: at(3).parse().ok()?,
        severity: at(11),
        sqlstate: at(12),
        message: at(13),
        detail: at(14),
        context: at(18),
        query: at(19),
        application: at(22),
        process: at(23),
        queryid: at(25).parse().unwrap_or(0),
    })
}

/// The fields of `jsonlog` that are kept.
#[derive(Deserialize, Default)]
#[serde(default)]
struct JsonMessage {
    timestamp: String,
    pid: i64,
    user: String,
    dbname: String,
    application_name: String,
    backend_type: String,
    error_severity: String,
    state_code: String,
    message: String,
    detail: String,
    context: String,
    statement: String,
    query_id: i64,
}

/// A message in the format `jsonlog`.
pub fn json(text: &str, zone: &TimeZone) -> Option<LogEntry> {
    let found: JsonMessage = serde_json::from_str(text).ok()?;
    Some(LogEntry {
        time_us: Some(time_us(&found.timestamp, zone)?),
        pid: found.pid,
        user: found.user,
        database: found.dbname,
        application: found.application_name,
        process: found.backend_type,
        severity: found.error_severity,
        sqlstate: found.state_code,
        message: found.message,
        detail: found.detail,
        context: found.context,
        query: found.statement,
        queryid: found.query_id,
    })
}

/// Reads a line of the format `stderr`: returns the message that begins with it, or adds it to `message`, if there is one.
pub fn stderr(
    line: &str,
    prefix: &Prefix,
    zone: &TimeZone,
    message: Option<&mut LogEntry>,
) -> Option<LogEntry> {
    let Some((mut entry, rest)) = prefix.split(line, zone) else {
        if let Some(message) = message {
            continue_last(message, line.strip_prefix('\t').unwrap_or(line));
        }
        return None;
    };
    let (word, text) = rest.split_once(":  ").unwrap_or(("", rest));
    let same = message.filter(|message| message.pid == entry.pid);
    if let Some(message) = same {
        let field = match word {
            "DETAIL" => Some(&mut message.detail),
            "CONTEXT" => Some(&mut message.context),
            "STATEMENT" => Some(&mut message.query),
            _ => None,
        };
        if let Some(field) = field {
            *field = text.to_string();
            return None;
        }
        if matches!(word, "HINT" | "QUERY" | "LOCATION" | "BACKTRACE") {
            return None;
        }
    }
    entry.severity = word.to_string();
    entry.message = text.to_string();
    Some(entry)
}

/// A further line of the last field that has one.
fn continue_last(message: &mut LogEntry, line: &str) {
    let fields = [&mut message.query, &mut message.context, &mut message.detail];
    let field = fields.into_iter().find(|field| !field.is_empty()).unwrap_or(&mut message.message);
    if field.len() < MOST_OF_A_MESSAGE {
        field.push('\n');
        field.push_str(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "2026-03-01 10:00:00.250 UTC,\"app\",\"shop\",42,\"[local]\",69a40e10.2a,3,\"INSERT\",2026-03-01 09:59:00 \
        UTC,3/7,812,ERROR,23505,\"duplicate key value violates unique constraint \"\"t_pkey\"\"\",\"Key (i)=(1) already \
        exists.\",,,,,\"insert into t\nvalues (1)\",,,\"psql\",\"client backend\",,-4711";

    #[test]
    fn a_message_of_csvlog() {
        let entry = csv(CSV, &TimeZone::UTC).unwrap();
        assert_eq!(entry.time_us, Some(1_772_359_200_250_000));
        assert_eq!((entry.pid, entry.queryid, &*entry.sqlstate), (42, -4711, "23505"));
        assert_eq!(entry.message, "duplicate key value violates unique constraint \"t_pkey\"");
        assert_eq!(entry.query, "insert into t\nvalues (1)");
        assert_eq!((&*entry.application, &*entry.process), ("psql", "client backend"));
        assert_eq!([csv("a,b", &TimeZone::UTC), csv("", &TimeZone::UTC)], [None, None]);
        assert_eq!(LogFormat::of_line(CSV), LogFormat::Csv);
    }

    #[test]
    fn a_message_of_jsonlog() {
        let line = r#"{"timestamp":"2026-03-01 10:00:00.250 UTC","pid":42,"error_severity":"LOG","state_code":"00000","message":"x","query_id":7,"unknown":{}}"#;
        let entry = json(line, &TimeZone::UTC).unwrap();
        assert_eq!((entry.pid, entry.queryid, &*entry.message, &*entry.user), (42, 7, "x", ""));
        assert_eq!(LogFormat::of_line(line), LogFormat::Json);
        assert_eq!(
            LogFormat::of_line("2026-03-01 10:00:00.250 UTC [4] LOG:  x"),
            LogFormat::Stderr
        );
    }

    #[test]
    fn the_lines_of_a_message_of_stderr_come_together() {
        let prefix = Prefix::parse("%m [%p] ");
        let line = |text: &str, last: Option<&mut LogEntry>| {
            stderr(
                &format!("2026-03-01 10:00:00.250 UTC [42] {text}"),
                &prefix,
                &TimeZone::UTC,
                last,
            )
        };
        let mut entry = line("ERROR:  syntax error", None).unwrap();
        assert_eq!(line("DETAIL:  no", Some(&mut entry)), None);
        assert_eq!(line("HINT:  other", Some(&mut entry)), None);
        assert_eq!(line("STATEMENT:  select", Some(&mut entry)), None);
        assert_eq!(stderr("\tfrom", &prefix, &TimeZone::UTC, Some(&mut entry)), None);
        assert_eq!((&*entry.severity, &*entry.message), ("ERROR", "syntax error"));
        assert_eq!((&*entry.detail, &*entry.query), ("no", "select\nfrom"));
        assert!(line("LOG:  next", Some(&mut entry)).is_some());
    }

    #[test]
    fn times_are_in_the_servers_zone_and_the_hour_that_occurs_twice_is_told_apart() {
        let Ok(berlin) = TimeZone::get("Europe/Berlin") else { return };
        let of = |text| time_us(text, &berlin).map(|us| us / 1_000_000);
        assert_eq!(of("2026-07-01 12:00:00.000 CEST"), Some(1_782_900_000));
        let (first, second) = (of("2026-10-25 02:30:00 CEST"), of("2026-10-25 02:30:00 CET"));
        assert_eq!(second.unwrap() - first.unwrap(), 3600);
        assert_eq!(of("2026-07-01 10:00:00 UTC"), of("2026-07-01 12:00:00.000 CEST"));
        assert_eq!(
            [of("yesterday"), of("2026-07-01 12:00"), of("2026-07-01 12:00:00 a b")],
            [None; 3]
        );
    }
}
