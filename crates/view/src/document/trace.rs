// SPDX-License-Identifier: PostgreSQL
//! A trace of sessions for a page: the lines of `tally trace --json`.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Maximum size of the lines in a page, bytes; a browser needs about ten times as much memory for them.
const MOST_BYTES: usize = 32 << 20;

/// The data that the page's script draws (web/src/waterfall/model.ts).
#[derive(Debug, Clone, Default, Serialize)]
pub struct Trace {
    /// Number of lines for which there was no space.
    pub left_out: u64,
    /// As `tally trace --json` prints them.
    pub lines: Vec<Box<RawValue>>,
    #[serde(skip)]
    bytes: usize,
}

/// The fields that every line has.
#[derive(Debug, Deserialize)]
struct CommonFields {
    #[serde(rename = "pid")]
    _pid: i32,
    what: String,
}

impl Trace {
    /// The section of a report in which the trace is drawn.
    pub const SECTION: &'static str = "trace";

    /// Whether it is too long for a page to take more lines.
    pub fn is_full(&self) -> bool {
        self.bytes > MOST_BYTES
    }

    /// Adds a line; the error says why it is not a line of a trace.
    pub fn push(&mut self, line: &str) -> Result<(), serde_json::Error> {
        let any: CommonFields = serde_json::from_str(line)?;
        // The last lines say whether the trace is complete.
        if self.is_full() && any.what != "sums" {
            self.left_out += 1;
            return Ok(());
        }
        self.bytes += line.len();
        self.lines.push(serde_json::from_str(line)?);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stay_as_they_are_and_anything_else_is_refused() {
        let mut trace = Trace::default();
        let line = "{\"pid\":7,\"what\":\"wait\",\"ns\":1,\"length_ns\":2.50}";
        trace.push(line).unwrap();
        assert_eq!(
            serde_json::to_string(&trace).unwrap(),
            format!("{{\"left_out\":0,\"lines\":[{line}]}}")
        );
        for bad in ["", "{", "{\"pid\":7}", "[7]", "15:56:37 process 7 Query"] {
            assert!(trace.push(bad).is_err(), "{bad}");
        }
    }
}
