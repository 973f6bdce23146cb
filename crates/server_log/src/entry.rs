// SPDX-License-Identifier: PostgreSQL
//! A message of the log, and what it is about.

use std::fmt;

use jiff::tz::TimeZone;

/// Most bytes of a message; longer ones are passed over.
pub const MOST_OF_A_MESSAGE: usize = 1 << 20;

/// A time as the log has it: "2026-03-01 10:00:00.250 CET". The abbreviation of a time zone says too little, so `zone` is the
/// server's `log_timezone`; only UTC and GMT are taken from the text.
pub fn time_us(text: &str, zone: &TimeZone) -> Option<i64> {
    let (date, rest) = text.split_once(' ')?;
    let (time, named) = rest.split_once(' ')?;
    let is_zone = !named.is_empty()
        && named.len() <= 8
        && named.chars().all(|c| c.is_ascii_alphanumeric() || "+-:/_".contains(c));
    if !is_zone || date.len() < 10 {
        return None;
    }
    let civil: jiff::civil::DateTime = format!("{date}T{time}").parse().ok()?;
    let utc = TimeZone::UTC;
    let zone = if matches!(named, "UTC" | "GMT") { &utc } else { zone };
    // In the hour that occurs twice, the earlier one unless the zone's abbreviation is that of the later one.
    let ambiguous = zone.to_ambiguous_zoned(civil);
    let (earlier, later) = (ambiguous.clone().earlier().ok()?, ambiguous.later().ok()?);
    let of = |zoned: &jiff::Zoned| zone.to_offset_info(zoned.timestamp()).abbreviation() == named;
    let chosen = if !of(&earlier) && of(&later) { later } else { earlier };
    Some(chosen.timestamp().as_microsecond())
}

/// What a message is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An error that ended a statement, a session or the server.
    Error,
    /// Two or more sessions waited for each other, and one of them got this error.
    Deadlock,
    /// A warning.
    Warning,
    /// A plan, by auto_explain.
    Plan,
    /// A statement that took long, or all of them (`log_min_duration_statement`).
    Statement,
    /// A session waits for a lock, or has got it (`log_lock_waits`).
    LockWait,
    /// What an autovacuum worker did to a table.
    Autovacuum,
    /// The beginning or end of a checkpoint or restartpoint.
    Checkpoint,
    /// A temporary file.
    TemporaryFile,
    /// Anything else.
    Other,
}

impl Kind {
    /// Its name in a recording.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Error => "error",
            Kind::Deadlock => "deadlock",
            Kind::Warning => "warning",
            Kind::Plan => "plan",
            Kind::Statement => "statement",
            Kind::LockWait => "lock wait",
            Kind::Autovacuum => "autovacuum",
            Kind::Checkpoint => "checkpoint",
            Kind::TemporaryFile => "temporary file",
            Kind::Other => "other",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A message of the log. Texts that the format or the server's settings omit are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogEntry {
    /// Microseconds since 1970; `None`: no time, or one of an unknown time zone.
    pub time_us: Option<i64>,
    /// The process.
    pub pid: i64,
    /// Its user.
    pub user: String,
    /// Its database.
    pub database: String,
    /// Its application_name.
    pub application: String,
    /// The kind of process, as in pg_stat_activity.
    pub process: String,
    /// "ERROR", "LOG" and so on, in the language of `lc_messages`.
    pub severity: String,
    /// The five characters of the SQLSTATE code.
    pub sqlstate: String,
    /// The message.
    pub message: String,
    /// Its details.
    pub detail: String,
    /// Where it arose: functions, the row of a COPY.
    pub context: String,
    /// The statement, with its constants.
    pub query: String,
    /// Its query id; 0: none.
    pub queryid: i64,
}

