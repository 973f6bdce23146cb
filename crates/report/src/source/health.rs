// SPDX-License-Identifier: PostgreSQL
//! What the server's own views said in a range: vacuum, other conditions, and how tables grew.

use std::collections::BTreeMap;

use recording::{ConditionRow, DeadRowsRow, Range, Recording, SettingRow, SnapshotRow};

use super::annotations;
use super::time::seconds;
use error::Error;
use view::settings::{value_with_unit, SettingChange};
use view::vacuum::{Condition, ConditionKind, Growth, Scope, Vacuum};

/// How far vacuum was behind when most dead rows were there, and the last conditions, with all that was counted in the range;
/// `None`: there is nothing, or nobody asked.
pub fn health(recording: &Recording, range: Range) -> Result<Option<Vacuum>, Error> {
    let (tables, holders) = recording.vacuum(range)?;
    let conditions = recording.conditions(range)?;
    let mut dead: BTreeMap<u64, u64> = BTreeMap::new();
    for row in &tables {
        *dead.entry(row.frame).or_default() += row.dead;
    }
    let worst = dead.iter().max_by_key(|(_, dead)| **dead).map(|(frame, _)| *frame);
    let size = SizeHistory::read(recording, range)?.at(range.to_us);
    if worst.is_none() && conditions.is_empty() && size.is_none() {
        return Ok(None);
    }
    let last = last(&conditions);
    let tables = tables.iter().filter(|row| Some(row.frame) == worst);
    let holders = holders.iter().filter(|row| Some(row.frame) == worst);
    let all = Vacuum::recorded(tables, holders, last.iter());
    Ok(Some(Vacuum { growths: growths(&conditions), ..with_size(all, size) }))
}

/// A value of max_wal_size among recorded settings, which are read more often than conditions.
const SIZE: &str = "max_wal_size";

/// The values of [`SIZE`] in a time range, each with the time from which it holds, oldest first.
#[derive(Debug, Default)]
struct SizeHistory(Vec<(i64, SettingRow)>);

impl SizeHistory {
    fn read(recording: &Recording, range: Range) -> Result<SizeHistory, Error> {
        // Values in files have other units.
        let is_size = |row: &SettingRow| {
            &*row.group == "server" && &*row.name == SIZE && row.source.starts_with("sql")
        };
        let changes = recording.setting_changes(range)?.into_iter();
        let changes: Vec<_> = changes.filter(|(_, after)| is_size(after)).collect();
        if changes.is_empty() {
            let last = recording.settings(range)?.into_iter().find(is_size);
            return Ok(SizeHistory(last.map(|row| (i64::MIN, row)).into_iter().collect()));
        }
        let first = changes.first().map(|(before, _)| (i64::MIN, before.clone()));
        let rest = changes.iter().map(|(_, after)| (after.time_us, after.clone()));
        Ok(SizeHistory(first.into_iter().chain(rest).collect()))
    }

    /// The value at a time, microseconds since 1970.
    fn at(&self, time_us: i64) -> Option<Condition> {
        const MB: i64 = 1 << 20;

        let (_, row) = self.0.iter().rfind(|(from_us, _)| *from_us <= time_us)?;
        let size = row.value.parse::<i64>().ok().filter(|_| &*row.unit == "MB")?;
        Some(Condition {
            kind: ConditionKind::Setting,
            name: SIZE.to_owned(),
            database: None,
            state: value_with_unit(&row.value, &row.unit),
            count: 0,
            bytes: size.saturating_mul(MB),
            seconds: None,
        })
    }
}

/// With this value of the setting instead of that among the conditions.
fn with_size(mut all: Vacuum, size: Option<Condition>) -> Vacuum {
    if let Some(size) = size {
        all.conditions.retain(|condition| (condition.kind, &*condition.name) != (size.kind, SIZE));
        all.conditions.push(size);
    }
    all
}

/// Answers older than this say nothing about a moment any more, microseconds, by scope: twice the time between two questions
/// of a recorder.
const AGES_US: [i64; 3] = [120_000_000, 600_000_000, 3_600_000_000];
/// The first answer of a server describes the time before, too: a recorder asks at once, but a busy server answers late.
const FIRST_US: i64 = 60_000_000;

