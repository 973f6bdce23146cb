// SPDX-License-Identifier: PostgreSQL
//! `/metrics`: everything since the segment was made, for Prometheus (docs/reference-metrics.md).
//!
//! [`collect`] makes [`family`]s of the one model, [`text`] and [`protobuf`] write them.

mod accept;
mod buckets;
mod collect;
mod family;
mod protobuf;
mod statements;
mod text;

pub use accept::Form;
pub use collect::{collect, Present};
pub use family::Family;
pub use statements::NamedStatements;

/// The families in a form; `created` is when the counters began, seconds since 1970.
pub fn write(families: &[Family], form: Form, created: Option<f64>) -> Vec<u8> {
    match form {
        Form::Text(dialect) => text::write(families, dialect).into_bytes(),
        Form::Protobuf => protobuf::write(families, created),
    }
}
