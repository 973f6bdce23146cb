// SPDX-License-Identifier: PostgreSQL
//! Tables of the documentation, between `<!-- generated: NAME -->` and `<!-- end -->`.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::spec::{Base, Enum, Layout, Member, Struct, Type};
use crate::words::{expand, grouped, Language};

struct Page;

impl Language for Page {
    fn enumeration(&self, one: &Enum) -> String {
        let values =
            one.values.iter().map(|(name, value, _)| format!("{value} {}", name.replace('_', " ")));
        values.collect::<Vec<_>>().join(", ")
    }

    fn number(&self, expression: &str, value: u64) -> String {
        match expression {
            "byte_order" => format!("{value:#010x}"),
            _ => grouped(value),
        }
    }
}

fn type_name(layout: &Layout, kind: &Type) -> Result<String, String> {
    let (count, _) = layout.extent(kind)?;
    Ok(match (&kind.of, &kind.count) {
        (Base::Text, _) => format!("text {count}"),
        (Base::Char, _) => format!("{} bytes", grouped(count)),
        (Base::Union, _) => "by kind".into(),
        (Base::Number(name, _), None) => name.to_string(),
        (Base::Number(name, _), Some(_)) => format!("{count} x {name}"),
        (Base::Struct(name), None) => name.replace('_', " "),
        (Base::Struct(name), Some(_)) => format!("{count} x {}", name.replace('_', " ")),
    })
}

fn members(layout: &Layout, one: &Struct, of: &[&Member]) -> Result<String, String> {
    let mut out = format!(
        "| {} ({} bytes) | type | field | |\n|---|---|---|---|\n",
        one.title,
        grouped(one.size)
    );
    for Member(at, kind, name, meaning) in of {
        let meaning = expand(layout, meaning, &Page)?;
        let _ = writeln!(
            out,
            "{}",
            format!("| {at} | {} | {name} | {meaning} |", type_name(layout, kind)?)
                .replace("|  |", "| |")
        );
    }
    Ok(out)
}

/// All tables by name.
pub fn tables(layout: &Layout) -> Result<BTreeMap<String, String>, String> {
    let mut tables = BTreeMap::new();
    for one in &layout.structs {
        let mut groups: Vec<(String, Vec<&Member>)> = Vec::new();
        for part in &one.parts {
            if !part.name.is_empty() || groups.is_empty() {
                let dot = if part.name.is_empty() { "" } else { "." };
                groups.push((format!("{}{dot}{}", one.name, part.name), Vec::new()));
            }
            if let Some(group) = groups.last_mut() {
                group.1.extend(&part.members);
            }
        }
        for (name, group) in groups {
            tables.insert(name, members(layout, one, &group)?);
        }
    }
    for one in &layout.enums {
        let mut out = String::from("| number | name | |\n|---|---|---|\n");
        for (name, value, meaning) in &one.values {
            let meaning = expand(layout, meaning, &Page)?;
            let _ = writeln!(
                out,
                "{}",
                format!("| {value} | {} | {meaning} |", name.replace('_', " "))
                    .replace("|  |", "| |")
            );
        }
        tables.insert(format!("values of {}", one.name), out);
    }
    for one in &layout.tables {
        let mut out = format!("| {} |\n{}|\n", one.head.join(" | "), "|---".repeat(one.head.len()));
        for row in &one.rows {
            let cells = row
                .iter()
                .map(|cell| expand(layout, cell, &Page))
                .collect::<Result<Vec<_>, _>>()?;
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
        tables.insert(one.name.clone(), out);
    }
    Ok(tables)
}

/// The document with its tables regenerated.
pub fn refill(document: &str, tables: &BTreeMap<String, String>) -> Result<String, String> {
    const START: &str = "<!-- generated: ";
    const END: &str = "<!-- end -->\n";
    let mut out = String::new();
    let mut rest = document;
    while let Some((before, after)) = rest.split_once(START) {
        let (name, after) =
            after.split_once(" -->\n").ok_or("the marker of a generated table is not closed")?;
        let table = tables.get(name).ok_or_else(|| format!("table {name} does not exist"))?;
        let (_, after) =
            after.split_once(END).ok_or_else(|| format!("table {name} has no end marker"))?;
        let _ = write!(out, "{before}{START}{name} -->\n{table}{END}");
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_replaced_and_one_that_is_not_known_is_an_error() {
        let tables = BTreeMap::from([("a".to_string(), "| new |\n".to_string())]);
        let page = |name: &str, table: &str| {
            format!("x\n<!-- generated: {name} -->\n{table}<!-- end -->\ny\n")
        };
        assert_eq!(refill(&page("a", "| old |\n"), &tables), Ok(page("a", "| new |\n")));
        assert_eq!(refill(&page("b", ""), &tables), Err("table b does not exist".into()));
        assert_eq!(
            refill("<!-- generated: a -->\n| old |\n", &tables),
            Err("table a has no end marker".into())
        );
    }
}
