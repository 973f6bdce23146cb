// SPDX-License-Identifier: PostgreSQL
//! The fields of the command's JSON, and the page that describes them.

use std::collections::BTreeSet;

use serde_json::Value;

pub const PAGE: &str = include_str!("../../../../docs/reference-json.md");

/// The section of the page with this heading.
pub fn section(heading: &str) -> &'static str {
    let (_, section) = PAGE.split_once(&format!("# {heading}\n")).expect(heading);
    section.split("\n# ").next().unwrap()
}

/// The names of all fields, at any depth.
pub fn fields<'v>(values: impl IntoIterator<Item = &'v Value>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for value in values {
        match value {
            Value::Object(object) => {
                found.extend(object.keys().cloned());
                found.extend(fields(object.values()));
            }
            Value::Array(array) => found.extend(fields(array)),
            _ => {}
        }
    }
    found
}

/// The names in the first column of tables, unless the line contains `except`.
pub fn documented<'p>(part: &'p str, except: &str) -> Vec<&'p str> {
    let lines = part.lines().filter(|line| line.starts_with("| `"));
    let lines = lines.filter(|line| except.is_empty() || !line.contains(except));
    lines.flat_map(|line| line.split('|').nth(1).unwrap().split('`').skip(1).step_by(2)).collect()
}

/// Checks that this part of the page has these fields.
pub fn assert_documented(part: &str, fields: impl IntoIterator<Item = impl AsRef<str>>) {
    for field in fields {
        let field = field.as_ref();
        assert!(part.contains(&format!("`{field}`")), "{field} is not in docs/reference-json.md");
    }
}
