// SPDX-License-Identifier: PostgreSQL
//! Measures a cell: creates the arm's directory, runs the victims without background, starts and warms up the
//! background, then runs victims and sets limits at their times. Everything is written to the cell's log when it
//! happens. The directory is removed at the end.

mod victims;
mod warm_up;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::engine::words::Words;
use device::{Devices, DiskCounters, Reading, System};
use error::Error;

use crate::storage::arm_directory::ArmDirectory;
use crate::storage::engine::{now, Engine, Work};
use crate::storage::file::{Background, Limit, Owed, StorageArm, StorageStudy, WarmUp};
use crate::storage::limit::{describe, Limiter};
use crate::storage::log::{CellEvent, Device, LoadSample, Log, Transactions};
use crate::storage::machine::Memory;
use crate::storage::record::Recorder;
use crate::storage::server::Server;
use crate::storage::tree::{forget, Tree};
use victims::Victims;

/// How long to wait for fio's next report before checking everything else.
const STEP: Duration = Duration::from_millis(50);
/// Extra run time of the background. It is limited so that it ends even if the main loop hangs.
const SPARE: Duration = Duration::from_secs(7200);
/// Free space beyond the files, bytes.
const SPACE_SPARE: u64 = 16 << 20;

/// What to measure, and where.
#[derive(Clone, Copy)]
pub struct Task<'a> {
    /// The study.
    pub study: &'a StorageStudy,
    /// The arm.
    pub arm: &'a StorageArm,
    /// Its name in output, which for the A/A control differs from the arm's.
    pub name: &'a str,
    /// Number of the block.
    pub block: usize,
    /// The run's directory.
    pub folder: &'a Path,
    /// Default parent of the arm's directory.
    pub near: &'a Path,
    /// Set by a signal.
    pub stop: &'a AtomicBool,
    /// Shows progress.
    pub show: &'a dyn Fn(&str),
}

/// How it ended.
pub enum CellEnd {
    /// The cell is complete.
    Complete,
    /// The arm cannot run on this machine.
    LeftOut(String),
    /// A signal came.
    Interrupted,
}

/// Measure a cell.
pub fn measure(task: Task<'_>) -> Result<CellEnd, Error> {
    (task.show)("creating its directory");
    let place = match ArmDirectory::make(task.arm, task.near) {
        Ok(place) => place,
        Err(why) => return Ok(CellEnd::LeftOut(why)),
    };
    let limiter = match task.arm.limits.is_empty() {
        true => None,
        false => match place.device().and_then(|(major, minor)| Limiter::new(major, minor)) {
            Ok(limiter) => Some(limiter),
            Err(why) => return Ok(CellEnd::LeftOut(why)),
        },
    };
    let mut log = Log::begin(task.folder, task.name, task.block)?;
    log.add(&CellEvent::Begin { arm: task.name.into(), block: task.block, time: now() })?;
    let mut cell = CellRun { task, log, place: &place, limiter, victims: None };
    let result = cell.measure();
    let stopped = task.stop.load(Ordering::Relaxed);
    let early = match &result {
        _ if stopped => Some("interrupted".to_string()),
        Err(error) => Some(error.to_string()),
        Ok(()) => None,
    };
    cell.log.add(&CellEvent::End { time: now(), early })?;
    match result {
        _ if stopped => Ok(CellEnd::Interrupted),
        Err(error) => Err(error),
        Ok(()) => Ok(CellEnd::Complete),
    }
}

struct CellRun<'a> {
    task: Task<'a>,
    log: Log,
    place: &'a ArmDirectory,
    limiter: Option<Limiter>,
    victims: Option<Victims<'a>>,
}

impl<'a> CellRun<'a> {
    fn stopped(&self) -> bool {
        self.task.stop.load(Ordering::Relaxed)
    }

