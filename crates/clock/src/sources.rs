// SPDX-License-Identifier: PostgreSQL
//! The clocks of this machine, who uses which, and those that cannot be read.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::counter::{invariant, Ordered, Plain};
use crate::kernel_clock::{KERNEL_CLOCKS, REFERENCE, SERVERS};
use crate::measure::{block, measure, Bench};
use crate::platform::ThisMachine;
use crate::report::{median, Report};
use crate::source::Source;
use crate::steps::Steps;
use crate::system::System;

/// A clock that cannot be read here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// Its name.
    pub name: String,
    /// Why.
    pub reason: String,
}

/// Who uses which clock, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roles {
    /// The server, for EXPLAIN ANALYZE, track_io_timing and statistics.
    pub server: String,
    /// pg_tally, for everything.
    pub pgtally: String,
    /// The one that rates are found by.
    pub reference: String,
}

impl Roles {
    /// On this machine. pg_tally takes the processor's counter where it is invariant and the
    /// kernel's own clock source (libtally/src/clock.c), else what the server takes.
    pub fn of_machine(system: &System) -> Self {
        let trusted = system.clock_source.as_deref() == Some("tsc") && invariant();
        Self {
            server: SERVERS.into(),
            pgtally: if trusted { Plain::NAME.into() } else { SERVERS.into() },
            reference: REFERENCE.into(),
        }
    }
}

/// All clocks that can be read here, and those that cannot.
fn sources() -> (Vec<Box<dyn Source>>, Vec<Refused>) {
    let (mut sources, mut refused): (Vec<Box<dyn Source>>, _) = (Vec::new(), Vec::new());
    let mut no = |name: &str, reason| refused.push(Refused { name: name.into(), reason });
    match Plain::new() {
        Ok(counter) => sources.push(Box::new(counter)),
        Err(reason) => no(Plain::NAME, reason),
    }
    match Ordered::new() {
        Ok(counter) => sources.push(Box::new(counter)),
        Err(reason) => no(Ordered::NAME, reason),
    }
    for clock in KERNEL_CLOCKS {
        match clock.refused() {
            None => sources.push(Box::new(clock)),
            Some(reason) => no(clock.name(), reason),
        }
    }
    (sources, refused)
}

/// Test the clocks of this machine for about so long, and judge them.
pub fn test_clocks(
    length: Duration,
    progress: &mut (dyn FnMut(&'static str, f64) + Send),
) -> Report {
    let system = System::read(Path::new("/"));
    let roles = Roles::of_machine(&system);
    let (sources, refused) = sources();
    let at = |name: &str| sources.iter().position(|source| source.name() == name);
    let bench = Bench {
        sources: &sources,
        reference: at(&roles.reference),
        server: at(&roles.server),
        platform: &ThisMachine,
    };
    let findings = measure(&bench, length, progress);
    Report::new(&sources, &findings, refused, &roles, system)
}

/// What a reading of the server's clock takes at this moment, seconds: the median over so many
/// blocks of 1,024 readings, wherever the scheduler lets us run. None where it cannot be read.
pub fn server_clock_cost(blocks: u32) -> Option<f64> {
    let clock = KERNEL_CLOCKS.iter().find(|clock| clock.name() == SERVERS)?;
    if clock.refused().is_some() {
        return None;
    }
    now(clock, blocks)
}

/// The same of the clock that pg_tally reads, over some milliseconds.
pub fn pgtally_clock_cost() -> Option<f64> {
    const BLOCKS: u32 = 99;
    let name = Roles::of_machine(&System::read(Path::new("/"))).pgtally;
    let (sources, _) = sources();
    now(sources.iter().find(|source| source.name() == name)?.as_ref(), BLOCKS)
}

fn now(clock: &dyn Source, blocks: u32) -> Option<f64> {
    let mut steps = Steps::default();
    let each: Vec<f64> = (0..blocks).map(|_| block(clock, &mut steps, &mut |_| {})).collect();
    median(&each).map(|ns| ns * 1e-9)
}
