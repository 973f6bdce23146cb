// SPDX-License-Identifier: PostgreSQL
//! The text of messages, in the form that each destination takes.

use std::time::Duration;

use jiff::Timestamp;
use segment::interval::ServerInfo;
use segment::Producer;
use serde_json::{json, Value};

use super::book::{Alert, AlertEvent};
use super::destination::Destination;

/// How long Alertmanager takes an alert for one that lasts if it hears no more of it.
const EXPIRY: Duration = Duration::from_secs(300);
/// Maximum number of diagnoses of a message, of sentences of each, and of characters of a sentence: less than 64 KiB.
const DIAGNOSES: usize = 4;
const SENTENCES: usize = 5;
const CHARACTERS: usize = 300;
/// Maximum number of changed settings.
const CHANGES: usize = 20;

/// The server that has the problem.
#[derive(Debug)]
pub struct AlertSource {
    machine: String,
    name: String,
    data_directory: String,
    port: Option<u32>,
    /// Whether the figures are estimates from samples.
    is_sampled: bool,
}

impl AlertSource {
    /// The server of an interval, on this machine unless it is read through a connection.
    pub fn new(server: &ServerInfo) -> AlertSource {
        AlertSource {
            machine: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            name: server.name.clone(),
            data_directory: server.host.clone(),
            port: server.port,
            is_sampled: Producer::from_text(&server.producer) == Producer::Sampler,
        }
    }
}

/// The body of the request, or the command's input.
pub fn body(
    destination: &Destination,
    server: &AlertSource,
    alert: &Alert,
    now: Timestamp,
) -> Vec<u8> {
    let value = match destination {
        Destination::Alertmanager(_) => alertmanager(server, alert, now),
        Destination::Webhook(_) => json!({ "text": escaped(&text(server, alert)) }),
        Destination::Command(_) => full(server, alert, now),
    };
    value.to_string().into_bytes()
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_string(),
    }
}

fn summary(alert: &Alert) -> String {
    let mut summary = alert.diagnoses.first().map(|first| cut(&first.text)).unwrap_or_default();
    if alert.diagnoses.len() > 1 {
        summary.push_str(&format!(" ({} more)", alert.diagnoses.len() - 1));
    }
    summary
}

/// What else is known of each: consequences, evidence, advice.
fn description(alert: &Alert) -> String {
    let mut lines = Vec::new();
    for (n, diagnosis) in alert.diagnoses.iter().take(DIAGNOSES).enumerate() {
        if n > 0 {
            lines.push(cut(&diagnosis.headline()));
        }
        lines.extend(diagnosis.evidence.iter().take(SENTENCES).map(|sentence| cut(sentence)));
        if !diagnosis.advice.is_empty() {
            lines.push(cut(&format!("What to do: {}", diagnosis.advice)));
        }
    }
    lines.join("\n")
}

/// The labels are what identifies the alert, so they have no figures.
fn alertmanager(server: &AlertSource, alert: &Alert, now: Timestamp) -> Value {
    let ends = match alert.event {
        AlertEvent::End => now,
        _ => now.checked_add(EXPIRY).unwrap_or(now),
    };
    let is_note = alert.event == AlertEvent::Note;
    let mut labels = json!({
        "alertname": if is_note { "PgtallySettingsChanged" } else { "PgtallyProblem" },
        "rule": alert.rule.name(),
        "severity": if is_note { "info" } else { "warning" },
        "instance": server.machine,
        "port": server.port.map_or_else(String::new, |port| port.to_string()),
        "data_directory": server.data_directory,
    });
    if server.is_sampled {
        labels["source"] = "sampled".into();
    }
    json!([{
        "labels": labels,
        "annotations": { "summary": summary(alert), "description": description(alert) },
        "startsAt": alert.since.to_string(),
        "endsAt": ends.to_string(),
    }])
}

