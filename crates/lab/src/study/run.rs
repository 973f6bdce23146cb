// SPDX-License-Identifier: PostgreSQL
//! Runs a study until its last cell or a signal.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use super::answer;
use super::cell::Cell;
use super::file::{Design, Study};
use super::gate;
use super::measure::{measure, CellOutcome, Task};
use super::plan::{LoadPoint, StudyPlan};
use super::server::{missing_extension, ArmServer, Opened, StudyInputs};
use super::toggle;
use crate::engine::experiment::StudyFile;
use crate::engine::journal::{Journal, RunHead};
use crate::engine::order::Order;
use crate::engine::progress;
use crate::engine::verb::study_help;
use clap::Args;
use error::Error;
use live::host::Watch;

/// Arguments of `tally study run`.
#[derive(Debug, Args)]
pub struct StudyRunArgs {
    /// Study
    #[arg(value_name = "NAME|FILE", help = study_help("study"))]
    pub study: String,
    /// Directory for cells and results [default: study-NAME in the current directory]
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Run the quick variant, which takes minutes and has wider confidence intervals
    #[arg(long)]
    pub quick: bool,
    /// Directory to compare instead of the study's own; may be repeated
    #[arg(long, value_name = "DIR")]
    pub directory: Vec<PathBuf>,
    /// Allow arms to change the machine's clock source, which is restored afterwards
    #[arg(long)]
    pub set_clock_source: bool,
    /// Print the results as JSON (docs/reference-json.md) instead of the tables
    #[arg(long)]
    pub json: bool,
}

/// A run never ends early with fewer blocks: with fewer, the rank test cannot reach 0.05.
const MIN_BLOCKS: usize = 6;
/// The minimum number of blocks for toggled arms.
const MIN_TOGGLED: usize = 20;

/// At most one in this many cells is repeated.
const AGAIN_SHARE: usize = 4;

/// A run ends when this many cells in a row fail: the study or the machine is at fault.
const FAILED: usize = 3;

/// A run in progress.
struct Runner {
    plan: StudyPlan,
    here: StudyInputs,
    journal: Journal,
    cells: Vec<Cell>,
    stop: Arc<AtomicBool>,
    bar: ProgressBar,
    began: Instant,
    found: usize,
    /// Number of cells that may still be repeated; bounded, so that a run ends on a busy machine too.
    again_left: usize,
    /// Number of cells that have failed since the last one with figures.
    failed_in_a_row: usize,
}

/// Runs the cells that are missing from the directory. If interrupted, the error says how to resume.
pub fn run(args: &StudyRunArgs, file: StudyFile, folder: &Path) -> Result<(), Error> {
    let study = Study::parse(&file.text).map_err(Error::Usage)?;
    let plan = StudyPlan::new(study, args.quick, &args.directory)?;
    let stop = command::stop_on_signals_and_quit()?;
    let directories = args.directory.clone();
    let head = RunHead { directories, ..RunHead::new(args.quick, server_version()?) };
    let host = Watch::start().host("");
    let (journal, cells) = Journal::open(folder, &file.text, head, host)?;
    let found = cells.len();
    let bar = progress::cells(plan.cells(), found);
    let again_left = plan.cells().div_ceil(AGAIN_SHARE);
    let mut runner = Runner {
        plan,
        here: StudyInputs {
            folder: file.folder.unwrap_or_else(|| PathBuf::from(".")),
            may_set_clock_source: args.set_clock_source,
        },
        journal,
        cells,
        stop,
        bar,
        began: Instant::now(),
        found,
        again_left,
        failed_in_a_row: 0,
    };
    let result = match runner.plan.study.measure.design {
        Design::Restart => runner.restart(),
        Design::Toggle => runner.toggle(),
    };
    runner.bar.finish_and_clear();
    runner.end(result)
}

/// A cell in words, the same in each run.
fn name(arm: &str, point: &LoadPoint, block: usize) -> String {
    format!("arm \"{arm}\", {}, block {}", point.label(), block + 1)
}

/// Prints a message on standard error without damaging the progress bar.
fn say(bar: &ProgressBar, text: &str) {
    bar.suspend(|| view::escape::say(text));
}