    fn measure(&mut self) -> Result<(), Error> {
        let study = self.task.study;
        let load = study.background.clone().map(|mut load| {
            load.rate = self.task.arm.rate.unwrap_or(load.rate);
            load.reads = self.task.arm.reads.unwrap_or(load.reads);
            load
        });
        let archive = self.make_archive()?;
        let files = self.place.path().join("files");
        if let Some(load) = &load {
            Engine::check(load).map_err(Error::Usage)?;
            let tree = Tree::of_files(load.files, &load.sizes, load.depth, load.width, study.seed);
            self.make_tree(&tree, &files)?;
            // Do this before limits are set: it waits until the files are on the device.
            if study.cold {
                forget(&files);
            }
        }
        let mut server = match &study.server {
            Some(wanted) => {
                (self.task.show)("starting server");
                Some(Server::start(
                    wanted,
                    self.place.path(),
                    self.task.folder,
                    self.task.name,
                    self.task.block,
                )?)
            }
            None => None,
        };
        self.set_limits(|limit| limit.at.is_none() && limit.after.is_none())?;
        let mut words = Words::default();
        words.set("directory", self.place.path().display());
        if let Some(archive) = &archive {
            words.set("archive", archive.path().display());
        }
        if let Some(server) = &server {
            server.set_words(&mut words);
        }
        let cold = archive.as_ref().filter(|_| study.cold).map(|place| place.path().to_path_buf());
        let os_user = server.as_ref().map(Server::os_user);
        self.victims = Some(Victims::new(study, words, os_user, cold));
        self.without_background()?;
        if self.stopped() {
            return Ok(());
        }
        if let Some(server) = &mut server {
            server.start_load(self.longest())?;
        }
        let recorder =
            Recorder::open(self.task.folder, self.task.name, self.task.block, self.place.path());
        let engine = match &load {
            Some(load) => Some(Engine::start(load, &files, self.longest())?),
            None => None,
        };
        let mut background = WatchedBackground {
            devices: Devices::resolve(&System::live(), self.place.path(), None),
            before: None,
            load: load.as_ref(),
            engine,
            recorder,
            server,
            files: &files,
        };
        let result = self.with_background(&mut background);
        let result = self.end_victims().and(result);
        if let Some(engine) = background.engine.take() {
            if let Ok(Some(work)) = engine.stop() {
                let sample = background.sample(&work);
                self.log.add(&CellEvent::Sample(sample))?;
            }
        }
        let recorded = background.recorder.close();
        let server_ended = background.server.map_or(Ok(()), Server::finish);
        result.and(recorded).and(server_ended)
    }

    /// The longest that the background may run, whatever its victims do.
    fn longest(&self) -> Duration {
        let victims: Duration = self.task.study.victims.iter().map(|victim| victim.limit.0).sum();
        let warm_up = match &self.task.study.background {
            Some(Background { warm_up: WarmUp::After(time), .. }) => *time,
            Some(load) => load.warm_up_max.0,
            None => Duration::ZERO,
        };
        self.task.study.length.0 + warm_up + victims + SPARE
    }

    fn make_archive(&mut self) -> Result<Option<ArmDirectory>, Error> {
        let study = self.task.study;
        let Some(archive) = &study.archive else { return Ok(None) };
        let of_background = study.background.as_ref().map(|load| &load.sizes);
        let Some(sizes) = archive.sizes.as_ref().or(of_background) else { return Ok(None) };
        let place = ArmDirectory::directory(self.task.near).map_err(Error::Failed)?;
        let tree = Tree::of_bytes(archive.size.0, sizes, study.seed + 1);
        (self.task.show)("creating archive");
        check_space(&place, &tree)?;
        tree.make(place.path(), self.task.stop)?;
        Ok(Some(place))
    }

    fn make_tree(&mut self, tree: &Tree, files: &Path) -> Result<(), Error> {
        (self.task.show)(&format!("creating {} files", tree.files()));
        check_space(self.place, tree)?;
        let began = now();
        tree.make(files, self.task.stop)?;
        let seconds = now() - began;
        self.log.add(&CellEvent::Files { files: tree.files(), bytes: tree.bytes(), seconds })
    }

    fn without_background(&mut self) -> Result<(), Error> {
        for number in 0..self.task.study.victims.len() {
            if self.stopped() {
                return Ok(());
            }
            let Some(victims) = &mut self.victims else { return Ok(()) };
            let name = &self.task.study.victims[number].name;
            (self.task.show)(&format!("{name} without background load"));
            victims.start(number, None);
            while victims.running() {
                if self.task.stop.load(Ordering::Relaxed) {
                    victims.stop();
                }
                std::thread::sleep(STEP / 10);
            }
            for line in victims.ended() {
                self.log.add(&line)?;
            }
        }
        Ok(())
    }

