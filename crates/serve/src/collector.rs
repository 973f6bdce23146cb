// SPDX-License-Identifier: PostgreSQL
//! The only thread that reads the server: it takes an interval when one is due, keeps the last few minutes, and
//! answers requests. Therefore many readers cost no more than one.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use hyper::StatusCode;
use segment::{Frame, Segment};

use super::history::LiveHistory;
use super::metrics::{self, Family, NamedStatements, Present, SettingMetrics};
use super::otlp::Otlp;
use super::page::{self, Pace};
use super::request::{HttpReply, Request, Resource};
use super::run::Run;
use error::Error;
use live::follower::{Figures, FollowOptions, Follower, Step};
use live::machine::Processors;
use live::settings::SettingsWatch;
use live::slow_executions::{self, RecentSlowExecutions};
use live::target::SegmentSource;
use view::blocking::{Forest, Sources};
use view::HostMetrics;

/// Minimum time between two readings for metrics.
const FRESH: Duration = Duration::from_millis(100);
/// How often to read statements while nobody views the page.
const STATEMENTS: Duration = Duration::from_secs(10);
/// How long after a request the page counts as viewed.
const WATCHED: Duration = Duration::from_secs(5);

/// Settings from the command line.
#[derive(Debug, Clone)]
pub struct CollectorSettings {
    /// Length of an interval.
    pub interval: Duration,
    /// How long intervals are kept.
    pub history: Duration,
    /// Number of named statements in the metrics; 0 for no statements.
    pub statements: usize,
    /// Whether the metrics have the server's health, too.
    pub health: bool,
    /// Whether the page has parameters of the slowest executions.
    pub parameters: bool,
}

/// Who blocks whom among the sessions of a frame, without statements and names of locks; `None` if nobody is blocked, or if it
/// cannot be read.
fn blocked(segment: &Segment, frame: &Frame) -> Option<Forest> {
    let blocked = segment.blocked().ok().filter(|blocked| !blocked.is_empty())?;
    Some(Forest::build(&Sources {
        blocked: &blocked,
        sessions: &frame.sessions,
        // How long each has waited is not shown.
        tick: 0,
        clock: segment.clock(),
        last: &HashMap::new(),
        statements: None,
        names: &HashMap::new(),
    }))
}

/// Minimum number of columns of the heat map.
const COLUMNS: u32 = 60;

/// Reads the server and answers requests.
#[derive(Debug)]
pub struct Collector {
    follower: Follower,
    place: SegmentSource,
    run: Option<Run>,
    history: LiveHistory,
    /// With `--parameters`.
    slow: Option<RecentSlowExecutions>,
    named: Option<NamedStatements>,
    /// Whether the metrics have the server's health, too.
    health: bool,
    processors: Option<Processors>,
    pace: Pace,
    interval: Duration,
    /// Start of this process, ns; distinguishes its ETags from those of an earlier process.
    started: u64,
    /// Number of readings.
    look: u64,
    kept: Vec<(Resource, u64, HttpReply)>,
    families: Option<(Instant, Option<f64>, Vec<Family>)>,
    otlp: Option<Otlp>,
    statements_read: Instant,
    asked: Option<Instant>,
    settings: Option<WatchedSettings>,
}

/// The server's settings, read from the first request for the page on, or from the start for the metrics of its health.
#[derive(Debug)]
struct WatchedSettings {
    watch: SettingsWatch,
    /// For the metrics; `None`: the server has not answered yet.
    seen: Option<SettingMetrics>,
}

impl Collector {
    /// A collector for the segment at `place`, which also sends its readings by `otlp`.
    pub fn new(
        place: SegmentSource,
        settings: &CollectorSettings,
        otlp: Option<Otlp>,
    ) -> Collector {
        let detail = (settings.history / COLUMNS).max(settings.interval);
        let wanted = FollowOptions { figures: Figures::Frames, ..FollowOptions::default() };
        Collector {
            follower: Follower::new(place.clone(), wanted),
            place,
            run: None,
            history: LiveHistory::new(settings.history, detail),
            slow: settings.parameters.then(RecentSlowExecutions::default),
            named: (settings.statements > 0).then(|| NamedStatements::new(settings.statements)),
            health: settings.health,
            processors: Processors::now(),
            pace: Pace { interval: settings.interval.as_secs_f64(), detail: detail.as_secs_f64() },
            interval: settings.interval,
            started: segment::clock::realtime_ns(),
            look: 0,
            kept: Vec::new(),
            families: None,
            otlp,
            statements_read: Instant::now(),
            asked: None,
            settings: None,
        }
    }

