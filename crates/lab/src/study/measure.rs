// SPDX-License-Identifier: PostgreSQL
//! Measures one cell on its arm's server: starts the load, opens the window after the warm-up, and
//! closes it.
//!
//! Windows open and close at pgbench's progress lines, so that the number of transactions in each window is
//! known. Processes are read within milliseconds of these lines.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::cell::{Cell, Machine, Values};
use super::file::{MeasuredProcesses, Study};
use super::load::{transactions, PgbenchProgress, Running};
use super::material::{evaluate, series, Material, ValueInputs};
use super::plan::StudyPlan;
use super::server::ArmServer;
use super::window::{Watched, Window, WindowMeasurements};
use super::worst::Worst;
use super::{instrument, latency, listing};
use crate::engine::background::Background;
use error::Error;

const POLL: Duration = Duration::from_millis(10);
/// How often to sample processes, which may end at any time.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);
/// How early or late a progress line may come, seconds.
const TOLERANCE: f64 = 0.1;
/// A load without progress for this long after its warm-up counts as stalled.
const STALL_LIMIT: Duration = Duration::from_secs(60);
const STALLED: &str = "the load makes no progress: no transaction completed";
/// Blocks of clock readings: see [`clock::server_clock_cost`].
const CLOCK_BLOCKS: u32 = 99;

/// The outcome of a cell.
pub enum CellOutcome {
    Cell(Box<Cell>),
    /// Why the arm cannot run on this machine.
    LeftOut(String),
    /// Why the cell has no figures. Another try may succeed.
    Failed(String),
    Interrupted,
}

/// How a part of a measurement ends.
enum Ending<T> {
    Reached(T),
    Failed(String),
    Interrupted,
}

/// The cell to measure, by its indices in the plan.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    pub plan: &'a StudyPlan,
    pub arm: usize,
    pub point: usize,
    pub block: usize,
    pub stop: &'a AtomicBool,
}

/// Measures one cell.
pub fn measure(task: Task<'_>, server: &mut ArmServer) -> Result<CellOutcome, Error> {
    let plan = task.plan;
    let (study, arm, point) = (&plan.study, &plan.arms[task.arm], &plan.points[task.point]);
    let mut words = server.words.clone();
    words.set("clients", point.clients);
    words.set("seconds", study.measure.seconds);
    server.check_level(plan, arm)?;
    let mut instrument = match &arm.instrument {
        None => None,
        Some(wanted) => match instrument::start(wanted, &words, task.stop) {
            Ok(instrument) => Some(instrument),
            Err(why) if wanted.optional => return Ok(CellOutcome::LeftOut(why)),
            Err(why) => return Err(Error::Failed(format!("arm \"{}\": {why}", arm.name))),
        },
    };
    let log = study.reads.iter().filter_map(|read| read.of).any(MeasuredProcesses::is_latency);
    let load = Running::start(study, arm, point, &server.cluster, &words, log)?;
    let mut run = Run {
        study,
        task,
        load,
        lines: Vec::new(),
        began: Instant::now(),
        open_line: 0,
        steps: Vec::new(),
        times: Vec::new(),
        worst: Worst::new(study),
    };
    let watched = Watched {
        server: server.cluster.postmaster_pid()?,
        load: run.load.pid(),
        instrument: instrument.as_ref().map(Background::pid),
        segment: server.segment.as_ref(),
    };
    let mut client = server.cluster.client()?;
    match run.warm_up() {
        Ending::Reached(()) => {}
        Ending::Failed(why) => return Ok(CellOutcome::Failed(why)),
        Ending::Interrupted => return Ok(CellOutcome::Interrupted),
    }
    let began_unix = segment::clock::realtime_ns() as f64 / 1e9;
    let events_before = listing::event_count(server)?;
    let mut window = Window::open(study, watched, &mut client)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let given = ValueInputs { arm, point, seconds: study.measure.seconds, cores };
    let sampled_line = match run.watch(&mut window, watched, &mut client, given)? {
        Ending::Reached(line) => line,
        Ending::Failed(why) => return Ok(CellOutcome::Failed(why)),
        Ending::Interrupted => return Ok(CellOutcome::Interrupted),
    };
    let clock_reading = wants(study, MeasuredProcesses::ClockReading)
        .then(|| clock::server_clock_cost(CLOCK_BLOCKS).map(|seconds| seconds * 1e9))
        .flatten();
    let seen = window.close(study, &mut client)?;
    let mut listings = listing::of_server(study, server, &mut client, events_before)?;
    run.worst.write(&mut listings);
    let marks = listing::marks(study, server, events_before, began_unix)?;
    server.check_level(plan, arm)?;
    drop(client);

    if let Some(instrument) = &mut instrument {
        if !instrument.running() && !instrument.succeeded() {
            return Ok(CellOutcome::LeftOut(format!(
                "the instrument ended during the measurement: {}",
                instrument.last_lines(3)
            )));
        }
    }
    let WindowMeasurements { mut material, disturbance, foreign_percent, .. } = seen;
    material.clock_reading = clock_reading;
    let steps = run.finish(&mut material, sampled_line, log)?;
    if let (Some(instrument), Some(wanted)) = (&mut instrument, &arm.instrument) {
        material.instrument_output = instrument.stop(wanted.stop.signal())?;
    }
    listing::of_output(study, &material, &mut listings);
    let seconds = material.seconds;
    let series = (!steps.times.is_empty()).then(|| series(study, &steps.times, &steps.values));
    let given = ValueInputs { seconds, ..given };
    let values = evaluate(study, &material, series.as_ref(), given);
    let mut proof = server.proof.clone();
    proof.instrument = instrument.as_ref().map(|instrument| format!("pid {}", instrument.pid()));
    Ok(CellOutcome::Cell(Box::new(Cell {
        arm: arm.name.clone(),
        point: *point,
        block: task.block,
        began: began_unix,
        seconds,
        values,
        series,
        machine: Machine {
            disturbance,
            foreign_percent: Some(foreign_percent),
            tries: 1,
            disturbed: None,
        },
        proof,
        marks,
        listings,
    })))
}

