// SPDX-License-Identifier: PostgreSQL
//! Short verbs, one module each: its arguments and `run`.

pub mod blocking;
#[cfg(feature = "full")]
pub mod clock;
pub mod disable;
pub mod doctor;
pub mod enable;
pub mod events;
pub mod functions;
pub mod health;
pub mod level;
pub mod ls;
pub mod report;
#[cfg(feature = "full")]
pub mod ship;
pub mod statements;
pub mod status;
