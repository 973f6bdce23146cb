// SPDX-License-Identifier: PostgreSQL
//! What the telling cost: as `tally cost` has measured it, where its result is given; else
//! reckoned from how often the clock was read and what a reading takes.

use std::path::Path;

use segment::Interval;
use serde::Deserialize;
use view::document::{Cost, How};

use super::material::{Material, Setting};
use error::Error;
use view::units::{count, duration};

/// Where a recorder notes what a reading of the clock takes on its machine, ns: group and name.
pub const READING: (&str, &str) = ("recorder", "clock reading");
/// Where it notes what the processor calls itself.
const PROCESSOR: (&str, &str) = ("machine", "processor");
/// Readings of the clock for each thing that is timed: when it begins and when it ends.
const READINGS: f64 = 2.0;

/// A result of `tally cost --json`, as far as it is told.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Measured {
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

impl Measured {
    /// Read it.
    pub fn read(path: &Path) -> Result<Measured, Error> {
        let named = |why: String| Error::Failed(format!("{}: {why}", path.display()));
        let text = std::fs::read(path).map_err(|error| named(error.to_string()))?;
        let result: Measured = serde_json::from_slice(&text).map_err(|error| {
            named(format!("not the output of `tally cost --json` ({error}); --cost needs that"))
        })?;
        match (result.of.as_str(), result.cpu) {
            ("level", Some(_)) => Ok(result),
            ("level", None) => {
                Err(named("this run of `tally cost` was too short for a figure".to_string()))
            }
            (of, _) => Err(named(format!(
                "this is the cost of {of}; the report needs that of the \
                                          level"
            ))),
        }
    }

    fn words(&self, material: &Material) -> Option<String> {
        let said = |it: Figure| format!("{:+.2} % ± {:.2}", it.percent, it.half_width);
        let placebo =
            self.placebo.cpu.map_or(String::new(), |it| format!("placebo {}, ", said(it)));
        let mut text = format!(
            "measured by `tally cost`: level {} takes {} of the CPU time of a {} ({placebo}95 % \
             confidence intervals; {}; {})",
            self.level,
            said(self.cpu?),
            self.unit,
            self.load,
            self.server
        );
        let here = setting(&material.settings, PROCESSOR);
        if let Some(here) = here.filter(|here| *here != self.host.processor) {
            text.push_str(&format!("; but on a {}, and this is a {here}", self.host.processor));
        }
        let other = material.whole.level.to_string();
        if other != self.level {
            text.push_str(&format!("; but the level at the end was {other}"));
        }
        Some(text)
    }
}

/// How often something was timed: waits that ended, locks that were held, calls of functions.
fn timed(interval: &Interval) -> [u64; 3] {
    let waits = interval.waits.iter().map(|row| row.timing.count);
    let locks = interval.lwlocks.iter().map(|row| row.held.count);
    let calls = interval.functions.iter().map(|row| row.inclusive.count);
    [waits.sum(), locks.sum(), calls.sum()]
}

fn setting<'s>(settings: &'s [Setting], (group, name): (&str, &str)) -> Option<&'s str> {
    let found = settings.iter().rfind(|it| it.group == group && it.name == name)?;
    Some(found.value.as_str())
}

/// What a reading of the clock takes on the machine of a recording, seconds.
pub fn reading(settings: &[Setting]) -> Option<f64> {
    let ns = setting(settings, READING)?.split(' ').next()?.parse::<f64>().ok()?;
    (ns.is_finite() && ns >= 0.0).then_some(ns * 1e-9)
}

/// Seconds that the readings of the clock took, and processor time of all sessions.
fn reckoned(material: &Material) -> Option<(f64, f64)> {
    let all: u64 = timed(&material.whole).iter().sum();
    let took = all as f64 * READINGS * material.reading_seconds?;
    let cpu = material.whole.activities_where(|account| &*account.activity == "cpu");
    let cpu: f64 = cpu.iter().map(|row| row.timing.seconds).sum();
    (cpu > 0.0).then_some((took, cpu))
}

/// What is known of the cost, as figures.
pub fn cost(material: &Material) -> Option<Cost> {
    if let Some(Figure { percent, half_width }) = material.cost.as_ref().and_then(|it| it.cpu) {
        return Some(Cost { how: How::Measured, percent, half_width: Some(half_width) });
    }
    let (took, cpu) = reckoned(material)?;
    Some(Cost { how: How::Estimated, percent: took / cpu * 100.0, half_width: None })
}

