// SPDX-License-Identifier: PostgreSQL
//! `--since` and `--until`: a time of day, a date, both, or an offset from the recording's end.

use jiff::tz::TimeZone;

use view::moment::Moment;

/// One end of a time range, as the user specified it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge(Moment);

impl Edge {
    /// Parses the argument; dates and times are local.
    pub fn parse(text: &str) -> Result<Edge, String> {
        match Moment::parse(text, &TimeZone::system()) {
            // There is nothing after the end.
            Some(moment) if !text.trim_start().starts_with('+') => Ok(Edge(moment)),
            _ => Err(format!(
                "\"{text}\" is not a time; use 14:30, 2026-03-01, \"2026-03-01 14:30:00\", \
                 2026-03-01T14:30:00Z, or -10m (before the end)"
            )),
        }
    }

    /// An instant, seconds since 1970.
    pub fn at(seconds: f64) -> Edge {
        Edge(Moment::At(seconds))
    }

    /// Resolves it for a recording that ends at `end`, both in seconds since 1970. A time of day is the last one
    /// before that end.
    pub fn resolve(self, end: f64) -> f64 {
        self.0.resolve(end, end, &TimeZone::system()).unwrap_or(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_is_so_long_before_the_end_or_the_last_such_time_before_it() {
        assert_eq!(Edge::parse("-10m").unwrap().resolve(1000.0), 400.0);
        assert_eq!(Edge::parse("2026-07-01T12:00:00Z").unwrap().resolve(0.0), 1_782_907_200.0);
        let noon = Edge::parse("2026-07-01 12:30:00").unwrap().resolve(0.0);
        let end = noon + 600.0;
        assert_eq!(Edge::parse("12:30").unwrap().resolve(end), noon);
        assert_eq!(Edge::parse("12:30:00").unwrap().resolve(end - 601.0), noon - 86_400.0);
    }

    #[test]
    fn an_invalid_time_is_refused_with_examples() {
        for odd in ["", "yesterday", "25:00", "+5s"] {
            let error = Edge::parse(odd).unwrap_err();
            assert!(error.contains("14:30"), "{odd}: {error}");
        }
    }
}
