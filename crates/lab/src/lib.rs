// SPDX-License-Identifier: PostgreSQL
//! Experiments and their verbs: studies of servers ([`study`]), studies of storage under load ([`storage`]), and the
//! cost of measuring ([`cost`]). They share the [`engine`]: order, journal, file systems, charts.

pub mod cost;
mod engine;
pub mod storage;
pub mod study;
