// SPDX-License-Identifier: PostgreSQL
//! The result of an engine as a typed table.

use segment::WaitClass;
use serde_json::{Deserializer, Map, Value};
use view::table::{Cell, Row, Table, Tone, Unit};

use crate::Query;

fn cell(value: Option<&Value>, unit: Unit) -> Cell {
    match value {
        None | Some(Value::Null) => Cell::Empty,
        Some(Value::String(text)) if !unit.is_figure() && unit != Unit::Time => {
            text.as_str().into()
        }
        // Some engines return wide numbers as text.
        Some(Value::String(text)) => text.parse::<f64>().ok().map(|n| figure(n, unit)).into(),
        Some(Value::Number(n)) if unit == Unit::Id => n.to_string().into(),
        Some(Value::Number(n)) => n.as_f64().map(|n| figure(n, unit)).into(),
        Some(other) => other.to_string().into(),
    }
}

/// A number; counts are rounded to whole numbers.
fn figure(n: f64, unit: Unit) -> Cell {
    match unit {
        Unit::Count if n >= 0.0 => Cell::Whole(n as u64),
        _ => n.into(),
    }
}

/// The rows of a result in JSON: objects, or arrays of objects. The error says what is wrong.
pub(crate) fn rows(answer: &str) -> Result<Vec<Map<String, Value>>, String> {
    let mut rows: Vec<Map<String, Value>> = Vec::new();
    let mut add = |value: Value| match value {
        Value::Object(row) => {
            rows.push(row);
            Ok(())
        }
        other => Err(format!("the engine's response has {other} in place of a row")),
    };
    for value in Deserializer::from_str(answer).into_iter::<Value>() {
        match value.map_err(|error| {
            format!("the engine's response is not JSON ({error}): {}", answer.trim())
        })? {
            Value::Array(all) => all.into_iter().try_for_each(&mut add)?,
            one => add(one)?,
        }
    }
    Ok(rows)
}

/// The table of a result in JSON. The error says what is wrong.
pub fn table(query: &Query, answer: &str) -> Result<Table, String> {
    let cells = |row: &Map<String, Value>| {
        query.columns.iter().map(|column| cell(row.get(column.key), column.unit)).collect()
    };
    let row = |row: &Map<String, Value>| {
        let activity = row.get("activity").and_then(Value::as_str);
        let tone = activity.map_or(Tone::Plain, |name| Tone::from_class(WaitClass::of_name(name)));
        Row { tone, ..Row::new("", cells(row)) }
    };
    let rows = rows(answer)?.iter().map(row).collect();
    Ok(Table { rows, ..Table::new(query.name, query.about, query.columns.to_vec()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_all_engines_become_the_same_cells() {
        let query = Query::of_name("hosts").unwrap();
        let list = r#"[{"cluster":"c","host":"7","covered_seconds":1.5,"cpus":2,"handled":null}]"#;
        let lines =
            "{\"cluster\":\"c\",\"host\":\"7\",\"covered_seconds\":\"1.5\",\"cpus\":\"2\"}\n";
        let (a, b) = (table(query, list).unwrap(), table(query, lines).unwrap());
        assert_eq!(a.rows[0].cells, b.rows[0].cells);
        assert_eq!(a.rows[0].cells[1], Cell::from("7"));
        assert_eq!(a.rows[0].cells[7], Cell::Whole(2));
        assert!(table(query, "").unwrap().rows.is_empty());
        assert!(table(query, "Error: no").unwrap_err().contains("Error: no"));
        assert!(table(query, "[1]").is_err());
    }

    #[test]
    fn a_figure_is_of_its_columns_unit() {
        let of = |text: &str, unit| cell(Some(&serde_json::from_str(text).unwrap()), unit);
        for (text, unit, expected) in [
            ("12", Unit::Count, Cell::Whole(12)),
            ("-3", Unit::Count, Cell::Number(-3.0)),
            ("\"12\"", Unit::Count, Cell::Whole(12)),
            ("0.25", Unit::Share, Cell::Number(0.25)),
            ("\"0.25\"", Unit::Share, Cell::Number(0.25)),
            ("\"12\"", Unit::Text, "12".into()),
            ("7", Unit::Id, "7".into()),
            ("true", Unit::Text, "true".into()),
            ("\"x\"", Unit::Count, Cell::Empty),
            ("null", Unit::Count, Cell::Empty),
        ] {
            assert_eq!(of(text, unit), expected, "{text} {unit:?}");
        }
        assert_eq!(cell(None, Unit::Count), Cell::Empty);
    }
}
