// SPDX-License-Identifier: PostgreSQL
//! What samples of a server tell. In its JSON, all other numbers are null, because a zero would claim that nothing happened.

use segment::interval::Interval;
use serde::ser::{Error, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::statements::StatementFigures;

/// The numbers of an interval that samples tell, by their paths in JSON; `.*` stands for all below.
pub const INTERVAL: &[&str] = &[
    "time",
    "interval_seconds",
    "clock.*",
    "server.*",
    "cores",
    "wall_seconds",
    "busy_seconds",
    "busy_half_width_seconds",
    "sampling.*",
    "instrumented_seconds",
    "torn_sessions",
    "overflow.*",
    "overflow_in_interval.*",
    "sessions.pid",
    "sessions.leader_pid",
    "sessions.since_seconds",
    "sessions.transaction_seconds",
    "sessions.age_seconds",
    "sessions.lived_seconds",
    "sessions.busy_seconds",
    "sessions.busy_half_width_seconds",
    "sessions.cpu_seconds",
    "sessions.slot",
    "sessions.generation",
    "sessions.accounts.seconds",
    "sessions.accounts.half_width_seconds",
    "ended.*",
    "ledger.seconds",
    "ledger.half_width_seconds",
    "waits.seconds",
    "waits.half_width_seconds",
];

/// The numbers of a statement that samples tell.
pub const STATEMENT: &[&str] = &[
    "query_bytes",
    "seconds",
    "half_width_seconds",
    "share",
    "share_half_width",
    "split.*",
    "activities.seconds",
    "activities.half_width_seconds",
    "running",
];

/// The numbers that pg_stat_statements adds, if it has counted an execution.
pub const EXECUTED: &[&str] = &["calls", "execution.*"];
/// The counters that it has, as the sampler reads them (crates/live/src/sampled/statements.rs).
pub const COUNTED: &[&str] = &[
    "rows",
    "blocks.shared_hit",
    "blocks.shared_read",
    "blocks.shared_dirtied",
    "blocks.shared_written",
    "blocks.local_hit",
    "blocks.local_read",
    "blocks.local_dirtied",
    "blocks.local_written",
    "blocks.temp_read",
    "blocks.temp_written",
    "wal.records",
    "wal.fpi",
    "wal.bytes",
];
/// Those that it has only with some settings (track_io_timing, pg_stat_statements.track_planning) or versions: where they are 0,
/// it has not counted.
pub const COUNTED_IF_SET: &[&str] = &[
    "io.read_seconds",
    "io.write_seconds",
    "io.temp_read_seconds",
    "io.temp_write_seconds",
    "planning.*",
];

/// Serialises an interval.
pub fn interval<S: Serializer>(interval: &Interval, to: S) -> Result<S::Ok, S::Error> {
    if interval.sampling.is_none() {
        return interval.serialize(to);
    }
    let mut json = serde_json::to_value(interval).map_err(S::Error::custom)?;
    put(&mut json, "busy_half_width_seconds", interval.busy_half_width());
    for (json, session) in each(&mut json, "sessions").iter_mut().zip(&interval.sessions) {
        let half_width = |seconds| interval.session_half_width(session, seconds);
        put(json, "busy_half_width_seconds", half_width(session.busy_seconds));
        for (json, account) in each(json, "accounts").iter_mut().zip(&session.accounts) {
            put(json, "half_width_seconds", half_width(account.seconds));
        }
    }
    keep(&mut json, "", &|path, _| is_among(path, INTERVAL));
    json.serialize(to)
}

/// Serialises statements.
pub fn statements<S: Serializer>(rows: &[StatementFigures], to: S) -> Result<S::Ok, S::Error> {
    let mut list = to.serialize_seq(Some(rows.len()))?;
    for row in rows {
        match row.seconds_source {
            None => list.serialize_element(row)?,
            Some(_) => list.serialize_element(&sampled(row).map_err(S::Error::custom)?)?,
        }
    }
    list.end()
}

fn sampled(row: &StatementFigures) -> Result<Value, serde_json::Error> {
    let mut json = serde_json::to_value(row)?;
    put(&mut json, "share_half_width", row.share_half_width);
    for (json, activity) in each(&mut json, "activities").iter_mut().zip(&row.activities) {
        put(json, "half_width_seconds", row.part_half_width(activity.seconds));
    }
    if let Some(Value::Object(split)) = json.get_mut("split") {
        *split = std::mem::take(split)
            .into_iter()
            .flat_map(|(name, part)| {
                let half_width = part.as_f64().and_then(|part| row.part_half_width(part));
                let known = if half_width.is_some() { part } else { Value::Null };
                let class = name.trim_end_matches("_seconds").to_string();
                [(name, known), (format!("{class}_half_width_seconds"), half_width.into())]
            })
            .collect::<Map<_, _>>();
    }
    let is_counted = row.known_calls().is_some();
    keep(&mut json, "", &|path, is_zero| {
        is_among(path, STATEMENT)
            || is_counted
                && (is_among(path, EXECUTED)
                    || is_among(path, COUNTED)
                    || !is_zero && is_among(path, COUNTED_IF_SET))
    });
    Ok(json)
}

fn put(json: &mut Value, name: &str, number: Option<f64>) {
    if let Value::Object(fields) = json {
        fields.insert(name.to_string(), number.into());
    }
}

fn each<'j>(json: &'j mut Value, name: &str) -> &'j mut [Value] {
    match json.get_mut(name) {
        Some(Value::Array(items)) => items,
        _ => &mut [],
    }
}

