// SPDX-License-Identifier: PostgreSQL
//! The run: every source is read in a loop on every processor, then on one that moves from
//! processor to processor, then on every two at once; meanwhile pairs of readings are taken for
//! the rates.
//!
//! One thread does it all, and has an assistant on the other processor of a pair. The processors
//! are tested one after the other, so that a machine at work loses no more than one or two of them.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::gaps::{Gaps, Watch};
use crate::pair::{Effort, Found, Meeting, Side};
use crate::platform::Platform;
use crate::rate::Instant2;
use crate::source::{Scope, Source};
use crate::steps::{Backward, Steps};

/// What is tested, and on what.
pub struct Bench<'a> {
    /// The clocks.
    pub sources: &'a [Box<dyn Source>],
    /// The one that rates are found by; none of the sources when there is none to trust.
    pub reference: Option<usize>,
    /// The one that the server uses; it gets the most time, and gaps are seen by it.
    pub server: Option<usize>,
    /// The machine.
    pub platform: &'a dyn Platform,
}

/// What was found of one source.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// All steps in the loops.
    pub steps: Steps,
    /// What a reading took in each block of the loops, ns, by the clock of this program. It tells
    /// the cost of a coarse clock too, and one gap in a block spoils only that.
    pub blocks: Vec<f64>,
    /// Steps back in them, by processor; None where we could not choose one.
    pub by_processor: Vec<(Option<u32>, Backward)>,
    /// Steps back from one processor to the next.
    pub migrating: Backward,
    /// Each pair of processors.
    pub pairs: Vec<(u32, u32, Found)>,
    /// For the rate.
    pub instants: Vec<Instant2>,
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// In the order of the sources.
    pub sources: Vec<Measured>,
    /// The processors that were tested.
    pub processors: Vec<u32>,
    /// How often the thread went to another processor.
    pub migrations: u64,
    /// In the loops of the server's clock.
    pub gaps: Gaps,
    /// What could not be done, and why.
    pub notes: Vec<String>,
    /// How long it took.
    pub elapsed: Duration,
}

/// Share of the time for moving about, and for pairs.
const MIGRATING: f64 = 0.05;
const PAIRS: f64 = 0.40;
/// What any loop gets, and each test of a pair.
const LEAST_LOOP: Duration = Duration::from_millis(1);
const LEAST_PAIR: Duration = Duration::from_micros(200);
const ROUNDS: u64 = 512;
/// Readings between two looks at the time.
const BLOCK: u64 = 1024;
/// How often pairs of readings are taken.
const RATE_EVERY: Duration = Duration::from_millis(20);

/// Read it so often in a loop; what one reading took, ns.
pub fn block(source: &dyn Source, steps: &mut Steps, long: &mut dyn FnMut(u64)) -> f64 {
    let began = Instant::now();
    source.loop_over(BLOCK, steps, long);
    began.elapsed().as_nanos() as f64 / BLOCK as f64
}

