// SPDX-License-Identifier: PostgreSQL
//! `/metrics`: totals since the segment was created, for Prometheus (docs/reference-metrics.md).
//!
//! [`collect`] builds each [`family`] of metrics; [`text`] and [`protobuf`] write them, and [`super::otlp`] sends them.

mod accept;
mod buckets;
mod collect;
mod family;
mod health;
mod protobuf;
mod settings;
mod statements;
mod text;

pub use accept::Form;
pub use buckets::{exponential, SCHEMA, ZERO};
pub use collect::{collect, Delivery, Present};
pub use family::{Family, Kind, MetricSample, Spread, Value};
pub use settings::SettingMetrics;
pub use statements::NamedStatements;

/// The families in a format; `created` is when the counters started, seconds since 1970.
pub fn write(families: &[Family], form: Form, created: Option<f64>) -> Vec<u8> {
    match form {
        Form::Text(dialect) => text::write(families, dialect).into_bytes(),
        Form::Protobuf => protobuf::write(families, created),
    }
}
