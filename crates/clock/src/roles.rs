// SPDX-License-Identifier: PostgreSQL
//! The clocks of the server and of pg_tally, and clocks that cannot be read.

use serde::Serialize;

use crate::counter::{invariant, Plain};
use crate::kernel_clock::{REFERENCE, SERVERS};
use crate::system::System;

/// A clock that cannot be read on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// The names of the clocks in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roles {
    /// The server's clock, for EXPLAIN ANALYZE, track_io_timing and statistics.
    pub server: String,
    /// pg_tally's clock.
    pub pgtally: String,
    /// The clock that rates are compared with.
    pub reference: String,
}

impl Roles {
    /// The roles on this machine. pg_tally reads the processor's counter if it is invariant and the kernel's clock
    /// source (libtally/src/clock.c), otherwise the server's clock.
    pub fn of_machine(system: &System) -> Self {
        let own = if cfg!(target_arch = "aarch64") { "arch_sys_counter" } else { "tsc" };
        let trusted = system.clock_source.as_deref() == Some(own) && invariant();
        Self {
            server: SERVERS.into(),
            pgtally: if trusted { Plain::NAME.into() } else { SERVERS.into() },
            reference: REFERENCE.into(),
        }
    }
}
