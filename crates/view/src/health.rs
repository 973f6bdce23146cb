// SPDX-License-Identifier: PostgreSQL
//! The server's health as tables: replication, WAL archiving, transaction IDs, sizes, bloat, indexes.

use crate::document::{Cell, Column, OverTime, Table, Tone, Unit};
use crate::table::field::{Field, Picked};
use crate::vacuum::{Condition, ConditionKind, Vacuum};

type F = Field<Condition>;

/// The server refuses new transactions at this age (SetTransactionIdLimit, varsup.c; the same for multixacts).
pub const WRAPAROUND: i64 = i32::MAX as i64 - 3_000_000;

/// Age of a transaction ID or multixact from which on vacuum evidently fails: 2.5 times autovacuum_freeze_max_age by default.
pub const OLD_TRANSACTIONS: i64 = 500_000_000;
/// Bytes of WAL that an inactive slot may retain: two files.
pub const INACTIVE_SLOT_BYTES: i64 = 32 << 20;
/// Bytes of WAL that an active slot may retain.
pub const ACTIVE_SLOT_BYTES: i64 = 4 << 30;
/// Bytes of WAL that may wait for an archiver that works: a burst is over soon.
pub const WAITING_WAL_BYTES: i64 = 4 << 30;
/// A file system is nearly full if fewer bytes than this are free, ...
pub const LITTLE_SPACE_BYTES: i64 = 4 << 30;
/// ... and a smaller part of it than this.
pub const LITTLE_SPACE_PART: f64 = 0.05;
/// Age of a prepared transaction that nobody ends, seconds.
pub const OLD_PREPARED_SECONDS: f64 = 60.0;

/// All tables that have rows.
pub fn tables(health: &Vacuum) -> Vec<Table> {
    let all = [
        replication(health),
        slots(health),
        archiver(health),
        transaction_ids(health),
        sizes(health),
        bloat(health),
        unused_indexes(health),
        duplicate_indexes(health),
    ];
    let why = OverTime::Whole("it is the last state, or the worst one");
    let tables = all.into_iter().filter(|table| !table.rows.is_empty());
    tables.map(|table| table.over_time(why)).collect()
}

/// The identifiers of all tables.
pub const TABLES: [&str; 8] = [
    "replication",
    "slots",
    "archiver",
    "transaction_ids",
    "sizes",
    "bloat",
    "unused_indexes",
    "duplicate_indexes",
];

fn number(n: i64) -> Cell {
    u64::try_from(n).unwrap_or(0).into()
}

fn text(text: &str) -> Cell {
    (!text.is_empty()).then_some(text).into()
}

const DATABASE: F =
    F::new("database", "Database", Unit::Text, |row, _| row.database.as_deref().into());
const NAME: F = F::new("name", "Name", Unit::Text, |row, _| text(&row.name));
const STATE: F = F::new("state", "State", Unit::Text, |row, _| text(&row.state));

fn table(
    name: (&'static str, &'static str),
    fields: &[F],
    health: &Vacuum,
    kinds: &[ConditionKind],
) -> Table {
    let rows = kinds.iter().flat_map(|kind| health.conditions(*kind));
    Picked::all(fields).table(name, rows, 0.0, Tone::Plain)
}

/// Who receives this server's WAL, and from whom it receives WAL itself.
fn replication(health: &Vacuum) -> Table {
    const FIELDS: &[F] = &[
        NAME,
        F::new("role", "Role", Unit::Text, |row, _| match row.kind {
            ConditionKind::Receiver => "primary".into(),
            _ => "standby".into(),
        })
        .help("standby: receives WAL from this server; primary: sends WAL to it"),
        STATE,
        F::new("behind_bytes", "Behind", Unit::Bytes, |row, _| number(row.bytes))
            .help("WAL that is not replayed: of a standby, written here; of a primary, received from it"),
        F::new("behind_seconds", "Lag", Unit::Seconds, |row, _| row.seconds.into())
            .help("of a standby its replay_lag, of a primary the age of the last replayed transaction; empty if nothing is missing or unknown"),
        F::new("pid", "Process", Unit::Id, |row, _| match row.count {
            0 => Cell::Empty,
            pid => pid.to_string().into(),
        })
        .help("walsender or WAL receiver")
        .expendable(1),
    ];
    table(
        ("replication", "Replication"),
        FIELDS,
        health,
        &[ConditionKind::Receiver, ConditionKind::Replica],
    )
}

