// SPDX-License-Identifier: PostgreSQL
//! Measures toggled arms at one point: the arms take turns on the live backends of one server, under one
//! load.
//!
//! A round gives each arm a slice, in the order of a row of a Latin square. A block has enough rounds to give each
//! arm its seconds. The sum of an arm's slices in a block is a cell.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use segment::Segment;

use super::cell::{Cell, Machine};
use super::live::Live;
use super::load::Running;
use super::material::{evaluate, Material, ValueInputs};
use super::plan::{LoadPoint, StudyPlan};
use super::processes::{Census, Usage};
use super::server::ArmServer;
use crate::engine::order::Order;
use crate::study::cost::contrast::Slice;
use crate::study::cost::meter::BackendMeter;
use crate::study::cost::CostOf;
use error::Error;
use live::host::Watch;

/// How often to look for new and ended backends.
const REFRESH: Duration = Duration::from_millis(500);
/// Maximum sleep between checks for a signal.
const NAP: Duration = Duration::from_millis(100);
/// How long the load may take to connect.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often to restart a load that has ended.
const RESTARTS: u32 = 3;
/// Give up after this many consecutive rounds in which another process set the level.
const SPOILT: usize = 50;

/// What to measure.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The study's plan.
    pub plan: &'a StudyPlan,
    /// Indexes of the arms that can run.
    pub arms: &'a [usize],
    /// Index of the point.
    pub point: usize,
    /// The first block to measure.
    pub first: usize,
    /// Set by a signal.
    pub stop: &'a AtomicBool,
    /// Prints a message.
    pub say: &'a dyn Fn(&str),
}

/// Measures blocks until the plan's repeats are complete or `take`, which gets each block's cells,
/// returns true. Returns false if interrupted.
pub fn run(
    task: Task<'_>,
    server: &ArmServer,
    take: impl FnMut(Vec<Cell>) -> Result<bool, Error>,
) -> Result<bool, Error> {
    let Task { plan, .. } = task;
    let study = &plan.study;
    let point = &plan.points[task.point];
    let Some(mut load) = start(task, server)? else { return Ok(false) };
    let segment = server.segment.as_ref().ok_or_else(|| {
        Error::Failed("toggled arms require pg_tally in the server, to count commands".into())
    })?;
    let mut bench = Bench {
        task,
        server,
        meter: BackendMeter::new(Segment::open(segment)?, CostOf::Level)?.of_whole_server(),
        live: Live::new(plan, server)?,
        order: Order::new(task.arms.len(), 1, study.measure.seed + task.point as u64),
        refreshed: Instant::now(),
    };
    bench.meter.refresh()?;
    prefer(true);
    let done = bench.blocks(&mut load, point, take);
    prefer(false);
    done
}

/// Raises this process's priority or restores it: at normal priority the load would delay the ends of slices.
/// `tally cost` does the same. Processes started meanwhile inherit the priority.
fn prefer(us: bool) {
    let _ = rustix::process::setpriority_process(None, if us { -10 } else { 0 });
}

/// Starts the load and waits until it is warm. `None` if interrupted.
fn start(task: Task<'_>, server: &ArmServer) -> Result<Option<Running>, Error> {
    let Task { plan, stop, .. } = task;
    let (arm, point) = (&plan.arms[plan.base], &plan.points[task.point]);
    let mut load = Running::start(&plan.study, arm, point, &server.cluster, &server.words, false)?;
    let warm_up = Duration::from_secs_f64(plan.study.measure.warm_up);
    let warm = connected(server, &mut load, point, stop)? && sleep(warm_up, stop);
    Ok(warm.then_some(load))
}

struct Bench<'a> {
    task: Task<'a>,
    server: &'a ArmServer,
    meter: BackendMeter,
    live: Live,
    /// Orders of positions in the task's arms.
    order: Order,
    refreshed: Instant,
}

