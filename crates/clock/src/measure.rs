// SPDX-License-Identifier: PostgreSQL
//! The measurement: each source is read in a loop on each processor, then by a thread that moves
//! from processor to processor, then on each pair of processors at once. Meanwhile pairs of readings are
//! taken for the rates.
//!
//! One thread does this, with an assistant on the other processor of a pair. The processors are
//! tested one after the other, so a busy machine loses only one or two of them at a time.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::gaps::{Gaps, Watch};
use crate::pair::{Effort, Meeting, PairFindings, Side};
use crate::platform::Platform;
use crate::rate::ReadingPair;
use crate::source::{Scope, Source};
use crate::steps::{Backward, Steps};

/// The clocks and the machine of a test.
pub struct Setup<'a> {
    /// The clocks.
    pub sources: &'a [Box<dyn Source>],
    /// The index of the clock that rates are compared with; `None` if no clock can be trusted.
    pub reference: Option<usize>,
    /// The index of the server's clock; it gets the most time, and gaps are measured with it.
    pub server: Option<usize>,
    /// The machine.
    pub platform: &'a dyn Platform,
}

/// The findings on one source.
#[derive(Debug, Clone, Default)]
pub struct MeasuredSource {
    /// The steps in all loops.
    pub steps: Steps,
    /// The cost of a reading in each block of the loops, ns, by this program's clock. It is valid for
    /// coarse clocks too, and a gap spoils one block only.
    pub blocks: Vec<f64>,
    /// Steps back in the loops, by processor; `None` if the processor could not be chosen.
    pub by_processor: Vec<(Option<u32>, Backward)>,
    /// Steps back from one processor to the next.
    pub migrating: Backward,
    /// Findings for each pair of processors.
    pub pairs: Vec<(u32, u32, PairFindings)>,
    /// Readings for the rate.
    pub instants: Vec<ReadingPair>,
}

/// The findings of a measurement.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// Findings by source, in order.
    pub sources: Vec<MeasuredSource>,
    /// The tested processors.
    pub processors: Vec<u32>,
    /// How often the thread moved to another processor.
    pub migrations: u64,
    /// The gaps in the loops of the server's clock.
    pub gaps: Gaps,
    /// Notes on tests that were not possible, and why.
    pub notes: Vec<String>,
    /// How long it took.
    pub elapsed: Duration,
}

/// Shares of the time for migrations and for pairs.
const MIGRATING: f64 = 0.05;
const PAIRS: f64 = 0.40;
/// Minimum length of each loop, and of each test of a pair.
const MIN_LOOP: Duration = Duration::from_millis(1);
const MIN_PAIR: Duration = Duration::from_micros(200);
const ROUNDS: u64 = 512;
/// Readings between two checks of the time.
const BLOCK: u64 = 1024;
/// How often to take pairs of readings.
const RATE_EVERY: Duration = Duration::from_millis(20);

/// Reads a source in a loop of 1,024 readings. Returns the mean time of a reading, ns.
pub fn block(source: &dyn Source, steps: &mut Steps, long: &mut dyn FnMut(u64)) -> f64 {
    let began = Instant::now();
    source.loop_over(BLOCK, steps, long);
    began.elapsed().as_nanos() as f64 / BLOCK as f64
}

