// SPDX-License-Identifier: PostgreSQL
//! Shared by experiments with servers (`study`) and with storage (`storage`): the order of the arms, the
//! file systems made for them, their processes, the journal of a run, and the drawing of an answer.

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
pub mod verb;
pub mod words;
