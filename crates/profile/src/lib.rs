// SPDX-License-Identifier: PostgreSQL
//! Profiles of a running server, taken from outside: samples of the CPUs with their stacks, and of all sessions with
//! their waits, each with the account and statement from the segment.
//!
//! [`recorder`] runs `cpu_sampler` and `wall_sampler` and makes a [`Profile`] of their samples. `unwinder` finds the
//! stacks of code without frame pointers, and `symbols` names addresses. A profile is stored as JSON, summed by
//! [`sums`], compared by [`compare`], and exported.

mod address_space;
mod assemble;
pub mod compare;
mod cpu_sampler;
mod event;
pub mod firefox;
pub mod flame_diff;
mod image;
mod kernel_symbols;
mod maps;
mod permission;
pub mod pprof;
mod processes;
mod profile;
pub mod recorder;
mod registers;
mod ring;
#[cfg(test)]
mod sample;
mod string_table;
pub mod sums;
mod symbols;
mod thread;
pub mod timeline;
mod unwind_table;
mod unwinder;
pub mod verb;
mod wall_sampler;

pub use kernel_symbols::KERNEL;
pub use profile::{
    Account, LedgerRow, Process, Profile, Quality, Scope, Stack, StatementText, Symbol, FORMAT,
};
