// SPDX-License-Identifier: PostgreSQL
//! The named queries: each is a file in `sql/queries/`; the columns of its result are defined here.

use view::table::{Column, Unit};

use crate::source::Files;
use crate::template::{expand, Values};
use crate::views::{body, with_views};
use crate::{Dialect, QueryParams, Root};

/// A named query.
#[derive(Debug)]
pub struct Query {
    /// Its name.
    pub name: &'static str,
    /// The question that it answers, in one line.
    pub about: &'static str,
    /// The columns of the result.
    pub columns: &'static [Column],
    sql: &'static str,
}

macro_rules! queries {
    ($($name:literal: $about:literal, [$($key:literal $title:literal $unit:ident $(.$more:ident($($value:expr)?))*,)*];)*) => {
        /// All queries.
        pub const QUERIES: &[Query] = &[$(Query {
            name: $name,
            about: $about,
            columns: &[$(Column::new($key, $title, Unit::$unit)$(.$more($($value)?))*),*],
            sql: include_str!(concat!("../sql/queries/", $name, ".sql")),
        }),*];
    };
}

queries! {
    "hosts": "recorded hosts: from when to when, and how completely", [
        "cluster" "CLUSTER" Id,
        "host" "HOST" Id,
        "began" "FROM" Time.expendable(3),
        "ended" "TO" Time,
        "covered_seconds" "RECORDED" Seconds,
        "covered_share" "%COVERED" Share,
        "exact_share" "%EXACT" Share.expendable(2),
        "cpus" "CPUS" Count.expendable(1),
        "handled" "COMMANDS" Count,
    ];
    "load": "where each host's time goes: average sessions by activity", [
        "cluster" "CLUSTER" Id,
        "host" "HOST" Id,
        "activity" "ACTIVITY" Id,
        "class" "CLASS" Text.expendable(3),
        "seconds" "TIME" Seconds,
        "sessions" "SESSIONS" Sessions,
        "share" "%TIME" Share,
        "per_second" "EVENTS/S" PerSecond.expendable(2),
        "source" "SOURCE" Text.expendable(1),
    ];
    "waits": "wait events of each host: how often, how long, and quantiles", [
        "cluster" "CLUSTER" Id,
        "host" "HOST" Id,
        "activity" "WAIT EVENT" Id,
        "class" "CLASS" Text.expendable(3),
        "seconds" "TIME" Seconds,
        "waits" "WAITS" Count,
        "p50_seconds" "P50" Seconds,
        "p95_seconds" "P95" Seconds.expendable(4),
        "p99_seconds" "P99" Seconds,
        "max_seconds" "MAX" Seconds,
        "source" "SOURCE" Text.expendable(1),
    ];
    "statements": "statements with the most execution time over all hosts", [
        "statement" "STATEMENT" Text.elastic(),
        "fingerprint" "FINGERPRINT" Id.expendable(9),
        "hosts" "HOSTS" Count,
        "calls" "CALLS" Count,
        "per_second" "CALLS/S" PerSecond.expendable(5),
        "seconds" "TIME" Seconds,
        "share" "%TIME" Share,
        "mean_seconds" "MEAN" Seconds,
        "max_seconds" "MAX" Seconds.expendable(3),
        "rows_per_call" "ROWS/CALL" Number.expendable(6),
        "hit_share" "%HIT" Share.expendable(7),
        "wal_bytes" "WAL" Bytes.expendable(8),
        "errors" "ERRORS" Count.expendable(10),
        "top_host" "TOP HOST" Id.expendable(4),
        "source" "SOURCE" Text.expendable(11),
    ];
    "regressions": "statements that take twice or half as long as in another window, and on which hosts", [
        "statement" "STATEMENT" Text,
        "fingerprint" "FINGERPRINT" Id.expendable(9),
        "hosts_slower" "SLOWER ON" Count,
        "hosts_faster" "FASTER ON" Count.expendable(4),
        "hosts" "HOSTS" Count,
        "factor" "TIMES" Number,
        "before_seconds" "BEFORE" Seconds,
        "mean_seconds" "MEAN" Seconds,
        "sessions" "SESSIONS" Sessions.expendable(3),
        "slower_hosts" "SLOWER HOSTS" Text.elastic(),
    ];
    "outliers": "hosts that differ from the rest of their cluster, and in which figure", [
        "cluster" "CLUSTER" Id,
        "host" "HOST" Id,
        "figure" "FIGURE" Text,
        "amount" "VALUE" Number,
        "peers_median" "PEERS' MEDIAN" Number,
        "factor" "TIMES" Number,
        "deviations" "DEVIATIONS" Number.expendable(1),
        "peers" "HOSTS" Count.expendable(2),
        "source" "SOURCE" Text.expendable(3),
    ];
    "capacity": "how busy the machines are: CPU use, time above 80 %, sessions, commands", [
        "cluster" "CLUSTER" Id,
        "host" "HOST" Id,
        "cpus" "CPUS" Count.expendable(2),
        "cpu_share" "%CPU" Share,
        "cpu_max_share" "%MAX" Share,
        "busy_share" "%ABOVE 80" Share,
        "steal_share" "%STEAL" Share.expendable(3),
        "iowait_share" "%IOWAIT" Share.expendable(1),
        "sessions" "SESSIONS" Sessions,
        "max_sessions" "MAX" Sessions,
        "commands_per_second" "COMMANDS/S" PerSecond,
    ];
    "blocking": "sessions that blocked others: how many, how long, on which lock", [
        "cluster" "CLUSTER" Id,
        "host" "HOST" Id,
        "blocker" "PID" Id,
        "blocked_sessions" "BLOCKED" Count,
        "waited_seconds" "WAITED" Seconds,
        "max_seconds" "LONGEST" Seconds.expendable(3),
        "began" "FROM" Time.expendable(4),
        "ended" "TO" Time.expendable(2),
        "lock_name" "LOCK" Text,
        "application" "APPLICATION" Text.expendable(1),
        "user_name" "USER" Text.expendable(5),
        "last_state" "STATE" Text,
    ];
    "checkpoints": "checkpoints of each host: how often, how long, time to write and to sync", [
        "cluster" "CLUSTER" Id,
        "host" "HOST" Id,
        "checkpoints" "CHECKPOINTS" Count,
        "every_seconds" "EVERY" Seconds,
        "mean_seconds" "MEAN" Seconds,
        "share" "%TIME" Share,
        "write_seconds" "WRITE" Seconds,
        "sync_seconds" "SYNC" Seconds,
    ];
    "health": "wraparound, slots, archiving, lag, bloat, changed settings: hosts with most problems first", [
        "cluster" "CLUSTER" Id,
        "host" "HOST" Id,
        "problems" "PROBLEMS" Text,
        "used_share" "%WRAPAROUND" Share,
        "slot_bytes" "SLOT WAL" Bytes,
        "archiver" "ARCHIVER" Text.expendable(2),
        "waiting_bytes" "NOT ARCHIVED" Bytes.expendable(3),
        "behind_bytes" "BEHIND" Bytes.expendable(1),
        "behind_seconds" "LAG" Seconds,
        "bloat_bytes" "BLOAT" Bytes.expendable(4),
        "changed_settings" "CHANGED SETTINGS" Text.elastic(),
    ];
    "p99": "statements with the worst p99 over all hosts, and the host where it is worst", [
        "statement" "STATEMENT" Text.elastic(),
        "fingerprint" "FINGERPRINT" Id.expendable(9),
        "hosts" "HOSTS" Count,
        "calls" "CALLS" Count,
        "p50_seconds" "P50" Seconds,
        "p95_seconds" "P95" Seconds,
        "p99_seconds" "P99" Seconds,
        "max_seconds" "MAX" Seconds,
        "worst_host_p99_seconds" "WORST P99" Seconds,
        "worst_host" "ON" Id,
    ];
}

