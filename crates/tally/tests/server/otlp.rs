// SPDX-License-Identifier: PostgreSQL
//! `tally serve --otlp`: a real OpenTelemetry Collector receives the figures of a recording of the same time, and
//! each event once; receivers that are busy, refuse or do not exist.

use crate::support;
use std::path::Path;

use crate::support::otlp::{attribute, number, point, points, resource, Collector, Scripted};
use crate::support::serving::{self as serve, Serving};
use crate::support::{eventually, output, tally};
use recording::{Range, Recording};
use scratch::Cluster;
use segment::{Interval, Segment};
use serde_json::Value;

fn messages(folder: &Path) -> std::path::PathBuf {
    folder.join("messages")
}

fn reported(folder: &Path) -> String {
    std::fs::read_to_string(messages(folder)).unwrap()
}

/// How much a series grew between two readings, by the name of the figure.
fn grown(first: &Value, last: &Value, name: &str, attribute: (&str, &str), figure: &str) -> f64 {
    let of = |reading| {
        point(reading, name, attribute.0, attribute.1).map_or(0.0, |point| number(&point[figure]))
    };
    of(last) - of(first)
}

fn events(cluster: &Cluster) -> Vec<Value> {
    let lines = output(tally().args(["events", "--json"]).arg(cluster.data_dir()));
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_collector_receives_what_a_recording_of_the_same_time_has() {
    let Some(mut collector) = Collector::start() else { return };
    let cluster = serve::quiet();
    cluster.pgbench_init(1).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let certificate = collector.certificate();
    let earlier = events(&cluster).len();
    let serving = Serving::sending(
        cluster.data_dir().to_str().unwrap(),
        &["--otlp", &collector.url(), "--otlp-interval", "1s", "--statements", "5"],
        &[
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", certificate.to_str().unwrap()),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
            ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
        ],
        &messages(folder.path()),
    );
    eventually("a first reading arrives", || !collector.readings().is_empty());
    let first = collector.readings().pop().unwrap();

    // The recording starts and ends while nobody works, so it covers exactly the load.
    let directory = folder.path().join("recording");
    let pgbench = cluster.binaries().program("pgbench").display().to_string();
    let (host, port) = (cluster.host().display().to_string(), cluster.port().to_string());
    output(
        tally()
            .args(["record", "--interval", "200ms", "-o"])
            .arg(&directory)
            .arg(cluster.data_dir())
            .args([
                "--",
                &pgbench,
                "-n",
                "-h",
                &host,
                "-p",
                &port,
                "-U",
                cluster.user(),
                "-c",
                "2",
                "-t",
                "100",
                "postgres",
            ]),
    );
    let recorded = Recording::open(&directory, None).unwrap().sum(Range::ALL).unwrap();
    let recorded = Interval::from_frame(&recorded);
    cluster.psql("checkpoint").unwrap();
    let received = collector.readings().len();
    eventually("two more readings arrive", || collector.readings().len() > received + 1);
    serving.stop();
    collector.stop();
    assert_eq!(reported(folder.path()), "");

    let readings = collector.readings();
    let last = readings.last().unwrap();
    let commits = |reading| number(&points(reading, "pgtally.commits")[0].1["asDouble"]);
    assert_eq!(recorded.commits.count, 200);
    assert_eq!(commits(last) - commits(&first), 200.0);
    // Sums: pgbench's seven statements per transaction, and the files that commits wrote.
    let query = recorded.commands.iter().find(|row| row.kind == "Query").unwrap();
    let of_query = |figure| grown(&first, last, "pgtally.command", ("command", "Query"), figure);
    assert!(query.handle.count >= 1400);
    // One more: psql's checkpoint.
    assert_eq!(of_query("count"), query.handle.count as f64 + 1.0);
    for part in ["write", "sync"] {
        let timing = match part {
            "write" => &recorded.commits.write,
            _ => &recorded.commits.sync,
        };
        let name = "pgtally.commit_part";
        assert_eq!(
            grown(&first, last, name, ("part", part), "count"),
            timing.count as f64,
            "{part}"
        );
        let seconds = grown(&first, last, name, ("part", part), "sum");
        assert!((seconds - timing.seconds).abs() < 1e-4 * timing.seconds, "{seconds} {timing:?}");
    }

    // Exponential histograms: buckets add up to counts, and the mean is within the used buckets.
    let mut histograms = 0;
    for name in ["pgtally.command", "pgtally.commit", "pgtally.wait", "pgtally.file"] {
        for (kind, point) in points(last, name) {
            assert_eq!(kind, "exponentialHistogram", "{name}");
            let empty = Vec::new();
            let buckets = point["positive"]["bucketCounts"].as_array().unwrap_or(&empty);
            let placed: f64 = buckets.iter().map(number).sum();
            assert_eq!(
                placed + number(&point["zeroCount"]),
                number(&point["count"]),
                "{name} {point}"
            );
            assert_eq!(number(&point["scale"]), 3.0);
            histograms += 1;
        }
    }
    assert!(histograms > 10, "{histograms}");

    // Everything starts at the segment's creation; time advances; the resource identifies the server.
    let segment = Segment::open(&support::segment(&cluster)).unwrap();
    let created = segment.header().created_realtime_ns as f64;
    for reading in &readings {
        let (kind, point) = points(reading, "pgtally.commits").remove(0);
        assert_eq!(kind, "sum");
        assert!((number(&point["startTimeUnixNano"]) - created).abs() < 1e3);
        assert!(number(&point["timeUnixNano"]) > created);
        let resource = resource(reading);
        for (key, value) in [
            ("db.system.name", "postgresql"),
            ("service.name", "postgresql"),
            ("server.port", &*port),
            ("deployment.environment.name", "test"),
        ] {
            assert_eq!(attribute(&resource, key).as_deref(), Some(value), "{key}");
        }
    }
    let statements = points(last, "pgtally.statement_calls");
    assert_eq!(statements.len(), 6);
    let named = |(_, point): &(String, Value)| {
        attribute(point, "db.namespace").is_some_and(|name| name == "postgres")
    };
    assert_eq!(statements.iter().filter(|statement| named(statement)).count(), 5);

    // Each event once, with its text and its severity.
    let events = events(&cluster).split_off(earlier);
    let records = collector.records();
    assert!(events.len() >= 2, "{events:?}");
    assert_eq!(records.len(), events.len(), "{records:?}");
    for (record, event) in records.iter().zip(&events) {
        assert_eq!(record["body"]["stringValue"], event["text"]);
        assert_eq!(attribute(record, "pgtally.event.number"), Some(event["number"].to_string()));
        assert_eq!(attribute(record, "process.pid"), Some(event["pid"].to_string()));
        let kind = event["kind"].as_str().unwrap();
        assert_eq!(record["eventName"], format!("pgtally.{kind}"));
        let severity = if matches!(kind, "slow" | "warning" | "blocked") { "WARN" } else { "INFO" };
        assert_eq!(record["severityText"], severity);
        let seconds = number(&record["timeUnixNano"]) * 1e-9;
        assert!((seconds - event["time"].as_f64().unwrap()).abs() < 0.01);
    }
}

#[test]
fn a_busy_receiver_gets_the_same_request_again_when_it_asked_for_it() {
    let cluster = serve::quiet();
    let folder = tempfile::tempdir().unwrap();
    let busy = "503 Busy\r\nRetry-After: 1";
    let receiver = Scripted::start("/v1/metrics", &[busy, "429 Slow down", "400 Bad Request"]);
    let secret = "authorization=Bearer%20s3cret";
    let serving = Serving::sending(
        cluster.data_dir().to_str().unwrap(),
        &["--otlp", &receiver.url(), "--otlp-interval", "1s"],
        &[("OTEL_EXPORTER_OTLP_HEADERS", secret)],
        &messages(folder.path()),
    );
    let (first, second, third, next) =
        (receiver.next(), receiver.next(), receiver.next(), receiver.next());
    assert!(first.head.starts_with("post /v1/metrics http/1.1"), "{}", first.head);
    assert!(first.head.contains("authorization: bearer s3cret"), "{}", first.head);
    assert!(first.head.contains("content-type: application/x-protobuf"), "{}", first.head);
    assert_eq!(first.body, second.body);
    assert_eq!(first.body, third.body);
    // It was refused, and therefore dropped: the next one is another reading.
    assert_ne!(first.body, next.body);
    // The list of processes shows no credentials.
    let arguments = std::fs::read(format!("/proc/{}/cmdline", serving.pid())).unwrap();
    assert!(!String::from_utf8_lossy(&arguments).contains("s3cret"));
    eventually("it says that all is well again", || reported(folder.path()).contains("again"));
    serving.stop();
    let reported = reported(folder.path());
    for part in [
        "HTTP status 503",
        "HTTP status 429",
        "refused metrics: HTTP status 400",
        "dropped so far: 1",
    ] {
        assert!(reported.contains(part), "{part}: {reported}");
    }
    assert!(
        reported.contains("1 of ")
            && reported.contains("readings of all metrics were not accepted"),
        "{reported}"
    );
    assert!(!reported.contains("s3cret"), "{reported}");
}

#[test]
fn an_absent_receiver_costs_nothing_but_words_and_the_end_is_bounded() {
    let cluster = serve::quiet();
    let folder = tempfile::tempdir().unwrap();
    // Nobody listens there.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let serving = Serving::sending(
        cluster.data_dir().to_str().unwrap(),
        &["--otlp", &url, "--otlp-interval", "1s"],
        &[],
        &messages(folder.path()),
    );
    eventually("it says so", || reported(folder.path()).contains("kept for a retry"));
    serving.stop();
    let reported = reported(folder.path());
    assert!(reported.contains(&format!("{url}/v1/metrics: ")), "{reported}");
    assert!(reported.contains("readings of all metrics were not accepted"), "{reported}");
}