impl Bench<'_> {
    /// Measures all blocks, and repeats those in which the load ended. Returns false if interrupted.
    fn blocks(
        &mut self,
        load: &mut Running,
        point: &LoadPoint,
        mut take: impl FnMut(Vec<Cell>) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let (mut block, mut restarts) = (self.task.first, 0);
        while block < self.task.plan.study.measure.repeats {
            let cells = self.block(block, point);
            if !load.running() && !self.task.stop.load(Ordering::Relaxed) {
                let why = load.ended("ended early");
                if restarts == RESTARTS {
                    return Err(Error::Failed(why));
                }
                restarts += 1;
                (self.task.say)(&format!("measuring block {} again: {why}", block + 1));
                prefer(false);
                let Some(new) = start(self.task, self.server)? else { return Ok(false) };
                prefer(true);
                *load = new;
                self.meter.refresh()?;
                continue;
            }
            let Some(cells) = cells? else { return Ok(false) };
            if take(cells)? {
                break;
            }
            block += 1;
        }
        Ok(true)
    }

    /// The cells of a block; `None` if interrupted.
    fn block(&mut self, block: usize, point: &LoadPoint) -> Result<Option<Vec<Cell>>, Error> {
        let measure = &self.task.plan.study.measure;
        let rounds = (measure.seconds / measure.slice.0.as_secs_f64()).ceil().max(1.0) as usize;
        let mut sums = vec![Slice::default(); self.task.arms.len()];
        let began = segment::clock::realtime_ns() as f64 / 1e9;
        let (machine, census, begun) = (Watch::start(), Census::take(), Instant::now());
        let (mut whole, mut spoilt) = (0, 0);
        while whole < rounds {
            if self.task.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            if self.refreshed.elapsed() >= REFRESH {
                self.refreshed = Instant::now();
                self.meter.refresh()?;
            }
            match self.round()? {
                Some(slices) => {
                    whole += 1;
                    spoilt = 0;
                    sums.iter_mut().zip(&slices).for_each(|(sum, slice)| sum.add(slice));
                }
                None => spoilt += 1,
            }
            if spoilt >= SPOILT {
                return Err(Error::Failed(
                    "another process keeps changing the level, or no client is connected".into(),
                ));
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        let machine = Machine {
            disturbance: machine.disturbance(),
            foreign_percent: Some(100.0 * Census::take().foreign_since(&census) / seconds),
            tries: 1,
            disturbed: None,
        };
        let cell =
            |(arm, sum): (&usize, &Slice)| self.cell(*arm, sum, block, point, began, &machine);
        Ok(Some(self.task.arms.iter().zip(&sums).map(cell).collect()))
    }

    /// Measures a slice of each arm; `None` if interrupted or unusable.
    fn round(&mut self) -> Result<Option<Vec<Slice>>, Error> {
        let measure = &self.task.plan.study.measure;
        let mut slices = vec![Slice::default(); self.task.arms.len()];
        let Some(visits) = self.order.next() else { return Ok(None) };
        for visit in visits {
            let arm = self.task.arms[visit.arm];
            self.live.set(arm, self.server)?;
            if !sleep(measure.discard.0, self.task.stop) {
                return Ok(None);
            }
            let before = self.meter.read()?;
            if !sleep(measure.slice.0, self.task.stop) {
                return Ok(None);
            }
            let after = self.meter.read()?;
            match after.since(&before) {
                Some(slice) if self.live.is(arm) => slices[visit.arm] = slice,
                _ => return Ok(None),
            }
        }
        Ok(Some(slices))
    }

    fn cell(
        &self,
        arm: usize,
        sum: &Slice,
        block: usize,
        point: &LoadPoint,
        began: f64,
        machine: &Machine,
    ) -> Cell {
        let plan = self.task.plan;
        let transactions = sum.commands as f64 / plan.commands_per_transaction();
        let seconds = sum.wall_ns as f64 * 1e-9;
        let material = Material {
            seconds,
            transactions: Some(transactions),
            looked: Some(transactions),
            commands: Some(sum.commands as f64),
            server: Usage {
                cpu: sum.cpu_ns as f64 * 1e-9,
                dispatches: sum.dispatches as f64,
                ..Usage::default()
            },
            ..Material::default()
        };
        let arm = &plan.arms[arm];
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let given = ValueInputs { arm, point, seconds, cores };
        let mut proof = self.server.proof.clone();
        proof.settings.extend(arm.settings.clone());
        proof.level = plan.level(arm).of_segment().map(|level| level.to_string());
        proof.statements = Some(plan.statements(arm));
        Cell {
            arm: arm.name.clone(),
            point: *point,
            block,
            began,
            seconds,
            values: evaluate(&plan.study, &material, None, given),
            series: None,
            machine: machine.clone(),
            proof,
            marks: Vec::new(),
            listings: Vec::new(),
        }
    }
}

/// Waits until the load has connected. Returns false if interrupted.
fn connected(
    server: &ArmServer,
    load: &mut Running,
    point: &LoadPoint,
    stop: &AtomicBool,
) -> Result<bool, Error> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if !load.running() {
            return Err(Error::Failed(load.ended("ended before the measurement")));
        }
        if server.cluster.backend_pids()?.len() >= point.clients as usize {
            break;
        }
        std::thread::sleep(NAP);
    }
    Ok(true)
}

/// Sleeps until the time is over or a signal arrives. Returns false after a signal.
fn sleep(length: Duration, stop: &AtomicBool) -> bool {
    let until = Instant::now() + length;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(NAP));
    }
}