    /// Reads and answers until the channel of requests is closed.
    pub fn work(mut self, requests: &Receiver<Request>) {
        // The first request needs a reading.
        self.look();
        let mut due = Instant::now() + self.interval;
        loop {
            let mut next = self.otlp.as_ref().map_or(due, |otlp| otlp.due().min(due));
            if self.slow.is_some() {
                next = next.min(Instant::now() + slow_executions::RENEW);
            }
            match requests.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(request) => {
                    let unavailable =
                        |error: Error| (StatusCode::SERVICE_UNAVAILABLE, error.to_string());
                    let answer = self.answer(request.what).map_err(unavailable);
                    // Fails if the client has disconnected.
                    let _ = request.answer.send(answer);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.finish(),
            }
            self.follow_slow_executions();
            let now = Instant::now();
            if now >= due {
                self.look();
                // Missed intervals are not made up for: the next one is longer.
                due = (due + self.interval).max(now + self.interval / 2);
            }
            if self.otlp.as_ref().is_some_and(|otlp| now >= otlp.due()) {
                self.send();
            }
        }
    }

    /// Queues a reading of the metrics for the OTLP receiver.
    fn send(&mut self) {
        if let Some(otlp) = &mut self.otlp {
            otlp.begin();
        }
        let read = self.collect();
        let counted = self.run.as_ref().map(Run::counted);
        // Errors are reported by the next reading.
        if let (Some(otlp), Ok((_, families))) = (&mut self.otlp, read) {
            otlp.reading(&families, counted);
        }
    }

    /// Sends the last readings and events.
    fn finish(mut self) {
        if self.otlp.is_some() {
            self.look();
            self.send();
        }
        if let Some(otlp) = self.otlp {
            otlp.finish();
        }
    }

    /// Reads slow executions, so that the sessions do not overwrite them.
    fn follow_slow_executions(&mut self) {
        if let (Some(slow), Some(segment)) = (&mut self.slow, self.follower.segment()) {
            slow.follow(segment).unwrap_or_else(|error| view::escape::say(&error.to_string()));
        }
    }

    /// Keeps the slowest executions since the last reading.
    fn keep_slow_executions(&mut self) {
        self.follow_slow_executions();
        self.slow.iter_mut().for_each(RecentSlowExecutions::keep);
    }

    fn look(&mut self) {
        self.look += 1;
        self.kept.clear();
        let watched = self.asked.is_some_and(|asked| asked.elapsed() < WATCHED);
        if watched || self.statements_read.elapsed() >= STATEMENTS {
            self.read_statements();
        }
        for step in self.follower.step(false) {
            match step {
                Step::Attached { .. } => {
                    if let Some(settings) = &mut self.settings {
                        settings.watch.restarted();
                    }
                    if let (Some(slow), Some(segment)) = (&mut self.slow, self.follower.segment()) {
                        slow.attach(segment)
                            .unwrap_or_else(|error| view::escape::say(&error.to_string()));
                    }
                    self.run = Run::open(&self.place).ok();
                    self.processors = Processors::now();
                    if let Some(header) = self.follower.segment().map(Segment::header) {
                        if let Some(otlp) = &mut self.otlp {
                            otlp.attached(header);
                        }
                        self.history.restarted(&format!("{}, {}", header.server, header.host));
                    }
                    if let Some(run) = &self.run {
                        self.history.begin_statements(run.statements_at_start(), run.statements());
                    }
                }
                Step::Frame(taken) => {
                    let host = self.host();
                    let statements = self.run.as_ref().and_then(Run::statements).cloned();
                    self.history.push(&taken.frame, host, statements);
                    let forest = self.follower.segment().and_then(|of| blocked(of, &taken.frame));
                    if let Some(forest) = forest {
                        self.history.blocked(&forest);
                    }
                    if taken.reset {
                        let time = taken.frame.realtime_ns as f64 * 1e-9;
                        self.history.mark(time, "reset", "totals were reset");
                    }
                }
                Step::Events(rows) => {
                    if let Some(otlp) = &self.otlp {
                        otlp.events(&rows);
                    }
                    self.history.note(rows);
                }
                Step::Ended(why) => self.ended(&why),
                Step::Absent(why) => self.ended(&why.to_string()),
                Step::Interval(_) => {}
            }
        }
        self.keep_slow_executions();
        self.watch_settings();
    }

    fn watch_settings(&mut self) {
        if self.settings.is_none() && (self.health || self.asked.is_some()) {
            let segment = self.follower.segment();
            let watch = segment.and_then(|of| SettingsWatch::of_segment(&self.place, of));
            self.settings = watch.map(|watch| WatchedSettings { watch, seen: None });
        }
        let Some(settings) = self.settings.as_mut().filter(|_| self.run.is_some()) else { return };
        for reading in settings.watch.poll(Instant::now()) {
            if let Some(now) = reading.configuration {
                let known = settings.seen.unwrap_or_else(|| SettingMetrics::begin(now));
                settings.seen = Some(known.after(now, reading.changes.len()));
            }
            self.history.changed_settings(reading.changes);
        }
    }