#[test]
fn what_cannot_work_is_an_invalid_command_line() {
    for (arguments, environment, part) in [
        (&["--listen", "none"][..], None, "--otlp"),
        (&["--otlp", "/var/lib/postgresql"], None, "TARGET"),
        (&["--otlp", "http://me:s3cret@host"], None, "OTEL_EXPORTER_OTLP_HEADERS"),
        (&["--otlp"], Some(("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")), "http/protobuf"),
        (
            &["--otlp"],
            Some(("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318")),
            "OTEL_EXPORTER_OTLP_ENDPOINT",
        ),
    ] {
        let mut command = tally();
        command.arg("serve").args(arguments).envs(environment);
        let complaint = support::complaint(&mut command, 2);
        assert!(complaint.contains(part), "{complaint}");
        assert!(!complaint.contains("s3cret"), "{complaint}");
    }
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    let cluster = serve::quiet();
    let mut command = tally();
    command.arg("serve").arg(cluster.data_dir()).args([
        "--otlp",
        "https://127.0.0.1:1",
        "--listen",
        "none",
    ]);
    command.env("OTEL_EXPORTER_OTLP_CERTIFICATE", &empty);
    let complaint = support::complaint(&mut command, 1);
    assert!(complaint.contains("empty.pem contains no certificate"), "{complaint}");
}
