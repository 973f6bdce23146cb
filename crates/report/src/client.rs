// SPDX-License-Identifier: PostgreSQL
//! A Java client of the server on the server's time axis: how long its virtual machine stopped all threads,
//! and how long sessions of the server waited for their clients meanwhile; and its connections next to the
//! server's sessions.

use segment::calls::SampledNumber;
use stats::{explained, likeness, Explained, Likeness};
use view::document::{Chart, Finding, Series, Unit, Weight};
use view::measured::Measured;
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

/// Seconds of an activity in each interval of the client, by its accounts.
fn accounts(client: &Client, activity: &str) -> Vec<Option<f64>> {
    let of = |figures: &Figures| -> f64 {
        let all = figures.activities.iter().filter(|(name, _)| &**name == activity);
        all.map(|(_, seconds)| seconds).sum()
    };
    client.points.iter().map(|point| point.figures.as_ref().map(of)).collect()
}

/// Seconds of the pauses for garbage collection in each interval of the client.
///
/// A pause counts when it ends. If it is longer than the interval in which it ended, its beginning
/// belongs to earlier intervals.
fn collecting(client: &Client) -> Vec<Option<f64>> {
    let whole = |point: &Point| point.figures.as_ref()?.collection_stop_seconds;
    if !client.points.iter().any(|point| whole(point).is_some()) {
        return accounts(client, COLLECTION);
    }
    let mut before = 0.0;
    let mut seconds: Vec<Option<f64>> = client
        .points
        .iter()
        .rev()
        .map(|point| {
            if point.figures.is_none() {
                before = 0.0;
                return None;
            }
            let all = before + whole(point).unwrap_or(0.0);
            let inside = all.min(point.seconds);
            before = all - inside;
            Some(inside)
        })
        .collect();
    seconds.reverse();
    seconds
}

/// The share of each point of the server that the client spent so, given the seconds in each of the client's
/// intervals; `None` unless these cover half of the point.
fn share(client: &Client, points: &[Point], seconds: &[Option<f64>]) -> Vec<Option<f64>> {
    let at = |point: &Point| {
        let (mut covered, mut inside) = (0.0, 0.0);
        for (own, seconds) in client.points.iter().zip(seconds) {
            let end = (point.start + point.seconds).min(own.start + own.seconds);
            let common = end - point.start.max(own.start);
            if let Some(seconds) = seconds.filter(|_| common > 0.0) {
                covered += common;
                inside += seconds / own.seconds * common;
            }
        }
        (point.figures.is_some() && covered > COVERED * point.seconds).then(|| inside / covered)
    };
    points.iter().map(at).collect()
}

/// Average number of sessions that wait for their clients, at each point.
fn reading(points: &[Point]) -> Vec<Option<f64>> {
    values(points, |figures, seconds| Some(figures.client_read_seconds / seconds))
}

/// The client, and the server, on one time axis.
pub fn charts(material: &Material) -> Vec<Chart> {
    let Some(client) = material.client.as_ref() else { return Vec::new() };
    let points = &material.points;
    let mut charts = vec![
        Chart {
            note: Some(format!(
                "Share of time for which the virtual machine of {} ({}) stopped all threads.",
                client.program, client.java
            )),
            series: vec![
                line("garbage collection", share(client, points, &collecting(client))),
                line("other safepoints", share(client, points, &accounts(client, OTHER))),
            ],
            ..lines("client", SECTION, "Pauses of the client", Unit::Share)
        },
        Chart {
            note: Some(
                "Average number of sessions that wait for their clients, including waits in progress."
                    .to_string(),
            ),
            series: vec![Series {
                class: Some("client"),
                ..line("waiting for a client", reading(points))
            }],
            ..lines(
                "client_reads",
                SECTION,
                "Sessions of the server that wait for their clients",
                Unit::Sessions,
            )
        },
    ];
    charts.extend(connections(client, points));
    charts
}

/// The means of a sampled number at each point of the server.
fn means(
    client: &Client,
    points: &[Point],
    of: fn(&Figures) -> Option<SampledNumber>,
) -> Vec<Option<f64>> {
    let seconds: Vec<Option<f64>> = client
        .points
        .iter()
        .map(|point| Some(of(point.figures.as_ref()?)?.mean * point.seconds))
        .collect();
    share(client, points, &seconds)
}

/// Sessions of the server's clients.
fn sessions(figures: &Figures) -> Option<f64> {
    let states = &figures.sessions;
    (!states.is_empty()).then(|| states.iter().map(|(_, sessions)| sessions).sum())
}