fn text(server: &AlertSource, alert: &Alert) -> String {
    let sampled = if server.is_sampled { ", sampled" } else { "" };
    let AlertSource { name, machine, data_directory, .. } = server;
    let place = format!("{name} on {machine} ({data_directory}){sampled}");
    let since = alert.since.strftime("%Y-%m-%d %H:%M:%S UTC");
    match alert.event {
        AlertEvent::Begin | AlertEvent::Note => {
            format!("{place}: {}\n{}", summary(alert), description(alert)).trim_end().to_string()
        }
        AlertEvent::Update => {
            format!("{place}, since {since}: {}\n{}", summary(alert), description(alert))
        }
        AlertEvent::End => format!("{place}: over, since {since}: {}", summary(alert)),
    }
}

/// Slack takes these characters for links and names.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// As everywhere in JSON, since 1970.
fn seconds(time: Timestamp) -> f64 {
    time.as_millisecond() as f64 / 1e3
}

fn full(server: &AlertSource, alert: &Alert, now: Timestamp) -> Value {
    let diagnoses: Vec<Value> = alert
        .diagnoses
        .iter()
        .take(DIAGNOSES)
        .map(|diagnosis| {
            let evidence = diagnosis.evidence.iter().take(SENTENCES);
            json!({
                "rule": diagnosis.rule,
                "text": cut(&diagnosis.text),
                "seconds": diagnosis.seconds,
                "share": diagnosis.share,
                "evidence": evidence.map(|sentence| cut(sentence)).collect::<Vec<_>>(),
                "advice": cut(&diagnosis.advice),
                "commands": diagnosis.advice.commands(),
                "confidence": diagnosis.confidence,
                "consequence_of": diagnosis.consequence_of,
            })
        })
        .collect();
    let changes = alert.changes.iter().take(CHANGES).map(|change| {
        json!({
            "time": change.time,
            "name": change.name,
            "before": cut(&change.before),
            "after": cut(&change.after),
        })
    });
    json!({
        "event": alert.event,
        "rule": alert.rule,
        "time": seconds(now),
        "since": seconds(alert.since),
        "machine": server.machine,
        "server": server.name,
        "data_directory": server.data_directory,
        "port": server.port,
        "source": if server.is_sampled { "sampled" } else { "exact" },
        "summary": summary(alert),
        "diagnoses": diagnoses,
        "changes": changes.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::book::tests::problem;
    use super::*;
    use diagnose::Rule;
    use view::settings::SettingChange;

    fn server() -> AlertSource {
        AlertSource {
            machine: "db1".into(),
            name: "PostgreSQL 17.5".into(),
            data_directory: "/data".into(),
            port: Some(5432),
            is_sampled: false,
        }
    }

    fn alert(event: AlertEvent) -> Alert {
        let diagnoses = vec![problem(Rule::Locks, "Session 7 <app> blocks 3 & more.")];
        let since = Timestamp::UNIX_EPOCH;
        Alert { event, rule: Rule::Locks, since, diagnoses, changes: Vec::new() }
    }

    fn made(destination: &str, alert: &Alert) -> Value {
        let now = "2026-03-01T12:00:00Z".parse().unwrap();
        let destination = Destination::parse(destination).unwrap();
        serde_json::from_slice(&body(&destination, &server(), alert, now)).unwrap()
    }

    #[test]
    fn alertmanager_gets_labels_without_figures_and_an_end() {
        let url = "http://h/api/v2/alerts";
        let begin = made(url, &alert(AlertEvent::Begin));
        let end = made(url, &alert(AlertEvent::End));
        assert_eq!(begin[0]["labels"], end[0]["labels"]);
        assert_eq!(begin[0]["labels"]["rule"], "locks");
        assert_eq!(begin[0]["endsAt"], "2026-03-01T12:05:00Z");
        assert_eq!(end[0]["endsAt"], "2026-03-01T12:00:00Z");
        assert_eq!(begin[0]["annotations"]["summary"], "Session 7 <app> blocks 3 & more.");
        assert_eq!(begin[0]["annotations"]["description"], "It was seen.\nWhat to do: End it.");
    }

    #[test]
    fn changed_settings_are_a_note_of_their_own() {
        let change = |name: &str, before: &str, after: &str| SettingChange {
            time: 1_000_000.5,
            name: name.into(),
            before: before.into(),
            after: after.into(),
        };
        let changes = vec![change("work_mem", "4MB", "64MB"), change("jit", "on", "off")];
        let note = Alert::of_changes(changes, Timestamp::UNIX_EPOCH);
        let to_manager = made("http://h/api/v2/alerts", &note);
        assert_eq!(to_manager[0]["labels"]["alertname"], "PgtallySettingsChanged");
        assert_eq!(to_manager[0]["labels"]["severity"], "info");
        assert_eq!(to_manager[0]["startsAt"], "1970-01-12T13:46:40.5Z");
        let words = "Settings have changed: work_mem: 4MB -> 64MB; jit: on -> off.";
        assert_eq!(to_manager[0]["annotations"]["summary"], words);
        let text = made("https://h/x", &note)["text"].as_str().unwrap().replace("&gt;", ">");
        assert_eq!(text, format!("PostgreSQL 17.5 on db1 (/data): {words}"));
        let full = made("cat", &note);
        assert_eq!((&full["event"], &full["rule"]), (&json!("note"), &json!("changed-settings")));
        assert_eq!(full["changes"][0]["after"], "64MB");
        assert_eq!(full["changes"][1]["time"], 1_000_000.5);
        let problem = made("cat", &alert(AlertEvent::Begin));
        assert_eq!(problem["changes"], json!([]));
    }

    #[test]
    fn an_alert_from_samples_says_so() {
        let sampled = AlertSource { is_sampled: true, ..server() };
        let begin = alert(AlertEvent::Begin);
        let alerts = alertmanager(&sampled, &begin, Timestamp::UNIX_EPOCH);
        assert_eq!(alerts[0]["labels"]["source"], "sampled");
        let exact = alertmanager(&server(), &begin, Timestamp::UNIX_EPOCH);
        assert!(exact[0]["labels"].get("source").is_none());
        assert!(text(&sampled, &begin).contains("(/data), sampled: "));
        let full =
            |server: &AlertSource| full(server, &begin, Timestamp::UNIX_EPOCH)["source"].clone();
        assert_eq!([full(&server()), full(&sampled)], ["exact", "sampled"]);
    }

    #[test]
    fn a_webhook_gets_text_without_links() {
        let made = |event| made("https://h/x", &alert(event))["text"].as_str().unwrap().to_string();
        assert_eq!(
            made(AlertEvent::Begin),
            "PostgreSQL 17.5 on db1 (/data): Session 7 &lt;app&gt; blocks 3 &amp; more.\n\
             It was seen.\nWhat to do: End it."
        );
        assert_eq!(
            made(AlertEvent::End),
            "PostgreSQL 17.5 on db1 (/data): over, since 1970-01-01 00:00:00 UTC: \
             Session 7 &lt;app&gt; blocks 3 &amp; more."
        );
    }

    #[test]
    fn a_command_gets_everything_and_no_message_is_long() {
        let found = made("cat", &alert(AlertEvent::Update));
        assert_eq!((&found["event"], &found["port"]), (&json!("update"), &json!(5432)));
        assert_eq!(found["diagnoses"][0]["advice"], "End it.");
        let mut long = problem(Rule::Locks, &"\u{1F418}\"".repeat(5000));
        long.evidence = vec!["\u{1F418}\u{7}".repeat(5000); 100];
        let diagnoses = vec![long; 100];
        let long = Alert { diagnoses, ..alert(AlertEvent::Begin) };
        let now = Timestamp::UNIX_EPOCH;
        for to in ["cat", "http://h/", "http://h/api/v2/alerts"] {
            let body = body(&Destination::parse(to).unwrap(), &server(), &long, now);
            assert!(body.len() < 64 << 10, "{to} {}", body.len());
        }
    }
}
