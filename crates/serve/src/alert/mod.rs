// SPDX-License-Identifier: PostgreSQL
//! `tally serve --alert`: notifies a person of problems, by Alertmanager, a webhook or a command.
//!
//! One thread diagnoses the server as `tally doctor` does, with a separate reader, and the [`book`] decides
//! what to report. Another thread delivers it ([`deliver`]) from a bounded queue. Neither delays the page or
//! the metrics.

mod book;
mod changes;
mod deliver;
mod destination;
mod message;
mod silence;

use std::path::PathBuf;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use diagnose::{Diagnoses, Rule};
use error::Error;
use jiff::Timestamp;
use live::follower::{FollowOptions, Follower};
use live::settings::SettingsWatch;
use live::target::SegmentSource;
use otlp::queue::Queue;
use view::escape::say;
use view::Reading;

use book::{Alert, AlertBook, Pacing};
use changes::ChangeBook;
use deliver::Courier;
use message::AlertSource;
use silence::Silence;

pub use destination::Destination;

/// Time limit for delivering the last messages at the end.
const FAREWELL: Duration = Duration::from_secs(5);
/// Alertmanager expects alerts to be repeated.
const RESENT: Duration = Duration::from_secs(60);

/// What to report, and to whom.
#[derive(Debug, Clone)]
pub struct AlertSettings {
    /// Where messages go.
    pub destination: Destination,
    /// Length of the intervals that are diagnosed.
    pub every: Duration,
    /// How often a lasting problem is reported again; Alertmanager has its own setting for that.
    pub repeat: Duration,
    /// A file with the rules that are not reported.
    pub silence: Option<PathBuf>,
    /// Whether changed settings are reported, too.
    pub changes: bool,
}

/// The threads.
#[derive(Debug)]
pub struct Alerts {
    /// Dropped to end the watcher.
    stop: Sender<()>,
    queue: Arc<Queue>,
    watcher: JoinHandle<()>,
    courier: JoinHandle<()>,
}

impl Alerts {
    /// Starts the threads for the server at `place`.
    pub fn start(settings: AlertSettings, place: SegmentSource) -> Result<Alerts, Error> {
        let (stop, stopped) = channel();
        let queue = Arc::new(Queue::default());
        let courier = Courier::new(settings.destination.clone(), Arc::clone(&queue));
        let watcher = Watcher::new(settings, place, Arc::clone(&queue));
        let thread = |name: &str| std::thread::Builder::new().name(name.to_string());
        Ok(Alerts {
            stop,
            queue,
            watcher: thread("alerts").spawn(move || watcher.work(&stopped))?,
            courier: thread("alert courier").spawn(move || courier.work())?,
        })
    }

    /// Delivers what is still queued, within a time limit.
    pub fn finish(self) {
        drop(self.stop);
        self.queue.close(Instant::now() + FAREWELL);
        // What a thread that failed has left undone is in the count below.
        let _ = self.courier.join();
        let _ = self.watcher.join();
        let fate = self.queue.fate();
        if fate.dropped + fate.waiting > 0 {
            say(&format!("alert: {} messages were not delivered", fate.dropped + fate.waiting));
        }
    }
}

/// Diagnoses the server.
#[derive(Debug)]
struct Watcher {
    follower: Follower,
    settings: AlertSettings,
    book: AlertBook,
    place: SegmentSource,
    /// The changes of settings, if they are reported.
    changes: Option<ChangeBook>,
    watch: Option<SettingsWatch>,
    silence: Silence,
    queue: Arc<Queue>,
}

impl Watcher {
    fn new(settings: AlertSettings, place: SegmentSource, queue: Arc<Queue>) -> Watcher {
        let wanted = FollowOptions { vacuum: true, ..FollowOptions::of_diagnoses() };
        let repeat = match settings.destination {
            Destination::Alertmanager(_) => RESENT,
            _ => settings.repeat,
        };
        let book = AlertBook::new(Pacing { repeat });
        let silence = Silence::new(settings.silence.clone());
        let changes = settings.changes.then(|| ChangeBook::new(repeat));
        let follower = Follower::new(place.clone(), wanted);
        Watcher { follower, settings, book, place, changes, watch: None, silence, queue }
    }

    /// Diagnoses each interval until the sender of `stopped` is dropped.
    fn work(mut self, stopped: &Receiver<()>) {
        loop {
            if let Some(reading) = self.reading() {
                self.examine(&reading);
                self.report_changes(&reading);
            } else if let Some(watch) = &mut self.watch {
                // What has changed with a restart is reported after it.
                watch.restarted();
            }
            match stopped.recv_timeout(self.settings.every) {
                Err(RecvTimeoutError::Timeout) => {}
                _ => return,
            }
        }
    }

    /// The last interval; `None` while there is no server, and for the first interval of its run.
    fn reading(&mut self) -> Option<Box<Reading>> {
        let reading = self.follower.interval().ok();
        if reading.is_none() {
            // If the server is there again, the next interval begins here.
            let _ = self.follower.interval();
        }
        reading
    }

    fn examine(&mut self, reading: &Reading) {
        let found = Diagnoses::examine(reading);
        // At level off nothing is known: what was told is not taken back.
        if found.healthy.is_none() {
            return;
        }
        let now = Timestamp::now();
        let server = AlertSource::new(&reading.interval.server);
        let silence = self.silence.read(now);
        for alert in self.book.look(now, &found.diagnoses, &|rule| silence.covers(rule)) {
            let body = message::body(&self.settings.destination, &server, &alert, now);
            self.queue.push(body, 1);
        }
    }

    /// Reports changed settings. They are known at any level.
    fn report_changes(&mut self, reading: &Reading) {
        let Some(book) = &mut self.changes else { return };
        if self.watch.is_none() {
            let segment = self.follower.segment();
            self.watch = segment.and_then(|of| SettingsWatch::of_segment(&self.place, of));
        }
        for reading in self.watch.iter_mut().flat_map(|watch| watch.poll(Instant::now())) {
            book.add(reading.changes);
        }
        let now = Timestamp::now();
        let silenced = self.silence.read(now).covers(Rule::ChangedSettings);
        let changes = book.take_due(now, silenced);
        if !changes.is_empty() {
            let (server, note) =
                (AlertSource::new(&reading.interval.server), Alert::of_changes(changes, now));
            self.queue.push(message::body(&self.settings.destination, &server, &note, now), 1);
        }
    }
}