    /// Ends a victim that is still running, as after a signal.
    fn end_victims(&mut self) -> Result<(), Error> {
        let Some(victims) = &mut self.victims else { return Ok(()) };
        victims.stop();
        victims.ended().iter().try_for_each(|line| self.log.add(line))
    }

    fn set_limits(&mut self, which: impl Fn(&Limit) -> bool) -> Result<(), Error> {
        let Some(limiter) = &mut self.limiter else { return Ok(()) };
        for limit in self.task.arm.limits.iter().filter(|limit| which(limit)) {
            limiter.set(limit).map_err(Error::Failed)?;
            self.log.add(&CellEvent::Limit { time: now(), text: describe(limit) })?;
        }
        Ok(())
    }

    fn with_background(&mut self, background: &mut WatchedBackground<'_>) -> Result<(), Error> {
        let study = self.task.study;
        let (warm_up, most) = match background.load {
            Some(load) => (load.warm_up, load.warm_up_max.0.as_secs_f64()),
            None => (WarmUp::default(), 0.0),
        };
        let mut watch = warm_up::WarmUpWatch::new(warm_up, most);
        let length = study.length.0.as_secs_f64();
        let mut began: Option<f64> = None;
        let (started, mut written) = (now(), 0);
        let mut limits_set = vec![false; self.task.arm.limits.len()];
        loop {
            let work = match &mut background.engine {
                Some(engine) => engine.work(STEP)?,
                None => {
                    std::thread::sleep(STEP);
                    None
                }
            };
            if let Some(work) = work {
                let sample = background.sample(&work);
                if let Some(engine) = &background.engine {
                    background.recorder.add(&work, engine.directions());
                }
                self.log.add(&CellEvent::Sample(sample.clone()))?;
                if let Some(why) = work.errors.first() {
                    let error = std::io::Error::from_raw_os_error(*why as i32);
                    return Err(Error::Failed(format!("the background load failed: {error}")));
                }
                written += sample.device.map_or(0, |device| device.written_bytes);
                match began {
                    None => {
                        if let Some(why) = watch.add(&sample) {
                            (began, written) = (Some(sample.to), 0);
                            self.log.add(&CellEvent::Measuring { time: sample.to, why })?;
                        }
                    }
                    Some(began) => self.progress(&sample, sample.to - began, length),
                }
                self.drop_owed(background, &work)?;
            } else if background.engine.is_none() && began.is_none() {
                let WarmUp::After(time) = warm_up else { continue };
                if now() - started >= time.as_secs_f64() {
                    began = Some(now());
                    let why = format!("after {:.0} s", time.as_secs_f64());
                    self.log.add(&CellEvent::Measuring { time: now(), why })?;
                }
            }
            for second in background.server.iter_mut().flat_map(Server::seconds) {
                self.log.add(&CellEvent::Transactions(second))?;
                if let (None, Some(began)) = (background.load, began) {
                    self.server_progress(&second, second.to - began, length);
                }
            }
            for line in self.victims.iter_mut().flat_map(Victims::ended) {
                if let CellEvent::Victim { name, ran, .. } = &line {
                    let text = format!("{name} ended after {:.1} s", ran.seconds);
                    background.recorder.mark("victim", &text);
                }
                self.log.add(&line)?;
            }
            if self.stopped() {
                return Ok(());
            }
            let Some(began) = began else { continue };
            let passed = now() - began;
            self.due_limits(passed, written, &mut limits_set, &mut background.recorder)?;
            let Some(victims) = &mut self.victims else { continue };
            victims.start_due(passed);
            if passed >= length && victims.is_idle() {
                return Ok(());
            }
        }
    }

    fn due_limits(
        &mut self,
        passed: f64,
        written: u64,
        set: &mut [bool],
        recorder: &mut Recorder,
    ) -> Result<(), Error> {
        let Some(limiter) = &mut self.limiter else { return Ok(()) };
        for (limit, set) in self.task.arm.limits.iter().zip(set) {
            let at = limit.at.is_some_and(|at| passed >= at.0.as_secs_f64());
            let after = limit.after.is_some_and(|bytes| written >= bytes.0);
            if (at || after) && !*set {
                *set = true;
                limiter.set(limit).map_err(Error::Failed)?;
                recorder.mark("limit", &describe(limit));
                self.log.add(&CellEvent::Limit { time: now(), text: describe(limit) })?;
            }
        }
        Ok(())
    }

