// SPDX-License-Identifier: PostgreSQL
//! Timeouts that are set for our role, our database or all sessions. They are meant for applications, but
//! would cancel a reading, or end our session between two readings.

use pq::{Client, Error};

/// statement_timeout may also cancel the statements that lift the other limits, so it is lifted first.
const STATEMENT_TIMEOUT: &str = "/* tally */ SET statement_timeout = 0";
/// A limit of a millisecond may cancel even that statement. Number of attempts.
const TRIES: u32 = 20;

/// Lifts the other limits. current_setting is null for a limit that the server's version does not have.
const LIFT: &str = "/* tally */ SELECT set_config(name, '0', false) \
    FROM unnest(ARRAY['lock_timeout', 'idle_in_transaction_session_timeout', 'idle_session_timeout', \
                      'transaction_timeout']) name \
    WHERE current_setting(name, true) <> '0'";

/// The limits in effect, and the command that set them for us; null: the configuration.
const IN_FORCE: &str = "/* tally */ SELECT name, current_setting(name), \
           (SELECT CASE WHEN s.setrole = 0 AND s.setdatabase = 0 THEN 'ALTER ROLE ALL' \
                        WHEN s.setrole = 0 THEN format('ALTER DATABASE %I', current_database()) \
                        WHEN s.setdatabase = 0 THEN format('ALTER ROLE %I', session_user) \
                        ELSE format('ALTER ROLE %I IN DATABASE %I', session_user, current_database()) END \
            FROM pg_db_role_setting s, unnest(s.setconfig) entry \
            WHERE s.setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = session_user)) \
              AND s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database())) \
              AND split_part(entry, '=', 1) = name \
            ORDER BY s.setrole <> 0 DESC, s.setdatabase <> 0 DESC LIMIT 1) \
    FROM unnest(ARRAY['statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', \
                      'idle_session_timeout', 'transaction_timeout']) name \
    WHERE current_setting(name, true) <> '0'";

/// SQLSTATEs with which a limit ends a statement or a session: query_canceled, lock_not_available, and the timeouts of
/// idle sessions, of idle transactions and of transactions.
const BY_A_LIMIT: [&str; 5] = ["57014", "55P03", "57P05", "25P03", "25P04"];

/// A limit that is in effect in our session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// The setting.
    name: String,
    /// Its value, as SHOW prints it.
    value: String,
    /// The command that has set it.
    set_by: Option<String>,
}

/// Lifts statement_timeout. If the server refuses, as some hosted services do, it stays.
pub fn lift_statement_timeout(client: &mut Client) {
    for _ in 0..TRIES {
        match client.batch_execute(STATEMENT_TIMEOUT) {
            Err(error) if is_by_a_limit(&error) => {}
            _ => break,
        }
    }
}

/// Lifts the other limits in the same way. The search_path must already be restricted to pg_catalog.
pub fn lift_others(client: &mut Client) {
    // If it fails, and a statement is cancelled by a limit later, that error names the limit (`explain`).
    let _ = client.batch_execute(LIFT);
}

/// The limits that could not be lifted.
pub fn in_force(client: &mut Client) -> Vec<Limit> {
    let limit = |row: &pq::Row| -> Result<Limit, Error> {
        Ok(Limit { name: row.get(0)?, value: row.get(1)?, set_by: row.get(2)? })
    };
    let rows = client.query(IN_FORCE, &[]).unwrap_or_default();
    rows.iter().filter_map(|row| limit(row).ok()).collect()
}

fn is_by_a_limit(error: &Error) -> bool {
    error.sqlstate().is_some_and(|state| BY_A_LIMIT.contains(&state))
}

/// Which limits may be the reason for an error with this SQLSTATE, and where they are set; empty: none.
pub fn explain(sqlstate: Option<&str>, limits: &[Limit]) -> String {
    // Without a SQLSTATE the connection was lost.
    if limits.is_empty() || sqlstate.is_some_and(|state| !BY_A_LIMIT.contains(&state)) {
        return String::new();
    }
    let limits: Vec<String> = limits.iter().map(Limit::words).collect();
    format!("; limits in effect: {}", limits.join(", "))
}

impl Limit {
    /// "statement_timeout = 1s (ALTER ROLE monitor RESET statement_timeout removes it)".
    fn words(&self) -> String {
        let Limit { name, value, set_by } = self;
        match set_by {
            Some(command) => format!("{name} = {value} ({command} RESET {name} removes it)"),
            None => {
                format!("{name} = {value} (set by the configuration or the connection's options)")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_named_with_what_removes_it_if_it_may_be_the_reason() {
        let limit = |name: &str, set_by: Option<&str>| Limit {
            name: name.into(),
            value: "1s".into(),
            set_by: set_by.map(str::to_string),
        };
        let both =
            [limit("statement_timeout", Some("ALTER ROLE monitor")), limit("lock_timeout", None)];
        assert_eq!(
            explain(None, &both),
            "; limits in effect: statement_timeout = 1s (ALTER ROLE monitor RESET statement_timeout removes it), \
             lock_timeout = 1s (set by the configuration or the connection's options)"
        );
        assert_eq!(explain(Some("57014"), &both), explain(None, &both));
        assert_eq!([explain(Some("42501"), &both), explain(None, &[])], ["", ""]);
    }
}
