// SPDX-License-Identifier: PostgreSQL
//! Selects a figure of a JSON document by path: `ledger[phase=execute,activity=LWLock:*].seconds`.

use segment::wait_names;
use serde_json::Value;

/// A parsed path.
#[derive(Debug, Clone, PartialEq)]
pub struct Selector {
    steps: Vec<Step>,
    together: Together,
}

/// A field's name and, for a list, the rows.
#[derive(Debug, Clone, PartialEq)]
struct Step {
    name: String,
    /// Conditions on a list's rows; `None` for a field that is not a list.
    rows: Option<Vec<(String, String)>>,
}

/// How to combine the figures of several rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Together {
    /// Their sum.
    Sum,
    /// Their maximum.
    Max,
    /// Their mean.
    Mean,
}

impl Selector {
    /// Parses a path. The error quotes the invalid text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (together, path) = [("max(", Together::Max), ("mean(", Together::Mean)]
            .into_iter()
            .find_map(|(name, together)| {
                Some((together, text.strip_prefix(name)?.strip_suffix(')')?))
            })
            .unwrap_or((Together::Sum, text));
        let mut steps = Vec::new();
        let mut rest = path;
        loop {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let name = &rest[..end];
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err(format!("\"{text}\": \"{name}\" is not a field name"));
            }
            rest = &rest[end..];
            let mut rows = None;
            if let Some(inside) = rest.strip_prefix('[') {
                let end = inside.find(']').ok_or_else(|| format!("\"{text}\": missing ]"))?;
                rows = Some(conditions(&inside[..end]).map_err(|e| format!("\"{text}\": {e}"))?);
                rest = &inside[end + 1..];
            }
            steps.push(Step { name: name.into(), rows });
            match rest.strip_prefix('.') {
                Some(more) => rest = more,
                None if rest.is_empty() => return Ok(Self { steps, together }),
                None => return Err(format!("\"{text}\": syntax error at \"{rest}\"")),
            }
        }
    }

    /// The figure; `None` if it is null, 0 if no row matches. Fails if a field does not exist.
    pub fn select(&self, document: &Value) -> Result<Option<f64>, String> {
        let mut found = Vec::new();
        collect(document, &self.steps, &mut found)?;
        Ok(self.together.combine(&found))
    }
}

impl Together {
    /// The combined figure; `None` if all are null, 0 without rows.
    fn combine(self, found: &[Option<f64>]) -> Option<f64> {
        if found.is_empty() {
            return Some(0.0);
        }
        let known: Vec<f64> = found.iter().copied().flatten().collect();
        if known.is_empty() {
            return None;
        }
        Some(match self {
            Self::Sum => known.iter().sum(),
            Self::Max => known.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Self::Mean => known.iter().sum::<f64>() / known.len() as f64,
        })
    }
}

fn conditions(text: &str) -> Result<Vec<(String, String)>, String> {
    if text.trim() == "*" {
        return Ok(Vec::new());
    }
    text.split(',')
        .map(|condition| {
            let (field, value) = condition
                .split_once('=')
                .ok_or_else(|| format!("\"{condition}\" must have the form field=value"))?;
            Ok((field.trim().into(), value.trim().into()))
        })
        .collect()
}

fn collect(value: &Value, steps: &[Step], found: &mut Vec<Option<f64>>) -> Result<(), String> {
    let Some((step, rest)) = steps.split_first() else {
        found.push(match value {
            Value::Null => None,
            Value::Bool(yes) => Some(f64::from(u8::from(*yes))),
            Value::Number(number) => number.as_f64(),
            _ => return Err("the path does not lead to a number".into()),
        });
        return Ok(());
    };
    if value.is_null() {
        found.push(None);
        return Ok(());
    }
    let field = value.get(&step.name).ok_or_else(|| no_field(value, &step.name))?;
    match (&step.rows, field) {
        (Some(_), Value::Null) => found.push(None),
        (Some(conditions), Value::Array(rows)) => {
            for row in rows {
                if matches(row, conditions)? {
                    collect(row, rest, found)?;
                }
            }
        }
        (Some(_), _) => return Err(format!("{} is not a list", step.name)),
        (None, Value::Array(_)) => {
            return Err(format!("{0} is a list; use {0}[*] for all its elements", step.name))
        }
        (None, field) => collect(field, rest, found)?,
    }
    Ok(())
}

