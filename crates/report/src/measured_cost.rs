// SPDX-License-Identifier: PostgreSQL
//! The result of `tally cost --json`, as `tally report --cost` reads it.

use std::path::Path;

use error::Error;
use segment::Level;
use serde::Deserialize;
use view::document::Cost;
use view::measured::Measured;

/// Maximum size of a file to read, bytes.
const LARGEST: u64 = 1 << 30;

/// The parts of the output of `tally cost --json` that a report shows.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct MeasuredCost {
    of: String,
    level: String,
    server: String,
    load: String,
    unit: String,
    cpu: Option<Figure>,
    placebo: Placebo,
    host: Host,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
struct Figure {
    percent: f64,
    half_width: f64,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Placebo {
    cpu: Option<Figure>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
struct Host {
    processor: String,
}

impl MeasuredCost {
    /// Reads this file. The error names it and says what is expected.
    pub fn read(path: &Path) -> Result<MeasuredCost, Error> {
        let named = |why: String| Error::Failed(format!("{}: {why}", path.display()));
        let text = files::read_named(path, LARGEST).map_err(|error| named(error.to_string()))?;
        let result: MeasuredCost = serde_json::from_slice(&text).map_err(|error| {
            named(format!("not the output of `tally cost --json`, which --cost requires ({error})"))
        })?;
        match (result.of.as_str(), result.cpu) {
            ("level", Some(_)) => Ok(result),
            ("level", None) => {
                Err(named("this run of `tally cost` was too short for a figure".to_string()))
            }
            (of, _) => Err(named(format!(
                "this is the cost of {of}; the report requires the cost of the level"
            ))),
        }
    }

    /// The overhead as a share of CPU time, %.
    pub(crate) fn cost(&self) -> Option<Cost> {
        let Figure { percent, half_width } = self.cpu?;
        Some(Cost { percent, half_width })
    }

    /// The overhead as a sentence, which says if the processor or the level differ from those here.
    pub(crate) fn words(&self, processor: Option<&str>, level: Level) -> Option<String> {
        let figure = |f: Figure| Measured::new(f.percent, f.half_width).change(2);
        let placebo =
            self.placebo.cpu.map_or(String::new(), |cpu| format!("A/A control {}, ", figure(cpu)));
        let mut text = format!(
            "measured by `tally cost`: level {} takes {} of the CPU time of a {} ({placebo}95 % \
             confidence intervals; {}; {})",
            self.level,
            figure(self.cpu?),
            self.unit,
            self.load,
            self.server
        );
        if let Some(here) = processor.filter(|here| *here != self.host.processor) {
            text.push_str(&format!(
                "; but it was measured on a {}, and this machine has a {here}",
                self.host.processor
            ));
        }
        let level = level.to_string();
        if level != self.level {
            text.push_str(&format!("; but the level at the end was {level}"));
        }
        Some(text)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub const RESULT: &str = r#"{"of": "level", "level": "waits", "server": "PostgreSQL 15.20",
        "load": "TPC-B, 2 clients", "unit": "transaction", "margin_percent": 0.3,
        "cpu": {"percent": 0.41, "half_width": 0.12, "rounds": 500},
        "placebo": {"cpu": {"percent": -0.02, "half_width": 0.11}, "throughput": null},
        "host": {"processor": "X9", "processors": 2}}"#;

    pub fn result(text: &str) -> Result<MeasuredCost, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cost.json");
        std::fs::write(&path, text).unwrap();
        MeasuredCost::read(&path)
    }

    #[test]
    fn a_file_that_is_no_result_is_refused_by_name() {
        let why = |text: &str| result(text).unwrap_err().to_string();
        assert!(why("{}").contains("tally cost --json"), "{}", why("{}"));
        let statements = RESULT.replace("\"of\": \"level\"", "\"of\": \"statements\"");
        assert!(why(&statements).contains("cost of statements"), "{}", why(&statements));
        let short = RESULT.replace(
            "\"cpu\": {\"percent\": 0.41, \"half_width\": 0.12, \"rounds\": 500}",
            "\"cpu\": null",
        );
        assert!(why(&short).contains("too short"), "{}", why(&short));
        let none = MeasuredCost::read(Path::new("/nowhere/cost.json")).unwrap_err().to_string();
        assert!(none.contains("/nowhere/cost.json"), "{none}");
    }
}
