// SPDX-License-Identifier: PostgreSQL
//! Experiments, with their verbs: studies of servers ([`study`]), of storage under load ([`storage`]), and what measuring costs
//! ([`cost`]). They share the [`engine`]: order, journal, file systems, charts.

pub mod cost;
mod engine;
pub mod storage;
pub mod study;
