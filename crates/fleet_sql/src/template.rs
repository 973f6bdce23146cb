// SPDX-License-Identifier: PostgreSQL
//! Expands double braces in the SQL of views and queries: `{{name arguments}}`, with the arguments separated by
//! `|`.

use segment::directory::PAUSES;
use segment::{wait_names, WaitClass};
use view::{health, vacuum};

use crate::quantiles::quantiles;
use crate::source::{Files, Source};
use crate::window::{QueryParams, Window};
use crate::Dialect;

/// The values that a query is expanded with, as SQL.
#[derive(Debug, Clone)]
pub struct Values {
    /// The condition for rows in the window.
    pub window: String,
    /// The condition for rows in the window or in the one to compare with.
    pub either: String,
    /// For rows in either: whether they are in the window.
    pub in_window: String,
    /// For rows in either: whether they are in the one to compare with.
    pub in_against: String,
    /// Length of the window, seconds.
    pub seconds: String,
    /// Maximum number of rows; for a chart, of hosts with a series of their own.
    pub limit: String,
    /// Length of a chart's step, milliseconds.
    pub step: String,
    /// A chart's time of day, from milliseconds since 1970.
    pub instant: fn(&str) -> String,
}

impl Values {
    /// The values for these parameters.
    pub fn from_params(asked: &QueryParams) -> Values {
        let within = |window: &Window| {
            format!("time_ms > {} AND time_ms <= {}", window.since_ms, window.until_ms)
        };
        Values {
            window: asked.window.condition(),
            either: asked.window.with(&asked.against).condition(),
            in_window: within(&asked.window),
            in_against: within(&asked.against),
            seconds: format!("{:?}", asked.window.seconds()),
            limit: asked.limit.to_string(),
            step: asked.window.step_ms().to_string(),
            instant: |ms| format!("{ms} / 1e3"),
        }
    }
}

/// The phase of an account, from its name.
fn phase(name: &str) -> String {
    format!("regexp_extract({name}, '^([^:]*)', 1)")
}

/// Its activity, under the name that the server uses.
fn own_activity(name: &str) -> String {
    format!("regexp_extract({name}, '^[^:]*::(wait::)?(.*)$', 2)")
}

/// Its activity, under the same name for all versions: [`wait_names::canonical`] in SQL.
fn activity(name: &str) -> String {
    let own = own_activity(name);
    let mut cases = String::new();
    for (earlier, last) in wait_names::earlier_names() {
        cases.push_str(&format!(" WHEN '{earlier}' THEN '{last}'"));
    }
    format!("CASE {own}{cases} ELSE {own} END")
}

/// Whether an account is idle: [`segment::interval::is_idle`] in SQL.
fn idle(name: &str) -> String {
    let pauses = PAUSES.map(|pause| format!("'{pause}'")).join(", ");
    let (phase, activity) = (phase(name), own_activity(name));
    format!(
        "({phase} = 'off' OR {activity} LIKE 'Activity:%' OR {activity} IN ({pauses}) \
         OR ({phase} IN ('idle', 'idle in transaction') AND {activity} LIKE 'Client:%'))"
    )
}

/// The class of an activity: [`WaitClass::of_name`] in SQL.
fn class(activity: &str) -> String {
    let mut cases = String::new();
    for prefix in WaitClass::prefixes() {
        let name = WaitClass::of_name(prefix).shown_as().name();
        // In LIKE, an underscore matches any character, which makes no difference for these names.
        cases.push_str(&match prefix.contains(':') {
            true => format!(" WHEN {activity} LIKE '{prefix}%' THEN '{name}'"),
            false => format!(" WHEN {activity} = '{prefix}' THEN '{name}'"),
        });
    }
    format!("CASE{cases} ELSE '{}' END", WaitClass::Other.name())
}

/// A statement's fingerprint, with one name for commands that some version of the server does not distinguish.
fn comparable(fingerprint: &str) -> String {
    let mut cases = String::new();
    for (own, comparable) in recording::synonyms() {
        cases.push_str(&format!(" WHEN '{own}' THEN '{comparable}'"));
    }
    format!("CASE {fingerprint}{cases} ELSE {fingerprint} END")
}

/// What makes a figure of a server's health a problem: as `tally doctor` decides.
fn health_limit(name: &str) -> String {
    match name {
        "wraparound" => health::WRAPAROUND.to_string(),
        "old-transactions" => health::OLD_TRANSACTIONS.to_string(),
        "inactive-slot" => health::INACTIVE_SLOT_BYTES.to_string(),
        "active-slot" => health::ACTIVE_SLOT_BYTES.to_string(),
        "waiting-wal" => health::WAITING_WAL_BYTES.to_string(),
        "little-space" => health::LITTLE_SPACE_BYTES.to_string(),
        "little-part" => format!("{:e}", health::LITTLE_SPACE_PART),
        "old-prepared" => health::OLD_PREPARED_SECONDS.to_string(),
        "lost" => vacuum::LOST.to_string(),
        "inactive" => vacuum::INACTIVE.to_string(),
        "fails" => vacuum::FAILS.to_string(),
        "not-configured" => vacuum::NOT_CONFIGURED.to_string(),
        // A test finds what is left in braces.
        _ => format!("{{{{health {name}}}}}"),
    }
}