/// How long a changed setting is worth a note, seconds, as in a live view.
const CHANGED: f64 = 3600.0;

/// What the server's own views said at each time of a range.
#[derive(Debug, Default)]
pub struct HealthHistory {
    tables: Vec<DeadRowsRow>,
    holders: Vec<SnapshotRow>,
    conditions: Vec<ConditionRow>,
    sizes: SizeHistory,
    changes: Vec<SettingChange>,
}

impl HealthHistory {
    /// Reads all that is known about a range, from before its start if that still applies.
    pub fn read(recording: &Recording, range: Range) -> Result<HealthHistory, Error> {
        let earlier = AGES_US.iter().fold(0, |most, age| most.max(*age));
        let range = Range { from_us: range.from_us.saturating_sub(earlier), ..range };
        let (tables, holders) = recording.vacuum(range)?;
        let conditions = recording.conditions(range)?;
        let sizes = SizeHistory::read(recording, range)?;
        let changes = annotations::setting_changes(recording, range)?;
        Ok(HealthHistory { tables, holders, conditions, sizes, changes })
    }

    /// What was known at a time, given the start of the server, both in microseconds since 1970: the last answers for each scope.
    /// Counts are those between the last two answers.
    pub fn at(&self, time_us: i64, started_us: i64) -> Option<Vacuum> {
        let [server, databases, objects] = [Scope::Server, Scope::Databases, Scope::Objects]
            .map(|scope| self.answered(scope, time_us, started_us));
        let size = self.sizes.at(time_us);
        if [server, databases, objects].iter().all(Option::is_none) && size.is_none() {
            return None;
        }
        let of_scope = |scope: Scope| [server, databases, objects][scope as usize];
        let conditions = self.conditions.iter().filter(|row| {
            let kind = ConditionKind::from_name(&row.kind);
            kind.is_some_and(|kind| of_scope(kind.scope()) == Some(row.time_us))
        });
        let tables = self.tables.iter().filter(|row| Some(row.time_us) == databases);
        let holders = self.holders.iter().filter(|row| Some(row.time_us) == databases);
        let mut all = with_size(Vacuum::recorded(tables, holders, conditions), size);
        let now = seconds(time_us);
        let lately = |change: &&SettingChange| (now - CHANGED..=now).contains(&change.time);
        let changes = self.changes.iter().filter(lately);
        all.conditions.extend(changes.map(|change| change.clone().into_condition(now)));
        Some(all)
    }

    /// When the server last answered for a scope.
    fn answered(&self, scope: Scope, time_us: i64, started_us: i64) -> Option<i64> {
        let asked = self.conditions.iter().filter(|row| &*row.kind == ASKED);
        let asked = asked.filter(|row| Scope::from_name(&row.name) >= scope);
        let mut times: Vec<i64> = asked.map(|row| row.time_us).collect();
        if !self.conditions.iter().any(|row| &*row.kind == ASKED) {
            times.extend(self.conditions.iter().map(|row| row.time_us));
            times.extend(self.tables.iter().map(|row| row.time_us));
            times.extend(self.holders.iter().map(|row| row.time_us));
        }
        let oldest_us = started_us.max(time_us.saturating_sub(AGES_US[scope as usize]));
        let before = times.iter().filter(|time| (oldest_us..=time_us).contains(*time)).max();
        let is_first = |time: &&i64| {
            **time > time_us
                && **time - time_us <= FIRST_US
                && !times.iter().any(|earlier| (started_us..**time).contains(earlier))
        };
        before.or_else(|| times.iter().filter(is_first).min()).copied()
    }
}

/// The kind of the rows that say when the server was asked.
const ASKED: &str = "asked";

fn object(row: &ConditionRow) -> (&str, Option<&str>, &str) {
    (&row.kind, row.database.as_deref(), &row.name)
}

