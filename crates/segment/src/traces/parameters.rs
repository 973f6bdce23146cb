// SPDX-License-Identifier: PostgreSQL
//! The parameters of an execution, as far as the server's process has recorded them.

use super::TraceParameter;
use crate::encoding;
use serde::Serialize;

/// Maximum number of parameters of an execution that are kept; the server records fewer.
const MOST: usize = 256;
/// Maximum length of a text that is kept, bytes; the server records shorter ones.
const LONGEST: usize = 4096;

/// The parameters of an execution.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExecutionParameters {
    /// Number of the first recorded one, from 1. Greater than 1 if records were lost.
    first: u32,
    /// Number of parameters of the execution.
    count: u32,
    values: Vec<TraceParameter>,
}

/// A parameter for `--json`. Without `value`, it was not recorded.
#[derive(Debug, Serialize)]
pub struct ParameterJson {
    /// Its number, as in `$1`.
    pub number: u32,
    /// Its text, or the beginning; `null` for NULL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Option<String>>,
    /// Length of the whole text, if it is cut, or of the value that was not recorded; bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u32>,
}

impl ExecutionParameters {
    /// Begins with this one; `None` for the rest of a text whose beginning was lost.
    pub fn begin(number: u16, count: u32, part: TraceParameter) -> Option<ExecutionParameters> {
        match part {
            TraceParameter::Rest(_) => None,
            part => {
                Some(ExecutionParameters { first: u32::from(number), count, values: vec![part] })
            }
        }
    }

    /// Adds a parameter, or the rest of the last one. Returns it if it belongs to another execution.
    pub fn add(&mut self, number: u16, part: TraceParameter) -> Option<TraceParameter> {
        let last = self.first + self.values.len() as u32 - 1;
        let has_room = self.values.len() < MOST;
        match (part, self.values.last_mut()) {
            (TraceParameter::Rest(more), Some(TraceParameter::Value { bytes, .. }))
                if u32::from(number) == last && bytes.len() + more.len() <= LONGEST =>
            {
                bytes.extend(more);
                None
            }
            (TraceParameter::Rest(more), _) => Some(TraceParameter::Rest(more)),
            (part, _) if u32::from(number) == last + 1 && has_room => {
                self.values.push(part);
                None
            }
            (part, _) => Some(part),
        }
    }

    fn numbered(&self) -> impl Iterator<Item = (u32, &TraceParameter)> {
        (self.first..).zip(&self.values)
    }

    /// Each value that is a text and was recorded, with its number from 1; the last field: its whole length, if it was cut.
    pub fn texts(&self) -> impl Iterator<Item = (u32, String, Option<u32>)> + '_ {
        self.numbered().filter_map(|(number, value)| match value {
            TraceParameter::Value { bytes, whole, encoding } => {
                let cut = (bytes.len() < *whole as usize).then_some(*whole);
                Some((number, encoding::decode(bytes, *encoding).into_owned(), cut))
            }
            _ => None,
        })
    }

    /// For `--json`.
    pub fn json(&self) -> Vec<ParameterJson> {
        let mut texts = self.texts();
        self.numbered()
            .map(|(number, value)| match value {
                TraceParameter::Value { .. } => {
                    let (_, text, bytes) = texts.next().unwrap_or_default();
                    ParameterJson { number, value: Some(Some(text)), bytes }
                }
                TraceParameter::Null => ParameterJson { number, value: Some(None), bytes: None },
                TraceParameter::Large(bytes) => {
                    ParameterJson { number, value: None, bytes: Some(*bytes) }
                }
                TraceParameter::Foreign | TraceParameter::Rest(_) => {
                    ParameterJson { number, value: None, bytes: None }
                }
            })
            .collect()
    }
}

/// As in the server's log: `$1 = '42', $2 = NULL`.
impl std::fmt::Display for ExecutionParameters {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, ParameterJson { number, value, bytes }) in self.json().into_iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            write!(f, "{separator}${number} = ")?;
            match (value, bytes) {
                (Some(Some(text)), bytes) => {
                    let text = text.replace('\'', "''");
                    match bytes {
                        Some(bytes) => write!(f, "'{text}...' ({bytes} bytes)")?,
                        None => write!(f, "'{text}'")?,
                    }
                }
                (Some(None), _) => write!(f, "NULL")?,
                (None, Some(bytes)) => write!(f, "(not shown: {bytes} bytes)")?,
                (None, None) => write!(f, "(not shown: user-defined type)")?,
            }
        }
        let last = (self.first + self.values.len() as u32).saturating_sub(1);
        match self.count.saturating_sub(last) {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(bytes: &[u8], whole: u32) -> TraceParameter {
        TraceParameter::Value { bytes: bytes.to_vec(), whole, encoding: 6 }
    }

    #[test]
    fn values_are_put_together_and_those_that_are_not_whole_say_so() {
        let mut all = ExecutionParameters::begin(1, 7, value(b"it's \xc3", 7)).unwrap();
        assert_eq!(all.add(1, TraceParameter::Rest(b"\xa4".to_vec())), None);
        for (number, part) in [
            (2, TraceParameter::Null),
            (3, value(b"", 0)),
            (4, value(b"abc", 1000)),
            (5, TraceParameter::Foreign),
            (6, TraceParameter::Large(10_000_000)),
        ] {
            assert_eq!(all.add(number, part), None);
        }
        assert_eq!(
            all.to_string(),
            "$1 = 'it''s \u{e4}', $2 = NULL, $3 = '', $4 = 'abc...' (1000 bytes), \
             $5 = (not shown: user-defined type), $6 = (not shown: 10000000 bytes), and 1 more"
        );
        assert_eq!(
            serde_json::to_string(&all.json()).unwrap(),
            "[{\"number\":1,\"value\":\"it's \u{e4}\"},{\"number\":2,\"value\":null},{\"number\":3,\"value\":\"\"},\
             {\"number\":4,\"value\":\"abc\",\"bytes\":1000},{\"number\":5},{\"number\":6,\"bytes\":10000000}]"
        );
    }

    #[test]
    fn parameters_of_another_execution_and_parts_without_a_beginning_are_not_mixed_in() {
        let rest = || TraceParameter::Rest(b"rest".to_vec());
        assert_eq!(ExecutionParameters::begin(2, 3, rest()), None);
        let mut all = ExecutionParameters::begin(2, 3, value(b"two", 3)).unwrap();
        for (number, part) in [(1, value(b"one", 3)), (4, TraceParameter::Null), (3, rest())] {
            assert_eq!(all.add(number, part.clone()), Some(part));
        }
        assert_eq!(all.to_string(), "$2 = 'two', and 1 more");
        let mut all = ExecutionParameters::begin(1, u32::MAX, TraceParameter::Null).unwrap();
        assert_eq!(all.add(1, rest()), Some(rest()));
        let added = (2..2000).filter(|&number| all.add(number, TraceParameter::Null).is_none());
        assert_eq!(added.count() + 1, MOST);
    }
}