    fn ended(&mut self, why: &str) {
        self.follow_slow_executions();
        self.slow.iter_mut().for_each(RecentSlowExecutions::detach);
        if let Some(mut run) = self.run.take() {
            // The last figures of its server. If they cannot be read, the previous reading is the last one.
            let _ = run.read_statements();
            if let Some(mut all) = self.history.statements(run.statements()) {
                all.plans = run.plans().unwrap_or_default();
                self.history.mark_plans(&all);
            }
            self.history.end_statements(run.statements());
        }
        self.families = None;
        self.history.silent(why);
    }

    fn read_statements(&mut self) {
        self.statements_read = Instant::now();
        if let Some(run) = &mut self.run {
            // If it fails, the next reading reports why.
            let _ = run.read_statements();
        }
    }

    fn host(&mut self) -> Option<HostMetrics> {
        let before = std::mem::replace(&mut self.processors, Processors::now());
        Some(self.processors?.used(&before?))
    }

    fn answer(&mut self, what: Resource) -> Result<HttpReply, Error> {
        match what {
            Resource::Metrics(form) => {
                let (created, families) = self.metrics()?;
                let body = metrics::write(families, form, created).into();
                Ok(HttpReply { body, tag: None, policy: None })
            }
            Resource::Page | Resource::Report | Resource::ReportWithParts => {
                self.asked = Some(Instant::now());
                let known =
                    self.kept.iter().find(|(of, look, _)| *of == what && *look == self.look);
                if let Some((_, _, answer)) = known {
                    return Ok(answer.clone());
                }
                let answer = self.make(what)?;
                self.kept.push((what, self.look, answer.clone()));
                Ok(answer)
            }
        }
    }

    fn make(&mut self, what: Resource) -> Result<HttpReply, Error> {
        let latest = self.run.as_ref().and_then(Run::statements);
        let latest = latest.cloned();
        // If this cannot be read, the page still has the rest.
        let now = self.run.as_mut().map(|run| page::LiveConditions {
            blocking: run.blocking().ok(),
            vacuum: run.vacuum(),
            plans: run.plans().unwrap_or_default(),
            slow_executions: None,
        });
        let now =
            page::LiveConditions { slow_executions: self.slow.as_ref(), ..now.unwrap_or_default() };
        let mut document = page::document(&self.history, latest.as_ref(), now, self.pace)?;
        if let (Resource::Report, Some(document)) = (what, &mut document) {
            document.parts = None;
        }
        let tag = Some(format!("\"{:x}-{}\"", self.started, self.look));
        let why = self.history.silence().unwrap_or("the first interval has not ended");
        match what {
            Resource::Report | Resource::ReportWithParts => {
                HttpReply::report(document.as_ref(), why, tag)
            }
            _ => HttpReply::page(document.as_ref(), why),
        }
    }

    /// The metrics, at most [`FRESH`] old.
    fn metrics(&mut self) -> Result<(Option<f64>, &[Family]), Error> {
        let stale = |read: &(Instant, Option<f64>, Vec<Family>)| read.0.elapsed() >= FRESH;
        if self.families.as_ref().is_none_or(stale) {
            let (created, families) = self.collect()?;
            self.families = Some((Instant::now(), created, families));
        }
        let families = self.families.as_ref();
        Ok(families.map_or((None, &[]), |(_, created, families)| (*created, families)))
    }

    fn collect(&mut self) -> Result<(Option<f64>, Vec<Family>), Error> {
        let delivery = self.otlp.as_ref().map(Otlp::delivery);
        let Some(run) = &mut self.run else {
            return Ok((None, metrics::collect(None, delivery.as_ref())));
        };
        let frame = run.frame()?;
        let events = run.events()?;
        let mut statements = None;
        if let Some(named) = &mut self.named {
            run.read_statements()?;
            statements = run.statements_so_far();
            if let Some(statements) = &statements {
                named.note(statements);
            }
        }
        let statements = statements.as_ref().zip(self.named.as_ref());
        let health = if self.health { run.vacuum() } else { None };
        let settings = self.settings.as_ref().and_then(|settings| settings.seen);
        let settings = settings.filter(|_| self.health);
        let health = health.as_ref();
        let present = Present { frame: &frame, events, statements, health, settings };
        Ok((Some(run.counted()), metrics::collect(Some(&present), delivery.as_ref())))
    }
}