fn slots(health: &Vacuum) -> Table {
    const FIELDS: &[F] = &[
        NAME,
        STATE,
        DATABASE,
        F::new("retained_bytes", "Retained", Unit::Bytes, |row, _| number(row.bytes))
            .help("WAL that the server keeps for it"),
    ];
    table(("slots", "Replication slots"), FIELDS, health, &[ConditionKind::Slot])
        .sorted("retained_bytes")
}

fn archiver(health: &Vacuum) -> Table {
    const FIELDS: &[F] = &[
        STATE,
        F::new("last", "Last archived", Unit::Text, |row, _| text(&row.name)),
        F::new("seconds_ago", "Ago", Unit::Seconds, |row, _| row.seconds.into()),
        F::new("waiting_bytes", "Waits", Unit::Bytes, |row, _| {
            // From where on nothing was archived is known by the last attempt.
            match row.archives_nothing() && row.bytes == 0 {
                true => Cell::Empty,
                false => number(row.bytes),
            }
        })
        .help("complete WAL files that are not archived; 0 on a standby; empty if unknown"),
        F::new("failed", "Failed attempts", Unit::Count, |row, _| number(row.count))
            .help("since the statistics of the archiver were reset"),
    ];
    table(("archiver", "WAL archiving"), FIELDS, health, &[ConditionKind::Archiver])
}

fn transaction_ids(health: &Vacuum) -> Table {
    const FIELDS: &[F] = &[
        DATABASE,
        F::new("transaction_age", "Oldest transaction ID", Unit::Count, |row, _| number(row.count))
            .help("transactions since then"),
        F::new("multixact_age", "Oldest multixact", Unit::Count, |row, _| number(row.bytes))
            .help("multixacts since then"),
        F::new("used_share", "Used", Unit::Share, |row, _| {
            (row.count.max(row.bytes) as f64 / WRAPAROUND as f64).into()
        })
        .help("of the age at which the server refuses new transactions or multixacts"),
    ];
    table(("transaction_ids", "Transaction IDs"), FIELDS, health, &[ConditionKind::Age])
        .sorted("used_share")
}

fn sizes(health: &Vacuum) -> Table {
    const DAY: f64 = 86_400.0;
    let columns = vec![
        Column::new("database", "Database", Unit::Text),
        Column::new("name", "Table", Unit::Text).help("empty: the whole database"),
        Column::new("bytes", "Size", Unit::Bytes).help("with indexes and TOAST"),
        Column::new("rows", "Rows", Unit::Count).help("as estimated by the server").expendable(1),
        Column::new("growth_bytes", "Growth", Unit::Bytes).help("within the recording's range"),
        Column::new("growth_bytes_per_day", "Per day", Unit::Bytes).help("if it goes on like that"),
    ];
    let mut table = Table::new("sizes", "Largest tables", columns).sorted("bytes");
    let mut rows: Vec<&Condition> = health.conditions(ConditionKind::Size).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.bytes));
    for row in rows {
        let grown = health.growths.iter().find(|growth| {
            growth.name == row.name && Some(&growth.database) == row.database.as_ref()
        });
        let per_day = grown.map(|growth| growth.bytes as f64 / growth.seconds.max(1.0) * DAY);
        let cells: Vec<Cell> = vec![
            row.database.as_deref().into(),
            text(&row.name),
            number(row.bytes),
            if row.name.is_empty() { Cell::Empty } else { number(row.count) },
            grown.map(|growth| growth.bytes as f64).into(),
            per_day.into(),
        ];
        table.push(Tone::Plain, cells);
    }
    table
}

fn bloat(health: &Vacuum) -> Table {
    const FIELDS: &[F] = &[
        DATABASE,
        F::new("name", "Table", Unit::Text, |row, _| text(&row.name)),
        F::new("heap_bytes", "Size", Unit::Bytes, |row, _| number(row.count))
            .help("of the table without indexes and TOAST, by its last VACUUM or ANALYZE"),
        F::new("bloat_bytes", "Bloat (estimate)", Unit::Bytes, |row, _| number(row.bytes)),
        F::new("bloat_share", "Part (estimate)", Unit::Share, |row, _| {
            (row.bytes as f64 / (row.count as f64).max(1.0)).into()
        }),
        F::new("statistics_seconds_ago", "Statistics' age", Unit::Seconds, |row, _| {
            row.seconds.into()
        }),
    ];
    table(("bloat", "Bloat of tables, estimated"), FIELDS, health, &[ConditionKind::Bloat])
        .sorted("bloat_bytes")
        .noted(Some(
            "Estimated from the planner's statistics: pages less those that the rows need by the average widths of their \
             columns. On test tables, the estimate is within a tenth of the table of what pgstattuple measures. Tables with \
             columns whose statistics this role may not see are left out"
                .into(),
        ))
}

