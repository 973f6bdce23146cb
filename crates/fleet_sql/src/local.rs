// SPDX-License-Identifier: PostgreSQL
//! Finds the files of recordings in a local directory.

use std::path::{Path, PathBuf};

use crate::Window;

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// The rest of the last component of a path after `key`.
fn value<'p>(path: &'p Path, key: &str) -> Option<&'p str> {
    path.file_name()?.to_str()?.strip_prefix(key)
}

/// Whether a table's directory has a file that may contain rows of the window.
pub fn has_file(table: &Path, window: Option<&Window>) -> bool {
    let is = |name: fn(&Window) -> Option<&String>, found: Option<&str>| {
        let wanted = window.and_then(name);
        found.is_some_and(|found| wanted.is_none_or(|wanted| wanted == found))
    };
    let in_day = |day: &Path| {
        let Some(date) = value(day, "date=") else { return false };
        entries(day).any(|file| {
            value(&file, "").is_some_and(|name| {
                name.ends_with(".parquet")
                    && window.is_none_or(|window| window.has_file(date, name))
            })
        })
    };
    entries(table)
        .filter(|path| is(|window| window.only.cluster.as_ref(), value(path, "cluster=")))
        .flat_map(|cluster| entries(&cluster))
        .filter(|path| is(|window| window.only.host.as_ref(), value(path, "host=")))
        .flat_map(|host| entries(&host))
        .any(|day| in_day(&day))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostFilter;

    #[test]
    fn a_file_counts_for_its_cluster_host_day_and_hour() {
        let table = std::env::temp_dir().join(format!("tally-local-{}", std::process::id()));
        let day = table.join("cluster=c/host=h/date=2026-03-01");
        std::fs::create_dir_all(&day).unwrap();
        // 2026-03-01, 12:00 to 13:00.
        let noon = 1_772_366_400_000;
        let window = |from: i64, cluster: Option<&str>, host: Option<&str>| {
            let only = HostFilter { cluster: cluster.map(Into::into), host: host.map(Into::into) };
            Window::new(noon + from, noon + from + 3_600_000, only).unwrap()
        };
        std::fs::write(day.join("123000-hour.json"), "").unwrap();
        assert!(!has_file(&table, None), "not of the format");
        std::fs::write(day.join("123000-1-hour.parquet"), "").unwrap();
        for (window, found) in [
            (window(0, None, None), true),
            (window(0, Some("c"), Some("h")), true),
            (window(0, Some("d"), None), false),
            (window(0, None, Some("g")), false),
            (window(3_600_000, None, None), true),
            (window(2 * 3_600_000, None, None), false),
            (window(-2 * 3_600_000, None, None), false),
        ] {
            assert_eq!(has_file(&table, Some(&window)), found, "{window:?}");
        }
        assert!(has_file(&table, None) && !has_file(&table.join("none"), None));
        std::fs::remove_dir_all(&table).unwrap();
    }
}
