// SPDX-License-Identifier: PostgreSQL
//! Expands what stands in double braces in the SQL of views and queries: `{{name arguments}}`, the arguments
//! separated by `|`.

use segment::directory::PAUSES;
use segment::WaitClass;

use crate::source::{Files, Source};
use crate::window::Window;
use crate::Dialect;

/// What a question gives its query.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a> {
    /// The time that is asked about.
    pub window: &'a Window,
    /// The time to compare with.
    pub against: &'a Window,
    /// At most so many rows.
    pub limit: u32,
}

/// The phase of an account, from its name.
fn phase(name: &str) -> String {
    format!("regexp_extract({name}, '^([^:]*)', 1)")
}

/// Its activity.
fn activity(name: &str) -> String {
    format!("regexp_extract({name}, '^[^:]*::(wait::)?(.*)$', 2)")
}

/// Whether an account is idling: [`segment::interval::is_idle`] in SQL.
fn idle(name: &str) -> String {
    let pauses = PAUSES.map(|pause| format!("'{pause}'")).join(", ");
    let (phase, activity) = (phase(name), activity(name));
    format!(
        "({phase} = 'off' OR {activity} LIKE 'Activity:%' OR {activity} IN ({pauses}) \
         OR ({phase} IN ('idle', 'idle in transaction') AND {activity} LIKE 'Client:%'))"
    )
}

/// The class of an activity: [`WaitClass::of_name`] in SQL.
fn class(activity: &str) -> String {
    let mut cases = String::new();
    for prefix in WaitClass::prefixes() {
        let name = WaitClass::of_name(&prefix).shown_as().name();
        // An underscore stands for any character, which makes no difference for these names.
        cases.push_str(&match prefix.contains(':') {
            true => format!(" WHEN {activity} LIKE '{prefix}%' THEN '{name}'"),
            false => format!(" WHEN {activity} = '{prefix}' THEN '{name}'"),
        });
    }
    format!("CASE{cases} ELSE '{}' END", WaitClass::Other.name())
}

/// The lowest value of a histogram's bucket, in ticks: docs/reference-recording.md.
fn low(bucket: &str) -> String {
    format!(
        "CASE WHEN {bucket} < 8 THEN 1e0 * ({bucket}) \
         ELSE (8 + ({bucket}) % 8) * power(2e0, floor(({bucket}) / 8) - 1) END"
    )
}

/// Expands the text of a view or query; `values` are those of a question.
pub fn expand(
    text: &str,
    dialect: Dialect,
    files: Option<&Files<'_>>,
    values: Option<&Values<'_>>,
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
    values: Option<&Values<'_>>,
) -> String {
    let (name, arguments) = inside.split_once(' ').unwrap_or((inside, ""));
    let arguments: Vec<&str> = arguments.split('|').map(str::trim).collect();
    let first = arguments[0];
    let second = arguments.get(1).copied().unwrap_or_default();
    let window = |of: fn(&Values<'_>) -> String| values.map(of).unwrap_or_default();
    match name {
        "rows" => {
            let rows = Source::of_name(first).zip(files).map(|(source, files)| source.rows(files));
            format!("({})", rows.unwrap_or_default())
        }
        "phase" => phase(first),
        "activity" => activity(first),
        "idle" => idle(first),
        "class" => class(first),
        "low" => low(first),
        "text" => dialect.text(first),
        "names" => dialect.names(first),
        "first" => dialect.first(first),
        "max_by" => dialect.max_by(first, second),
        "exploded" => dialect.exploded(first, second),
        "window" => window(|it| it.window.condition()),
        "against" => window(|it| it.against.condition()),
        "either" => window(|it| it.window.with(it.against).condition()),
        "in_window" => window(|it| {
            format!("time_ms > {} AND time_ms <= {}", it.window.since_ms, it.window.until_ms)
        }),
        "in_against" => window(|it| {
            format!("time_ms > {} AND time_ms <= {}", it.against.since_ms, it.against.until_ms)
        }),
        "seconds" => window(|it| format!("{:?}", it.window.seconds())),
        "against_seconds" => window(|it| format!("{:?}", it.against.seconds())),
        "limit" => window(|it| it.limit.to_string()),
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