fn unused_indexes(health: &Vacuum) -> Table {
    const FIELDS: &[F] = &[
        DATABASE,
        F::new("name", "Index", Unit::Text, |row, _| text(&row.name)),
        F::new("table", "Table", Unit::Text, |row, _| text(&row.state)),
        F::new("bytes", "Size", Unit::Bytes, |row, _| number(row.bytes))
            .help("by its table's last VACUUM or ANALYZE"),
        F::new("statistics_seconds", "Unused for", Unit::Seconds, |row, _| row.seconds.into())
            .help("since the statistics began; less if the index was created later"),
    ];
    let standbys = match health.conditions(ConditionKind::Replica).count() {
        0 => "",
        _ => " This server has standbys.",
    };
    table(("unused_indexes", "Indexes without scans"), FIELDS, health, &[ConditionKind::UnusedIndex])
        .sorted("bytes")
        .noted(Some(format!(
            "No scan has used them since this server's statistics began, and they enforce nothing. Each standby counts its own \
             scans, so check there, too. A monthly job may need one of them.{standbys}"
        )))
}

fn duplicate_indexes(health: &Vacuum) -> Table {
    const FIELDS: &[F] = &[
        DATABASE,
        F::new("name", "Index", Unit::Text, |row, _| text(&row.name)),
        F::new("table", "Table", Unit::Text, |row, _| text(parts(&row.state).0)),
        F::new("like", "Like", Unit::Text, |row, _| text(parts(&row.state).1))
            .help("an index with the same columns, order, operators and condition, which enforces at least as much"),
        F::new("bytes", "Size", Unit::Bytes, |row, _| number(row.bytes))
            .help("by its table's last VACUUM or ANALYZE"),
        F::new("scans", "Scans", Unit::Count, |row, _| number(row.count))
            .help("which the other index could have served"),
    ];
    let name = ("duplicate_indexes", "Duplicate indexes");
    table(name, FIELDS, health, &[ConditionKind::DuplicateIndex]).sorted("bytes")
}

/// The table and the other index of a [`ConditionKind::DuplicateIndex`].
pub fn parts(state: &str) -> (&str, &str) {
    state.rsplit_once(", like ").unwrap_or((state, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vacuum::Growth;

    fn row(kind: ConditionKind, name: &str, state: &str, count: i64, bytes: i64) -> Condition {
        let (name, state) = (name.to_owned(), state.to_owned());
        let database = Some("shop".to_owned());
        Condition { kind, name, database, state, count, bytes, seconds: Some(86_400.0) }
    }

    #[test]
    fn each_kind_has_its_table_with_units() {
        let health = Vacuum {
            conditions: vec![
                row(ConditionKind::Replica, "db2", "async, streaming, 10.0.0.2", 71, 3 << 20),
                row(ConditionKind::Receiver, "db0:5432", "streaming", 0, 0),
                row(ConditionKind::Slot, "db2", "physical", 0, 5 << 20),
                row(ConditionKind::Archiver, "000000010000000000000003", "fails: 4", 7, 32 << 20),
                row(ConditionKind::Age, "", "", WRAPAROUND / 2, 1),
                row(ConditionKind::Size, "orders", "", 1_000, 64 << 20),
                row(ConditionKind::Size, "", "", 0, 96 << 20),
                row(ConditionKind::Bloat, "orders", "", 64 << 20, 48 << 20),
                row(ConditionKind::UnusedIndex, "orders_note_idx", "orders", 0, 8 << 20),
                row(ConditionKind::DuplicateIndex, "o2", "a, like b, like o1", 5, 8 << 20),
            ],
            growths: vec![Growth {
                database: "shop".into(),
                name: "orders".into(),
                bytes: 1 << 20,
                seconds: 3_600.0,
            }],
            ..Vacuum::default()
        };
        let tables = tables(&health);
        let ids: Vec<&str> = tables.iter().map(|table| table.id).collect();
        assert_eq!(ids, TABLES);
        let text = |id: &str| tables.iter().find(|table| table.id == id).unwrap().to_string();
        insta::assert_snapshot!(TABLES.map(text).join("\n"));
        assert_eq!(super::tables(&Vacuum::default()).len(), 0);
    }
}
