// SPDX-License-Identifier: PostgreSQL
//! The server's health by its own views: how far vacuum is behind, and other conditions that no wait shows.

use recording::{ConditionRow, DeadRowsRow, SnapshotRow};

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

/// The subject of a [`Condition`], with the meaning of its fields; fields that are not mentioned have none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConditionKind {
    /// A replication slot: `state` "physical", "logical, inactive", "physical, lost"; `bytes` of WAL that it retains; `count` bytes free on the
    /// device of the WAL, 0 if not known.
    Slot,
    /// A prepared transaction: `name` is its gid, `state` its owner, `seconds` its age.
    Prepared,
    /// A database: `count` is the age of its oldest transaction ID, `bytes` that of its oldest multixact.
    Age,
    /// The archiver: `name` is the WAL file that it archived last, `state` "archives", "fails: FILE" ("failed: FILE" if it may
    /// have succeeded by its next attempt) or "not configured", `count` its failed attempts, `bytes` of WAL that wait for it,
    /// `seconds` since it last archived a file.
    Archiver,
    /// A standby or another receiver of WAL: `state` "async, streaming, 10.0.0.2", `count` the pid of its walsender, `bytes` of WAL that
    /// it has not replayed, `seconds` its replay_lag.
    Replica,
    /// Where this server receives WAL, if it is a standby: `name` "host:port", `count` the pid of its WAL receiver or 0, `bytes` of
    /// WAL received and not replayed, `seconds` since the last replayed transaction if there are such.
    Receiver,
    /// A table with its indexes and TOAST, or with an empty `name` the whole database: `count` its rows, `bytes` its size.
    Size,
    /// A table that seems to have more pages than its rows need: `count` is the size of its heap, `bytes` the estimated part of it
    /// that holds no rows, `seconds` the age of the statistics.
    Bloat,
    /// An index without a scan that enforces nothing: `state` is its table, without the schema, `bytes` its size, `seconds` the age of
    /// the statistics.
    UnusedIndex,
    /// An index like another one of its table: `state` "orders, like orders_customer_idx", `count` its scans, `bytes` its size.
    DuplicateIndex,
    /// A database: `count` is the number of deadlocks since the earlier reading.
    Deadlocks,
    /// A standby that synchronous_standby_names accepts: `count` is the pid of its walsender, `bytes` of WAL sent and not
    /// flushed there, `seconds` its flush_lag. `count` 0: `name` is the setting.
    Standby,
    /// An autovacuum worker that sleeps on purpose: `name` is its table, `count` its pid, `state` the settings that make it
    /// sleep, those of the table with "of the table" behind them, `bytes` the table's dead rows, `seconds` since it began.
    Throttled,
    /// A table of the system catalog: `count` is its live rows, `bytes` its size.
    Catalog,
    /// A table without current statistics: `count` is its rows, `bytes` the rows changed since the last ANALYZE, `seconds` the
    /// time since then (`None`: there was none).
    Statistics,
    /// A setting of the server: `name` and `state` are its name and value, `bytes` what it amounts to.
    Setting,
    /// A sequence with `CACHE 1`, whose page each nextval() changes: `state` is the table that owns it, or empty, `count` the
    /// number of times since the earlier reading.
    Sequence,
    /// A file system that is nearly full: `name` is "data directory" or "WAL", `count` bytes are free there, `bytes` is its size.
    Disk,
    /// A B-tree index whose first column ascends with each new row, as a sequence's numbers and times do: `state` is its table,
    /// without the schema, `count` the rows inserted so far.
    AscendingIndex,
    /// A process of the server that a signal has stopped: `name` is its role or title, `count` its pid.
    Stopped,
    /// A table that a noted plan reads as a whole for some of its rows: `name` as SQL needs it, with the schema; `count` is its
    /// OID, `bytes` its size; `state` names its partitioned table, and says whether the server is a standby.
    Table,
    /// A column of such a table by which the plan looks for rows: `name` as SQL needs it, `state` its table, `count` the number
    /// of its values (0: not known), `bytes` the rows in which it is null.
    Column,
    /// An index of such a table: `name` with the schema, `state` "public.t (a, b)", then ", invalid", ", partial", and its method
    /// unless it is a B-tree.
    Index,
    /// A foreign key of such a table: `state` is "public.t (a, b) references public.u".
    ForeignKey,
    /// An index that does not exist, examined by HypoPG: `state` is "public.t (a, b)", `count` the planner's cost of looking for
    /// these columns without it, `bytes` with it.
    HypotheticalIndex,
    /// A setting whose value in the configuration files needs a restart: `name`.
    PendingRestart,
    /// A line of the configuration files that the server cannot apply: `name` is the setting, if the line names one, `state` the
    /// place and the server's reason.
    ConfigurationError,
    /// The server has loaded its configuration within the last hour, not only at its start: `seconds` ago. Of now only.
    ConfigurationLoad,
    /// A setting that has changed: `state` is "work_mem: 4MB -> 64MB", `seconds` ago. Of now only.
    SettingChange,
}