impl Runner {
    /// Adds to an error how many cells are complete and how to resume.
    fn end(&self, result: Result<(), Error>) -> Result<(), Error> {
        let kept = self.journal.progress(self.cells.len(), self.plan.cells());
        match result {
            // The signal also reaches our child processes and makes them fail.
            _ if self.stop.load(Ordering::Relaxed) => {
                Err(Error::Failed(format!("interrupted; {kept}")))
            }
            Err(error) if !self.cells.is_empty() => Err(Error::Failed(format!("{error}\n{kept}"))),
            Ok(()) if !self.journal.kept.failed.is_empty() => Err(Error::Failed(format!(
                "failed cells: {}\n{kept}",
                self.journal.kept.failed.len()
            ))),
            other => other,
        }
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn has(&self, arm: usize, point: usize, block: usize) -> bool {
        let (arm, point) = (&self.plan.arms[arm].name, &self.plan.points[point]);
        self.cells.iter().any(|c| c.block == block && c.arm == *arm && c.point == *point)
    }

    fn is_left_out(&self, arm: usize) -> bool {
        self.journal.kept.left_out(&self.plan.arms[arm].name).is_some()
    }

    fn leave_out(&mut self, arm: usize, why: &str) -> Result<(), Error> {
        let name = self.plan.arms[arm].name.clone();
        if arm == self.plan.base {
            return Err(Error::Failed(format!(
                "arm \"{name}\", the base of the comparison, cannot run on this machine: \
                 {why}"
            )));
        }
        self.say(&format!("skipping arm \"{name}\": {why}"));
        self.journal.leave_out(&name, why)
    }

    fn say(&self, text: &str) {
        say(&self.bar, text);
    }

    fn restart(&mut self) -> Result<(), Error> {
        let (arms, points) = (self.plan.arms.len(), self.plan.points.len());
        let measure = self.plan.study.measure.clone();
        for (block, visits) in
            Order::new(arms, points, measure.seed).take(measure.repeats).enumerate()
        {
            for visit in visits {
                let left: Vec<usize> = visit
                    .points
                    .into_iter()
                    .filter(|point| !self.has(visit.arm, *point, block))
                    .collect();
                if !left.is_empty() && !self.is_left_out(visit.arm) {
                    self.visit(visit.arm, &left, block)?;
                }
                if self.stopped() {
                    return Ok(());
                }
            }
            if block + 1 >= MIN_BLOCKS && self.is_enough() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Measures an arm's points on its own server.
    fn visit(&mut self, arm: usize, points: &[usize], block: usize) -> Result<(), Error> {
        let mut opened = None;
        for point in points {
            let mut tries = 1;
            loop {
                if self.stopped() {
                    return Ok(());
                }
                let server = match &mut opened {
                    Some(server) => server,
                    none => {
                        self.show_progress(arm, "starting");
                        match ArmServer::open(&self.plan, &self.plan.arms[arm], &self.here)? {
                            Opened::ArmServer(new) => none.insert(new),
                            Opened::LeftOut(why) => return self.leave_out(arm, &why),
                        }
                    }
                };
                self.show_progress(arm, &self.plan.points[*point].label());
                let stop = Arc::clone(&self.stop);
                let task = Task { plan: &self.plan, arm, point: *point, block, stop: &stop };
                let mut cell = match measure(task, server)? {
                    CellOutcome::Cell(cell) => *cell,
                    CellOutcome::LeftOut(why) => return self.leave_out(arm, &why),
                    CellOutcome::Interrupted => return Ok(()),
                    CellOutcome::Failed(why) => {
                        // Whatever went wrong, a new server does not have it.
                        opened = None;
                        if self.fails((arm, *point, block), tries, &why)? {
                            break;
                        }
                        tries += 1;
                        continue;
                    }
                };
                cell.machine.tries = tries;
                cell.machine.disturbed =
                    gate::disturbed(&self.plan.study.gate, &cell.machine, &self.cells);
                if let Some(why) = &cell.machine.disturbed {
                    if tries <= self.plan.study.gate.retries && self.again_left > 0 {
                        self.again_left -= 1;
                        self.bar.set_message(format!("again: {why}"));
                        tries += 1;
                        continue;
                    }
                }
                self.add(cell)?;
                break;
            }
        }
        Ok(())
    }

    /// Handles a cell without figures. Returns true to give it up, false to measure it again.
    fn fails(
        &mut self,
        (arm, point, block): (usize, usize, usize),
        tries: u32,
        why: &str,
    ) -> Result<bool, Error> {
        let name = name(&self.plan.arms[arm].name, &self.plan.points[point], block);
        if tries <= self.plan.study.gate.retries && self.again_left > 0 {
            self.again_left -= 1;
            self.say(&format!("measuring {name} again: {why}"));
            return Ok(false);
        }
        self.say(&format!("{name} failed: {why}"));
        self.journal.fail(&name, Some(why))?;
        self.failed_in_a_row += 1;
        match self.failed_in_a_row < FAILED {
            true => Ok(true),
            false => Err(Error::Failed(format!("{FAILED} cells in a row failed"))),
        }
    }

    fn add(&mut self, cell: Cell) -> Result<(), Error> {
        self.journal.add(&cell)?;
        self.failed_in_a_row = 0;
        let name = name(&cell.arm, &cell.point, cell.block);
        self.journal.fail(&name, None)?;
        self.cells.push(cell);
        self.bar.set_position(self.cells.len() as u64);
        Ok(())
    }

    fn toggle(&mut self) -> Result<(), Error> {
        for arm in 0..self.plan.arms.len() {
            if let Some(why) = missing_extension(&self.plan, &self.plan.arms[arm]) {
                if !self.is_left_out(arm) {
                    self.leave_out(arm, &why)?;
                }
            }
        }
        let arms: Vec<usize> =
            (0..self.plan.arms.len()).filter(|arm| !self.is_left_out(*arm)).collect();
        for point in 0..self.plan.points.len() {
            let whole = |block: usize| arms.iter().all(|arm| self.has(*arm, point, block));
            let first = (0..).find(|block| !whole(*block)).unwrap_or(0);
            if first >= self.plan.study.measure.repeats {
                continue;
            }
            // Measure all cells of an incomplete block again.
            let label = &self.plan.points[point];
            self.cells.retain(|cell| cell.point != *label || cell.block < first);
            self.show_progress(self.plan.base, "starting");
            let shared = self.plan.shared_arm(&arms);
            let server = match ArmServer::open(&self.plan, &shared, &self.here)? {
                Opened::ArmServer(server) => server,
                Opened::LeftOut(why) => return Err(Error::Failed(why)),
            };
            let (plan, stop, bar) = (self.plan.clone(), Arc::clone(&self.stop), self.bar.clone());
            let say = |text: &str| say(&bar, text);
            let task =
                toggle::Task { plan: &plan, arms: &arms, point, first, stop: &stop, say: &say };
            toggle::run(task, &server, |mut cells| {
                for cell in &mut cells {
                    cell.machine.disturbed = gate::disturbed(&plan.study.gate, &cell.machine, &[]);
                }
                let block = cells.first().map_or(0, |cell| cell.block);
                cells.into_iter().try_for_each(|cell| self.add(cell))?;
                self.show_progress(plan.base, &plan.points[point].label());
                // Estimates from many cells are slow, so check every tenth block only.
                Ok(block + 1 >= MIN_TOGGLED && (block + 1) % 10 == 0 && self.is_enough())
            })?;
            if self.stopped() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether the first compared read has reached the required half-width at all points measured so far.
    fn is_enough(&self) -> bool {
        let Some(wanted) = self.plan.study.measure.half_width else { return false };
        answer::widest(&self.plan, &self.cells).is_some_and(|widest| widest <= wanted)
    }

    fn show_progress(&self, arm: usize, what: &str) {
        let done = self.cells.len().saturating_sub(self.found);
        let left = self.plan.cells().saturating_sub(self.cells.len());
        let each = match done {
            0 => self.plan.expected_seconds() / self.plan.cells().max(1) as f64,
            _ => self.began.elapsed().as_secs_f64() / done as f64,
        };
        let left = Duration::from_secs_f64((each * left as f64).clamp(0.0, 1e7));
        self.bar.set_message(format!(
            "{} left; {} {what}",
            indicatif::HumanDuration(left),
            self.plan.arms[arm].title()
        ));
    }
}

fn server_version() -> Result<String, Error> {
    let binaries = scratch::Binaries::find()?;
    Ok(binaries.config("--version").unwrap_or_else(|| "PostgreSQL".into()))
}