/// The median; None of no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// Test them for about so long; more where there are many processors. `progress` is told what is
/// under way and which share is done.
pub fn measure(
    bench: &Bench,
    length: Duration,
    progress: &mut (dyn FnMut(&'static str, f64) + Send),
) -> Findings {
    // A thread of its own: where it is pinned ends with it.
    let run = || {
        let mut run = Run::new(bench, progress);
        run.all(length);
        run.findings
    };
    std::thread::scope(|scope| match scope.spawn(run).join() {
        Ok(findings) => findings,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

struct Run<'a, 'p> {
    bench: &'a Bench<'a>,
    progress: &'p mut (dyn FnMut(&'static str, f64) + Send),
    findings: Findings,
    began: Instant,
    rated: Option<Instant>,
}

impl<'a, 'p> Run<'a, 'p> {
    fn new(bench: &'a Bench<'a>, progress: &'p mut (dyn FnMut(&'static str, f64) + Send)) -> Self {
        let sources = bench.sources.iter().map(|_| Measured::default()).collect();
        let findings = Findings { sources, ..Findings::default() };
        Self { bench, progress, findings, began: Instant::now(), rated: None }
    }

    fn all(&mut self, length: Duration) {
        let places = self.places();
        self.rate();
        let several = places.len() > 1;
        let rest = if several { MIGRATING + PAIRS } else { 0.0 };
        self.loops(&places, length.mul_f64(1.0 - rest));
        if several {
            let processors: Vec<u32> = places.iter().flatten().copied().collect();
            self.migrate(&processors, length.mul_f64(MIGRATING));
            self.pairs(&processors, length.mul_f64(PAIRS));
        }
        self.rated = None;
        self.rate();
        self.findings.elapsed = self.began.elapsed();
    }

    /// The processors that we can choose, or one unknown place.
    fn places(&mut self) -> Vec<Option<u32>> {
        let platform = self.bench.platform;
        let chosen = platform.processors().and_then(|processors| {
            processors.iter().try_for_each(|processor| platform.pin(*processor))?;
            Ok(processors)
        });
        match chosen {
            Ok(processors) => {
                if processors.len() < 2 {
                    self.findings.notes.push(
                        "this process may use one processor only: whether processors agree could \
                         not be tested"
                            .into(),
                    );
                }
                self.findings.processors.clone_from(&processors);
                processors.into_iter().map(Some).collect()
            }
            Err(error) => {
                self.findings.notes.push(format!(
                    "a thread cannot be bound to a processor ({error}): processors were tested \
                     neither one by one nor against each other"
                ));
                vec![None]
            }
        }
    }

    fn loops(&mut self, places: &[Option<u32>], length: Duration) {
        let bench = self.bench;
        let others = bench.sources.len().saturating_sub(usize::from(bench.server.is_some()));
        // Half of the time for the server's clock, unless it is the only one or not there.
        let servers = match (bench.server, others) {
            (None, _) => 0.0,
            (Some(_), 0) => 1.0,
            (Some(_), _) => 0.5,
        };
        let each = length.div_f64(places.len() as f64);
        let cells = (places.len() * bench.sources.len()) as f64;
        let mut done = 0.0;
        for place in places {
            self.pin(*place);
            for (at, source) in bench.sources.iter().enumerate() {
                (self.progress)(
                    "reading each clock in a loop",
                    done / cells * (1.0 - PAIRS - MIGRATING),
                );
                self.rate();
                let time = if bench.server == Some(at) {
                    each.mul_f64(servers)
                } else {
                    each.mul_f64((1.0 - servers) / others.max(1) as f64)
                };
                let gaps = bench.server == Some(at);
                self.cell(at, source.as_ref(), *place, time.max(LEAST_LOOP), gaps);
                done += 1.0;
            }
        }
    }

    /// One source on one processor.
    fn cell(
        &mut self,
        at: usize,
        source: &dyn Source,
        place: Option<u32>,
        time: Duration,
        gaps: bool,
    ) {
        let ns_per_tick = source.ns_per_tick().unwrap_or(1.0);
        let mut steps = Steps::default();
        let mut watch = gaps.then(|| Watch::new(self.bench.platform));
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
        measured.by_processor.push((place, steps.backward()));
        measured.steps.merge(&steps);
        measured.blocks.append(&mut blocks);
    }

    /// From processor to processor, with a reading of every clock before and after.
    fn migrate(&mut self, processors: &[u32], length: Duration) {
        (self.progress)("moving from processor to processor", 1.0 - PAIRS - MIGRATING);
        let sources = self.bench.sources;
        let began = Instant::now();
        let mut before = vec![0; sources.len()];
        for processor in processors.iter().cycle() {
            for (reading, source) in before.iter_mut().zip(sources) {
                *reading = source.read();
            }
            if self.bench.platform.pin(*processor).is_err() {
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
            // At least once from each to the next.
            if self.findings.migrations > processors.len() as u64 && began.elapsed() >= length {
                return;
            }
        }
    }

    fn pairs(&mut self, processors: &[u32], length: Duration) {
        let sources = self.bench.sources;
        let shared = sources.iter().filter(|source| source.scope() == Scope::Machine).count();
        let pairs = processors.len() * (processors.len() - 1) / 2;
        let tests = (pairs * shared * 2).max(1);
        let time = length.div_f64(tests as f64).max(LEAST_PAIR);
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

    /// All clocks of the machine, between here and another processor; None where the assistant
    /// cannot go there.
    fn pair(&self, other: u32, effort: Effort) -> Option<Vec<(usize, Found)>> {
        let platform = self.bench.platform;
        let tests: Vec<(usize, &dyn Source, Meeting)> = self
            .bench
            .sources
            .iter()
            .enumerate()
            .filter(|(_, source)| source.scope() == Scope::Machine)
            .map(|(at, source)| (at, source.as_ref(), Meeting::default()))
            .collect();
        let (tell, told) = mpsc::channel();
        std::thread::scope(|scope| {
            let assistant = scope.spawn(|| {
                let there = platform.pin(other).is_ok();
                if tell.send(there).is_err() || !there {
                    return Vec::new();
                }
                tests
                    .iter()
                    .map(|(_, source, meeting)| meeting.run(Side::Other, *source, effort))
                    .collect()
            });
            if !told.recv().unwrap_or(false) {
                return None;
            }
            let mut found: Vec<(usize, Found)> = tests
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

    fn pin(&mut self, place: Option<u32>) {
        if let Some(processor) = place {
            if self.bench.platform.pin(processor).is_err() {
                self.unpinned(processor);
            }
        }
    }

    fn unpinned(&mut self, processor: u32) {
        let note = format!("processor {processor} could not be used any more");
        if !self.findings.notes.contains(&note) {
            self.findings.notes.push(note);
        }
    }

    /// Pairs of readings of the reference and each other clock of the machine, now and then.
    fn rate(&mut self) {
        let Some(at) = self.bench.reference else { return };
        if self.rated.is_some_and(|rated| rated.elapsed() < RATE_EVERY) {
            return;
        }
        let reference = self.bench.sources[at].as_ref();
        for (i, (measured, source)) in
            self.findings.sources.iter_mut().zip(self.bench.sources).enumerate()
        {
            if i != at && source.scope() == Scope::Machine {
                measured.instants.push(Instant2::take(reference, source.as_ref()));
            }
        }
        self.rated = Some(Instant::now());
    }
}