/// The role of a [`ConditionKind::Stopped`] that is the postmaster itself.
pub const POSTMASTER: &str = "postmaster";

impl ConditionKind {
    /// All of them.
    pub const ALL: [ConditionKind; 29] = [
        ConditionKind::Slot,
        ConditionKind::Prepared,
        ConditionKind::Age,
        ConditionKind::Archiver,
        ConditionKind::Replica,
        ConditionKind::Receiver,
        ConditionKind::Size,
        ConditionKind::Bloat,
        ConditionKind::UnusedIndex,
        ConditionKind::DuplicateIndex,
        ConditionKind::Deadlocks,
        ConditionKind::Standby,
        ConditionKind::Throttled,
        ConditionKind::Catalog,
        ConditionKind::Statistics,
        ConditionKind::Setting,
        ConditionKind::Sequence,
        ConditionKind::Disk,
        ConditionKind::AscendingIndex,
        ConditionKind::Stopped,
        ConditionKind::Table,
        ConditionKind::Column,
        ConditionKind::Index,
        ConditionKind::ForeignKey,
        ConditionKind::HypotheticalIndex,
        ConditionKind::PendingRestart,
        ConditionKind::ConfigurationError,
        ConditionKind::ConfigurationLoad,
        ConditionKind::SettingChange,
    ];

    /// Its name in recordings and queries.
    pub fn name(self) -> &'static str {
        match self {
            ConditionKind::Slot => "slot",
            ConditionKind::Prepared => "prepared",
            ConditionKind::Age => "age",
            ConditionKind::Archiver => "archiver",
            ConditionKind::Replica => "replica",
            ConditionKind::Receiver => "receiver",
            ConditionKind::Size => "size",
            ConditionKind::Bloat => "bloat",
            ConditionKind::UnusedIndex => "unused-index",
            ConditionKind::DuplicateIndex => "duplicate-index",
            ConditionKind::Deadlocks => "deadlocks",
            ConditionKind::Standby => "standby",
            ConditionKind::Throttled => "throttled",
            ConditionKind::Catalog => "catalog",
            ConditionKind::Statistics => "statistics",
            ConditionKind::Setting => "setting",
            ConditionKind::Sequence => "sequence",
            ConditionKind::Disk => "disk",
            ConditionKind::AscendingIndex => "ascending-index",
            ConditionKind::Stopped => "stopped",
            ConditionKind::Table => "table",
            ConditionKind::Column => "column",
            ConditionKind::Index => "index",
            ConditionKind::ForeignKey => "foreign-key",
            ConditionKind::HypotheticalIndex => "hypothetical-index",
            ConditionKind::PendingRestart => "pending-restart",
            ConditionKind::ConfigurationError => "configuration-error",
            ConditionKind::ConfigurationLoad => "configuration-load",
            ConditionKind::SettingChange => "setting-change",
        }
    }

    /// The smallest reading that has this kind.
    pub fn scope(self) -> Scope {
        match self {
            ConditionKind::Slot
            | ConditionKind::Age
            | ConditionKind::Archiver
            | ConditionKind::Replica
            | ConditionKind::Receiver
            | ConditionKind::Disk
            | ConditionKind::Stopped
            | ConditionKind::PendingRestart
            | ConditionKind::ConfigurationError
            | ConditionKind::ConfigurationLoad
            | ConditionKind::SettingChange => Scope::Server,
            ConditionKind::Size
            | ConditionKind::Bloat
            | ConditionKind::UnusedIndex
            | ConditionKind::DuplicateIndex => Scope::Objects,
            _ => Scope::Databases,
        }
    }

    /// Whether recordings have it. They have changes of settings in a table of their own.
    pub fn is_recorded(self) -> bool {
        !matches!(self, ConditionKind::ConfigurationLoad | ConditionKind::SettingChange)
    }

    /// The kind of this name; `None`: a later version's.
    pub fn from_name(name: &str) -> Option<ConditionKind> {
        ConditionKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// What a reading asks for. Each includes those before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// What the server as a whole says, at the cost of one connection.
    Server,
    /// Also what the busiest databases say.
    #[default]
    Databases,
    /// Also sizes, bloat and indexes.
    Objects,
}

