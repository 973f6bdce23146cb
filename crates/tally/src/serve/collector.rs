// SPDX-License-Identifier: PostgreSQL
//! The one thread that looks at the server: it takes an interval each time one is due, keeps the
//! last minutes, and answers whoever asks. So many readers cost no more looks than one, and the
//! server nothing.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::Arc;
use std::time::{Duration, Instant};

use segment::SegmentPath;
use tokio::sync::oneshot;

use super::history::History;
use super::metrics::{self, Family, Form, NamedStatements, Present};
use super::page::{self, Pace, Page};
use super::run::Run;
use error::Error;
use live::machine::Processors;
use live::source::{Found, Source};
use view::escape;
use view::HostMetrics;

/// Metrics are read anew for each scraper, but not more often than this.
const FRESH: Duration = Duration::from_millis(100);
/// How often the statements are read while nobody looks.
const STATEMENTS: Duration = Duration::from_secs(10);
/// For how long somebody is taken to be looking after having asked.
const WATCHED: Duration = Duration::from_secs(5);

/// What can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The page.
    Page,
    /// The report that it shows.
    Report,
    /// The metrics, in a form.
    Metrics(Form),
}

/// A question, and where the answer goes.
#[derive(Debug)]
pub struct Question {
    /// What is wanted.
    pub what: What,
    /// To whom.
    pub answer: oneshot::Sender<Result<Answer, String>>,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The content.
    pub body: Arc<[u8]>,
    /// Changes with the content; metrics have none.
    pub tag: Option<String>,
    /// Of the page: its policy.
    pub policy: Option<Arc<str>>,
}

/// What the command line says.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Length of an interval.
    pub interval: Duration,
    /// How long it is kept.
    pub history: Duration,
    /// Statements that are named in the metrics; 0: none are told at all.
    pub statements: usize,
}

/// Columns of the heat map, at least.
const COLUMNS: u32 = 60;

/// Looks and answers.
#[derive(Debug)]
pub struct Collector {
    source: Source,
    place: SegmentPath,
    run: Option<Run>,
    history: History,
    named: Option<NamedStatements>,
    processors: Option<Processors>,
    pace: Pace,
    interval: Duration,
    /// Tells the reports of one life of this command from another's.
    life: u64,
    /// How many looks there were.
    look: u64,
    kept: Vec<(What, u64, Answer)>,
    families: Option<(Instant, Option<f64>, Vec<Family>)>,
    statements_read: Instant,
    asked: Option<Instant>,
}

impl Collector {
    /// Of the segment at a place.
    pub fn new(place: SegmentPath, settings: &Settings) -> Collector {
        let detail = (settings.history / COLUMNS).max(settings.interval);
        Collector {
            source: Source::new(place.clone()),
            place,
            run: None,
            history: History::new(settings.history, detail),
            named: (settings.statements > 0).then(|| NamedStatements::new(settings.statements)),
            processors: Processors::now(),
            pace: Pace {
                interval: settings.interval.as_secs_f64(),
                detail: detail.as_secs_f64(),
                reading: ::clock::pgtally_clock_cost(),
            },
            interval: settings.interval,
            life: segment::clock::realtime_ns(),
            look: 0,
            kept: Vec::new(),
            families: None,
            statements_read: Instant::now(),
            asked: None,
        }
    }

    /// Until nobody can ask any more.
    pub fn work(mut self, questions: &Receiver<Question>) {
        // Who asks first is told of what is there already.
        self.look();
        let mut due = Instant::now() + self.interval;
        loop {
            match questions.recv_timeout(due.saturating_duration_since(Instant::now())) {
                Ok(question) => {
                    let answer = self.answer(question.what).map_err(|error| error.to_string());
                    // Who has gone needs no answer.
                    let _ = question.answer.send(answer);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            let now = Instant::now();
            if now >= due {
                self.look();
                // What was missed is not caught up with: the next interval is longer.
                due = (due + self.interval).max(now + self.interval / 2);
            }
        }
    }

    fn look(&mut self) {
        self.look += 1;
        self.kept.clear();
        let watched = self.asked.is_some_and(|asked| asked.elapsed() < WATCHED);
        if watched || self.statements_read.elapsed() >= STATEMENTS {
            self.read_statements();
        }
        for found in self.source.look(false) {
            match found {
                Found::Server(server) => {
                    self.run = Run::open(&self.place).ok();
                    let header = &server.header;
                    self.history.restarted(&format!("{}, {}", header.server, header.host));
                    self.history.forget_statements(self.run.as_ref().and_then(Run::statements));
                }
                Found::Taken(taken) => {
                    let host = self.host(taken.frame.clock.seconds(taken.frame.ticks));
                    let statements = self.run.as_ref().and_then(Run::statements).cloned();
                    self.history.push(&taken.frame, host, statements);
                    self.history.note(taken.events);
                    if taken.reset {
                        let time = taken.frame.realtime_ns as f64 * 1e-9;
                        self.history.mark(time, "reset", "totals were reset");
                    }
                }
                Found::Ended(why) => self.gone(why),
                Found::Nothing(why) => self.gone(&why),
            }
        }
    }

    fn gone(&mut self, why: &str) {
        self.run = None;
        self.families = None;
        self.history.silent(why);
    }

    fn read_statements(&mut self) {
        self.statements_read = Instant::now();
        if let Some(run) = &mut self.run {
            // The look that follows tells why it could not be read.
            let _ = run.read_statements();
        }
    }

    fn host(&mut self, seconds: f64) -> Option<HostMetrics> {
        let before = std::mem::replace(&mut self.processors, Processors::now());
        Some(self.processors?.used(&before?, seconds))
    }

    fn answer(&mut self, what: What) -> Result<Answer, Error> {
        match what {
            What::Metrics(form) => {
                let (created, families) = self.metrics()?;
                let body = metrics::write(families, form, created).into();
                Ok(Answer { body, tag: None, policy: None })
            }
            What::Page | What::Report => {
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

    fn make(&mut self, what: What) -> Result<Answer, Error> {
        let latest = self.run.as_ref().and_then(Run::statements);
        let document = page::document(&self.history, latest, self.pace)?;
        let tag = Some(format!("\"{:x}-{}\"", self.life, self.look));
        let why = self.history.silence().unwrap_or("the first interval has not ended");
        match (what, document) {
            (What::Report, Some(document)) => {
                let json = serde_json::to_string(&document)?;
                let body = escape::json(&json).into_owned().into_bytes().into();
                Ok(Answer { body, tag, policy: None })
            }
            (What::Report, None) => Err(Error::Failed(format!("nothing to show yet: {why}"))),
            (_, document) => {
                let page = match &document {
                    Some(document) => Page::of(document)?,
                    None => Page::waiting(why),
                };
                let policy = Some(page.policy.into());
                Ok(Answer { body: page.html.into_bytes().into(), tag: None, policy })
            }
        }
    }

    /// The metrics as of now, or of a moment ago.
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
        let Some(run) = &mut self.run else { return Ok((None, metrics::collect(None))) };
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
        let present = Present { frame: &frame, events, statements };
        Ok((Some(run.created()), metrics::collect(Some(&present))))
    }
}