fn wants(study: &Study, measured: MeasuredProcesses) -> bool {
    study.reads.iter().any(|read| read.of == Some(measured))
}

struct Run<'a> {
    study: &'a Study,
    task: Task<'a>,
    load: Running,
    lines: Vec<PgbenchProgress>,
    began: Instant,
    /// Index of the progress line at which the window opened.
    open_line: usize,
    /// Values of each time step of a series.
    steps: Vec<Values>,
    /// End of each time step, seconds after the window opened.
    times: Vec<f64>,
    worst: Worst<'a>,
}

impl Run<'_> {
    fn interrupted(&self) -> bool {
        self.task.stop.load(Ordering::Relaxed)
    }

    /// Whether the cell ends when the load ends.
    fn is_finite(&self) -> bool {
        self.study.workload.transactions.is_some() || self.is_command()
    }

    fn is_command(&self) -> bool {
        matches!(self.load, Running::Command(_))
    }

    /// Reads the progress lines. True if there are new ones.
    fn poll(&mut self) -> bool {
        let before = self.lines.len();
        self.lines = self.load.progress();
        self.lines.len() > before
    }

    /// Waits for the progress line at which the window opens.
    fn warm_up(&mut self) -> Ending<()> {
        let warm = Duration::from_secs_f64(self.study.measure.warm_up);
        loop {
            if self.interrupted() {
                return Ending::Interrupted;
            }
            if self.is_command() {
                return Ending::Reached(());
            }
            let elapsed = self.began.elapsed();
            if self.poll() && elapsed + Duration::from_secs_f64(TOLERANCE) >= warm {
                self.open_line = self.lines.len() - 1;
                return Ending::Reached(());
            }
            if !self.load.running() {
                return Ending::Failed(self.load.ended("ended before the measurement"));
            }
            if elapsed > warm + STALL_LIMIT {
                return Ending::Failed(STALLED.into());
            }
            std::thread::sleep(POLL);
        }
    }

    /// Waits until it is time to close the window. Returns the index of the last progress line at which
    /// processes were sampled.
    fn watch(
        &mut self,
        window: &mut Window<'_>,
        watched: Watched<'_>,
        client: &mut pq::Client,
        given: ValueInputs<'_>,
    ) -> Result<Ending<usize>, Error> {
        let every = self.study.measure.every;
        let has_series = self.study.reads.iter().any(|read| read.series);
        let mut step = match every.filter(|_| has_series) {
            Some(_) => Some((Window::open(self.study, watched, client)?, self.open_line)),
            None => None,
        };
        let opened = Instant::now();
        let mut sampled_line = self.open_line;
        let mut last_sample = Instant::now();
        loop {
            if self.interrupted() {
                return Ok(Ending::Interrupted);
            }
            let running = self.load.running();
            if self.is_command() {
                if !running {
                    return Ok(Ending::Reached(sampled_line));
                }
                if last_sample.elapsed() >= SAMPLE_INTERVAL {
                    last_sample = Instant::now();
                    window.look();
                }
            } else if self.poll() {
                let at = self.lines.len() - 1;
                let since = |line: usize| self.lines[at].time - self.lines[line].time;
                if running || !self.is_finite() {
                    window.look();
                    sampled_line = at;
                }
                if let (Some((seen, from)), Some(every)) = (&mut step, every) {
                    if since(*from) + TOLERANCE >= every {
                        seen.look();
                        let WindowMeasurements { mut material, interval, .. } =
                            seen.close(self.study, client)?;
                        material.seconds = since(*from);
                        material.transactions = Some(transactions(&self.lines, *from));
                        material.looked = material.transactions;
                        let values = evaluate(self.study, &material, None, given);
                        let to = since(self.open_line);
                        self.worst.see(&values, interval.as_ref(), to - since(*from), to);
                        self.times.push(to);
                        self.steps.push(values);
                        step = Some((Window::open(self.study, watched, client)?, at));
                    }
                }
                let enough = since(self.open_line) + TOLERANCE >= self.study.measure.seconds;
                if enough && !self.is_finite() {
                    return Ok(Ending::Reached(sampled_line));
                }
            } else if !running {
                if self.is_finite() {
                    return Ok(Ending::Reached(sampled_line));
                }
                return Ok(Ending::Failed(self.load.ended("ended early")));
            }
            let limit = Duration::from_secs_f64(self.study.measure.seconds) + STALL_LIMIT;
            if !self.is_finite() && opened.elapsed() > limit {
                return Ok(Ending::Failed(STALLED.into()));
            }
            std::thread::sleep(POLL);
        }
    }

    /// Counts the transactions, ends the load, and reads its output.
    fn finish(
        self,
        material: &mut Material,
        sampled_line: usize,
        log: bool,
    ) -> Result<SeriesValues, Error> {
        let Self { load, lines, open_line, .. } = self;
        let fixed_transactions = self.study.workload.transactions.is_some();
        let steps = SeriesValues { times: self.times, values: self.steps };
        let (mut from, mut to) = (0.0, f64::INFINITY);
        if matches!(load, Running::Command(_)) {
            material.transactions = Some(1.0);
            material.looked = Some(1.0);
            material.run_seconds = Some(material.seconds);
        } else {
            from = lines[open_line].time;
            let counted = transactions(&lines[..=sampled_line], open_line);
            material.looked = Some(counted);
            if !fixed_transactions {
                to = lines[sampled_line].time;
                material.transactions = Some(counted);
                material.seconds = to - from;
                if !log {
                    return Ok(steps);
                }
            }
        }
        let finished = load.finish()?;
        if let (Some(seconds), true) = (finished.seconds, fixed_transactions) {
            material.run_seconds = Some(seconds);
            // Subtract the transactions before the window; the first line counts from the start.
            let first = lines.first().map_or(0.0, |line| line.tps);
            let before = first + transactions(&lines[..=open_line], 0);
            material.transactions = finished.transactions.map(|all| (all - before).max(0.0));
        }
        if let Some(prefix) = &finished.log {
            material.latencies = Some(latency::take(prefix, from, to)?);
        }
        material.workload_output = finished.output;
        Ok(steps)
    }
}

/// The values of a series' time steps.
struct SeriesValues {
    times: Vec<f64>,
    values: Vec<Values>,
}
