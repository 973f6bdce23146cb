// SPDX-License-Identifier: PostgreSQL
//! Samples a server that does not load pg_tally, through one connection, and writes what it sees as a segment: one more
//! writer, whose image is read like that of a remote segment.
//!
//! A thread samples at random instants, and takes each sample into the ledger. A reader that refreshes its image waits for a
//! sample that it has not seen; the image then belongs to the instant of the last one.

mod image;
mod ledger;
mod observation;
mod query;
mod schedule;
mod statements;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use error::Error;
use pq::{Client, Conninfo};
use segment::clock::{monotonic_ns, realtime_ns};
use segment::{Moment, Origin, Parts};

use crate::local_server::LocalServer;
use crate::session_limits::{self, Limit};
use crate::{remote, server};
use image::{About, Image};
use ledger::Ledger;
use observation::Sample;
pub use schedule::SampleRate;
use schedule::Schedule;
use statements::Statements;

/// How long a reader waits for a sample: longer than the server may take for one.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often to look up who blocks whom, while sessions wait for locks.
const BLOCKED_EVERY: Duration = Duration::from_secs(1);
/// Processes beyond those that settings count.
const OTHER_PROCESSES: u32 = 64;
/// If the settings do not say how many sessions there may be.
const SLOTS: u32 = 1024;
const MOST_SLOTS: u32 = 32_768;

/// What the sampling thread and the reader share.
#[derive(Debug)]
struct Shared {
    client: Mutex<Client>,
    state: Mutex<State>,
    /// A sample has arrived, or sampling has ended.
    news: Condvar,
}

#[derive(Debug)]
struct State {
    ledger: Ledger,
    /// Why sampling has ended.
    ended: Option<String>,
    /// The reader is gone.
    stop: bool,
}

/// A connection through which a server is sampled.
pub(crate) struct Sampler {
    shared: Arc<Shared>,
    image: Image,
    about: About,
    statements: Statements,
    conninfo: String,
    server: String,
    processors: u32,
    /// Whether the role sees all sessions.
    complete: bool,
    /// Number of samples in the image; 0: there is none.
    samples: u64,
}

impl std::fmt::Debug for Sampler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not the connection string, which may contain a password.
        f.debug_struct("Sampler").field("server", &self.server).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sampler {
    /// Connect and begin to sample.
    pub(crate) fn open(conninfo: &Conninfo, rate: SampleRate) -> Result<Sampler, Error> {
        let mut client = server::connect(conninfo)?;
        let limits = session_limits::in_force(&mut client);
        client.batch_execute(query::LIMITS)?;
        client.batch_execute(query::PREPARE)?;
        let row = client.query_one(query::ABOUT, &[])?;
        let sessions = row.get::<Option<i64>>(4)?.and_then(|count| u32::try_from(count).ok());
        let slots = sessions.map_or(SLOTS, |count| count.saturating_add(OTHER_PROCESSES));
        let about = About {
            server: format!("PostgreSQL {}", row.get::<&str>(0)?),
            host: row.get::<Option<String>>(1)?.unwrap_or_default(),
            port: u32::try_from(row.get::<i32>(3)?).unwrap_or(0),
            begun_ns: u64::try_from(row.get::<i64>(2)?).unwrap_or(0) * 1000,
            tick: monotonic_ns(),
            realtime_ns: realtime_ns(),
            slots: slots.min(MOST_SLOTS),
            producer: segment::sampling::producer(rate.per_second()),
        };
        let complete = row.get(5)?;
        let here = LocalServer::of_connection(&mut client)?.is_some();
        let name = remote::name_of(&client);
        let shared = Arc::new(Shared {
            client: Mutex::new(client),
            state: Mutex::new(State {
                ledger: Ledger::new(about.slots as usize),
                ended: None,
                stop: false,
            }),
            news: Condvar::new(),
        });
        let (theirs, schedule) = (shared.clone(), Schedule::new(rate, realtime_ns()));
        let thread = std::thread::Builder::new().name("sampler".to_string());
        thread.spawn(move || run(&theirs, schedule, &limits))?;
        Ok(Sampler {
            shared,
            image: Image::new(about.slots),
            about,
            statements: Statements::default(),
            conninfo: conninfo.to_string(),
            server: name,
            processors: if here { 0 } else { segment::UNKNOWN_PROCESSORS },
            complete,
            samples: 0,
        })
    }

    fn error(&self, why: impl std::fmt::Display) -> segment::Error {
        segment::Error::Remote { server: self.server.clone(), why: why.to_string() }
    }

    /// The state with a sample that the image does not have.
    fn next(&self) -> Result<MutexGuard<'_, State>, segment::Error> {
        let state = lock(&self.shared.state);
        let lacks =
            |state: &mut State| state.ended.is_none() && state.ledger.samples <= self.samples;
        let waited = self.shared.news.wait_timeout_while(state, PATIENCE, lacks);
        let (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        match &state.ended {
            Some(why) => Err(self.error(why)),
            None if timeout.timed_out() => {
                Err(self.error(format!("no answer within {} s", PATIENCE.as_secs())))
            }
            None => Ok(state),
        }
    }
}