impl Scope {
    /// Its name in recordings.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Server => "server",
            Scope::Databases => "",
            Scope::Objects => "objects",
        }
    }

    /// The scope of this name.
    pub fn from_name(name: &str) -> Scope {
        match name {
            "server" => Scope::Server,
            "objects" => Scope::Objects,
            _ => Scope::Databases,
        }
    }
}

/// How a table or database grew.
#[derive(Debug, Clone, PartialEq)]
pub struct Growth {
    /// Its database.
    pub database: String,
    /// Its name; empty: the whole database.
    pub name: String,
    /// Bytes that it has grown; negative: it has shrunk.
    pub bytes: i64,
    /// Time between the two readings, seconds.
    pub seconds: f64,
}

/// A condition of the server, or of one of its objects.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// What it is about.
    pub kind: ConditionKind,
    /// The object.
    pub name: String,
    /// Its database; `None`: it belongs to none.
    pub database: Option<String>,
    /// See [`ConditionKind`].
    pub state: String,
    /// See [`ConditionKind`].
    pub count: i64,
    /// See [`ConditionKind`].
    pub bytes: i64,
    /// See [`ConditionKind`].
    pub seconds: Option<f64>,
}

impl Condition {
    /// The WAL file that the archiver has failed to archive at least twice in a row.
    pub fn failing_file(&self) -> Option<&str> {
        self.state.strip_prefix(FAILS)
    }

    /// Whether the archiver has neither a command nor a library, so that it tries nothing and the server keeps all WAL.
    pub fn archives_nothing(&self) -> bool {
        self.state == NOT_CONFIGURED
    }
}

/// What the server says: the tables with most dead rows, what holds vacuum back, and other conditions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Vacuum {
    /// The table with the most dead rows first.
    pub tables: Vec<Table>,
    /// The one that holds back the most first.
    pub holders: Vec<Holder>,
    /// Everything else.
    pub conditions: Vec<Condition>,
    /// How the objects of [`ConditionKind::Size`] grew, if that is known.
    pub growths: Vec<Growth>,
    /// What was asked for.
    pub scope: Scope,
}

/// The beginning of the state of an archiver whose last attempt failed.
pub const FAILS: &str = "fails: ";
/// The same if nobody has seen this before: its next attempt, a second later, may succeed.
const FAILED: &str = "failed: ";
/// The state of an archiver without archive_command and archive_library.
pub const NOT_CONFIGURED: &str = "not configured";
/// The end of the state of a slot whose WAL was removed.
pub const LOST: &str = "lost";
/// The end of the state of a slot that nobody uses.
pub const INACTIVE: &str = "inactive";

impl Vacuum {
    /// Counts of events since an earlier answer; without one, none.
    pub fn since(mut self, earlier: Option<&Vacuum>) -> Vacuum {
        let before = |condition: &Condition| {
            let all = earlier?.conditions.iter();
            let object = |condition: &Condition| {
                (condition.kind, condition.database.clone(), condition.name.clone())
            };
            let mut same = all.filter(|was| object(was) == object(condition));
            same.next().map(|was| was.count)
        };
        self.conditions.retain_mut(|condition| match condition.kind {
            ConditionKind::Deadlocks | ConditionKind::Sequence => {
                condition.count -= before(condition).unwrap_or(condition.count);
                condition.count > 0
            }
            ConditionKind::Archiver => {
                let of_then =
                    earlier.into_iter().flat_map(|all| all.conditions(ConditionKind::Archiver));
                let state = std::mem::take(&mut condition.state);
                condition.state = match state.strip_prefix(FAILS) {
                    Some(file) if of_then.map(|was| &was.state).all(|was| *was != state) => {
                        format!("{FAILED}{file}")
                    }
                    _ => state,
                };
                true
            }
            _ => true,
        });
        self
    }