    /// Restarts fio when more operations are owed than the study allows to be made up.
    fn drop_owed(
        &mut self,
        background: &mut WatchedBackground<'_>,
        work: &Work,
    ) -> Result<(), Error> {
        let Some(load) = background.load.filter(|load| load.owed == Owed::Dropped) else {
            return Ok(());
        };
        if (work.owed as f64) < load.rate * load.owed_limit.0.as_secs_f64() {
            return Ok(());
        }
        let Some(engine) = background.engine.take() else { return Ok(()) };
        let mut owed = work.owed;
        if let Some(work) = engine.stop()? {
            owed = work.owed;
            let sample = background.sample(&work);
            self.log.add(&CellEvent::Sample(sample))?;
        }
        self.log.add(&CellEvent::Dropped { time: now(), operations: owed })?;
        background.engine = Some(Engine::start(load, background.files, self.longest())?);
        Ok(())
    }

    fn server_progress(&self, second: &Transactions, passed: f64, length: f64) {
        let victim = self.victims.as_ref().and_then(Victims::shown).unwrap_or_default();
        (self.task.show)(&format!(
            "{passed:.0} of {length:.0} s: {:.0} transactions/s, {} on average{victim}",
            second.rate,
            view::units::duration(second.mean),
        ));
    }

    fn progress(&self, sample: &LoadSample, passed: f64, length: f64) {
        let victim = self.victims.as_ref().and_then(Victims::shown).unwrap_or_default();
        let p99 = sample.responses.map_or(0.0, |responses| responses.p99);
        (self.task.show)(&format!(
            "{passed:.0} of {length:.0} s: {:.0} of {:.0} op/s, p99 {}, {} owed, {} dirty{victim}",
            sample.rate(),
            sample.wanted as f64 / sample.seconds(),
            view::units::duration(p99),
            sample.owed,
            view::units::bytes(sample.memory.dirty as f64),
        ));
    }
}

/// The background and all that is observed with it.
struct WatchedBackground<'a> {
    devices: Devices,
    before: Option<Reading>,
    load: Option<&'a Background>,
    engine: Option<Engine>,
    recorder: Recorder,
    server: Option<Server>,
    files: &'a Path,
}

impl WatchedBackground<'_> {
    fn sample(&mut self, work: &Work) -> LoadSample {
        let reading = Reading::of_devices(&self.devices);
        let device = self.before.replace(reading.clone()).and_then(|before| {
            let location = self.devices.locations.first()?;
            let number = self.devices.under(location).first()?.number;
            let counters = |reading: &Reading| reading.devices.get(&number)?.as_ref().ok().cloned();
            Some(between(&counters(&before)?, &counters(&reading)?))
        });
        LoadSample::from_work(work, device, Memory::now())
    }
}

fn between(then: &DiskCounters, now: &DiskCounters) -> Device {
    let more = |of: fn(&DiskCounters) -> u64| of(now).saturating_sub(of(then));
    Device {
        reads: more(|counters| counters.reads),
        writes: more(|counters| counters.writes),
        read_bytes: more(|counters| counters.sectors_read) * 512,
        written_bytes: more(|counters| counters.sectors_written) * 512,
        busy_seconds: more(|counters| counters.busy_ms) as f64 * 1e-3,
    }
}

fn check_space(place: &ArmDirectory, tree: &Tree) -> Result<(), Error> {
    let free = place.free_bytes().map_err(Error::Failed)?;
    let wanted = tree.bytes() + tree.bytes() / 20 + SPACE_SPARE;
    match free >= wanted {
        true => Ok(()),
        false => Err(Error::Failed(format!(
            "{}: {} MB free, about {} MB needed for {} files; choose another directory with --directory, or \
             use fewer files",
            place.path().display(),
            free >> 20,
            wanted >> 20,
            tree.files()
        ))),
    }
}