impl Origin for Sampler {
    fn bring(&mut self, file: &File, parts: Parts) -> Result<Moment, segment::Error> {
        let shared = self.shared.clone();
        if self.samples == 0 {
            self.image.create(file, &self.about).map_err(|error| self.error(error))?;
        } else if parts.0 & Parts::STATEMENTS.0 != 0 {
            let mut client = lock(&shared.client);
            let now = lock(&shared.state).ledger.last;
            let read = self.statements.read(&mut client, now);
            read.map_err(|error| self.error(error.message()))?;
        }
        drop(self.next()?);
        let mut state = lock(&shared.state);
        self.statements.add_times(&mut state.ledger);
        let image = &mut self.image;
        let written = image.write(file, &state.ledger);
        let written = written.and_then(|()| image.write_statements(file, &mut self.statements));
        written.map_err(|error| self.error(error))?;
        self.samples = state.ledger.samples;
        let last = state.ledger.last.ok_or_else(|| self.error("there is no sample"))?;
        let slots =
            state.ledger.slots.iter().map(|(_, session)| session.as_ref().map_or(0, |_| last.tick));
        Ok(Moment {
            tick: last.tick,
            monotonic_ns: last.tick,
            realtime_ns: last.realtime_ns,
            slots: slots.collect(),
            processors: self.processors,
            complete: self.complete && !last.hidden,
        })
    }

    fn server(&self) -> &str {
        &self.server
    }

    fn conninfo(&self) -> &str {
        &self.conninfo
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        lock(&self.shared.state).stop = true;
        self.shared.news.notify_all();
    }
}

/// Samples until the reader is gone, or the server no longer answers.
fn run(shared: &Shared, mut schedule: Schedule, limits: &[Limit]) {
    let mut due = Instant::now();
    let mut blocked_at: Option<Instant> = None;
    loop {
        let late = due.elapsed();
        let sampled = sample(shared, late, &mut blocked_at);
        let mut state = lock(&shared.state);
        if let Err(error) = sampled {
            let limits = session_limits::explain(error.sqlstate(), limits);
            state.ended = Some(format!("{}{limits}", error.message()));
        }
        shared.news.notify_all();
        // A sample that could not be taken in time is left out, not made up for.
        due = (due + schedule.draw()).max(Instant::now());
        while !state.stop && state.ended.is_none() {
            let Some(left) =
                due.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
            else {
                break;
            };
            let waited = shared.news.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if state.stop || state.ended.is_some() {
            return;
        }
    }
}

fn sample(
    shared: &Shared,
    late: Duration,
    blocked_at: &mut Option<Instant>,
) -> Result<(), pq::Error> {
    let ns = |length: Duration| u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
    let mut client = lock(&shared.client);
    let begin = monotonic_ns();
    let (at_us, sessions, hidden) = query::sample(&mut client)?;
    let end = monotonic_ns();
    let sample = Sample {
        tick: begin + (end - begin) / 2,
        realtime_ns: u64::try_from(at_us).unwrap_or(0) * 1000,
        late_ns: ns(late),
        read_ns: end - begin,
        sessions,
        hidden,
    };
    let waits = sample.has_lock_waits();
    let due = waits && blocked_at.is_none_or(|at| at.elapsed() >= BLOCKED_EVERY);
    // Read after the sample, which shows that these sessions wait.
    let blockages = match due.then(|| query::blocked(&mut client)) {
        Some(Err(error)) if error.sqlstate().is_none() => return Err(error),
        // What the server refuses, or has no time for, is not known.
        blockages => blockages.and_then(Result::ok),
    };
    drop(client);
    let mut state = lock(&shared.state);
    let tick = sample.tick;
    state.ledger.apply(sample);
    if due {
        *blocked_at = Some(Instant::now());
    }
    if let Some(blockages) = blockages {
        state.ledger.block(blockages, tick);
    } else if !waits {
        state.ledger.block(Vec::new(), tick);
        *blocked_at = None;
    }
    Ok(())
}
