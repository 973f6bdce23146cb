// SPDX-License-Identifier: PostgreSQL
//! Sends the metrics of `/metrics` and the events to an OpenTelemetry receiver, by OTLP over HTTP
//! (docs/opentelemetry.md).
//!
//! The collector's thread converts readings and events to requests and puts them into two bounded [`queue`]s.
//! Each queue has a [`sender`] thread that takes them out, so a slow receiver never delays a reading.

mod logs;
mod metrics;
mod starts;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use error::Error;
use live::target::SegmentSource;
use opentelemetry_proto::tonic::resource::v1::Resource;
use segment::clock::realtime_ns;
use segment::Header;
use view::events::Row;

use super::metrics::{Delivery, Family};
use otlp::queue::Queue;
use otlp::resource;
use otlp::sender::Sender;
use otlp::settings::{self, Target};
use otlp::signal::Signal;
use starts::Starts;

/// Maximum number of events in a request.
const EVENTS: usize = 500;
/// Time limit for sending the last readings and events at the end.
const FAREWELL: Duration = Duration::from_secs(5);

/// How often to send readings by default.
const EVERY: Duration = Duration::from_secs(10);

/// What to send, and where.
#[derive(Debug)]
pub struct OtlpSettings {
    /// The receiver of metrics.
    pub metrics: Target,
    /// The receiver of events.
    pub logs: Target,
    /// How often readings are sent.
    pub every: Duration,
    /// Attributes of the resource, from the user.
    pub resource: Vec<(String, String)>,
}

impl OtlpSettings {
    /// From `--otlp URL` (or `--otlp` without a URL) and `--otlp-interval`; `get` reads the environment.
    pub fn read(
        url: Option<&str>,
        every: Option<Duration>,
        get: &dyn Fn(&str) -> Option<String>,
    ) -> Result<OtlpSettings, Error> {
        let every = match every {
            Some(every) => every,
            None => settings::milliseconds("OTEL_METRIC_EXPORT_INTERVAL", get)?.unwrap_or(EVERY),
        };
        let target = |signal| settings::target(url, signal, get);
        Ok(OtlpSettings {
            metrics: target(Signal::Metrics)?,
            logs: target(Signal::Logs)?,
            every,
            resource: settings::resource(get)?,
        })
    }
}

/// The queues, and the threads that send them.
#[derive(Debug)]
pub struct Otlp {
    place: SegmentSource,
    every: Duration,
    due: Instant,
    resource: Resource,
    extra: Vec<(String, String)>,
    starts: Starts,
    since: f64,
    readings: Arc<Queue>,
    events: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
}

impl Otlp {
    /// Starts the threads. `place` identifies the server while it cannot be read.
    pub fn start(settings: OtlpSettings, place: &SegmentSource) -> Result<Otlp, Error> {
        let since = realtime_ns() as f64 * 1e-9;
        let (readings, events) = (Arc::new(Queue::default()), Arc::new(Queue::default()));
        let mut threads = Vec::new();
        for (signal, target, queue) in
            [(Signal::Metrics, settings.metrics, &readings), (Signal::Logs, settings.logs, &events)]
        {
            let sender = Sender::new(signal, target, Arc::clone(queue))?;
            let thread = std::thread::Builder::new().name(format!("otlp {}", signal.name()));
            threads.push(thread.spawn(move || sender.work())?);
        }
        Ok(Otlp {
            resource: resource::describe_server(place, None, &settings.resource),
            extra: settings.resource,
            place: place.clone(),
            every: settings.every,
            due: Instant::now(),
            starts: Starts::default(),
            since,
            readings,
            events,
            threads,
        })
    }

    /// When the next reading is due.
    pub fn due(&self) -> Instant {
        self.due
    }

    /// Another run of the server is being read from now on.
    pub fn attached(&mut self, header: &Header) {
        self.resource = resource::describe_server(&self.place, Some(header), &self.extra);
    }

    /// A reading is about to be taken, whether it succeeds or not.
    pub fn begin(&mut self) {
        // Missed readings are not made up for.
        self.due = (self.due + self.every).max(Instant::now() + self.every / 2);
    }

    /// Queues a reading of these counters, which count since `counted`, seconds since 1970; `None` if no server
    /// could be read.
    pub fn reading(&mut self, families: &[Family], counted: Option<f64>) {
        let counted = counted.unwrap_or(self.since);
        let time = realtime_ns();
        self.starts.begin(counted, time);
        let request = metrics::request(families, &mut self.starts, time, &self.resource);
        self.readings.push(request, 1);
    }

    /// Queues events.
    pub fn events(&self, rows: &[Row]) {
        for rows in rows.chunks(EVENTS) {
            self.events.push(logs::request(rows, realtime_ns(), &self.resource), rows.len() as u64);
        }
    }

    /// What happened to all readings and events.
    pub fn delivery(&self) -> Delivery {
        let (readings, events) = (self.readings.fate(), self.events.fate());
        Delivery { since: self.since, readings, events }
    }

    /// Sends what is still queued, within a time limit.
    pub fn finish(self) {
        let until = Instant::now() + FAREWELL;
        self.readings.close(until);
        self.events.close(until);
        for thread in self.threads {
            // A thread that failed has left its queue as it was; the counts below show that.
            let _ = thread.join();
        }
        for (queue, what) in [(&self.readings, "readings of all metrics"), (&self.events, "events")]
        {
            let fate = queue.fate();
            let lost = fate.dropped + fate.waiting;
            if lost > 0 {
                view::escape::say(&format!(
                    "otlp: {lost} of {} {what} were not accepted",
                    lost + fate.accepted
                ));
            }
        }
    }
}