    /// What is known after a newer answer, which may have asked for less.
    pub fn refreshed(self, newer: Vacuum) -> Vacuum {
        let scope = newer.scope;
        let kept = self.conditions.into_iter().filter(|condition| condition.kind.scope() > scope);
        let conditions = newer.conditions.into_iter().chain(kept).collect();
        match scope {
            Scope::Server => Vacuum { conditions, ..self },
            _ => Vacuum { conditions, scope: self.scope.max(scope), ..newer },
        }
    }

    /// The conditions of a kind.
    pub fn conditions(&self, kind: ConditionKind) -> impl Iterator<Item = &Condition> {
        self.conditions.iter().filter(move |condition| condition.kind == kind)
    }

    /// The rows of one time of a recording.
    pub fn recorded<'r>(
        tables: impl Iterator<Item = &'r DeadRowsRow>,
        holders: impl Iterator<Item = &'r SnapshotRow>,
        conditions: impl Iterator<Item = &'r ConditionRow>,
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
        let condition = |row: &ConditionRow| {
            Some(Condition {
                kind: ConditionKind::from_name(&row.kind)?,
                name: row.name.to_string(),
                database: row.database.as_deref().map(str::to_string),
                state: row.state.to_string(),
                count: count(row.count),
                bytes: count(row.bytes),
                seconds: row.age_ns.map(seconds),
            })
        };
        let mut all = Vacuum {
            tables: tables.map(table).collect(),
            holders: holders.map(holder).collect(),
            conditions: conditions.filter_map(condition).collect(),
            ..Vacuum::default()
        };
        all.tables.sort_by_key(|table| std::cmp::Reverse(table.dead_rows));
        all.holders.sort_by_key(|holder| std::cmp::Reverse(holder.transactions));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(kind: ConditionKind, state: &str, count: i64) -> Condition {
        Condition {
            kind,
            name: "n".into(),
            database: None,
            state: state.into(),
            count,
            bytes: 0,
            seconds: None,
        }
    }

    #[test]
    fn an_archiver_fails_only_if_two_readings_say_so_of_one_file() {
        let of = |state: &str| Vacuum {
            conditions: vec![condition(ConditionKind::Archiver, state, 3)],
            ..Vacuum::default()
        };
        let state = |now: &str, before: Option<&str>| {
            let before = before.map(of);
            of(now).since(before.as_ref()).conditions[0].state.clone()
        };
        assert_eq!(state("fails: 3", None), "failed: 3");
        assert_eq!(state("fails: 3", Some("archives")), "failed: 3");
        assert_eq!(state("fails: 3", Some("fails: 2")), "failed: 3");
        assert_eq!(state("fails: 3", Some("fails: 3")), "fails: 3");
        assert_eq!(state("archives", Some("fails: 3")), "archives");
    }

    #[test]
    fn a_smaller_answer_replaces_only_what_it_was_asked_for() {
        let of = |scope, kinds: &[ConditionKind], count| Vacuum {
            conditions: kinds.iter().map(|kind| condition(*kind, "", count)).collect(),
            scope,
            ..Vacuum::default()
        };
        use ConditionKind::{Age, Setting, Size, Slot};
        let all = of(Scope::Objects, &[Slot, Age, Setting, Size], 1);
        let counts = |all: &Vacuum| -> Vec<_> {
            all.conditions.iter().map(|found| (found.kind, found.count)).collect()
        };
        let next = all.refreshed(of(Scope::Server, &[Age], 2));
        assert_eq!(counts(&next), [(Age, 2), (Setting, 1), (Size, 1)]);
        let next = next.refreshed(of(Scope::Databases, &[Slot, Setting], 3));
        assert_eq!(counts(&next), [(Slot, 3), (Setting, 3), (Size, 1)]);
        let next = next.refreshed(of(Scope::Objects, &[], 4));
        assert_eq!(counts(&next), []);
    }

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
        let all = Vacuum::recorded(tables.iter(), holders.iter(), std::iter::empty());
        let shown = |at: usize| {
            (all.tables[at].name.as_str(), all.tables[at].dead_rows, all.tables[at].live_rows)
        };
        assert_eq!((shown(0), shown(1)), (("many", i64::MAX, 5), ("few", 1, 900)));
        assert_eq!(all.tables[0].vacuumed_seconds_ago, Some(2.0));
        assert_eq!((all.holders[0].name.as_str(), all.holders[0].seconds), ("old", Some(0.5)));
    }
}
