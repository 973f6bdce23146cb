// SPDX-License-Identifier: PostgreSQL
//! How far vacuum is behind, according to the server's own views.

use recording::{DeadRowsRow, SnapshotRow};

/// A table with many dead rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its database.
    pub database: String,
    /// Its name, with the schema unless that is "public".
    pub name: String,
    /// Live rows, as estimated by the server.
    pub live_rows: i64,
    /// Rows that no transaction needs any more, or that vacuum could not remove.
    pub dead_rows: i64,
    /// Number of dead rows at which autovacuum starts.
    pub threshold: f64,
    /// Whether autovacuum is off, for the server or for this table.
    pub autovacuum_off: bool,
    /// Time since the end of its last vacuum, seconds; `None` if there has been none since statistics started.
    pub vacuumed_seconds_ago: Option<f64>,
}

/// What prevents dead rows from being removed: the oldest snapshot or transaction of its kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Holder {
    /// "session 123 (application psql, user joe, database shop)", "replication slot s", "prepared transaction t".
    pub name: String,
    /// Its state: "idle in transaction"; empty if it is not a session.
    pub state: String,
    /// Number of transactions that have started since the oldest one that it can see.
    pub transactions: i64,
    /// How long it has held that, seconds; `None` if unknown.
    pub seconds: Option<f64>,
    /// The database in which it holds back vacuum; `None` for all databases.
    pub database: Option<String>,
}

/// The tables with the most dead rows, and what holds vacuum back.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vacuum {
    /// The table with the most dead rows first.
    pub tables: Vec<Table>,
    /// The one that holds back the most first.
    pub holders: Vec<Holder>,
}

impl Vacuum {
    /// From the rows of a recording at one time.
    pub fn recorded<'r>(
        tables: impl Iterator<Item = &'r DeadRowsRow>,
        holders: impl Iterator<Item = &'r SnapshotRow>,
    ) -> Vacuum {
        let count = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let seconds = |ns: u64| ns as f64 * 1e-9;
        let table = |row: &DeadRowsRow| Table {
            database: row.database.to_string(),
            name: row.table.to_string(),
            live_rows: count(row.live),
            dead_rows: count(row.dead),
            threshold: row.threshold,
            autovacuum_off: row.autovacuum_off,
            vacuumed_seconds_ago: row.vacuumed_ago_ns.map(seconds),
        };
        let holder = |row: &SnapshotRow| Holder {
            name: row.name.to_string(),
            state: row.state.to_string(),
            transactions: count(row.transactions),
            seconds: row.held_ns.map(seconds),
            database: row.database.as_deref().map(str::to_string),
        };
        let mut all =
            Vacuum { tables: tables.map(table).collect(), holders: holders.map(holder).collect() };
        all.tables.sort_by_key(|table| std::cmp::Reverse(table.dead_rows));
        all.holders.sort_by_key(|holder| std::cmp::Reverse(holder.transactions));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_dead_rows_and_the_oldest_snapshot_come_first() {
        let table = |name: &str, live, dead| DeadRowsRow {
            table: name.into(),
            live,
            dead,
            vacuumed_ago_ns: Some(2_000_000_000),
            ..DeadRowsRow::default()
        };
        let holder = |name: &str, transactions| SnapshotRow {
            name: name.into(),
            transactions,
            held_ns: Some(500_000_000),
            ..SnapshotRow::default()
        };
        let tables = [table("few", 900, 1), table("many", 5, u64::MAX)];
        let holders = [holder("young", 1), holder("old", 2)];
        let all = Vacuum::recorded(tables.iter(), holders.iter());
        let shown = |at: usize| {
            (all.tables[at].name.as_str(), all.tables[at].dead_rows, all.tables[at].live_rows)
        };
        assert_eq!((shown(0), shown(1)), (("many", i64::MAX, 5), ("few", 1, 900)));
        assert_eq!(all.tables[0].vacuumed_seconds_ago, Some(2.0));
        assert_eq!((all.holders[0].name.as_str(), all.holders[0].seconds), ("old", Some(0.5)));
    }
}
