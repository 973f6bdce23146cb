// SPDX-License-Identifier: PostgreSQL
//! Simulated clocks with one known fault each, and a simulated machine.
//!
//! All clocks of a machine show the same counter, which every reading advances. Readings are therefore in the
//! order in which threads make them, and nothing depends on the speed of the real machine.

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use clock::{measure, Platform, Report, Roles, Scope, Setup, Source, System};

thread_local! {
    /// The processor that the thread is bound to.
    static PROCESSOR: Cell<u32> = const { Cell::new(0) };
}

/// Initial value of all clocks, ns.
const START: u64 = 1 << 40;

/// A fault.
#[derive(Debug, Clone, Copy)]
pub enum Fault {
    /// No fault.
    None,
    /// Every `every`th reading is `by` ns too early; only on this processor, if one is given.
    Back { every: u64, by: u64, on: Option<u32> },
    /// This processor's readings are off by `by` ns.
    Skew { processor: u32, by: i64 },
    /// It advances in steps of `step` ns.
    Coarse { step: u64 },
    /// It is too fast.
    Fast { ppm: f64 },
    /// It gets faster and faster.
    EverFaster,
    /// It never advances.
    Still,
    /// After `every` readings, `ns` pass at once, with or without a dispatch of the thread.
    Gap { every: u64, ns: u64, dispatched: bool },
}

/// State shared by all clocks of a machine.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    ns: Arc<AtomicU64>,
    dispatches: Arc<AtomicU64>,
    /// Its processors.
    pub processors: Vec<u32>,
    /// Processors that no thread may be bound to.
    pub refused: Vec<u32>,
    /// Whether it does not count dispatches.
    pub silent: bool,
}

/// A machine with this number of processors.
pub fn machine(processors: u32) -> Machine {
    Machine {
        ns: Arc::new(AtomicU64::new(START)),
        processors: (0..processors).collect(),
        ..Machine::default()
    }
}

/// A clock.
pub struct MadeUp {
    name: &'static str,
    machine: Machine,
    /// How far each reading advances the machine's counter, ns.
    cost: u64,
    fault: Fault,
    readings: AtomicU64,
}

impl Machine {
    /// A clock of this machine.
    pub fn clock(&self, name: &'static str, cost: u64, fault: Fault) -> Box<dyn Source> {
        let readings = AtomicU64::new(0);
        Box::new(MadeUp { name, machine: self.clone(), cost, fault, readings })
    }

    /// Tests a server's clock with this fault, and a sound one.
    pub fn test(&self, cost: u64, fault: Fault) -> Report {
        self.test_all(vec![self.clock("tested", cost, fault), self.clock("sound", 10, Fault::None)])
    }

    /// Tests these clocks: the first is the server's and pg_tally's, the second is the reference.
    pub fn test_all(&self, sources: Vec<Box<dyn Source>>) -> Report {
        let setup =
            Setup { sources: &sources, reference: Some(1), server: Some(0), platform: self };
        let findings = measure(&setup, Duration::from_millis(60), &mut |_, _| {});
        let roles = Roles {
            server: sources[0].name().into(),
            pgtally: sources[0].name().into(),
            reference: sources[1].name().into(),
        };
        let nothing = System::read(std::path::Path::new("/no/such/root"));
        Report::new(&sources, &findings, Vec::new(), &roles, nothing)
    }
}

impl Platform for Machine {
    fn processors(&self) -> io::Result<Vec<u32>> {
        Ok(self.processors.clone())
    }

    fn pin(&self, processor: u32) -> io::Result<()> {
        if self.refused.contains(&processor) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        PROCESSOR.set(processor);
        Ok(())
    }

    fn dispatches(&self) -> Option<u64> {
        (!self.silent).then(|| self.dispatches.load(Ordering::Relaxed))
    }
}

impl Source for MadeUp {
    fn name(&self) -> &str {
        self.name
    }

    fn call(&self) -> &str {
        "made up"
    }

    fn scope(&self) -> Scope {
        Scope::Machine
    }

    fn ns_per_tick(&self) -> Option<f64> {
        Some(1.0)
    }

    fn read(&self) -> u64 {
        let reading = self.readings.fetch_add(1, Ordering::Relaxed) + 1;
        if let Fault::Gap { every, ns, dispatched } = self.fault {
            if reading.is_multiple_of(every) {
                self.machine.ns.fetch_add(ns, Ordering::Relaxed);
                self.machine.dispatches.fetch_add(u64::from(dispatched), Ordering::Relaxed);
            }
        }
        let now = self.machine.ns.fetch_add(self.cost, Ordering::Relaxed) + self.cost;
        match self.fault {
            Fault::None | Fault::Gap { .. } => now,
            Fault::Back { every, by, on } => {
                let here = on.is_none_or(|processor| processor == PROCESSOR.get());
                now - if here && reading.is_multiple_of(every) { by } else { 0 }
            }
            Fault::Skew { processor, by } if processor == PROCESSOR.get() => {
                now.wrapping_add_signed(by)
            }
            Fault::Skew { .. } => now,
            Fault::Coarse { step } => now - now % step,
            Fault::Fast { ppm } => now.wrapping_add_signed((now as f64 * ppm * 1e-6) as i64),
            // The end is faster than the beginning by the same factor, however long the run.
            Fault::EverFaster => START + ((now - START) as f64).powf(1.2) as u64,
            Fault::Still => START,
        }
    }
}