/// Whether a path is one of these.
pub fn is_among(path: &str, known: &[&str]) -> bool {
    known.iter().any(|known| match known.strip_suffix('*') {
        Some(below) => path.starts_with(below),
        None => path == *known,
    })
}

/// Replaces each number by null unless its path, and whether it is zero, say that it is known.
fn keep(json: &mut Value, path: &str, is_known: &impl Fn(&str, bool) -> bool) {
    match json {
        Value::Number(number) if !is_known(path, number.as_f64() == Some(0.0)) => {
            *json = Value::Null;
        }
        Value::Array(items) => items.iter_mut().for_each(|item| keep(item, path, is_known)),
        Value::Object(fields) => {
            for (name, field) in fields {
                let path = match path {
                    "" => name.clone(),
                    _ => format!("{path}.{name}"),
                };
                keep(field, &path, is_known);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use crate::statements::{SecondsSource, StatementSamples};

    #[test]
    fn what_samples_do_not_tell_is_null() {
        let mut all = sample::statements();
        let exact = serde_json::to_value(&all).unwrap();
        assert!(
            exact["rows"][0]["errors"].is_number()
                && exact["rows"][0]["share_half_width"].is_null()
        );
        let row = &mut all.rows[0];
        row.seconds_source = Some(SecondsSource::PgStatStatements);
        row.samples = Some(StatementSamples { distance: 0.1, seconds: row.seconds });
        row.share_half_width = Some(0.25);
        let json = |all: &crate::statements::StatementsTable| {
            serde_json::to_value(all).unwrap()["rows"][0].clone()
        };
        let counted = json(&all);
        for known in ["calls", "rows", "seconds", "share_half_width"] {
            assert!(counted[known].is_number(), "{known}: {counted}");
        }
        for unknown in ["errors", "cancels", "temp_bytes", "workers", "deadlocks", "first_seen"] {
            assert!(counted[unknown].is_null(), "{unknown}: {counted}");
        }
        assert!(counted["activities"][0]["count"].is_null(), "{counted}");
        assert!(counted["activities"][0]["half_width_seconds"].is_number(), "{counted}");
        assert!(counted["split"]["cpu_half_width_seconds"].is_number(), "{counted}");
        assert_eq!(json(&all)["query"], exact["rows"][0]["query"]);
        all.rows[0].calls = 0;
        let only_sampled = json(&all);
        for unknown in ["calls", "rows"] {
            assert!(only_sampled[unknown].is_null(), "{unknown}: {only_sampled}");
        }
        assert!(only_sampled["execution"]["count"].is_null(), "{only_sampled}");
        all.rows[0].samples = Some(StatementSamples { distance: 0.1, seconds: 0.0 });
        assert!(json(&all)["split"]["cpu_seconds"].is_null());
    }

    #[test]
    fn a_path_is_known_by_its_name_or_by_what_is_above() {
        let known = ["sessions.pid", "ended.*"];
        let paths = ["sessions.pid", "ended.sessions", "ended", "sessions.commands", "pid"];
        assert_eq!(paths.map(|path| is_among(path, &known)), [true, true, false, false, false]);
    }
}