/// The client's connections beside the server's sessions, if they were counted.
fn connections(client: &Client, points: &[Point]) -> Option<Chart> {
    let open = means(client, points, |figures| figures.open_connections);
    open.iter().flatten().next()?;
    let borrowed = means(client, points, |figures| figures.borrowed_connections);
    Some(Chart {
        note: Some(format!(
            "Each open connection of {} is a session of the server.",
            client.program
        )),
        series: vec![
            line("sessions of the server", values(points, |figures, _| sessions(figures))),
            line("connections of the client", open),
            line("borrowed from its pools", borrowed),
        ],
        ..lines(
            "client_connections",
            SECTION,
            "Connections of the client and sessions of the server",
            Unit::Number,
        )
    })
}

/// Says how many of the server's sessions are the client's, and how many of these it used at once.
pub fn pool_size(material: &Material) -> Option<Finding> {
    let client = material.client.as_ref()?;
    let open = means(client, &material.points, |figures| figures.open_connections);
    let open: Vec<f64> = open.into_iter().flatten().collect();
    if open.is_empty() {
        return None;
    }
    let all = values(&material.points, |figures, _| sessions(figures));
    let all: Vec<f64> = all.into_iter().flatten().collect();
    let of_all = if all.is_empty() {
        String::new()
    } else {
        format!(" of the server's {} sessions", one_decimal(average(&all)))
    };
    let most = client
        .points
        .iter()
        .filter_map(|point| point.figures.as_ref()?.borrowed_connections)
        .map(|borrowed| borrowed.max)
        .max()
        .filter(|most| *most > 0);
    let at_once = most.map_or(String::new(), |most| {
        format!(", and had at most {most} of them borrowed from its pools at once")
    });
    Some(Finding {
        section: SECTION,
        weight: Weight::Note,
        text: format!(
            "The client ({}) held {}{of_all} on average{at_once}.",
            client.program,
            one_decimal(average(&open))
        ),
        remedy: None,
        details: Vec::new(),
        statement: None,
        times: Vec::new(),
    })
}

fn one_decimal(number: f64) -> String {
    format!("{number:.1}")
}

/// Reports how much of the time for which the server waits for its clients the client's garbage collections explain.
pub fn finding(material: &Material) -> Option<Finding> {
    let client = material.client.as_ref()?;
    let collecting = share(client, &material.points, &collecting(client));
    let both: Vec<(f64, f64)> = collecting
        .iter()
        .zip(reading(&material.points))
        .filter_map(|(pauses, reading)| Some(((*pauses)?, reading?)))
        .collect();
    if both.is_empty() {
        return None;
    }
    let (pauses, reading): (Vec<f64>, Vec<f64>) = both.into_iter().unzip();
    let mean = average(&pauses);
    let most = pauses.iter().copied().fold(0.0, f64::max);
    let text = format!(
        "The client ({}) paused for garbage collection for {} % of the time, at most {} %",
        client.program,
        percent(mean),
        percent(most)
    );
    let (weight, rest) = match cause(&pauses, &reading) {
        _ if mean < WORTH => (Weight::Note, ": too short to matter to the server".to_string()),
        Some((alike, part)) => (Weight::Warning, explains(&reading, alike, part)),
        None => {
            let text = ". It is inconclusive whether the server waits for it then";
            (Weight::Note, text.to_string())
        }
    };
    let text = format!("{text}{rest}.");
    Some(Finding {
        section: SECTION,
        weight,
        text,
        remedy: None,
        details: Vec::new(),
        statement: None,
        times: Vec::new(),
    })
}

/// How closely the server's waits follow the pauses, and how much of them the pauses explain; `None` if it may be chance.
fn cause(pauses: &[f64], reading: &[f64]) -> Option<(Likeness, Explained)> {
    let alike =
        likeness(pauses, reading).filter(|found| found.r > 0.0 && found.chance <= CHANCE)?;
    let part = explained(pauses, reading).filter(|found| found.share > found.half_width)?;
    Some((alike, part))
}

fn explains(reading: &[f64], alike: Likeness, part: Explained) -> String {
    format!(
        ". The pauses explain {} of the time for which the server's sessions wait for their clients, {} \
         sessions on average (correlation {}; {} % of time-shifted series reach it by chance)",
        Measured::new(part.share.min(1.0), part.half_width).share(),
        two(average(reading)),
        two(alike.r),
        percent(alike.chance)
    )
}

