// SPDX-License-Identifier: PostgreSQL
//! Removes constants from the texts in an answer: they may be secrets, or personal data.
//!
//! The server replaces them in most statements' texts, but not in utility statements and plans.

use serde_json::Value;

/// Fields with SQL, or a plan.
const SQL: [&str; 3] = ["query", "statement", "plan"];
/// Fields with commands to execute. Their strings are names of this server's objects, without which they do nothing.
const COMMANDS: [&str; 2] = ["commands", "sql"];

/// Masks the texts below `value`.
pub fn texts(value: &mut Value) {
    walk("", value);
}

fn walk(field: &str, value: &mut Value) {
    match value {
        Value::String(text) if SQL.contains(&field) => *text = recording::without_constants(text),
        Value::String(text) => *text = without_quoted(text),
        Value::Array(items) => items.iter_mut().for_each(|item| walk(field, item)),
        Value::Object(fields) => {
            for (name, value) in
                fields.iter_mut().filter(|(name, _)| !COMMANDS.contains(&name.as_str()))
            {
                walk(name, value);
            }
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
}