/// The median; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// Tests the clocks for about `length`, or longer with many processors. Calls `progress` with the current
/// step and the completed share, 0 to 1.
pub fn measure(
    setup: &Setup,
    length: Duration,
    progress: &mut (dyn FnMut(&'static str, f64) + Send),
) -> Findings {
    // Use a separate thread, because its affinity changes.
    let run = || {
        let mut run = Run::new(setup, progress);
        run.all(length);
        run.findings
    };
    std::thread::scope(|scope| match scope.spawn(run).join() {
        Ok(findings) => findings,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

struct Run<'a, 'p> {
    setup: &'a Setup<'a>,
    progress: &'p mut (dyn FnMut(&'static str, f64) + Send),
    findings: Findings,
    began: Instant,
    rated: Option<Instant>,
}

impl<'a, 'p> Run<'a, 'p> {
    fn new(setup: &'a Setup<'a>, progress: &'p mut (dyn FnMut(&'static str, f64) + Send)) -> Self {
        let sources = setup.sources.iter().map(|_| MeasuredSource::default()).collect();
        let findings = Findings { sources, ..Findings::default() };
        Self { setup, progress, findings, began: Instant::now(), rated: None }
    }

    fn all(&mut self, length: Duration) {
        let processors = self.processors();
        self.rate();
        let several = processors.len() > 1;
        let rest = if several { MIGRATING + PAIRS } else { 0.0 };
        self.loops(&processors, length.mul_f64(1.0 - rest));
        if several {
            let processors: Vec<u32> = processors.iter().flatten().copied().collect();
            self.migrate(&processors, length.mul_f64(MIGRATING));
            self.pairs(&processors, length.mul_f64(PAIRS));
        }
        self.rated = None;
        self.rate();
        self.findings.elapsed = self.began.elapsed();
    }

    /// The processors that can be chosen, or one unknown processor.
    fn processors(&mut self) -> Vec<Option<u32>> {
        let platform = self.setup.platform;
        let chosen = platform.processors().and_then(|processors| {
            processors.iter().try_for_each(|processor| platform.pin(*processor))?;
            Ok(processors)
        });
        match chosen {
            Ok(processors) => {
                if processors.len() < 2 {
                    self.findings.notes.push(
                        "this process may use only one processor, so the processors could not be \
                         compared"
                            .into(),
                    );
                }
                self.findings.processors.clone_from(&processors);
                processors.into_iter().map(Some).collect()
            }
            Err(error) => {
                self.findings.notes.push(format!(
                    "could not bind a thread to a processor ({error}): processors were neither \
                     tested one by one nor compared"
                ));
                vec![None]
            }
        }
    }

    fn loops(&mut self, processors: &[Option<u32>], length: Duration) {
        let setup = self.setup;
        let others = setup.sources.len().saturating_sub(usize::from(setup.server.is_some()));
        // Spend half of the time on the server's clock, unless it is absent or the only one.
        let servers = match (setup.server, others) {
            (None, _) => 0.0,
            (Some(_), 0) => 1.0,
            (Some(_), _) => 0.5,
        };
        let each = length.div_f64(processors.len() as f64);
        let cells = (processors.len() * setup.sources.len()) as f64;
        let mut done = 0.0;
        for processor in processors {
            self.pin(*processor);
            for (at, source) in setup.sources.iter().enumerate() {
                (self.progress)(
                    "reading each clock in a loop",
                    done / cells * (1.0 - PAIRS - MIGRATING),
                );
                self.rate();
                let time = if setup.server == Some(at) {
                    each.mul_f64(servers)
                } else {
                    each.mul_f64((1.0 - servers) / others.max(1) as f64)
                };
                let gaps = setup.server == Some(at);
                self.cell(at, source.as_ref(), *processor, time.max(MIN_LOOP), gaps);
                done += 1.0;
            }
        }
    }

    /// Tests one source on one processor.
    fn cell(
        &mut self,
        at: usize,
        source: &dyn Source,
        processor: Option<u32>,
        time: Duration,
        gaps: bool,
    ) {
        let ns_per_tick = source.ns_per_tick().unwrap_or(1.0);
        let mut steps = Steps::default();
        let mut watch = gaps.then(|| Watch::new(self.setup.platform));
        let found = &mut self.findings.gaps;
        let mut long = |ticks: u64| {
            if let Some(watch) = &mut watch {
                watch.note(ticks as f64 * ns_per_tick, found);
            }
        };
        let began = Instant::now();
        let mut blocks = Vec::new();
        while began.elapsed() < time {
            blocks.push(block(source, &mut steps, &mut long));
        }
        if gaps {
            self.findings.gaps.watched_seconds += steps.total() as f64 * ns_per_tick * 1e-9;
        }
        let measured = &mut self.findings.sources[at];
        measured.by_processor.push((processor, steps.backward()));
        measured.steps.merge(&steps);
        measured.blocks.append(&mut blocks);
    }

    /// Moves from processor to processor, and reads every clock before and after.
    fn migrate(&mut self, processors: &[u32], length: Duration) {
        (self.progress)("moving from processor to processor", 1.0 - PAIRS - MIGRATING);
        let sources = self.setup.sources;
        let began = Instant::now();
        let mut before = vec![0; sources.len()];
        for processor in processors.iter().cycle() {
            for (reading, source) in before.iter_mut().zip(sources) {
                *reading = source.read();
            }
            if self.setup.platform.pin(*processor).is_err() {
                self.unpinned(*processor);
                return;
            }
            for ((measured, source), before) in
                self.findings.sources.iter_mut().zip(sources).zip(&before)
            {
                let after = source.read();
                if after < *before {
                    measured.migrating.add(before - after);
                }
            }
            self.findings.migrations += 1;
            // Move at least once to each processor.
            if self.findings.migrations > processors.len() as u64 && began.elapsed() >= length {
                return;
            }
        }
    }

    fn pairs(&mut self, processors: &[u32], length: Duration) {
        let sources = self.setup.sources;
        let shared = sources.iter().filter(|source| source.scope() == Scope::Machine).count();
        let pairs = processors.len() * (processors.len() - 1) / 2;
        let tests = (pairs * shared * 2).max(1);
        let time = length.div_f64(tests as f64).max(MIN_PAIR);
        let effort = Effort { time, rounds: ROUNDS };
        let mut done = 0.0;
        for (i, one) in processors.iter().enumerate() {
            self.pin(Some(*one));
            for other in &processors[i + 1..] {
                (self.progress)(
                    "comparing processors in pairs",
                    1.0 - PAIRS + PAIRS * done / pairs as f64,
                );
                self.rate();
                match self.pair(*other, effort) {
                    Some(found) => {
                        for (at, found) in found {
                            self.findings.sources[at].pairs.push((*one, *other, found));
                        }
                    }
                    None => self.unpinned(*other),
                }
                done += 1.0;
            }
        }
    }

    /// Tests all clocks of the machine on this processor and another one; `None` if the assistant cannot run
    /// there.
    fn pair(&self, other: u32, effort: Effort) -> Option<Vec<(usize, PairFindings)>> {
        let platform = self.setup.platform;
        let tests: Vec<(usize, &dyn Source, Meeting)> = self
            .setup
            .sources
            .iter()
            .enumerate()
            .filter(|(_, source)| source.scope() == Scope::Machine)
            .map(|(at, source)| (at, source.as_ref(), Meeting::default()))
            .collect();
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            let assistant = scope.spawn(|| {
                let there = platform.pin(other).is_ok();
                if sender.send(there).is_err() || !there {
                    return Vec::new();
                }
                tests
                    .iter()
                    .map(|(_, source, meeting)| meeting.run(Side::Other, *source, effort))
                    .collect()
            });
            if !receiver.recv().unwrap_or(false) {
                return None;
            }
            let mut found: Vec<(usize, PairFindings)> = tests
                .iter()
                .map(|(at, source, meeting)| (*at, meeting.run(Side::One, *source, effort)))
                .collect();
            for ((_, mine), theirs) in found.iter_mut().zip(assistant.join().ok()?) {
                mine.warps.merge(theirs.warps);
                mine.readings += theirs.readings;
            }
            Some(found)
        })
    }

    fn pin(&mut self, processor: Option<u32>) {
        if let Some(processor) = processor {
            if self.setup.platform.pin(processor).is_err() {
                self.unpinned(processor);
            }
        }
    }

    fn unpinned(&mut self, processor: u32) {
        let note = format!("processor {processor} was no longer available");
        if !self.findings.notes.contains(&note) {
            self.findings.notes.push(note);
        }
    }

    /// Takes pairs of readings of the reference and each other clock of the machine, every 20 ms.
    fn rate(&mut self) {
        let Some(at) = self.setup.reference else { return };
        if self.rated.is_some_and(|rated| rated.elapsed() < RATE_EVERY) {
            return;
        }
        let reference = self.setup.sources[at].as_ref();
        for (i, (measured, source)) in
            self.findings.sources.iter_mut().zip(self.setup.sources).enumerate()
        {
            if i != at && source.scope() == Scope::Machine {
                measured.instants.push(ReadingPair::take(reference, source.as_ref()));
            }
        }
        self.rated = Some(Instant::now());
    }
}
