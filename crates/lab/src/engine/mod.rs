// SPDX-License-Identifier: PostgreSQL
//! What experiments with servers (`study`) and with storage (`storage`) share: the order of
//! the arms, file systems made for them, their processes, the journal of a run, and how an answer
//! is drawn.

pub mod background;
pub mod experiment;
pub mod file_systems;
pub mod journal;
pub mod numbers;
pub mod order;
pub mod page;
pub mod progress;
pub mod svg;
pub mod time;
pub mod words;
