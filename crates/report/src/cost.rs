// SPDX-License-Identifier: PostgreSQL
//! What the measuring cost: the figure of `tally cost` where its result was given, else an
//! estimate from how often the clock was read and how long a reading takes.

use segment::Interval;
use view::document::{Cost, How};
use view::units::{count, duration};

use super::material::{Material, Setting};
use super::measured_cost::MeasuredCost;

/// Group and name of the setting in which a recording has the length of a clock reading, ns.
pub const READING: (&str, &str) = ("recorder", "clock reading");
/// Group and name of the setting that names the processor.
const PROCESSOR: (&str, &str) = ("machine", "processor");
/// Clock readings per timed wait, lock or call: one at each end.
const READINGS: f64 = 2.0;

/// How many waits, locks held and function calls were timed.
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

/// How long a clock reading takes on the recorded machine, seconds.
pub fn reading(settings: &[Setting]) -> Option<f64> {
    let ns = setting(settings, READING)?.split(' ').next()?.parse::<f64>().ok()?;
    (ns.is_finite() && ns >= 0.0).then_some(ns * 1e-9)
}

/// Seconds that clock readings took, and the CPU time of all sessions.
fn estimated(material: &Material) -> Option<(f64, f64)> {
    let all: u64 = timed(&material.whole).iter().sum();
    let took = all as f64 * READINGS * material.reading_seconds?;
    let cpu = material.whole.activities_where(|account| &*account.activity == "cpu");
    let cpu: f64 = cpu.iter().map(|row| row.timing.seconds).sum();
    (cpu > 0.0).then_some((took, cpu))
}

/// The cost as a share of CPU time: measured, else estimated; `None` if neither is known.
pub fn cost(material: &Material) -> Option<Cost> {
    if let Some(cost) = material.cost.as_ref().and_then(MeasuredCost::cost) {
        return Some(cost);
    }
    let (took, cpu) = estimated(material)?;
    Some(Cost { how: How::Estimated, percent: took / cpu * 100.0, half_width: None })
}

/// The cost as a sentence.
pub fn words(material: &Material) -> String {
    let processor = setting(&material.settings, PROCESSOR);
    let measured = material.cost.as_ref().and_then(|it| it.words(processor, material.whole.level));
    if let Some(text) = measured {
        return text;
    }
    let Some(((took, cpu), reading)) = estimated(material).zip(material.reading_seconds) else {
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
    use crate::measured_cost::tests::{result, RESULT};
    use crate::sample;

    #[test]
    fn a_measured_cost_takes_precedence_over_an_estimate() {
        let mut material = sample::material();
        material.reading_seconds = Some(15e-9);
        let interval = &material.whole;
        let waits: u64 = interval.waits.iter().map(|row| row.timing.count).sum();
        let locks: u64 = interval.lwlocks.iter().map(|row| row.held.count).sum();
        let calls: u64 = interval.functions.iter().map(|row| row.inclusive.count).sum();
        let cpu = interval.ledger.iter().filter(|row| &*row.activity == "cpu");
        let cpu: f64 = cpu.map(|row| row.timing.seconds).sum();
        let estimated = cost(&material).unwrap();
        assert_eq!((estimated.how, estimated.half_width), (How::Estimated, None));
        let expected = (waits + locks + calls) as f64 * 30e-9 / cpu * 100.0;
        assert!((estimated.percent / expected - 1.0).abs() < 1e-9, "{estimated:?} {expected}");
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
    fn there_is_no_estimate_without_the_length_of_a_clock_reading() {
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
}
