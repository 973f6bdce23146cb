// SPDX-License-Identifier: PostgreSQL
//! A Java client of the server on the server's time axis: how long its virtual machine stopped all threads, and
//! whether the server was waiting for commands meanwhile.

use stats::{likeness, Likeness};
use view::document::{Chart, Finding, Series, Unit, Weight};
use view::units::{percent, two};

use super::charts::{line, lines, values};
use super::material::{Client, Material};
use super::point::{Figures, Point};

/// The section that shows it.
pub const SECTION: &str = "client";
/// The account of a virtual machine that has stopped all threads to collect garbage (client/java).
pub const COLLECTION: &str = "garbage collection";
const OTHER: &str = "other safepoint";
/// Correlations that chance produces at least this often are not reported.
const CHANCE: f64 = 0.05;
/// The share of a point that the client's intervals must cover for it to be compared.
const COVERED: f64 = 0.5;
/// Pauses that take less than this share of the time are not worth a warning.
const WORTH: f64 = 0.01;

/// An activity's share of the time at each point of the server, if the client's intervals cover half of the
/// point.
fn share(client: &Client, points: &[Point], activity: &str) -> Vec<Option<f64>> {
    let of = |figures: &Figures| -> f64 {
        figures
            .activities
            .iter()
            .filter(|(name, _)| &**name == activity)
            .map(|(_, seconds)| seconds)
            .sum()
    };
    let at = |point: &Point| {
        let (mut covered, mut inside) = (0.0, 0.0);
        for own in &client.points {
            let end = (point.start + point.seconds).min(own.start + own.seconds);
            let common = end - point.start.max(own.start);
            if let Some(figures) = own.figures.as_ref().filter(|_| common > 0.0) {
                covered += common;
                inside += of(figures) / own.seconds * common;
            }
        }
        (point.figures.is_some() && covered > COVERED * point.seconds).then(|| inside / covered)
    };
    points.iter().map(at).collect()
}

/// The server and the client on one axis.
pub fn chart(material: &Material) -> Option<Chart> {
    let client = material.client.as_ref()?;
    let read = values(&material.points, |f, seconds| Some(f.read_seconds / seconds));
    Some(Chart {
        note: Some(format!(
            "For {} ({}): share of the time for which its virtual machine stopped all threads. For \
             the server: average number of sessions that wait for the next command.",
            client.program, client.java
        )),
        series: vec![
            Series { class: Some("client"), ..line("server: reading commands", read) },
            line("client: garbage collection", share(client, &material.points, COLLECTION)),
            line("client: other safepoints", share(client, &material.points, OTHER)),
        ],
        ..lines(
            "client",
            SECTION,
            "Pauses of the client, and waits of the server for commands",
            Unit::Sessions,
        )
    })
}

/// Reports how far the server's waits for commands coincide with the client's garbage collection.
pub fn finding(material: &Material) -> Option<Finding> {
    let client = material.client.as_ref()?;
    let collecting = share(client, &material.points, COLLECTION);
    let read = values(&material.points, |f, seconds| Some(f.read_seconds / seconds));
    let both: Vec<(f64, f64)> =
        collecting.iter().zip(&read).filter_map(|(c, r)| Some(((*c)?, (*r)?))).collect();
    if both.is_empty() {
        return None;
    }
    let (pauses, reading): (Vec<f64>, Vec<f64>) = both.into_iter().unzip();
    let mean = average(&pauses);
    let most = pauses.iter().copied().fold(0.0, f64::max);
    let mut text = format!(
        "The client ({}) paused for garbage collection for {} % of the time, at most {} %",
        client.program,
        percent(mean),
        percent(most)
    );
    let alike = likeness(&pauses, &reading);
    match alike {
        Some(it) if it.r > 0.0 && it.chance <= CHANCE => {
            text.push_str(&with(&pauses, &reading, it))
        }
        _ => text.push_str(". It is inconclusive whether the server waits for it then"),
    }
    let weight = match alike {
        Some(it) if it.r > 0.0 && it.chance <= CHANCE && mean >= WORTH => Weight::Warning,
        _ => Weight::Note,
    };
    Some(Finding { section: SECTION, weight, text: text + ".", remedy: None, details: Vec::new() })
}

/// The reading time while the client collected much, and little.
fn with(pauses: &[f64], reading: &[f64], likeness: Likeness) -> String {
    let mean = average(pauses);
    let of = |much: bool| {
        let chosen: Vec<f64> = pauses
            .iter()
            .zip(reading)
            .filter(|(pause, _)| (**pause > mean) == much)
            .map(|(_, read)| *read)
            .collect();
        average(&chosen)
    };
    format!(
        ". Meanwhile the server waits for commands: {} sessions on average while the client collects more than \
         that, otherwise {} (correlation {:.2}; {} % of time-shifted series reach it by chance)",
        two(of(true)),
        two(of(false)),
        likeness.r,
        percent(likeness.chance)
    )
}

fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    /// The sample with a client that collects garbage at these points.
    fn material(collecting: impl Fn(usize) -> bool, waits_for_it: bool) -> Material {
        let mut material = sample::material();
        let mut points = Vec::new();
        for (at, point) in material.points.iter_mut().enumerate() {
            let Some(figures) = &mut point.figures else {
                points.push(point.clone());
                continue;
            };
            let share = if collecting(at) { 0.6 } else { 0.05 };
            figures.read_seconds =
                (1.0 + if waits_for_it { 2.0 * share } else { 0.0 }) * point.seconds;
            let activities = vec![(COLLECTION.into(), share * point.seconds)];
            let figures = Some(Figures { activities, ..Figures::default() });
            points.push(Point { figures, ..point.clone() });
        }
        let client = Client { program: "shop.jar".into(), java: "Java 17".into(), points };
        material.client = Some(client);
        material
    }

    #[test]
    fn a_server_that_waits_for_a_client_that_collects_garbage_is_a_warning() {
        let material = material(|at| at * at % 11 < 3, true);
        let found = finding(&material).unwrap();
        assert_eq!(found.weight, Weight::Warning);
        assert!(
            found.text.contains("at most 60.0 %") && found.text.contains("correlation 1.00"),
            "{}",
            found.text
        );
        let chart = chart(&material).unwrap();
        assert_eq!(chart.series.len(), 3);
        let much = |value: &Option<f64>| value.is_some_and(|value| (value - 0.6).abs() < 1e-9);
        assert!(chart.series[1].values.iter().any(much));
    }

    #[test]
    fn intervals_of_the_client_count_for_the_points_that_they_overlap_with() {
        let point = |start: f64, seconds: f64, collecting: f64| {
            let activities = vec![(COLLECTION.into(), collecting)];
            Point { start, seconds, figures: Some(Figures { activities, ..Figures::default() }) }
        };
        let points = vec![point(0.0, 1.0, 0.0), point(1.0, 1.0, 0.0), point(2.0, 1.0, 0.0)];
        let client = Client {
            program: String::new(),
            java: String::new(),
            points: vec![point(0.5, 1.0, 1.0), point(1.5, 0.75, 0.0)],
        };
        // Half of the first point is not more than half; a quarter of the last one is too little.
        assert_eq!(share(&client, &points, COLLECTION), [None, Some(0.5), None]);
    }

    #[test]
    fn without_a_common_course_it_is_inconclusive() {
        let found = finding(&material(|at| at * at % 11 < 3, false)).unwrap();
        assert_eq!(found.weight, Weight::Note);
        assert!(found.text.contains("inconclusive"), "{}", found.text);
        assert_eq!(finding(&sample::material()), None);
    }
}
