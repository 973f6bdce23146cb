// SPDX-License-Identifier: PostgreSQL
//! The facts at the head of a report: what was measured, in words.

use jiff::tz::TimeZone;

use super::cost;
use super::material::Material;
use view::document::{span as words, time, Fact};
use view::units::{count, duration, whole};

/// All facts, in order.
pub fn facts(material: &Material, zone: &TimeZone) -> Vec<Fact> {
    let interval = &material.whole;
    let fact = |name: &'static str, text: String| Fact { name, text };
    let mut facts = vec![fact("Server", server(material, zone))];
    let given = |name: &'static str| {
        material.measured.facts.iter().filter(move |fact| fact.name == name).cloned()
    };
    facts.extend(given("Machine"));
    facts.push(fact("Time", span(material, zone)));
    facts.extend(given("Level"));
    facts.push(fact("Cost", cost::words(material)));
    facts.push(fact("Exactness", exactness(material)));
    if !material.gaps.is_empty() {
        facts.push(fact("Gaps", gaps(material)));
    }
    facts.push(fact(
        "Clock",
        format!("{}, {:.3} GHz", interval.clock.kind, interval.clock.ticks_per_second * 1e-9),
    ));
    facts.extend(
        material.measured.facts.iter().filter(|f| !["Machine", "Level"].contains(&f.name)).cloned(),
    );
    for run in &material.runs {
        let end = match (run.to, run.exit_code) {
            (None, _) => "still running".to_string(),
            (Some(_), Some(code)) => format!("exit status {code}"),
            (Some(_), None) => "ended by a signal".to_string(),
        };
        facts.push(fact("Command", format!("{} ({end})", run.command)));
    }
    facts
}

fn server(material: &Material, zone: &TimeZone) -> String {
    let server = &material.whole.server;
    let port = server.port.map_or(String::new(), |port| format!(", port {port}"));
    format!(
        "{} in {}{port}, measured by {} since {}",
        server.name,
        server.host,
        server.producer,
        time(server.created, zone)
    )
}

fn span(material: &Material, zone: &TimeZone) -> String {
    format!(
        "{}: {} in {} intervals of at least {}",
        words(material.measured.from, material.measured.to, zone),
        duration(material.whole.interval_seconds),
        whole(material.measured.intervals),
        duration(material.measured.interval_seconds)
    )
}

fn exactness(material: &Material) -> String {
    let interval = &material.whole;
    if interval.exact {
        return "exact: nothing is missing".to_string();
    }
    if let Some(sampling) = &interval.sampling {
        let estimates = format!("estimates from {} samples/s", count(sampling.per_second));
        // No sample covers the end of the interval.
        return match sampling.sampled_seconds < 0.9 * interval.interval_seconds {
            true => format!(
                "{estimates} in {} of {}; the rest is exact",
                duration(sampling.sampled_seconds),
                duration(interval.interval_seconds)
            ),
            false => format!("{estimates} of the server"),
        };
    }
    let off = interval.uninstrumented_seconds;
    if off > 0.0 && interval.overflow_in_interval.is_zero() && interval.torn_sessions == 0 {
        return format!(
            "partial: the level was off for {} of the sessions' time; rates and averages cover \
             the rest",
            duration(off)
        );
    }
    "not exact: see the findings for what is missing".to_string()
}

fn gaps(material: &Material) -> String {
    let lost: f64 = material.gaps.iter().map(|gap| gap.to - gap.from).sum();
    let number = match material.gaps.len() {
        1 => "one".to_string(),
        n => n.to_string(),
    };
    format!("{number}, {} in total; not interpolated", duration(lost))
}
