// SPDX-License-Identifier: PostgreSQL
//! Tests the clocks of this machine.

use std::path::Path;
use std::time::Duration;

use crate::counter::{Ordered, Plain};
use crate::kernel_clock::{KERNEL_CLOCKS, SERVERS};
use crate::measure::{block, measure, median, Setup};
use crate::platform::ThisMachine;
use crate::report::Report;
use crate::roles::{Refused, Roles};
use crate::source::Source;
use crate::steps::Steps;
use crate::system::System;

/// All clocks that can be read on this machine, and those that cannot.
fn sources() -> (Vec<Box<dyn Source>>, Vec<Refused>) {
    let (mut sources, mut refused): (Vec<Box<dyn Source>>, Vec<Refused>) = Default::default();
    let mut add = |name: &str, source: Result<Box<dyn Source>, String>| match source {
        Ok(source) => sources.push(source),
        Err(reason) => refused.push(Refused { name: name.into(), reason }),
    };
    add(Plain::NAME, Plain::new().map(|counter| Box::new(counter) as _));
    add(Ordered::NAME, Ordered::new().map(|counter| Box::new(counter) as _));
    for clock in KERNEL_CLOCKS {
        add(clock.name(), clock.refused().map_or(Ok(Box::new(clock)), Err));
    }
    (sources, refused)
}

/// Tests the clocks of this machine for about `length`, and assesses them.
pub fn test_clocks(
    length: Duration,
    progress: &mut (dyn FnMut(&'static str, f64) + Send),
) -> Report {
    let system = System::read(Path::new("/"));
    let roles = Roles::of_machine(&system);
    let (sources, refused) = sources();
    let at = |name: &str| sources.iter().position(|source| source.name() == name);
    let setup = Setup {
        sources: &sources,
        reference: at(&roles.reference),
        server: at(&roles.server),
        platform: &ThisMachine,
    };
    let findings = measure(&setup, length, progress);
    Report::new(&sources, &findings, refused, &roles, system)
}

/// The current cost of reading the server's clock, s: the median over `blocks` blocks of 1,024 readings, on
/// whichever processor the scheduler chooses; `None` if it cannot be read.
pub fn server_clock_cost(blocks: u32) -> Option<f64> {
    let clock = KERNEL_CLOCKS.iter().find(|clock| clock.name() == SERVERS)?;
    clock.refused().is_none().then(|| cost(clock, blocks))?
}

/// The same for the clock that pg_tally reads, measured over some milliseconds.
pub fn pgtally_clock_cost() -> Option<f64> {
    const BLOCKS: u32 = 99;
    let name = Roles::of_machine(&System::read(Path::new("/"))).pgtally;
    let (sources, _) = sources();
    cost(sources.iter().find(|source| source.name() == name)?.as_ref(), BLOCKS)
}

fn cost(clock: &dyn Source, blocks: u32) -> Option<f64> {
    let mut steps = Steps::default();
    let each: Vec<f64> = (0..blocks).map(|_| block(clock, &mut steps, &mut |_| {})).collect();
    median(&each).map(|ns| ns * 1e-9)
}
