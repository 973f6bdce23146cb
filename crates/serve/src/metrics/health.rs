// SPDX-License-Identifier: PostgreSQL
//! Metrics of the server's health, from its catalogs (`--health`). Each query has a limit, which bounds the series.

use view::health::parts;
use view::vacuum::{Condition, ConditionKind, Vacuum};

use super::family::{Family, Kind::Gauge};

/// Adds the families.
pub fn add_health(health: &Vacuum, families: &mut Vec<Family>) {
    type Add = fn(&mut Family, &Condition);
    const FAMILIES: &[(ConditionKind, &str, &str, Add)] = &[
        (
            ConditionKind::Replica,
            "pgtally_replica_behind_bytes",
            "WAL that a standby or another receiver has not replayed.",
            |family, row| family.number([("standby", &row.name), ("pid", &pid(row))], row.bytes as f64),
        ),
        (
            ConditionKind::Replica,
            "pgtally_replica_lag_seconds",
            "replay_lag of a standby; 0 if nothing is missing.",
            |family, row| {
                family.number([("standby", &row.name), ("pid", &pid(row))], row.seconds.unwrap_or(0.0));
            },
        ),
        (
            ConditionKind::Receiver,
            "pgtally_receiver_up",
            "On a standby: whether a WAL receiver runs (1) or not (0).",
            |family, row| family.number([], if row.count > 0 { 1.0 } else { 0.0 }),
        ),
        (
            ConditionKind::Receiver,
            "pgtally_receiver_behind_bytes",
            "On a standby: WAL received and not replayed.",
            |family, row| family.number([], row.bytes as f64),
        ),
        (
            ConditionKind::Slot,
            "pgtally_slot_retained_bytes",
            "WAL that the server keeps for a replication slot.",
            |family, row| family.number([("slot", &row.name), ("state", &row.state)], row.bytes as f64),
        ),
        (
            ConditionKind::Archiver,
            "pgtally_archiver_failing",
            "Whether the archiver has failed with the same WAL file in two readings, or has no command (1), or not (0).",
            |family, row| {
                let fails = row.failing_file().is_some() || row.archives_nothing();
                family.number([], if fails { 1.0 } else { 0.0 });
            },
        ),
        (
            ConditionKind::Archiver,
            "pgtally_archiver_waiting_bytes",
            "Complete WAL files that are not archived.",
            |family, row| {
                if row.bytes > 0 || !row.archives_nothing() {
                    family.number([], row.bytes as f64);
                }
            },
        ),
        (
            ConditionKind::Age,
            "pgtally_database_transaction_age",
            "Transactions since the oldest transaction ID of a database that is not frozen.",
            |family, row| family.number([("database", database(row))], row.count as f64),
        ),
        (
            ConditionKind::Age,
            "pgtally_database_multixact_age",
            "Multixacts since the oldest multixact of a database.",
            |family, row| family.number([("database", database(row))], row.bytes as f64),
        ),
        (
            ConditionKind::Size,
            "pgtally_database_bytes",
            "Size of a database.",
            |family, row| {
                if row.name.is_empty() {
                    family.number([("database", database(row))], row.bytes as f64);
                }
            },
        ),
        (
            ConditionKind::Size,
            "pgtally_table_bytes",
            "Size of a large table with its indexes and TOAST.",
            |family, row| {
                if !row.name.is_empty() {
                    family.number([("database", database(row)), ("table", &row.name)], row.bytes as f64);
                }
            },
        ),
        (
            ConditionKind::Bloat,
            "pgtally_table_bloat_estimate_bytes",
            "Estimated part of a large table that holds no rows.",
            |family, row| {
                family.number([("database", database(row)), ("table", &row.name)], row.bytes as f64);
            },
        ),
        (
            ConditionKind::UnusedIndex,
            "pgtally_unused_index_bytes",
            "Size of an index without scans since the statistics began.",
            |family, row| {
                let labels = [("database", database(row)), ("table", &*row.state), ("index", &row.name)];
                family.number(labels, row.bytes as f64);
            },
        ),
        (
            ConditionKind::DuplicateIndex,
            "pgtally_duplicate_index_bytes",
            "Size of an index like another one of its table.",
            |family, row| {
                let table = parts(&row.state).0;
                let labels = [("database", database(row)), ("table", table), ("index", &row.name)];
                family.number(labels, row.bytes as f64);
            },
        ),
    ];
    for &(kind, name, help, add) in FAMILIES {
        let mut family = Family::new(name, Gauge, help);
        health.conditions(kind).for_each(|row| add(&mut family, row));
        families.push(family);
    }
}

fn database(row: &Condition) -> &str {
    row.database.as_deref().unwrap_or_default()
}

/// Several standbys may have one name.
fn pid(row: &Condition) -> String {
    row.count.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Value;

    #[test]
    fn every_row_has_a_sample_and_the_whole_database_is_no_table() {
        let row = |kind, name: &str, state: &str, count, bytes| Condition {
            kind,
            name: name.into(),
            database: Some("shop".into()),
            state: state.into(),
            count,
            bytes,
            seconds: None,
        };
        let health = Vacuum {
            conditions: vec![
                row(ConditionKind::Size, "", "", 0, 96),
                row(ConditionKind::Size, "orders", "", 0, 64),
                row(ConditionKind::Archiver, "", "fails: 3", 7, 32),
                row(ConditionKind::Archiver, "", "not configured", 0, 0),
                row(ConditionKind::DuplicateIndex, "o2", "orders, like o1", 0, 8),
            ],
            ..Vacuum::default()
        };
        let mut families = Vec::new();
        add_health(&health, &mut families);
        let samples: Vec<String> = families
            .iter()
            .flat_map(|family| family.samples.iter().map(move |sample| (family.name, sample)))
            .map(|(name, sample)| {
                let Value::Number(value) = sample.value else { panic!("{sample:?}") };
                let labels: Vec<&str> =
                    sample.labels.iter().map(|label| label.1.as_str()).collect();
                format!("{name} {} {value}", labels.join(","))
            })
            .collect();
        assert_eq!(
            samples,
            [
                "pgtally_archiver_failing  1",
                "pgtally_archiver_failing  1",
                "pgtally_archiver_waiting_bytes  32",
                "pgtally_database_bytes shop 96",
                "pgtally_table_bytes shop,orders 64",
                "pgtally_duplicate_index_bytes shop,orders,o2 8",
            ]
        );
    }
}
