// SPDX-License-Identifier: PostgreSQL
//! Removes constants from the texts in an answer: they may be secrets, or personal data.
//!
//! The server and pg_tally replace most of them in the texts of statements, but not numbers of utility statements, and nothing in
//! the server's log and the plans there.

use serde_json::{Map, Value};

/// Fields with SQL, or a plan.
const SQL: [&str; 2] = ["query", "plan"];
/// Columns of tables with SQL.
const SQL_COLUMNS: [&str; 3] = ["query", "statement", "text"];
/// Fields with commands to execute. Their strings are names of this server's objects, without which they do nothing.
const COMMANDS: [&str; 2] = ["commands", "sql"];
/// Tables and marks with messages of the server's log, which quote values in several ways.
const LOG_TABLES: [&str; 2] = ["log_errors", "log_messages"];
const LOG_MARKS: [&str; 2] = ["error", "deadlock"];
/// Columns of these tables with messages.
const MESSAGES: [&str; 2] = ["message", "text"];
const MASKED: &str = "?";

/// Masks the texts below `value`.
pub fn texts(value: &mut Value) {
    walk("", value);
}

fn walk(field: &str, value: &mut Value) {
    match value {
        Value::String(text) if SQL.contains(&field) => *text = recording::without_constants(text),
        Value::String(text) => *text = without_quoted(text),
        // Statements and their plans beside the rows of a report's table, and output of commands.
        Value::Array(items) if ["details", "texts"].contains(&field) => {
            items.iter_mut().for_each(all_sql);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| walk(field, item)),
        // Commands with the text of a statement, which may have kept constants.
        Value::Object(_) if field == "example" => all_sql(value),
        Value::Object(fields) => {
            let kind = fields.get("kind").and_then(Value::as_str);
            if field == "marks" && kind.is_some_and(|kind| LOG_MARKS.contains(&kind)) {
                fields.insert("text".into(), MASKED.into());
            }
            columns(fields);
            let others = |name: &str| !COMMANDS.contains(&name);
            for (name, value) in fields.iter_mut().filter(|(name, _)| others(name)) {
                if name == "slow_executions" {
                    parameters(value);
                } else {
                    walk(name, value);
                }
            }
        }
        _ => {}
    }
}

/// Masks the cells of a table, which are in the order of its columns.
fn columns(table: &mut Map<String, Value>) {
    let Some(columns) = table.get("columns").and_then(Value::as_array) else { return };
    let key = |column: &Value| column["key"].as_str().unwrap_or_default().to_owned();
    let keys: Vec<String> = columns.iter().map(key).collect();
    let of_log = table.get("id").and_then(Value::as_str).is_some_and(|id| LOG_TABLES.contains(&id));
    let Some(rows) = table.get_mut("rows").and_then(Value::as_array_mut) else { return };
    for cells in rows.iter_mut().filter_map(Value::as_array_mut) {
        for (key, cell) in keys.iter().zip(cells) {
            let Value::String(text) = cell else { continue };
            if of_log && MESSAGES.contains(&key.as_str()) {
                *text = MASKED.into();
            } else if SQL_COLUMNS.contains(&key.as_str()) {
                *text = recording::without_constants(text);
            }
        }
    }
}

/// Masks every text below `value` as SQL, but for the keys of statements and of texts.
fn all_sql(value: &mut Value) {
    if let Some(executions) = value.get_mut("slow_executions") {
        parameters(executions);
    }
    match value {
        Value::String(text) => *text = recording::without_constants(text),
        Value::Array(items) => items.iter_mut().for_each(all_sql),
        Value::Object(fields) => {
            let others = |name: &str| !["statement", "id"].contains(&name);
            fields
                .iter_mut()
                .filter(|(name, _)| others(name))
                .for_each(|(_, value)| all_sql(value));
        }
        _ => {}
    }
}

/// Masks the parameters of executions below `value`, which are values, whether or not texts are masked.
pub fn slow_executions(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(slow_executions),
        Value::Object(fields) => {
            for (name, value) in fields {
                match &**name {
                    "slow_executions" => parameters(value),
                    _ => slow_executions(value),
                }
            }
        }
        _ => {}
    }
}

/// Masks every text below `value`, which has the parameters of executions.
fn parameters(value: &mut Value) {
    match value {
        Value::String(text) => *text = MASKED.into(),
        Value::Array(items) => items.iter_mut().for_each(parameters),
        Value::Object(fields) => {
            fields
                .iter_mut()
                .filter(|(name, _)| *name != "queryid")
                .for_each(|(_, value)| parameters(value));
        }
        _ => {}
    }
}

