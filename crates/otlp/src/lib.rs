// SPDX-License-Identifier: PostgreSQL
//! OTLP over HTTP: what `tally serve` and `tally trace` share to send to an OpenTelemetry receiver
//! (docs/opentelemetry.md).
//!
//! A request goes into a bounded [`queue`], from which the thread of a [`sender`] takes it. [`settings`] says where to,
//! [`resource`] which server it is about.

pub mod attribute;
pub mod queue;
pub mod resource;
pub mod sender;
pub mod settings;
pub mod signal;