impl Query {
    /// Looks up a query by name.
    pub fn of_name(name: &str) -> Option<&'static Query> {
        QUERIES.iter().find(|query| query.name == name)
    }

    /// Its SQL with these values.
    pub(crate) fn with(&self, dialect: Dialect, values: &Values) -> String {
        let settings = match dialect {
            Dialect::ClickHouse => {
                "\nSETTINGS join_use_nulls = 1, group_by_use_nulls = 1, output_format_json_quote_64bit_integers = 0"
            }
            _ => "",
        };
        expand(body(self.sql), dialect, None, Some(values)) + settings
    }

    /// Its SQL. With a root, it includes the views that it needs; without one, the views must exist
    /// ([`crate::schema`]).
    pub fn sql(&self, dialect: Dialect, root: Option<&Root>, asked: &QueryParams) -> String {
        let query = self.with(dialect, &Values::from_params(asked));
        let Some(root) = root else { return query };
        let needed = match self.sql.contains("{{either}}") {
            true => asked.window.with(&asked.against),
            false => asked.window.clone(),
        };
        with_views(self.sql, &query, &Files { dialect, root, window: Some(&needed), tables: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::views_of;
    use crate::HostFilter;
    use crate::Window;

    fn asked() -> QueryParams {
        let window = |since, until| Window::new(since, until, HostFilter::default()).unwrap();
        QueryParams {
            window: window(1_000_000_000_000, 1_000_003_600_000),
            against: window(999_996_400_000, 1_000_000_000_000),
            limit: 7,
        }
    }

    #[test]
    fn every_query_is_complete_in_every_dialect() {
        let root = Root::parse("/srv/fleet").unwrap();
        for query in QUERIES {
            assert!(!views_of(query.sql).is_empty(), "{}", query.name);
            for dialect in Dialect::ALL {
                let sql = query.sql(dialect, Some(&root), &asked());
                assert!(!sql.contains("{{") && sql.contains("LIMIT 7"), "{sql}");
                assert_eq!(
                    sql.matches('(').count(),
                    sql.matches(')').count(),
                    "{} {dialect}",
                    query.name
                );
            }
        }
    }

    #[test]
    fn names_of_columns_are_those_of_the_text() {
        for query in QUERIES {
            let select =
                query.sql.rsplit_once("\nSELECT ").unwrap().1.split_once("\nFROM").unwrap().0;
            for column in query.columns {
                assert!(select.contains(column.key), "{} of {}", column.key, query.name);
            }
        }
    }
}
