// SPDX-License-Identifier: PostgreSQL
//! Events as log records.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use segment::{EventKind, Payload};
use view::escape::visible;
use view::events::Row;

use otlp::attribute::{number, real, scope, text, value};

/// A request with these events, observed at `now`, ns since 1970.
pub fn request(rows: &[Row], now: u64, resource: &Resource) -> Vec<u8> {
    let log_records = rows.iter().map(|row| record(row, now)).collect();
    let scope_logs = vec![ScopeLogs { scope: Some(scope()), log_records, ..ScopeLogs::default() }];
    let resource = Some(resource.clone());
    let of_resource = ResourceLogs { resource, scope_logs, ..ResourceLogs::default() };
    ExportLogsServiceRequest { resource_logs: vec![of_resource] }.encode_to_vec()
}

fn record(row: &Row, now: u64) -> LogRecord {
    let (severity, severity_text) = match row.kind {
        EventKind::Warning | EventKind::Slow | EventKind::Blocked => (SeverityNumber::Warn, "WARN"),
        EventKind::Checkpoint | EventKind::Note | EventKind::Other(_) => {
            (SeverityNumber::Info, "INFO")
        }
    };
    LogRecord {
        time_unix_nano: row.time.map_or(0, |seconds| (seconds.max(0.0) * 1e9) as u64),
        observed_time_unix_nano: now,
        severity_number: severity as i32,
        severity_text: severity_text.to_string(),
        event_name: format!("pgtally.{}", row.kind.to_string().replace(' ', "_")),
        body: Some(value(Value::StringValue(visible(&row.text).into_owned()))),
        attributes: attributes(row),
        ..LogRecord::default()
    }
}

fn attributes(row: &Row) -> Vec<KeyValue> {
    let mut found = vec![
        number("pgtally.event.number", i64::try_from(row.number).unwrap_or(i64::MAX)),
        number("process.pid", i64::from(row.pid)),
    ];
    for (key, value) in [
        ("pgtally.process", &row.process),
        ("db.namespace", &row.database),
        ("user.name", &row.user),
    ] {
        if let Some(value) = value {
            found.push(text(key, &visible(value)));
        }
    }
    match &row.payload {
        Some(Payload::Slow(slow)) => {
            found.push(text("pgtally.operation", &visible(&slow.operation)));
            found.push(real("pgtally.duration", slow.seconds));
        }
        Some(Payload::Completed(checkpoint)) => {
            found.push(real("pgtally.duration", checkpoint.seconds));
        }
        _ => {}
    }
    if row.lost > 0 {
        found.push(number("pgtally.event.lost", i64::try_from(row.lost).unwrap_or(i64::MAX)));
    }
    found
}
