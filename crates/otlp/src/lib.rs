// SPDX-License-Identifier: PostgreSQL
//! OTLP over HTTP: sends data of `tally serve` and `tally trace` to an OpenTelemetry receiver
//! (docs/opentelemetry.md).
//!
//! A request goes into a bounded [`queue`], from which the thread of a [`sender`] takes it. [`settings`] has the
//! receiver, and [`resource`] describes the server.

pub mod attribute;
pub mod queue;
pub mod resource;
pub mod sender;
pub mod settings;
pub mod signal;
