// SPDX-License-Identifier: PostgreSQL
//! A machine with a recorder, a disk, a clock and object storage, in one thread.

use super::history::{Action, History, Random};
use super::memory;
use super::model::{BucketView, Interval, Model};
use super::recorder::{about, frame, server, Dice, MIDNIGHT, SECOND};
use super::storage::Storage;
use faulty::{arm, Armed, FaultPlan, Unsynced};
use object_store::path::Path as ObjectPath;
use recording::{About, Batch, MarkRow, RetentionPolicy, RowBuilder, Writer};
use segment::interval::ClockInfo;
use segment::Frame;
use ship::layout::Origin;
use ship::{Bucket, Pass, Shipped, Spool};
use std::collections::BTreeSet;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The clock's rate: ticks are nanoseconds.
const RATE: f64 = 1e9;
/// Limit of the memory of the recorder, readers and object storage together, bytes.
const MEMORY: i64 = 8 << 20;
const HOUR: i64 = 3600 * SECOND;

/// The trouble that the recorder's calls will meet.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    Kill { call: u64, power: bool },
    Full { bytes: u64 },
}

struct Recorder {
    writer: Writer,
    rows: RowBuilder,
    pass: Option<Pass>,
}

struct World<'h> {
    history: &'h History,
    folder: tempfile::TempDir,
    storage: Storage,
    reader: Bucket,
    random: Random,
    /// The time of day, and the time since boot.
    wall_us: i64,
    ran_us: i64,
    /// The time of day that the recorder relies on since its first interval, and the latest that any recorder relied
    /// on.
    followed: Option<(i64, i64)>,
    /// The time of day of the last interval, or of the recorder's start.
    minute_us: i64,
    trusted_us: i64,
    base: Frame,
    server: u32,
    recorder: Option<Recorder>,
    trouble: Option<Trouble>,
    unsynced: Unsynced,
    model: Model,
    /// The intervals in the bucket after this many changes, and at the previous check.
    shipped: BTreeSet<u64>,
    changes: u64,
    seen: BTreeSet<u64>,
    /// Whether the bucket does not have all files yet.
    between: bool,
    /// Intervals that may be in a journal. When they are moved to files, the files are not on disk at first.
    journal: BTreeSet<u64>,
    /// The values since the last detail.
    values: u64,
}

/// Runs a history; the error describes the violation, and after which action it occurred.
pub fn run(history: &History) -> Result<(), String> {
    let begin = memory::begin();
    let run = || {
        let mut world = World::new(history);
        for (at, action) in history.actions.iter().enumerate() {
            if !world.act(action) {
                continue;
            }
            world.check().map_err(|error| format!("after action {at}, {action:?}: {error}"))?;
        }
        world.end().map_err(|error| format!("at the end: {error}"))?;
        let most = memory::most() - begin;
        (most < MEMORY).then_some(()).ok_or_else(|| format!("it used {most} bytes"))
    };
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        Err(format!("panic: {}", text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("?")))
    })
}

/// The files below a directory.
fn files(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => files(&path, into),
            path => into.push(path),
        }
    }
}

fn origin() -> Origin {
    Origin::new("main", "machine").unwrap()
}

fn bucket(store: std::sync::Arc<dyn object_store::ObjectStore>) -> Bucket {
    Bucket::of_store(store, ObjectPath::default(), "memory".into()).unwrap()
}

