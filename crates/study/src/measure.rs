// SPDX-License-Identifier: PostgreSQL
//! One cell on a server of its arm: the load is started, the window opened after the warm-up, and
//! closed.
//!
//! Windows open and close at the load's lines of progress, so that the transactions between are
//! known; processes are read within milliseconds of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::background::Background;
use super::cell::{Cell, Machine, Values};
use super::file::{Measured, Study};
use super::load::{transactions, Line, Running, Wanted};
use super::material::{evaluate, series, Given, Material};
use super::plan::Plan;
use super::server::ArmServer;
use super::window::{Seen, Watched, Window};
use super::worst::Worst;
use super::{instrument, latency, listing};
use error::Error;

const POLL: Duration = Duration::from_millis(10);
/// How often processes are looked at that may end at any time.
const LOOK: Duration = Duration::from_millis(50);
/// Lines of progress come a little early or late.
const EARLY: f64 = 0.1;
/// A load that says nothing for so long after its warm-up stands still.
const PATIENCE: Duration = Duration::from_secs(60);
/// Readings of a loop over the server's clock.
const CLOCK_BLOCKS: u32 = 99;

/// What came of a cell.
pub enum Taken {
    Cell(Box<Cell>),
    /// The arm cannot be had here, and why.
    LeftOut(String),
    Interrupted,
}

/// What is to be measured.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    pub plan: &'a Plan,
    pub arm: usize,
    pub point: usize,
    pub block: usize,
    pub stop: &'a AtomicBool,
}