/// The rate of the clock, in 100,000 ticks a second, for each hour of a host with rows in a time range.
fn rates(condition: &str) -> String {
    format!(
        "SELECT cluster AS of_cluster, host AS of_host, date AS of_date, hour AS of_hour, \
         round(max(ticks_per_second) / 1e5) AS rate, {IS_SAMPLED} AS is_sampled \
         FROM intervals WHERE {condition} GROUP BY cluster, host, date, hour"
    )
}

/// Whether any of these intervals was sampled: 1 or 0.
const IS_SAMPLED: &str = "max(CASE WHEN source = 'sampled' THEN 1 ELSE 0 END)";

/// Expands the text of a view or query; `values` are those of a query.
pub fn expand(
    text: &str,
    dialect: Dialect,
    files: Option<&Files<'_>>,
    values: Option<&Values>,
) -> String {
    let mut done = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let (inside, after) = after.split_once("}}").unwrap_or((after, ""));
        done.push_str(before);
        done.push_str(&one(inside, dialect, files, values));
        rest = after;
    }
    done.push_str(rest);
    done
}

fn one(
    inside: &str,
    dialect: Dialect,
    files: Option<&Files<'_>>,
    values: Option<&Values>,
) -> String {
    let (name, arguments) = inside.split_once(' ').unwrap_or((inside, ""));
    let arguments: Vec<&str> = arguments.split('|').map(str::trim).collect();
    let first = arguments[0];
    let second = arguments.get(1).copied().unwrap_or_default();
    let of = |part: fn(&Values) -> &String| values.map(part).cloned().unwrap_or_default();
    match name {
        "rows" => {
            let rows = Source::of_name(first).zip(files).map(|(source, files)| source.rows(files));
            format!("({})", rows.unwrap_or_default())
        }
        "phase" => phase(first),
        "activity" => activity(first),
        "idle" => idle(first),
        "class" => class(first),
        "comparable" => comparable(first),
        "health" => health_limit(first),
        "text" => dialect.text(first),
        "names" => dialect.names(first),
        "first" => dialect.first(first),
        "max_by" => dialect.max_by(first, second),
        "quantiles" => quantiles(dialect, &arguments),
        "window" => of(|values| &values.window),
        "either" => of(|values| &values.either),
        "in_window" => of(|values| &values.in_window),
        "in_against" => of(|values| &values.in_against),
        "seconds" => of(|values| &values.seconds),
        "limit" => of(|values| &values.limit),
        "step" => dialect.step(first, &of(|values| &values.step)),
        "instant" => values.map_or_else(String::new, |values| (values.instant)(first)),
        "rates" => rates(&of(if first == "either" {
            |values| &values.either
        } else {
            |values| &values.window
        })),
        "is_sampled" => IS_SAMPLED.to_string(),
        // A count of an interval, which samples do not know.
        "measured" => format!("CASE WHEN source = 'sampled' THEN NULL ELSE {first} END"),
        "source" => "CASE WHEN is_sampled = 1 THEN 'sampled' ELSE 'exact' END".to_string(),
        "fewest_calls" => stats::calls::FEWEST.to_string(),
        "factor" => format!("{:?}", stats::calls::FACTOR),
        "likeness" => format!("{:?}", stats::calls::LIKENESS),
        "common" => stats::calls::COMMON.to_string(),
        "false_alarms" => format!("{:?}", stats::calls::FALSE_ALARMS),
        _ => unreachable!("no expression {name:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_braces_is_written_for_the_dialect() {
        let expand = |text, dialect| expand(text, dialect, None, None);
        assert_eq!(expand("SELECT {{text a}} x", Dialect::Spark), "SELECT CAST(a AS STRING) x");
        assert_eq!(expand("{{max_by a | b}}", Dialect::ClickHouse), "argMax(a, (b, a))");
        assert_eq!(expand("{{first a}}+{{first b}}", Dialect::DuckDb), "a[1]+b[1]");
    }

    #[test]
    fn an_event_has_one_name_in_every_dialect() {
        let sql = activity("name");
        assert!(sql.contains(" WHEN 'IO:WALSync' THEN 'IO:WalSync' "), "{sql}");
        for (earlier, _) in wait_names::earlier_names() {
            assert!(!sql.contains(&format!("THEN '{earlier}'")), "{earlier} in {sql}");
        }
    }

    #[test]
    fn classes_are_those_of_the_reader() {
        let sql = class("a");
        assert!(
            sql.contains("WHEN a = 'cpu' THEN 'cpu'")
                && sql.contains("LIKE 'LWLock:%' THEN 'lwlock'"),
            "{sql}"
        );
        // What is more special is asked first.
        let at = |text: &str| sql.find(text).unwrap_or_else(|| panic!("{text}: {sql}"));
        assert!(at("Call:nanosleep") < at("'Call:%'"));
    }
}