/// The conditions of the last reading that asked for their kind, and the sums of those that are counted.
fn last(conditions: &[ConditionRow]) -> Vec<ConditionRow> {
    const COUNTED: [ConditionKind; 2] = [ConditionKind::Deadlocks, ConditionKind::Sequence];

    let asked = |scope: Scope| {
        let rows = conditions.iter().filter(|row| &*row.kind == ASKED);
        let rows = rows.filter(|row| Scope::from_name(&row.name) >= scope);
        rows.map(|row| row.frame).max()
    };
    // The first recordings with conditions do not say when the server was asked.
    let is_marked = conditions.iter().any(|row| &*row.kind == ASKED);
    let last = conditions.iter().map(|row| row.frame).max().filter(|_| !is_marked);
    let scopes = [Scope::Server, Scope::Databases, Scope::Objects];
    let frames = scopes.map(|scope| asked(scope).or(last));
    let mut all: Vec<ConditionRow> = Vec::new();
    for row in conditions {
        let Some(kind) = ConditionKind::from_name(&row.kind) else { continue };
        if !COUNTED.contains(&kind) {
            if frames[kind.scope() as usize] == Some(row.frame) {
                all.push(row.clone());
            }
            continue;
        }
        match all.iter_mut().find(|sum| object(sum) == object(row)) {
            Some(sum) => sum.count += row.count,
            None => all.push(row.clone()),
        }
    }
    all
}