fn average(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    /// A load in virtual time: a client's threads wait for the server, then think; they stop while their
    /// virtual machine pauses.
    struct Simulated {
        /// Seconds of the pauses that ended in each interval.
        stopped: Vec<f64>,
        /// Seconds of the pauses in each interval according to the accounts, without those that a reader took
        /// for the application's time.
        accounts: Vec<f64>,
        /// Seconds of waits for commands in each interval.
        live: Vec<f64>,
        /// The same, if each wait is counted when it ends.
        ended: Vec<f64>,
        /// The share of the waits that was within a pause.
        within: f64,
    }

    const INTERVALS: usize = 120;
    const LENGTH: f64 = 0.2;
    const THREADS: usize = 6;

    /// A number from 0 to 1.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (self.0 >> 11) as f64 / (1u64 << 53) as f64
        }
    }

    fn simulated(seed: u64, pauses: bool) -> Simulated {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let end = INTERVALS as f64 * LENGTH;
        // Bursts of collections, as of a reader that allocates: from 30 ms to 0.8 s, with little in between.
        let mut stops: Vec<(f64, f64)> = Vec::new();
        let mut now = random.next();
        while pauses && now < end {
            for _ in 0..2 + (random.next() * 4.0) as usize {
                let length = 0.03 + 0.77 * random.next().powi(2);
                stops.push((now, (now + length).min(end)));
                now += length + 0.05 * random.next();
            }
            now += 0.5 + 3.0 * random.next();
        }
        stops.retain(|stop| stop.0 < end);
        // When a thread that would go on at this time, does.
        let resumes = |at: f64| {
            stops.iter().find(|stop| stop.0 <= at && at < stop.1).map_or(at, |stop| stop.1)
        };
        let mut result = Simulated {
            stopped: vec![0.0; INTERVALS],
            accounts: vec![0.0; INTERVALS],
            live: vec![0.0; INTERVALS],
            ended: vec![0.0; INTERVALS],
            within: 0.0,
        };
        let place = |at: f64| ((at / LENGTH) as usize).min(INTERVALS - 1);
        for &(from, to) in &stops {
            result.stopped[place(to)] += to - from;
            result.accounts[place(to)] += to - from.max(place(to) as f64 * LENGTH);
        }
        for _ in 0..THREADS {
            let mut now = random.next() * 0.05;
            while now < end {
                let answered = now + 0.005 + 0.03 * random.next();
                let next = resumes(resumes(answered) + 0.001 + 0.004 * random.next());
                let (from, to) = (answered.min(end), next.min(end));
                for at in place(from)..=place(to) {
                    let (first, last) = (at as f64 * LENGTH, (at + 1) as f64 * LENGTH);
                    result.live[at] += (to.min(last) - from.max(first)).max(0.0);
                }
                result.ended[place(to)] += to - from;
                let inside = |stop: &(f64, f64)| (stop.1.min(to) - stop.0.max(from)).max(0.0);
                result.within += stops.iter().map(inside).sum::<f64>();
                now = next;
            }
        }
        result.within /= result.live.iter().sum::<f64>();
        result
    }

    /// The recordings of a server with the waits of one simulation, and of a client with the pauses of another.
    fn recorded(server: &Simulated, client: &Simulated, live: bool) -> Material {
        let point = |at: usize, figures: Figures| Point {
            start: sample::FROM + at as f64 * LENGTH,
            seconds: LENGTH,
            figures: Some(figures),
        };
        let read = |at: usize| if live { server.live[at] } else { server.ended[at] };
        let of_server =
            |at: usize| point(at, Figures { client_read_seconds: read(at), ..Figures::default() });
        let of_client = |at: usize| {
            let activities = vec![(COLLECTION.into(), client.accounts[at])];
            let whole = Some(client.stopped[at]);
            point(at, Figures { activities, collection_stop_seconds: whole, ..Figures::default() })
        };
        Material {
            points: (0..INTERVALS).map(of_server).collect(),
            client: Some(Client {
                program: "shop.jar".into(),
                java: "Java 17".into(),
                points: (0..INTERVALS).map(of_client).collect(),
            }),
            ..sample::material()
        }
    }

    #[test]
    fn a_server_that_waits_for_a_client_that_collects_garbage_is_named_with_the_share_in_ten_of_ten(
    ) {
        for seed in 1..=10 {
            let load = simulated(seed, true);
            let material = recorded(&load, &load, true);
            let found = finding(&material).unwrap();
            assert_eq!(found.weight, Weight::Warning, "seed {seed}: {}", found.text);
            let pauses = share(
                material.client.as_ref().unwrap(),
                &material.points,
                &collecting(material.client.as_ref().unwrap()),
            );
            let pauses: Vec<f64> = pauses.into_iter().flatten().collect();
            let reading: Vec<f64> = reading(&material.points).into_iter().flatten().collect();
            let part = explained(&pauses, &reading).unwrap();
            // The threads would also have thought within the time of the pauses.
            assert!(
                (part.share - load.within).abs() < 0.2,
                "seed {seed}: {part:?}, {}",
                load.within
            );
        }
    }

    #[test]
    fn waits_that_are_counted_at_their_end_hide_it() {
        // The same loads as above: why the ledger's waits are taken, which go on.
        let hidden = (1..=10).filter(|seed| {
            let load = simulated(*seed, true);
            let found = finding(&recorded(&load, &load, false)).unwrap();
            let live = finding(&recorded(&load, &load, true)).unwrap();
            let correlation = |text: &str| -> Option<f64> {
                let rest = text.split_once("(correlation ")?.1;
                rest.split(';').next()?.parse().ok()
            };
            correlation(&found.text).unwrap_or(0.0) < correlation(&live.text).unwrap() - 0.2
        });
        assert!(hidden.count() >= 8);
    }

    #[test]
    fn without_pauses_the_client_is_not_named_in_ten_of_ten() {
        for seed in 1..=10 {
            let load = simulated(seed, false);
            let found = finding(&recorded(&load, &load, true)).unwrap();
            assert_eq!(found.weight, Weight::Note, "seed {seed}: {}", found.text);
            assert!(
                found.text.contains("paused for garbage collection for 0.0 %"),
                "{}",
                found.text
            );
        }
    }

    #[test]
    fn pauses_of_a_client_that_the_server_does_not_wait_for_are_inconclusive() {
        // 5 % of them may be named by chance, half of these with a correlation above 0.
        let named = (1..=40).filter(|seed| {
            let (load, other) = (simulated(*seed, false), simulated(*seed + 1_000, true));
            let found = finding(&recorded(&load, &other, true)).unwrap();
            found.weight == Weight::Warning
        });
        assert!(named.count() <= 3);
    }

    #[test]
    fn pauses_and_sessions_have_a_chart_each() {
        let load = simulated(1, true);
        let charts = charts(&recorded(&load, &load, true));
        let units: Vec<_> = charts.iter().map(|chart| (chart.id, chart.unit)).collect();
        assert_eq!(units, [("client", Unit::Share), ("client_reads", Unit::Sessions)]);
        let shares = charts[0].series[0].values.iter().flatten();
        assert!(shares.clone().all(|share| (0.0..=1.0).contains(share)));
        let seconds: f64 = shares.map(|share| share * LENGTH).sum();
        let all: f64 = load.stopped.iter().sum();
        assert!((seconds - all).abs() < 1e-6, "{seconds} of {all}");
        assert!(super::charts(&sample::material()).is_empty());
        assert_eq!(finding(&sample::material()), None);
    }

    #[test]
    fn a_clients_connections_are_shown_beside_the_servers_sessions() {
        let client_point = |start: f64, open: Option<f64>, most: u64| {
            let number = |mean| SampledNumber { mean, max: most };
            let open_connections = open.map(number);
            let borrowed_connections = open.map(|_| number(1.25));
            let figures = Figures { open_connections, borrowed_connections, ..Figures::default() };
            Point { start, seconds: 1.0, figures: Some(figures) }
        };
        let server_point = |start: f64, idle: f64| {
            let sessions = vec![("active".to_string(), 2.0), ("idle".to_string(), idle)];
            Point { start, seconds: 1.0, figures: Some(Figures { sessions, ..Figures::default() }) }
        };
        let with = |points: Vec<Point>| Material {
            points: vec![server_point(0.0, 18.0), server_point(1.0, 23.0)],
            client: Some(Client { program: "shop.jar".into(), java: "Java 17".into(), points }),
            ..sample::material()
        };
        let material =
            with(vec![client_point(0.0, Some(10.0), 3), client_point(1.0, Some(12.0), 2)]);
        let charts = super::charts(&material);
        let found: Vec<_> = charts[2].series.iter().map(|series| series.values.clone()).collect();
        let some = |a, b| vec![Some(a), Some(b)];
        assert_eq!(found, [some(20.0, 25.0), some(10.0, 12.0), some(1.25, 1.25)]);
        assert_eq!(
            pool_size(&material).unwrap().text,
            "The client (shop.jar) held 11.0 of the server's 22.5 sessions on average, and had at most 3 of them \
             borrowed from its pools at once."
        );
        // An agent that does not count them.
        let material = with(vec![client_point(0.0, None, 0), client_point(1.0, None, 0)]);
        assert_eq!((super::charts(&material).len(), pool_size(&material)), (2, None));
    }

    #[test]
    fn a_pause_longer_than_the_interval_in_which_it_ended_was_in_those_before() {
        let point = |at: usize, stopped: Option<f64>| Point {
            start: at as f64,
            seconds: 1.0,
            figures: Some(Figures { collection_stop_seconds: stopped, ..Figures::default() }),
        };
        let gap = Point { start: 2.0, seconds: 0.0, figures: None };
        let client = Client {
            program: String::new(),
            java: String::new(),
            points: vec![
                point(0, None),
                point(1, Some(0.25)),
                gap,
                point(3, None),
                point(4, Some(1.5)),
            ],
        };
        let found = collecting(&client);
        assert_eq!(found, [Some(0.0), Some(0.25), None, Some(0.5), Some(1.0)]);
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
        let found = share(&client, &points, &collecting(&client));
        assert_eq!(found, [None, Some(0.5), None]);
    }
}