impl World<'_> {
    fn new(history: &History) -> World<'_> {
        let shared = Path::new("/dev/shm");
        let folder = if shared.is_dir() {
            tempfile::tempdir_in(shared).unwrap()
        } else {
            tempfile::tempdir().unwrap()
        };
        let storage = Storage::new();
        let reader = bucket(storage.objects());
        let mut base = frame(MIDNIGHT, &mut Dice(1));
        base.statistics.clear();
        base.clock = ClockInfo { ticks_per_second: RATE, ..base.clock };
        let begin = MIDNIGHT + 50 * 60 * SECOND;
        World {
            history,
            folder,
            storage,
            reader,
            random: Random::new(history.seed ^ 0xA5A5),
            wall_us: begin,
            ran_us: 0,
            followed: None,
            minute_us: begin,
            trusted_us: begin,
            base,
            server: 0,
            recorder: None,
            trouble: None,
            unsynced: Unsynced::begin(),
            model: Model::default(),
            shipped: BTreeSet::new(),
            changes: 0,
            seen: BTreeSet::new(),
            between: false,
            journal: BTreeSet::new(),
            values: 0,
        }
    }

    fn spool(&self) -> PathBuf {
        self.folder.path().join("spool")
    }

    fn about(&self) -> About {
        About { begun_us: self.wall_us, ..about() }
    }

    fn pass_time(&mut self, us: i64) {
        self.wall_us += us;
        self.ran_us += us;
        if us >= 30 * SECOND {
            self.write_back();
        }
    }

    fn write_back(&mut self) {
        self.unsynced.write_back();
        self.model.intervals.values_mut().for_each(|interval| interval.on_disk = true);
    }

    /// Returns whether files or objects may have changed.
    fn act(&mut self, action: &Action) -> bool {
        match action {
            Action::Pass { seconds } => self.pass_time(seconds * SECOND),
            Action::SetClock { seconds } => self.wall_us += seconds * SECOND,
            Action::Kill { call } => {
                self.trouble = Some(Trouble::Kill { call: *call, power: false })
            }
            Action::LosePower { call } => {
                self.trouble = Some(Trouble::Kill { call: *call, power: true });
            }
            Action::Fill { bytes } => self.trouble = Some(Trouble::Full { bytes: *bytes }),
            Action::Free => self.trouble = None,
            Action::WriteBack => self.write_back(),
            Action::Storage(behaviours) => self.storage.set(behaviours),
            Action::RestartServer => self.server += 1,
            Action::Intervals { .. } | Action::End { .. } | Action::Ship { .. } => {
                self.with_trouble(|world| world.record(action));
                return true;
            }
        }
        false
    }

    /// Does something that may be killed, or may find the disk full.
    fn with_trouble(&mut self, what: impl FnOnce(&mut Self)) {
        let armed: Armed = arm(match self.trouble {
            None => FaultPlan::COUNT,
            Some(Trouble::Kill { call, .. }) => FaultPlan::kill(call),
            Some(Trouble::Full { bytes }) => FaultPlan::full_after(bytes),
        });
        what(self);
        let hit = armed.hit().is_some();
        match &mut self.trouble {
            Some(Trouble::Kill { power, .. }) if hit => {
                let power = *power;
                BucketView::Kill.count(true);
                BucketView::Loss.count(power);
                // Whatever it still does has no effect.
                self.recorder = None;
                self.trouble = None;
                drop(armed);
                if power {
                    self.lose();
                }
            }
            Some(Trouble::Kill { call, .. }) => *call -= armed.calls().min(*call - 1),
            Some(Trouble::Full { bytes }) => {
                BucketView::Full.count(hit);
                *bytes = armed.space().unwrap_or(*bytes);
            }
            None => {}
        }
    }

    /// The contents of the journal are about to be moved to files.
    fn move_journal(&mut self) {
        for number in &self.journal {
            if let Some(interval) = self.model.intervals.get_mut(number) {
                interval.on_disk = false;
            }
        }
    }

    fn lose(&mut self) {
        self.unsynced.lose(self.folder.path(), |_| true).unwrap();
        for interval in self.model.intervals.values_mut().filter(|interval| !interval.on_disk) {
            interval.may_be_lost = true;
        }
        self.model.in_part = true;
        // The values of a detail that will never be written.
        self.values = 0;
    }

    fn record(&mut self, action: &Action) {
        if self.recorder.is_none() && self.start().is_err() {
            return;
        }
        // Shipped minutes are merged by the recording that continues them.
        let merges = *action == (Action::End { merge: true }) && !self.history.settings.ships;
        if matches!(action, Action::End { .. }) {
            self.move_journal();
        }
        let done = match action {
            Action::Intervals { count, milliseconds } => {
                (0..*count).try_for_each(|_| self.interval(*milliseconds))
            }
            Action::Ship { passes, files } => {
                self.ship(*passes, *files);
                Ok(())
            }
            _ => match self.recorder.take() {
                Some(recorder) if merges => recorder.writer.close().map(drop),
                Some(recorder) => recorder.writer.pause().map(drop),
                None => Ok(()),
            },
        };
        if done.is_err() {
            // A recorder that cannot write ends at once.
            self.recorder = None;
        }
    }

    fn start(&mut self) -> Result<(), String> {
        let settings = &self.history.settings;
        let hours = |n: u64| Duration::from_secs(n * 3600);
        let retention = settings.keep.filter(|_| !settings.ships).map(hours);
        let policy = RetentionPolicy {
            details: hours(settings.details),
            tens: hours(settings.tens),
            sixties: hours(settings.sixties),
            retention,
        };
        let text = |error: &dyn std::error::Error| error.to_string();
        let spool = Spool::open(&self.spool()).map_err(|error| text(&error))?;
        self.move_journal();
        let writer = Writer::open(&spool.directory, self.about(), policy);
        let mut writer = writer.map_err(|error| text(&error))?;
        self.journal.clear();
        writer.threaded = false;
        let pass = settings.ships.then(|| {
            let who = spool.claimant("machine");
            let bucket = bucket(std::sync::Arc::new(self.storage.clone()));
            let pass = Pass::new(bucket, origin(), &spool, who, writer.files(), None);
            pass.map(|mut pass| {
                pass.keep = settings.keep.map(hours);
                pass.grace = Duration::from_secs(settings.grace);
                pass
            })
        });
        let pass = pass.transpose().map_err(|error| text(&error))?;
        self.followed = None;
        self.minute_us = self.wall_us;
        self.trusted_us = self.trusted_us.max(self.wall_us);
        self.server += 1;
        self.values = 0;
        let next = writer.next_frame();
        // The number of a lost interval may be used again.
        let last = self.model.intervals.keys().last().copied().unwrap_or(0);
        let lost =
            |number: &&u64| !self.is_kept(**number) || self.model.intervals[number].may_be_lost;
        let lost: Vec<u64> =
            self.model.intervals.range(next..).map(|entry| entry.0).filter(lost).copied().collect();
        lost.iter().for_each(|number| drop(self.model.intervals.remove(number)));
        let last = self.model.intervals.keys().last().copied().unwrap_or(0).min(last);
        assert!(next > last, "after interval {last} comes {next}");
        let mut recorder = Recorder { writer, rows: RowBuilder::new(), pass };
        let servers = vec![server(self.server, self.wall_us)];
        let pushed = recorder.writer.push(Batch { servers, ..Batch::default() });
        pushed.map_err(|error| text(&error))?;
        self.recorder = Some(recorder);
        Ok(())
    }

    fn interval(&mut self, milliseconds: i64) -> Result<(), recording::Error> {
        self.pass_time(milliseconds * 1000);
        let (wall_us, ran_us, server) = (self.wall_us, self.ran_us, self.server);
        let mut values = |most: u64| -> Vec<u64> {
            (0..1 + self.random.below(3)).map(|_| 1 + self.random.below(most)).collect()
        };
        let (cpu, handle) = (values(1 << 30), values(1 << 20));
        let minute = |time_us: i64| time_us.div_euclid(60 * SECOND);
        if minute(self.minute_us) != minute(wall_us) {
            self.move_journal();
        }
        // Old hours are removed before the recorder is killed.
        self.trust();
        let Some(recorder) = &mut self.recorder else { return Ok(()) };
        let mut interval = Interval {
            time_us: wall_us,
            length_ns: milliseconds as u64 * 1_000_000 + self.random.below(1000),
            server,
            cpu,
            handle,
            details: 0,
            on_disk: false,
            may_be_lost: false,
        };
        self.values += (interval.cpu.len() + interval.handle.len()) as u64;
        let frame = Frame {
            realtime_ns: wall_us as u64 * 1000,
            monotonic_ns: ran_us as u64 * 1000,
            ticks: interval.length_ns,
            wall: interval.cpu.iter().sum(),
            statistics: interval.statistics(),
            ..self.base.clone()
        };
        let number = recorder.writer.next_frame();
        let mut batch = recorder.rows.frame(&frame, number, server);
        batch.marks.push(MarkRow { text: number.to_string().into(), ..MarkRow::default() });
        if number.is_multiple_of(5) {
            batch.histograms = recorder.rows.histograms(number);
            interval.details = std::mem::take(&mut self.values);
        }
        batch.stamp(number, wall_us);
        recorder.writer.push(batch)?;
        if minute(self.minute_us) != minute(wall_us) {
            self.journal.clear();
        }
        self.minute_us = wall_us;
        self.journal.insert(number);
        self.model.intervals.insert(number, interval);
        Ok(())
    }

    /// The time that retention may rely on: the time of day, except that it does not leap while a recorder runs.
    fn trust(&mut self) {
        let (then_us, ran_us) = self.followed.unwrap_or((self.wall_us, self.ran_us));
        let expected = then_us + self.ran_us - ran_us;
        let leaps = self.wall_us > expected + 600 * SECOND;
        let now_us = if leaps { expected } else { self.wall_us };
        self.followed = Some((now_us, self.ran_us));
        self.trusted_us = self.trusted_us.max(now_us);
    }

    fn ship(&mut self, passes: u64, files: usize) {
        for _ in 0..passes {
            let Some(pass) = self.recorder.as_mut().and_then(|recorder| recorder.pass.as_mut())
            else {
                return;
            };
            pass.most = files;
            let passed = pass.run(&|| self.wall_us);
            BucketView::Sent.count(passed.sent > 0);
            BucketView::Refused.count(passed.problem.is_some());
            BucketView::Removed.count(passed.removed > 0);
            self.between = passed.more || passed.problem.is_some();
        }
    }

    /// Whether a reader must find this interval in the recording.
    fn is_kept(&self, number: u64) -> bool {
        let Some(interval) = self.model.intervals.get(&number) else { return false };
        let Some(keep) = self.history.settings.keep else { return true };
        let old = interval.time_us.div_euclid(HOUR) * HOUR + HOUR + keep as i64 * HOUR;
        old - HOUR > self.trusted_us
    }

    fn check(&mut self) -> Result<(), String> {
        let lied = self.storage.lied();
        BucketView::Lie.count(lied);
        let local =
            self.model.compare(&self.spool(), false, false).map_err(|e| format!("spool: {e}"))?;
        let changes = self.storage.changes();
        if changes != self.changes {
            self.shipped = self.fetch(lied).map_err(|e| format!("bucket: {e}"))?;
            self.changes = changes;
        }
        let shipped = &self.shipped;
        for number in self.model.intervals.keys() {
            let there = local.intervals.contains(number)
                || !self.is_kept(*number) && (!self.history.settings.ships || lied)
                || shipped.contains(number);
            BucketView::Forgotten.count(!local.intervals.contains(number));
            let lost = self.model.intervals[number].may_be_lost;
            if !there && !lost {
                return Err(format!("interval {number} is missing"));
            }
        }
        let before = std::mem::replace(&mut self.seen, self.shipped.clone());
        let removed = before.difference(&self.shipped).next().filter(|_| !lied);
        removed.map_or(Ok(()), |number| Err(format!("interval {number} left the bucket")))
    }

    /// The intervals that a reader finds in the bucket.
    fn fetch(&self, lied: bool) -> Result<BTreeSet<u64>, String> {
        if !self.history.settings.ships || self.reader.list("recordings").unwrap().is_empty() {
            return Ok(BTreeSet::new());
        }
        let reader = bucket(self.storage.objects());
        let shipped = Shipped::find(reader, None, None).map_err(|error| error.to_string())?;
        let into = self.folder.path().join("fetched");
        let _ = std::fs::remove_dir_all(&into);
        std::fs::create_dir(&into).unwrap();
        shipped.copy(i64::MIN, i64::MAX, &into).map_err(|error| error.to_string())?;
        Ok(self.model.compare(&into, lied, self.between)?.intervals)
    }

    /// All troubles end, and then everything must be there.
    fn end(&mut self) -> Result<(), String> {
        self.trouble = None;
        self.storage.set(&[]);
        self.record(&Action::Ship { passes: 0, files: 200 });
        self.check()?;
        self.pass_time(61 * SECOND);
        self.record(&Action::Intervals { count: 1, milliseconds: 1000 });
        // The last minute is in the journal, and minutes may wait to be merged with their hour.
        let Some(recorder) = self.recorder.take() else { return Err("it does not start".into()) };
        recorder.writer.pause().map_err(|error| error.to_string())?;
        self.between = false;
        if let Some(mut pass) = recorder.pass {
            pass.most = usize::MAX;
            // The second pass removes files that the first one has replaced.
            for _ in 0..2 {
                if let Some(error) = pass.run(&|| self.wall_us).problem {
                    return Err(error.to_string());
                }
            }
        }
        self.check()?;
        let mut left = Vec::new();
        files(&self.spool(), &mut left);
        let unfinished = |path: &&PathBuf| {
            let name = path.to_string_lossy();
            [".new", ".log", "commit.json"].iter().any(|end| name.ends_with(end))
                && !path.starts_with(self.spool().join(recording::SHIP))
        };
        if let Some(path) = left.iter().find(unfinished) {
            return Err(format!("{} is left", path.display()));
        }
        if self.history.settings.ships && !self.storage.lied() {
            let absent = |number: &&u64| !self.shipped.contains(number);
            let lost = |number: &u64| self.model.intervals[number].may_be_lost;
            let mut absent = self.model.intervals.keys().filter(absent);
            if let Some(number) = absent.find(|number| !lost(number)) {
                return Err(format!("interval {number} did not arrive"));
            }
        }
        Ok(())
    }
}
