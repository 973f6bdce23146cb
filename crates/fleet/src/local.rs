// SPDX-License-Identifier: PostgreSQL
//! Which files there are, where recordings lie in a directory.

use std::path::{Path, PathBuf};

use crate::Window;

fn entries(directory: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// What follows `key` in the last component of a path.
fn value<'p>(path: &'p Path, key: &str) -> Option<&'p str> {
    path.file_name()?.to_str()?.strip_prefix(key)
}

/// Whether a table's directory has a file that may have rows of the window.
pub fn has_file(table: &Path, window: Option<&Window>) -> bool {
    let is = |name: fn(&Window) -> Option<&String>, found: Option<&str>| {
        let wanted = window.and_then(name);
        found.is_some_and(|found| wanted.is_none_or(|wanted| wanted == found))
    };
    let in_day = |day: &Path| {
        let Some(date) = value(day, "date=") else { return false };
        entries(day).any(|file| {
            value(&file, "").is_some_and(|name| {
                name.ends_with(".parquet") && window.is_none_or(|it| it.has_file(date, name))
            })
        })
    };
    entries(table)
        .filter(|it| is(|window| window.only.cluster.as_ref(), value(it, "cluster=")))
        .flat_map(|cluster| entries(&cluster))
        .filter(|it| is(|window| window.only.host.as_ref(), value(it, "host=")))
        .flat_map(|host| entries(&host))
        .any(|day| in_day(&day))
}