impl LogEntry {
    /// What the message is about. Errors and warnings are known by their SQLSTATE or severity, the other kinds by English texts.
    pub fn kind(&self) -> Kind {
        if self.sqlstate == "40P01" || self.message == "deadlock detected" {
            return Kind::Deadlock;
        }
        match self.severity.as_str() {
            "ERROR" | "FATAL" | "PANIC" => return Kind::Error,
            "WARNING" => return Kind::Warning,
            _ => {}
        }
        match self.sqlstate.get(..2) {
            None | Some("00") => {}
            Some("01") => return Kind::Warning,
            // Other languages have other words. A notice has class 00, or the number of what it passed over.
            Some(_) if !self.is_message_of_little_weight() => return Kind::Error,
            Some(_) => {}
        }
        let message = self.message.as_str();
        let begins = |texts: &[&str]| texts.iter().any(|text| message.starts_with(text));
        let is_timed = begins(&["duration: "]);
        if is_timed && message.contains("  plan:") {
            Kind::Plan
        } else if is_timed {
            Kind::Statement
        } else if begins(&["automatic "]) {
            Kind::Autovacuum
        } else if begins(&["checkpoint ", "restartpoint "]) {
            Kind::Checkpoint
        } else if begins(&["temporary file: "]) {
            Kind::TemporaryFile
        } else if begins(&["process "])
            && [
                " still waiting for ",
                " acquired ",
                " avoided deadlock for ",
                " detected deadlock while waiting for ",
            ]
            .iter()
            .any(|text| message.contains(text))
        {
            Kind::LockWait
        } else {
            Kind::Other
        }
    }

    fn is_message_of_little_weight(&self) -> bool {
        self.severity.is_empty()
            || ["LOG", "INFO", "NOTICE"].contains(&self.severity.as_str())
            || self.severity.starts_with("DEBUG")
    }

    /// The duration that the message states, in microseconds.
    pub fn duration_us(&self) -> Option<u64> {
        let text = self.message.strip_prefix("duration: ")?;
        let (number, rest) = text.split_once(' ')?;
        let ms: f64 = number.parse().ok().filter(|ms: &f64| ms.is_finite() && *ms >= 0.0)?;
        // At most 2^53, so exact enough.
        rest.starts_with("ms").then_some((ms * 1e3).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(severity: &str, sqlstate: &str, message: &str) -> LogEntry {
        let [severity, sqlstate, message] = [severity, sqlstate, message].map(str::to_string);
        LogEntry { severity, sqlstate, message, ..LogEntry::default() }
    }

    #[test]
    fn messages_are_told_apart() {
        for (severity, sqlstate, message, kind) in [
            ("ERROR", "23505", "duplicate key value", Kind::Error),
            ("FEHLER", "23505", "doppelter Schlüsselwert", Kind::Error),
            ("FATAL", "", "the database system is starting up", Kind::Error),
            ("ERROR", "40P01", "deadlock detected", Kind::Deadlock),
            ("ERROR", "", "deadlock detected", Kind::Deadlock),
            ("WARNING", "01000", "you don't own a lock", Kind::Warning),
            ("WARNUNG", "01000", "keine Sperre", Kind::Warning),
            ("NOTICE", "42P07", "relation exists, skipping", Kind::Other),
            ("LOG", "00000", "duration: 12.345 ms  plan:\nQuery Text: select 1", Kind::Plan),
            ("LOG", "00000", "duration: 12.345 ms  statement: select 1", Kind::Statement),
            (
                "LOG",
                "00000",
                "automatic vacuum of table \"a.b.c\": index scans: 1",
                Kind::Autovacuum,
            ),
            ("LOG", "00000", "checkpoint complete: wrote 3 buffers", Kind::Checkpoint),
            ("LOG", "00000", "restartpoint starting: time", Kind::Checkpoint),
            (
                "LOG",
                "00000",
                "temporary file: path \"base/pgsql_tmp/x\", size 1",
                Kind::TemporaryFile,
            ),
            (
                "LOG",
                "00000",
                "process 1 still waiting for ShareLock on transaction 2 after 1000.1 ms",
                Kind::LockWait,
            ),
            (
                "LOG",
                "00000",
                "process 1 acquired ShareLock on transaction 2 after 2000.1 ms",
                Kind::LockWait,
            ),
            ("LOG", "00000", "database system is ready to accept connections", Kind::Other),
        ] {
            assert_eq!(entry(severity, sqlstate, message).kind(), kind, "{severity} {message}");
        }
    }

    #[test]
    fn a_duration_is_in_ms() {
        let of = |message| entry("LOG", "", message).duration_us();
        assert_eq!(of("duration: 12.345 ms  plan:"), Some(12_345));
        assert_eq!(
            [of("duration: many ms"), of("checkpoint starting"), of("duration: 1 s")],
            [None; 3]
        );
    }
}