/// How each table that was there in the first and the last reading grew.
fn growths(conditions: &[ConditionRow]) -> Vec<Growth> {
    let mut seen: BTreeMap<(&str, &str), (&ConditionRow, &ConditionRow)> = BTreeMap::new();
    for row in conditions.iter().filter(|row| &*row.kind == ConditionKind::Size.name()) {
        let of_row = (row.database.as_deref().unwrap_or_default(), &*row.name);
        let (first, last) = seen.entry(of_row).or_insert((row, row));
        if row.frame < first.frame {
            *first = row;
        }
        if row.frame > last.frame {
            *last = row;
        }
    }
    let growth = |((database, name), (first, last)): (_, (&ConditionRow, &ConditionRow))| {
        let seconds = (last.time_us - first.time_us) as f64 * 1e-6;
        let size = |row: &ConditionRow| i64::try_from(row.bytes).unwrap_or(i64::MAX);
        (seconds > 0.0).then(|| Growth {
            database: <&str>::to_string(&database),
            name: <&str>::to_string(&name),
            bytes: size(last) - size(first),
            seconds,
        })
    };
    seen.into_iter().filter_map(growth).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kind: &str, name: &str, frame: u64, count: u64, bytes: u64) -> ConditionRow {
        ConditionRow {
            kind: kind.into(),
            name: name.into(),
            frame,
            time_us: frame as i64 * 60_000_000,
            count,
            bytes,
            ..ConditionRow::default()
        }
    }

    #[test]
    fn each_kind_is_as_of_the_last_reading_that_asked_for_it() {
        let rows = [
            row("asked", "objects", 1, 0, 0),
            row("slot", "gone", 1, 0, 1),
            row("setting", "max_wal_size", 1, 0, 1),
            row("size", "t", 1, 0, 100),
            row("deadlocks", "", 1, 2, 0),
            row("asked", "", 2, 0, 0),
            row("setting", "max_wal_size", 2, 0, 2),
            row("deadlocks", "", 2, 3, 0),
            row("asked", "server", 3, 0, 0),
            row("slot", "s", 3, 0, 7),
        ];
        let found = last(&rows);
        let shown: Vec<_> = found.iter().map(|row| (&*row.kind, row.frame, row.count)).collect();
        let expected = [("size", 1, 0), ("deadlocks", 1, 5), ("setting", 2, 0), ("slot", 3, 0)];
        assert_eq!(shown, expected);
    }

    #[test]
    fn recordings_of_earlier_versions_have_one_kind_of_reading() {
        let rows = [
            row("asked", "", 1, 0, 0),
            row("slot", "gone", 1, 0, 1),
            row("asked", "", 2, 0, 0),
            row("prepared", "x", 2, 0, 0),
        ];
        let kinds = |rows: &[ConditionRow]| {
            last(rows).iter().map(|row| row.kind.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(kinds(&rows), ["prepared"]);
        assert_eq!(kinds(&[rows[1].clone(), rows[3].clone()]), ["prepared"]);
    }

    #[test]
    fn a_moment_has_the_last_answers_before_it() {
        let counted = [
            row("asked", "objects", 1, 0, 0),
            row("setting", "max_wal_size", 1, 0, 1),
            row("deadlocks", "", 1, 2, 0),
            row("slot", "gone", 1, 0, 1),
            row("asked", "server", 2, 0, 0),
            row("slot", "s", 2, 0, 7),
            row("asked", "", 6, 0, 0),
            row("deadlocks", "", 6, 3, 0),
        ];
        let table = |frame: u64| DeadRowsRow {
            table: "t".into(),
            frame,
            time_us: frame as i64 * 60_000_000,
            dead: frame,
            ..DeadRowsRow::default()
        };
        let tables = vec![table(1), table(6)];
        let history =
            HealthHistory { tables, conditions: counted.to_vec(), ..HealthHistory::default() };
        let shown = |minutes: f64, started: i64| {
            let found = history.at((minutes * 60e6) as i64, started)?;
            let name = |found: &Condition| format!("{} {}", found.kind.name(), found.name);
            let conditions: Vec<String> = found.conditions.iter().map(name).collect();
            let dead = found.tables.first().map_or(0, |table| table.dead_rows);
            Some((conditions.join(", "), dead))
        };
        let from_first = Some(("setting max_wal_size, deadlocks , slot gone".to_owned(), 1));
        assert_eq!(shown(1.5, 0), from_first);
        // The recorder's first answer came late.
        assert_eq!(shown(0.5, 0), from_first);
        assert_eq!(shown(-0.5, i64::MIN), None);
        assert_eq!(shown(2.5, 0), Some(("setting max_wal_size, deadlocks , slot s".to_owned(), 1)));
        assert_eq!(shown(6.0, 0), Some(("deadlocks ".to_owned(), 6)), "without those of before");
        // The server was started meanwhile: its first answer counts.
        assert_eq!(shown(5.5, 4 * 60_000_000), Some(("deadlocks ".to_owned(), 6)));
        assert_eq!(shown(4.5, 4 * 60_000_000), None);
        assert_eq!(shown(20.0, 0), Some((String::new(), 0)), "too long ago, but not for objects");
        assert_eq!(shown(100.0, 0), None);
    }

    #[test]
    fn without_marks_all_rows_are_answers() {
        let table =
            DeadRowsRow { table: "t".into(), time_us: 5, dead: 7, ..DeadRowsRow::default() };
        let history = HealthHistory { tables: vec![table], ..HealthHistory::default() };
        let dead = |time_us: i64| history.at(time_us, i64::MIN).map(|all| all.tables.len());
        assert_eq!([dead(4), dead(5), dead(600_000_006)], [Some(1), Some(1), Some(0)]);
        assert_eq!(dead(3_600_000_006), None);
    }

    #[test]
    fn a_changed_setting_has_the_value_of_its_time() {
        let value = |value: &str, unit: &str| SettingRow {
            value: value.into(),
            unit: unit.into(),
            ..SettingRow::default()
        };
        let sizes = SizeHistory(vec![
            (i64::MIN, value("64", "MB")),
            (7, value("2048", "MB")),
            (9, value("1", "?")),
        ]);
        let at = |time_us: i64| sizes.at(time_us).map(|found| (found.state, found.bytes));
        assert_eq!(at(6), Some(("64MB".to_owned(), 64 << 20)));
        assert_eq!(at(7), Some(("2GB".to_owned(), 2 << 30)));
        assert_eq!(at(9), None);
        let earlier = sizes.at(6).unwrap();
        let all = Vacuum { conditions: vec![earlier], ..Vacuum::default() };
        let all = with_size(all, sizes.at(8));
        assert_eq!(all.conditions.iter().map(|found| &*found.state).collect::<Vec<_>>(), ["2GB"]);
    }

    #[test]
    fn growth_is_between_the_first_and_the_last_reading() {
        let rows = [
            row("size", "t", 1, 0, 100),
            row("size", "t", 2, 0, 300),
            row("size", "t", 3, 0, 200),
            row("size", "new", 3, 0, 200),
        ];
        let found = growths(&rows);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].bytes, found[0].seconds), (100, 120.0));
    }
}