fn no_field(value: &Value, name: &str) -> String {
    let known: Vec<&str> =
        value.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    format!("field {name} does not exist; the fields are {}", known.join(", "))
}

fn matches(row: &Value, conditions: &[(String, String)]) -> Result<bool, String> {
    for (field, pattern) in conditions {
        let value = row.get(field).ok_or_else(|| no_field(row, field))?;
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        // An activity may have a different name in the server's version.
        let is_same = || field == "activity" && wait_names::is(&text, pattern);
        if !view::glob::matches(pattern, &text) && !is_same() {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_is_found_by_the_name_of_another_version() {
        let document = json!({"waits": [{"activity": "IO:WalSync", "seconds": 2.0}]});
        for name in ["IO:WalSync", "IO:WALSync", "IO:*Sync"] {
            let path = Selector::parse(&format!("waits[activity={name}].seconds")).unwrap();
            assert_eq!(path.select(&document), Ok(Some(2.0)), "{name}");
        }
    }

    fn select_in_sample(path: &str) -> Result<Option<f64>, String> {
        let document = json!({
            "interval_seconds": 2.0,
            "io": null,
            "ledger": [
                {"phase": "execute", "activity": "LWLock:WALWrite", "seconds": 1.5},
                {"phase": "execute", "activity": "LWLock:ProcArray", "seconds": 0.25},
                {"phase": "idle", "activity": "Client:ClientRead", "seconds": 7.0},
            ],
            "commits": {"count": 3, "insertion": null},
            "rows": [{"n": 4}, {"n": null}, {"n": 2}],
        });
        Selector::parse(path).and_then(|selector| selector.select(&document))
    }

    #[test]
    fn figures_of_several_rows_are_combined() {
        assert_eq!(select_in_sample("interval_seconds"), Ok(Some(2.0)));
        assert_eq!(select_in_sample("commits.count"), Ok(Some(3.0)));
        assert_eq!(
            select_in_sample("ledger[phase=execute,activity=LWLock:*].seconds"),
            Ok(Some(1.75))
        );
        assert_eq!(select_in_sample("max(ledger[*].seconds)"), Ok(Some(7.0)));
        assert_eq!(select_in_sample("mean(ledger[activity=LWLock:*].seconds)"), Ok(Some(0.875)));
        assert_eq!(select_in_sample("ledger[phase=parse].seconds"), Ok(Some(0.0)));
        assert_eq!(
            select_in_sample("mean(rows[*].n)"),
            Ok(Some(3.0)),
            "of those that have a value"
        );
    }

    #[test]
    fn null_has_no_value() {
        assert_eq!(select_in_sample("commits.insertion"), Ok(None));
        assert_eq!(select_in_sample("io.devices.figures.devices[*].writes"), Ok(None));
    }

    #[test]
    fn an_unknown_field_is_an_error_that_lists_the_known_ones() {
        let error = select_in_sample("commits.counts").unwrap_err();
        assert!(error.contains("counts") && error.contains("insertion"), "{error}");
        assert!(select_in_sample("ledger[phases=execute].seconds")
            .unwrap_err()
            .contains("activity"));
        assert!(select_in_sample("ledger.seconds").unwrap_err().contains("ledger[*]"));
        for path in ["", ".", "a[", "a[b]", "a]b", "a..b", "commits"] {
            assert!(select_in_sample(path).is_err(), "{path}");
        }
    }
}
