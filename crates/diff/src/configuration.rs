// SPDX-License-Identifier: PostgreSQL
//! Differences between two sides in settings, versions, hardware, level and clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use recording::SettingRow;

use super::comparison::Setting;
use super::side::ComparedSide;
use error::Error;
use view::units::bytes;

/// Settings that are only locations or start times.
const LOCATIONS: [&str; 14] = [
    "archive_command",
    "boot",
    "cluster_name",
    "config_file",
    "data directory",
    "data_directory",
    "dynamic_library_path",
    "external_pid_file",
    "hba_file",
    "host",
    "ident_file",
    "log_directory",
    "port",
    "unix_socket_directories",
];

type SettingValues = BTreeMap<(Arc<str>, Arc<str>), String>;

/// All differences: versions and hardware first, then settings, then locations.
pub fn differences(a: &ComparedSide, b: &ComparedSide) -> Result<Vec<Setting>, Error> {
    Ok(between(&known(a)?, &known(b)?))
}

fn between(a: &SettingValues, b: &SettingValues) -> Vec<Setting> {
    // A group of settings that is unknown on one side cannot be compared.
    let groups = |known: &SettingValues| known.keys().map(|(group, _)| group.clone()).collect();
    let (of_a, of_b): (BTreeSet<Arc<str>>, BTreeSet<Arc<str>>) = (groups(a), groups(b));
    let names: BTreeSet<_> = a.keys().chain(b.keys()).collect();
    let mut settings: Vec<Setting> = names
        .into_iter()
        .filter(|(group, _)| of_a.contains(group) && of_b.contains(group))
        .filter(|name| a.get(name) != b.get(name))
        .map(|name| Setting {
            group: name.0.clone(),
            name: name.1.clone(),
            a: a.get(name).cloned(),
            b: b.get(name).cloned(),
            place: LOCATIONS.contains(&&*name.1) || same_but_for_path(a.get(name), b.get(name)),
        })
        .collect();
    settings.sort_by_key(|setting| {
        let group = ["machine", "recording"].iter().position(|group| **group == *setting.group);
        (setting.place, &*setting.name != "version", group.unwrap_or(2))
    });
    settings
}

/// Whether only the path differs, as in "/srv/a on ext4 (rw) on vda" and "/srv/b on ext4 (rw) on vda".
fn same_but_for_path(a: Option<&String>, b: Option<&String>) -> bool {
    let on = |value: Option<&String>| {
        let value = value.filter(|value| value.starts_with('/'))?;
        value.split_once(" on ").map(|(_, on)| on.to_string())
    };
    on(a).is_some_and(|a| Some(a) == on(b))
}

/// Sentences about sides whose server settings are unknown.
pub fn unknown(a: &ComparedSide, b: &ComparedSide) -> Result<Vec<String>, Error> {
    let has = |side: &ComparedSide| -> Result<bool, Error> {
        Ok(known(side)?.keys().any(|(group, _)| &**group == "server"))
    };
    let of = |side: &ComparedSide| {
        format!("The settings of {} are unknown: its recorder could not read them.", side.name)
    };
    Ok(match (has(a)?, has(b)?) {
        (true, true) => Vec::new(),
        (false, true) => vec![of(a)],
        (true, false) => vec![of(b)],
        (false, false) => vec!["The settings of both are unknown.".to_string()],
    })
}

fn known(side: &ComparedSide) -> Result<SettingValues, Error> {
    let mut known = SettingValues::new();
    for row in side.recording.settings(side.range)? {
        if ["server", "machine"].contains(&&*row.group) {
            known.insert((row.group.clone(), row.name.clone()), with_unit(&row));
        }
    }
    let mut add = |name: &str, value: String| {
        known.insert(("recording".into(), name.into()), value);
    };
    let about = side.recording.about();
    add("made by", about.made_by.clone());
    add("server", about.server.clone());
    add("data directory", about.data_directory.clone());
    add("interval", format!("{} s", about.interval_ns as f64 * 1e-9));
    if let Some(head) = side.heads.last() {
        add("processors", head.cores.to_string());
        let server =
            side.recording.servers()?.into_iter().find(|server| server.server == head.server);
        let clock = server.map_or_else(|| "-".into(), |server| server.clock);
        add("clock", format!("{clock}, {:.2} GHz", head.ticks_per_second * 1e-9));
    }
    let levels: BTreeSet<&str> = side.heads.iter().map(|head| &*head.level).collect();
    add("level", levels.into_iter().collect::<Vec<_>>().join(", "));
    Ok(known)
}

/// "16 MB" for 2048 times 8 kB.
fn with_unit(row: &SettingRow) -> String {
    let kilobytes = match &*row.unit {
        "" => return row.value.to_string(),
        "B" => 1.0 / 1024.0,
        "kB" => 1.0,
        "8kB" => 8.0,
        "MB" => 1024.0,
        "16MB" => 16.0 * 1024.0,
        unit => return format!("{} {unit}", row.value),
    };
    match row.value.parse::<f64>() {
        Ok(number) if number > 0.0 => bytes(number * kilobytes * 1024.0),
        _ => row.value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(rows: &[(&str, &str, &str)]) -> SettingValues {
        let name = |group: &str, name: &str| (Arc::from(group), Arc::from(name));
        rows.iter().map(|(g, n, v)| (name(g, n), v.to_string())).collect()
    }

    #[test]
    fn versions_and_hardware_come_first_and_locations_last() {
        let a = known(&[
            ("server", "work_mem", "4 MB"),
            ("server", "port", "1"),
            ("server", "version", "15"),
            ("server", "same", "x"),
            ("machine", "memory", "8 GB"),
        ]);
        let b = known(&[
            ("server", "work_mem", "8 MB"),
            ("server", "port", "2"),
            ("server", "version", "16"),
            ("server", "same", "x"),
            ("machine", "memory", "16 GB"),
        ]);
        let names: Vec<String> =
            between(&a, &b).iter().map(|change| change.name.to_string()).collect();
        assert_eq!(names, ["version", "memory", "work_mem", "port"]);
        assert!(between(&a, &a).is_empty());
    }

    #[test]
    fn another_directory_on_the_same_file_system_is_only_a_location() {
        let at = |text| known(&[("machine", "write-ahead log", text)]);
        let is_location = |a, b| between(&at(a), &at(b))[0].place;
        assert!(is_location("/a/pg_wal on ext4 (rw) on vda", "/b/pg_wal on ext4 (rw) on vda"));
        assert!(!is_location("/a/pg_wal on ext4 (rw) on vda", "/a/pg_wal on xfs (rw) on vdb"));
    }

    #[test]
    fn groups_unknown_on_one_side_are_not_compared() {
        let a = known(&[("server", "work_mem", "4 MB"), ("machine", "memory", "8 GB")]);
        let b = known(&[("machine", "memory", "8 GB")]);
        assert!(between(&a, &b).is_empty());
    }

    #[test]
    fn amounts_of_memory_are_shown_in_readable_units() {
        let row = |value: &str, unit: &str| SettingRow {
            value: value.into(),
            unit: unit.into(),
            ..SettingRow::default()
        };
        assert_eq!(with_unit(&row("2048", "8kB")), "16 MB");
        assert_eq!(with_unit(&row("4096", "kB")), "4 MB");
        assert_eq!(with_unit(&row("-1", "kB")), "-1");
        assert_eq!(with_unit(&row("60", "s")), "60 s");
        assert_eq!(with_unit(&row("on", "")), "on");
    }
}