/// Measure it.
pub fn measure(task: Task<'_>, server: &mut ArmServer) -> Result<Taken, Error> {
    let plan = task.plan;
    let (study, arm, point) = (&plan.study, &plan.arms[task.arm], &plan.points[task.point]);
    let mut words = server.words.clone();
    words.set("clients", point.clients);
    words.set("seconds", study.measure.seconds);
    server.check_level(plan, arm)?;
    let mut beside = match &arm.instrument {
        None => None,
        Some(wanted) => match instrument::start(wanted, &words, task.stop) {
            Ok(beside) => Some(beside),
            Err(why) if wanted.optional => return Ok(Taken::LeftOut(why)),
            Err(why) => return Err(Error::Failed(format!("arm \"{}\": {why}", arm.name))),
        },
    };
    let log = study.reads.iter().filter_map(|read| read.of).any(Measured::is_latency);
    let length =
        Duration::from_secs_f64((study.measure.warm_up + study.measure.seconds).ceil() + 2.0);
    let wanted = Wanted { length, log };
    let load = Running::start(study, arm, point, &server.cluster, &words, wanted)?;
    let mut run = Run {
        study,
        task,
        load,
        lines: Vec::new(),
        began: Instant::now(),
        open_line: 0,
        parts: Vec::new(),
        times: Vec::new(),
        worst: Worst::new(study),
    };
    let watched = Watched {
        server: server.cluster.postmaster_pid()?,
        load: run.load.pid(),
        instrument: beside.as_ref().map(Background::pid),
        segment: server.segment.as_ref(),
    };
    let mut client = server.cluster.connect()?;
    if !run.warm_up()? {
        return Ok(Taken::Interrupted);
    }
    let began_unix = segment::clock::realtime_ns() as f64 / 1e9;
    let events_before = listing::event_count(server)?;
    let mut window = Window::open(study, watched, &mut client)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let given = Given { arm, point, seconds: study.measure.seconds, cores };
    let whole = run.watch(&mut window, watched, &mut client, given)?;
    let Some(looked) = whole else { return Ok(Taken::Interrupted) };
    let clock_reading = wants(study, Measured::ClockReading)
        .then(|| clock::server_clock_cost(CLOCK_BLOCKS).map(|seconds| seconds * 1e9))
        .flatten();
    let seen = window.close(study, &mut client)?;
    let mut listings = listing::of_server(study, server, &mut client, events_before)?;
    run.worst.write(&mut listings)?;
    let marks = listing::marks(study, server, events_before, began_unix)?;
    server.check_level(plan, arm)?;
    drop(client);

    if let Some(beside) = &mut beside {
        if !beside.running() && !beside.succeeded() {
            return Ok(Taken::LeftOut(format!(
                "the instrument ended during the measurement: {}",
                beside.last_lines(3)
            )));
        }
    }
    let Seen { mut material, disturbance, foreign_percent, .. } = seen;
    material.clock_reading = clock_reading;
    let parts = run.finish(&mut material, looked, log)?;
    if let (Some(beside), Some(wanted)) = (&mut beside, &arm.instrument) {
        material.instrument_output = beside.stop(wanted.stop.signal())?;
    }
    listing::of_output(study, &material, &mut listings);
    let seconds = material.seconds;
    let kept = (!parts.times.is_empty()).then(|| series(study, &parts.times, &parts.values));
    let given = Given { seconds, ..given };
    let values = evaluate(study, &material, kept.as_ref(), given);
    let mut proof = server.proof.clone();
    proof.instrument = beside.as_ref().map(|beside| format!("pid {}", beside.pid()));
    Ok(Taken::Cell(Box::new(Cell {
        arm: arm.name.clone(),
        point: *point,
        block: task.block,
        began: began_unix,
        seconds,
        values,
        series: kept,
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

fn wants(study: &Study, measured: Measured) -> bool {
    study.reads.iter().any(|read| read.of == Some(measured))
}

/// Where processes were last looked at.
#[derive(Debug, Clone, Copy)]
struct Looked {
    line: usize,
}

struct Run<'a> {
    study: &'a Study,
    task: Task<'a>,
    load: Running,
    lines: Vec<Line>,
    began: Instant,
    /// The line at which the window was opened.
    open_line: usize,
    parts: Vec<Values>,
    times: Vec<f64>,
    worst: Worst<'a>,
}

impl Run<'_> {
    fn interrupted(&self) -> bool {
        self.task.stop.load(Ordering::Relaxed)
    }

    /// Whether the load ends by itself, and its end is the cell's.
    fn is_finite(&self) -> bool {
        self.study.workload.transactions.is_some() || self.is_command()
    }

    fn is_command(&self) -> bool {
        matches!(self.load, Running::Command(_))
    }

    /// Look for lines that have come. Whether there are any.
    fn poll(&mut self) -> bool {
        let before = self.lines.len();
        self.lines = self.load.progress();
        self.lines.len() > before
    }

    /// Wait for the line at which the window opens. False: interrupted.
    fn warm_up(&mut self) -> Result<bool, Error> {
        if self.is_command() {
            return Ok(!self.interrupted());
        }
        let warm = Duration::from_secs_f64(self.study.measure.warm_up);
        loop {
            if self.interrupted() {
                return Ok(false);
            }
            let elapsed = self.began.elapsed();
            if self.poll() && elapsed + Duration::from_secs_f64(EARLY) >= warm {
                self.open_line = self.lines.len() - 1;
                return Ok(true);
            }
            if !self.load.running() {
                return Err(self.ended("has ended before it was measured"));
            }
            if elapsed > warm + PATIENCE {
                return Err(Error::Failed(
                    "the load makes no progress: no transaction ends".into(),
                ));
            }
            std::thread::sleep(POLL);
        }
    }

    /// Why a load is not there any more: its own error, or that it was too short.
    fn ended(&self, what: &str) -> Error {
        match &self.load {
            Running::Pgbench { run, .. } => Error::Failed(format!(
                "the load {what}; pgbench says:\n{}",
                super::background::last_lines(&run.so_far(), 8)
            )),
            Running::Command(beside) => {
                Error::Failed(format!("the load {what}:\n{}", beside.last_lines(8)))
            }
        }
    }

    /// Until the window closes. None: interrupted.
    fn watch(
        &mut self,
        window: &mut Window<'_>,
        watched: Watched<'_>,
        client: &mut postgres::Client,
        given: Given<'_>,
    ) -> Result<Option<Looked>, Error> {
        let every = self.study.measure.every;
        let has_series = self.study.reads.iter().any(|read| read.series);
        let mut part = match every.filter(|_| has_series) {
            Some(_) => Some((Window::open(self.study, watched, client)?, self.open_line)),
            None => None,
        };
        let opened = Instant::now();
        let mut looked = Looked { line: self.open_line };
        let mut last_look = Instant::now();
        loop {
            if self.interrupted() {
                return Ok(None);
            }
            let running = self.load.running();
            if self.is_command() {
                if !running {
                    return Ok(Some(looked));
                }
                if last_look.elapsed() >= LOOK {
                    last_look = Instant::now();
                    window.look();
                }
            } else if self.poll() {
                let at = self.lines.len() - 1;
                let since = |line: usize| self.lines[at].time - self.lines[line].time;
                if running || !self.is_finite() {
                    window.look();
                    looked.line = at;
                }
                if let (Some((seen, from)), Some(every)) = (&mut part, every) {
                    if since(*from) + EARLY >= every {
                        seen.look();
                        let Seen { mut material, interval, .. } = seen.close(self.study, client)?;
                        material.seconds = since(*from);
                        material.transactions = Some(transactions(&self.lines, *from));
                        material.looked = material.transactions;
                        let values = evaluate(self.study, &material, None, given);
                        let to = since(self.open_line);
                        self.worst.see(&values, interval.as_ref(), to - since(*from), to);
                        self.times.push(to);
                        self.parts.push(values);
                        part = Some((Window::open(self.study, watched, client)?, at));
                    }
                }
                let enough = since(self.open_line) + EARLY >= self.study.measure.seconds;
                if enough && !self.is_finite() {
                    return Ok(Some(looked));
                }
            } else if !running {
                if self.is_finite() {
                    return Ok(Some(looked));
                }
                return Err(self.ended("ended early"));
            }
            let patience = Duration::from_secs_f64(self.study.measure.seconds) + PATIENCE;
            if !self.is_finite() && opened.elapsed() > patience {
                return Err(Error::Failed(
                    "the load makes no progress: no transaction ends".into(),
                ));
            }
            std::thread::sleep(POLL);
        }
    }

    /// Count the transactions, end the load, and read what it has left.
    fn finish(self, material: &mut Material, looked: Looked, log: bool) -> Result<Parts, Error> {
        let Self { load, lines, open_line, .. } = self;
        let counted_out = self.study.workload.transactions.is_some();
        let parts = Parts { times: self.times, values: self.parts };
        let (mut from, mut to) = (0.0, f64::INFINITY);
        if matches!(load, Running::Command(_)) {
            material.transactions = Some(1.0);
            material.looked = Some(1.0);
            material.run_seconds = Some(material.seconds);
        } else {
            from = lines[open_line].time;
            let counted = transactions(&lines[..=looked.line], open_line);
            material.looked = Some(counted);
            if !counted_out {
                to = lines[looked.line].time;
                material.transactions = Some(counted);
                material.seconds = to - from;
                if !log {
                    // Its last words are of no use.
                    return Ok(parts);
                }
            }
        }
        let finished = load.finish()?;
        if let (Some(seconds), true) = (finished.seconds, counted_out) {
            material.run_seconds = Some(seconds);
            // All of them but those before the window; the first line counts from the start.
            let first = lines.first().map_or(0.0, |line| line.tps);
            let before = first + transactions(&lines[..=open_line], 0);
            material.transactions = finished.transactions.map(|all| (all - before).max(0.0));
        }
        if let Some(prefix) = &finished.log {
            material.latencies = Some(latency::take(prefix, from, to)?);
        }
        material.workload_output = finished.output;
        Ok(parts)
    }
}

/// What is read of the parts of a cell.
struct Parts {
    times: Vec<f64>,
    values: Vec<Values>,
}
