// SPDX-License-Identifier: PostgreSQL
//! A response of a size that a model can read: the requested fields, and the first rows of each list.

use serde_json::{json, Map, Value};

use crate::tools::{self, Tool};

/// The JSON that a verb printed: an object, or with `list` the name of the field for its lines.
pub fn parse(output: &str, list: Option<&str>) -> Result<Value, String> {
    let parsed = serde_json::Deserializer::from_str(output).into_iter::<Value>();
    let mut values: Vec<Value> =
        parsed.collect::<Result<_, _>>().map_err(|error| format!("no JSON: {error}"))?;
    match list {
        Some(list) => Ok(json!({ list: values })),
        // The last of several intervals.
        None => values.pop().ok_or_else(|| "no answer".into()),
    }
}

/// Keeps the fields that `given` or else the tool names, and cuts lists. `left_out` then has the number of elements of each
/// list that was cut.
pub fn select(answer: &mut Value, tool: &Tool, given: &Map<String, Value>) {
    let Value::Object(fields) = answer else { return };
    if let Some(choice) = &tool.fields {
        let asked: Option<Vec<&str>> = given
            .get(tools::FIELDS)
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect());
        let kept = asked.unwrap_or_else(|| choice.usual.to_vec());
        fields.retain(|name, _| {
            kept.contains(&name.as_str()) || choice.always.contains(&name.as_str())
        });
    }
    let rows = tools::rows(given);
    let mut left_out = Map::new();
    for (name, value) in fields.iter_mut() {
        cut(name, value, rows, &mut left_out);
    }
    if !left_out.is_empty() {
        fields.insert("left_out".into(), left_out.into());
    }
}

/// Cuts the lists at and below `value` to `rows` elements. `path` names it.
fn cut(path: &str, value: &mut Value, rows: usize, left_out: &mut Map<String, Value>) {
    match value {
        Value::Array(items) => {
            if items.len() > rows {
                let before = left_out.get(path).and_then(Value::as_u64).unwrap_or(0);
                left_out.insert(path.into(), (before + (items.len() - rows) as u64).into());
                items.truncate(rows);
            }
            items.iter_mut().for_each(|item| cut(path, item, rows, left_out));
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                cut(&format!("{path}.{name}"), value, rows, left_out);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::TOOLS;

    fn tool(name: &str) -> &'static Tool {
        TOOLS.iter().find(|tool| tool.name == name).unwrap()
    }

    fn selected(mut answer: Value, given: &Value) -> Value {
        select(&mut answer, tool("top"), given.as_object().unwrap());
        answer
    }

    #[test]
    fn fields_are_selected_and_lists_cut_and_what_was_cut_is_counted() {
        let accounts: Vec<u32> = (0..3).collect();
        let interval = json!({
            "time": 1.0,
            "ledger": (0..30).collect::<Vec<u32>>(),
            "sessions": [{ "accounts": accounts }, { "accounts": accounts }],
            "waits": [1],
        });
        let usual = selected(interval.clone(), &json!({}));
        assert_eq!(usual["ledger"].as_array().unwrap().len(), 20);
        assert_eq!(usual["left_out"], json!({ "ledger": 10 }));
        assert_eq!([&usual["time"], &usual["waits"]], [&json!(1.0), &Value::Null]);
        let asked = selected(interval, &json!({ "fields": ["sessions"], "rows": 2 }));
        assert_eq!(asked["left_out"], json!({ "sessions.accounts": 2 }));
        assert_eq!([&asked["time"], &asked["ledger"]], [&json!(1.0), &Value::Null]);
    }

    #[test]
    fn lines_become_a_list_and_of_several_objects_the_last_counts() {
        assert_eq!(parse("{\"a\":1}\n{\"a\":2}\n", Some("events")).unwrap()["events"][1]["a"], 2);
        assert_eq!(parse("", Some("events")).unwrap(), json!({ "events": [] }));
        assert_eq!(parse("{\"a\":1}\n{\"a\":2}\n", None).unwrap()["a"], 2);
        assert!(parse("", None).is_err() && parse("{", None).is_err());
    }
}
