// SPDX-License-Identifier: PostgreSQL
//! Durations as people type them.

use std::time::Duration;

/// Parses a duration from the command line: a number with ms, s, min (or m), h or d; seconds without a unit.
pub fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        unit => return Err(format!("\"{unit}\" is not a unit of time; use ms, s, min, h or d")),
    };
    let number: f64 = digits.parse().map_err(|_| "must be a number with a unit, as in 500ms")?;
    Duration::try_from_secs_f64(number * factor).map_err(|_| "not a valid duration".into())
}

/// Like [`parse`], but with limits; the error names them.
pub fn within(text: &str, min: Duration, max: Duration) -> Result<Duration, String> {
    let value = parse(text)?;
    if value < min || value > max {
        return Err(format!("must be between {min:?} and {max:?}"));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_parsed_with_and_without_a_unit() {
        assert_eq!(parse("2"), Ok(Duration::from_secs(2)));
        assert_eq!(parse("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("20ms"), Ok(Duration::from_millis(20)));
        assert_eq!(parse("3min"), Ok(Duration::from_secs(180)));
        for bad in ["", "ms", "-1", "1 s", "2weeks", "nan", "inf", "1e30h"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
