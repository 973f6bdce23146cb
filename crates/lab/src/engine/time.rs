// SPDX-License-Identifier: PostgreSQL
//! Durations in a study file.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// A duration, written as a number of seconds or with a unit: `10`, `"500ms"`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Time(pub Duration);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(f64),
            Text(String),
        }
        let length = match Written::deserialize(from)? {
            Written::Number(seconds) => Duration::try_from_secs_f64(seconds)
                .map_err(|_| "not a time in seconds".to_string()),
            Written::Text(text) => view::duration::parse(&text),
        };
        length.map(Time).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_seconds_and_texts_have_a_unit() {
        let of = |text| serde_json::from_str::<Time>(text).map(|time| time.0.as_millis()).ok();
        assert_eq!([of("10"), of("0.25"), of("\"500ms\"")], [Some(10_000), Some(250), Some(500)]);
        assert_eq!([of("-1"), of("\"x\""), of("true")], [None; 3]);
    }
}