/// The same in words.
pub fn words(material: &Material) -> String {
    if let Some(text) = material.cost.as_ref().and_then(|it| it.words(material)) {
        return text;
    }
    let Some(((took, cpu), reading)) = reckoned(material).zip(material.reading_seconds) else {
        return format!("unknown; measure it with `tally cost`: {}", material.whole.server.host);
    };
    let [waits, locks, calls] = timed(&material.whole).map(|n| count(n as f64));
    format!(
        "estimated from {waits} waits, {locks} locks and {calls} calls, two clock readings of {} \
         each: at least {}, {:.3} % of CPU time. Measure it with `tally cost` (--cost)",
        duration(reading),
        duration(took),
        took / cpu * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    const RESULT: &str = r#"{"of": "level", "level": "waits", "server": "PostgreSQL 15.20",
        "load": "TPC-B, 2 clients", "unit": "transaction", "margin_percent": 0.3,
        "cpu": {"percent": 0.41, "half_width": 0.12, "rounds": 500},
        "placebo": {"cpu": {"percent": -0.02, "half_width": 0.11}, "throughput": null},
        "host": {"processor": "X9", "processors": 2}}"#;

    fn result(text: &str) -> Result<Measured, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cost.json");
        std::fs::write(&path, text).unwrap();
        Measured::read(&path)
    }

    #[test]
    fn a_measured_cost_is_told_before_a_reckoned_one() {
        let mut material = sample::material();
        material.reading_seconds = Some(15e-9);
        let interval = &material.whole;
        let waits: u64 = interval.waits.iter().map(|row| row.timing.count).sum();
        let locks: u64 = interval.lwlocks.iter().map(|row| row.held.count).sum();
        let calls: u64 = interval.functions.iter().map(|row| row.inclusive.count).sum();
        let cpu = interval.ledger.iter().filter(|row| &*row.activity == "cpu");
        let cpu: f64 = cpu.map(|row| row.timing.seconds).sum();
        let reckoned = cost(&material).unwrap();
        assert_eq!((reckoned.how, reckoned.half_width), (How::Estimated, None));
        let expected = (waits + locks + calls) as f64 * 30e-9 / cpu * 100.0;
        assert!((reckoned.percent / expected - 1.0).abs() < 1e-9, "{reckoned:?} {expected}");
        let text = words(&material);
        assert!(text.starts_with("estimated from") && text.contains("15.0 ns"), "{text}");
        material.whole.level = segment::Level::Waits;
        material.cost = Some(result(RESULT).unwrap());
        let measured = Cost { how: How::Measured, percent: 0.41, half_width: Some(0.12) };
        assert_eq!(cost(&material), Some(measured));
        let text = words(&material);
        assert!(text.contains("waits takes +0.41 % ± 0.12 of") && !text.contains("but"), "{text}");
        let processor = Setting {
            group: "machine".into(),
            name: "processor".into(),
            value: "X10".into(),
            changed: None,
        };
        material.settings.push(processor);
        assert!(words(&material).contains("on a X9, and this is a X10"), "{}", words(&material));
    }

    #[test]
    fn nothing_is_reckoned_where_the_clock_is_not_known() {
        let mut material = sample::material();
        material.reading_seconds = None;
        assert_eq!(cost(&material), None);
        assert!(words(&material).starts_with("unknown; measure"), "{}", words(&material));
        let row = |value: &str| Setting {
            group: READING.0.into(),
            name: READING.1.into(),
            value: value.into(),
            changed: None,
        };
        assert_eq!(reading(&[row("13.5 ns")]), Some(13.5e-9));
        assert_eq!((reading(&[row("fast")]), reading(&[])), (None, None));
    }

    #[test]
    fn what_is_no_result_is_said() {
        let why = |text: &str| result(text).unwrap_err().to_string();
        assert!(why("{}").contains("tally cost --json"), "{}", why("{}"));
        let statements = RESULT.replace("\"of\": \"level\"", "\"of\": \"statements\"");
        assert!(why(&statements).contains("cost of statements"), "{}", why(&statements));
        let short = RESULT.replace(
            "\"cpu\": {\"percent\": 0.41, \"half_width\": 0.12, \"rounds\": 500}",
            "\"cpu\": null",
        );
        assert!(why(&short).contains("too short"), "{}", why(&short));
        let none = Measured::read(Path::new("/nowhere/cost.json")).unwrap_err().to_string();
        assert!(none.contains("/nowhere/cost.json"), "{none}");
    }
}