/// A sentence with '?' for each string in single quotes; its figures stay. An apostrophe within a word is none, and a
/// string whose end was cut off ends with the sentence.
fn without_quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\'') {
        let in_word = rest[..at].chars().next_back().is_some_and(char::is_alphanumeric);
        let is_prefixed = ["e", "b", "x", "n", "E", "B", "X", "N"].iter().any(|prefix| {
            rest[..at]
                .strip_suffix(prefix)
                .is_some_and(|before| !before.ends_with(char::is_alphanumeric))
        });
        if in_word && !is_prefixed {
            out.push_str(&rest[..=at]);
            rest = &rest[at + 1..];
            continue;
        }
        out.push_str(&rest[..at]);
        out.push_str("'?'");
        let inside = &rest[at + 1..];
        let mut end = inside.len();
        let mut from = 0;
        while let Some(quote) = inside[from..].find('\'') {
            let quote = from + quote;
            if inside[quote + 1..].starts_with('\'') {
                from = quote + 2;
            } else {
                end = quote + 1;
                break;
            }
        }
        rest = &inside[end..];
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn constants_of_statements_and_strings_of_sentences_are_masked_and_figures_stay() {
        let mut answer = json!({
            "rows": [{ "query": "create role r password 'secret' -- 7", "calls": 7, "user": "r" }],
            "diagnoses": [{
                "text": "81 % of the server's time: update t set a = 'it''s secret' where b = $1, 3 calls",
                "evidence": ["E'secret' and 'secret that was cut off"],
                "commands": ["rollback prepared 'xa-4711'"],
            }],
        });
        texts(&mut answer);
        assert!(!answer.to_string().contains("secret"), "{answer}");
        let diagnosis = &answer["diagnoses"][0];
        assert_eq!(
            diagnosis["text"],
            "81 % of the server's time: update t set a = '?' where b = $1, 3 calls"
        );
        assert_eq!(diagnosis["commands"][0], "rollback prepared 'xa-4711'");
        assert_eq!(answer["rows"][0]["calls"], 7);
        assert_eq!(answer["rows"][0]["user"], "r");
    }

    #[test]
    fn parameters_are_masked_wherever_they_are_and_nothing_else_is() {
        let mut answer = json!({
            "tables": [{ "details": [{ "text": "select 'shown'", "slow_executions": [[1.5, 0.25, "$1 = 'secret'"]] }] }],
            "statements": { "slow_executions": [{ "queryid": "-7", "seconds": 0.5, "parameters": "$1 = 'secret'" }] },
        });
        slow_executions(&mut answer);
        let expected = json!({
            "tables": [{ "details": [{ "text": "select 'shown'", "slow_executions": [[1.5, 0.25, "?"]] }] }],
            "statements": { "slow_executions": [{ "queryid": "-7", "seconds": 0.5, "parameters": "?" }] },
        });
        assert_eq!(answer, expected);
    }

    #[test]
    fn tables_of_reports_and_fleets_are_masked_by_their_columns() {
        let table = |id: &str, keys: [&str; 2], cells: [&str; 2]| {
            let columns = keys.map(|key| json!({ "key": key }));
            json!({ "id": id, "columns": columns, "rows": [cells], "details": [
                { "text": "set x = 'secret'", "statement": "-7.5.10", "plans": [["Filter: (v = 'secret')"]],
                  "slow_executions": [[1796054321.5, 0.512, "$1 = 'secret', $2 = NULL"]] },
            ] })
        };
        let mut report = json!({
            "tables": [
                table("statements", ["query", "user"], ["select 'secret', 4711", "r2"]),
                table("log_errors", ["message", "query"], ["invalid input: \"secret\"", "select 'secret'"]),
                table("log_messages", ["kind", "text"], ["deadlock", "Key (v)=(secret)"]),
            ],
            "marks": [{ "kind": "error", "text": "FATAL: \"secret\"" }, { "kind": "checkpoint", "text": "3 s" }],
            "texts": [{ "id": "run-1", "text": "psql: 'secret'" }],
            "findings": [{ "statement": "-7.5.10" }],
        });
        texts(&mut report);
        assert!(!report.to_string().contains("secret"), "{report}");
        assert_eq!(report["tables"][0]["rows"][0], json!(["select ?, ?", "r2"]));
        assert_eq!(report["tables"][2]["rows"][0], json!(["deadlock", "?"]));
        assert_eq!(report["marks"][1]["text"], "3 s");
        let slow = &report["tables"][0]["details"][0]["slow_executions"][0];
        assert_eq!(*slow, json!([1796054321.5, 0.512, "?"]));
        let mut statements = json!({ "slow_executions": [{ "queryid": "-7", "seconds": 0.5, "parameters": "$1 = 'secret'" }] });
        texts(&mut statements);
        assert_eq!(
            statements["slow_executions"][0],
            json!({ "queryid": "-7", "seconds": 0.5, "parameters": "?" })
        );
        for key in [&report["findings"][0], &report["tables"][0]["details"][0]] {
            assert_eq!(key["statement"], "-7.5.10");
        }
    }
}
